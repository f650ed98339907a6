/* SPDX-License-Identifier: Apache-2.0 */
/* `duet simulate`: reads the command line, makes the runs, writes the report. */
#include "cli/simulate.h"

#include "cli/command.h"

/* Makes the report of `outcomes` and puts it where it was asked for. */
static int report(const struct duet__simulation *simulation, const struct duet__outcome *outcomes)
{
    size_t reps = simulation->job.reps, count = simulation->job.policy_count;
    struct duet_run *runs = g_new0(struct duet_run, count * reps);
    struct duet_policy_runs *policies = g_new0(struct duet_policy_runs, count);
    const struct duet_report world = {
        .world = "simulated",
        .noise = simulation->job.config.noise,
        .show_wall = simulation->wall,
        .policies = policies,
        .policy_count = count,
    };
    int status;

    for (size_t i = 0; i < count * reps; i++)
        runs[i] = outcomes[i].run;
    for (size_t i = 0; i < count; i++) {
        const struct duet_recording *recording = &outcomes[i * reps].recording;

        policies[i] = (struct duet_policy_runs){.policy = simulation->job.policies[i],
                                                .runs = runs + i * reps,
                                                .run_count = reps,
                                                .recording = recording->machine ? recording : NULL};
    }
    status = duet__job_report(&simulation->job, &world);
    g_free(policies);
    g_free(runs);
    return status;
}

static int run(const struct duet__simulation *simulation)
{
    size_t count = simulation->job.policy_count * simulation->job.reps;
    struct duet__outcome *outcomes;
    int status = duet__files_check(&simulation->job);

    if (status != DUET__DONE)
        return status;
    outcomes = g_new0(struct duet__outcome, count);
    status = duet__simulation_run(simulation, outcomes);
    if (status == DUET__DONE)
        status = report(simulation, outcomes);
    for (size_t i = 0; i < count; i++)
        duet__outcome_fini(&outcomes[i]);
    g_free(outcomes);
    return status;
}

static int simulate(int argc, char **argv)
{
    struct duet__simulation simulation = {0};
    int status = duet__simulation_parse(&simulation, argc, argv);

    if (status < 0)
        status = run(&simulation);
    duet__simulation_fini(&simulation);
    return status;
}

const struct duet__command duet__simulate_command = {
    .name = "simulate",
    .description = "how a task graph would run on a machine, under one or several policies",
    .run = simulate,
};
