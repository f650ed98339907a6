/* SPDX-License-Identifier: Apache-2.0 */
/* Makes some recorded runs of one problem on certain workers, in a session of their own. */
#include <string.h>

#include "calibrate/calibrate.h"
#include "runs/session.h"
#include "base/clock.h"

enum { RUNS_MAX = 3 /* of a turn: later rounds make more */ };

/* Policy of the next run: two alternate, so that the same operands come from different places. */
static const char *policy_of(const struct duet__calibrating *c)
{
    const char *given = c->request->runs->config.policy;
    return given ? given : c->rounds % 2 ? "eager" : "ws";
}

/* Counts a run, and keeps its records. */
static void keep_run(struct duet__calibrating *c, struct duet__setup *setup, struct duet__run *run)
{
    uint64_t place = (uint64_t)(setup - duet__setup_at(c, 0));
    const struct duet__recorded_run observation = {
        .recording = run->recording,
        .context = setup->workload->name,
        .repeats = 2 * place + 1 + (strcmp(policy_of(c), "eager") == 0),
        .problem = place + 1,
    };
    run->recording = (struct duet__recording){0};
    g_array_append_val(c->runs, observation);
    setup->run_s =
        (setup->run_s * (double)setup->runs + run->stats.makespan_s) / (double)(setup->runs + 1);
    setup->runs++;
    setup->tasks += run->stats.tasks;
}

/* Makes the warm-up run, then the others, on their own data. */
static int run_all(struct duet__calibrating *c, struct duet__setup *setup,
                   struct duet__session *session, double slice_s)
{
    struct duet__problem *problem = &session->problem;
    double start_s;
    int error = 0;
    *problem = setup->problem;
    problem->n = setup->warmup_n;
    problem->data = c->kept[0].problem.data;
    if (!setup->workload->program) /* a program's runs begin anew */
        error = duet__session_run(session, NULL, DUET_RECORDS_NONE, &c->now.message);
    problem->n = setup->problem.n;
    problem->data = c->kept[problem->n != setup->warmup_n].problem.data;
    start_s = duet__clock_s();
    for (int i = 0; i < RUNS_MAX && !error; i++) {
        struct duet__run run = {0};
        error = duet__session_run(session, &run, DUET_RECORDS_ACCESSES, &c->now.message);
        if (!error)
            keep_run(c, setup, &run);
        duet__run_fini(&run);
        if (duet__clock_s() - start_s >= slice_s)
            break;
    }
    return error;
}

/* True if a runtime with as many workers has been opened, and its remarks printed. */
static bool was_opened(const struct duet__calibrating *c, const struct duet__setup *setup)
{
    for (guint i = 0; i < c->setups->len; i++) {
        const struct duet__setup *other = duet__setup_at(c, i);
        if (other->turn_s > 0 && other->cpus == setup->cpus && other->gpus == setup->gpus)
            return true;
    }
    return false;
}

/* Makes the request of a setup's runs. */
static void make_request(const struct duet__calibrating *c, const struct duet__setup *setup,
                         struct duet__request *request)
{
    duet__request_copy(request, c->request->runs);
    request->workload = setup->workload;
    request->records = DUET_RECORDS_ACCESSES;
    request->bounds = false;
    request->config.cpus = setup->cpus;
    request->config.gpus = setup->gpus;
    request->config.set_arch = setup->devices;
    request->config.context = setup->workload->name;
    if (!c->request->paced && !setup->gpus) /* the cores themselves, if nothing is emulated */
        request->config.emulate = NULL;
}

/* Frees what is kept, if anything is. */
static void kept_data_free(struct duet__kept_data *kept)
{
    if (kept->problem.data)
        kept->workload->discard(kept->problem.data);
    kept->problem.data = NULL;
}

/* Keeps the data of a setup's problem of this size: as it is, or in place of other data. */
static int keep_data(struct duet__kept_data *kept, const struct duet__setup *setup, uint64_t n,
                     struct duet_message *message)
{
    struct duet__problem *old = &kept->problem;
    int error;
    if (old->data && kept->workload == setup->workload && old->n == n &&
        old->tile == setup->problem.tile && old->precision == setup->problem.precision &&
        old->settings == setup->problem.settings)
        return 0;
    kept_data_free(kept);
    *kept = (struct duet__kept_data){setup->workload, setup->problem};
    old->n = n;
    error = setup->workload->generate(setup->workload, old, &old->data, message);
    if (error)
        old->data = NULL;
    return error;
}

int duet__setup_measure(struct duet__calibrating *c, struct duet__setup *setup, double slice_s)
{
    struct duet__request request;
    struct duet__session session = {.request = &request,
                                    .policy = policy_of(c),
                                    .monitor = c->monitor,
                                    .quiet = was_opened(c, setup)};
    const bool computes = !c->request->paced && setup->workload->generate; /* in this process */
    size_t at = setup->problem.n != setup->warmup_n; /* else one data set serves for both */
    double start_s = duet__clock_s();
    int error = 0;
    make_request(c, setup, &request);
    if (computes)
        error = keep_data(&c->kept[0], setup, setup->warmup_n, &c->now.message);
    if (!error && computes)
        error = keep_data(&c->kept[at], setup, setup->problem.n, &c->now.message);
    if (!error)
        error = run_all(c, setup, &session, slice_s);
    duet__session_close(&session);
    duet__request_fini(&request);
    setup->turn_s = duet__clock_s() - start_s;
    return duet__monitor_signal(c->monitor) ? 0 : error;
}

void duet__kept_data_free(struct duet__calibrating *c)
{
    for (size_t i = 0; i < G_N_ELEMENTS(c->kept); i++)
        kept_data_free(&c->kept[i]);
}
