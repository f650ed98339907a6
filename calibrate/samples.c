/* SPDX-License-Identifier: Apache-2.0 */
/* Executions out of recorded runs, sorted by the point they belong to. */
#include "calibrate/samples.h"

#include <math.h>
#include <string.h>

#include <glib.h>

/* ------------------------------------------------------------------------------------------- */
/* Labels                                                                                       */

/* The number of the label of these names, which is new or not. */
static uint32_t label_of(struct duet__samples *samples, const char *kernel, const char *arch,
                         const char *context)
{
    enum { STEP = 32 };
    for (size_t i = 0; i < samples->label_count; i++) {
        const struct duet__label *label = &samples->labels[i];
        if (!strcmp(label->kernel, kernel) && !strcmp(label->arch, arch) &&
            !strcmp(label->context, context))
            return (uint32_t)i;
    }
    if (samples->label_count % STEP == 0)
        samples->labels = g_renew(struct duet__label, samples->labels, samples->label_count + STEP);
    samples->labels[samples->label_count] =
        (struct duet__label){.kernel = kernel, .arch = arch, .context = context, .host = true};
    return (uint32_t)samples->label_count++;
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
    size_t low = 0, high = run->recording.access_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->recording.accesses[middle].task < task)
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
         i < run->recording.access_count && run->recording.accesses[i].task == event->id; i++) {
        const struct duet_trace_access *access = &run->recording.accesses[i];
        samples->operands[samples->operand_count++] =
            (struct duet__operand){.handle = access->handle,
                                   .bytes = access->bytes,
                                   .writes = access->writes};
        sample->operands++;
    }
}

static uint32_t read_label(struct reader *reader, const struct duet_event *event, unsigned arch)
{
    const struct duet_recording *recording = &reader->run->recording;
    const struct duet_machine *machine = recording->machine;
    uint32_t unknown = DUET__NO_LABEL, *known = &unknown;
    if (event->kernel < recording->kernel_count)
        known = &reader->labels[(size_t)event->kernel * machine->arch_count + arch];
    if (*known == DUET__NO_LABEL)
        *known = label_of(reader->samples, duet_recording_kernel(recording, event),
                          machine->archs[arch].name, reader->context);
    return *known;
}

static void read_task(struct reader *reader, const struct duet_event *event)
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
        return;
    if (worker->node == DUET_HOST)
        read_operands(reader, event, sample);
    if (!(seconds > 0) || !isfinite(seconds) || !(event->work > 0) || !isfinite(event->work))
        return;
    sample->label = read_label(reader, event, worker->arch);
    if (worker->node != DUET_HOST)
        samples->labels[sample->label].host = false;
}

/* The bytes of all handles that are accessed. */
static uint64_t registered(const struct duet__observation *run)
{
    GHashTable *seen = g_hash_table_new(NULL, NULL);
    uint64_t sum = 0;
    for (size_t i = 0; i < run->recording.access_count; i++)
        if (g_hash_table_add(seen, GSIZE_TO_POINTER(run->recording.accesses[i].handle)))
            sum += run->recording.accesses[i].bytes;
    g_hash_table_destroy(seen);
    return sum;
}

static void read_run(struct duet__samples *samples, const struct duet__observation *run,
                     double overhead_s)
{
    const struct duet_recording *recording = &run->recording;
    struct duet__sampled_run *own = &samples->runs[samples->run_count++];
    *own = (struct duet__sampled_run){.machine = recording->machine,
                                      .first = samples->count,
                                      .registered_bytes = registered(run),
                                      .repeats = run->repeats,
                                      .problem = run->problem};
    size_t pairs = recording->kernel_count * recording->machine->arch_count;
    const struct duet_event **events =
        g_new0(const struct duet_event *, recording->event_count + 1);
    struct reader reader = {
        .samples = samples,
        .run = run,
        .context = run->context ? run->context : "",
        .overhead_s = overhead_s > 0 ? overhead_s : 0,
        .labels = g_new(uint32_t, pairs + 1),
        .events = events,
    };
    for (size_t i = 0; i < pairs; i++)
        reader.labels[i] = DUET__NO_LABEL;
    for (size_t i = 0; i < recording->event_count; i++)
        if (is_task(&recording->events[i], recording->machine))
            read_task(&reader, &recording->events[i]);
    own->count = samples->count - own->first;
    duet__samples_others(recording->machine, events, samples->list + own->first, own->count);
    g_free(reader.labels);
    g_free(events);
}

/* ------------------------------------------------------------------------------------------- */
/* Groups                                                                                       */

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

static gint by_group(gconstpointer a, gconstpointer b, gpointer data)
{
    const struct duet__samples *samples = data;
    size_t first = *(const size_t *)a, second = *(const size_t *)b;
    const struct duet__sample *left = &samples->list[first], *right = &samples->list[second];
    uint32_t ranks[] = {samples->labels[left->label].rank, samples->labels[right->label].rank};
    if (ranks[0] != ranks[1])
        return ranks[0] < ranks[1] ? -1 : 1;
    if (left->work != right->work)
        return left->work < right->work ? -1 : 1;
    return (first > second) - (first < second);
}

static void group(struct duet__samples *samples)
{
    size_t count = 0;
    for (size_t i = 0; i < samples->label_count; i++)
        samples->labels[i].rank = rank_of(samples, i);
    samples->order = g_new0(size_t, samples->count + 1);
    samples->groups = g_new0(struct duet__group, samples->count + 1);
    for (size_t i = 0; i < samples->count; i++)
        if (samples->list[i].label != DUET__NO_LABEL)
            samples->order[count++] = i;
    g_qsort_with_data(samples->order, (gint)count, sizeof *samples->order, by_group, samples);
    for (size_t i = 0; i < count; i++) {
        const struct duet__sample *sample = &samples->list[samples->order[i]];
        size_t last = samples->group_count;
        if (i == 0 || samples->groups[last - 1].label != sample->label ||
            samples->groups[last - 1].work != sample->work)
            samples->groups[samples->group_count++] =
                (struct duet__group){.label = sample->label, .work = sample->work, .first = i};
        samples->groups[samples->group_count - 1].count++;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

/* Room for all tasks and their accesses. */
static void reserve(struct duet__samples *samples, const struct duet__observation *runs,
                    size_t run_count)
{
    size_t events = 0, accesses = 0;
    for (size_t i = 0; i < run_count; i++) {
        events += runs[i].recording.event_count;
        accesses += runs[i].recording.access_count;
    }
    samples->list = g_new0(struct duet__sample, events + 1);
    samples->operands = g_new0(struct duet__operand, accesses + 1);
    samples->runs = g_new0(struct duet__sampled_run, run_count + 1);
}

int duet__samples_gather(const struct duet__observation *runs, size_t run_count, double overhead_s,
                         struct duet__samples *out, struct duet_message *message)
{
    *out = (struct duet__samples){0};
    reserve(out, runs, run_count);
    for (size_t i = 0; i < run_count; i++)
        read_run(out, &runs[i], overhead_s);
    group(out);
    if (out->group_count)
        return DUET_OK;
    duet__samples_fini(out);
    return duet_fail(message, DUET_EINVAL,
                     "no execution of a kernel in %zu runs: were they recorded?", run_count);
}

void duet__samples_fini(struct duet__samples *samples)
{
    g_free(samples->list);
    g_free(samples->operands);
    g_free(samples->runs);
    g_free(samples->labels);
    g_free(samples->order);
    g_free(samples->groups);
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

void duet__samples_walk(const struct duet__samples *samples, const struct duet_sharing *sharing,
                        size_t limit, struct duet__miss *misses)
{
    for (size_t i = 0; i < samples->run_count; i++)
        if (walk_run(samples, &samples->runs[i], sharing, limit, misses))
            g_error("out of memory for the caches of %zu executions", samples->count);
}
