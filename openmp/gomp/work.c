/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worksharing: loops, sections, single, scope, ordered. A team has a ring of shares; the n-th
 * construct that its members meet is served by share n modulo OMP_SHARES. The first member to come
 * sets up the share; it is free for a later construct when all members have left it. A loop is cut
 * by numbers of iterations, from 0, whatever its type and direction.
 */
#include "openmp/gomp/gomp.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull; /* as the interface has it */

/* ------------------------------------------------------------------------------------------- */
/* Shares                                                                                       */

static void share_free(struct omp_share *share)
{
    free(share->counts);
    free(share->posted);
    free(share->memory);
    share->counts = NULL;
    share->posted = NULL;
    share->memory = NULL;
    share->reductions = NULL;
    share->dimensions = 0;
    share->ordered_loop = false;
    atomic_store_explicit(&share->left, 0, memory_order_relaxed);
    atomic_store_explicit(&share->claimed, false, memory_order_relaxed);
    atomic_store_explicit(&share->cancelled, false, memory_order_relaxed);
}

void duet__omp_shares_reset(struct omp_team *team)
{
    for (unsigned i = 0; i < OMP_SHARES; i++) {
        share_free(&team->shares[i]);
        atomic_store_explicit(&team->shares[i].turn, 2 * (uint64_t)i, memory_order_relaxed);
    }
}

/*
 * Enters the member's next construct, and returns its share; NULL: the region was cancelled. If
 * *first, the member has to set up the share and to call share_open; else another one has done so.
 */
static struct omp_share *share_enter(const struct omp_task *task, bool *first)
{
    const uint64_t number = task->member->constructs++;
    struct omp_share *share = &task->team->shares[number % OMP_SHARES];
    unsigned tries = 0;
    *first = false;
    task->member->share = share;
    task->member->trips = task->member->first = task->member->end = 0;
    for (;;) {
        uint64_t turn = atomic_load_explicit(&share->turn, memory_order_acquire);
        if (turn == 2 * number + 1)
            return share;
        if (turn == 2 * number && !atomic_exchange(&share->claimed, true)) {
            *first = true;
            return share;
        }
        /* another member, which was cancelled, never leaves the construct that has the share */
        if (turn < 2 * number && atomic_load_explicit(&task->team->cancelled, memory_order_relaxed))
            return task->member->share = NULL;
        duet__omp_rest(tries++);
    }
}

static void share_open(struct omp_share *share)
{
    atomic_store_explicit(&share->next, 0, memory_order_relaxed);
    atomic_store_explicit(&share->ordered, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&share->turn, 1, memory_order_release);
}

/* Leaves the member's construct. */
static void share_leave(const struct omp_task *task)
{
    struct omp_share *share = task->member->share;
    task->member->share = NULL;
    if (!share || atomic_fetch_add(&share->left, 1) + 1 < task->team->size)
        return;
    uint64_t turn = atomic_load_explicit(&share->turn, memory_order_relaxed);
    share_free(share);
    atomic_store_explicit(&share->turn, turn - 1 + 2 * OMP_SHARES, memory_order_release);
}

/* ------------------------------------------------------------------------------------------- */
/* Loops                                                                                        */

void duet__omp_loop_set(struct omp_values *loop, bool is_signed, bool up, uint64_t start,
                        uint64_t end, uint64_t step, unsigned schedule, uint64_t chunk)
{
    const bool rises = is_signed ? (int64_t)step > 0 : up;
    const bool any = is_signed
                         ? (rises ? (int64_t)start < (int64_t)end : (int64_t)start > (int64_t)end)
                         : (rises ? start < end : start > end);
    const uint64_t by = rises ? step : 0 - step;
    loop->start = start;
    loop->stop = end;
    loop->step = step;
    loop->count = any ? ((rises ? end - start : start - end) - 1) / by + 1 : 0;
    loop->schedule = schedule & OMP_KINDS;
    loop->chunk = chunk;
    loop->unit = 1;
    if (loop->schedule == OMP_RUNTIME) {
        const struct omp_icv *icv = omp_now()->icv;
        loop->schedule = icv->schedule & OMP_KINDS;
        loop->chunk = icv->chunk > 0 ? (uint64_t)icv->chunk : 0;
    }
    if (loop->schedule == OMP_AUTO)
        loop->schedule = OMP_STATIC;
    if (loop->schedule != OMP_STATIC && !loop->chunk)
        loop->chunk = 1;
}

static bool next_static(const struct omp_team *team, const struct omp_share *share, unsigned thread,
                        struct omp_member *member)
{
    const uint64_t count = share->loop.count, size = team->size, trip = member->trips++;
    if (share->loop.chunk) {
        const uint64_t most = UINT64_MAX / share->loop.chunk;
        if (thread > most || trip > (most - thread) / size)
            return false;
        member->first = (trip * size + thread) * share->loop.chunk;
        if (member->first >= count)
            return false;
        member->end =
            count - member->first < share->loop.chunk ? count : member->first + share->loop.chunk;
        return true;
    }
    const uint64_t each = count / size, rest = count % size;
    member->first = thread * each + (thread < rest ? thread : rest);
    member->end = member->first + each + (thread < rest);
    return trip == 0 && member->first < member->end;
}

static bool next_shared(const struct omp_team *team, struct omp_share *share,
                        struct omp_member *member)
{
    uint64_t first = atomic_load_explicit(&share->next, memory_order_relaxed), end;
    do {
        uint64_t left = share->loop.count - first, chunk = share->loop.chunk;
        if (!left)
            return false;
        if (share->loop.schedule == OMP_GUIDED && (left + team->size - 1) / team->size > chunk)
            chunk = (left + team->size - 1) / team->size;
        chunk = (chunk + share->loop.unit - 1) / share->loop.unit * share->loop.unit;
        end = chunk < left ? first + chunk : share->loop.count;
    } while (!atomic_compare_exchange_weak(&share->next, &first, end));
    member->first = first;
    member->end = end;
    return true;
}

/* Waits until it is the turn of the member's chunk in an ordered loop. */
static void wait_for_turn(const struct omp_task *task)
{
    unsigned tries = 0;
    while (atomic_load_explicit(&task->member->share->ordered, memory_order_acquire) !=
               task->member->first &&
           !atomic_load_explicit(&task->team->cancelled, memory_order_relaxed))
        duet__omp_rest(tries++);
}

/* Ends the member's chunk. */
static void chunk_end(const struct omp_task *task)
{
    struct omp_member *member = task->member;
    struct omp_share *share = member->share;
    if (member->end == member->first)
        return;
    if (share->ordered_loop) {
        wait_for_turn(task);
        atomic_store_explicit(&share->ordered, member->end, memory_order_release);
    }
    for (uint64_t i = member->first; share->posted && i < member->end; i++)
        atomic_store_explicit(&share->posted[i], UINT64_MAX, memory_order_release);
    member->end = member->first;
}

/* Gives the calling member its next iterations. Returns false if there are none. */
static bool loop_next(uint64_t *start, uint64_t *end)
{
    const struct omp_task *task = omp_now();
    struct omp_member *member = task->member;
    struct omp_share *share = member->share;
    if (!share)
        return false;
    chunk_end(task);
    if (atomic_load_explicit(&share->cancelled, memory_order_relaxed))
        return false;
    bool any = share->loop.schedule == OMP_STATIC
                   ? next_static(task->team, share, task->thread, member)
                   : next_shared(task->team, share, member);
    if (!any) {
        member->end = member->first;
        return false;
    }
    *start = share->loop.start + member->first * share->loop.step;
    *end = member->end == share->loop.count ? share->loop.stop
                                            : share->loop.start + member->end * share->loop.step;
    return true;
}

/* Arguments of a construct's start. */
struct starting {
    struct omp_values loop;
    bool ordered;
    unsigned dimensions;
    const uint64_t *counts; /* iterations of each dimension of a doacross loop */
    uintptr_t *reductions;
    void **memory;
};

static void *zeros(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        duet__omp_die("there is no memory left for a loop");
    return memory;
}

static void share_set(struct omp_share *share, const struct starting *starting)
{
    share->loop = starting->loop;
    share->ordered_loop = starting->ordered;
    share->dimensions = starting->dimensions;
    if (starting->dimensions) {
        share->counts = zeros(starting->dimensions, sizeof *share->counts);
        memcpy(share->counts, starting->counts, starting->dimensions * sizeof *share->counts);
        share->posted = zeros(share->loop.count, sizeof *share->posted);
    }
    if (starting->memory)
        share->memory = zeros(1, (size_t)(uintptr_t)*starting->memory);
}

/* Enters a construct. */
static void construct_start(const struct starting *starting)
{
    struct omp_task *task = omp_now();
    const unsigned threads = task->team->size;
    bool first;
    if (starting->reductions) {
        GOMP_taskgroup_start();
        task->group->workshare = true;
    }
    struct omp_share *share = share_enter(task, &first);
    if (first)
        share_set(share, starting);
    if (starting->reductions) {
        duet__omp_reductions(starting->reductions, task->group->reductions,
                             first || !share ? NULL : share->reductions, threads);
        task->group->reductions = starting->reductions;
    }
    if (first) {
        share->reductions = starting->reductions;
        share_open(share);
    }
    if (starting->memory)
        *starting->memory = share ? share->memory : zeros(1, (size_t)(uintptr_t)*starting->memory);
}

void duet__omp_loop_begin(const struct omp_values *loop, bool ordered, void **memory)
{
    const struct starting starting = {.loop = *loop, .ordered = ordered, .memory = memory};
    construct_start(&starting);
}

/* Starts a loop; start NULL: the program itself cuts it. */
static bool loop_start(const struct starting *starting, uint64_t *start, uint64_t *end)
{
    construct_start(starting);
    return !start || loop_next(start, end);
}

CALL(GOMP_loop_end_nowait, share_leave(omp_now()), void)

DUET__ABI(void, GOMP_loop_end, void)
{
    share_leave(omp_now());
    (void)duet__omp_barrier(false);
}

DUET__ABI(bool, GOMP_loop_end_cancel, void)
{
    share_leave(omp_now());
    return duet__omp_barrier(true);
}

/*
 * The functions for loops of long and of unsigned long long, all of which have 64 bits. IN are the
 * bounds' parameters, SET the call that reads them.
 */
#define AS(pointer) ((uint64_t *)(void *)(pointer))
#define NEXT(name, type) GIVE(bool, name, loop_next(AS(first), AS(end)), type *first, type *end)
#define LONG_IN long start, long end, long step
#define LONG_SET(loop, schedule, chunk)                                                            \
    duet__omp_loop_set(loop, true, true, (uint64_t)start, (uint64_t)end, (uint64_t)step,           \
                       (unsigned)(schedule), (uint64_t)(chunk))
#define ULL_IN bool up, ull start, ull end, ull step
#define ULL_SET(loop, schedule, chunk)                                                             \
    duet__omp_loop_set(loop, false, up, start, end, step, (unsigned)(schedule), (uint64_t)(chunk))

#define START(kind, name, type, is_ordered, schedule)                                              \
    DUET__ABI(bool, name, kind##_IN, type chunk, type *istart, type *iend)                         \
    {                                                                                              \
        struct starting starting = {.ordered = is_ordered};                                        \
        kind##_SET(&starting.loop, schedule, chunk);                                               \
        return loop_start(&starting, AS(istart), AS(iend));                                        \
    }
#define START_RUNTIME(kind, name, type, is_ordered)                                                \
    DUET__ABI(bool, name, kind##_IN, type *istart, type *iend)                                     \
    {                                                                                              \
        struct starting starting = {.ordered = is_ordered};                                        \
        kind##_SET(&starting.loop, OMP_RUNTIME, 0);                                                \
        return loop_start(&starting, AS(istart), AS(iend));                                        \
    }
#define START_ANY(kind, name, type, is_ordered)                                                    \
    DUET__ABI(bool, name, kind##_IN, long schedule, type chunk, type *istart, type *iend,          \
              uintptr_t *reductions, void **memory)                                                \
    {                                                                                              \
        struct starting starting = {.ordered = is_ordered, .memory = memory};                      \
        starting.reductions = reductions;                                                          \
        kind##_SET(&starting.loop, schedule, chunk);                                               \
        return loop_start(&starting, AS(istart), AS(iend));                                        \
    }
#define DOACROSS(name, type, SCHEDULE_IN, kind, amount, REST_IN, more)                             \
    DUET__ABI(bool, name, unsigned dimensions, type *counts, SCHEDULE_IN type *istart,             \
              type *iend REST_IN)                                                                  \
    {                                                                                              \
        struct starting starting = {.dimensions = dimensions, .counts = AS(counts)};               \
        more duet__omp_loop_set(&starting.loop, false, true, 0, (uint64_t)counts[0], 1,            \
                                (unsigned)(kind), (uint64_t)(amount));                             \
        return loop_start(&starting, AS(istart), AS(iend));                                        \
    }
#define COMMA ,
#define ALL(prefix, kind, type)                                                                    \
    START(kind, prefix##static_start, type, false, OMP_STATIC)                                     \
    START(kind, prefix##dynamic_start, type, false, OMP_DYNAMIC)                                   \
    START(kind, prefix##guided_start, type, false, OMP_GUIDED)                                     \
    START(kind, prefix##nonmonotonic_dynamic_start, type, false, OMP_DYNAMIC)                      \
    START(kind, prefix##nonmonotonic_guided_start, type, false, OMP_GUIDED)                        \
    START(kind, prefix##ordered_static_start, type, true, OMP_STATIC)                              \
    START(kind, prefix##ordered_dynamic_start, type, true, OMP_DYNAMIC)                            \
    START(kind, prefix##ordered_guided_start, type, true, OMP_GUIDED)                              \
    START_RUNTIME(kind, prefix##runtime_start, type, false)                                        \
    START_RUNTIME(kind, prefix##nonmonotonic_runtime_start, type, false)                           \
    START_RUNTIME(kind, prefix##maybe_nonmonotonic_runtime_start, type, false)                     \
    START_RUNTIME(kind, prefix##ordered_runtime_start, type, true)                                 \
    START_ANY(kind, prefix##start, type, false)                                                    \
    START_ANY(kind, prefix##ordered_start, type, true)                                             \
    NEXT(prefix##static_next, type)                                                                \
    NEXT(prefix##dynamic_next, type)                                                               \
    NEXT(prefix##guided_next, type)                                                                \
    NEXT(prefix##runtime_next, type)                                                               \
    NEXT(prefix##nonmonotonic_dynamic_next, type)                                                  \
    NEXT(prefix##nonmonotonic_guided_next, type)                                                   \
    NEXT(prefix##nonmonotonic_runtime_next, type)                                                  \
    NEXT(prefix##maybe_nonmonotonic_runtime_next, type)                                            \
    NEXT(prefix##ordered_static_next, type)                                                        \
    NEXT(prefix##ordered_dynamic_next, type)                                                       \
    NEXT(prefix##ordered_guided_next, type)                                                        \
    NEXT(prefix##ordered_runtime_next, type)                                                       \
    DOACROSS(prefix##doacross_static_start, type, type chunk COMMA, OMP_STATIC, chunk, , )         \
    DOACROSS(prefix##doacross_dynamic_start, type, type chunk COMMA, OMP_DYNAMIC, chunk, , )       \
    DOACROSS(prefix##doacross_guided_start, type, type chunk COMMA, OMP_GUIDED, chunk, , )         \
    DOACROSS(prefix##doacross_runtime_start, type, , OMP_RUNTIME, 0, , )                           \
    DOACROSS(prefix##doacross_start, type, long schedule COMMA type chunk COMMA, schedule, chunk,  \
             COMMA uintptr_t *reductions COMMA void **memory, starting.reductions = reductions;    \
             starting.memory = memory;)

ALL(GOMP_loop_, LONG, long)
ALL(GOMP_loop_ull_, ULL, ull)

/* Regions that are one loop: their members begin in it. */
#define PARALLEL_LOOP(name, schedule)                                                              \
    DUET__ABI(void, name, void (*run)(void *), void *data, unsigned threads, LONG_IN, long chunk,  \
              unsigned flags)                                                                      \
    {                                                                                              \
        struct omp_values loop;                                                                    \
        LONG_SET(&loop, schedule, chunk);                                                          \
        duet__omp_region(run, data, threads, &loop, NULL);                                         \
    }
#define PARALLEL_LOOP_RUNTIME(name)                                                                \
    DUET__ABI(void, name, void (*run)(void *), void *data, unsigned threads, LONG_IN,              \
              unsigned flags)                                                                      \
    {                                                                                              \
        struct omp_values loop;                                                                    \
        LONG_SET(&loop, OMP_RUNTIME, 0);                                                           \
        duet__omp_region(run, data, threads, &loop, NULL);                                         \
    }

PARALLEL_LOOP(GOMP_parallel_loop_static, OMP_STATIC)
PARALLEL_LOOP(GOMP_parallel_loop_dynamic, OMP_DYNAMIC)
PARALLEL_LOOP(GOMP_parallel_loop_guided, OMP_GUIDED)
PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic, OMP_DYNAMIC)
PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_guided, OMP_GUIDED)
PARALLEL_LOOP_RUNTIME(GOMP_parallel_loop_runtime)
PARALLEL_LOOP_RUNTIME(GOMP_parallel_loop_nonmonotonic_runtime)
PARALLEL_LOOP_RUNTIME(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

/* ------------------------------------------------------------------------------------------- */
/* Sections: a dynamic loop from 1                                                              */

DUET__ABI(unsigned, GOMP_sections_next, void)
{
    uint64_t section, end;
    return loop_next(&section, &end) ? (unsigned)section : 0;
}

DUET__ABI(unsigned, GOMP_sections2_start, unsigned count, uintptr_t *reductions, void **memory)
{
    struct starting starting = {.memory = memory};
    starting.reductions = reductions;
    duet__omp_loop_set(&starting.loop, false, true, 1, (uint64_t)count + 1, 1, OMP_DYNAMIC, 1);
    construct_start(&starting);
    return GOMP_sections_next();
}

GIVE(unsigned, GOMP_sections_start, GOMP_sections2_start(count, NULL, NULL), unsigned count)

DUET__ABI(void, GOMP_parallel_sections, void (*run)(void *), void *data, unsigned threads,
          unsigned count, unsigned flags)
{
    struct omp_values loop;
    duet__omp_loop_set(&loop, false, true, 1, (uint64_t)count + 1, 1, OMP_DYNAMIC, 1);
    duet__omp_region(run, data, threads, &loop, NULL);
}

CALL(GOMP_sections_end_nowait, GOMP_loop_end_nowait(), void)
CALL(GOMP_sections_end, GOMP_loop_end(), void)
GIVE(bool, GOMP_sections_end_cancel, GOMP_loop_end_cancel(), void)

/* ------------------------------------------------------------------------------------------- */
/* Single and scope                                                                             */

DUET__ABI(bool, GOMP_single_start, void)
{
    const struct omp_task *task = omp_now();
    uint64_t number = task->member->singles++;
    return atomic_load_explicit(&task->team->singles, memory_order_relaxed) == number &&
           atomic_compare_exchange_strong(&task->team->singles, &number, number + 1);
}

DUET__ABI(void *, GOMP_single_copy_start, void)
{
    if (GOMP_single_start())
        return NULL;
    (void)duet__omp_barrier(false);
    return omp_now()->team->copied;
}

DUET__ABI(void, GOMP_single_copy_end, void *data)
{
    omp_now()->team->copied = data;
    (void)duet__omp_barrier(false);
}

DUET__ABI(void, GOMP_scope_start, uintptr_t *reductions)
{
    struct starting starting = {.ordered = false};
    starting.reductions = reductions;
    if (!reductions)
        return;
    construct_start(&starting);
    share_leave(omp_now());
}

/* ------------------------------------------------------------------------------------------- */
/* Order                                                                                        */

DUET__ABI(void, GOMP_ordered_start, void)
{
    const struct omp_task *task = omp_now();
    if (task->member && task->member->share && task->member->share->ordered_loop)
        wait_for_turn(task);
}

CALL(GOMP_ordered_end, , void)

/* Numbers a doacross iteration among those that have the same outermost index. */
static uint64_t inner_of(const struct omp_share *share, const uint64_t *at)
{
    uint64_t inner = 0;
    for (unsigned i = 1; i < share->dimensions; i++)
        inner = inner * share->counts[i] + at[i];
    return inner;
}

static void post(const uint64_t *at)
{
    const struct omp_share *share = omp_now()->member->share;
    if (share && share->posted)
        atomic_store_explicit(&share->posted[at[0]], inner_of(share, at) + 1, memory_order_release);
}

CALL(GOMP_doacross_post, post(AS(at)), long *at)
CALL(GOMP_doacross_ull_post, post(AS(at)), ull *at)

/* Waits for the post of an iteration; `rest` are its numbers but the first. */
static void wait_for_post(uint64_t outer, va_list rest)
{
    enum { MOST = 64 };
    const struct omp_task *task = omp_now();
    const struct omp_share *share = task->member->share;
    uint64_t at[MOST] = {outer};
    unsigned tries = 0;
    if (!share || !share->posted || outer >= share->loop.count || task->team->size == 1)
        return;
    if (share->dimensions > MOST)
        duet__omp_refuse("ordered(n) with n above 64");
    for (unsigned i = 1; i < share->dimensions; i++)
        at[i] = va_arg(rest, uint64_t);
    const uint64_t wanted = inner_of(share, at);
    while (atomic_load_explicit(&share->posted[outer], memory_order_acquire) <= wanted &&
           !atomic_load_explicit(&share->cancelled, memory_order_relaxed) &&
           !atomic_load_explicit(&task->team->cancelled, memory_order_relaxed))
        duet__omp_rest(tries++);
}

DUET__ABI(void, GOMP_doacross_wait, long outer, ...)
{
    va_list rest;
    va_start(rest, outer);
    wait_for_post((uint64_t)outer, rest);
    va_end(rest);
}

DUET__ABI(void, GOMP_doacross_ull_wait, ull outer, ...)
{
    va_list rest;
    va_start(rest, outer);
    wait_for_post(outer, rest);
    va_end(rest);
}
