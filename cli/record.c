/* SPDX-License-Identifier: Apache-2.0 */
/* `duet record` and `duet openmp`: run an OpenMP program, whose tasks become a graph, or on duet.
 */
#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/job.h"
#include "runs/monitor.h"
#include "runtime/modules/module.h"

char **duet__preload(char **environment, const char *library)
{
    const char *before = g_environ_getenv(environment, "LD_PRELOAD");
    g_autofree char *all = g_strconcat(library, before && *before ? ":" : NULL, before, NULL);
    return g_environ_setenv(environment, "LD_PRELOAD", all, true);
}

static char **make_environment(const struct duet__openmp *run, const char *library)
{
    char **list = duet__preload(g_get_environ(), run->on_duet ? library : "libomp.so.5");
    g_autofree char *path = g_canonicalize_filename(run->out, NULL);
    g_autofree char *threads = g_strdup_printf("%" G_GUINT64_FORMAT, run->threads);
    g_autofree char *bytes = g_strdup_printf("%" G_GUINT64_FORMAT, run->bytes);
    g_autofree char *loops = g_strdup_printf("%" G_GUINT64_FORMAT, run->loops);
    if (run->threads)
        list = g_environ_setenv(list, "OMP_NUM_THREADS", threads, true);
    if (run->on_duet) {
        list = g_environ_setenv(list, "DUET_TRACE", path, true);
        return g_environ_setenv(list, "DUET_FIGURES", "1", true);
    }
    /* records programs compiled by gcc, too: their runtime has no tools; those of clang have it
       anyway */
    list = g_environ_setenv(list, "OMP_TOOL", "enabled", true);
    list = g_environ_setenv(list, "OMP_TOOL_LIBRARIES", library, true);
    list = g_environ_setenv(list, "DUET_OMPT", path, true);
    list = g_environ_setenv(list, "DUET_OMPT_BYTES", bytes, true);
    list = g_environ_setenv(list, "DUET_OMPT_LOOPS", loops, true);
    list = g_environ_setenv(list, "DUET_OMPT_STATIC", run->static_loops ? "1" : "", true);
    return g_environ_setenv(list, "DUET_OMPT_ONLY", run->only_makespan ? "makespan" : "", true);
}

/* Unblocks, in the child, the signals that are held back here: they are its own. */
static void admit(void *data)
{
    sigset_t none;
    (void)data;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs the program until it ends. Returns its status as waitpid has it; -1 with an error if it
   cannot be run. */
static int spawn(const struct duet__openmp *run, char **environment, int *number, GError **error)
{
    const double look_s = 0.1;
    GSpawnFlags flags =
        G_SPAWN_SEARCH_PATH | G_SPAWN_CHILD_INHERITS_STDIN | G_SPAWN_DO_NOT_REAP_CHILD;
    struct duet__signals signals;
    int status = -1;
    GPid child;
    if (run->quiet)
        flags |= G_SPAWN_STDOUT_TO_DEV_NULL;
    *number = 0;
    duet__signals_hold(&signals, true);
    if (g_spawn_async(NULL, run->program, environment, flags, admit, NULL, &child, error)) {
        while (waitpid(child, &status, WNOHANG) == 0) {
            int came = duet__signals_take(&signals, look_s);
            if (came && came != SIGINT)
                kill(child, came);
            *number = came ? came : *number;
        }
    }
    duet__signals_release(&signals);
    return status;
}

int duet__openmp_run(const struct duet__openmp *run, int *number)
{
    g_autofree char *library = duet__module_path(run->on_duet ? "gomp" : "openmp");
    g_auto(GStrv) environment = NULL;
    g_autoptr(GError) error = NULL;
    GStatBuf before = {0}, after = {0};
    int status;
    if (!library && run->on_duet)
        return duet__complain(DUET__MISUSED, "libduet-gomp.so is not where this duet is installed");
    if (!library)
        return duet__complain(DUET__MISUSED, "this duet was built without its recorder of OpenMP "
                                             "programs, which needs libomp-dev");
    if (run->static_loops && !run->loops)
        return duet__complain(DUET__MISUSED, "--static-loops goes with --loops");
    environment = make_environment(run, library);
    if (g_stat(run->out, &before) != 0)
        before.st_ino = 0;
    status = spawn(run, environment, number, &error);
    if (error)
        return duet__complain(DUET__MISUSED, "%s", error->message);
    if (WIFSIGNALED(status))
        return duet__complain(DUET__SIGNALLED + WTERMSIG(status), "%s was ended by signal %d",
                              run->program[0], WTERMSIG(status));
    if (g_stat(run->out, &after) != 0 || after.st_ino == before.st_ino)
        return duet__complain(WEXITSTATUS(status) ? WEXITSTATUS(status) : DUET__FAILED,
                              "%s has left no graph; if nothing above says why, it has run no "
                              "parallel region, ended in one, or has not LLVM's or gcc's shared "
                              "library of OpenMP",
                              run->program[0]);
    return WEXITSTATUS(status);
}

static int work(struct duet__job *job, int argc, char **argv)
{
    char **program = job->program ? job->program : argv + 1;
    g_autofree char *base = g_path_get_basename(program[0] ? program[0] : "");
    g_autofree char *name = g_strconcat(base, ".json", NULL);
    const struct duet__openmp run = {.program = program,
                                     .out = job->values.out ? job->values.out : name,
                                     .threads = job->values.threads,
                                     .bytes = job->values.bytes,
                                     .loops = job->values.loops,
                                     .static_loops = job->values.static_loops};
    g_autofree char *folder = g_path_get_dirname(run.out);
    int refused, number;
    if (!program[0])
        return duet__complain(DUET__MISUSED, "which program? duet record -- ./program");
    /* a bad name is refused before the program has run for hours */
    refused = g_file_test(run.out, G_FILE_TEST_IS_DIR) ? EISDIR
              : g_access(folder, W_OK) != 0            ? errno
                                                       : 0;
    if (refused)
        return duet__complain(DUET__MISUSED, "cannot write %s: %s", run.out, g_strerror(refused));
    return duet__openmp_run(&run, &number);
}

const struct duet__command duet__record_command = {
    .name = "record",
    .description = "runs an OpenMP program, whose tasks become a graph",
    .where = DUET__IN_RECORD,
    .arguments = "-- PROGRAM [ARGUMENT...]",
    .summary = "Runs a program with OpenMP's tasks, as it is, and writes them as a task graph: the "
               "tasks,\n"
               "what comes before what, and how long each took. Exit status: the program's.",
    .notes = "Programs of clang and of gcc are run with LLVM's OpenMP runtime.\n\n"
             "Example:\n"
             "  duet record --threads 1 --out graph.json -- ./program\n"
             "  duet simulate graph.json --platform idgraf --cpus 12 --gpus 0 --policy ws",
    .work = work,
};

/* ------------------------------------------------------------------------------------------- */
/* The command openmp: executes an OpenMP program on duet */

extern char **environ; /* POSIX declares it in no header */

/* Returns the environment's variable that an option sets; the caller owns it. */
static char *variable_of(const struct duet__option *option)
{
    if (!strcmp(option->name, "threads"))
        return g_strdup("OMP_NUM_THREADS");
    g_autofree char *name = g_ascii_strup(option->name, -1);
    return g_strconcat("DUET_", g_strdelimit(name, "-", '_'), NULL);
}

static int execute(struct duet__job *job, int argc, char **argv)
{
    char **program = job->program ? job->program : argv + 1;
    g_autofree char *library = duet__module_path("gomp");
    g_auto(GStrv) environment = g_get_environ();
    if (!program[0])
        return duet__complain(DUET__MISUSED, "which program? duet openmp -- ./program");
    if (!library)
        return duet__complain(DUET__FAILED, "libduet-gomp.so is not where this duet is installed");
    environment = duet__preload(environment, library);
    for (guint i = 0; i < job->given->len; i++) {
        const struct duet__given *given = &g_array_index(job->given, struct duet__given, i);
        g_autofree char *name = variable_of(given->option);
        environment =
            g_environ_setenv(environment, name, given->option->value ? given->text : "1", true);
    }
    environ = g_steal_pointer(&environment);
    execvp(program[0], program);
    return duet__complain(DUET__MISUSED, "cannot run %s: %s", program[0], g_strerror(errno));
}

const struct duet__command duet__openmp_command = {
    .name = "openmp",
    .description = "executes an OpenMP program on duet",
    .where = DUET__IN_OPENMP,
    .arguments = "-- PROGRAM [ARGUMENT...]",
    .summary =
        "Executes a program that gcc or clang has compiled with -fopenmp, as it is, on duet in "
        "place\n"
        "of their OpenMP libraries. Exit status: the program's.",
    .notes = "Example:\n"
             "  duet openmp --threads 4 --policy heft --trace trace.json -- ./program\n"
             "  duet explain trace.json",
    .work = execute,
};
