/* SPDX-License-Identifier: Apache-2.0 */
/* Executions out of recorded runs, sorted by the point they belong to. */
#include "calibrate/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

/* ------------------------------------------------------------------------------------------- */
/* Labels                                                                                       */

/* The number of the label of these names, which is new or not. */
static int label_of(struct duet__samples *samples, const char *kernel, const char *arch,
                    const char *context, uint32_t *out)
{
    for (size_t i = 0; i < samples->label_count; i++) {
        const struct duet__label *label = &samples->labels[i];
        if (!strcmp(label->kernel, kernel) && !strcmp(label->arch, arch) &&
            !strcmp(label->context, context)) {
            *out = (uint32_t)i;
            return DUET_OK;
        }
    }
    if (samples->label_count == samples->label_room) {
        size_t room = 2 * samples->label_room + 32;
        struct duet__label *more = realloc(samples->labels, room * sizeof *more);
        if (!more)
            return DUET_ENOMEM;
        samples->labels = more;
        samples->label_room = room;
    }
    samples->labels[samples->label_count] =
        (struct duet__label){.kernel = kernel, .arch = arch, .context = context, .host = true};
    *out = (uint32_t)samples->label_count++;
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* One run                                                                                      */

/* What is known while the tasks of one run are read. */
struct reader {
    struct duet__samples *samples;
    const struct duet__observation *run;
    const char *context;
    double overhead_s;
    uint32_t *labels;                 /* by kernel and architecture, DUET__NO_LABEL: not met yet */
    const struct duet_event **events; /* of the samples */
};

/* Is this a record of a task on a worker that there is? */
static bool is_task(const struct duet_event *event, const struct duet_machine *machine)
{
    return event->kind == DUET_EVENT_TASK && event->worker >= 0 &&
           (unsigned)event->worker < machine->worker_count;
}

/* Index of the first access of a task, or of a later one. */
static size_t first_access(const struct duet__observation *run, uint64_t task)
{
    size_t low = 0, high = run->access_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->accesses[middle].task < task)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void read_operands(struct reader *reader, const struct duet_event *event,
                          struct duet__sample *sample)
{
    const struct duet__observation *run = reader->run;
    struct duet__samples *samples = reader->samples;
    sample->first = samples->operand_count;
    for (size_t i = first_access(run, event->id);
         i < run->access_count && run->accesses[i].task == event->id; i++) {
        const struct duet_trace_access *access = &run->accesses[i];
        samples->operands[samples->operand_count++] =
            (struct duet__operand){.handle = access->handle,
                                   .bytes = access->bytes,
                                   .writes = access->writes};
        sample->operands++;
    }
}

static int read_label(struct reader *reader, const struct duet_event *event, unsigned arch,
                      uint32_t *out)
{
    const struct duet_recording *recording = &reader->run->recording;
    const struct duet_machine *machine = recording->machine;
    uint32_t *known = NULL;
    if (event->kernel < recording->kernel_count)
        known = &reader->labels[(size_t)event->kernel * machine->arch_count + arch];
    if (known && *known != DUET__NO_LABEL) {
        *out = *known;
        return DUET_OK;
    }
    int error = label_of(reader->samples, duet_recording_kernel(recording, event),
                         machine->archs[arch].name, reader->context, out);
    if (!error && known)
        *known = *out;
    return error;
}

static int read_task(struct reader *reader, const struct duet_event *event)
{
    struct duet__samples *samples = reader->samples;
    const struct duet_worker *worker = &reader->run->recording.machine->workers[event->worker];
    double seconds = event->end_s - event->start_s;
    struct duet__sample *sample = &samples->list[samples->count++];
    *sample = (struct duet__sample){
        .seconds = fmax(seconds - reader->overhead_s, seconds / 10),
        .work = event->work,
        .label = DUET__NO_LABEL,
        .worker = (uint32_t)event->worker,
    };
    *reader->events++ = event;
    if (event->failed) /* it may have touched nothing */
        return DUET_OK;
    if (worker->node == DUET_HOST)
        read_operands(reader, event, sample);
    if (!(seconds > 0) || !isfinite(seconds) || !(event->work > 0) || !isfinite(event->work))
        return DUET_OK;
    int error = read_label(reader, event, worker->arch, &sample->label);
    if (!error && worker->node != DUET_HOST)
        samples->labels[sample->label].host = false;
    return error;
}

/* The bytes of all handles that are accessed. */
static uint64_t registered(const struct duet__observation *run)
{
    GHashTable *seen = g_hash_table_new(NULL, NULL);
    uint64_t sum = 0;
    for (size_t i = 0; i < run->access_count; i++)
        if (g_hash_table_add(seen, GSIZE_TO_POINTER(run->accesses[i].handle)))
            sum += run->accesses[i].bytes;
    g_hash_table_destroy(seen);
    return sum;
}

static int read_run(struct duet__samples *samples, const struct duet__observation *run,
                    double overhead_s)
{
    const struct duet_recording *recording = &run->recording;
    struct duet__sampled_run *own = &samples->runs[samples->run_count++];
    *own = (struct duet__sampled_run){.machine = recording->machine,
                                      .first = samples->count,
                                      .registered_bytes = registered(run),
                                      .item = run->item};
    size_t pairs = recording->kernel_count * recording->machine->arch_count;
    const struct duet_event **events = calloc(recording->event_count + 1, sizeof *events);
    struct reader reader = {
        .samples = samples,
        .run = run,
        .context = run->context ? run->context : "",
        .overhead_s = overhead_s > 0 ? overhead_s : 0,
        .labels = malloc((pairs + 1) * sizeof *reader.labels),
        .events = events,
    };
    int error = events && reader.labels ? DUET_OK : DUET_ENOMEM;
    for (size_t i = 0; reader.labels && i < pairs; i++)
        reader.labels[i] = DUET__NO_LABEL;
    for (size_t i = 0; i < recording->event_count && !error; i++)
        if (is_task(&recording->events[i], recording->machine))
            error = read_task(&reader, &recording->events[i]);
    own->count = samples->count - own->first;
    if (!error)
        error = duet__samples_others(recording->machine, events, samples->list + own->first,
                                     own->count);
    free(reader.labels);
    free(events);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Groups                                                                                       */

/* What samples are sorted by: rank of the label, work, place in the list. */
struct key {
    uint32_t rank;
    double work;
    size_t index;
};

static int by_key(const void *a, const void *b)
{
    const struct key *left = a, *right = b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    if (left->work != right->work)
        return left->work < right->work ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

static int compare_labels(const struct duet__label *a, const struct duet__label *b)
{
    int order = strcmp(a->kernel, b->kernel);
    if (!order)
        order = strcmp(a->arch, b->arch);
    return order ? order : strcmp(a->context, b->context);
}

/* How many labels come before this one: there are few. */
static uint32_t rank_of(const struct duet__samples *samples, size_t label)
{
    uint32_t rank = 0;
    for (size_t i = 0; i < samples->label_count; i++)
        rank += compare_labels(&samples->labels[i], &samples->labels[label]) < 0;
    return rank;
}

static size_t fill_keys(const struct duet__samples *samples, const uint32_t *ranks,
                        struct key *keys)
{
    size_t count = 0;
    for (size_t i = 0; i < samples->count; i++) {
        const struct duet__sample *sample = &samples->list[i];
        if (sample->label != DUET__NO_LABEL)
            keys[count++] =
                (struct key){.rank = ranks[sample->label], .work = sample->work, .index = i};
    }
    return count;
}

static int group(struct duet__samples *samples)
{
    struct key *keys = calloc(samples->count + 1, sizeof *keys);
    uint32_t *ranks = calloc(samples->label_count + 1, sizeof *ranks);
    samples->order = calloc(samples->count + 1, sizeof *samples->order);
    samples->groups = calloc(samples->count + 1, sizeof *samples->groups);
    int error = keys && ranks && samples->order && samples->groups ? DUET_OK : DUET_ENOMEM;
    if (!error) {
        for (size_t i = 0; i < samples->label_count; i++)
            ranks[i] = rank_of(samples, i);
        size_t count = fill_keys(samples, ranks, keys);
        qsort(keys, count, sizeof *keys, by_key);
        for (size_t i = 0; i < count; i++) {
            const struct duet__sample *sample = &samples->list[keys[i].index];
            if (i == 0 || keys[i - 1].rank != keys[i].rank || keys[i - 1].work != keys[i].work)
                samples->groups[samples->group_count++] =
                    (struct duet__group){.label = sample->label, .work = sample->work, .first = i};
            samples->groups[samples->group_count - 1].count++;
            samples->order[i] = keys[i].index;
        }
    }
    free(ranks);
    free(keys);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

/* Room for all tasks and their accesses. */
static int reserve(struct duet__samples *samples, const struct duet__observation *runs,
                   size_t run_count)
{
    size_t events = 0, accesses = 0;
    for (size_t i = 0; i < run_count; i++) {
        events += runs[i].recording.event_count;
        accesses += runs[i].access_count;
    }
    samples->list = calloc(events + 1, sizeof *samples->list);
    samples->operands = calloc(accesses + 1, sizeof *samples->operands);
    samples->runs = calloc(run_count + 1, sizeof *samples->runs);
    return samples->list && samples->operands && samples->runs ? DUET_OK : DUET_ENOMEM;
}

int duet__samples_gather(const struct duet__observation *runs, size_t run_count, double overhead_s,
                         struct duet__samples *out, struct duet_message *message)
{
    *out = (struct duet__samples){0};
    int error = reserve(out, runs, run_count);
    for (size_t i = 0; i < run_count && !error; i++)
        error = read_run(out, &runs[i], overhead_s);
    if (!error)
        error = group(out);
    if (error)
        duet_fail(message, error, "out of memory for the executions of %zu runs", run_count);
    else if (out->group_count == 0)
        error = duet_fail(message, DUET_EINVAL,
                          "no execution of a kernel in %zu runs: were they recorded?", run_count);
    if (error)
        duet__samples_fini(out);
    return error;
}

void duet__samples_fini(struct duet__samples *samples)
{
    free(samples->list);
    free(samples->operands);
    free(samples->runs);
    free(samples->labels);
    free(samples->order);
    free(samples->groups);
    *samples = (struct duet__samples){0};
}

static int walk_run(const struct duet__samples *samples, const struct duet__sampled_run *run,
                    const struct duet_sharing *sharing, size_t limit, struct duet__miss *misses)
{
    struct duet_machine machine = *run->machine;
    struct duet__caches *caches;
    size_t count = limit && limit < run->count ? limit : run->count;
    machine.sharing = *sharing;
    int error = duet__caches_new(&caches, &machine);
    for (size_t i = run->first; i < run->first + count && !error; i++) {
        const struct duet__sample *sample = &samples->list[i];
        if (sample->operands)
            error =
                duet__caches_touch(caches, sample->worker, samples->operands + sample->first,
                                   sample->operands, run->registered_bytes, misses + sample->first);
    }
    duet__caches_free(caches);
    return error;
}

int duet__samples_walk(const struct duet__samples *samples, const struct duet_sharing *sharing,
                       size_t limit, struct duet__miss *misses)
{
    int error = DUET_OK;
    for (size_t i = 0; i < samples->run_count && !error; i++)
        error = walk_run(samples, &samples->runs[i], sharing, limit, misses);
    return error;
}
