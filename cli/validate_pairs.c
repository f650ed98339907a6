/* SPDX-License-Identifier: Apache-2.0 */
/* From specs to cases that can be measured and predicted. */
#include <string.h>

#include "cli/command.h"
#include "cli/validate.h"

void duet__pair_fini(struct duet__case_pair *pair)
{
    duet__side_fini(&pair->measured);
    duet__side_fini(&pair->predicted);
    duet_request_fini(&pair->simulated);
    duet_request_fini(&pair->real);
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

static int read_problem(struct duet__job *job, const struct duet__texts *texts,
                        struct duet_message *message)
{
    const struct duet_workload *workload = job->request.workload;
    bool paced = duet_request_paced(&job->request), real = !paced && workload->real_n;

    if (!paced && !workload->generate)
        return duet_fail(message, DUET_EINVAL,
                         "%s has no kernels that compute%s, so that it can only be measured on an "
                         "emulated platform (--emulate)",
                         workload->name, workload->kernels[0] ? " in this duet" : "");
    return duet__job_read_problem(job, texts, real ? workload->real_n : workload->default_n,
                                  real ? workload->real_tile : workload->default_tile, message);
}

/* What the measured side is to run. *refused: its problem is to blame. */
static int make_real(const struct duet__validate *validate, struct duet__job *job,
                     const struct duet__spec *spec, const struct duet__texts *texts, bool *refused,
                     struct duet_message *message)
{
    char command[] = "validate", *arguments[] = {command, spec->workload, NULL};
    int error = duet__job_read_run(job, texts, validate->reps, message);

    job->request.bounds = false;
    job->request.seed = validate->job.request.seed;
    job->request.warmups = validate->warmups;
    if (!error)
        error = duet__job_read_emulation(job, texts, message);
    if (!error)
        error = duet__job_read_workload(job, 2, arguments, message);
    if (!error)
        error = duet__job_read_policies(job, texts, message);
    if (!error)
        error = duet__job_read_machine(job, texts, message);
    if (error)
        return error;
    job->request.config.extrapolate = validate->paced && validate->job.request.config.extrapolate;
    error = read_problem(job, texts, message);
    *refused = error != 0;
    return error;
}

/* The machine of the predicted side, which says how many CPUs and GPUs both have. */
static int build_machine(const struct duet__validate *validate, struct duet__case_pair *pair,
                         struct duet_message *message)
{
    struct duet_config *real = &pair->real.config;
    struct duet_config *simulated = &pair->simulated.config;
    const struct duet_machine *machine = &pair->simulated.machine;
    int error;

    pair->simulated.platform = validate->platform;
    error = duet_request_build(&pair->simulated, message);
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
    pair->simulated.config.simulate = validate->platform_name;
    return build_machine(validate, pair, message);
}

/* What the predicted side is to simulate: the same problem, somewhere else. */
static void make_simulated(const struct duet__validate *validate, struct duet__case_pair *pair)
{
    struct duet_request *request = &pair->simulated;

    duet_request_copy(request, &pair->real);
    request->reps = validate->sim_reps;
    request->config.emulate = NULL;
    request->config.scale = 0;
    request->config.simulate = validate->platform_name;
    request->config.noise = validate->noise;
    request->config.extrapolate = validate->job.request.config.extrapolate;
    request->config.without = validate->job.request.config.without;
    request->jobs = validate->jobs;
}

/* One case. An error if something else than its own sizes is to blame. */
static int make_pair(const struct duet__validate *validate, struct duet__case_pair *pair,
                     const struct duet__spec *spec, const struct duet__texts *texts,
                     struct duet_message *message)
{
    bool keep = validate->job.html != NULL, refused = false;
    struct duet__job job = {0};
    int error;

    duet__job_init(&job, "validate", 0, NULL);
    error = make_real(validate, &job, spec, texts, &refused, message);
    pair->real = job.request;
    job.request = (struct duet_request){0};
    duet__job_fini(&job);
    pair->settings = g_strjoinv(", ", spec->params);
    if (error && !refused)
        return error;
    if (!error) {
        make_simulated(validate, pair);
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
