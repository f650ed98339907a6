/* SPDX-License-Identifier: Apache-2.0 */
/* `duet run`: reads the command line, makes the runs, writes the report. */
#include "cli/run.h"

#include <string.h>

#include "cli/command.h"
#include "world/here.h"

/* What the report says of the world. */
static struct duet_report_real describe(const struct duet__trial *trial,
                                        const struct duet__findings *findings)
{
    const struct duet_config *config = &trial->job.config;
    enum duet_emulation emulation = DUET_EMULATION_NONE;

    if (config->emulate)
        emulation = trial->paced ? DUET_EMULATION_PACED : DUET_EMULATION_FREE;
    return (struct duet_report_real){
        .emulation = emulation,
        .scale = config->scale > 0 ? config->scale : 1,
        .lose = config->lose,
        .cores = duet__here_cores(),
        .warmups = trial->warmups,
        .reps = trial->job.reps,
        .interrupted = findings->number != 0,
        .formula = findings->formula,
        .threshold = findings->threshold,
    };
}

/* Makes the report of the runs that are finished and puts it where it was asked for. */
static int report(const struct duet__trial *trial, const struct duet__findings *findings)
{
    const struct duet__job *job = &trial->job;
    struct duet_policy_runs *policies = g_new0(struct duet_policy_runs, job->policy_count);
    const struct duet_report_real real = describe(trial, findings);
    struct duet_report world = {
        .world = job->config.emulate ? "emulated" : "real",
        .real = &real,
        .show_wall = true,
        .policies = policies,
    };
    int status;

    /* runs are made in order of the policies: those without any come last */
    for (size_t i = 0; i < job->policy_count && findings->series[i].count; i++) {
        const struct duet__series *series = &findings->series[i];

        policies[world.policy_count++] = (struct duet_policy_runs){
            .policy = job->policies[i],
            .runs = series->runs,
            .run_count = series->count,
            .recording = series->record.recording.machine ? &series->record.recording : NULL,
        };
    }
    status = duet__job_report(job, &world);
    g_free(policies);
    return status;
}

/* One line if the residual of a run does not pass. Exit status. */
static int judge(const struct duet__trial *trial, const struct duet__findings *findings)
{
    size_t runs = 0, failed = 0;

    for (size_t i = 0; findings->formula && i < trial->job.policy_count; i++) {
        for (size_t k = 0; k < findings->series[i].count; k++) {
            runs++;
            failed += !(findings->series[i].runs[k].residual < findings->threshold);
        }
    }
    if (!failed)
        return DUET__DONE;
    return duet__complain(DUET__FAILED, "the results of %zu of %zu runs are wrong", failed, runs);
}

/* One line that says how much there is, when a signal came. Exit status. */
static int say_interrupted(const struct duet__trial *trial, const struct duet__findings *findings)
{
    size_t runs = 0;

    for (size_t i = 0; i < trial->job.policy_count; i++)
        runs += findings->series[i].count;
    return duet__complain(DUET__SIGNALLED + findings->number,
                          "interrupted: %zu of %zu measured runs are finished", runs,
                          trial->job.policy_count * trial->job.reps);
}

static int run(struct duet__trial *trial)
{
    struct duet__findings findings = {0};
    int status = duet__files_check(&trial->job);

    if (status != DUET__DONE)
        return status;
    findings.series = g_new0(struct duet__series, trial->job.policy_count);
    status = duet__trial_run(trial, &findings);
    if (status == DUET__DONE) {
        int judged = judge(trial, &findings);

        status = report(trial, &findings);
        if (status == DUET__DONE)
            status = judged;
        if (findings.number)
            status = say_interrupted(trial, &findings);
    }
    for (size_t i = 0; i < trial->job.policy_count; i++)
        duet__series_fini(&findings.series[i]);
    g_free(findings.series);
    return status;
}

static int run_command(int argc, char **argv)
{
    struct duet__trial trial = {0};
    int status = duet__trial_parse(&trial, argc, argv);

    if (status < 0)
        status = run(&trial);
    duet__trial_fini(&trial);
    return status;
}

const struct duet__command duet__run_command = {
    .name = "run",
    .description = "runs a task graph on this machine, or on GPUs that it emulates",
    .run = run_command,
};
