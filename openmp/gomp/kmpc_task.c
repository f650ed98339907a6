/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of LLVM's interface. A program asks for a task's memory, fills it in, and gives it back to
 * be executed: behind a header of ours and its struct kmp_task come its private variables and the
 * addresses of its shared ones. That memory is the block of task.c, which frees it.
 */
#include "openmp/gomp/kmpc.h"

#include <stdlib.h>
#include <string.h>

enum { FINAL = 2, DESTRUCTORS = 8, PRIORITY = 0x20, DETACHABLE = 0x40 }; /* of a task */

/* Part of a task that the program sees (LLVM's kmp_task_t). */
struct kmp_task {
    void *shareds;
    int (*routine)(int gtid, struct kmp_task *task);
    int part; /* of an untied task: where it goes on */
    union {
        int priority;
        int (*destructors)(int gtid, struct kmp_task *task);
    } destruct, more;
};

struct block {
    size_t bytes;    /* of the block */
    uint32_t shared; /* where the shared addresses begin; 0: there are none */
    uint8_t flags;
    bool begun; /* the task is executed */
    bool again; /* an untied task has to be executed on */
    struct kmp_task task;
};

static struct block *block_of(struct kmp_task *task)
{
    return (struct block *)((char *)task - offsetof(struct block, task));
}

void *duet__kmpc_memory(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory)
        duet__omp_die("there is no memory left");
    return memory;
}

DUET__ABI(struct kmp_task *, __kmpc_omp_task_alloc, IDENT, int flags, size_t size,
          size_t shared_size, int (*routine)(int, struct kmp_task *))
{
    const size_t front = offsetof(struct block, task);
    const size_t shared = (front + size + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
    const size_t bytes = shared + shared_size;
    struct block *block =
        duet__omp_block_new(bytes < sizeof *block ? sizeof *block : bytes, flags & DETACHABLE);
    *block = (struct block){.bytes = bytes,
                            .shared = shared_size ? (uint32_t)shared : 0,
                            .flags = (uint8_t)flags,
                            .task.routine = routine};
    if (shared_size)
        block->task.shareds = (char *)block + shared;
    return &block->task;
}

GIVE(struct kmp_task *, __kmpc_omp_target_task_alloc,
     __kmpc_omp_task_alloc(loc, gtid, flags, size, shared_size, routine), IDENT, int flags,
     size_t size, size_t shared_size, int (*routine)(int, struct kmp_task *), int64_t device)

static void destroy(struct block *block)
{
    if (block->flags & DESTRUCTORS)
        (void)block->task.destruct.destructors(duet__kmpc_gtid(), &block->task);
}

/* Executes what an untied task has left: it gives itself back after each of its parts. */
static void run_on(struct block *block)
{
    while (block->again) {
        block->again = false;
        (void)block->task.routine(duet__kmpc_gtid(), &block->task);
    }
}

static void run_block(void *data)
{
    struct block *block = data;
    block->begun = block->again = true;
    run_on(block);
    destroy(block);
}

/* ------------------------------------------------------------------------------------------- */
/* Depend clauses                                                                               */

/* An address of a depend clause. LLVM's kinds are gcc's: in 1, out 2, inout 3. */
struct depend {
    void *address;
    size_t length;
    uint8_t kind;
};

enum { HEADER = 5 };

/*
 * DEPENDS writes clang's depend clauses in gcc's format, on the caller's stack: first five numbers,
 * the second of which counts the clauses, then a pointer for each clause, then what the pointers
 * point to, which is an address and a kind.
 */
#define DEPENDS(count, depend)                                                                     \
    depends_read(__builtin_alloca((HEADER + 3 * (size_t)(count)) * sizeof(void *)), count, depend)

static void **depends_read(void **words, int count, const struct depend *depend)
{
    memset((void *)words, 0, HEADER * sizeof(void *));
    words[1] = (void *)(uintptr_t)count;
    for (int i = 0; i < count; i++) {
        void **object = words + HEADER + count + 2 * (ptrdiff_t)i;
        words[HEADER + i] = (void *)object;
        object[0] = depend[i].address;
        object[1] = (void *)(uintptr_t)depend[i].kind;
    }
    return words;
}

/* ------------------------------------------------------------------------------------------- */
/* Creating                                                                                     */

static void create(struct kmp_task *task, bool undeferred, void **depend)
{
    struct block *block = block_of(task);
    const struct omp_task_traits traits = {.final = block->flags & FINAL,
                                           .detached = block->flags & DETACHABLE,
                                           .undeferred = undeferred,
                                           .priority =
                                               block->flags & PRIORITY ? task->more.priority : 0,
                                           .depend = depend};
    duet__omp_task_new(run_block, KERNEL(task->routine), block, &traits);
}

DUET__ABI(int, __kmpc_omp_task, IDENT, struct kmp_task *task)
{
    struct block *block = block_of(task);
    if (block->begun)
        block->again = true;
    else
        create(task, false, NULL);
    return 0;
}

DUET__ABI(int, __kmpc_omp_task_with_deps, IDENT, struct kmp_task *task, int count,
          const struct depend *depend, int more, const struct depend *others)
{
    if (!count || block_of(task)->begun)
        return __kmpc_omp_task(loc, gtid, task);
    create(task, false, DEPENDS(count, depend));
    return 0;
}

/* A task that the program executes between these two calls. */
struct if0 {
    struct omp_task task;
    struct block *block;
};

DUET__ABI(void, __kmpc_omp_task_begin_if0, IDENT, struct kmp_task *task)
{
    struct if0 *if0 = duet__kmpc_memory(sizeof *if0);
    if0->block = block_of(task);
    if0->block->begun = true;
    if (if0->block->flags & DETACHABLE)
        duet__omp_refuse("detach with an if clause that is false");
    duet__omp_task_begin(&if0->task, if0->block->flags & FINAL);
}

DUET__ABI(void, __kmpc_omp_task_complete_if0, IDENT, struct kmp_task *task)
{
    struct if0 *if0 = (struct if0 *)omp_now();
    run_on(if0->block);
    duet__omp_task_end(&if0->task);
    destroy(if0->block);
    free(if0->block);
    free(if0);
}

GIVE(void *, __kmpc_task_allow_completion_event, duet__omp_event_of(block_of(task)), IDENT,
     struct kmp_task *task)
GIVE(int, __kmpc_omp_reg_task_with_affinity, 0, IDENT, void *task, int count, void *places)

/* ------------------------------------------------------------------------------------------- */
/* Waiting                                                                                      */

#define WAIT IDENT, int count, const struct depend *depend, int more, const struct depend *others
CALL(__kmpc_omp_wait_deps, GOMP_taskwait_depend(DEPENDS(count, depend)), WAIT)
CALL(__kmpc_omp_taskwait_deps_51, GOMP_taskwait_depend(DEPENDS(count, depend)), WAIT, int nowait)
GIVE(int, __kmpc_omp_taskwait, (GOMP_taskwait(), 0), IDENT)
GIVE(int, __kmpc_omp_taskyield, 0, IDENT, int part)
CALL(__kmpc_taskgroup, GOMP_taskgroup_start(), IDENT)

/* ------------------------------------------------------------------------------------------- */
/* Loops of tasks                                                                               */

typedef void duplicate(struct kmp_task *to, struct kmp_task *from, int last);

/* Places in a task of a loop for its bounds, which are inclusive; the loop's start and step. */
struct bounds {
    size_t lower, upper;
    uint64_t start, step;
};

/* Makes the task of the iterations from `begin` to before `end`. */
static struct kmp_task *task_copy(struct kmp_task *pattern, duplicate *copy, struct bounds *loop,
                                  uint64_t begin, uint64_t end, bool is_last)
{
    const struct block *from = block_of(pattern);
    struct block *to = duet__omp_block_new(from->bytes, false);
    const uint64_t first = loop->start + begin * loop->step;
    const uint64_t last = loop->start + (end - 1) * loop->step;
    memcpy(to, from, from->bytes);
    if (from->shared)
        to->task.shareds = (char *)to + from->shared;
    memcpy((char *)&to->task + loop->lower, &first, sizeof first);
    memcpy((char *)&to->task + loop->upper, &last, sizeof last);
    if (copy)
        copy(&to->task, pattern, is_last);
    return &to->task;
}

#define TASKLOOP                                                                                   \
    IDENT, struct kmp_task *pattern, int deferred, const uint64_t *lower, const uint64_t *upper,   \
        int64_t step, int nogroup, int schedule, uint64_t wanted
DUET__ABI(void, __kmpc_taskloop_5, TASKLOOP, int strict, duplicate *copy)
{
    struct bounds bounds = {(size_t)((const char *)lower - (const char *)pattern),
                            (size_t)((const char *)upper - (const char *)pattern), *lower,
                            (uint64_t)step};
    struct omp_loop loop = {.count = (step > 0 ? *upper - *lower : *lower - *upper) /
                                         (step > 0 ? (uint64_t)step : 0 - (uint64_t)step) +
                                     1};
    uint64_t begin = 0;
    if (step > 0 ? (int64_t)*lower > (int64_t)*upper : (int64_t)*lower < (int64_t)*upper)
        loop.count = 0;
    else
        duet__omp_loop_cut(&loop, schedule == 1, strict, schedule ? wanted : 0);
    if (!nogroup)
        GOMP_taskgroup_start();
    for (uint64_t i = 0; i < loop.tasks && begin < loop.count; i++) {
        uint64_t end = begin + loop.chunk + (i < loop.longer);
        end = end < loop.count ? end : loop.count;
        create(task_copy(pattern, copy, &bounds, begin, end, end == loop.count), !deferred, NULL);
        begin = end;
    }
    if (!nogroup)
        GOMP_taskgroup_end();
    destroy(block_of(pattern));
    free(block_of(pattern));
}

CALL(__kmpc_taskloop,
     __kmpc_taskloop_5(loc, gtid, pattern, deferred, lower, upper, step, nogroup, schedule, wanted,
                       0, copy),
     TASKLOOP, duplicate *copy)

/* ------------------------------------------------------------------------------------------- */
/* Memory of a team                                                                             */

void *duet__kmpc_share(size_t bytes, bool *first)
{
    void *cell = (void *)sizeof(void *); /* its size, then its address */
    struct kmpc_shared *own = duet__kmpc_memory(bytes), *theirs = NULL;
    unsigned tries = 0;
    duet__omp_loop_begin(&(struct omp_values){0}, false, &cell);
    *first = atomic_compare_exchange_strong((_Atomic(struct kmpc_shared *) *)cell, &theirs, own);
    GOMP_loop_end_nowait();
    if (*first)
        return own;
    free(own);
    while (!atomic_load_explicit(&theirs->ready, memory_order_acquire))
        duet__omp_rest(tries++);
    return theirs;
}

bool duet__kmpc_share_last(struct kmpc_shared *shared)
{
    return atomic_fetch_add(&shared->left, 1) + 1 == omp_now()->team->size;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Reductions of tasks. Each taskgroup's are an array of words as gcc has it (task.c), before the
 * variables as the program has described them. Copies are made, and initialised, for all threads of
 * the team at once.
 */

/* A variable (LLVM's kmp_taskred_input_t). */
struct variable {
    void *shared, *original;
    size_t size;
    void (*init)(void *copy, void *original);
    void (*end)(void *copy);
    void (*combine)(void *shared, void *copy);
    unsigned flags;
};

/* Copies that are those of all members' taskgroups. */
struct team_copies {
    struct kmpc_shared shared;
    uintptr_t copies, end;
};

/* The words: of an array, then of each variable. */
enum { COUNT, BYTES, COPIES, TEAM, NEXT, BEGINS, END, VARIABLES, ADDRESS = 0, OFFSET, WORDS = 3 };

static struct variable *variables_of(uintptr_t *array)
{
    return (struct variable *)(array + VARIABLES + WORDS * array[COUNT]);
}

static uintptr_t *array_new(int count, const struct variable *variables)
{
    const size_t words = VARIABLES + WORDS * (size_t)count;
    uintptr_t *array = duet__kmpc_memory(words * sizeof *array + (size_t)count * sizeof *variables);
    array[COUNT] = (uintptr_t)count;
    memcpy(variables_of(array), variables, (size_t)count * sizeof *variables);
    for (int i = 0; i < count; i++) {
        uintptr_t *variable = array + VARIABLES + WORDS * (ptrdiff_t)i;
        variable[ADDRESS] = (uintptr_t)variables[i].shared;
        variable[OFFSET] = array[BYTES];
        array[BYTES] += (variables[i].size + OMP_LINE - 1) / OMP_LINE * OMP_LINE;
    }
    array[COPIES] = OMP_LINE;
    return array;
}

/* Calls for each thread's copy of each variable: init, or (over) combine and end. */
static void copies_visit(uintptr_t *array, bool over)
{
    const struct variable *variables = variables_of(array);
    for (size_t i = 0; i < array[COUNT]; i++)
        for (uintptr_t at = array[COPIES]; at < array[END]; at += array[BYTES]) {
            void *copy = (void *)(at + array[VARIABLES + WORDS * i + OFFSET]);
            if (over)
                variables[i].combine(variables[i].shared, copy);
            else if (variables[i].init)
                variables[i].init(copy, variables[i].original);
            if (over && variables[i].end)
                variables[i].end(copy);
        }
}

static void array_register(uintptr_t *array, const uintptr_t *as)
{
    const struct omp_task *task = omp_now();
    duet__omp_reductions(array, task->group->reductions, as, task->team->size);
    task->group->reductions = array;
}

DUET__ABI(void *, __kmpc_taskred_init, int gtid, int count, const struct variable *variables)
{
    uintptr_t *array = array_new(count, variables);
    array_register(array, NULL);
    copies_visit(array, false);
    return omp_now()->group;
}

/* Reductions of a region or a loop: each member begins a taskgroup; the last to end has the sum. */
DUET__ABI(void *, __kmpc_taskred_modifier_init, IDENT, int is_loop, int count,
          const struct variable *variables)
{
    uintptr_t *array = array_new(count, variables);
    bool first;
    struct team_copies *team = duet__kmpc_share(sizeof *team, &first);
    const uintptr_t as[] = {[COPIES] = team->copies, [END] = team->end};
    GOMP_taskgroup_start();
    array_register(array, first ? NULL : as);
    array[TEAM] = (uintptr_t)team;
    if (first) {
        team->copies = array[COPIES];
        team->end = array[END];
        copies_visit(array, false);
        atomic_store(&team->shared.ready, true);
    }
    return omp_now()->group;
}

GIVE(void *, __kmpc_task_reduction_get_th_data, (GOMP_task_reduction_remap(1, 0, &data), data),
     int gtid, void *group, void *data)

DUET__ABI(void, __kmpc_end_taskgroup, IDENT)
{
    const struct omp_group *group = omp_now()->group;
    uintptr_t *array = group->reductions, *next;
    const uintptr_t *outer = group->up ? group->up->reductions : NULL;
    GOMP_taskgroup_end();
    for (; array != outer; array = next) {
        struct team_copies *team = (struct team_copies *)array[TEAM];
        next = (uintptr_t *)array[NEXT];
        if (!team || duet__kmpc_share_last(&team->shared)) {
            copies_visit(array, true);
            free((void *)array[COPIES]);
            free(team);
        }
        free(array);
    }
}

CALL(__kmpc_task_reduction_modifier_fini, __kmpc_end_taskgroup(loc, gtid), IDENT, int is_loop)
