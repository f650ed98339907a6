/* SPDX-License-Identifier: Apache-2.0 */
/* Children, each with a pipe for its result, and connections with workers on other machines. */
#include "runs/executor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

struct worker {
    pid_t pid;   /* of a child at a job, or of a server here; 0: none, or the worker is elsewhere */
    int file;    /* end of a pipe from the child, or a connection; -1: none */
    bool served; /* the worker has a connection, here or from another machine */
    bool busy;
    bool ready; /* something has come of it: look */
    uint64_t job;
    char *result; /* bytes of the result so far */
    size_t length, room;
};

struct duet__executor {
    unsigned count;
    struct worker *workers;
    duet__execute_fn *execute;
    void *data;
    void (*on_pipe)(int); /* what SIGPIPE did before there were servers */
};

/* An answer of a server; the result follows. */
struct answer {
    bool died, last; /* last: the server ends after it */
    struct duet_message message;
    size_t length;
};

bool duet__send(int file, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        ssize_t sent = write(file, at, bytes);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

bool duet__receive(int file, void *data, size_t bytes)
{
    for (char *at = data; bytes > 0;) {
        ssize_t got = read(file, at, bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

/*
 * Makes this process one that ends with its parent, ignores a terminal's interrupts, has no input,
 * and prints nothing but errors: what libraries print is no result. Returns false if the parent has
 * ended before that.
 */
static bool begin_process(pid_t parent)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP};
    const int nothing = open("/dev/null", O_RDONLY);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < G_N_ELEMENTS(ignored); i++)
        signal(ignored[i], SIG_IGN);
    dup2(nothing, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return getppid() == parent;
}

/* ------------------------------------------------------------------------------------------- */
/* Children                                                                                     */

/*
 * Executes a job and ends the process. A terminal sends its interrupt to children, too, but it is
 * the parent that ends them, once it has what is finished.
 */
static _Noreturn void child_main(const struct duet__executor *executor, uint64_t job, int file,
                                 pid_t parent)
{
    FILE *result = fdopen(fcntl(file, F_DUPFD_CLOEXEC, 3), "w"); /* no standard stream */
    close(file); /* which may be a standard stream, if the parent had none */
    if (!begin_process(parent) || !result)
        _exit(EXIT_FAILURE);
    executor->execute(job, result, executor->data);
    /* nothing is gained by tidying up what the system takes back */
    _exit(fflush(result) ? EXIT_FAILURE : EXIT_SUCCESS);
}

/*
 * Forks where a pipe or a connection was `made`. Returns 0 in the child, which has ends[1] and no
 * other worker's file; its number in the parent, which has ends[0]; or -1, and both are closed.
 */
static pid_t fork_worker(const struct duet__executor *executor, bool made, const int ends[2])
{
    pid_t pid = -1;
    if (made) {
        fflush(NULL);
        pid = fork();
        close(ends[pid != 0]);
    }
    if (made && pid < 0)
        close(ends[0]);
    for (unsigned i = 0; pid == 0 && i < executor->count; i++)
        if (executor->workers[i].file >= 0)
            close(executor->workers[i].file);
    return pid;
}

static int start_child(struct duet__executor *executor, struct worker *worker, uint64_t job,
                       struct duet_message *message)
{
    int ends[2];
    const pid_t parent = getpid(), pid = fork_worker(executor, pipe2(ends, O_CLOEXEC) == 0, ends);
    if (pid == 0)
        child_main(executor, job, ends[1], parent);
    if (pid < 0)
        return duet_fail(message, DUET_EIO, "cannot start a process: %s", strerror(errno));
    *worker = (struct worker){.pid = pid, .file = ends[0], .busy = true, .job = job};
    return 0;
}

/* Ends a worker's job. Returns the status of a child, as waitpid has it. */
static int end_worker(struct worker *worker, bool at_once)
{
    int status = 0;
    if (at_once && worker->pid) {
        kill(worker->pid, SIGKILL);
        kill(-worker->pid, SIGKILL); /* the processes of a session of its own */
    }
    while (worker->pid && waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (worker->file >= 0)
        close(worker->file);
    free(worker->result);
    /* a worker elsewhere does not come back, a child or a server here may */
    *worker = (struct worker){.file = -1, .served = worker->served && !worker->pid};
    return status;
}

/* Takes bytes of a child's result. Returns true at its end. */
static bool read_child(struct worker *worker)
{
    enum { LEAST = 1 << 16 };
    ssize_t got;
    if (worker->room - worker->length < LEAST) {
        worker->room = 2 * worker->room + LEAST + 1;
        worker->result = g_realloc(worker->result, worker->room);
    }
    got = read(worker->file, worker->result + worker->length, worker->room - worker->length - 1);
    worker->length += got > 0 ? (size_t)got : 0;
    worker->result[worker->length] = 0;
    return got == 0 || (got < 0 && errno != EINTR);
}

/* Takes the result of a child that has closed its pipe, and waits for the child's end. */
static void take_child(struct worker *worker, struct duet__ended *ended)
{
    int status;
    *ended = (struct duet__ended){.job = worker->job, .length = worker->length};
    ended->result = g_steal_pointer(&worker->result);
    status = end_worker(worker, false);
    if (WIFSIGNALED(status))
        duet_fail(&ended->message, DUET_ECANCELED, "killed by signal %d (%s)", WTERMSIG(status),
                  strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != EXIT_SUCCESS)
        duet_fail(&ended->message, DUET_ECANCELED, "it ended with status %d", WEXITSTATUS(status));
    else if (!ended->length)
        duet_fail(&ended->message, DUET_ECANCELED, "it ended without a result");
    if (*ended->message.text)
        g_clear_pointer(&ended->result, free);
}

/* ------------------------------------------------------------------------------------------- */
/* Workers on other machines                                                                    */

/* Starts a server here, in place of a worker, which stays as it is without means for a process. */
static void start_server(struct duet__executor *executor, struct worker *worker,
                         duet__fresh_fn *fresh)
{
    int ends[2];
    const pid_t parent = getpid();
    const pid_t pid =
        fork_worker(executor, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, ends);
    if (pid == 0) {
        duet__executor_serve(ends[1], parent, executor->execute, executor->data, fresh);
        _exit(EXIT_SUCCESS);
    }
    if (pid > 0)
        *worker = (struct worker){.pid = pid, .file = ends[0], .served = true};
}

/* Takes an answer, of which something has come. */
static void take_answer(struct worker *worker, struct duet__ended *ended)
{
    struct answer answer;
    *ended = (struct duet__ended){.job = worker->job};
    ended->lost = !duet__receive(worker->file, &answer, sizeof answer);
    if (!ended->lost && !answer.died) {
        ended->length = answer.length;
        ended->result = g_malloc(answer.length + 1);
        ended->result[answer.length] = 0;
        ended->lost = !duet__receive(worker->file, ended->result, answer.length);
    }
    if (!ended->lost && answer.died)
        ended->message = answer.message;
    worker->busy = false;
    if (ended->lost)
        g_clear_pointer(&ended->result, free);
    if (ended->lost || answer.last) /* a server here has children in its place from now on */
        end_worker(worker, true);
}

void duet__executor_settle(struct duet__executor *executor, duet__fresh_fn *fresh)
{
    /* a server that is gone is found where its answer is waited for */
    executor->on_pipe = signal(SIGPIPE, SIG_IGN);
    for (unsigned i = 0; i < executor->count; i++)
        start_server(executor, &executor->workers[i], fresh);
}

void duet__executor_add(struct duet__executor *executor, int connection)
{
    executor->workers = g_renew(struct worker, executor->workers, executor->count + 1);
    executor->workers[executor->count++] = (struct worker){.file = connection, .served = true};
}

/* Executes a job in this process. */
static void execute_here(const struct duet__executor *executor, uint64_t job,
                         struct duet__ended *ended)
{
    FILE *result = open_memstream(&ended->result, &ended->length);
    if (result)
        executor->execute(job, result, executor->data);
    if (!result || fclose(result)) {
        g_clear_pointer(&ended->result, free);
        duet_fail(&ended->message, DUET_ENOMEM, "no memory is left for its result");
    }
}

void duet__executor_serve(int connection, pid_t parent, duet__execute_fn *execute, void *data,
                          duet__fresh_fn *fresh)
{
    struct duet__executor *executor = duet__executor_new(1, execute, data);
    const int file = fcntl(connection, F_DUPFD_CLOEXEC, 3); /* no standard stream */
    bool there;
    close(connection);
    there = begin_process(parent);
    signal(SIGPIPE, SIG_IGN);
    while (there) {
        struct duet__ended ended = {0};
        struct answer answer;
        uint64_t job;
        /* without means for a process the worker is gone, and the job is given to another */
        if (!duet__receive(file, &job, sizeof job) ||
            (!fresh && duet__executor_give(executor, job, true, NULL)))
            break;
        if (fresh)
            execute_here(executor, job, &ended);
        while (!fresh && !duet__executor_take(executor, 1, &ended))
            ;
        answer = (struct answer){!ended.result, fresh && !fresh(), ended.message, ended.length};
        there = duet__send(file, &answer, sizeof answer) &&
                (answer.died || duet__send(file, ended.result, ended.length)) && !answer.last;
        free(ended.result);
    }
    close(file);
    duet__executor_free(executor);
}

/* ------------------------------------------------------------------------------------------- */
/* All workers                                                                                  */

struct duet__executor *duet__executor_new(unsigned children, duet__execute_fn *execute, void *data)
{
    struct duet__executor *executor = g_new0(struct duet__executor, 1);
    struct sigaction chosen;
    *executor = (struct duet__executor){.count = children,
                                        .workers = g_new0(struct worker, children),
                                        .execute = execute,
                                        .data = data,
                                        .on_pipe = SIG_ERR};
    for (unsigned i = 0; i < children; i++)
        executor->workers[i].file = -1;
    /* a process that ignores SIGCHLD is not told how a child has ended */
    sigaction(SIGCHLD, NULL, &chosen);
    if (chosen.sa_handler == SIG_IGN)
        signal(SIGCHLD, SIG_DFL);
    return executor;
}

void duet__executor_free(struct duet__executor *executor)
{
    if (!executor)
        return;
    for (unsigned i = 0; i < executor->count; i++)
        end_worker(&executor->workers[i], true);
    if (executor->on_pipe != SIG_ERR)
        signal(SIGPIPE, executor->on_pipe);
    g_free(executor->workers);
    g_free(executor);
}

/* Returns true if the worker can take a job; one on another machine that is gone cannot. */
static bool is_idle(const struct worker *worker, bool here)
{
    return !worker->busy && (!worker->served || (worker->file >= 0 && (worker->pid || !here)));
}

unsigned duet__executor_idle(const struct duet__executor *executor, bool here)
{
    unsigned idle = 0;
    for (unsigned i = 0; i < executor->count; i++)
        idle += is_idle(&executor->workers[i], here);
    return idle;
}

unsigned duet__executor_busy(const struct duet__executor *executor)
{
    unsigned busy = 0;
    for (unsigned i = 0; i < executor->count; i++)
        busy += executor->workers[i].busy;
    return busy;
}

int duet__executor_give(struct duet__executor *executor, uint64_t job, bool here,
                        struct duet_message *message)
{
    struct worker *worker = executor->workers;
    while (!is_idle(worker, here))
        worker++;
    if (!worker->served)
        return start_child(executor, worker, job, message);
    worker->busy = true;
    worker->job = job;
    (void)duet__send(worker->file, &job, sizeof job);
    return 0;
}

unsigned duet__executor_end(struct duet__executor *executor, uint64_t first, uint64_t last)
{
    unsigned ended = 0;
    for (unsigned i = 0; i < executor->count; i++) {
        struct worker *worker = &executor->workers[i];
        if (!worker->pid || !worker->busy || worker->job < first || worker->job > last)
            continue;
        end_worker(worker, true);
        ended++;
    }
    return ended;
}

/* Returns true if a child has ended whose pipe is still open in a process that it has started. */
static bool has_ended(const struct worker *worker)
{
    siginfo_t info = {.si_pid = 0};
    return worker->pid && !worker->served &&
           !waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

/* Takes what has come of one worker. Returns true if its job has ended. */
static bool attend(struct worker *worker, struct duet__ended *ended)
{
    if (worker->served && !worker->busy) {
        end_worker(worker, false); /* the end of its pipe means that the process is gone */
        return false;
    }
    if (!worker->served && !read_child(worker))
        return false;
    if (worker->served)
        take_answer(worker, ended);
    else
        take_child(worker, ended);
    return true;
}

/* Waits at most so long, and notes which workers have something to say. Returns their number. */
static int look(struct duet__executor *executor, gint64 microseconds)
{
    struct pollfd *files = g_new0(struct pollfd, executor->count);
    int ready;
    for (unsigned i = 0; i < executor->count; i++)
        files[i] = (struct pollfd){.fd = executor->workers[i].file, .events = POLLIN};
    ready = poll(files, executor->count, (int)((microseconds + 999) / 1000));
    for (unsigned i = 0; i < executor->count; i++)
        executor->workers[i].ready = ready > 0 && files[i].revents;
    g_free(files);
    return ready;
}

bool duet__executor_take(struct duet__executor *executor, double seconds, struct duet__ended *ended)
{
    const gint64 end_us = g_get_monotonic_time() + (gint64)(seconds * 1e6);
    gint64 left_us;
    int ready;
    do {
        left_us = MAX(end_us - g_get_monotonic_time(), 0);
        ready = look(executor, left_us);
        for (unsigned i = 0; i < executor->count; i++)
            if (executor->workers[i].ready && attend(&executor->workers[i], ended))
                return true;
    } while (left_us > 0 || ready > 0);
    for (unsigned i = 0; i < executor->count; i++)
        if (has_ended(&executor->workers[i])) {
            take_child(&executor->workers[i], ended);
            return true;
        }
    return false;
}
