/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up report for tests of the writers: any number of CPUs, GPUs, policies, runs and tasks. */
#ifndef DUET_REPORT_SAMPLE_H
#define DUET_REPORT_SAMPLE_H

#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "report/report.h"

enum { SAMPLE_POLICIES = 3, SAMPLE_RUNS = 3 };

static const char *const sample_policies[SAMPLE_POLICIES] = {"heft", "ws", "locality-aware"};
static const char *sample_kernels[] = {"dpotrf", "dtrsm", "dsyrk", "dgemm"};

static inline double sample_flops(const struct duet__problem *problem)
{
    (void)problem;
    return 1e12;
}

static const struct duet__workload sample_workload = {.name = "cholesky", .flops = sample_flops};

struct sample {
    struct duet__recording recordings[SAMPLE_POLICIES];
    struct duet_event *events[SAMPLE_POLICIES];
    struct duet__run runs[SAMPLE_POLICIES][SAMPLE_RUNS];
    struct duet__series series[SAMPLE_POLICIES];
    struct duet__request request;
    struct duet__report report;
};

static inline void sample_machine(struct duet_machine *machine, unsigned cpus, unsigned gpus)
{
    g_assert_cmpint(duet_machine_init(machine, 2, gpus + 1, cpus + gpus, 0), ==, 0);
    strcpy(machine->name, "sample");
    strcpy(machine->archs[0].name, "x5650");
    strcpy(machine->archs[1].name, "c2050");
    strcpy(machine->archs[0].backend, "cpu");
    strcpy(machine->archs[1].backend, "cuda");
    strcpy(machine->nodes[0].name, "host");
    for (unsigned i = 0; i < cpus + gpus; i++) {
        struct duet_worker *worker = &machine->workers[i];
        bool gpu = i >= cpus;
        g_snprintf(worker->name, sizeof(worker->name), "%s%u", gpu ? "gpu" : "cpu",
                   gpu ? i - cpus : i);
        worker->arch = gpu;
        worker->node = gpu ? i - cpus + 1 : 0;
        worker->window = gpu ? 2 : 1;
        if (gpu)
            g_strlcpy(machine->nodes[worker->node].name, worker->name, DUET_NAME_MAX);
    }
}

/* Compares events by date, then worker, then number. */
static inline int sample_order(const void *a, const void *b)
{
    const struct duet_event *x = a, *y = b;
    if (x->start_s != y->start_s)
        return x->start_s < y->start_s ? -1 : 1;
    return x->worker != y->worker ? x->worker - y->worker : (x->id > y->id) - (x->id < y->id);
}

/* Makes events: every worker takes tasks one after another; a copy precedes those on a GPU. */
static inline void sample_events(struct sample *sample, unsigned policy, unsigned tasks)
{
    struct duet_machine *machine = &sample->request.machine;
    struct duet_event *events = g_new0(struct duet_event, 3 * (size_t)tasks);
    double *free_s = g_new0(double, machine->worker_count);
    g_autoptr(GRand) random = g_rand_new_with_seed(policy + 1);
    struct duet_stats *stats = &sample->runs[policy][0].stats;
    size_t count = 0;
    for (unsigned id = 1; id <= tasks; id++) {
        unsigned worker = (unsigned)g_rand_int_range(random, 0, (int)machine->worker_count);
        unsigned kernel = (unsigned)g_rand_int_range(random, 0, 4) | (id % 3 ? 3 : 0);
        double start = free_s[worker] + 1e-3;
        for (unsigned i = 0; i < machine->worker_count; i++)
            if (free_s[i] + 1e-3 < start) {
                worker = i;
                start = free_s[i] + 1e-3;
            }
        bool gpu = machine->workers[worker].node != DUET_HOST;
        uint16_t node = (uint16_t)machine->workers[worker].node;
        double length = (gpu ? 6e-3 : 6e-2) * g_rand_double_range(random, 0.5, 1.5);
        if (gpu) {
            bool peer = machine->node_count > 2 && id % 4 == 0;
            events[count++] =
                (struct duet_event){.kind = DUET_EVENT_COPY,
                                    .worker = (int)worker,
                                    .id = id,
                                    .start_s = start - 1e-3,
                                    .end_s = start - 1e-4,
                                    .source =
                                        peer ? (uint16_t)(node % (machine->node_count - 1) + 1) : 0,
                                    .destination = node,
                                    .bytes = 7372800};
            if (events[count - 1].source == node)
                events[count - 1].source = 0;
            stats->bytes_to_device += 7372800;
            stats->copies_to_device++;
        }
        events[count++] = (struct duet_event){.kind = DUET_EVENT_TASK,
                                              .worker = (int)worker,
                                              .kernel = kernel,
                                              .id = id,
                                              .ready_s = start / 2,
                                              .start_s = start,
                                              .end_s = start + length,
                                              .source = node,
                                              .destination = node,
                                              .used_bytes = gpu ? (1 + id % 3) * 7372800 : 0,
                                              .bytes = 22118400};
        stats->busy_s += length;
        stats->busy_by_arch_s[gpu] += length;
        if (gpu && id % 5 == 0) {
            events[count++] = (struct duet_event){.kind = DUET_EVENT_COPY,
                                                  .worker = (int)worker,
                                                  .id = id,
                                                  .start_s = start + length,
                                                  .end_s = start + length + 2e-3,
                                                  .source = node,
                                                  .bytes = 7372800,
                                                  .write_back = true};
            stats->bytes_to_host += 7372800;
            stats->copies_to_host++;
        }
        free_s[worker] = start + length;
        stats->makespan_s = MAX(stats->makespan_s, start + length);
    }
    qsort(events, count, sizeof(*events), sample_order);
    sample->events[policy] = events;
    sample->recordings[policy] =
        (struct duet__recording){.machine = machine,
                                 .events = events,
                                 .event_count = count,
                                 .kernels = sample_kernels,
                                 .kernel_count = G_N_ELEMENTS(sample_kernels),
                                 .makespan_s = stats->makespan_s};
    g_free(free_s);
}

static inline void sample_init(struct sample *sample, unsigned cpus, unsigned gpus, unsigned tasks)
{
    *sample = (struct sample){0};
    duet__request_init(&sample->request);
    sample->request.workload = &sample_workload;
    sample->request.platform_name = g_strdup("sample");
    sample->request.problem.n = 38400;
    sample->request.problem.tile = 960;
    sample->request.reps = SAMPLE_RUNS;
    sample->request.warmups = 1;
    sample->request.config.simulate = "sample";
    sample->request.config.set_arch = true;
    sample->request.config.noise = true;
    sample_machine(&sample->request.machine, cpus, gpus);
    for (unsigned p = 0; p < SAMPLE_POLICIES; p++) {
        sample_events(sample, p, tasks + p * tasks / 8);
        sample->runs[p][0].recording = sample->recordings[p];
        sample->runs[p][0].stats.tasks = tasks;
        sample->runs[p][0].stats.reads_on_device = 3 * tasks;
        sample->runs[p][0].stats.read_hits = 2 * tasks;
        sample->runs[p][0].bounds.critical_path_s = sample->runs[0][0].stats.makespan_s * 0.3;
        sample->runs[p][0].bounds.area_s = sample->runs[0][0].stats.makespan_s * 0.9;
        for (unsigned r = 0; r < SAMPLE_RUNS; r++) {
            sample->runs[p][r] = sample->runs[p][0];
            sample->runs[p][r].seed = r + 1;
            sample->runs[p][r].wall_s = 0.25;
            sample->runs[p][r].stats.makespan_s *= 1 + 0.02 * r;
        }
        sample->series[p] = (struct duet__series){.policy = sample_policies[p],
                                                  .runs = sample->runs[p],
                                                  .count = SAMPLE_RUNS};
    }
    sample->report = (struct duet__report){.command = "duet simulate cholesky --platform sample",
                                           .request = &sample->request,
                                           .series = sample->series,
                                           .series_count = SAMPLE_POLICIES};
}

static inline void sample_fini(struct sample *sample)
{
    for (unsigned p = 0; p < SAMPLE_POLICIES; p++)
        g_free(sample->events[p]);
    duet__request_fini(&sample->request);
}

/* Returns the text of a writer; free with free. */
static inline char *sample_written(void (*write)(FILE *stream, const struct duet__report *report),
                                   const struct duet__report *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    write(stream, report);
    fclose(stream);
    return text;
}

/* Counts how often a text contains another. */
static inline size_t count_of(const char *text, const char *what)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        count++;
    return count;
}

#endif
