/* SPDX-License-Identifier: Apache-2.0 */
/* From options with several values to a table, and from a cell of it to what is to be run. */
#include "cli/tables.h"

#include <string.h>

/* True if an option of one value is given again later: the last one counts. */
static bool again(const struct duet__job *job, guint at)
{
    const struct duet__option *option = g_array_index(job->given, struct duet__given, at).option;
    bool later = false;

    for (guint i = at + 1; i < job->given->len && !duet__option_named(option); i++)
        later |= g_array_index(job->given, struct duet__given, i).option == option;
    return later;
}

/* Returns true if the product has a factor of this name. */
static bool has_factor(const struct duet__product *product, const char *name)
{
    for (guint f = 0; f < product->factors->len; f++)
        if (!strcmp(((const struct duet__factor *)product->factors->pdata[f])->name, name))
            return true;
    return false;
}

/*
 * Makes a factor of a list in braces, "{256,512}" or "{1..8}", in one of the program's arguments.
 * The factor has the name of the option before the list, "block" in "--block={1..8}" and "--block
 * {1..8}", or else the number of the argument.
 */
static int take_list(struct duet__product *product, char **words, guint at,
                     struct duet_message *message)
{
    char *word = words[at], *own = word + strspn(word, "-");
    const char *before = words[at - 1] + strspn(words[at - 1], "-");
    g_autoptr(GRegex) list =
        g_regex_new("[{]([^{}= \"]*(?:,|[.][.])[^{}= \"]*)[}]", 0, G_REGEX_MATCH_DEFAULT, NULL);
    g_autoptr(GMatchInfo) found = NULL;
    g_autofree char *name = NULL, *values = NULL, *factor = NULL, *text = NULL;
    int start = 0, end = 0;

    if (!g_regex_match(list, word, 0, &found))
        return 0;
    (void)g_match_info_fetch_pos(found, 0, &start, &end);
    if (own + strcspn(own, "=") < word + start)
        name = g_strndup(own, strcspn(own, "="));
    else if (at > 1 && !start && before != words[at - 1])
        name = g_strndup(before, strcspn(before, "={"));
    factor = g_strconcat("arg ", name, NULL);
    if (!name || !*name || has_factor(product, factor)) {
        g_free(name);
        name = g_strdup_printf("%u", at);
        g_free(factor);
        factor = g_strconcat("arg ", name, NULL);
    }
    if (g_regex_match(list, word + end, 0, NULL) || has_factor(product, factor))
        return duet_fail(message, DUET_EINVAL,
                         "argument %s has a list without a name of its own: write {A} in its "
                         "place, and --arg A=LIST",
                         word);
    values = g_match_info_fetch(found, 1);
    text = g_strconcat(name, "=", values, NULL);
    words[at] = g_strdup_printf("%.*s{%s}%s", start, word, name, word + end);
    g_free(word);
    return duet__study_add(product, duet__option_find("arg", DUET__FACTOR), text, message);
}

int duet__tables_read(struct duet__tables *tables, int argc, char *const *argv,
                      struct duet_message *message)
{
    struct duet__job *job = tables->job;
    struct duet__study *study = tables->study;
    struct duet__product *product = study->products->pdata[0];
    char **program = duet__request_keep(&job->request, g_strdupv(job->program));
    const unsigned factors = duet__job_factors(job);
    int error = 0;

    for (int i = 1; i < argc && !error; i++)
        error = duet__study_add(product, NULL, argv[i], message);
    for (guint i = 0; i < job->given->len && !error; i++) {
        const struct duet__given *given = &g_array_index(job->given, struct duet__given, i);

        if (given->option->where & factors && !again(job, i))
            error = duet__study_add(product, given->option, given->text, message);
    }
    const bool lists = program && program[0] && duet__option_find("arg", job->command->where);
    for (guint i = 1; lists && program[i] && !error; i++)
        error = take_list(product, program, i, message);
    for (char **word = program; word && *word; word++)
        duet__request_keep(&job->request, *word);
    job->program = program;
    if (!error && job->values.cases)
        error = duet__study_read(study, job->values.cases, job->command->where | factors, message);
    study->program = job->program;
    return error ? error : duet__study_number(study, message);
}

int duet__tables_cell(const struct duet__tables *tables, uint64_t cell,
                      const struct duet__request *base, struct duet__request *request,
                      struct duet_message *message)
{
    struct duet__job *job = tables->job;
    const struct duet__product *product = duet__study_product(tables->study, cell);
    struct duet__values values = job->values;
    const char *workload = NULL;
    int error = 0;

    duet__request_copy(request, base);
    for (guint f = 0; f < product->factors->len && !error; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        const char *value = duet__study_value(product, cell, f);

        if (factor->option)
            error = duet__option_set(factor->option, &values, factor->name, value, message);
        else
            workload = value;
    }
    request->config = values.config;
    request->config.policy = NULL;
    request->config.strict = base->config.strict;
    if (!error)
        error = duet__request_set_policies(request, values.config.policy, message);
    if (!error && !job->program)
        error = duet__job_find_workload(job, workload, &request->workload, message);
    if (!error && request->workload)
        error = duet__job_take_problem(&values, request, message);
    if (!error)
        error = duet__request_set_priorities(request, values.config.priorities, message);
    return error;
}
