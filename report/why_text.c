/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an explanation of a run as tables. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/report.h"
#include "base/table.h"
#include "report/why.h"

enum {
    MOST_WORKERS = 32, /* workers with a row each; also of memories, or of the hosts' alone */
};

static const double far = 0.1; /* relative difference from the run: simulations then tell little of
                                  it */

static double makespan_of(const struct duet__why *why)
{
    return fmax(why->account->makespan_s, 1e-300);
}

/* Returns a share in percent; NaN for 0. */
static double percent(double share)
{
    return share < 0.0005 ? NAN : 100 * share;
}

/* Returns gibibytes; NaN for 0, which means not known. */
static double gibibytes(uint64_t bytes)
{
    return bytes ? (double)bytes / 0x1p30 : NAN;
}

static void put_head(FILE *stream, const struct duet__why *why)
{
    const struct duet__trace *trace = why->trace;
    const struct duet__recording *recording = &trace->run.recording;
    g_autofree char *resources = duet__report_resources(trace->run.recording.machine), *sentence;
    g_autoptr(GString) text = g_string_new(NULL);
    enum duet__cause cause;

    g_string_append_printf(text, "%s: ", why->path_name);
    if (trace->workload && *trace->workload)
        g_string_append_printf(text, "%s, ", trace->workload);
    if (trace->n)
        g_string_append_printf(text, "n %" PRIu64 ", ", trace->n);
    if (trace->tile)
        g_string_append_printf(text, "tile %" PRIu64 ", ", trace->tile);
    if (trace->policy)
        g_string_append_printf(text, "%s, ", trace->policy);
    g_string_append_printf(text, "on %s with %s: %.5g s", trace->run.recording.machine->name,
                           resources, why->account->makespan_s);
    if (trace->world)
        g_string_append_printf(text, " (%s)", trace->world);
    if (trace->estimated)
        g_string_append_printf(text, "; estimated, not measured: times of %s", trace->estimated);
    for (size_t i = 0; i < recording->mark_count; i++)
        if (recording->marks[i].lost)
            g_string_append_printf(
                text, "; %s was lost at %.5g s, and is there all the time in what is simulated",
                duet__recording_name(recording, recording->marks[i].name),
                recording->marks[i].start_s);
    duet__put_wrapped(stream, text->str, 0);
    sentence = duet__why_sentence(why, &cause);
    putc('\n', stream);
    duet__put_wrapped(stream, sentence, 0);
    if (*trace->run.barred)
        duet__put_wrapped(stream, trace->run.barred, 0);
}

/* Writes a warning if gains are of another run. */
static void put_doubt(FILE *stream, const struct duet__why *why)
{
    const double ratio = why->what_if ? why->what_if->reference_s / makespan_of(why) : 1;

    if (fabs(ratio - 1) > far)
        fprintf(stream,
                "Simulated without a change it takes %.0f %% %s than this run: gains are of "
                "that.\n",
                100 * fabs(ratio - 1), ratio < 1 ? "less" : "more");
}

/* Writes the largest gain, and the largest that needs nothing new. */
static void put_advice(FILE *stream, const struct duet__why *why)
{
    const struct duet__change *any = NULL, *setting = NULL;
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; why->what_if && i < why->what_if->changes->len; i++) {
        const struct duet__change *change =
            &g_array_index(why->what_if->changes, struct duet__change, i);

        if (change->bound || !(change->makespan_s < why->what_if->reference_s * 0.995))
            continue;
        any = any ? any : change;
        setting = setting || change->buys ? setting : change;
    }
    put_doubt(stream, why);
    if (why->what_if && why->what_if->guess)
        fprintf(stream,
                "Nothing is advised: without a change it rests on a guess, the time of %s.\n",
                why->what_if->guess);
    if (!any)
        return;
    g_string_append_printf(text, "Most would help: %s (%.1f %% of the time less)", any->what,
                           100 * (1 - any->makespan_s / why->what_if->reference_s));
    if (setting && setting != any)
        g_string_append_printf(text, "; of settings: %s (%.1f %%)", setting->what,
                               100 * (1 - setting->makespan_s / why->what_if->reference_s));
    g_string_append_c(text, '.');
    duet__put_wrapped(stream, text->str, 0);
}

static void put_parts(FILE *stream, const struct duet__why *why)
{
    struct duet__table table;

    duet__table_init(&table, "trrr");
    duet__table_print(&table, "critical path\ttimes\ts\t%%");
    for (guint i = 0; i < why->path->parts->len; i++) {
        const struct duet__path_part *part =
            &g_array_index(why->path->parts, struct duet__path_part, i);

        duet__table_add(&table, duet__why_part(why, part));
        duet__table_print(&table, "%zu\t%.5g\t%.1f", part->count, part->seconds,
                          percent(part->seconds / makespan_of(why)));
    }
    putc('\n', stream);
    duet__table_put(&table, stream, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Workers and memories                                                                         */

/* Columns of the table: ranges of states, with two lines of heading. */
static const struct {
    const char *heads[2];
    enum duet__state first, end;
} columns[] = {
    {{"runs", "%"}, DUET_STATE_KERNEL, DUET_STATE_KERNEL},
    {{"to GPU", "queue"}, DUET_STATE_TO_DEVICE_QUEUE, DUET_STATE_TO_DEVICE_QUEUE},
    {{"to GPU", "copy"}, DUET_STATE_TO_DEVICE, DUET_STATE_TO_DEVICE},
    {{"to host", "%"}, DUET_STATE_TO_HOST_QUEUE, DUET_STATE_TO_HOST},
    {{"GPU-GPU", "queue"}, DUET_STATE_BETWEEN_QUEUE, DUET_STATE_BETWEEN_QUEUE},
    {{"GPU-GPU", "copy"}, DUET_STATE_BETWEEN, DUET_STATE_BETWEEN},
    {{"mes-", "sages"}, DUET_STATE_MESSAGE_QUEUE, DUET_STATE_MESSAGE},
    {{"room", "%"}, DUET_STATE_ROOM, DUET_STATE_ROOM},
    {{"over-", "head"}, DUET_STATE_OVERHEAD, DUET_STATE_OVERHEAD},
    {{"else-", "where"}, DUET_STATE_ELSEWHERE, DUET_STATE_ELSEWHERE},
    {{"none", "first"}, DUET_STATE_BEFORE, DUET_STATE_BEFORE},
    {{"none", "within"}, DUET_STATE_WITHIN, DUET_STATE_WITHIN},
    {{"none", "after"}, DUET_STATE_AFTER, DUET_STATE_LOST},
};

/* True if the machine has the column: messages need several nodes. */
static bool has_column(const struct duet_machine *machine, size_t column)
{
    return columns[column].end != DUET_STATE_MESSAGE || duet__host_count(machine) > 1;
}

/* Adds the row of the workers of an architecture, or of one worker. */
static void put_worker(struct duet__table *table, const struct duet__why *why, unsigned first,
                       unsigned count, const unsigned *workers)
{
    for (size_t i = 0; i < G_N_ELEMENTS(columns); i++) {
        double seconds = 0;

        if (!has_column(why->trace->run.recording.machine, i))
            continue;
        for (unsigned k = first; k < first + count; k++)
            for (unsigned state = columns[i].first; state <= columns[i].end; state++)
                seconds += why->account->workers_s[workers[k]][state];
        duet__table_print(table, "%.1f", percent(seconds / (count * makespan_of(why))));
    }
}

static void put_workers(FILE *stream, const struct duet__why *why)
{
    const struct duet_machine *machine = why->trace->run.recording.machine;
    g_autofree unsigned *workers = g_new(unsigned, machine->worker_count);
    struct duet__table table;

    duet__table_init(&table, duet__host_count(machine) > 1 ? "trrrrrrrrrrrrr" : "trrrrrrrrrrrr");
    for (unsigned line = 0; line < 2; line++) {
        duet__table_say(&table, line ? "" : "% of the time");
        for (size_t i = 0; i < G_N_ELEMENTS(columns); i++)
            if (has_column(machine, i))
                duet__table_say(&table, columns[i].heads[line]);
    }
    for (unsigned arch = 0, used = 0; arch < machine->arch_count; arch++) {
        const unsigned first = used;

        for (unsigned i = 0; i < machine->worker_count; i++)
            if (machine->workers[i].arch == arch)
                workers[used++] = i;
        if (used == first)
            continue;
        duet__table_print(&table, "%u x %s", used - first, machine->archs[arch].name);
        put_worker(&table, why, first, used - first, workers);
        for (unsigned i = first; i < used && machine->worker_count <= MOST_WORKERS; i++) {
            duet__table_print(&table, "  %s", machine->workers[workers[i]].name);
            put_worker(&table, why, i, 1, workers);
        }
    }
    putc('\n', stream);
    duet__table_put(&table, stream, 0);
}

static void put_memories(FILE *stream, const struct duet__why *why)
{
    const struct duet_machine *machine = why->trace->run.recording.machine;
    struct duet__table table;

    if (machine->node_count < 2)
        return;
    duet__table_init(&table, "trrrrrrr");
    duet__table_print(&table, "memory\tin\tbusy\tagain\tout\tbusy\tmost\tof\t"
                              "\tGB\t%%\tGB\tGB\t%%\tGiB\tGiB");
    for (unsigned i = 0; i < machine->node_count; i++) {
        const struct duet__node_use *use = &why->uses[i];

        if (machine->node_count > MOST_WORKERS && !duet__is_host(machine, i))
            continue;
        duet__table_print(&table, "%s\t%.3f\t%.1f\t%.3f\t%.3f\t%.1f\t%.3f\t%.3f",
                          machine->nodes[i].name, (double)use->in_bytes / 1e9,
                          percent(use->in_s / makespan_of(why)), (double)use->again_bytes / 1e9,
                          (double)use->out_bytes / 1e9, percent(use->out_s / makespan_of(why)),
                          gibibytes(use->peak_bytes), gibibytes(machine->nodes[i].capacity_bytes));
    }
    putc('\n', stream);
    duet__table_put(&table, stream, 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Changes                                                                                      */

static void put_changes(FILE *stream, const struct duet__why *why)
{
    const struct duet__what_if *what_if = why->what_if;
    struct duet__table table;

    if (!what_if)
        return;
    duet__table_init(&table, "trr");
    duet__table_print(&table, "what if\ts\t%%\tnothing changes (simulated on %s)\t%.5g\t",
                      why->simulated, what_if->reference_s);
    for (guint i = 0; i < what_if->changes->len; i++) {
        const struct duet__change *change =
            &g_array_index(what_if->changes, struct duet__change, i);

        duet__table_say(&table, change->what);
        if (isnan(change->makespan_s))
            duet__table_remark(&table, change->why);
        else
            duet__table_print(&table, "%.5g\t%.1f %s", change->makespan_s,
                              100 * fabs(1 - change->makespan_s / what_if->reference_s),
                              change->makespan_s > what_if->reference_s ? "more" : "less");
    }
    putc('\n', stream);
    duet__table_put(&table, stream, 0);
}

void duet__why_write_text(FILE *stream, const struct duet__why *why)
{
    put_head(stream, why);
    put_advice(stream, why);
    put_parts(stream, why);
    put_workers(stream, why);
    put_memories(stream, why);
    put_changes(stream, why);
}
