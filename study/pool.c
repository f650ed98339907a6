/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker processes, each with a pipe for what it is to do and one for what it has done; those of
 * another machine share a connection.
 */
#include "study/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct worker {
    pid_t pid;    /* 0: none here */
    int to, from; /* pipes, of the coordinator's side, or twice the connection; -1: none */
    bool busy;
    struct duet__work work;
};

struct duet__pool {
    unsigned count;
    struct worker *workers;
    duet__work_fn *work;
    void *data;
    int watched;             /* a file; -1: none */
    unsigned turn;           /* the worker that was heard last: the others come first */
    unsigned lost;           /* connections */
    struct sigaction broken; /* what SIGPIPE did before */
};

/* What comes back, before the rows. */
struct answer {
    struct duet__work work;
    size_t length;
};

bool duet__send(int to, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        ssize_t sent = write(to, at, bytes);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

bool duet__receive(int from, void *data, size_t bytes)
{
    for (char *at = data; bytes > 0;) {
        ssize_t got = read(from, at, bytes);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

bool duet__answer(int to, const struct duet__work *work, const char *rows)
{
    const struct answer answer = {*work, strlen(rows)};

    return duet__send(to, &answer, sizeof answer) && duet__send(to, rows, answer.length);
}

/* Its rows; NULL: the other side is gone. */
static char *receive_answer(int from, struct answer *answer)
{
    char *rows = NULL;

    if (duet__receive(from, answer, sizeof *answer)) {
        rows = g_malloc(answer->length + 1);
        rows[answer->length] = 0;
        if (!duet__receive(from, rows, answer->length))
            g_clear_pointer(&rows, g_free);
    }
    return rows;
}

/* ------------------------------------------------------------------------------------------- */
/* A worker                                                                                     */

/*
 * Does what comes until nothing does. A terminal sends its interrupt to workers, too, but it is the
 * coordinator that ends them, once it has what is finished.
 */
static void worker_main(const struct duet__pool *pool, int from, int to, pid_t parent)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct duet__work work;
    sigset_t none;
    int nothing;

    for (size_t i = 0; i < G_N_ELEMENTS(ignored); i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0; i < pool->count; i++)
        if (pool->workers[i].from >= 0) {
            close(pool->workers[i].to);
            close(pool->workers[i].from);
        }
    if (pool->watched >= 0)
        close(pool->watched);
    nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* what libraries print is no result */
    while (getppid() == parent && duet__receive(from, &work, sizeof work)) {
        char *rows = pool->work(&work, pool->data);

        if (!duet__answer(to, &work, rows))
            break;
        g_free(rows);
    }
    _exit(EXIT_SUCCESS);
}

/* ------------------------------------------------------------------------------------------- */
/* The coordinator                                                                              */

static int start(struct duet__pool *pool, struct worker *worker, struct duet_message *message)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    pid_t parent = getpid(), pid = -1;
    bool good = pipe(to) == 0 && pipe(from) == 0;

    for (int i = 0; i < 2 && good; i++)
        good = !fcntl(to[i], F_SETFD, FD_CLOEXEC) && !fcntl(from[i], F_SETFD, FD_CLOEXEC);
    if (good) {
        fflush(NULL);
        pid = fork();
    }
    if (pid == 0) {
        close(to[1]);
        close(from[0]);
        worker_main(pool, to[0], from[1], parent);
    }
    if (pid < 0)
        duet_fail(message, DUET_EIO, "cannot start a process: %s", strerror(errno));
    else
        *worker = (struct worker){.pid = pid, .to = to[1], .from = from[0]};
    if (to[0] >= 0)
        close(to[0]);
    if (from[1] >= 0)
        close(from[1]);
    return pid < 0 ? DUET_EIO : 0;
}

/* Its status. */
static int end(struct worker *worker, bool kill_it)
{
    int status = 0;

    if (kill_it)
        kill(worker->pid, SIGKILL);
    while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(worker->to);
    close(worker->from);
    *worker = (struct worker){.to = -1, .from = -1};
    return status;
}

struct duet__pool *duet__pool_new(unsigned count, duet__work_fn *work, void *data,
                                  struct duet_message *message)
{
    struct duet__pool *pool = g_new0(struct duet__pool, 1);

    *pool = (struct duet__pool){.count = count,
                                .workers = g_new0(struct worker, count),
                                .work = work,
                                .data = data,
                                .watched = -1};
    for (unsigned i = 0; i < count; i++)
        pool->workers[i].from = -1;
    /* a worker that has died is found by its answer */
    sigaction(SIGPIPE, &(const struct sigaction){.sa_handler = SIG_IGN}, &pool->broken);
    for (unsigned i = 0; i < count; i++)
        if (start(pool, &pool->workers[i], message)) {
            duet__pool_free(pool);
            return NULL;
        }
    return pool;
}

/* The connection of a worker, and of others, has ended: that is their answer. */
static void lose(struct duet__pool *pool, const struct worker *worker)
{
    int connection = worker->from;

    for (unsigned i = 0; i < pool->count; i++)
        if (pool->workers[i].from == connection)
            pool->workers[i].to = pool->workers[i].from = -1;
    close(connection);
    pool->lost++;
}

void duet__pool_free(struct duet__pool *pool)
{
    for (unsigned i = 0; pool && i < pool->count; i++)
        if (pool->workers[i].pid)
            end(&pool->workers[i], true);
        else if (pool->workers[i].from >= 0)
            lose(pool, &pool->workers[i]);
    if (pool) {
        sigaction(SIGPIPE, &pool->broken, NULL);
        g_free(pool->workers);
    }
    g_free(pool);
}

unsigned duet__pool_busy(const struct duet__pool *pool)
{
    unsigned busy = 0;

    for (unsigned i = 0; i < pool->count; i++)
        busy += pool->workers[i].busy;
    return busy;
}

unsigned duet__pool_idle(const struct duet__pool *pool)
{
    unsigned idle = 0;

    for (unsigned i = 0; i < pool->count; i++)
        idle += !pool->workers[i].busy && pool->workers[i].from >= 0;
    return idle;
}

unsigned duet__pool_lost(const struct duet__pool *pool)
{
    return pool->lost;
}

void duet__pool_watch(struct duet__pool *pool, int file)
{
    pool->watched = file;
}

void duet__pool_add(struct duet__pool *pool, int connection, unsigned count)
{
    pool->workers = g_renew(struct worker, pool->workers, pool->count + count);
    for (unsigned i = 0; i < count; i++)
        pool->workers[pool->count++] = (struct worker){.to = connection, .from = connection};
}

void duet__pool_give(struct duet__pool *pool, const struct duet__work *work)
{
    struct worker *worker = pool->workers;

    while (worker->busy || worker->from < 0)
        worker++;
    worker->busy = true;
    worker->work = *work;
    /* one that has died is found where its answer is waited for */
    (void)duet__send(worker->to, work, sizeof *work);
}

/* The answer of a worker, of which something has come. 0: that was its end, or another's. */
static int take(struct duet__pool *pool, struct worker *worker, struct duet__done *done,
                struct duet_message *message)
{
    int status, from = worker->from;
    struct answer answer;

    done->rows = receive_answer(from, &answer);
    for (unsigned i = 0; i < pool->count && done->rows; i++) {
        struct worker *at = &pool->workers[i];

        if (at->from == from && at->busy && !memcmp(&at->work, &answer.work, sizeof at->work)) {
            at->busy = false;
            done->work = at->work;
            return 1;
        }
    }
    g_clear_pointer(&done->rows, g_free);
    if (!worker->pid) {
        lose(pool, worker);
        return 0;
    }
    done->work = worker->work;
    status = end(worker, false);
    done->rows =
        WIFSIGNALED(status)
            ? g_strdup_printf("{\"status\": %d, \"error\": \"its process has died: killed by "
                              "signal %d (%s)\"}",
                              DUET__ROW_FAILED, WTERMSIG(status), strsignal(WTERMSIG(status)))
            : g_strdup_printf("{\"status\": %d, \"error\": \"its process has died: it ended with "
                              "status %d\"}",
                              DUET__ROW_FAILED, WEXITSTATUS(status));
    return start(pool, worker, message) ? DUET_EIO : 1;
}

int duet__pool_take(struct duet__pool *pool, double seconds, struct duet__done *done,
                    struct duet_message *message)
{
    const unsigned count = pool->count;
    struct pollfd *files = g_new0(struct pollfd, count + 1);
    struct worker *ready = NULL;

    for (unsigned i = 0; i < count; i++) {
        struct worker *worker = &pool->workers[i];

        if (worker->busy && worker->from < 0) {
            *done = (struct duet__done){.work = worker->work};
            worker->busy = false;
            g_free(files);
            return 1;
        }
        files[i] = (struct pollfd){.fd = worker->busy || !worker->pid ? worker->from : -1,
                                   .events = POLLIN};
    }
    files[count] = (struct pollfd){.fd = pool->watched, .events = POLLIN};
    if (poll(files, count + 1, seconds < 0 ? -1 : (int)(seconds * 1000)) > 0)
        for (unsigned i = 1; i <= count && !ready; i++)
            if (files[(pool->turn + i) % count].revents)
                ready = &pool->workers[(pool->turn + i) % count];
    g_free(files);
    if (!ready)
        return 0;
    pool->turn = (unsigned)(ready - pool->workers);
    return take(pool, ready, done, message);
}
