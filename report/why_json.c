/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an explanation of a run for programs. */
#include <inttypes.h>

#include "base/json.h"
#include "report/why.h"
#include "trace/released.h"

const char *const duet__state_names[] = {
    [DUET_STATE_KERNEL] = "kernel",
    [DUET_STATE_TO_DEVICE_QUEUE] = "to_device_queue",
    [DUET_STATE_TO_DEVICE] = "to_device",
    [DUET_STATE_TO_HOST_QUEUE] = "to_host_queue",
    [DUET_STATE_TO_HOST] = "to_host",
    [DUET_STATE_BETWEEN_QUEUE] = "between_queue",
    [DUET_STATE_MESSAGE_QUEUE] = "message_queue",
    [DUET_STATE_MESSAGE] = "message",
    [DUET_STATE_BETWEEN] = "between",
    [DUET_STATE_ROOM] = "room",
    [DUET_STATE_OVERHEAD] = "overhead",
    [DUET_STATE_ELSEWHERE] = "elsewhere",
    [DUET_STATE_BEFORE] = "before",
    [DUET_STATE_WITHIN] = "within",
    [DUET_STATE_AFTER] = "after",
    [DUET_STATE_LOST] = "lost",
};

static void put_path(struct duet__json_writer *json, const struct duet__why *why)
{
    const struct duet__recording *recording = &why->trace->run.recording;

    duet__json_print(json, "\n path: {hindered_s: %g, parts: [", why->path->hindered_s);
    for (guint i = 0; i < why->path->parts->len; i++) {
        const struct duet__path_part *part =
            &g_array_index(why->path->parts, struct duet__path_part, i);
        g_autofree char *what = duet__why_part(why, part);

        duet__json_print(json, "\n  {state: %s, what: %s, count: %zu, seconds: %g}",
                         duet__state_names[part->state], what, part->count, part->seconds);
    }
    duet__json_print(json, "]\n  steps: [");
    for (guint i = 0; i < why->path->steps->len; i++) {
        const struct duet__step *step = &g_array_index(why->path->steps, struct duet__step, i);
        const struct duet_event *event = &recording->events[step->event];
        const bool task = event->kind == DUET_EVENT_TASK;

        duet__json_print(json, "\n  {state: %s, start_s: %g, end_s: %g",
                         duet__state_names[step->state], step->start_s, step->end_s);
        duet__json_put_integer(json, task ? "task" : "handle", event->id);
        if (task)
            duet__json_print(json, "kernel: %s, worker: %s",
                             duet__recording_kernel(recording, event),
                             recording->machine->workers[event->worker].name);
        else
            duet__json_print(json, "source: %s, destination: %s",
                             recording->machine->nodes[event->source].name,
                             recording->machine->nodes[event->destination].name);
        if (step->state == DUET_STATE_KERNEL)
            duet__json_put_string(json, "after", duet__release_names[step->after]);
        duet__json_end(json, '}');
    }
    duet__json_print(json, "]}");
}

static void put_machine(struct duet__json_writer *json, const struct duet__why *why)
{
    const struct duet_machine *machine = why->trace->run.recording.machine;

    duet__json_print(json, "\n workers: [");
    for (unsigned i = 0; i < machine->worker_count; i++) {
        duet__json_print(json, "\n  {name: %s, architecture: %s", machine->workers[i].name,
                         machine->archs[machine->workers[i].arch].name);
        duet__json_print(json, "seconds: {");
        for (unsigned state = 0; state < DUET_STATES; state++)
            duet__json_put_number(json, duet__state_names[state],
                                  why->account->workers_s[i][state]);
        duet__json_print(json, "}}");
    }
    duet__json_print(json, "]\n memories: [");
    for (unsigned i = 0; i < machine->node_count; i++) {
        const struct duet__node_use *use = &why->uses[i];

        duet__json_print(json,
                         "\n  {name: %s, in_bytes: %" PRIu64 ", in_s: %g, again_bytes: %" PRIu64
                         ", out_bytes: %" PRIu64 ", out_s: %g, peak_bytes: %" PRIu64
                         ", capacity_bytes: %" PRIu64 "}",
                         machine->nodes[i].name, use->in_bytes, use->in_s, use->again_bytes,
                         use->out_bytes, use->out_s, use->peak_bytes,
                         machine->nodes[i].capacity_bytes);
    }
    duet__json_print(json, "]");
}

static void put_changes(struct duet__json_writer *json, const struct duet__why *why)
{
    duet__json_print(json, "\n what_if: {platform: %s, reference_s: %g, guess: %s, changes: [",
                     why->simulated, why->what_if->reference_s, why->what_if->guess);
    for (guint i = 0; i < why->what_if->changes->len; i++) {
        const struct duet__change *change =
            &g_array_index(why->what_if->changes, struct duet__change, i);

        duet__json_print(json,
                         "\n  {what: %s, buys: %d, bound: %d, makespan_s: %g, gain: %g, error: %s}",
                         change->what, change->buys, change->bound, change->makespan_s,
                         1 - change->makespan_s / why->what_if->reference_s, change->why);
    }
    duet__json_print(json, "]}");
}

void duet__why_write_json(FILE *stream, const struct duet__why *why)
{
    struct duet__json_writer json = {.stream = stream};
    const struct duet__trace *trace = why->trace;
    enum duet__cause cause;
    g_autofree char *sentence = duet__why_sentence(why, &cause);

    duet__json_print(&json,
                     "{schema: 1, command: %s, trace: %s\n world: %s, workload: %s, n: %" PRIu64
                     ", tile: %" PRIu64
                     ", policy: %s, platform: %s, estimated: %s\n makespan_s: %g, cause: %s"
                     "\n sentence: %s, barred: %s",
                     why->command, why->path_name, trace->world, trace->workload, trace->n,
                     trace->tile, trace->policy, trace->run.recording.machine->name,
                     trace->estimated, why->account->makespan_s, duet__cause_name(cause), sentence,
                     *trace->run.barred ? trace->run.barred : NULL);
    put_path(&json, why);
    put_machine(&json, why);
    if (why->what_if)
        put_changes(&json, why);
    else
        duet__json_print(&json, "\n what_if: null");
    duet__json_end(&json, '}');
    putc('\n', stream);
}
