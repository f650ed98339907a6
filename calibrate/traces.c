/* SPDX-License-Identifier: Apache-2.0 */
/* Reads earlier runs from their traces. */
#include <inttypes.h>
#include <string.h>

#include "calibrate/calibrate.h"
#include "trace/trace.h"
#include "runtime/open.h"

/* Checks that a trace is of real runs on machines like this one. */
static int check_trace(const struct duet__calibrating *c, const struct duet__trace *trace,
                       const char *path, struct duet_message *message)
{
    const struct duet_machine *here = &c->info.machine, *there = trace->run.recording.machine;
    if (g_strcmp0(trace->world, "simulated") == 0)
        return duet_fail(message, DUET_EINVAL,
                         "%.300s is of a simulation: nothing was measured in it", path);
    if (duet__host_count(there) > 1)
        return duet_fail(message, DUET_EINVAL,
                         "%.300s is of several nodes: kernel times are taken from runs on one",
                         path);
    for (unsigned w = 0; w < there->worker_count; w++) {
        const char *arch = there->archs[there->workers[w].arch].name;
        unsigned a = 0;
        while (a < here->arch_count && strcmp(here->archs[a].name, arch) != 0)
            a++;
        if (a == here->arch_count)
            return duet_fail(message, DUET_EINVAL,
                             "%.300s was recorded on %s, whose %s this machine has not: calibrate "
                             "there",
                             path, there->name, arch);
    }
    return DUET_OK;
}

/* Returns a number, from 1, that is equal for equal texts. */
static uint64_t number_of(GHashTable *numbers, const char *text)
{
    guint found = GPOINTER_TO_UINT(g_hash_table_lookup(numbers, text));
    if (!found) {
        found = g_hash_table_size(numbers) + 1;
        g_hash_table_insert(numbers, g_strdup(text), GUINT_TO_POINTER(found));
    }
    return found;
}

/* Returns the setup of runs of this problem, which is not measured again; else a new one. */
static struct duet__setup *setup_of(struct duet__calibrating *c, uint64_t problem,
                                    const struct duet__setup *own)
{
    if (problem > c->setups->len)
        g_array_append_val(c->setups, *own);
    return duet__setup_at(c, (guint)problem - 1);
}

/* Adds the runs of a trace, whose recording it takes over. */
static void add_runs(struct duet__calibrating *c, struct duet__request *runs,
                     struct duet__trace *trace, GHashTable *problems, GHashTable *repeats)
{
    const struct duet_machine *machine = trace->run.recording.machine;
    char *name = duet__program_name(trace->workload ? trace->workload : "unknown");
    struct duet__workload *workload = duet__request_keep(runs, g_new0(struct duet__workload, 1));
    struct duet__setup own = {.workload = workload,
                              .problem = {.n = trace->n, .tile = trace->tile, .precision = '-'},
                              .failed = true};
    for (unsigned w = 0; w < machine->worker_count; w++)
        *(machine->workers[w].node == DUET_HOST ? &own.cpus : &own.gpus) += 1;
    own.devices = own.gpus > 0;
    workload->name = duet__request_keep(runs, name);
    g_autofree char *problem = g_strdup_printf("%s\n%s\n%" PRIu64 " %" PRIu64 " %d %d", name,
                                               trace->settings ? trace->settings : "", trace->n,
                                               trace->tile, own.cpus, own.gpus);
    g_autofree char *repeated =
        g_strdup_printf("%s\n%s", problem, trace->policy ? trace->policy : "");
    struct duet__recorded_run run = {.recording = trace->run.recording,
                                     .context = name,
                                     .repeats = number_of(repeats, repeated),
                                     .problem = number_of(problems, problem)};
    struct duet__setup *setup = setup_of(c, run.problem, &own);
    trace->run.recording = (struct duet__recording){0};
    for (size_t i = 0; i < run.recording.event_count; i++)
        setup->tasks += run.recording.events[i].kind == DUET_EVENT_TASK;
    duet__setup_count(setup, run.recording.makespan_s);
    g_array_append_val(c->runs, run);
}

int duet__calibrating_read(struct duet__calibrating *c, struct duet__request *runs,
                           struct duet_message *message)
{
    g_autoptr(GHashTable) problems = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) repeats = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const GPtrArray *paths = c->request->traces;
    int error = DUET_OK;
    for (guint i = 0; i < paths->len && !error; i++) {
        struct duet__trace trace;
        error = duet__trace_load(paths->pdata[i], &trace, message);
        if (!error)
            error = check_trace(c, &trace, paths->pdata[i], message);
        if (!error)
            add_runs(c, runs, &trace, problems, repeats);
        duet__trace_fini(&trace);
    }
    return error;
}
