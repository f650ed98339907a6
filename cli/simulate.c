/* SPDX-License-Identifier: Apache-2.0 */
/* `duet simulate`: reads the command line, makes the runs, writes the report. */
#include "cli/simulate.h"

#include <stdio.h>

#include "cli/command.h"

/* Parameters of the workload, "variant=left, width=8"; caller frees. */
static char *settings_text(const struct duet__simulation *simulation)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < simulation->problem.setting_count; i++)
        g_string_append_printf(text, "%s%s=%s", i ? ", " : "", simulation->problem.settings[i].name,
                               simulation->problem.settings[i].value);
    return g_string_free(text, FALSE);
}

static int print(const struct duet__simulation *simulation, const struct duet_report *report)
{
    struct duet_message message = {""};
    int result;

    if (simulation->json)
        result = duet_report_write_json(stdout, report, &message);
    else if (simulation->csv)
        result = duet_report_write_csv(stdout, report, &message);
    else
        result = duet_report_write_table(stdout, report, &message);
    if (result)
        return duet__complain(DUET__FAILED, "%s", message.text);
    return duet__finish_output();
}

/* Makes the report of `outcomes` and puts it where it was asked for. */
static int report(const struct duet__simulation *simulation, const struct duet__outcome *outcomes)
{
    size_t reps = simulation->reps, count = simulation->policy_count;
    struct duet_run *runs = g_new0(struct duet_run, count * reps);
    struct duet_policy_runs *policies = g_new0(struct duet_policy_runs, count);
    char *settings = settings_text(simulation);
    const struct duet_report all = {
        .command = simulation->command,
        .world = "simulated",
        .workload = simulation->workload->name,
        .settings = settings,
        .platform = simulation->platform_name,
        .n = simulation->problem.n,
        .tile = simulation->problem.tile,
        .precision = simulation->problem.precision,
        .set_arch = simulation->config.set_arch,
        .noise = simulation->config.noise,
        .show_wall = simulation->wall,
        .flops = simulation->workload->flops(&simulation->problem),
        .machine = &simulation->machine,
        .policies = policies,
        .policy_count = count,
    };
    int printed, written;

    for (size_t i = 0; i < count * reps; i++)
        runs[i] = outcomes[i].run;
    for (size_t i = 0; i < count; i++) {
        const struct duet_recording *recording = &outcomes[i * reps].recording;

        policies[i] = (struct duet_policy_runs){.policy = simulation->policies[i],
                                                .runs = runs + i * reps,
                                                .run_count = reps,
                                                .recording = recording->machine ? recording : NULL};
    }
    /* the table first: a long run is not lost because a disk is full */
    printed = print(simulation, &all);
    written = duet__files_write(simulation, &all);
    g_free(settings);
    g_free(policies);
    g_free(runs);
    return printed ? printed : written;
}

static int run(const struct duet__simulation *simulation)
{
    size_t count = simulation->policy_count * simulation->reps;
    struct duet__outcome *outcomes;
    int status = duet__files_check(simulation);

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
