/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of programs: their environment, waiting for them, and the trace that they leave. */
#include "runs/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/trace.h"
#include "base/clock.h"
#include "runs/interval.h"
#include "runtime/open.h"
#include "runtime/settings.h"

enum {
    END_MOST = 1 << 12, /* bytes of what a program said last, where its last line is looked for */
    LINE_MOST = 300     /* bytes of that line that are quoted, the first ones */
};

/* ------------------------------------------------------------------------------------------- */
/* Programs as workloads                                                                        */

static int check(const struct duet__problem *problem, struct duet_message *message)
{
    (void)problem;
    (void)message;
    return DUET_OK;
}

static double no_flops(const struct duet__problem *problem)
{
    (void)problem;
    return 0;
}

/* Counts a run as one task: nobody knows how many it will have. */
static uint64_t one_task(const struct duet__problem *problem)
{
    (void)problem;
    return 1;
}

static bool is_program(const char *path)
{
    return g_file_test(path, G_FILE_TEST_IS_EXECUTABLE) && !g_file_test(path, G_FILE_TEST_IS_DIR);
}

int duet__program_take(struct duet__request *request, char *const *argv,
                       struct duet_message *message)
{
    static const char *const no_kernels[] = {NULL};
    g_autofree char *path = *argv ? g_find_program_in_path(*argv) : NULL;
    g_autofree char *here = *argv ? g_build_filename(".", *argv, NULL) : NULL;
    const size_t count = g_strv_length((char **)(uintptr_t)argv);
    struct duet__workload *workload;
    char **own;
    if (!*argv || !**argv)
        return duet_fail(message, DUET_EINVAL, "which program? -- PROGRAM ARGUMENTS...");
    if (!path && !strchr(*argv, G_DIR_SEPARATOR) && is_program(here))
        return duet_fail(
            message, DUET_ENOTFOUND,
            "cannot run %s: it is not in the search path (PATH): -- %s is the one here", *argv,
            here);
    if (!path)
        return duet_fail(message, DUET_ENOTFOUND, "cannot run %s: %s", *argv,
                         g_file_test(*argv, G_FILE_TEST_EXISTS)
                             ? "it is no program, or none that may be run"
                             : "there is no such program");
    workload = duet__request_keep(request, g_new0(struct duet__workload, 1));
    own = duet__request_keep(request, g_new0(char *, count + 1));
    for (size_t i = 0; i < count; i++)
        own[i] = duet__request_keep(request, g_strdup(argv[i]));
    *workload = (struct duet__workload){
        .name = duet__request_keep(request, duet__program_name(*argv)),
        .description = "a program",
        .kernels = no_kernels,
        .check = check,
        .flops = no_flops,
        .tasks = one_task,
        .program = own,
    };
    request->workload = workload;
    request->problem.precision = '-';
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Processes of programs                                                                        */

/* A run under way in a process. */
struct process {
    GPid pid;
    bool own_session;
    int trace[2];   /* a pipe: whatever opens a trace by our end of it writes into it */
    FILE *said;     /* its standard error */
    FILE *platform; /* file for it to load; NULL: it finds that itself */
    GString *text;  /* text of the trace so far */
    int status;     /* status from waitpid */
};

static void process_fini(struct process *process)
{
    for (int i = 0; i < 2; i++)
        if (process->trace[i] >= 0)
            close(process->trace[i]);
    if (process->said)
        fclose(process->said);
    if (process->platform)
        fclose(process->platform);
    g_string_free(process->text, TRUE);
}

/* Returns a name by which other processes can open a file of this one. */
static char *name_of(int descriptor)
{
    return g_strdup_printf("/proc/%ld/fd/%d", (long)getpid(), descriptor);
}

/* Returns the text of the request's platform in memory; free with free. NULL: it has none, or it
   has no such text and is found by its name. */
static char *platform_text(const struct duet__request *request)
{
    static char copied[] = "a platform in memory"; /* origins of figures are for people */
    struct duet__platform platform;
    if (!request->platform)
        return NULL;
    platform = *request->platform;
    if (!platform.origin)
        platform.origin = copied;
    return duet__platform_text(&platform);
}

/* Makes the pipe and the files. */
static int prepare(struct process *process, const struct duet__request *request,
                   struct duet_message *message)
{
    char *text = platform_text(request);
    bool good = pipe(process->trace) == 0;
    for (int i = 0; i < 2 && good; i++)
        good = fcntl(process->trace[i], F_SETFD, FD_CLOEXEC) == 0;
    process->said = good ? tmpfile() : NULL;
    good = process->said != NULL;
    if (good && text) {
        process->platform = tmpfile();
        good = process->platform && fputs(text, process->platform) >= 0 &&
               fflush(process->platform) == 0;
    }
    free(text);
    return good ? DUET_OK
                : duet_fail(message, DUET_EIO, "cannot prepare a process: %s", g_strerror(errno));
}

/* Returns the environment that tells the program what to be; free with g_strfreev. */
static char **environment_of(const struct process *process, const struct duet__request *request,
                             const char *policy, bool records)
{
    g_autofree char *trace = name_of(process->trace[0]);
    g_autofree char *platform = process->platform ? name_of(fileno(process->platform)) : NULL;
    struct duet_config config = request->config;
    config.policy = policy;
    config.seed = request->seed;
    config.trace = trace;
    config.figures = !records && duet__request_nodes(request) <= 1;
    config.context = request->workload->name;
    if (platform && config.simulate)
        config.simulate = platform;
    else if (platform)
        config.emulate = platform;
    return duet__config_environment(&config, g_get_environ());
}

/*
 * Sets up the child: it dies with its parent, and no signals are held back. In a session of its own
 * it has no terminal, which would stop it for ever when it asked something there.
 */
static void set_up(void *data)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    const struct process *process = data;
    sigset_t all;
    sigemptyset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    if (!process->own_session) /* an executor's child ignores these signals */
        for (size_t i = 0; i < G_N_ELEMENTS(ignored); i++)
            signal(ignored[i], SIG_DFL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (process->own_session)
        (void)setsid();
}

static int start(struct process *process, const struct duet__request *request, const char *policy,
                 bool records, struct duet_message *message)
{
    const int target = 3; /* the program's descriptor of the pipe */
    g_auto(GStrv) environment = environment_of(process, request, policy, records);
    g_autoptr(GError) error = NULL;
    if (g_spawn_async_with_pipes_and_fds(NULL, (const char *const *)request->workload->program,
                                         (const char *const *)environment,
                                         G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_SEARCH_PATH |
                                             G_SPAWN_STDOUT_TO_DEV_NULL,
                                         set_up, process, -1, -1, fileno(process->said),
                                         &process->trace[1], &target, 1, &process->pid, NULL, NULL,
                                         NULL, &error)) {
        close(process->trace[1]);
        process->trace[1] = -1;
        return DUET_OK;
    }
    return duet_fail(message, DUET_EIO, "cannot run %s: %s", request->workload->program[0],
                     error->message);
}

/* Reads the trace as far as it has come. Returns the bytes; 0: nothing now. */
static ssize_t take(struct process *process)
{
    char buffer[1 << 16];
    ssize_t got = read(process->trace[0], buffer, sizeof buffer);
    if (got > 0 && process->text->len <= (size_t)DUET__TRACE_MOST_MIB << 20)
        g_string_append_len(process->text, buffer, got);
    return MAX(got, 0);
}

/* Reads what the program writes until it has ended. Returns false if a signal came first. */
static bool attend(struct process *process, struct duet__monitor *monitor)
{
    enum { LOOK_MS = 100, CLOSED_US = 1000 };
    (void)fcntl(process->trace[0], F_SETFL, O_NONBLOCK);
    for (;;) {
        struct pollfd trace = {.fd = process->trace[0], .events = POLLIN};
        if (poll(&trace, 1, LOOK_MS) > 0 && take(process))
            continue;
        if (waitpid(process->pid, &process->status, WNOHANG) == process->pid)
            break;
        if (monitor && duet__monitor_signal(monitor)) {
            kill(-process->pid, SIGKILL);
            waitpid(process->pid, &process->status, 0);
            return false;
        }
        if (trace.revents & POLLHUP) /* the program ends, or has closed an unknown file */
            g_usleep(CLOSED_US);
    }
    while (take(process))
        ;
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* Results of programs                                                                          */

/* Returns ": " and the last line that the program wrote on standard error, with "…" where it is
 * cut; "": it wrote none. */
static char *last_line(FILE *said)
{
    char end[END_MOST + 1];
    const bool cut = fseek(said, -END_MOST, SEEK_END) == 0 && ftell(said) > 0;
    size_t length;
    char *line, *rest;
    if (!cut)
        rewind(said);
    length = fread(end, 1, END_MOST, said);
    end[length] = 0;
    g_strchomp(end);
    line = strrchr(end, '\n');
    line = line ? line + 1 : end;
    rest = line + MIN(strlen(line), LINE_MOST);
    while (*rest && rest > line && (*rest & 0xC0) == 0x80) /* within a character */
        rest--;
    length = (size_t)(rest - line);
    return !*line ? g_strdup("")
                  : g_strdup_printf(": %s%.*s%s", cut && line == end ? "…" : "", (int)length,
                                    duet__json_clean(line), *rest ? "…" : "");
}

/* Returns 0 if the program has done its work. */
static int judge(const struct process *process, struct duet_message *message)
{
    static const char head[] = "{\"displayTimeUnit\"";
    g_autofree char *line = last_line(process->said);
    const char *text = process->text->str;
    if (WIFSIGNALED(process->status))
        return duet_fail(message, DUET_ECANCELED, "the program was killed by signal %d (%s)%s",
                         WTERMSIG(process->status), strsignal(WTERMSIG(process->status)), line);
    if (WEXITSTATUS(process->status))
        return duet_fail(message, DUET_ETASK, "the program ended with status %d%s",
                         WEXITSTATUS(process->status), line);
    if (!process->text->len)
        return duet_fail(message, DUET_ETASK,
                         "the program has left no trace: it has to use libduet, take its "
                         "configuration from the environment (duet_config_environment) and close "
                         "its runtime (duet_close)%s",
                         line);
    if (process->text->len > (size_t)DUET__TRACE_MOST_MIB << 20)
        return duet_fail(message, DUET_ETASK,
                         "the program's trace is larger than %d MiB, the most that is read: give "
                         "it less to do",
                         DUET__TRACE_MOST_MIB);
    if (strstr(text + 1, head))
        return duet_fail(message, DUET_ETASK,
                         "the program has opened several runtimes, and which one is meant is not "
                         "known: it must open one");
    return DUET_OK;
}

int duet__program_run(const struct duet__request *request, const char *policy,
                      struct duet__monitor *monitor, bool records, struct duet__run *run,
                      struct duet_message *message)
{
    struct process process = {.trace = {-1, -1},
                              .own_session = monitor != NULL,
                              .text = g_string_new(NULL)};
    double start_s = duet__clock_s();
    struct duet__trace trace = {0};
    int error = prepare(&process, request, message);
    if (!error)
        error = start(&process, request, policy, records, message);
    if (!error && !attend(&process, monitor))
        error = DUET_ECANCELED;
    else if (!error)
        error = judge(&process, message);
    if (!error)
        error =
            duet__read_figures(process.text->str, process.text->len, "its trace", &trace, message);
    if (!error && run) {
        *run = trace.run;
        run->seed = request->seed;
        duet__bases_find(request, trace.spent, trace.spent_count, run);
        run->wall_s = duet__clock_s() - start_s;
        trace.run = (struct duet__run){0};
    }
    duet__trace_fini(&trace);
    process_fini(&process);
    return error;
}
