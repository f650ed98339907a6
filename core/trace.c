/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters and records of a run. Each worker writes its own; they are put together when asked for.
 * Counters of copies, and records, have a lock: write-backs may still be on their way when the last
 * task has ended.
 */
#include <math.h>
#include <stdio.h>

#include "core/internal.h"

static inline void count_task(struct worker *worker, const struct duet_task *task,
                              const struct duet__completion *report)
{
    count_own(&worker->tasks, 1);
    count_own(&worker->accesses, task->access_count);
    add_own_double(&worker->busy_s, report->end_s - report->start_s);
    if (task->klass->counts_flops)
        add_own_double(&worker->flops, task->work);
    raise_own(&worker->last_end_s, report->end_s);
    struct executions *own = &task->klass->executions[worker->index];
    own->ran++;
    own->timed++;
    own->timed_s += report->before_s + (report->end_s - report->start_s);
}

/* Returns the architectures that a task may run on. */
static uint64_t archs_of(const struct duet_runtime *core, const struct duet_task *task)
{
    uint64_t kinds = core->masks[task->mask].kinds, archs = 0;
    for (unsigned k = 0; k < core->kind_count; k++)
        if (kinds >> k & 1)
            archs |= UINT64_C(1) << core->kinds[k].arch;
    return archs;
}

static void record_task(struct duet_runtime *core, struct worker *worker,
                        const struct duet_task *task, const struct duet__completion *report,
                        bool failed, bool paused)
{
    const struct task_extra *extra = task->extra;
    const struct duet_event event = {.kind = DUET_EVENT_TASK,
                                     .worker = (int)worker->index,
                                     .kernel = task->klass->codelet->index,
                                     .id = task->id,
                                     .submit_s = task->submit_s,
                                     .ready_s =
                                         report->before_s > 0 ? report->start_s : task->ready_s,
                                     .start_s = report->start_s,
                                     .end_s = report->end_s,
                                     .source = (uint16_t)worker->node,
                                     .destination = (uint16_t)worker->node,
                                     .failed = failed,
                                     .paused = paused,
                                     .name = extra ? extra->name : 0,
                                     .iteration = extra ? extra->iteration : 0,
                                     .priority = task->priority,
                                     .own = (task->modes & (TASK_INITIALISES | TASK_COMBINES)) != 0,
                                     .child = task->parent != NULL,
                                     .where = archs_of(core, task),
                                     .used_bytes = core->nodes[worker->node].slab.used_bytes,
                                     .bytes =
                                         duet__access_bytes(task->accesses, task->access_count),
                                     .work = task->work};
    spin_lock(&worker->trace_lock);
    if (duet__record_add(worker, &event))
        worker->last_task = worker->records.count;
    if (core->record_accesses && !paused)
        duet__trace_accesses(worker, task);
    spin_unlock(&worker->trace_lock);
}

/* Records a task that has ended on the worker. */
void duet__trace_record(struct duet_runtime *core, struct worker *worker,
                        const struct duet_task *task, const struct duet__completion *report,
                        bool failed)
{
    record_task(core, worker, task, report, failed, false);
}

/* Records a piece of a task, after which it waits. */
void duet__trace_piece(struct duet_runtime *core, struct worker *worker,
                       const struct duet_task *task, const struct duet__completion *report,
                       bool kept)
{
    if (!kept)
        add_own_double(&worker->busy_s, report->end_s - report->start_s);
    raise_own(&worker->last_end_s, report->end_s);
    if (core->record)
        record_task(core, worker, task, report, false, true);
}

/* Counts and records a task that has ended on the worker; failed ones are recorded only. */
HOT void duet__trace_task(struct duet_runtime *core, struct worker *worker,
                          const struct duet_task *task, const struct duet__completion *report,
                          bool failed)
{
    if (!failed)
        count_task(worker, task, report);
    if (core->record)
        duet__trace_record(core, worker, task, report, failed);
}

/* trace_lock held. */
static void count_copy(struct worker *worker, const struct duet__copy *copy)
{
    if (copy->source == DUET_HOST) {
        worker->bytes_in += copy->bytes;
        worker->copies_in++;
    } else if (copy->destination == DUET_HOST) {
        worker->bytes_out += copy->bytes;
        worker->copies_out++;
    } else {
        worker->bytes_between += copy->bytes;
        worker->copies_between++;
    }
}

/* Counts and records a copy that has ended; failed ones are recorded only. */
void duet__trace_copy(struct duet_runtime *core, struct worker *worker,
                      const struct duet__copy *copy, const struct duet__completion *report)
{
    const unsigned device = copy->destination ? copy->destination : copy->source;
    spin_lock(&worker->trace_lock);
    if (!report->status)
        count_copy(worker, copy);
    struct record *record = NULL;
    if (core->record)
        record =
            duet__record_add(worker,
                             &(struct duet_event){.kind = DUET_EVENT_COPY,
                                                  .worker = (int)worker->index,
                                                  .id = copy->handle_id,
                                                  .submit_s = copy->decided_s,
                                                  .ready_s = copy->decided_s,
                                                  .start_s = report->start_s,
                                                  .end_s = report->end_s,
                                                  .source = copy->source,
                                                  .destination = copy->destination,
                                                  .write_back = copy->write_back,
                                                  .failed = report->status != 0,
                                                  .used_bytes = core->nodes[device].slab.used_bytes,
                                                  .bytes = copy->bytes});
    if (record) {
        record->asked_by = copy->asked_by;
        record->after = copy->after;
    }
    spin_unlock(&worker->trace_lock);
}

static void add_copies(struct duet_stats *stats, struct worker *worker)
{
    spin_lock(&worker->trace_lock);
    stats->bytes_to_device += worker->bytes_in;
    stats->bytes_to_host += worker->bytes_out;
    stats->bytes_between += worker->bytes_between;
    stats->copies_to_device += worker->copies_in;
    stats->copies_to_host += worker->copies_out;
    stats->copies_between += worker->copies_between;
    spin_unlock(&worker->trace_lock);
}

static void add_worker(struct duet_stats *stats, const struct worker *worker, unsigned arch)
{
    stats->tasks += worker->tasks;
    stats->accesses += worker->accesses;
    stats->flops += worker->flops;
    stats->busy_s += worker->busy_s;
    if (arch < DUET_STATS_ARCHS)
        stats->busy_by_arch_s[arch] += worker->busy_s;
    if (worker->last_end_s > stats->last_end_s)
        stats->last_end_s = worker->last_end_s;
    stats->reads_on_device += worker->reads;
    stats->read_hits += worker->hits;
    stats->merged += worker->merged;
    stats->pushes += worker->pushes;
    stats->pops += worker->pops;
    stats->steals += worker->steals;
    stats->steal_attempts += worker->steal_attempts;
    stats->revocations += worker->revocations;
}

void duet_stats(const struct duet_runtime *runtime, struct duet_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    for (unsigned w = 0; w < runtime->machine.worker_count; w++) {
        add_worker(stats, &runtime->workers[w], runtime->machine.workers[w].arch);
        add_copies(stats, &runtime->workers[w]);
    }
    for (unsigned n = 0; n < runtime->machine.node_count; n++) {
        spin_lock(&runtime->nodes[n].lock);
        stats->evictions += runtime->nodes[n].evictions;
        stats->write_backs += runtime->nodes[n].write_backs;
        spin_unlock(&runtime->nodes[n].lock);
    }
    double first_submit_s = atomic_load(&runtime->first_submit_s);
    stats->first_submit_s = isfinite(first_submit_s) ? first_submit_s : 0;
    stats->makespan_s = stats->tasks ? stats->last_end_s - stats->first_submit_s : 0;
    stats->critical_path_s = atomic_load(&runtime->critical_path_s);
}

static void reset_worker(struct worker *worker)
{
    worker->busy_s = worker->last_end_s = worker->flops = 0;
    worker->tasks = worker->accesses = worker->reads = worker->hits = worker->merged = 0;
    worker->pushes = worker->pops = worker->steals = worker->steal_attempts = 0;
    worker->revocations = 0;
    spin_lock(&worker->trace_lock);
    worker->records.count = worker->notes.count = worker->touched.count = worker->last_task = 0;
    worker->records_lost = false;
    worker->generation++;
    worker->bytes_in = worker->bytes_out = worker->bytes_between = 0;
    worker->copies_in = worker->copies_out = worker->copies_between = 0;
    spin_unlock(&worker->trace_lock);
}

static void reset_node(struct node *node)
{
    spin_lock(&node->lock);
    node->evictions = node->write_backs = 0;
    spin_unlock(&node->lock);
}

/* Clears counters, but not samples that the model has yet to learn. */
static void forget_times(struct executions *own)
{
    own->ran = own->timed = 0;
    own->timed_s = 0;
}

void duet_stats_reset(struct duet_runtime *runtime)
{
    const struct duet__gate *gate = duet__gate_of(runtime);
    if (gate)
        gate->stats_reset(runtime->gate_arg);
    else
        duet__stats_reset_here(runtime);
}

void duet__stats_reset_here(struct duet_runtime *runtime)
{
    for (unsigned w = 0; w < runtime->machine.worker_count; w++)
        reset_worker(&runtime->workers[w]);
    for (unsigned n = 0; n < runtime->machine.node_count; n++)
        reset_node(&runtime->nodes[n]);
    for (size_t i = 0; i < runtime->class_count; i++) {
        for (unsigned w = 0; w < runtime->machine.worker_count; w++)
            forget_times(&runtime->classes[i]->executions[w]);
        /* the new critical path uses times that were measured meanwhile */
        duet__class_best(runtime->classes[i]);
    }
    spin_lock(&runtime->registry_lock);
    for (struct duet_handle *handle = runtime->handles; handle; handle = handle->next)
        handle->write_path_s = handle->read_path_s = 0;
    spin_unlock(&runtime->registry_lock);
    runtime->resets++;
    duet__entered_reset(runtime);
    duet__marks_reset(runtime);
    atomic_store(&runtime->first_submit_s, INFINITY);
    atomic_store(&runtime->first_task, 0);
    atomic_store(&runtime->critical_path_s, 0);
}

bool duet__records(const struct duet_runtime *core)
{
    return core->record;
}

int duet_worker_scheduling(const struct duet_runtime *runtime, uint64_t *steps)
{
    *steps = 0;
    if (!runtime->ops->scheduling)
        return DUET_NO_WORKER;
    return runtime->ops->scheduling(runtime->engine, steps);
}

size_t duet_class_count(const struct duet_runtime *runtime)
{
    return runtime->class_count;
}

/*
 * Returns the mean of the executions since the last reset on an architecture; the engine's mean if
 * it has one, and the expected time if there were no executions.
 */
static double class_mean(const struct duet_runtime *runtime, const struct task_class *klass,
                         unsigned arch)
{
    uint64_t timed = 0;
    double timed_s = 0;
    for (unsigned w = 0; w < runtime->machine.worker_count; w++) {
        if (runtime->workers[w].arch != arch)
            continue;
        timed += klass->executions[w].timed;
        timed_s += klass->executions[w].timed_s;
    }
    bool known = atomic_load_explicit(&klass->mean[arch], memory_order_relaxed) > 0;
    if (known || !(timed_s > 0))
        return duet__class_seconds(klass, arch);
    return timed_s / (double)timed;
}

int duet_class_stats(const struct duet_runtime *runtime, size_t index,
                     struct duet_class_stats *stats)
{
    if (index >= runtime->class_count)
        return DUET_EINVAL;
    const struct task_class *klass = runtime->classes[index];
    for (unsigned a = 0; a < runtime->machine.arch_count; a++) {
        bool able = atomic_load(&klass->possible) & duet__kinds_of_archs(runtime, UINT64_C(1) << a);
        runtime->class_seconds[a] = able ? class_mean(runtime, klass, a) : 0;
    }
    stats->kernel = klass->codelet->name;
    stats->work = klass->work;
    stats->tasks = 0;
    for (unsigned w = 0; w < runtime->machine.worker_count; w++)
        stats->tasks += runtime->class_ran[w] = klass->executions[w].ran;
    stats->expected_s = runtime->class_seconds;
    stats->ran = runtime->class_ran;
    return DUET_OK;
}

const char *duet__class_barrier(const struct duet_runtime *core, size_t index, unsigned arch,
                                char *text, size_t room)
{
    const struct task_class *klass = core->classes[index];
    const struct duet_codelet *codelet = klass->codelet, *barrier = atomic_load(&klass->barrier);
    const uint64_t kinds = duet__kinds_of_archs(core, UINT64_C(1) << arch);
    bool ran = false;
    for (unsigned w = 0; w < core->machine.worker_count; w++)
        ran |= core->workers[w].arch == arch && klass->executions[w].ran;
    *text = '\0';
    if (ran || !kinds || !(codelet->archs >> arch & 1) || codelet->expand)
        return text;
    if (!(klass->able & kinds))
        (void)snprintf(text, room, "%s",
                       klass->too_big & kinds ? "its data does not fit into the memory there"
                                              : "the platform has no time of it there");
    else if (barrier && !(klass->able & kinds & ~atomic_load(&klass->barred)))
        (void)snprintf(text, room, "%s, which initialises what it reduces, cannot run there",
                       barrier->name);
    return text;
}

struct duet_worker_stats duet_worker_stats(const struct duet_runtime *runtime, unsigned worker)
{
    if (!has_worker(runtime, worker))
        return (struct duet_worker_stats){0};
    const struct worker *one = &runtime->workers[worker];
    return (struct duet_worker_stats){.tasks = one->tasks, .busy_s = one->busy_s};
}

const struct duet_machine *duet_runtime_machine(const struct duet_runtime *runtime)
{
    return &runtime->machine;
}

/* ------------------------------------------------------------------------------------------- */
/* Sizes of accesses, and records of them for models of caches and task graphs. */

uint64_t duet__access_bytes(const struct access *accesses, unsigned count)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < count; i++)
        if (accesses[i].mode)
            bytes += accesses[i].handle->bytes;
    return bytes;
}

uint64_t duet__slab_bytes(const struct access *accesses, unsigned count)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < count; i++)
        if (accesses[i].mode)
            bytes += accesses[i].handle->slab_bytes;
    return bytes;
}

static void record_access(struct worker *worker, const struct duet_trace_access *access)
{
    struct duet_trace_access *own = duet__row_add(worker, &worker->touched, sizeof *own);
    if (own)
        *own = *access;
}

/* Returns the cut to which the handle belongs; NULL: none. */
static const struct parts *cut_of(const struct duet_handle *handle)
{
    return handle->of && !handle->of->expansion ? handle->of : NULL;
}

static struct duet_trace_access access_of(uint64_t task, unsigned index,
                                          const struct duet_handle *handle)
{
    const struct parts *of = cut_of(handle);
    return (struct duet_trace_access){.task = task,
                                      .index = index,
                                      .handle = handle->id,
                                      .bytes = handle->bytes,
                                      .whole = of ? of->whole->id : 0,
                                      .cut = of ? of->handles[0]->id : 0,
                                      .temporary = duet__handle_temporary(handle)};
}

void duet__trace_accesses(struct worker *worker, const struct duet_task *task)
{
    const struct task_extra *extra = task->extra;
    unsigned index = task->access_count;
    for (unsigned i = 0; i < task->access_count; i++) {
        const struct access *access = &task->accesses[i];
        const struct parts *of = cut_of(access->handle);
        struct duet_trace_access record = access_of(task->id, i, access->handle);
        record.mode = access->mode & (DUET_COMMUTE | DUET_REDUCE | DUET_SCRATCH);
        record.reads = duet_task_reads(task, i);
        record.writes = duet_task_writes(task, i);
        if (record.mode & ACCESS_REDUCES) {
            record.mode = DUET_REDUCE;
            record.whole = duet__contribution_whole(access->handle);
        }
        record_access(worker, &record);
        for (; of && cut_of(of->whole); of = cut_of(of->whole)) {
            record = access_of(task->id, index++, of->whole);
            record_access(worker, &record);
        }
    }
    for (unsigned i = 0; extra && i < extra->edge_count; i++)
        record_access(worker,
                      &(struct duet_trace_access){.task = task->id,
                                                  .index = index++,
                                                  .after = duet__edge_after(extra->edges, i)});
}

/* Compares by task, then by order of its accesses. */
static int compare_accesses(const void *left, const void *right)
{
    const struct duet_trace_access *a = left, *b = right;
    if (a->task != b->task)
        return a->task < b->task ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

int duet_trace_accesses(const struct duet_runtime *runtime, struct duet_trace_access **accesses,
                        size_t *count)
{
    *accesses = NULL;
    *count = 0;
    if (!runtime->record_accesses)
        return DUET_EINVAL;
    struct rows all = {NULL};
    for (unsigned w = 0; w < runtime->machine.worker_count; w++) {
        if (!duet__rows_take(&runtime->workers[w], &runtime->workers[w].touched, &all,
                             sizeof **accesses)) {
            free(all.rows);
            return DUET_ENOMEM;
        }
    }
    if (all.count)
        qsort(all.rows, all.count, sizeof **accesses, compare_accesses);
    *accesses = all.rows;
    *count = all.count;
    return DUET_OK;
}

uint64_t duet__task_handle_id(const struct duet_task *task, size_t index)
{
    return task->accesses[index].handle->id;
}

uint64_t duet__handle_number(const struct duet_handle *handle)
{
    return handle->id;
}

uint64_t duet__unfinished(const struct duet_runtime *core)
{
    return unfinished(core);
}

uint64_t duet__numbered(const struct duet_runtime *core)
{
    return atomic_load_explicit(&core->submitted, memory_order_relaxed);
}

uint64_t duet__registered_bytes(const struct duet_runtime *core)
{
    return atomic_load_explicit(&core->registered_bytes, memory_order_relaxed);
}
