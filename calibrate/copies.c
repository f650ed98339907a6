/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring copies between all memories of a machine: of one pair with nothing beside them, and of
 * two pairs at the same time.
 */
#include "calibrate/copies.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/microbench.h"

enum {
    MEMORY_MIB = 256, /* of the host that copies come from and go to, at most */
    LEAST_MIB = 64,
    A_SECOND_MIB = 128, /* at most, for each second: it is written first */
    MIB = 1 << 20,
    MEMORY_SHARE = 8, /* at most this part of the free memory */
    DEVICE_SHARE = 4,
};

static const double SHARE = 0.7; /* part of the time for copies alone; the rest is for copies at the
                                    same time */

struct copying {
    struct duet__microbench bench;
    struct duet__copies *out;
    struct duet_codelet *fill; /* fills its data on emulated devices, else does nothing */
    size_t memory_bytes;       /* of the host */
    size_t used_bytes;         /* part of the memory, from its beginning, that the last copies
                                  used */
};

/* Writes its data: memory that was never written is read faster. */
static int run_fill(const struct duet_call *call)
{
    for (size_t i = 0; i < call->buffer_count; i++) {
        const struct duet_buffer *buffer = &call->buffers[i];
        if (buffer->data)
            memset(buffer->data, 1, buffer->rows * buffer->cols * buffer->element_bytes);
    }
    return DUET_OK;
}

/* Returns the index of the pair from node `source` to node `destination`, which must exist. */
static size_t find_pair(const struct duet__copies *copies, unsigned source, unsigned destination)
{
    size_t i = 0;
    while (copies->pairs[i].source != source || copies->pairs[i].destination != destination)
        i++;
    return i;
}

/* Returns the worker of a node; of the host, the first one. */
static unsigned worker_of(const struct copying *copying, unsigned node)
{
    unsigned worker = 0;
    while (copying->bench.machine->workers[worker].node != node)
        worker++;
    return worker;
}

/* Most bytes of a handle if `count` handles are on a device at once. */
static size_t most_bytes(const struct copying *copying, unsigned count)
{
    const struct duet_machine *machine = copying->bench.machine;
    uint64_t most = copying->memory_bytes;
    for (unsigned n = 1; n < machine->node_count; n++)
        most = MIN(most, machine->nodes[n].capacity_bytes / DEVICE_SHARE / count);
    return most;
}

/* Makes all pairs, those with the host first. */
static void make_pairs(struct duet__copies *out, const struct duet_machine *machine)
{
    unsigned nodes = machine->node_count;
    out->node_count = nodes;
    out->pairs = g_new0(struct duet__copy_pair, (gsize)nodes * nodes);
    out->together = g_new0(struct duet__together, (gsize)nodes * nodes);
    for (unsigned with_host = 0; with_host < 2; with_host++)
        for (unsigned s = 0; s < nodes; s++)
            for (unsigned d = 0; d < nodes; d++)
                if (s != d && (s == DUET_HOST || d == DUET_HOST) == !with_host)
                    out->pairs[out->pair_count++] = (struct duet__copy_pair){
                        .source = s,
                        .destination = d,
                        .direct = duet_machine_route(machine, s, d)->direct,
                    };
}

/* Allocates the host's memory, page-locked if possible. */
static void make_memory(struct copying *copying, bool touch)
{
    struct duet__microbench *bench = &copying->bench;
    long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_AVPHYS_PAGES);
    double mib = fmin(MEMORY_MIB, (bench->given->end_s - duet__clock_s()) * A_SECOND_MIB);
    int error = DUET_ENOMEM;
    if (pages > 0)
        mib = fmin(mib, (double)pages * (double)page / MEMORY_SHARE / MIB);
    copying->memory_bytes = (size_t)fmax(mib, LEAST_MIB) * MIB;
    bench->memory = aligned_alloc((size_t)page, copying->memory_bytes);
    if (!bench->memory) {
        duet__microbench_note(bench, error);
        return;
    }
    if (touch) /* memory that was never written is read faster */
        memset(bench->memory, 1, copying->memory_bytes);
    error = duet_pin(bench->runtime, bench->memory, copying->memory_bytes);
    /* ordinary memory is slower, as it is for applications then */
    duet__microbench_note(bench, error == DUET_ENOMEM ? DUET_OK : error);
}

/* ------------------------------------------------------------------------------------------- */
/* Alone: a task on the source writes the data, one on the destination reads it, in turn; the
 * records have each copy */

enum {
    SMALLEST = 4096, /* bytes */
    LARGEST = 1 << 26,
    GROWTH = 4,
    REPETITIONS = 5,
    LEAST_SIZES = 4, /* whatever the time they take */
};

static const double LONGEST_S = 5e-3; /* larger copies tell nothing more */

/* Adds the copies from `source` to `destination` of these records; through the host there are two.
 * Returns the seconds of the longest. */
static double add_copies(GArray *samples, const struct duet__copy_pair *pair,
                         const struct duet_event *events, size_t count)
{
    double begin_s = -1, longest_s = 0;
    for (size_t i = 0; i < count; i++) {
        const struct duet_event *copy = &events[i];
        if (copy->kind != DUET_EVENT_COPY || copy->failed)
            continue;
        if (copy->source == pair->source)
            begin_s = copy->start_s;
        if (copy->destination != pair->destination || begin_s < 0)
            continue;
        const struct duet__copy_sample sample = {(double)copy->bytes, copy->end_s - begin_s};
        g_array_append_val(samples, sample);
        longest_s = fmax(longest_s, sample.seconds);
        begin_s = -1;
    }
    return longest_s;
}

/* Copies data that is not on the devices yet, from the part of the host's memory that was used
 * longest ago, so that no cache has it. */
static void copy_once(struct copying *copying, const struct duet__copy_pair *pair, size_t bytes)
{
    struct duet__microbench *bench = &copying->bench;
    struct duet_handle *data;
    if (copying->used_bytes + bytes > copying->memory_bytes)
        copying->used_bytes = 0;
    data = duet__microbench_vector(bench, (char *)bench->memory + copying->used_bytes, bytes);
    copying->used_bytes += bytes;
    const struct duet_access write = {data, DUET_W}, read = {data, DUET_R};
    duet__microbench_submit(bench, copying->fill, worker_of(copying, pair->source), &write, 1,
                            NULL);
    duet__microbench_submit(bench, bench->empty, worker_of(copying, pair->destination), &read, 1,
                            NULL);
    duet__microbench_forget(bench, data);
}

static void measure_pair(struct copying *copying, struct duet__copy_pair *pair, double end_s)
{
    GArray *samples = g_array_new(FALSE, FALSE, sizeof(struct duet__copy_sample));
    size_t most = MIN(most_bytes(copying, 1), LARGEST), bytes = SMALLEST;
    double last_s = 0;
    for (unsigned sizes = 0; bytes <= most && duet__microbench_goes_on(&copying->bench); sizes++) {
        struct duet_event *events;
        size_t count;
        if (sizes >= LEAST_SIZES && (last_s * GROWTH > LONGEST_S || duet__clock_s() > end_s))
            break;
        duet_stats_reset(copying->bench.runtime);
        for (unsigned i = 0; i < REPETITIONS; i++)
            copy_once(copying, pair, bytes);
        count = duet__microbench_events(&copying->bench, &events);
        last_s = add_copies(samples, pair, events, count);
        free(events);
        bytes *= GROWTH;
    }
    duet__copies_fit((const struct duet__copy_sample *)(void *)samples->data, samples->len, pair);
    g_array_unref(samples);
}

/* ------------------------------------------------------------------------------------------- */
/* Together: a task at each destination reads several handles, which are all fetched at once. Copies
 * count if the other pair's copies have surrounded them */

enum {
    COPIES = 5, /* of a pair */
    MEETINGS = 2,
    ATTEMPTS = 60, /* more are made if the two sides missed each other, as on a busy machine */
    LARGEST_BESIDE = 1 << 24,
};

static const double GOAL_S = 1.5e-3; /* of one copy alone: long compared with its latency */

/* Copies of one pair. */
struct side {
    const struct duet__copy_pair *pair;
    struct duet_access accesses[COPIES];
    double bytes, seconds; /* of its copies that count */
};

static void make_side(struct copying *copying, struct side *side, size_t pair, unsigned which)
{
    size_t half = copying->memory_bytes / 2, bytes;
    char *memory = (char *)copying->bench.memory + which * half;
    side->pair = &copying->out->pairs[pair];
    bytes = (size_t)fmin(GOAL_S * side->pair->bandwidth_Bps, LARGEST_BESIDE);
    bytes = MIN(bytes, MIN(most_bytes(copying, COPIES), half / COPIES));
    bytes = MAX(bytes / SMALLEST, 1) * SMALLEST;
    for (unsigned i = 0; i < COPIES; i++)
        side->accesses[i].handle =
            duet__microbench_vector(&copying->bench, memory + i * bytes, bytes);
}

static void submit(struct copying *copying, struct side *side, enum duet_mode mode)
{
    struct duet__microbench *bench = &copying->bench;
    unsigned node = mode == DUET_W ? side->pair->source : side->pair->destination;
    for (unsigned i = 0; i < COPIES; i++)
        side->accesses[i].mode = mode;
    duet__microbench_submit(bench, mode == DUET_W ? copying->fill : bench->empty,
                            worker_of(copying, node), side->accesses, COPIES, NULL);
}

/* Submits the reading tasks. The host's worker is the application's thread: it fetches when it
 * waits, one task after the other, so both pairs to the host go into one task. */
static void submit_reads(struct copying *copying, struct side sides[2])
{
    struct duet_access both[2 * COPIES];
    if (sides[0].pair->destination != DUET_HOST || sides[1].pair->destination != DUET_HOST) {
        submit(copying, &sides[0], DUET_R);
        submit(copying, &sides[1], DUET_R);
        return;
    }
    for (unsigned i = 0; i < 2 * COPIES; i++)
        both[i] = (struct duet_access){sides[i % 2].accesses[i / 2].handle, DUET_R};
    duet__microbench_submit(&copying->bench, copying->bench.empty, 0, both, 2 * COPIES, NULL);
}

static bool is_of(const struct side *side, const struct duet_event *event)
{
    return event->kind == DUET_EVENT_COPY && event->source == side->pair->source &&
           event->destination == side->pair->destination;
}

/* Adds the copies of one side that those of the other have surrounded. */
static void add_surrounded(struct side *side, const struct side *other,
                           const struct duet_event *events, size_t count)
{
    double begin_s = INFINITY, end_s = 0; /* of the other side */
    for (size_t i = 0; i < count; i++) {
        if (is_of(other, &events[i])) {
            begin_s = fmin(begin_s, events[i].start_s);
            end_s = fmax(end_s, events[i].end_s);
        }
    }
    for (size_t i = 0; i < count; i++) {
        const struct duet_event *copy = &events[i];
        if (!is_of(side, copy) || copy->start_s < begin_s || copy->end_s > end_s)
            continue;
        side->bytes += (double)copy->bytes;
        side->seconds += copy->end_s - copy->start_s - side->pair->latency_s;
    }
}

static void copy_together(struct copying *copying, struct side sides[2])
{
    struct duet_event *events;
    size_t count;
    submit(copying, &sides[0], DUET_W);
    submit(copying, &sides[1], DUET_W);
    duet__microbench_wait(&copying->bench);
    duet_stats_reset(copying->bench.runtime);
    submit_reads(copying, sides);
    count = duet__microbench_events(&copying->bench, &events);
    add_surrounded(&sides[0], &sides[1], events, count);
    add_surrounded(&sides[1], &sides[0], events, count);
    free(events);
}

/* Bytes a second; those of the pair alone if no copy was surrounded: the sides have not met. */
static double side_rate(const struct side *side)
{
    return side->bytes > 0 && side->seconds > 0 ? side->bytes / side->seconds
                                                : side->pair->bandwidth_Bps;
}

static void measure_two(struct copying *copying, size_t first, size_t second)
{
    struct duet__copies *out = copying->out;
    struct side sides[2] = {{NULL}};
    make_side(copying, &sides[0], first, 0);
    make_side(copying, &sides[1], second, 1);
    for (unsigned i = 0; i < ATTEMPTS && duet__microbench_goes_on(&copying->bench); i++) {
        if (i >= MEETINGS && sides[0].bytes > 0 && sides[1].bytes > 0)
            break;
        copy_together(copying, sides);
    }
    for (unsigned i = 0; i < 2 * COPIES; i++)
        duet__microbench_forget(&copying->bench, sides[i % 2].accesses[i / 2].handle);
    out->together[out->together_count++] =
        (struct duet__together){first, second, side_rate(&sides[0]), side_rate(&sides[1])};
}

/* ------------------------------------------------------------------------------------------- */

static void measure_pairs(struct copying *copying, bool touch)
{
    struct duet__copies *out = copying->out;
    unsigned nodes = copying->bench.machine->node_count;
    double begin_s, a_pair_s;
    copying->fill = duet__microbench_kernel(&copying->bench, "calibrate_fill", NULL, run_fill);
    make_pairs(out, copying->bench.machine);
    make_memory(copying, touch);
    if (copying->bench.error)
        return;
    begin_s = duet__clock_s();
    a_pair_s = (duet__microbench_share(&copying->bench, SHARE) - begin_s) / (double)out->pair_count;
    for (size_t i = 0; i < out->pair_count; i++)
        measure_pair(copying, &out->pairs[i], begin_s + a_pair_s * (double)(i + 1));
    for (unsigned a = 1; a < nodes; a++) {
        size_t in = find_pair(out, DUET_HOST, a), back = find_pair(out, a, DUET_HOST);
        measure_two(copying, in, back);
        for (unsigned b = a + 1; b < nodes; b++) {
            measure_two(copying, in, find_pair(out, DUET_HOST, b));
            measure_two(copying, back, find_pair(out, b, DUET_HOST));
        }
    }
}

int duet__copies_measure(const struct duet__measurement *given, struct duet__copies *out)
{
    const char *emulate = given->config->emulate;
    struct copying copying = {.out = out};
    int error;
    *out = (struct duet__copies){0};
    if (given->config->gpus == 0)
        return DUET_OK;
    /* emulated times need no memory that was written */
    if (duet__microbench_open(&copying.bench, given, "pinned", 1, INT_MAX) &&
        copying.bench.machine->node_count > 1)
        measure_pairs(&copying, !emulate || strcmp(emulate, "free") == 0);
    error = duet__microbench_close(&copying.bench);
    if (error)
        duet__copies_fini(out);
    else
        duet__copies_infer(out);
    return error;
}

void duet__copies_fini(struct duet__copies *copies)
{
    g_free(copies->pairs);
    g_free(copies->together);
    g_free(copies->switches);
    g_free(copies->to_device_Bps);
    g_free(copies->to_host_Bps);
    *copies = (struct duet__copies){0};
}
