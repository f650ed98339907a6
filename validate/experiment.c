/* SPDX-License-Identifier: Apache-2.0 */
/* From specs to cases that can be measured and predicted. */
#include "validate/experiment.h"

#include <string.h>

void duet__experiment_init(struct duet__experiment *experiment)
{
    *experiment = (struct duet__experiment){
        .specs = g_ptr_array_new_with_free_func(duet__spec_free),
        .texts = g_ptr_array_new_with_free_func(g_free),
        .disturbed = g_array_new(FALSE, FALSE, sizeof(size_t)),
        .rounds = 1,
        .sim_reps = 1,
    };
    duet__request_init(&experiment->base);
}

static void pair_fini(struct duet__pair *pair)
{
    duet__sample_fini(&pair->measured);
    duet__sample_fini(&pair->predicted);
    duet__request_fini(&pair->simulated);
    duet__request_fini(&pair->real);
    g_clear_pointer(&pair->probes, g_array_unref);
    g_free(pair->settings);
    g_free(pair->failure);
}

void duet__experiment_fini(struct duet__experiment *experiment)
{
    for (size_t i = 0; i < experiment->pair_count; i++)
        pair_fini(&experiment->pairs[i]);
    g_free(experiment->pairs);
    g_free(experiment->cases);
    g_clear_pointer(&experiment->specs, g_ptr_array_unref);
    g_clear_pointer(&experiment->texts, g_ptr_array_unref);
    g_clear_pointer(&experiment->disturbed, g_array_unref);
    duet__platform_free(experiment->platform);
    g_free(experiment->platform_name);
    g_free(experiment->calibrated);
    duet__request_fini(&experiment->base);
    *experiment = (struct duet__experiment){0};
}

void duet__pair_fail(struct duet__pair *pair, const char *doing, int error,
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

struct duet__tally duet__experiment_tally(const struct duet__experiment *experiment)
{
    struct duet__tally tally = {0};

    for (size_t i = 0; i < experiment->pair_count; i++) {
        const struct duet__pair *pair = &experiment->pairs[i];

        if (!pair->failure) {
            tally.left++;
            tally.runs += duet__sample_count(&pair->measured);
            tally.predicted += duet__sample_count(&pair->predicted) > 0;
        } else if (!pair->refused && !tally.failures++) {
            tally.failed = pair;
        }
    }
    return tally;
}

/* ------------------------------------------------------------------------------------------- */
/* One case                                                                                     */

/* Where a case stands in the lists of its spec. */
struct place {
    const struct duet__spec *spec;
    size_t lists[DUET_LISTS], policy;
};

/* What a case has of a list; `none` where the list has no elements. */
static int64_t element(const struct place *at, enum duet_list which, int64_t none)
{
    const GArray *list = at->spec->lists[which];

    return list->len ? (int64_t)g_array_index(list, uint64_t, at->lists[which]) : none;
}

/* Sets what the measured side is to run. An error if its sizes are to blame. */
static int make_real(const struct duet__experiment *experiment, struct duet__request *real,
                     const struct place *at, struct duet_message *message)
{
    const struct duet__workload *workload = at->spec->request.workload;
    bool paced = duet__request_paced(&experiment->base), computes = !paced && workload->real_n;
    struct duet__problem *problem = &real->problem;

    duet__request_copy(real, &at->spec->request);
    g_strfreev(real->policies);
    real->policies = g_new0(char *, 2);
    real->policies[0] = g_strdup(at->spec->request.policies[at->policy]);
    real->policy_count = 1;
    real->config.context = workload->name; /* of the kernel times of a platform */
    real->config.cpus = (int)element(at, DUET_LIST_CPUS, -1);
    real->config.gpus = (int)element(at, DUET_LIST_GPUS, -1);
    real->config.extrapolate = paced && experiment->base.config.extrapolate;
    problem->n = (uint64_t)element(at, DUET_LIST_N,
                                   (int64_t)(computes ? workload->real_n : workload->default_n));
    problem->tile =
        (uint64_t)element(at, DUET_LIST_TILE,
                          (int64_t)(computes ? workload->real_tile : workload->default_tile));
    problem->seed = real->seed;
    if (!paced && !workload->generate)
        return duet_fail(message, DUET_EINVAL,
                         "%s has no kernels that compute%s, so that it can only be measured on an "
                         "emulated platform (--emulate)",
                         workload->name, workload->kernels[0] ? " in this duet" : "");
    return workload->check(problem, message);
}

/* The machine of the predicted side, which says how many CPUs and GPUs both have. */
static int build_machine(const struct duet__experiment *experiment, struct duet__pair *pair,
                         struct duet_message *message)
{
    struct duet_config *real = &pair->real.config, *simulated = &pair->simulated.config;
    const struct duet_machine *machine = &pair->simulated.machine;
    int error;

    simulated->simulate = experiment->platform_name;
    pair->simulated.platform = experiment->platform;
    error = duet__request_build(&pair->simulated, message);
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

void duet__pairs_rebuild(struct duet__experiment *experiment)
{
    for (size_t i = 0; i < experiment->pair_count; i++) {
        struct duet__pair *pair = &experiment->pairs[i];
        struct duet_message message = {""};
        int error = 0;

        /* what they had before is gone */
        pair->simulated.platform = experiment->platform;
        pair->simulated.config.simulate = experiment->platform_name;
        if (!pair->failure)
            error = build_machine(experiment, pair, &message);
        if (error)
            duet__pair_fail(pair, "simulated", error, &message);
    }
}

/* What the predicted side is to simulate: the same problem, somewhere else. */
static void make_simulated(const struct duet__experiment *experiment, struct duet__pair *pair)
{
    const struct duet_config *base = &experiment->base.config;
    struct duet__request *request = &pair->simulated;

    duet__request_copy(request, &pair->real);
    request->reps = experiment->sim_reps;
    request->config.emulate = NULL;
    request->config.scale = 0;
    request->config.noise = experiment->noise;
    request->config.extrapolate = base->extrapolate;
    request->config.without = base->without;
}

static void make_pair(const struct duet__experiment *experiment, struct duet__pair *pair,
                      const struct place *at)
{
    struct duet_message message = {""};
    int error = make_real(experiment, &pair->real, at, &message);

    pair->settings = duet__request_settings(&pair->real);
    pair->probes = g_array_new(FALSE, FALSE, sizeof(double));
    duet__sample_init(&pair->measured, experiment->keep);
    duet__sample_init(&pair->predicted, experiment->keep);
    if (!error) {
        make_simulated(experiment, pair);
        error = build_machine(experiment, pair, &message);
    }
    if (error) {
        pair->refused = true;
        pair->error = error;
        pair->failure = g_strdup(message.text);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* All of them                                                                                  */

/* How many elements a list stands for: one if it has none. */
static size_t length(const struct duet__spec *spec, enum duet_list which)
{
    return MAX(spec->lists[which]->len, 1);
}

static size_t size_of(const struct duet__spec *spec)
{
    size_t size = g_strv_length(spec->request.policies);

    for (int i = 0; i < DUET_LISTS; i++)
        size *= length(spec, i);
    return size;
}

/* Those of a spec, from experiment->pairs[experiment->pair_count] on. */
static void make_spec(struct duet__experiment *experiment, const struct duet__spec *spec,
                      unsigned *group)
{
    struct place at = {.spec = spec};
    size_t *n = &at.lists[DUET_LIST_N], *tile = &at.lists[DUET_LIST_TILE];
    size_t *cpus = &at.lists[DUET_LIST_CPUS], *gpus = &at.lists[DUET_LIST_GPUS];

    for (*n = 0; *n < length(spec, DUET_LIST_N); ++*n)
        for (*tile = 0; *tile < length(spec, DUET_LIST_TILE); ++*tile, ++*group)
            for (at.policy = 0; spec->request.policies[at.policy]; at.policy++)
                for (*cpus = 0; *cpus < length(spec, DUET_LIST_CPUS); ++*cpus)
                    for (*gpus = 0; *gpus < length(spec, DUET_LIST_GPUS); ++*gpus) {
                        struct duet__pair *pair = &experiment->pairs[experiment->pair_count++];

                        pair->group = *group;
                        make_pair(experiment, pair, &at);
                    }
}

int duet__pairs_make(struct duet__experiment *experiment, struct duet_message *message)
{
    enum { MOST = 10000 };
    size_t count = 0;
    unsigned group = 0;

    for (guint i = 0; i < experiment->specs->len; i++) {
        count += size_of(experiment->specs->pdata[i]);
        if (count > MOST)
            return duet_fail(message, DUET_EINVAL, "more than %d cases are too many", MOST);
    }
    experiment->pairs = g_new0(struct duet__pair, count);
    for (guint i = 0; i < experiment->specs->len; i++)
        make_spec(experiment, experiment->specs->pdata[i], &group);
    for (size_t i = 0; i < count; i++)
        if (!experiment->pairs[i].failure)
            return 0;
    return duet_fail(message, experiment->pairs[0].error, "%s", experiment->pairs[0].failure);
}
