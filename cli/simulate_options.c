/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `duet simulate`: from texts to a checked struct duet__simulation. */
#include "cli/simulate.h"

#include "cli/command.h"
#include "platforms/model/effects.h"

static const char summary[] =
    "Simulates a task graph on a machine, under one or several scheduling policies, and prints one "
    "line\na policy: makespan, rate, bytes moved, cache hits, idle time, lower bounds.";

static const char notes[] =
    "Run r of a policy (from 0) has seed S + r. The same command gives the same output, byte for "
    "byte,\nwhich is why the time a simulation took is left out of it unless --wall asks for it. "
    "Makespans of\nseveral runs are given as their median and the 95 % confidence interval of "
    "their "
    "mean.\n\n"
    "With several policies, --trace and --gantt write one file each, the policy's name before the\n"
    "extension; with several runs, they show the first. duet list shows what there is.\n\n"
    "Example:\n"
    "  duet simulate cholesky --platform idgraf --n 38400 --tile 960 --cpus 4 --gpus 8 \\\n"
    "      --policy all --set-arch --html report.html";

/* What is asked for of simulations only. */
static int read_own(struct duet__simulation *simulation, const struct duet__texts *texts,
                    struct duet_message *message)
{
    struct duet_config *config = &simulation->job.config;
    uint64_t jobs = g_get_num_processors();
    unsigned without = 0;
    int result = duet__count_option("--jobs", texts->jobs, 1, 1000, &jobs, message);

    if (!result && texts->costs && texts->no_costs)
        result = duet_fail(message, DUET_EINVAL, "--costs and --no-costs exclude each other");
    if (!result)
        result = duet__effects_parse("--without", texts->without, &without, message);
    config->costs = duet__job_keep(&simulation->job, g_strdup(texts->costs));
    config->without = duet__job_keep(&simulation->job, g_strdup(texts->without));
    config->noise = texts->noise;
    config->no_costs = texts->no_costs;
    simulation->jobs = (unsigned)jobs;
    simulation->wall = texts->wall;
    return result;
}

static int read_platform(struct duet__job *job, const struct duet__texts *texts,
                         struct duet_message *message)
{
    if (!texts->platform)
        return duet_fail(message, DUET_EINVAL,
                         "which machine? --platform NAME (duet list platforms shows them)");
    if (!*texts->platform)
        return duet_fail(message, DUET_EINVAL,
                         "--platform takes the name of a machine or a file, not '' (duet list "
                         "platforms shows them)");
    job->config.simulate = duet__job_keep(job, g_strdup(texts->platform));
    job->platform_option = "--platform";
    return 0;
}

/* One line each about what of the platform is not as one would think. */
static void remark(const struct duet__job *job, const struct duet_platform *platform,
                   const struct duet_platform_options *options)
{
    char *kept = duet_platform_kept_links(platform, options);
    GPtrArray *kernels = g_ptr_array_new_with_free_func(g_free);
    char *holes;

    for (size_t i = 0; job->workload->kernels[i]; i++)
        g_ptr_array_add(kernels,
                        g_strdup_printf("%c%s", job->problem.precision, job->workload->kernels[i]));
    g_ptr_array_add(kernels, NULL);
    holes = duet_platform_holes(&platform->calibration, &job->machine,
                                (const char *const *)kernels->pdata);
    if (kept)
        duet__complain(DUET__DONE, "--link leaves %s as they are (--link all=... changes all)",
                       kept);
    if (holes)
        duet__complain(DUET__DONE, "%s has no times of %s: no such task runs there", platform->name,
                       holes);
    g_ptr_array_unref(kernels);
    g_free(holes);
    g_free(kept);
}

/* The machine that the runs will simulate, for reports, and as a file if one is asked for. */
static int build_machine(struct duet__job *job, struct duet_message *message)
{
    const struct duet_config *config = &job->config;
    const struct duet_platform_options options = {
        .cpus = config->cpus,
        .gpus = config->gpus,
        .gpu_memory_bytes = config->gpu_memory_bytes,
        .gpu_memory_share = config->gpu_memory_share,
        .gpu_window = config->gpu_window,
        .gpu_window_short = config->gpu_window_short,
        .no_peer = config->no_peer,
        .links = (const struct duet_link_override *)(void *)job->links->data,
        .link_count = job->links->len,
    };
    struct duet_platform *platform = NULL;
    int result = duet_platform_load(config->simulate, NULL, &platform, message);

    if (!result) {
        job->platform_name = g_strdup(platform->name);
        duet_calibration_select(&platform->calibration, config->context);
        result = duet_platform_build(platform, &options, &job->machine, message);
    }
    if (!result)
        remark(job, platform, &options);
    if (!result && job->machine_xml)
        result = duet_platform_write_xml(&job->machine, &platform->calibration, job->machine_xml,
                                         message);
    duet_platform_free(platform);
    return result;
}

/* All that is left once the options are texts. */
static int read_all(struct duet__simulation *simulation, const struct duet__texts *texts, int argc,
                    char *const *argv, struct duet_message *message)
{
    struct duet__job *job = &simulation->job;
    int result = duet__job_read_run(job, texts, 1, message);

    if (!result)
        result = read_own(simulation, texts, message);
    if (!result)
        result = duet__job_read_workload(job, argc, argv, message);
    if (!result)
        result = duet__job_read_problem(job, texts, job->workload->default_n,
                                        job->workload->default_tile, message);
    if (!result)
        result = duet__job_read_policies(job, texts, message);
    if (!result)
        result = read_platform(job, texts, message);
    if (!result)
        result = duet__job_read_machine(job, texts, message);
    if (!result)
        result = duet__files_distinct(job, message);
    return result ? result : build_machine(job, message);
}

int duet__simulation_parse(struct duet__simulation *simulation, int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet__texts texts = {0};
    int status = DUET__MISUSED;

    duet__job_init(&simulation->job, "simulate", argc, argv);
    if (duet__texts_parse(&texts, DUET__FOR_SIMULATE, "simulate", summary, notes, &argc, &argv)) {
        status = duet__job_help(&texts);
        if (status < 0) {
            int result = read_all(simulation, &texts, argc, argv, &message);

            if (result)
                status = duet__job_refuse(result, &message);
        }
    }
    duet__texts_fini(&texts);
    return status;
}

void duet__simulation_fini(struct duet__simulation *simulation)
{
    duet__job_fini(&simulation->job);
}
