/* SPDX-License-Identifier: Apache-2.0 */
/* Closing a runtime: waits, writes the trace and the summary that were asked for, frees. */
#include "runtime/open.h"
#include "runtime/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include <duet/trace.h>

#include "core/engine.h"
#include "nodes/nodes.h"
#include "base/files.h"
#include "trace/trace.h"
#include "trace/bounds.h"

static const struct duet__wires unknown = {0};

struct kept {
    struct duet__times *times;
    struct duet__history *history;
    struct duet_runtime **cores; /* one for each node of a simulation */
    unsigned core_count;
    struct duet__trace trace; /* what is known of the run before it is over */
    char *path, *place;       /* path of the trace; NULL: none is wanted */
    bool report;
};

static void kept_free(void *data)
{
    struct kept *kept = data;
    for (unsigned n = 1; n < kept->core_count; n++)
        duet__core_free(kept->cores[n]);
    g_free(kept->cores);
    duet__times_free(kept->times);
    duet__history_free(kept->history);
    duet__trace_fini(&kept->trace);
    g_free(kept->place);
    g_free(kept->path);
    g_free(kept);
}

char *duet__program_name(const char *path)
{
    char *name = g_path_get_basename(path);
    g_strcanon(name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-.:+", '_');
    if (strlen(name) >= DUET_NAME_MAX)
        name[DUET_NAME_MAX - 1] = 0;
    return name;
}

char *duet__place(const struct duet_config *config, const char *machine)
{
    if (!config->emulate)
        return g_strdup(machine);
    if (!strcmp(config->emulate, "free"))
        return g_strdup_printf("%s with emulated GPUs", machine);
    return g_strdup_printf("an emulated %s (times x %g, nothing computed)", machine,
                           config->scale > 0 ? config->scale : 1);
}

/* Returns a trace's file: "%u" becomes what no other run has, so that each run leaves one. */
static char *trace_name(const char *name)
{
    const char *at = name ? strstr(name, "%u") : NULL;
    if (!at)
        return g_strdup(name);
    return g_strdup_printf("%.*s%" G_GINT64_FORMAT "-%ld%s", (int)(at - name), name,
                           g_get_real_time(), (long)getpid(), at + 2);
}

void duet__remember(struct duet_runtime *runtime, const struct duet_config *config,
                    struct duet__times *times)
{
    struct kept *kept = g_new0(struct kept, 1);
    const char *world = config->simulate ? "simulated" : config->emulate ? "emulated" : "real";
    kept->times = times;
    kept->place = duet__place(config, duet_runtime_machine(runtime)->name);
    kept->path = trace_name(config->trace);
    kept->report = config->report;
    kept->trace = (struct duet__trace){
        .world = g_strdup(world),
        .workload = g_strdup(config->context ? config->context : program_invocation_short_name),
        .policy = g_strdup(config->policy ? config->policy : "ws"),
        .options = duet__settings_text(config),
        .scale = config->scale,
        .platform_file = g_strdup(times ? times->file : NULL),
        .platform_digest = g_strdup(times && times->file ? times->digest : NULL),
        .paje = kept->path && duet__trace_is_paje(kept->path),
        .run.seed = config->seed,
    };
    duet__core_keep(runtime, kept, kept_free);
}

void duet__remember_history(struct duet_runtime *runtime, struct duet__history *history)
{
    struct kept *kept = duet__core_kept(runtime);
    kept->history = history;
}

void duet__remember_cores(struct duet_runtime *runtime, struct duet_runtime **cores, unsigned count)
{
    struct kept *kept = duet__core_kept(runtime);
    kept->cores = cores;
    kept->core_count = count;
}

static void write_run(FILE *stream, const void *trace)
{
    duet__trace_write(stream, trace);
}

static int write_trace(const struct duet_runtime *runtime, const struct duet__run *run,
                       const struct kept *kept, struct duet_message *message)
{
    struct duet__trace trace = kept->trace;
    const bool simulated = !strcmp(trace.world, "simulated");
    trace.run = *run;
    trace.run.seed = kept->trace.run.seed;
    if (!trace.run.recording.machine) /* figures alone are wanted */
        trace.run.recording.machine =
            (struct duet_machine *)(uintptr_t)duet_runtime_machine(runtime);
    if (!duet__nodes_of(runtime))
        trace.run.bounds = duet__bounds(runtime, simulated);
    /* dates of the program's */
    duet__recording_shift(&trace.run.recording, trace.run.stats.first_submit_s);
    (void)duet_choice(runtime, &trace.run.choice);
    trace.run.recording.makespan_s = trace.run.stats.last_end_s;
    if (simulated)
        trace.spent = duet__spent_take(runtime, &trace.spent_count);
    int error = duet__file_write(kept->path, write_run, &trace, message);
    g_free(trace.spent);
    return error;
}

/* The program's own result does not depend on it. */
static void add_to_history(const struct duet_runtime *runtime, const struct kept *kept)
{
    g_autofree char *context = duet__program_name(kept->trace.workload);
    struct duet_message message = {""};
    struct duet__recording recording;
    int error = duet__recording_take(&recording, runtime, true);
    if (error)
        duet_fail(&message, error, "the records have no room in memory");
    else
        error = duet__history_add(kept->history, &recording, context, &message);
    if (error)
        fprintf(stderr, "duet: no kernel times are kept: %s\n", message.text);
    duet__recording_fini(&recording);
}

static void write_bytes(uint64_t bytes, const char *where)
{
    bool many = bytes >= 1000000000;
    fprintf(stderr, ", %.3f %s %s", (double)bytes * (many ? 1e-9 : 1e-6), many ? "GB" : "MB",
            where);
}

/* Rates of tasks that count no flops, and copies where there is no device, are left out. */
static void write_report(const struct duet_runtime *runtime, const struct duet__run *run,
                         const struct kept *kept)
{
    const struct duet_stats *stats = &run->stats;
    fprintf(stderr, "duet: %llu tasks on %s, policy %s: makespan %.6f s",
            (unsigned long long)stats->tasks, kept->place, kept->trace.policy, stats->makespan_s);
    if (stats->flops > 0 && stats->makespan_s > 0)
        fprintf(stderr, ", %.1f GFlop/s", stats->flops / stats->makespan_s * 1e-9);
    if (duet_runtime_machine(runtime)->node_count > 1) {
        write_bytes(stats->bytes_to_device, "in");
        write_bytes(stats->bytes_to_host, "out");
        write_bytes(stats->bytes_between, "between devices");
    }
    if (run->over.nodes > 1)
        write_bytes(run->over.bytes, "between nodes");
    if (stats->reads_on_device)
        fprintf(stderr, ", cache hits %.1f %%",
                100 * (double)stats->read_hits / (double)stats->reads_on_device);
    fputc('\n', stderr);
}

/* An iteration, by its number: the end of its last task; later its duration. */
struct iteration {
    uint32_t number;
    double end_s, took_s;
};

static int by_number(const void *left, const void *right)
{
    const struct iteration *a = left, *b = right;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return (a->end_s > b->end_s) - (a->end_s < b->end_s);
}

static int by_time(const void *left, const void *right)
{
    const struct iteration *a = left, *b = right;
    return (a->took_s > b->took_s) - (a->took_s < b->took_s);
}

/* Makes one iteration of each number, of tasks in order, from the end of the one before. */
static size_t join_iterations(struct iteration *of_tasks, size_t count, double start_s)
{
    size_t joined = 0;
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && of_tasks[i + 1].number == of_tasks[i].number)
            continue;
        double end_s = of_tasks[i].end_s > start_s ? of_tasks[i].end_s : start_s;
        of_tasks[joined++].took_s = end_s - start_s;
        start_s = end_s;
    }
    return joined;
}

/* Writes the iterations of a recorded run whose tasks say which one they are of. */
static void write_iterations(const struct duet__recording *recording)
{
    struct iteration *all = g_new0(struct iteration, recording->event_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        if (event->iteration && !event->failed)
            all[count++] = (struct iteration){event->iteration, event->end_s, 0};
    }
    qsort(all, count, sizeof *all, by_number);
    count = join_iterations(all, count, 0);
    qsort(all, count, sizeof *all, by_time);
    if (count)
        fprintf(stderr, "duet: %zu iterations: median %.6f s, least %.6f s, most %.6f s\n", count,
                all[count / 2].took_s, all[0].took_s, all[count - 1].took_s);
    g_free(all);
}

/* Writes the trace and the summary that were asked for, of the first of several processes. */
static int write_all(const struct duet_runtime *runtime, const struct kept *kept)
{
    struct duet_message message = {""};
    struct duet__run run = {0};
    int error =
        duet__run_take(runtime, duet__records(runtime), kept->path, &unknown, &run, &message);
    if (!error && !duet_node(runtime)) {
        if (kept->report) {
            write_report(runtime, &run, kept);
            if (*run.barred)
                fprintf(stderr, "duet: %s\n", run.barred);
            write_iterations(&run.recording);
        }
        if (kept->path)
            error = write_trace(runtime, &run, kept, &message);
    }
    duet__recording_fini(&run.recording);
    if (error)
        fprintf(stderr, "duet: %s\n", message.text);
    return kept->path ? error : DUET_OK;
}

/* Waits; an error that no earlier wait has told the application is printed. */
static int last_wait(struct duet_runtime *runtime)
{
    struct duet_message told = {""};
    g_strlcpy(told.text, duet_last_message(runtime), sizeof told.text);
    int error = duet_wait(runtime);
    if (error && strcmp(told.text, duet_last_message(runtime)) != 0)
        fprintf(stderr, "duet: %s\n", duet_last_message(runtime));
    return error;
}

int duet_close(struct duet_runtime *runtime)
{
    if (!runtime)
        return DUET_OK;
    int error = duet__may_wait(runtime, "duet_close");
    if (error)
        return error;
    error = last_wait(runtime);
    const struct kept *kept = duet__core_kept(runtime);
    if (kept && (kept->path || kept->report)) {
        int written = write_all(runtime, kept);
        error = error ? error : written;
    }
    if (kept && kept->history)
        add_to_history(runtime, kept);
    duet__nodes_free(duet__nodes_of(runtime));
    duet__core_free(runtime);
    return error;
}
