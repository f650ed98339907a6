/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes, each with a pipe for what it is to do and one for what it has done. */
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
    pid_t pid;    /* 0: on another machine */
    int to, from; /* pipes, of the coordinator's side, or twice the connection; 0: there is none */
    bool busy;
    struct duet__work work;
};

struct duet__pool {
    unsigned count;
    struct worker *workers;
    duet__work_fn *work;
    void *data;
    struct sigaction broken; /* what SIGPIPE did before */
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

/* ------------------------------------------------------------------------------------------- */
/* A worker                                                                                     */

/*
 * Does what comes until nothing does. A terminal sends its interrupt to workers, too, but it is the
 * coordinator that ends them, once it has what is finished.
 */
void duet__pool_work(int from, int to, duet__work_fn *work, void *data, pid_t parent)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct duet__work what;
    sigset_t none;
    int nothing = open("/dev/null", O_RDONLY);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* first, as it may be stopped at any moment */
    for (size_t i = 0; i < G_N_ELEMENTS(ignored); i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(nothing, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* what libraries print is no result */
    while (getppid() == parent && duet__receive(from, &what, sizeof what)) {
        char *rows = work(&what, data);
        size_t length = strlen(rows);

        if (!duet__send(to, &length, sizeof length) || !duet__send(to, rows, length))
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
        for (unsigned i = 0; i < pool->count; i++)
            if (pool->workers[i].to) {
                close(pool->workers[i].to);
                close(pool->workers[i].from);
            }
        duet__pool_work(to[0], from[1], pool->work, pool->data, parent);
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

    if (!worker->to)
        return 0;
    if (kill_it && worker->pid)
        kill(worker->pid, SIGKILL);
    while (worker->pid && waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(worker->to);
    close(worker->from);
    *worker = (struct worker){0};
    return status;
}

struct duet__pool *duet__pool_new(unsigned count, duet__work_fn *work, void *data,
                                  struct duet_message *message)
{
    struct duet__pool *pool = g_new0(struct duet__pool, 1);

    *pool = (struct duet__pool){.count = count,
                                .workers = g_new0(struct worker, count),
                                .work = work,
                                .data = data};
    /* a worker that has died is found by its answer */
    sigaction(SIGPIPE, &(const struct sigaction){.sa_handler = SIG_IGN}, &pool->broken);
    for (unsigned i = 0; i < count; i++)
        if (start(pool, &pool->workers[i], message)) {
            duet__pool_free(pool);
            return NULL;
        }
    return pool;
}

void duet__pool_free(struct duet__pool *pool)
{
    for (unsigned i = 0; pool && i < pool->count; i++)
        end(&pool->workers[i], true);
    if (pool) {
        sigaction(SIGPIPE, &pool->broken, NULL);
        g_free(pool->workers);
    }
    g_free(pool);
}

static bool away(const struct worker *worker)
{
    return worker->to && !worker->pid;
}

unsigned duet__pool_busy(const struct duet__pool *pool)
{
    unsigned busy = 0;

    for (unsigned i = 0; i < pool->count; i++)
        busy += pool->workers[i].busy;
    return busy;
}

static bool is_idle(const struct worker *worker, bool here)
{
    return worker->to && !worker->busy && (worker->pid || !here);
}

unsigned duet__pool_idle(const struct duet__pool *pool, bool here)
{
    unsigned idle = 0;

    for (unsigned i = 0; i < pool->count; i++)
        idle += is_idle(&pool->workers[i], here);
    return idle;
}

void duet__pool_add(struct duet__pool *pool, int connection)
{
    pool->workers = g_renew(struct worker, pool->workers, pool->count + 1);
    pool->workers[pool->count++] = (struct worker){.to = connection, .from = connection};
}

void duet__pool_give(struct duet__pool *pool, const struct duet__work *work, bool here)
{
    struct worker *worker = pool->workers;

    while (!is_idle(worker, here))
        worker++;
    worker->busy = true;
    worker->work = *work;
    /* one that has died is found where its answer is waited for */
    (void)duet__send(worker->to, work, sizeof *work);
}

/* The answer of a worker, of which something has come. */
static int take(struct duet__pool *pool, struct worker *worker, struct duet__done *done,
                struct duet_message *message)
{
    size_t length = 0;
    const bool lost = away(worker);
    int status;

    *done = (struct duet__done){.work = worker->work};
    if (duet__receive(worker->from, &length, sizeof length)) {
        done->rows = g_malloc(length + 1);
        done->rows[length] = 0;
        if (duet__receive(worker->from, done->rows, length)) {
            worker->busy = false;
            return 1;
        }
        g_clear_pointer(&done->rows, g_free);
    }
    status = end(worker, false);
    if (lost)
        return 1;
    if (WIFSIGNALED(status))
        duet_fail(&done->message, DUET_ECANCELED, "killed by signal %d (%s)", WTERMSIG(status),
                  strsignal(WTERMSIG(status)));
    else
        duet_fail(&done->message, DUET_ECANCELED, "it ended with status %d", WEXITSTATUS(status));
    return start(pool, worker, message) ? DUET_EIO : 1;
}

int duet__pool_take(struct duet__pool *pool, double seconds, struct duet__done *done,
                    struct duet_message *message)
{
    struct pollfd *files = g_new0(struct pollfd, pool->count);
    struct worker *ready = NULL;

    for (unsigned i = 0; i < pool->count; i++)
        files[i] = (struct pollfd){.fd = pool->workers[i].busy || away(&pool->workers[i])
                                             ? pool->workers[i].from
                                             : -1,
                                   .events = POLLIN};
    if (poll(files, pool->count, (int)(seconds * 1000)) > 0)
        for (unsigned i = 0; i < pool->count; i++) {
            if (files[i].revents && pool->workers[i].busy)
                ready = ready ? ready : &pool->workers[i];
            else if (files[i].revents) /* it has nothing to say */
                end(&pool->workers[i], false);
        }
    g_free(files);
    return ready ? take(pool, ready, done, message) : 0;
}
