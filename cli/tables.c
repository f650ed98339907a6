/* SPDX-License-Identifier: Apache-2.0 */
/* From options with several values to a table, and from a cell of it to what is to be run. */
#include "cli/tables.h"

/* Whether an option is given again later, which counts then, as of options of one value. */
static bool again(const struct duet__job *job, guint at)
{
    const struct duet__option *option = g_array_index(job->given, struct duet__given, at).option;
    bool later = false;

    for (guint i = at + 1; i < job->given->len && !duet__option_named(option); i++)
        later |= g_array_index(job->given, struct duet__given, i).option == option;
    return later;
}

int duet__tables_read(struct duet__tables *tables, int argc, char *const *argv,
                      struct duet_message *message)
{
    const struct duet__job *job = tables->job;
    struct duet__study *study = tables->study;
    struct duet__product *product = study->products->pdata[0];
    const unsigned factors = duet__job_factors(job);
    int error = 0;

    for (int i = 1; i < argc && !error; i++)
        error = duet__study_add(product, NULL, argv[i], message);
    for (guint i = 0; i < job->given->len && !error; i++) {
        const struct duet__given *given = &g_array_index(job->given, struct duet__given, i);

        if (given->option->where & factors && !again(job, i))
            error = duet__study_add(product, given->option, given->text, message);
    }
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
