/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of the directory of cache lines for patterns whose counts are known. */
#ifdef __SANITIZE_THREAD__

int main(int argc, char **argv)
{
    return 77; /* the names are the sanitizer's */
}

#else

#include "bench/contention/lines.c" /* NOLINT(bugprone-suspicious-include) */

#include <assert.h>
#include <math.h>

enum { TURNS = 100 };

static _Alignas(LINE) char memory[4 * LINE];
static struct lines_thread threads[CREW_MAX];

static void by(unsigned thread)
{
    threads[thread] = (struct lines_thread){.index = thread, .limit_ns = INFINITY};
    lines_become(&threads[thread]);
}

/* Returns the counts since the last call. */
static struct lines_sum counted(void)
{
    struct lines_sum sum = lines_sum(TURNS);
    lines_reset();
    return sum;
}

/* A thread's own line never moves, whatever is beside it. */
static void test_private(void)
{
    for (unsigned i = 0; i < 2 * TURNS; i++) {
        by(i % 2);
        __tsan_write8(memory + i % 2 * LINE);
        __tsan_read4(memory + i % 2 * LINE + 8);
        (void)__tsan_atomic32_fetch_add((uint32_t *)(void *)(memory + i % 2 * LINE), 1, 0);
    }
    struct lines_sum sum = counted();
    assert(sum.moves == 0 && sum.contended == 0);
    assert(sum.accesses == 6 * TURNS && sum.atomics == 2 * TURNS);
}

/* One move a turn for one atomic operation, two for reading and then writing. */
static void test_ping_pong(void)
{
    uint64_t *word = (void *)(memory + LINE);
    *word = 0;
    by(0);
    __tsan_write8(word);
    (void)counted();
    for (unsigned i = 1; i <= TURNS; i++) {
        by(i % 2);
        assert(__tsan_atomic64_fetch_add(word, 1, __ATOMIC_RELAXED) == i - 1);
    }
    struct lines_sum sum = counted();
    assert(sum.moves == TURNS && sum.contended == TURNS);
    for (unsigned i = 1; i <= TURNS; i++) {
        by(i % 2);
        uint64_t expected = __tsan_atomic64_load(word, __ATOMIC_ACQUIRE);
        assert(__tsan_atomic64_compare_exchange_strong(word, &expected, 0, 0, 0));
        __tsan_write8(word + 1);
    }
    assert(counted().moves == 2 * TURNS);
}

/* Each reader has the line moved once after it was written, and the next writer once. */
static void test_shared(void)
{
    by(0);
    __tsan_write1(memory);
    (void)counted();
    for (unsigned i = 0; i < 3 * CREW_MAX; i++) {
        by(i % CREW_MAX);
        __tsan_read1(memory + 7);
    }
    assert(counted().moves == CREW_MAX - 1);
    for (unsigned i = 0; i < CREW_MAX; i++) {
        by(i);
        __tsan_read1(memory);
    }
    assert(counted().moves == 0);
    __tsan_write1(memory);
    __tsan_write1(memory);
    assert(counted().moves == 1);
}

/* A line that is never written does not move. An access counts for every line that it touches. */
static void test_lines(void)
{
    for (unsigned i = 0; i < TURNS; i++) {
        by(i % 3);
        __tsan_read_range(memory + 2 * LINE + 8, LINE);
    }
    struct lines_sum sum = counted();
    assert(sum.moves == 0 && sum.accesses == 2 * TURNS);
    __tsan_unaligned_write8(memory + 3 * LINE - 4);
    assert(counted().moves == 2);
    lines_become(NULL);
    __tsan_write8(memory);
    assert(counted().accesses == 0);
}

/* Moves of one line are one after another, those of two lines are not. */
static void test_dates(void)
{
    lines_move_ns = 100;
    lines_access_ns = 1;
    for (unsigned i = 0; i < 4; i++) {
        by(i);
        __tsan_write8(memory);
    }
    by(0);
    __tsan_write8(memory + LINE);
    (void)counted();
    for (unsigned i = 1; i < 4; i++) {
        by(i);
        __tsan_write8(memory + (i == 3 ? LINE : 0));
    }
    assert(counted().waits >= 1);
    assert(threads[2].now_ns == threads[1].now_ns + lines_move_ns);
}

int main(int argc, char **argv)
{
    test_private();
    test_ping_pong();
    test_shared();
    test_lines();
    test_dates();
    return 0;
}

#endif
