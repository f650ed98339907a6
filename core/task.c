/* SPDX-License-Identifier: Apache-2.0 */
/* Task records: pools by number of accesses, so that a task costs no heap call and no waste. */
#include "core/internal.h"

/* Chunks double up to the largest: a node of a large cluster has few tasks. */
enum { CHUNK_LEAST = 1 << 12, CHUNK_DOUBLINGS = 5, BUNDLE = 32 };

/* Returns the bytes of a record in whole cache lines: tasks of different threads are kept apart. */
static size_t record_bytes(unsigned access_count)
{
    size_t bytes = sizeof(struct duet_task) + access_count * sizeof(struct access);
    return whole_lines(bytes);
}

/*
 * Returns the pool for tasks with this many accesses, and the number that its records have room
 * for.
 */
static unsigned pool_of(unsigned access_count, unsigned *room)
{
    unsigned pool = access_count;
    *room = access_count;
    if (access_count > POOL_EXACT)
        for (pool = POOL_EXACT + 1, *room = 2 * POOL_EXACT; *room < access_count; *room *= 2)
            pool++;
    return pool;
}

/* Returns the number of accesses that records of a pool have room for. */
static unsigned pool_room(unsigned pool)
{
    return pool <= POOL_EXACT ? pool : (unsigned)POOL_EXACT << (pool - POOL_EXACT);
}

/* Returns the size of a pool's chunk, from number 0 on, for records of `bytes`. */
static size_t chunk_bytes(size_t number, size_t bytes)
{
    const size_t usual = (size_t)CHUNK_LEAST
                         << (number < CHUNK_DOUBLINGS ? number : CHUNK_DOUBLINGS);
    return bytes > usual ? bytes : usual;
}

/* Allocates a chunk with room for at least one record. The pool's lock is held. */
static bool pool_grow(struct pool *pool, size_t bytes)
{
    if (pool->chunk_count == pool->chunk_capacity) {
        size_t capacity = pool->chunk_capacity ? 2 * pool->chunk_capacity : 16;
        void **chunks = realloc(pool->chunks, capacity * sizeof *chunks);
        if (!chunks)
            return false;
        pool->chunks = chunks;
        pool->chunk_capacity = capacity;
    }
    size_t size = chunk_bytes(pool->chunk_count, bytes);
    char *chunk = aligned_alloc(LINE, size);
    if (!chunk)
        return false;
    pool->chunks[pool->chunk_count++] = chunk;
    pool->fresh = chunk;
    pool->fresh_end = chunk + size;
    return true;
}

static struct duet_task *pool_take(struct pool *pool, size_t bytes)
{
    if (!pool->ready)
        pool->ready = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
    struct duet_task *task = pool->ready;
    if (task) {
        pool->ready = task->next;
        return task;
    }
    if ((size_t)(pool->fresh_end - pool->fresh) < bytes && !pool_grow(pool, bytes))
        return NULL;
    task = (struct duet_task *)(void *)pool->fresh;
    task->extra = NULL;
    pool->fresh += bytes;
    return task;
}

/* Fetches up to `most` records, linked by `next`; fewer, or none, if memory is short. */
static void pool_fetch(struct freed *freed, struct pool *pool, size_t bytes, size_t most)
{
    struct duet_task *task;
    spin_lock(&pool->lock);
    while (freed->count < most && (task = pool_take(pool, bytes))) {
        task->next = freed->first;
        freed->first = task;
        if (freed->count++ == 0)
            freed->last = task;
    }
    spin_unlock(&pool->lock);
}

/*
 * Returns a record with room for the accesses, to be filled by the caller. NULL: out of memory. In
 * a call of worker `by`, which first uses records that it has freed itself, or of none.
 */
HOT struct duet_task *duet__task_alloc(struct duet_runtime *core, int by, unsigned access_count)
{
    unsigned room;
    unsigned index = pool_of(access_count, &room);
    struct pool *pool = &core->pools[index];
    struct duet_task *task;
    if (by >= 0 && index <= POOL_EXACT) {
        struct freed *freed = &core->workers[by].freed[index];
        if (!freed->count)
            pool_fetch(freed, pool, record_bytes(room), BUNDLE / 2);
        task = freed->first;
        if (task) {
            freed->first = task->next;
            freed->count--;
        }
    } else {
        spin_lock(&pool->lock);
        task = pool_take(pool, record_bytes(room));
        spin_unlock(&pool->lock);
    }
    if (task)
        task->pool = (uint8_t)index;
    return task;
}

/* Returns the records from `first` to `last`, linked by `next`, to their pool. */
static void pool_return(struct pool *pool, struct duet_task *first, struct duet_task *last)
{
    struct duet_task *top = atomic_load_explicit(&pool->returned, memory_order_relaxed);
    do
        last->next = top;
    while (!atomic_compare_exchange_weak_explicit(&pool->returned, &top, first,
                                                  memory_order_release, memory_order_relaxed));
}

/*
 * Returns records like `models`, linked by `next` and to be filled by the caller, who belongs to no
 * worker: each pool is locked once. NULL: there is no memory for all of them; those that there was
 * memory for are lost until the runtime is closed.
 */
struct duet_task *duet__tasks_alloc(struct duet_runtime *core, struct duet_task *const *models,
                                    size_t count)
{
    struct freed freed[POOLS] = {{NULL}};
    struct duet_task *first = NULL, **end = &first;
    for (size_t i = 0; i < count; i++) {
        const unsigned pool = models[i]->pool;
        struct freed *own = &freed[pool];
        if (!own->count) {
            size_t need = 0;
            for (size_t j = i; j < count; j++)
                need += models[j]->pool == pool;
            pool_fetch(own, &core->pools[pool], record_bytes(pool_room(pool)), need);
        }
        if (!own->count)
            return NULL;
        *end = own->first;
        end = &(*end)->next;
        own->first = *end;
        own->count--;
    }
    *end = NULL;
    return first;
}

/* Tells a record that is no pool's in which pool records of its size are. */
void duet__task_pool(struct duet_task *task, unsigned access_count)
{
    unsigned room;
    task->pool = (uint8_t)pool_of(access_count, &room);
}

/* Frees a record, in a call of worker `by`, or of none: workers return small records in bundles. */
HOT void duet__task_free(struct duet_runtime *core, int by, struct duet_task *task)
{
    struct pool *pool = &core->pools[task->pool];
    if (by < 0 || task->pool > POOL_EXACT) {
        pool_return(pool, task, task);
        return;
    }
    struct freed *freed = &core->workers[by].freed[task->pool];
    task->next = freed->first;
    freed->first = task;
    if (freed->count++ == 0)
        freed->last = task;
    if (freed->count == BUNDLE) {
        pool_return(pool, freed->first, freed->last);
        *freed = (struct freed){.count = 0};
    }
}

/* Frees the extras of tasks that never ended, in a chunk of records up to `end`. */
static void free_extras(char *chunk, const char *end, size_t bytes)
{
    for (char *at = chunk; (size_t)(end - at) >= bytes; at += bytes) {
        struct duet_task *task = (struct duet_task *)(void *)at;
        if (!task->extra)
            continue;
        duet__fused_left(task->extra);
        duet__extra_free(task);
    }
}

void duet__pools_fini(struct duet_runtime *core)
{
    for (unsigned i = 0; i < POOLS; i++) {
        struct pool *pool = &core->pools[i];
        size_t bytes = record_bytes(pool_room(i));
        for (size_t c = 0; c < pool->chunk_count; c++) {
            char *chunk = pool->chunks[c];
            bool last = c + 1 == pool->chunk_count;
            if (core->extras)
                free_extras(chunk, last ? pool->fresh : chunk + chunk_bytes(c, bytes), bytes);
            free(chunk);
        }
        free(pool->chunks);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Questions of policies and engines */

size_t duet_task_accesses(const struct duet_task *task)
{
    return task->access_count;
}

bool duet_task_writes(const struct duet_task *task, size_t index)
{
    return index < task->access_count && (task->accesses[index].mode & DUET_W);
}

bool duet_task_reads(const struct duet_task *task, size_t index)
{
    return index < task->access_count && (task->accesses[index].mode & DUET_R);
}

uint64_t duet_task_access_bytes(const struct duet_task *task, size_t index)
{
    return index < task->access_count ? task->accesses[index].handle->bytes : 0;
}

uint64_t duet_task_data(const struct duet_task *task, size_t index)
{
    return index < task->access_count ? task->accesses[index].handle->id : 0;
}

int duet_task_priority(const struct duet_task *task)
{
    return task->priority;
}

void duet_task_set_priority(struct duet_task *task, int priority)
{
    task->priority = priority;
}

double duet_task_complexity(const struct duet_task *task)
{
    return task->complexity;
}

uint64_t duet_task_id(const struct duet_task *task)
{
    return task->id;
}

const char *duet_task_kernel(const struct duet_task *task)
{
    return task->klass->codelet->name;
}

/* False on a list by missing inputs, whose heap uses the note's place. */
static bool has_note(const struct duet_task *task)
{
    return task->state != TASK_LISTED || !task->klass ||
           task->klass->codelet->core->policy->order < DUET_NEAREST;
}

double duet_task_note(const struct duet_task *task)
{
    return has_note(task) ? task->note : 0;
}

void duet_task_set_note(struct duet_task *task, double note)
{
    if (has_note(task))
        task->note = note;
}

bool duet__task_acquires(const struct duet_task *task)
{
    return !task->klass && !task->over;
}

struct duet__class duet__task_class(const struct duet_task *task)
{
    const struct task_class *klass = task->klass;
    return (struct duet__class){klass->codelet, task_args(task), task->work, klass->counts_flops,
                                klass->number};
}

duet_kernel_fn duet__task_function(const struct duet_task *task, unsigned arch)
{
    return task->klass->codelet->run[arch];
}

duet_kernel_fn duet__task_emulation(const struct duet_task *task)
{
    return task->klass->codelet->emulation;
}

double duet__task_ready(const struct duet_task *task)
{
    return atomic_load_explicit(&task->ready_s, memory_order_relaxed);
}

const void *duet__task_args(const struct duet_task *task)
{
    return task_args(task);
}

void duet__handle_buffer(const struct duet_handle *handle, struct duet_buffer *out)
{
    *out = (struct duet_buffer){.data = atomic_load_explicit(&handle->data, memory_order_relaxed),
                                .rows = handle->rows,
                                .cols = handle->cols,
                                .ld = handle->ld,
                                .element_bytes = handle->element_bytes,
                                .planes = 1,
                                .plane = handle->ld * handle->cols};
}

inline bool duet__task_buffers(const struct duet_task *task, unsigned node, void *base,
                               struct duet_buffer *out)
{
    const unsigned count = task->access_count;
    for (unsigned i = 0; i < count; i++) {
        const struct duet_handle *handle = task->accesses[i].handle;
        if (handle->layout)
            return false;
        duet__handle_buffer(handle, &out[i]);
        if (node == DUET_HOST)
            continue;
        out[i].data = (char *)base + handle->replicas[node]->block->offset;
        out[i].ld = handle->rows;
        out[i].plane = handle->rows * handle->cols;
    }
    return true;
}
