/* SPDX-License-Identifier: Apache-2.0 */
/* `duet list`: all policies, models, workloads, platforms and kernels, or what is in a file. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <duet/model.h>
#include <duet/policy.h>

#include "base/json.h"
#include "cli/job.h"
#include "platforms/catalogue.h"
#include "workloads/files/graph.h"
#include "workloads/workload.h"
#include "runtime/settings.h"

void duet__print_policies(void)
{
    const struct duet_policy *policy;
    for (size_t i = 0; (policy = duet_policy_at(i)); i++) {
        printf("%-16s %s\n%-16s   %s\n", policy->name, policy->description, "", policy->source);
        for (const struct duet_policy_parameter *one = policy->parameters; one && one->name; one++)
            printf("%-16s   :%s=%g  %s (%g to %g)\n", "", one->name, one->initial, one->description,
                   one->least, one->most);
    }
}

void duet__print_models(void)
{
    for (size_t i = 0; duet_model_at(i); i++)
        printf("%-16s %s\n", duet_model_at(i)->name, duet_model_at(i)->description);
}

/* True if the workload's data can be dealt out to several nodes. */
static bool can_be_dealt(const struct duet__workload *workload)
{
    const struct duet__problem problem = {.n = workload->default_n,
                                          .tile = workload->default_tile,
                                          .precision = 'd',
                                          .nodes = {1, 2}};
    return workload->check(&problem, NULL) == 0;
}

static void print_workload(const struct duet__workload *workload)
{
    const struct duet__parameter *parameter = workload->parameters;
    printf("%-16s %s\n%-16s   %s\n%-16s   ", workload->name, workload->description, "",
           workload->source, "");
    for (size_t i = 0; workload->kernels[i]; i++)
        printf("%s %s", i ? "" : "kernels:", workload->kernels[i]);
    printf("%swithout --n and --tile: n %" PRIu64 ", tile %" PRIu64,
           workload->kernels[0] ? "; " : "", workload->default_n, workload->default_tile);
    if (workload->real_n)
        printf(" (duet run: %" PRIu64 ", %" PRIu64 ")", workload->real_n, workload->real_tile);
    printf("%s\n", can_be_dealt(workload) ? "" : "; on one node only");
    for (; parameter && parameter->name; parameter++)
        printf("%-16s   --param %s=%s  %s (default: %s)\n", "", parameter->name, parameter->values,
               parameter->description, parameter->initial);
}

static void print_workloads(void)
{
    for (size_t i = 0; duet__workload_at(i); i++)
        print_workload(duet__workload_at(i));
}

/* Calls `print` with one platform, or with all if `name` is NULL. */
static int with_platforms(const char *name, void (*print)(const struct duet__platform *platform))
{
    g_auto(GStrv) all = name ? NULL : duet__platform_names();
    const char *one[] = {name, NULL};
    int status = DUET__DONE;
    for (const char *const *at = all ? (const char *const *)all : one; *at && !status; at++) {
        struct duet_message message = {""};
        struct duet__platform *platform = NULL;
        if (duet__platform_load(*at, &platform, &message))
            status = duet__complain(DUET__MISUSED, "%s", message.text);
        else
            print(platform);
        duet__platform_free(platform);
    }
    return status;
}

static void print_platform(const struct duet__platform *platform)
{
    printf("%-16s %s\n%-16s   %u cores, %u GPUs\n", platform->name, platform->description, "",
           duet__platform_cores(platform), duet__platform_gpus(platform));
}

static void print_curve(const struct duet__platform *platform, const struct duet__curve *curve)
{
    g_autofree char *origin = duet__platform_origin(platform, curve->kernel, curve->arch);
    printf("%s: %s on %s\n  %s\n", platform->name, curve->kernel, curve->arch, origin);
    printf("  %8s %14s %12s %12s %10s %8s\n", "tile", "work", "mean ms", "deviation ms", "GFlop/s",
           "samples");
    for (size_t i = 0; i < curve->count; i++) {
        const struct duet__point *point = &curve->points[i];
        if (point->size > 0)
            printf("  %8.0f", point->size);
        else
            printf("  %8s", "-");
        printf(" %14.6g %12.5g %12.5g %10.5g %8" PRIu64 "\n", point->work, point->mean_s * 1e3,
               point->deviation_s * 1e3, point->work / point->mean_s / 1e9, point->samples);
    }
}

/* Prints all curves, and what an architecture of the machine lacks and another has. */
static void print_kernels(const struct duet__platform *platform)
{
    const struct duet__platform_options whole = {.cpus = -1, .gpus = -1};
    const struct duet__calibration *calibration = &platform->calibration;
    g_autofree char *holes = NULL;
    struct duet_machine machine;
    for (size_t i = 0; i < calibration->count; i++)
        print_curve(platform, &calibration->curves[i]);
    if (duet__platform_build(platform, &whole, &machine, NULL))
        return;
    holes = duet__platform_holes(calibration, &machine, NULL);
    if (holes)
        printf("%s: no times: %s\n", platform->name, holes);
    duet_machine_fini(&machine);
}

/* Prints a line of the table of CPUs, or of the table of GPUs. */
static void print_device(const struct duet__device *device)
{
    double cores = device->cores * device->clock_Hz * device->flops_per_cycle;
    static const char *const known[] = {"-", "double", "single", "both"};
    g_autofree char *links =
        device->gpu_link_Bps > 0 ? g_strdup_printf("%.4g GB/s a GPU", device->gpu_link_Bps * 1e-9)
        : device->links > 0
            ? g_strdup_printf("%u x %.4g GB/s", device->links, device->link_Bps * 1e-9)
            : g_strdup("-");
    printf("%-13s", device->name);
    if (device->cores > 0)
        printf(" %5u %4.2f", device->cores, device->clock_Hz * 1e-9);
    else
        printf(" %10.1f", (double)device->memory_bytes * 1e-9);
    printf(" %7.2f %7.2f %-6s %5.0f %4u  %-15s %4u  %s\n",
           fmax(cores, fmax(device->d_flops, device->d_matrix_flops)) * 1e-12,
           fmax(2 * cores, fmax(device->s_flops, device->s_matrix_flops)) * 1e-12,
           known[(device->d_ratio > 0) + 2 * (device->s_ratio > 0)], device->memory_Bps * 1e-9,
           device->pcie, links, device->year, device->unconfirmed ? "partly" : "yes");
}

static int print_devices(void)
{
    struct duet__catalogue catalogue;
    struct duet_message message = {""};
    int error = duet__catalogue_load(&catalogue, &message);
    for (unsigned gpu = 0; gpu < 2 && !error; gpu++) {
        printf("%-13s %s  double  single gemm    GB/s PCIe  own links       year  confirmed\n",
               gpu ? "GPU" : "CPU", gpu ? " memory GB" : "cores  GHz");
        for (unsigned i = 0; i < catalogue.device_count; i++)
            if ((catalogue.devices[i].cores == 0) == gpu)
                print_device(&catalogue.devices[i]);
        putchar('\n');
    }
    if (!error)
        printf("double, single: peak in TFlop/s. gemm: precisions of which rates of products are "
               "published, so that\nestimates rest on them. GB/s: memory. partly: for some figures "
               "no page was found. Full names, sources\nand what is unconfirmed: %s\n",
               catalogue.path);
    duet__catalogue_fini(&catalogue);
    return error ? duet__complain(DUET__MISUSED, "%s", message.text) : DUET__DONE;
}

/* Prints one line for each meaning: name, value, commands that have it, description. */
static void print_options(void)
{
    const struct duet__option *setting;
    for (size_t i = 0; (setting = duet__option_at(i)); i++) {
        char *line = g_strjoin(" ", setting->name, setting->value, NULL);
        printf("%-34s %s\n%-34s  ", line, setting->help, "");
        for (size_t k = 0; duet__commands[k]; k++)
            if (setting->where & duet__commands[k]->where)
                printf(" %s", duet__commands[k]->name);
        puts(setting->where & DUET__IN_ENVIRONMENT ? " environment" : "");
        g_free(line);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* A task graph in a file                                                                       */

/* Sums over all tasks, or over the tasks of one kernel. */
struct sum {
    size_t tasks, timed;
    double seconds, work;
};

struct shape {
    struct sum all, *kernels;
    size_t edges, levels, width; /* tasks of the longest chain; most tasks of the same level */
    double longest_s;            /* chain */
    uint64_t bytes, made;
};

static void add_task(struct sum *sum, const struct duet__graph *graph, size_t task)
{
    const double seconds = duet__graph_reference(graph, task);
    sum->tasks++;
    sum->timed += !isnan(seconds);
    sum->seconds += isnan(seconds) ? 0 : seconds;
    sum->work += duet__graph_task(graph, task)->work;
}

static void measure_graph(const struct duet__graph *graph, struct shape *shape)
{
    const size_t tasks = duet__graph_count(graph);
    struct duet__graph_walk *walk = duet__graph_walk_new(graph);
    double *ends = g_new0(double, tasks + 1);
    uint32_t *levels = g_new0(uint32_t, tasks + 1), *widths = g_new0(uint32_t, tasks + 1);
    for (size_t i = 0; i < tasks; i++) {
        const double seconds = duet__graph_reference(graph, i);
        size_t count;
        const struct duet__graph_edge *edges = duet__graph_walk_next(walk, &count);
        add_task(&shape->all, graph, i);
        add_task(&shape->kernels[duet__graph_task(graph, i)->kernel], graph, i);
        shape->edges += count;
        for (size_t k = 0; k < count; k++) {
            ends[i] = fmax(ends[i], ends[edges[k].from]);
            levels[i] = MAX(levels[i], levels[edges[k].from] + 1);
        }
        ends[i] += isnan(seconds) ? 0 : seconds;
        shape->longest_s = fmax(shape->longest_s, ends[i]);
        widths[levels[i]]++;
        shape->width = MAX(shape->width, widths[levels[i]]);
        shape->levels = MAX(shape->levels, levels[i] + 1);
    }
    for (guint i = 0; i < graph->data->len; i++) {
        shape->bytes += duet__graph_datum(graph, i)->bytes;
        shape->made +=
            duet__graph_datum(graph, i)->initial ? 0 : duet__graph_datum(graph, i)->bytes;
    }
    g_free(ends);
    g_free(levels);
    g_free(widths);
    duet__graph_walk_free(walk);
}

static void print_shape(const struct duet__graph *graph, const struct shape *shape)
{
    printf("%s: %zu tasks, %zu edges", graph->name, shape->all.tasks, shape->edges);
    if (graph->origin)
        printf(" (%s)", graph->origin);
    printf("\n%u data of %" PRIu64 " bytes, %" PRIu64 " of these made by tasks\n", graph->data->len,
           shape->bytes, shape->made);
    printf("longest chain %zu tasks, at most %zu tasks side by side (of the same level)\n",
           shape->levels, shape->width);
    printf("critical path %.6g s, all tasks %.6g s: %.4g at a time in the mean", shape->longest_s,
           shape->all.seconds, shape->longest_s > 0 ? shape->all.seconds / shape->longest_s : 0.0);
    if (shape->all.timed < shape->all.tasks)
        printf("; no time is known of %zu tasks", shape->all.tasks - shape->all.timed);
    if (graph->makespan_s > 0)
        printf("; it took %.6g s", graph->makespan_s);
    printf("\n  %-32s %9s %12s %12s\n", "kernel", "tasks", "seconds", "work");
    for (guint k = 0; k < graph->kernels->len; k++)
        if (shape->kernels[k].tasks)
            printf("  %-32s %9zu %12.6g %12.6g\n", duet__graph_kernel_name(graph, k),
                   shape->kernels[k].tasks, shape->kernels[k].seconds, shape->kernels[k].work);
}

/* Prints the graph as docs/formats.md describes it. */
static void print_shape_json(const struct duet__job *job, const struct duet__graph *graph,
                             const struct shape *shape)
{
    struct duet__json_writer json = {.stream = stdout, .indented = true};
    duet__json_print(&json, "{schema: 1, command: %s, name: %s, origin: %s, tasks: %zu, edges: %zu",
                     job->line, graph->name, graph->origin, shape->all.tasks, shape->edges);
    duet__json_print(&json, "data: %u, bytes: %" PRIu64 ", made_bytes: %" PRIu64, graph->data->len,
                     shape->bytes, shape->made);
    duet__json_print(&json, "levels: %zu, width: %zu, critical_path_s: %g, seconds: %g, work: %g",
                     shape->levels, shape->width, shape->longest_s, shape->all.seconds,
                     shape->all.work);
    duet__json_print(&json, "untimed: %zu, makespan_s: %g, kernels: [",
                     shape->all.tasks - shape->all.timed,
                     graph->makespan_s > 0 ? graph->makespan_s : NAN);
    for (guint k = 0; k < graph->kernels->len; k++)
        if (shape->kernels[k].tasks)
            duet__json_print(&json, "{name: %s, tasks: %zu, seconds: %g, work: %g}",
                             duet__graph_kernel_name(graph, k), shape->kernels[k].tasks,
                             shape->kernels[k].seconds, shape->kernels[k].work);
    duet__json_print(&json, "]}");
}

/* Prints the contents of a task graph. Returns the exit status. */
static int print_graph(struct duet__job *job, const char *path)
{
    struct duet_message message = {""};
    struct duet__graph *graph;
    struct shape shape = {0};
    struct duet__graph_models models;
    int error = duet__find_starpu(job, &models, &message);
    error = error ? error : duet__graph_read(path, &models, &graph, &message);
    if (error)
        return duet__job_refuse(error, &message);
    shape.kernels = g_new0(struct sum, graph->kernels->len);
    measure_graph(graph, &shape);
    if (job->values.json)
        print_shape_json(job, graph, &shape);
    else
        print_shape(graph, &shape);
    g_free(shape.kernels);
    duet__graph_free(graph);
    return duet__finish_output();
}

/* ------------------------------------------------------------------------------------------- */
/* The command                                                                                  */

/* The topics that can be listed: without an argument all but the long ones. */
static const struct topic {
    const char *name;
    bool is_long;
    void (*print)(void);
    void (*print_of)(const struct duet__platform *platform); /* NULL, or called in place of `print`
                                                                for each platform */
} topics[] = {
    {"policies", false, duet__print_policies, NULL},
    {"models", false, duet__print_models, NULL},
    {"workloads", false, print_workloads, NULL},
    {"platforms", false, NULL, print_platform},
    {"kernels", true, NULL, print_kernels},
    {"options", true, print_options, NULL},
    {"devices", true, NULL, NULL},
};

static int work(struct duet__job *job, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    int status = -1;
    if (job->values.json && (!name || !duet__is_file(name)))
        return duet__complain(DUET__MISUSED, "--json is for the file of a task graph");
    if (argc > 2)
        return duet__complain(DUET__MISUSED, "one list at a time: '%s' is one too many", argv[2]);
    for (const struct topic *topic = topics;
         topic < topics + G_N_ELEMENTS(topics) && status <= DUET__DONE && !job->values.json;
         topic++) {
        if (name ? strcmp(name, topic->name) != 0 : topic->is_long)
            continue;
        if (!name)
            printf("%s%s\n", topic > topics ? "\n" : "", topic->name);
        status = topic->print      ? DUET__DONE
                 : topic->print_of ? with_platforms(job->values.platform, topic->print_of)
                                   : print_devices();
        if (topic->print)
            topic->print();
    }
    if (status < 0 && !job->values.json && duet__is_file(name) && duet__schedule_in(name))
        return duet__list_schedule(name);
    if (status < 0 && duet__is_file(name))
        return print_graph(job, name);
    if (status < 0)
        return duet__complain(
            DUET__MISUSED,
            "cannot list '%s', but: policies, models, workloads, platforms, "
            "kernels, options, devices, or the file of a task graph or a schedule",
            name);
    return status == DUET__DONE ? duet__finish_output() : status;
}

const struct duet__command duet__list_command = {
    .name = "list",
    .description = "policies, models, workloads, platforms, kernels, devices, options",
    .where = DUET__IN_LIST,
    .arguments = "[policies|models|workloads|platforms|kernels|devices|options|FILE]",
    .summary =
        "Lists what there is; without an argument all but kernels, devices and options. With "
        "a file,\nwhat is in this task graph or schedule.",
    .work = work,
};
