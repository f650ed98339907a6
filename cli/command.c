/* SPDX-License-Identifier: Apache-2.0 */
/* What all subcommands need: complaints, exit status, option parsing. */
#include "cli/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int duet__complain(int status, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_strdelimit(text, "\r\n", ' ');
    fprintf(stderr, "duet: %s\n", text);
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

const struct duet__command *const duet__commands[] = {
    &duet__simulate_command,  &duet__run_command,
    &duet__study_command,     &duet__tune_command,
    &duet__calibrate_command, &duet__validate_command,
    &duet__compare_command,   &duet__explain_command,
    &duet__info_command,      &duet__list_command,
    &duet__export_command,    &duet__record_command,
    &duet__platform_command,  NULL,
};
