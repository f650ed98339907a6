/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the command: each sets the value of its setting as it is read. */
#include "cli/job.h"

#include <string.h>

bool duet__given(const struct duet__job *job, const char *name)
{
    for (guint i = 0; i < job->given->len; i++)
        if (strcmp(g_array_index(job->given, struct duet__given, i).option->name, name) == 0)
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

/* Returns the setting that a subcommand has by the name of an option, "--jobs" or "-j". */
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

int duet__job_set(struct duet__job *job, const struct duet__option *option, const char *text,
                  struct duet_message *message)
{
    char *label = g_strconcat("--", option->name, NULL), *own = g_strdup(text ? text : "");
    const struct duet__given given = {option, own};
    g_array_append_val(job->given, given);
    g_ptr_array_add(job->values.kept, label);
    g_ptr_array_add(job->values.kept, own);
    return duet__option_set(option, &job->values, label, own, message);
}

unsigned duet__job_factors(const struct duet__job *job)
{
    const unsigned of_runs = DUET__IN_SIMULATE | DUET__IN_RUN | DUET__IN_STUDY | DUET__IN_TUNE;
    return job->command->where & of_runs             ? DUET__FACTOR
           : job->command->where & DUET__IN_VALIDATE ? DUET__CASE
                                                     : 0;
}

/* Notes an option as given if a table can vary it; *several is true if it was noted. */
static int note_several(struct duet__job *job, const struct duet__option *option, const char *text,
                        bool *several, struct duet_message *message)
{
    const unsigned of_tables = DUET__IN_STUDY | DUET__IN_VALIDATE | DUET__IN_TUNE;
    g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *label = g_strconcat("--", option->name, NULL);
    struct duet__given given = {option, g_strdup(text ? text : "")};
    int error = 0;
    g_ptr_array_add(job->values.kept, (char *)(uintptr_t)given.text);
    *several = option->where & duet__job_factors(job) && strcmp(given.text, "help") != 0;
    if (*several && !(job->command->where & of_tables)) {
        if (strcmp(option->name, "policy") != 0) /* simulate and run have always had several */
            error = duet__option_values(option, label, given.text, values, message);
        *several = values->len > 1;
    }
    if (*several)
        g_array_append_val(job->given, given);
    job->several |= *several;
    return error;
}

/* Takes one option: GOption calls this for each. */
static gboolean take(const char *option, const char *text, gpointer data, GError **error)
{
    struct duet__job *job = data;
    const struct duet__option *setting = find(job->command->where, option);
    struct duet_message message = {""};
    static const char *const once[] = {"policy", "platform", NULL}; /* of others the last counts */
    const bool list = setting->where & duet__job_factors(job);
    bool several = false;
    int wrong = 0;
    if (g_strv_contains(once, setting->name) && duet__given(job, setting->name))
        wrong = duet_fail(&message, DUET_EINVAL, "--%s is given twice%s", setting->name,
                          list ? ": give several as a list, A,B" : "");
    if (!wrong)
        wrong = note_several(job, setting, text, &several, &message);
    if (!wrong && !several)
        wrong = duet__job_set(job, setting, text, &message);
    if (wrong)
        g_set_error_literal(error, value_error(), 0, message.text);
    return !wrong;
}

/*
 * Takes flags with values, "--set-arch=0,1" or "--verify last", out of the command line: GOption
 * would take the word behind a flag without a value for its value.
 */
static bool take_flags(struct duet__job *job, int *argc, char **argv, GError **error)
{
    int left = 1;
    bool good = true;
    for (int i = 1; i < *argc; i++) {
        const char *equals = g_str_has_prefix(argv[i], "--") ? strchr(argv[i], '=') : NULL;
        g_autofree char *name =
            equals ? g_strndup(argv[i], (size_t)(equals - argv[i])) : g_strdup(argv[i]);
        const struct duet__option *option =
            g_str_has_prefix(name, "--") ? find(job->command->where, name) : NULL;
        bool word = option && !equals && i + 1 < *argc && duet__option_takes(option, argv[i + 1]);
        if (good && option && !option->value && (equals || word))
            good = take(name, word ? argv[++i] : equals + 1, job, error);
        else
            argv[left++] = argv[i];
    }
    *argc = left;
    return good;
}

static int flags_of(const struct duet__option *setting)
{
    if (!setting->value)
        return G_OPTION_FLAG_NO_ARG;
    return g_str_has_prefix(setting->value, "F.") ? G_OPTION_FLAG_FILENAME : G_OPTION_FLAG_NONE;
}

/* Returns the options of the command as a group, with the job for `take`. */
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
                                   DUET__IN_VALIDATE | DUET__IN_RECORD | DUET__IN_EXPORT |
                                   DUET__IN_STUDY | DUET__IN_TUNE | DUET__IN_OPENMP;
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
    good =
        take_flags(job, argc, *argv, &error) && g_option_context_parse(context, argc, argv, &error);
    g_option_context_free(context);
    if (!good && error->domain == value_error()) {
        duet__complain(DUET__MISUSED, "%s", error->message);
    } else if (!good) {
        error->message[0] = g_ascii_tolower(error->message[0]);
        duet__complain(DUET__MISUSED, "%s (%s --help lists the options)", error->message, program);
    }
    return good;
}
