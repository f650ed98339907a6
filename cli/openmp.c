/* SPDX-License-Identifier: Apache-2.0 */
/* `duet openmp`: executes an OpenMP program on duet. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/job.h"
#include "runtime/modules/module.h"

extern char **environ; /* POSIX declares it in no header */

/* Returns the environment's variable that an option sets; the caller owns it. */
static char *variable_of(const struct duet__option *option)
{
    if (!strcmp(option->name, "threads"))
        return g_strdup("OMP_NUM_THREADS");
    g_autofree char *name = g_ascii_strup(option->name, -1);
    return g_strconcat("DUET_", g_strdelimit(name, "-", '_'), NULL);
}

static int work(struct duet__job *job, int argc, char **argv)
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
    .work = work,
};
