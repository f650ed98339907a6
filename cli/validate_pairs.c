/* SPDX-License-Identifier: Apache-2.0 */
/* From specs to cases that can be measured and predicted. */
#include <string.h>

#include "cli/command.h"
#include "cli/validate.h"

void duet__pair_fini(struct duet__case_pair *pair)
{
    duet__side_fini(&pair->measured);
    duet__side_fini(&pair->predicted);
    duet__simulation_fini(&pair->simulation);
    duet__trial_fini(&pair->trial);
    if (pair->probes)
        g_array_free(pair->probes, TRUE);
    g_free(pair->settings);
    g_free(pair->failure);
    *pair = (struct duet__case_pair){0};
}

void duet__pair_fail(struct duet__case_pair *pair, const char *doing, int error,
                     const struct duet_message *message)
{
    bool hint = strstr(message->text, "allow extrapolation") != NULL;

    if (pair->failure)
        return;
    pair->error = error;
    pair->failure = g_strdup_printf("could not be %s: %s%s", doing, message->text,
                                    hint ? " (--extrapolate)" : "");
    g_strdelimit(pair->failure, "\r\n", ' ');
}

/* What of the texts is one case's. Everything is borrowed. */
static struct duet__texts texts_of(const struct duet__texts *common, const struct duet__spec *spec,
                                   const size_t *at)
{
    struct duet__texts texts = {
        .emulate = common->emulate,
        .scale = common->scale,
        .precision = spec->precision,
        /* behind the last element of a list is the NULL of what is not given */
        .n = spec->n[at[0]],
        .tile = spec->tile[at[1]],
        .policy = spec->policies[at[2]],
        .cpus = spec->cpus[at[3]],
        .gpus = spec->gpus[at[4]],
        .params = spec->params,
        .set_arch = spec->set_arch,
        .quiet = TRUE,
    };

    return texts;
}

static int read_problem(struct duet__trial *trial, const struct duet__texts *texts,
                        struct duet_message *message)
{
    const struct duet_workload *workload = trial->job.workload;
    bool real = !trial->paced && workload->real_n;

    if (!trial->paced && !workload->generate)
        return duet_fail(message, DUET_EINVAL,
                         "%s has no kernels that compute%s, so that it can only be measured on an "
                         "emulated platform (--emulate)",
                         workload->name, workload->kernels[0] ? " in this duet" : "");
    return duet__job_read_problem(&trial->job, texts, real ? workload->real_n : workload->default_n,
                                  real ? workload->real_tile : workload->default_tile, message);
}

/* The job of the measured side. *refused: its problem is to blame. */
static int make_trial(const struct duet__validate *validate, struct duet__case_pair *pair,
                      const struct duet__spec *spec, const struct duet__texts *texts, bool *refused,
                      struct duet_message *message)
{
    struct duet__trial *trial = &pair->trial;
    char command[] = "validate", *arguments[] = {command, spec->workload, NULL};
    int error;

    duet__job_init(&trial->job, "validate", 1, arguments);
    trial->job.seed = validate->job.seed;
    trial->warmups = validate->warmups;
    trial->paced = validate->paced;
    error = duet__job_read_run(&trial->job, texts, validate->reps, message);
    if (!error)
        error = duet__job_read_emulation(&trial->job, texts, message);
    if (!error)
        error = duet__job_read_workload(&trial->job, 2, arguments, message);
    if (!error)
        error = duet__job_read_policies(&trial->job, texts, message);
    if (!error)
        error = duet__job_read_machine(&trial->job, texts, message);
    if (error)
        return error;
    trial->job.config.context = trial->job.workload->name;
    trial->job.config.extrapolate = validate->paced && validate->job.config.extrapolate;
    error = read_problem(trial, texts, message);
    *refused = error != 0;
    return error;
}

/* The machine of the predicted side, which says how many CPUs and GPUs both have. */
static int build_machine(const struct duet__validate *validate, struct duet__case_pair *pair,
                         struct duet_message *message)
{
    struct duet_config *real = &pair->trial.job.config;
    struct duet_config *simulated = &pair->simulation.job.config;
    struct duet_machine *machine = &pair->simulation.job.machine;
    const struct duet_platform_options options = {.cpus = real->cpus, .gpus = real->gpus};
    int error = duet_platform_build(validate->platform, &options, machine, message);

    pair->cpus = (unsigned)MAX(real->cpus, 0);
    pair->gpus = (unsigned)MAX(real->gpus, 0);
    if (error)
        return error;
    pair->cpus = pair->gpus = 0;
    for (unsigned i = 0; i < machine->worker_count; i++)
        *(machine->workers[i].node == DUET_HOST ? &pair->cpus : &pair->gpus) += 1;
    real->cpus = simulated->cpus = (int)pair->cpus;
    real->gpus = simulated->gpus = (int)pair->gpus;
    return 0;
}

int duet__pair_rebuild(const struct duet__validate *validate, struct duet__case_pair *pair,
                       struct duet_message *message)
{
    duet_machine_fini(&pair->simulation.job.machine);
    pair->simulation.job.config.simulate = validate->platform_name;
    return build_machine(validate, pair, message);
}

/* The job of the predicted side: the same problem, somewhere else. */
static void make_simulation(const struct duet__validate *validate, struct duet__case_pair *pair)
{
    const struct duet__job *real = &pair->trial.job;
    struct duet__job *job = &pair->simulation.job;

    duet__job_init(job, "validate", 0, NULL);
    job->workload = real->workload;
    job->problem = real->problem;
    job->policies = g_strdupv(real->policies);
    job->policy_count = real->policy_count;
    job->reps = validate->sim_reps;
    job->seed = validate->job.seed;
    job->quiet = true;
    job->config = real->config;
    job->config.emulate = NULL;
    job->config.scale = 0;
    job->config.simulate = validate->platform_name;
    job->config.noise = validate->noise;
    job->config.extrapolate = validate->job.config.extrapolate;
    job->config.without = validate->job.config.without;
    job->platform_name = g_strdup(validate->platform->name);
    pair->simulation.jobs = validate->jobs;
}

/* One case. An error if something else than its own sizes is to blame. */
static int make_pair(const struct duet__validate *validate, struct duet__case_pair *pair,
                     const struct duet__spec *spec, const struct duet__texts *texts,
                     struct duet_message *message)
{
    bool keep = validate->job.html != NULL, refused = false;
    int error = make_trial(validate, pair, spec, texts, &refused, message);

    pair->settings = g_strjoinv(", ", spec->params);
    if (error && !refused)
        return error;
    if (!error) {
        make_simulation(validate, pair);
        error = build_machine(validate, pair, message);
    }
    pair->probes = g_array_new(FALSE, FALSE, sizeof(double));
    pair->measured.keep = pair->predicted.keep = keep;
    if (error) {
        pair->refused = true;
        pair->error = error;
        pair->failure = g_strdup(message->text);
    }
    return 0;
}

/* How many elements a list stands for: one if it has none. */
static size_t length(char *const *list)
{
    size_t count = 0;

    while (list[count])
        count++;
    return MAX(count, 1);
}

static size_t size_of(const struct duet__spec *spec)
{
    return length(spec->n) * length(spec->tile) * length(spec->policies) * length(spec->cpus) *
           length(spec->gpus);
}

/* Those of a spec, from validate->pairs[validate->pair_count] on. */
static int make_spec(struct duet__validate *validate, const struct duet__spec *spec,
                     const struct duet__texts *common, unsigned *group,
                     struct duet_message *message)
{
    const size_t lengths[] = {length(spec->n), length(spec->tile), length(spec->policies),
                              length(spec->cpus), length(spec->gpus)};
    size_t count = size_of(spec), inner = lengths[2] * lengths[3] * lengths[4];
    int error = 0;

    for (size_t i = 0; i < count && !error; i++) {
        size_t at[G_N_ELEMENTS(lengths)], rest = i;
        struct duet__texts texts;

        for (size_t k = G_N_ELEMENTS(lengths); k-- > 0; rest /= lengths[k])
            at[k] = rest % lengths[k];
        texts = texts_of(common, spec, at);
        validate->pairs[validate->pair_count].group = *group + (unsigned)(i / inner);
        error =
            make_pair(validate, &validate->pairs[validate->pair_count++], spec, &texts, message);
    }
    *group += (unsigned)(count / inner);
    return error;
}

/* An error if there is nothing left to do. */
static int check_some(const struct duet__validate *validate, struct duet_message *message)
{
    for (size_t i = 0; i < validate->pair_count; i++)
        if (!validate->pairs[i].failure)
            return 0;
    return duet_fail(message, validate->pairs[0].error, "%s", validate->pairs[0].failure);
}

int duet__pairs_make(struct duet__validate *validate, const struct duet__texts *texts,
                     struct duet_message *message)
{
    enum { MOST = 10000 };
    size_t count = 0;
    unsigned group = 0;
    int error = 0;

    for (guint i = 0; i < validate->specs->len; i++) {
        count += size_of(validate->specs->pdata[i]);
        if (count > MOST)
            return duet_fail(message, DUET_EINVAL, "more than %d cases are too many", MOST);
    }
    validate->pairs = g_new0(struct duet__case_pair, count);
    for (guint i = 0; i < validate->specs->len && !error; i++)
        error = make_spec(validate, validate->specs->pdata[i], texts, &group, message);
    return error ? error : check_some(validate, message);
}
