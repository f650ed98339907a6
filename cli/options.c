/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the command: each sets the value of its setting as it is read. */
#include "cli/job.h"

#include <string.h>

#include "cli/command.h"

bool duet__given(const struct duet__job *job, const char *name)
{
    for (guint i = 0; i < job->given->len; i++)
        if (strcmp(job->given->pdata[i], name) == 0)
            return true;
    return false;
}

int duet__exclude(const struct duet__job *job, const char *first, const char *second,
                  struct duet_message *message)
{
    if (!duet__given(job, first) || !duet__given(job, second))
        return 0;
    return duet_fail(message, DUET_EINVAL, "--%s and --%s exclude each other", first, second);
}

/* The setting that a subcommand has by the name of an option, "--jobs" or "-j". */
static const struct duet__option *find(unsigned where, const char *option)
{
    const struct duet__option *setting;

    for (size_t i = 0; (setting = duet__option_at(i)); i++)
        if (setting->where & where && (option[1] == '-' ? strcmp(option + 2, setting->name) == 0
                                                        : option[1] == setting->letter))
            break;
    return setting;
}

/* The domain of errors about a value, whose message says it all. */
static GQuark value_error(void)
{
    return g_quark_from_static_string("duet-option");
}

/* What GOption calls for each option. */
static gboolean take(const char *option, const char *text, gpointer data, GError **error)
{
    struct duet__job *job = data;
    const struct duet__option *setting = find(job->command->where, option);
    char *label = g_strconcat("--", setting->name, NULL), *own = g_strdup(text ? text : "");
    struct duet_message message = {""};

    g_ptr_array_add(job->given, label + strlen("--"));
    g_ptr_array_add(job->values.kept, label);
    g_ptr_array_add(job->values.kept, own);
    if (!duet__option_set(setting, &job->values, label, own, &message))
        return TRUE;
    g_set_error_literal(error, value_error(), 0, message.text);
    return FALSE;
}

static int flags_of(const struct duet__option *setting)
{
    if (!setting->value)
        return G_OPTION_FLAG_NO_ARG;
    return g_str_has_prefix(setting->value, "F.") ? G_OPTION_FLAG_FILENAME : G_OPTION_FLAG_NONE;
}

/* The options of the command, with the job for `take`. */
static GOptionGroup *make_group(struct duet__job *job)
{
    GOptionGroup *group = g_option_group_new(NULL, NULL, NULL, job, NULL);
    const struct duet__option *setting;

    for (size_t i = 0; (setting = duet__option_at(i)); i++) {
        const GOptionEntry entries[] = {{.long_name = setting->name,
                                         .short_name = setting->letter,
                                         .flags = flags_of(setting),
                                         .arg = G_OPTION_ARG_CALLBACK,
                                         .arg_data = (gpointer)take,
                                         .description = setting->help,
                                         .arg_description = setting->value},
                                        {0}};

        if (setting->where & job->command->where)
            g_option_group_add_entries(group, entries);
    }
    return group;
}

bool duet__job_options(struct duet__job *job, int *argc, char ***argv)
{
    const struct duet__command *command = job->command;
    GOptionContext *context = g_option_context_new(command->arguments);
    g_autofree char *program = g_strdup_printf("duet %s", command->name);
    g_autoptr(GError) error = NULL;
    const unsigned with_programs = DUET__IN_SIMULATE | DUET__IN_RUN | DUET__IN_CALIBRATE |
                                   DUET__IN_VALIDATE | DUET__IN_RECORD | DUET__IN_EXPORT;
    bool good;

    for (int i = 1; command->where & with_programs && i < *argc && !job->program; i++)
        if (strcmp((*argv)[i], "--") == 0) {
            job->program = *argv + i + 1;
            *argc = i;
        }
    g_set_prgname(program);
    g_option_context_set_summary(context, command->summary);
    g_option_context_set_description(context, command->notes);
    g_option_context_set_main_group(context, make_group(job));
    good = g_option_context_parse(context, argc, argv, &error);
    g_option_context_free(context);
    if (!good && error->domain == value_error()) {
        duet__complain(DUET__MISUSED, "%s", error->message);
    } else if (!good) {
        error->message[0] = g_ascii_tolower(error->message[0]);
        duet__complain(DUET__MISUSED, "%s (%s --help lists the options)", error->message, program);
    }
    return good;
}
