/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `duet run`: from texts to a checked struct duet__trial. */
#include "cli/run.h"

#include <string.h>

#include "cli/command.h"
#include "world/units.h"

static const char summary[] =
    "Runs a task graph on this machine, under one or several scheduling policies, and prints one "
    "line\na policy: makespan, rate, bytes moved, cache hits, idle time, lower bounds.";

static const char notes[] =
    "Each policy has a runtime of its own, which first makes W runs that are not measured: kernels "
    "warm up,\nand the scheduler learns their times. Makespans are given as the median of R runs "
    "and the 95 %\nconfidence interval of their mean. An interrupt (Ctrl-C) gives the rest up and "
    "reports the runs that\nare finished; a second one ends at once.\n\n"
    "--emulate free adds GPUs that are computed by CPU cores in memories of their own: right "
    "results, no GPU's\nspeed. --emulate PLATFORM takes the times of that machine and computes "
    "nothing.\n\n"
    "With several policies, --trace and --gantt write one file each, the policy's name before the\n"
    "extension; they show the first measured run. duet list shows what there is.\n\n"
    "Examples:\n"
    "  duet run cholesky --n 4096 --tile 256 --policy ws,heft --verify\n"
    "  duet run cholesky --n 16384 --tile 1024 --gpus 1 --policy heft,ws --verify\n"
    "  duet run cholesky --cpus 1 --gpus 2 --emulate free --gpu-memory 64MiB --html report.html\n"
    "  duet run cholesky --emulate idgraf --scale 0.1 --policy all --set-arch";

/* What is asked for of runs on this machine only. */
static int read_own(struct duet__trial *trial, const struct duet__texts *texts,
                    struct duet_message *message)
{
    struct duet_config *config = &trial->job.config;
    uint64_t warmups = 1;
    int result = duet__count_option("--warmup", texts->warmup, 0, 100000, &warmups, message);

    trial->warmups = (size_t)warmups;
    trial->verify = texts->verify;
    if (!result && texts->watchdog)
        result = duet__parse_watchdog("--watchdog", texts->watchdog, &config->watchdog_s, message);
    if (!result)
        result = duet__job_read_emulation(&trial->job, texts, message);
    trial->paced = duet__job_platform(&trial->job) != NULL;
    if (!result && texts->verify && trial->paced)
        result =
            duet_fail(message, DUET_EINVAL,
                      "--verify: an emulated platform computes nothing that could be verified");
    return result;
}

static int read_problem(struct duet__trial *trial, const struct duet__texts *texts,
                        struct duet_message *message)
{
    const struct duet_workload *workload = trial->job.workload;
    bool real = !trial->paced && workload->real_n;

    if (!trial->paced && !workload->generate)
        return duet_fail(message, DUET_EINVAL,
                         "%s has no kernels that compute%s: duet simulate %s, or an emulated "
                         "platform (--emulate)",
                         workload->name, workload->kernels[0] ? " in this duet" : "",
                         workload->name);
    if (trial->verify && !workload->verify)
        return duet_fail(message, DUET_EINVAL, "--verify: %s has no result to be verified",
                         workload->name);
    return duet__job_read_problem(&trial->job, texts, real ? workload->real_n : workload->default_n,
                                  real ? workload->real_tile : workload->default_tile, message);
}

/* All that is left once the options are texts. */
static int read_all(struct duet__trial *trial, const struct duet__texts *texts, int argc,
                    char *const *argv, struct duet_message *message)
{
    struct duet__job *job = &trial->job;
    int result = duet__job_read_run(job, texts, 5, message);

    if (!result)
        result = read_own(trial, texts, message);
    if (!result)
        result = duet__job_read_workload(job, argc, argv, message);
    if (!result)
        result = read_problem(trial, texts, message);
    if (!result)
        result = duet__job_read_policies(job, texts, message);
    if (!result)
        result = duet__job_read_machine(job, texts, message);
    return result ? result : duet__files_distinct(job, message);
}

int duet__trial_parse(struct duet__trial *trial, int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet__texts texts = {0};
    int status = DUET__MISUSED;

    duet__job_init(&trial->job, "run", argc, argv);
    if (duet__texts_parse(&texts, DUET__FOR_RUN, "run", summary, notes, &argc, &argv)) {
        status = duet__job_help(&texts);
        if (status < 0) {
            int result = read_all(trial, &texts, argc, argv, &message);

            if (result)
                status = duet__job_refuse(result, &message);
        }
    }
    duet__texts_fini(&texts);
    return status;
}

void duet__trial_fini(struct duet__trial *trial)
{
    duet__job_fini(&trial->job);
}
