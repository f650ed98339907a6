/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of cache lines, and the functions that instrumented code calls. */

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/contention/contention.h"

enum {
    LINE = 64,
    WORDS = CREW_MAX / 64,
    LINES_MAX = 1 << 19, /* of the table, a power of two */
    SITES_MAX = 1 << 13,
    NOBODY = 0,
    SPINS = 16, /* consecutive reads of one place that count as waiting */
};

struct line {
    _Atomic(uintptr_t) number; /* address over LINE; 0: free */
    atomic_flag lock;
    bool written, watched; /* by any thread; watched by one now */
    uint16_t alone;        /* 1 + thread with the only copy, or NOBODY: several or none have one */
    uint32_t moves;        /* since the reset */
    uint64_t has[WORDS];   /* threads with a copy, a bit each */
    double free_ns;        /* date at which its last move ended */
    const struct site *read, *wrote; /* of the last moves */
};

/* An instruction of the program, in a function called from one place. */
struct site {
    _Atomic(uintptr_t) key;
    uintptr_t address, caller;
    _Atomic(uint64_t) accesses, atomics, moves, waits;
};

double lines_access_ns = 1, lines_atomic_ns = 5, lines_move_ns = 80;

static struct line lines[LINES_MAX];
static struct site sites[SITES_MAX];
static _Thread_local struct lines_thread *self;
static _Atomic(bool) stopped;

void lines_become(struct lines_thread *thread)
{
    self = thread;
}

static uint64_t mixed(uintptr_t key)
{
    uint64_t x = (uint64_t)key * UINT64_C(0x9e3779b97f4a7c15);
    return x >> 32;
}

static void full(const char *what)
{
    (void)fprintf(stderr, "contention: too many %s for the table: make the benchmark smaller\n",
                  what);
    exit(1);
}

/* Returns the entry of a key in an open table whose entries begin with their key. */
static void *table_entry(void *table, size_t bytes, size_t count, uintptr_t key, const char *what)
{
    for (size_t i = 0, at = mixed(key) & (count - 1); i < count; i++, at = (at + 1) & (count - 1)) {
        _Atomic(uintptr_t) *place = (void *)((char *)table + at * bytes);
        uintptr_t found = atomic_load_explicit(place, memory_order_acquire);
        if (!found && atomic_compare_exchange_strong(place, &found, key))
            return place;
        if (found == key)
            return place;
    }
    full(what);
    return NULL;
}

/* Takes the line, which is locked, for a reading or writing thread. true: it moves. */
static bool line_take(struct line *line, bool writes)
{
    uint64_t bit = UINT64_C(1) << (self->index % 64), *word = &line->has[self->index / 64];
    uint64_t others = line->alone == self->index + 1 ? 0 : 1;
    if (others && line->alone == NOBODY) {
        others = 0;
        for (unsigned i = 0; i < WORDS; i++)
            others |= &line->has[i] == word ? *word & ~bit : line->has[i];
    }
    bool had = *word & bit;
    bool moves = writes ? others != 0 : !had && line->written && others;
    for (unsigned i = 0; writes && i < WORDS; i++)
        line->has[i] = 0;
    line->written |= writes;
    *word |= bit;
    line->alone = writes || !others ? (uint16_t)(self->index + 1) : NOBODY;
    return moves;
}

/* Moves the line, after its moves that began before. */
static void line_move(struct line *line, struct site *site, bool writes)
{
    line->moves++;
    *(writes ? &line->wrote : &line->read) = site;
    atomic_fetch_add_explicit(&site->moves, 1, memory_order_relaxed);
    if (line->free_ns > self->now_ns) {
        atomic_fetch_add_explicit(&site->waits, 1, memory_order_relaxed);
        self->now_ns = line->free_ns;
    }
    self->now_ns += lines_move_ns;
    line->free_ns = self->now_ns;
}

/* Notices a logical thread that spins, which would keep other threads' time from passing in large
 * steps. */
static void notice_spin(struct line *line, uintptr_t site, uintptr_t address, bool writes)
{
    bool has = line->has[self->index / 64] >> (self->index % 64) & 1; /* or it has changed */
    bool again = has && !writes && self->site == site && self->address == address;
    self->repeats = again ? self->repeats + 1 : 0;
    self->site = site;
    self->address = address;
    if (self->repeats < SPINS)
        return;
    self->repeats = 0;
    line->watched = true;
    self->watch(line->number);
}

static struct site *site_of(uintptr_t address)
{
    bool known = self->calls > 0 && self->calls <= LINES_CALLS;
    uintptr_t caller = known ? self->callers[self->calls - 1] : 0, key = address ^ caller << 16;
    struct site *site = table_entry(sites, sizeof *sites, SITES_MAX, key, "instructions");
    site->address = address;
    site->caller = caller;
    return site;
}

/* Finds and locks a line until `leave`. NULL: the access does not count. */
static struct line *line_enter(const volatile void *address, void *caller, bool writes,
                               bool is_atomic)
{
    if (!self || atomic_load_explicit(&stopped, memory_order_relaxed))
        return NULL;
    struct site *site = site_of((uintptr_t)caller);
    struct line *line =
        table_entry(lines, sizeof *lines, LINES_MAX, (uintptr_t)address / LINE, "cache lines");
    if (self->yield) {
        if (self->now_ns > self->limit_ns)
            self->yield();
        notice_spin(line, (uintptr_t)caller, (uintptr_t)address, writes);
    }
    atomic_fetch_add_explicit(&site->accesses, 1, memory_order_relaxed);
    if (is_atomic)
        atomic_fetch_add_explicit(&site->atomics, 1, memory_order_relaxed);
    self->now_ns += is_atomic ? lines_atomic_ns : lines_access_ns;
    while (atomic_flag_test_and_set_explicit(&line->lock, memory_order_acquire))
        ;
    if (line_take(line, writes))
        line_move(line, site, writes);
    if (line->watched && writes) {
        line->watched = false;
        self->changed(line->number);
    }
    return line;
}

static void line_leave(struct line *line)
{
    if (line)
        atomic_flag_clear_explicit(&line->lock, memory_order_release);
}

void lines_touch(const volatile void *address, size_t bytes, void *caller, bool writes)
{
    uintptr_t first = (uintptr_t)address / LINE, last = ((uintptr_t)address + bytes - 1) / LINE;
    for (uintptr_t line = first; bytes && line <= last; line++)
        line_leave(line_enter((const void *)(line * LINE), caller, writes, false));
}

/* ------------------------------------------------------------------------------------------- */
/* Counts */

void lines_reset(void)
{
    for (size_t i = 0; i < LINES_MAX; i++)
        if (lines[i].moves)
            lines[i].moves = 0;
    for (struct site *site = sites; site < sites + SITES_MAX; site++)
        site->accesses = site->atomics = site->moves = site->waits = 0;
}

void lines_stop(void)
{
    atomic_store(&stopped, true);
}

static bool is_contended(const struct line *line, uint64_t tasks)
{
    return line->moves && line->moves * (uint64_t)LINES_SHARE >= tasks;
}

struct lines_sum lines_sum(uint64_t tasks)
{
    struct lines_sum sum = {0};
    for (size_t i = 0; i < SITES_MAX; i++) {
        sum.accesses += sites[i].accesses;
        sum.atomics += sites[i].atomics;
        sum.moves += sites[i].moves;
        sum.waits += sites[i].waits;
    }
    for (size_t i = 0; i < LINES_MAX; i++)
        sum.contended += is_contended(&lines[i], tasks) ? lines[i].moves : 0;
    return sum;
}

extern char __executable_start; /* defined by the linker */

static uint64_t place(uintptr_t address)
{
    return address ? address - 1 - (uintptr_t)&__executable_start : 0;
}

static void print_line(const struct line *line)
{
    const struct site none = {0}, *read = line->read ? line->read : &none,
                      *wrote = line->wrote ? line->wrote : &none;
    printf("{\"line\": %" PRIuPTR ", \"moves\": %u, \"read\": %" PRIu64 ", \"read_by\": %" PRIu64
           ", \"wrote\": %" PRIu64 ", \"wrote_by\": %" PRIu64 "}\n",
           line->number * LINE, line->moves, place(read->address), place(read->caller),
           place(wrote->address), place(wrote->caller));
}

void lines_print(uint64_t tasks)
{
    for (size_t i = 0; i < SITES_MAX; i++)
        if (sites[i].moves)
            printf("{\"site\": %" PRIu64 ", \"caller\": %" PRIu64 ", \"accesses\": %" PRIu64
                   ", \"moves\": %" PRIu64 ", \"waits\": %" PRIu64 "}\n",
                   place(sites[i].address), place(sites[i].caller), sites[i].accesses,
                   sites[i].moves, sites[i].waits);
    for (size_t i = 0; i < LINES_MAX; i++)
        if (is_contended(&lines[i], tasks))
            print_line(&lines[i]);
}

/* ------------------------------------------------------------------------------------------- */
/* Functions that instrumented code calls, with the compilers' names */

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
    if (self && self->calls++ < LINES_CALLS)
        self->callers[self->calls - 1] = (uintptr_t)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
    if (self && self->calls)
        self->calls--;
}

#define PLAIN(name, writes, bytes)                                                                 \
    void __tsan_##name(void *address);                                                             \
    void __tsan_##name(void *address)                                                              \
    {                                                                                              \
        lines_touch(address, bytes, __builtin_return_address(0), writes);                          \
    }
#define PLAINS(bytes)                                                                              \
    PLAIN(read##bytes, false, bytes)                                                               \
    PLAIN(write##bytes, true, bytes)                                                               \
    PLAIN(unaligned_read##bytes, false, bytes)                                                     \
    PLAIN(unaligned_write##bytes, true, bytes)
PLAINS(1)
PLAINS(2)
PLAINS(4)
PLAINS(8)
PLAINS(16)

#define RANGE(name, writes)                                                                        \
    void __tsan_##name(void *address, size_t bytes);                                               \
    void __tsan_##name(void *address, size_t bytes)                                                \
    {                                                                                              \
        lines_touch(address, bytes, __builtin_return_address(0), writes);                          \
    }
RANGE(read_range, false)
RANGE(write_range, true)

#define UPDATE(type, bits, name, call)                                                             \
    type __tsan_atomic##bits##_##name(volatile type *address, type value, int order);              \
    type __tsan_atomic##bits##_##name(volatile type *address, type value, int order)               \
    {                                                                                              \
        struct line *line = line_enter(address, __builtin_return_address(0), true, true);          \
        type before = call(address, value, __ATOMIC_SEQ_CST);                                      \
        line_leave(line);                                                                          \
        return before;                                                                             \
    }
#define EXCHANGE(type, bits, name)                                                                 \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *address, type *expected,      \
                                                      type desired, int order, int failed);        \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *address, type *expected,      \
                                                      type desired, int order, int failed)         \
    {                                                                                              \
        struct line *line = line_enter(address, __builtin_return_address(0), true, true);          \
        type found = *expected;                                                                    \
        bool done = __atomic_compare_exchange_n(address, &found, desired, false, __ATOMIC_SEQ_CST, \
                                                __ATOMIC_SEQ_CST);                                 \
        *expected = found;                                                                         \
        line_leave(line);                                                                          \
        return done;                                                                               \
    }
#define ATOMICS(type, bits)                                                                        \
    type __tsan_atomic##bits##_load(const volatile type *address, int order);                      \
    type __tsan_atomic##bits##_load(const volatile type *address, int order)                       \
    {                                                                                              \
        struct line *line = line_enter(address, __builtin_return_address(0), false, false);        \
        type value = __atomic_load_n(address, __ATOMIC_SEQ_CST);                                   \
        line_leave(line);                                                                          \
        return value;                                                                              \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *address, type value, int order);               \
    void __tsan_atomic##bits##_store(volatile type *address, type value, int order)                \
    {                                                                                              \
        struct line *line =                                                                        \
            line_enter(address, __builtin_return_address(0), true, order == __ATOMIC_SEQ_CST);     \
        __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                        \
        line_leave(line);                                                                          \
    }                                                                                              \
    UPDATE(type, bits, exchange, __atomic_exchange_n)                                              \
    UPDATE(type, bits, fetch_add, __atomic_fetch_add)                                              \
    UPDATE(type, bits, fetch_sub, __atomic_fetch_sub)                                              \
    UPDATE(type, bits, fetch_and, __atomic_fetch_and)                                              \
    UPDATE(type, bits, fetch_or, __atomic_fetch_or)                                                \
    UPDATE(type, bits, fetch_xor, __atomic_fetch_xor)                                              \
    EXCHANGE(type, bits, strong)                                                                   \
    EXCHANGE(type, bits, weak)
ATOMICS(uint8_t, 8)
ATOMICS(uint16_t, 16)
ATOMICS(uint32_t, 32)
ATOMICS(uint64_t, 64)
