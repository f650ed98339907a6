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

bool duet__parse_options(const char *name, const char *arguments, const char *summary,
                         const char *notes, const GOptionEntry *entries, void *data, int *argc,
                         char ***argv)
{
    GOptionGroup *group = g_option_group_new(NULL, NULL, NULL, data, NULL);
    GOptionContext *context = g_option_context_new(arguments);
    char *program = g_strdup_printf("duet %s", name);
    GError *error = NULL;
    bool good;

    g_set_prgname(program);
    g_option_context_set_summary(context, summary);
    g_option_context_set_description(context, notes);
    g_option_group_add_entries(group, entries);
    g_option_context_set_main_group(context, group);
    good = g_option_context_parse(context, argc, argv, &error);
    if (!good && error->domain == DUET__OPTION_ERROR) {
        duet__complain(DUET__MISUSED, "%s", error->message);
    } else if (!good) {
        error->message[0] = g_ascii_tolower(error->message[0]);
        duet__complain(DUET__MISUSED, "%s (duet %s --help lists the options)", error->message,
                       name);
    }
    g_clear_error(&error);
    g_option_context_free(context);
    g_free(program);
    return good;
}

int duet__finish_output(void)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout))
        return duet__complain(DUET__FAILED, "cannot write standard output: %s",
                              strerror(errno ? errno : EIO));
    return DUET__DONE;
}
