/* SPDX-License-Identifier: Apache-2.0 */
/* `duet list`: the policies, models, workloads, platforms and kernels that there are. */
#include "cli/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <duet/model.h>
#include <duet/policy.h>

#include "cli/job.h"
#include "platforms/platform.h"
#include "workloads/workload.h"
#include "world/settings.h"

void duet__print_policies(void)
{
    for (size_t i = 0; duet_policy_at(i); i++)
        printf("%-16s %s\n%-16s   %s\n", duet_policy_at(i)->name, duet_policy_at(i)->description,
               "", duet_policy_at(i)->source);
}

void duet__print_models(void)
{
    for (size_t i = 0; duet_model_at(i); i++)
        printf("%-16s %s\n", duet_model_at(i)->name, duet_model_at(i)->description);
}

static void print_workload(const struct duet_workload *workload)
{
    const struct duet_parameter *parameter = workload->parameters;

    printf("%-16s %s\n%-16s   %s\n%-16s   ", workload->name, workload->description, "",
           workload->source, "");
    for (size_t i = 0; workload->kernels[i]; i++)
        printf("%s %s", i ? "" : "kernels:", workload->kernels[i]);
    printf("%swithout --n and --tile: n %" PRIu64 ", tile %" PRIu64,
           workload->kernels[0] ? "; " : "", workload->default_n, workload->default_tile);
    if (workload->real_n)
        printf(" (duet run: %" PRIu64 ", %" PRIu64 ")", workload->real_n, workload->real_tile);
    putchar('\n');
    for (; parameter && parameter->name; parameter++)
        printf("%-16s   --param %s=%s  %s (default: %s)\n", "", parameter->name, parameter->values,
               parameter->description, parameter->initial);
}

static int list_policies(const char *platform)
{
    duet__print_policies();
    return DUET__DONE;
}

static int list_models(const char *platform)
{
    duet__print_models();
    return DUET__DONE;
}

static int list_workloads(const char *platform)
{
    for (size_t i = 0; duet_workload_at(i); i++)
        print_workload(duet_workload_at(i));
    return DUET__DONE;
}

/* Hands one platform to `print`, or all where `name` is NULL. */
static int with_platforms(const char *name, void (*print)(const struct duet_platform *platform))
{
    g_auto(GStrv) all = name ? NULL : duet_platform_names(NULL);
    const char *one[] = {name, NULL};
    int status = DUET__DONE;

    for (const char *const *at = all ? (const char *const *)all : one; *at && !status; at++) {
        struct duet_message message = {""};
        struct duet_platform *platform = NULL;

        if (duet_platform_load(*at, NULL, &platform, &message))
            status = duet__complain(DUET__MISUSED, "%s", message.text);
        else
            print(platform);
        duet_platform_free(platform);
    }
    return status;
}

static void print_platform(const struct duet_platform *platform)
{
    printf("%-16s %s\n%-16s   %u cores, %u GPUs\n", platform->name, platform->description, "",
           duet_platform_cores(platform), duet_platform_gpus(platform));
}

static int list_platforms(const char *platform)
{
    return with_platforms(platform, print_platform);
}

static void print_curve(const struct duet_platform *platform, const struct duet_curve *curve)
{
    char *origin = duet_platform_origin(platform, curve->kernel, curve->arch);

    printf("%s: %s on %s\n", platform->name, curve->kernel, curve->arch);
    printf("  %s\n", origin);
    g_free(origin);
    printf("  %8s %14s %12s %12s %10s %8s\n", "tile", "work", "mean ms", "deviation ms", "GFlop/s",
           "samples");
    for (size_t i = 0; i < curve->count; i++) {
        const struct duet_point *point = &curve->points[i];

        if (point->size > 0)
            printf("  %8.0f", point->size);
        else
            printf("  %8s", "-");
        printf(" %14.6g %12.5g %12.5g %10.5g %8" PRIu64 "\n", point->work, point->mean_s * 1e3,
               point->deviation_s * 1e3, point->work / point->mean_s / 1e9, point->samples);
    }
}

/* What an architecture of the machine lacks and another has. */
static void print_holes(const struct duet_platform *platform)
{
    const struct duet_platform_options whole = {.cpus = -1, .gpus = -1};
    struct duet_machine machine;
    char *holes;

    if (duet_platform_build(platform, &whole, &machine, NULL))
        return;
    holes = duet_platform_holes(&platform->calibration, &machine, NULL);
    if (holes)
        printf("%s: no times: %s\n", platform->name, holes);
    g_free(holes);
    duet_machine_fini(&machine);
}

static void print_kernels(const struct duet_platform *platform)
{
    const struct duet_calibration *calibration = &platform->calibration;

    for (size_t i = 0; i < calibration->count; i++)
        print_curve(platform, &calibration->curves[i]);
    print_holes(platform);
}

static int list_kernels(const char *platform)
{
    return with_platforms(platform, print_kernels);
}

/* One line a meaning: name, what it takes, which commands have it, what it does. */
static int list_options(const char *platform)
{
    static const struct {
        unsigned where;
        const char *name;
    } places[] = {{DUET__IN_SIMULATE, "simulate"}, {DUET__IN_RUN, "run"},
                  {DUET__IN_VALIDATE, "validate"}, {DUET__IN_CALIBRATE, "calibrate"},
                  {DUET__IN_COMPARE, "compare"},   {DUET__IN_INFO, "info"},
                  {DUET__IN_LIST, "list"},         {DUET__IN_ENVIRONMENT, "environment"}};
    const struct duet__option *setting;

    for (size_t i = 0; (setting = duet__option_at(i)); i++) {
        char *line = g_strjoin(" ", setting->name, setting->value, NULL);

        printf("%-34s %s\n%-34s  ", line, setting->help, "");
        for (size_t k = 0; k < G_N_ELEMENTS(places); k++)
            if (setting->where & places[k].where)
                printf(" %s", places[k].name);
        putchar('\n');
        g_free(line);
    }
    return DUET__DONE;
}

/* What can be listed: all of it without an argument, but for what is long. */
static const struct topic {
    const char *name;
    int (*list)(const char *platform);
    bool is_long;
} topics[] = {
    {"policies", list_policies, false},   {"models", list_models, false},
    {"workloads", list_workloads, false}, {"platforms", list_platforms, false},
    {"kernels", list_kernels, true},      {"options", list_options, true},
};

static int list_all(const char *platform)
{
    int status = DUET__DONE;

    for (size_t i = 0; i < G_N_ELEMENTS(topics) && status == DUET__DONE; i++) {
        if (topics[i].is_long)
            continue;
        printf("%s%s\n", i ? "\n" : "", topics[i].name);
        status = topics[i].list(platform);
    }
    return status;
}

static int list_topic(const char *name, const char *platform)
{
    for (size_t i = 0; i < G_N_ELEMENTS(topics); i++)
        if (strcmp(name, topics[i].name) == 0)
            return topics[i].list(platform);
    return duet__complain(DUET__MISUSED,
                          "cannot list '%s', but: policies, models, workloads, platforms, "
                          "kernels, options",
                          name);
}

static int work(struct duet__job *job, int argc, char **argv)
{
    const char *platform = job->values.platform;
    int status;

    if (argc > 2)
        return duet__complain(DUET__MISUSED, "one list at a time: '%s' is one too many", argv[2]);
    status = argc > 1 ? list_topic(argv[1], platform) : list_all(platform);
    return status == DUET__DONE ? duet__finish_output() : status;
}

const struct duet__command duet__list_command = {
    .name = "list",
    .description = "policies, models, workloads, platforms, kernels, options",
    .where = DUET__IN_LIST,
    .arguments = "[policies|models|workloads|platforms|kernels|options]",
    .summary = "Lists what there is; without an argument all but kernels and options.",
    .work = work,
};
