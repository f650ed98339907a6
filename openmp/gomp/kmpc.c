/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LLVM's interface (__kmpc_*, as clang calls it) over what gcc's has: regions, loops, order,
 * reductions, locks, memory. Tasks are in kmpc_task.c. Names, numbers and layouts are those of
 * LLVM's openmp/runtime/src/kmp.h. The arguments `loc` (a place in the program's source) and `gtid`
 * (a number of the thread) are not needed: each thread knows its task.
 */
#include "openmp/gomp/kmpc.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------- */
/* Threads                                                                                      */

int duet__kmpc_gtid(void)
{
    static _Thread_local int number __attribute__((tls_model("initial-exec"))); /* 0: none yet */
    static atomic_int threads;
    if (!number)
        number = atomic_fetch_add(&threads, 1) + 1;
    return number - 1;
}

/* The thread that starts the program has the number 0. */
__attribute__((constructor)) static void number_first(void)
{
    (void)duet__kmpc_gtid();
}

GIVE(int, __kmpc_global_thread_num, duet__kmpc_gtid(), void *loc)
GIVE(int, __kmpc_bound_thread_num, (int)omp_now()->thread, void *loc)
GIVE(int, __kmpc_global_num_threads, (int)omp_now()->team->size, void *loc)
GIVE(int, __kmpc_bound_num_threads, (int)omp_now()->team->size, void *loc)
GIVE(int, __kmpc_in_parallel, omp_now()->team->active_level > 0, void *loc)
GIVE(int, __kmpc_ok_to_fork, 1, void *loc)
CALL(__kmpc_begin, , void *loc, int flags)
CALL(__kmpc_end, , void *loc)

/* A thread's copy of a threadprivate variable; such copies last as long as the program. */
struct copy {
    const void *original;
    struct copy *next;
    _Alignas(max_align_t) char data[];
};

DUET__ABI(void *, __kmpc_threadprivate_cached, IDENT, void *data, size_t size, void *cache)
{
    static _Thread_local struct copy *copies;
    struct copy *copy = copies;
    if (duet__kmpc_gtid() == 0)
        return data;
    while (copy && copy->original != data)
        copy = copy->next;
    if (copy)
        return copy->data;
    copy = duet__kmpc_memory(sizeof *copy + size);
    copy->original = data;
    copy->next = copies;
    copies = copy;
    return memcpy(copy->data, data, size);
}

/* ------------------------------------------------------------------------------------------- */
/* Regions                                                                                      */

enum { ARGUMENTS = 128 };

/* A region's function, and its arguments, all of which are words. */
struct micro {
    void (*run)(int *gtid, int *thread, ...);
    unsigned count;
    void *arguments[ARGUMENTS];
};

/* Wishes of `num_threads`, `num_teams` and `thread_limit` for the next region. */
static _Thread_local struct {
    unsigned threads, teams, limit;
} pushed;

/* Functions ignore the words that are too many. */
static void micro_run(void *data)
{
    const struct micro *micro = data;
    void *const *a = micro->arguments;
    int gtid = duet__kmpc_gtid(), thread = (int)omp_now()->thread;
#define A4(i) a[i], a[(i) + 1], a[(i) + 2], a[(i) + 3]
#define A16(i) A4(i), A4((i) + 4), A4((i) + 8), A4((i) + 12)
#define A64(i) A16(i), A16((i) + 16), A16((i) + 32), A16((i) + 48)
    if (micro->count <= 4)
        micro->run(&gtid, &thread, A4(0));
    else if (micro->count <= 16)
        micro->run(&gtid, &thread, A16(0));
    else
        micro->run(&gtid, &thread, A64(0), A64(64));
}

static void micro_read(struct micro *micro, void (*run)(int *, int *, ...), int count,
                       va_list arguments)
{
    if (count > ARGUMENTS)
        duet__omp_refuse("a region with more than 128 variables");
    micro->run = run;
    micro->count = (unsigned)count;
    memset((void *)micro->arguments, 0, count <= 4 ? 4 * sizeof(void *) : sizeof micro->arguments);
    for (int i = 0; i < count; i++)
        micro->arguments[i] = va_arg(arguments, void *);
}

DUET__ABI(void, __kmpc_fork_call, void *loc, int count, void (*run)(int *, int *, ...), ...)
{
    struct micro micro;
    const unsigned threads = pushed.threads;
    va_list arguments;
    va_start(arguments, run);
    micro_read(&micro, run, count, arguments);
    va_end(arguments);
    pushed.threads = 0;
    duet__omp_region_as(KERNEL(run), micro_run, &micro, threads);
}

CALL(__kmpc_push_num_threads, pushed.threads = threads > 0 ? (unsigned)threads : 0, IDENT,
     int threads)
CALL(__kmpc_push_proc_bind, , IDENT, int bind)

static void push_teams(int teams, int limit)
{
    pushed.teams = teams > 0 ? (unsigned)teams : 0;
    pushed.limit = limit > 0 ? (unsigned)limit : 0;
}

DUET__ABI(void, __kmpc_fork_teams, void *loc, int count, void (*run)(int *, int *, ...), ...)
{
    struct micro micro;
    const unsigned teams = pushed.teams, limit = pushed.limit;
    va_list arguments;
    va_start(arguments, run);
    micro_read(&micro, run, count, arguments);
    va_end(arguments);
    pushed.teams = pushed.limit = 0;
    GOMP_teams_reg(micro_run, &micro, teams, limit, 0);
}

CALL(__kmpc_push_num_teams, push_teams(teams, limit), IDENT, int teams, int limit)
CALL(__kmpc_push_num_teams_51, push_teams(most, limit), IDENT, int least, int most, int limit)
CALL(__kmpc_push_target_tripcount, , void *loc, int64_t device, uint64_t count)
CALL(__kmpc_push_target_tripcount_mapper, , void *loc, int64_t device, uint64_t count)

/* A region of one thread, which the program itself executes. */
DUET__ABI(void, __kmpc_serialized_parallel, IDENT)
{
    struct omp_alone *alone = aligned_alloc(OMP_LINE, sizeof *alone);
    if (!alone)
        duet__omp_die("there is no memory left for a region");
    pushed.threads = 0;
    duet__omp_alone_begin(alone, NULL, NULL, NULL, NULL);
}

DUET__ABI(void, __kmpc_end_serialized_parallel, IDENT)
{
    struct omp_alone *alone =
        (struct omp_alone *)((char *)omp_now() - offsetof(struct omp_alone, task));
    duet__omp_alone_end(alone);
    free(alone);
}

/* ------------------------------------------------------------------------------------------- */
/* Order                                                                                        */

static int cancel_barrier(void)
{
    GOMP_loop_end_nowait(); /* of a loop that was cancelled */
    return duet__omp_barrier(true);
}

CALL(__kmpc_barrier, (void)duet__omp_barrier(false), IDENT)
GIVE(int, __kmpc_cancel_barrier, cancel_barrier(), IDENT)
GIVE(int, __kmpc_cancel, GOMP_cancel(1 << (kind - 1), true), IDENT, int kind)
GIVE(int, __kmpc_cancellationpoint, GOMP_cancellation_point(1 << (kind - 1)), IDENT, int kind)
GIVE(int, __kmpc_master, omp_now()->thread == 0, IDENT)
CALL(__kmpc_end_master, , IDENT)
GIVE(int, __kmpc_masked, (int)omp_now()->thread == filter, IDENT, int filter)
CALL(__kmpc_end_masked, , IDENT)
CALL(__kmpc_scope, , IDENT, void *data)
CALL(__kmpc_end_scope, , IDENT, void *data)
GIVE(int, __kmpc_single, GOMP_single_start(), IDENT)
CALL(__kmpc_end_single, , IDENT)
CALL(__kmpc_critical, GOMP_critical_name_start(name), IDENT, void **name)
CALL(__kmpc_critical_with_hint, GOMP_critical_name_start(name), IDENT, void **name, uint32_t hint)
CALL(__kmpc_end_critical, GOMP_critical_name_end(name), IDENT, void **name)
CALL(__kmpc_ordered, GOMP_ordered_start(), IDENT)
CALL(__kmpc_end_ordered, , IDENT)
CALL(__kmpc_flush, atomic_thread_fence(memory_order_seq_cst), void *loc)
CALL(__kmpc_atomic_start, GOMP_atomic_start(), void)
CALL(__kmpc_atomic_end, GOMP_atomic_end(), void)

DUET__ABI(void, __kmpc_copyprivate, IDENT, size_t size, void *data,
          void (*copy)(void *to, void *from), int has_data)
{
    struct omp_team *team = omp_now()->team;
    if (has_data)
        team->copied = data;
    (void)duet__omp_barrier(false);
    if (!has_data)
        copy(data, team->copied);
    (void)duet__omp_barrier(false);
}

/* Threads add what they have to a reduction's variables one after the other. */
#define REDUCE                                                                                     \
    IDENT, int count, size_t size, void *data, void (*reduce)(void *, void *), void **lock
GIVE(int, __kmpc_reduce, (GOMP_critical_name_start(lock), 1), REDUCE)
GIVE(int, __kmpc_reduce_nowait, (GOMP_critical_name_start(lock), 1), REDUCE)
CALL(__kmpc_end_reduce_nowait, GOMP_critical_name_end(lock), IDENT, void **lock)
CALL(__kmpc_end_reduce, (GOMP_critical_name_end(lock), (void)duet__omp_barrier(false)), IDENT,
     void **lock)

/* ------------------------------------------------------------------------------------------- */
/* Loops                                                                                        */

/* Kinds of schedules; ordered ones and those that are not merged have bits more. */
enum {
    CHUNKED = 1, /* 33 among loops without order, 65 among ordered ones */
    WHOLE,
    DYNAMIC,
    GUIDED,
    RUNTIME,
    AUTO,
    TRAPEZOIDAL,
    GUIDED_ITERATIVE = 10,
    GUIDED_ANALYTICAL,
    BALANCED_CHUNKED = 13,
    GUIDED_SIMD,
    RUNTIME_SIMD,
    KIND = 31,
    ORDERED = 64,
    UNMERGED = 128,
    DISTRIBUTE_CHUNKED = 91,
    DISTRIBUTE,
    MODIFIERS = 3 << 29, /* monotonic, nonmonotonic */
};

/* A thread's part of a loop; bounds are inclusive. */
struct part {
    uint64_t lower, upper, stride;
    bool last;
};

static void part_take(struct part *part, bool is_signed, int schedule, uint64_t step, int64_t chunk)
{
    const bool distributes = schedule == DISTRIBUTE || schedule == DISTRIBUTE_CHUNKED;
    const bool rises = (int64_t)step > 0;
    const uint64_t first = rises ? part->lower : part->upper;
    const uint64_t last = rises ? part->upper : part->lower;
    const uint64_t thread = distributes ? (unsigned)omp_get_team_num() : omp_now()->thread;
    const uint64_t size = distributes ? (unsigned)omp_get_num_teams() : omp_now()->team->size;
    part->last = false;
    part->stride = step;
    if (is_signed ? (int64_t)first > (int64_t)last : first > last)
        return;
    const uint64_t count = (last - first) / (rises ? step : 0 - step) + 1;
    if (schedule == DISTRIBUTE_CHUNKED ||
        (!distributes && ((schedule & KIND) == CHUNKED || (schedule & KIND) == BALANCED_CHUNKED))) {
        const uint64_t each = chunk > 0 ? (uint64_t)chunk : 1;
        part->stride = each * size * step;
        part->lower += thread * each * step;
        part->upper = part->lower + (each - 1) * step;
        part->last = (count - 1) / each % size == thread;
        return;
    }
    const uint64_t each = count / size, rest = count % size;
    const uint64_t begin = thread * each + (thread < rest ? thread : rest);
    const uint64_t mine = each + (thread < rest);
    part->stride = count * step;
    part->lower += begin * step;
    part->upper = part->lower + (mine - 1) * step;
    part->last = mine && begin + mine == count;
}

/* Lets a static loop be cancelled: it is a construct of its team then. */
static void static_begin(int schedule)
{
    if (duet__omp_settings()->cancellation && schedule < DISTRIBUTE_CHUNKED)
        duet__omp_loop_begin(&(struct omp_values){0}, false, NULL);
}

static void static_end(void)
{
    if (duet__omp_settings()->cancellation)
        GOMP_loop_end_nowait();
}

CALL(__kmpc_for_static_fini, static_end(), IDENT)
CALL(__kmpc_dispatch_deinit, , IDENT)

static void dispatch_begin(bool is_signed, int schedule, uint64_t lower, uint64_t upper,
                           uint64_t step, uint64_t chunk)
{
    static const uint8_t kinds[KIND + 1] = {
        [DYNAMIC] = OMP_DYNAMIC,          [GUIDED] = OMP_GUIDED,
        [TRAPEZOIDAL] = OMP_GUIDED,       [GUIDED_ITERATIVE] = OMP_GUIDED,
        [GUIDED_ANALYTICAL] = OMP_GUIDED, [GUIDED_SIMD] = OMP_GUIDED,
        [RUNTIME] = OMP_RUNTIME + 8,      [RUNTIME_SIMD] = OMP_RUNTIME + 8,
    };
    const uint8_t known = kinds[schedule & KIND];
    const unsigned kind = known ? known & OMP_KINDS : OMP_STATIC;
    const bool rises = (int64_t)step > 0;
    const uint64_t size = omp_now()->team->size;
    struct omp_values loop;
    if (!known && (schedule & KIND) != CHUNKED)
        chunk = 0;
    duet__omp_loop_set(&loop, is_signed, rises, lower, rises ? upper + 1 : upper - 1, step, kind,
                       chunk);
    if ((schedule & KIND) == RUNTIME_SIMD && chunk) /* it is the iterations of a register */
        loop.chunk = loop.chunk ? loop.chunk * chunk
                                : ((loop.count + size - 1) / size + chunk - 1) / chunk * chunk;
    if ((schedule & KIND) >= GUIDED_SIMD && loop.chunk)
        loop.unit = loop.chunk;
    duet__omp_loop_begin(&loop, schedule & ORDERED, NULL);
}

/* Takes the thread's next part; returns false if there is none, and leaves the loop. */
static bool dispatch_take(struct part *part)
{
    const struct omp_member *member = omp_now()->member;
    const struct omp_share *share = member->share;
    long first, end;
    if (!GOMP_loop_runtime_next(&first, &end)) {
        GOMP_loop_end_nowait();
        return false;
    }
    part->lower = (uint64_t)first;
    part->upper = share->loop.start + (member->end - 1) * share->loop.step;
    part->stride = share->loop.step;
    part->last = member->end == share->loop.count;
    return true;
}

#define PART_PUT(type, stepped)                                                                    \
    *lower = (type)part.lower, *upper = (type)part.upper, *stride = (stepped)part.stride;          \
    if (last)                                                                                      \
    *last = part.last

/* The functions for a type of iterations; `stepped` is the type of steps. */
#define LOOPS(suffix, type, stepped, is_signed)                                                    \
    DUET__ABI(void, __kmpc_for_static_init_##suffix, IDENT, int schedule, int *last, type *lower,  \
              type *upper, stepped *stride, stepped step, stepped chunk)                           \
    {                                                                                              \
        struct part part = {(uint64_t)*lower, (uint64_t)*upper, 0, false};                         \
        schedule &= ~MODIFIERS;                                                                    \
        static_begin(schedule);                                                                    \
        part_take(&part, is_signed, schedule, (uint64_t)step, chunk);                              \
        PART_PUT(type, stepped);                                                                   \
    }                                                                                              \
    DUET__ABI(void, __kmpc_dispatch_init_##suffix, IDENT, int schedule, type lower, type upper,    \
              stepped step, stepped chunk)                                                         \
    {                                                                                              \
        dispatch_begin(is_signed, schedule & ~(MODIFIERS | UNMERGED), (uint64_t)lower,             \
                       (uint64_t)upper, (uint64_t)step, chunk > 0 ? (uint64_t)chunk : 0);          \
    }                                                                                              \
    DUET__ABI(int, __kmpc_dispatch_next_##suffix, IDENT, int *last, type *lower, type *upper,      \
              stepped *stride)                                                                     \
    {                                                                                              \
        struct part part;                                                                          \
        if (!dispatch_take(&part))                                                                 \
            return 0;                                                                              \
        PART_PUT(type, stepped);                                                                   \
        return 1;                                                                                  \
    }                                                                                              \
    CALL(__kmpc_dispatch_fini_##suffix, , IDENT) /* ends an ordered iteration: nothing to do */

LOOPS(4, int32_t, int32_t, true)
LOOPS(4u, uint32_t, int32_t, false)
LOOPS(8, int64_t, int64_t, true)
LOOPS(8u, uint64_t, int64_t, false)

/* ------------------------------------------------------------------------------------------- */
/* Loops whose iterations wait for others                                                       */

struct dimension {
    int64_t first, last, step; /* compilers give a step of 1 */
};

enum { DIMENSIONS = 32 };

/* A bit for each iteration that was posted. */
struct doacross {
    struct kmpc_shared shared;
    int count;
    struct dimension dimensions[DIMENSIONS];
    _Atomic(uint32_t) bits[];
};

DUET__ABI(void, __kmpc_doacross_init, IDENT, int count, const struct dimension *dimensions)
{
    uint64_t bits = 1;
    bool first;
    if (count > DIMENSIONS)
        duet__omp_refuse("ordered(n) with n above 32");
    for (int i = 0; i < count; i++)
        bits *= (uint64_t)(dimensions[i].last - dimensions[i].first) + 1;
    struct doacross *doacross = duet__kmpc_share(sizeof *doacross + (bits + 31) / 8, &first);
    if (first) {
        doacross->count = count;
        memcpy(doacross->dimensions, dimensions, (size_t)count * sizeof *dimensions);
        atomic_store(&doacross->shared.ready, true);
    }
    omp_now()->member->doacross = doacross;
}

/* Finds the word and the bit of an iteration. Returns NULL if there is no such iteration. */
static _Atomic(uint32_t) *bit_of(struct doacross *doacross, const int64_t *at, uint32_t *bit)
{
    uint64_t number = 0;
    for (int i = 0; i < doacross->count; i++) {
        const struct dimension *dimension = &doacross->dimensions[i];
        if (at[i] < dimension->first || at[i] > dimension->last)
            return NULL;
        number = number * (uint64_t)(dimension->last - dimension->first + 1) +
                 (uint64_t)(at[i] - dimension->first);
    }
    *bit = UINT32_C(1) << number % 32;
    return &doacross->bits[number / 32];
}

DUET__ABI(void, __kmpc_doacross_post, IDENT, const int64_t *at)
{
    uint32_t bit;
    _Atomic(uint32_t) *word = bit_of(omp_now()->member->doacross, at, &bit);
    if (word)
        atomic_fetch_or(word, bit);
}

DUET__ABI(void, __kmpc_doacross_wait, IDENT, const int64_t *at)
{
    const struct omp_member *member = omp_now()->member;
    unsigned tries = 0;
    uint32_t bit;
    _Atomic(uint32_t) *word = bit_of(member->doacross, at, &bit);
    while (word && !(atomic_load(word) & bit) &&
           !(member->share && atomic_load(&member->share->cancelled)))
        duet__omp_rest(tries++);
}

DUET__ABI(void, __kmpc_doacross_fini, IDENT)
{
    struct doacross *doacross = omp_now()->member->doacross;
    if (duet__kmpc_share_last(&doacross->shared))
        free(doacross);
}

/* ------------------------------------------------------------------------------------------- */
/* Memory                                                                                       */

static void *aligned(size_t align, size_t size)
{
    void *memory = NULL;
    align = align < sizeof memory ? sizeof memory : align;
    return posix_memalign(&memory, align, size) ? NULL : memory;
}

GIVE(void *, __kmpc_alloc, malloc(size), int gtid, size_t size, void *allocator)
GIVE(void *, __kmpc_aligned_alloc, aligned(align, size), int gtid, size_t align, size_t size,
     void *allocator)
GIVE(void *, __kmpc_calloc, calloc(count, size), int gtid, size_t count, size_t size, void *type)
GIVE(void *, __kmpc_realloc, realloc(memory, size), int gtid, void *memory, size_t size, void *to,
     void *from)
CALL(__kmpc_free, free(memory), int gtid, void *memory, void *allocator)
GIVE(void *, kmp_malloc, malloc(size), size_t size)
GIVE(void *, kmp_aligned_malloc, aligned(align, size), size_t size, size_t align)
GIVE(void *, kmp_calloc, calloc(count, size), size_t count, size_t size)
GIVE(void *, kmp_realloc, realloc(memory, size), void *memory, size_t size)
CALL(kmp_free, free(memory), void *memory)

/* Names that LLVM's omp.h gives to functions of C. */
CALL(ompc_set_affinity_format, omp_set_affinity_format(format), const char *format)
CALL(ompc_display_affinity, omp_display_affinity(format), const char *format)
GIVE(size_t, ompc_get_affinity_format, omp_get_affinity_format(to, size), char *to, size_t size)
GIVE(size_t, ompc_capture_affinity, omp_capture_affinity(to, size, format), char *to, size_t size,
     const char *format)

/* ------------------------------------------------------------------------------------------- */

#define REFUSED4(a, b, c, d) REFUSED(a) REFUSED(b) REFUSED(c) REFUSED(d)
#define REFUSED8(a, b, c, d, ...) REFUSED4(a, b, c, d) REFUSED4(__VA_ARGS__)
REFUSED8(__kmpc_dist_for_static_init_4, __kmpc_dist_for_static_init_4u,
         __kmpc_dist_for_static_init_8, __kmpc_dist_for_static_init_8u, __kmpc_dist_dispatch_init_4,
         __kmpc_dist_dispatch_init_4u, __kmpc_dist_dispatch_init_8, __kmpc_dist_dispatch_init_8u)
REFUSED8(__kmpc_team_static_init_4, __kmpc_team_static_init_4u, __kmpc_team_static_init_8,
         __kmpc_team_static_init_8u, __kmpc_init_lock, __kmpc_init_nest_lock, __kmpc_destroy_lock,
         __kmpc_destroy_nest_lock)
REFUSED8(__kmpc_set_lock, __kmpc_set_nest_lock, __kmpc_unset_lock, __kmpc_unset_nest_lock,
         __kmpc_test_lock, __kmpc_test_nest_lock, __kmpc_barrier_master, __kmpc_end_barrier_master)
REFUSED8(__kmpc_get_taskid, __kmpc_get_parent_taskid, __kmpc_invoke_task_func,
         __kmpc_omp_task_parts, __kmpc_pop_num_threads, __kmpc_proxy_task_completed,
         __kmpc_proxy_task_completed_ooo, __kmpc_threadprivate)
REFUSED8(__kmpc_threadprivate_register, __kmpc_threadprivate_register_vec, kmp_create_affinity_mask,
         kmp_get_affinity, kmp_set_affinity, kmp_get_affinity_max_proc, kmp_get_affinity_mask_proc,
         kmp_set_affinity_mask_proc)
REFUSED8(kmp_unset_affinity_mask_proc, kmp_get_blocktime, kmp_set_blocktime, kmp_get_library,
         kmp_set_library, kmp_get_stacksize, kmp_set_stacksize, kmp_get_stacksize_s)
REFUSED8(kmp_set_stacksize_s, kmp_get_cancellation_status, kmp_get_num_known_threads,
         kmp_set_defaults, kmp_set_disp_num_buffers, kmpc_set_defaults,
         __kmpc_barrier_master_nowait, kmpc_set_blocktime)
REFUSED8(__kmpc_task_reduction_init, __kmpc_task_reduction_modifier_init, kmpc_set_library,
         kmpc_set_stacksize, kmpc_set_stacksize_s, kmpc_set_disp_num_buffers, __kmpc_pause_resource,
         kmp_threadprivate_insert)
