/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring copies between all memories of a machine: of one pair with nothing beside them, and of
 * two pairs at the same time.
 */

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

/* ------------------------------------------------------------------------------------------- */
/* The fit of latency and bandwidth                                                             */

enum { ROUNDS = 50 };

static const double TINY = 1e-6; /* relative errors below count alike, so that weights are finite */

struct line {
    double latency_s, byte_s;
};

/* A copy, and the median time of its size. Errors are relative to the median: relative to their own
 * times, the shortest of scattered times would have the most weight. */
struct timed {
    struct duet__copy_sample copy;
    double usual_s;
};

static double relative(const struct line *line, const struct timed *t)
{
    return fabs(line->latency_s + line->byte_s * t->copy.bytes - t->copy.seconds) / t->usual_s;
}

/* Weighted least squares; weights come from `line`, or if that is NULL, from relative errors. */
static struct line solve(const struct timed *timed, size_t count, const struct line *line)
{
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, determinant;
    struct line out;
    for (size_t i = 0; i < count; i++) {
        double x = timed[i].copy.bytes, y = timed[i].copy.seconds;
        double weight = 1 / (timed[i].usual_s * timed[i].usual_s);
        if (line)
            weight /= fmax(TINY, relative(line, &timed[i]));
        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
    }
    determinant = w * wxx - wx * wx;
    out = (struct line){(wy * wxx - wx * wxy) / determinant, (w * wxy - wx * wy) / determinant};
    /* one size, or times that do not grow: all of it is bandwidth */
    if (!(determinant > 1e-12 * w * wxx) || !(out.latency_s > 0) || !(out.byte_s > 0))
        out = (struct line){0, wxy / wxx};
    return out;
}

void duet__copies_fit(const struct duet__copy_sample *samples, size_t count,
                      struct duet__copy_pair *out)
{
    struct timed *timed = g_new0(struct timed, count + 1);
    double *room = g_new(double, count + 1);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (samples[i].seconds > 0 && samples[i].bytes > 0)
            timed[kept++].copy = samples[i];
    for (size_t i = 0; i < kept; i++) {
        size_t same = 0;
        for (size_t k = 0; k < kept; k++)
            if (timed[k].copy.bytes == timed[i].copy.bytes)
                room[same++] = timed[k].copy.seconds;
        timed[i].usual_s = duet__median(room, same);
    }
    out->samples = kept;
    out->latency_s = out->bandwidth_Bps = out->error = 0;
    if (kept) {
        struct line line = solve(timed, kept, NULL);
        for (unsigned i = 0; i < ROUNDS; i++)
            line = solve(timed, kept, &line);
        for (size_t i = 0; i < kept; i++)
            room[i] = relative(&line, &timed[i]);
        out->latency_s = line.latency_s;
        out->bandwidth_Bps = 1 / line.byte_s;
        out->error = duet__median(room, kept);
    }
    g_free(timed);
    g_free(room);
}

/* ------------------------------------------------------------------------------------------- */
/* Links that devices share, inferred from copies at the same time                              */

static const double SLOWER = 0.9; /* by the bandwidth of a pair alone; below, the pair has been
                                     slowed down */

/* Returns the device of a pair with the host, counted from 0. */
static unsigned device_of(const struct duet__copy_pair *pair)
{
    return (pair->source == DUET_HOST ? pair->destination : pair->source) - 1;
}

/* True if both pairs come from the host, or both go there, with different devices. */
static bool is_like(const struct duet__copies *copies, const struct duet__together *t,
                    bool to_device)
{
    const struct duet__copy_pair *a = &copies->pairs[t->first], *b = &copies->pairs[t->second];
    if (to_device ? a->source != DUET_HOST || b->source != DUET_HOST
                  : a->destination != DUET_HOST || b->destination != DUET_HOST)
        return false;
    return device_of(a) != device_of(b);
}

/* True if one of two was slowed down. A fairly shared link slows down only one that could use more
 * than half of it. */
static bool slowed(const struct duet__copies *copies, const struct duet__together *t)
{
    return t->first_Bps < SLOWER * copies->pairs[t->first].bandwidth_Bps ||
           t->second_Bps < SLOWER * copies->pairs[t->second].bandwidth_Bps;
}

static double sum(const struct duet__together *t)
{
    return t->first_Bps + t->second_Bps;
}

/*
 * True if the host's memory is the limit: any two devices then get the same together, however they
 * are connected, and more than a link that one of them fills. Two devices alone cannot tell: that
 * is taken for a link.
 */
static bool memory_bound(const struct duet__copies *copies)
{
    double least = INFINITY, most = 0, alone = 0;
    for (size_t i = 0; i < copies->together_count; i++) {
        const struct duet__together *t = &copies->together[i];
        if (!is_like(copies, t, true))
            continue;
        if (!slowed(copies, t))
            return false;
        least = fmin(least, sum(t));
        most = fmax(most, sum(t));
        alone = fmax(alone, fmax(copies->pairs[t->first].bandwidth_Bps,
                                 copies->pairs[t->second].bandwidth_Bps));
    }
    return copies->node_count > 3 && least > SLOWER * most && SLOWER * least > alone;
}

/* Moves all devices of switch `old` to switch `new_`. */
static void merge_switches(struct duet__copies *copies, unsigned old, unsigned new_)
{
    for (unsigned d = 0; d + 1 < copies->node_count; d++)
        if (copies->switches[d] == old)
            copies->switches[d] = new_;
}

/* Finds the switches, numbered in order of their first devices. */
static void find_switches(struct duet__copies *copies)
{
    unsigned devices = copies->node_count - 1, *switches = copies->switches;
    bool memory = memory_bound(copies);
    for (unsigned d = 0; d < devices; d++)
        switches[d] = d;
    for (size_t i = 0; i < copies->together_count && !memory; i++) {
        const struct duet__together *t = &copies->together[i];
        unsigned a = switches[device_of(&copies->pairs[t->first])];
        unsigned b = switches[device_of(&copies->pairs[t->second])];
        if (is_like(copies, t, true) && slowed(copies, t))
            merge_switches(copies, MAX(a, b), MIN(a, b));
    }
    for (unsigned d = 0; d < devices; d++)
        if (switches[d] >= copies->switch_count)
            merge_switches(copies, switches[d], copies->switch_count++);
}

/* Median of the bandwidth that two devices of this switch share; 0 if it has one device. */
static double get_together(const struct duet__copies *copies, unsigned number, bool to_device,
                           double *room)
{
    size_t count = 0;
    for (size_t i = 0; i < copies->together_count; i++) {
        const struct duet__together *t = &copies->together[i];
        if (is_like(copies, t, to_device) &&
            copies->switches[device_of(&copies->pairs[t->first])] == number &&
            copies->switches[device_of(&copies->pairs[t->second])] == number)
            room[count++] = sum(t);
    }
    return duet__median(room, count);
}

/* Sets the links' bandwidths: at least that of one device alone. */
static void find_links(struct duet__copies *copies)
{
    double *room = g_new0(double, copies->together_count + 1);
    for (unsigned s = 0; s < copies->switch_count; s++) {
        copies->to_device_Bps[s] = get_together(copies, s, true, room);
        copies->to_host_Bps[s] = get_together(copies, s, false, room);
    }
    for (size_t i = 0; i < copies->pair_count; i++) {
        const struct duet__copy_pair *pair = &copies->pairs[i];
        if (pair->source != DUET_HOST && pair->destination != DUET_HOST)
            continue;
        double *links = pair->source == DUET_HOST ? copies->to_device_Bps : copies->to_host_Bps;
        double *link = &links[copies->switches[device_of(pair)]];
        *link = fmax(*link, pair->bandwidth_Bps);
    }
    g_free(room);
}

void duet__copies_infer(struct duet__copies *copies)
{
    if (copies->node_count < 2)
        return;
    copies->switches = g_renew(unsigned, copies->switches, copies->node_count);
    copies->to_device_Bps = g_renew(double, copies->to_device_Bps, copies->node_count);
    copies->to_host_Bps = g_renew(double, copies->to_host_Bps, copies->node_count);
    copies->switch_count = 0;
    find_switches(copies);
    find_links(copies);
}
