/* SPDX-License-Identifier: Apache-2.0 */
/* Complaints, exit status and option parsing: all subcommands need them. */
#define _GNU_SOURCE /* fopencookie, memmem */
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "runs/request.h"

int duet__complain(int status, const char *format, ...)
{
    g_autofree char *given = NULL;
    va_list args;
    char *text;
    va_start(args, format);
    given = g_strdup_vprintf(format, args);
    va_end(args);
    text = g_strdelimit(duet__own_options(given), "\r\n", ' ');
    /* options and names in files may hold what a terminal obeys */
    fprintf(stderr, "duet: %s\n", duet__json_clean(text));
    g_free(text);
    return status;
}

int duet__status_of(int error)
{
    switch (error) {
    case 0:
        return DUET__DONE;
    case DUET_EINVAL:
    case DUET_ENOWORKER:
    case DUET_ETOOBIG:
    case DUET_ENOMODEL:
    case DUET_ENOTFOUND:
    case DUET_EPARSE:
    case DUET_EABSENT:
        return DUET__MISUSED;
    default:
        return DUET__FAILED;
    }
}

int duet__finish_output(void)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout))
        return duet__complain(DUET__FAILED, "cannot write standard output: %s",
                              strerror(errno ? errno : EIO));
    return DUET__DONE;
}

unsigned duet__launched_as(unsigned *count)
{
    static const char *const names[][2] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, /* Open MPI's */
        {"PMI_RANK", "PMI_SIZE"},                         /* MPICH's, and those made of it */
        {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},         /* srun */
    };
    *count = 1;
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *rank = g_getenv(names[i][0]), *all = g_getenv(names[i][1]);
        if (!rank || !all)
            continue;
        *count = MAX(1, (unsigned)g_ascii_strtoull(all, NULL, 10));
        return *count > 1 ? (unsigned)g_ascii_strtoull(rank, NULL, 10) : 0;
    }
    return 0;
}

/* The last line of duet's own that a silent process did not print; owned. */
static char *last_line;

/*
 * Writes the standard error of every process but the first. Text of libraries, and of assert(), is
 * printed: it says why the process ends. A line of duet's own, which the first process prints as
 * well, is only kept as the last line.
 */
static ssize_t say_other(void *nothing, const char *text, size_t bytes)
{
    const bool own = bytes > 6 && !memcmp(text, "duet: ", 6);
    ssize_t said = (ssize_t)bytes;
    if (!own || memmem(text, bytes, " Assertion `", 12)) {
        said = write(STDERR_FILENO, text, bytes);
    } else {
        g_free(last_line);
        last_line = g_strchomp(g_strndup(text + 6, bytes - 6));
    }
    return said > 0 ? said : 0;
}

const char *duet__last_line(void)
{
    return last_line ? last_line : "it has ended";
}

int duet__command_run_as_ranks(const struct duet__command *command, int argc, char **argv)
{
    unsigned count;
    const bool silent = duet__launched_as(&count) > 0;
    FILE *others = NULL;
    int nothing = silent ? open("/dev/null", O_WRONLY) : -1, status;
    if (silent) {
        others = fopencookie(NULL, "w", (cookie_io_functions_t){.write = say_other});
        dup2(nothing, STDOUT_FILENO);
    }
    if (others && !setvbuf(others, NULL, _IOLBF, 0))
        stderr = others;
    status = duet__command_run(command, argc, argv);
    return silent ? DUET__DONE : status;
}

const struct duet__command *const duet__commands[] = {
#define COMMAND(name) &duet__##name##_command,
#include "cli/commands.h"
#undef COMMAND
    NULL,
};
