/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constructs of OpenMP, each with a check of what it means. gomp_test.py runs this program with
 * several numbers of threads. Prints what is wrong, and ends with status 1 then.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            wrong = 1;                                                                             \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
        }                                                                                          \
    } while (0)

enum { N = 1000 };

static int own;
#pragma omp threadprivate(own)

/* ------------------------------------------------------------------------------------------- */

static void regions(void)
{
    int threads = 0, first = 0, nested = 0;
    const omp_allocator_handle_t before = omp_get_default_allocator();
    own = 7;
    omp_set_default_allocator(omp_large_cap_mem_alloc);
#pragma omp parallel copyin(own) reduction(+ : threads, first)
    {
        CHECK(own == 7 && omp_get_level() == 1 && omp_in_parallel() == (omp_get_num_threads() > 1));
#ifndef __clang__ /* clang's libomp keeps allocators of its own threads only */
        CHECK(omp_get_default_allocator() == omp_large_cap_mem_alloc);
#endif
        threads++;
        first += omp_get_thread_num() == 0;
        own = omp_get_thread_num();
#pragma omp barrier
        CHECK(own == omp_get_thread_num() && omp_get_team_size(1) == omp_get_num_threads());
    }
    CHECK(threads == omp_get_max_threads() && first == 1 && omp_get_level() == 0);
    omp_set_default_allocator(before);
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(+ : nested)
#pragma omp parallel num_threads(3) reduction(+ : nested)
    {
        CHECK(omp_get_level() == 2 && omp_get_num_threads() == 3);
        CHECK(omp_get_ancestor_thread_num(1) < 2 && omp_get_team_size(1) == 2);
        nested++;
    }
    CHECK(nested == 6);
    omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(3)
    CHECK(omp_get_num_threads() == 1 && omp_get_active_level() == 1);
#pragma omp parallel num_threads(2)
    {
        omp_set_num_threads(5);
        CHECK(omp_get_max_threads() == 5);
    }
    CHECK(omp_get_max_threads() == threads);
}

#define LOOP(pragma_text, type, from, test, step)                                                  \
    do {                                                                                           \
        int seen[N] = {0}, count = 0;                                                              \
        _Pragma("omp parallel")                                                                    \
        {                                                                                          \
            _Pragma(pragma_text) for (type i = from; test; step)                                   \
            {                                                                                      \
                _Pragma("omp atomic") seen[i]++;                                                   \
                _Pragma("omp atomic") count++;                                                     \
            }                                                                                      \
        }                                                                                          \
        int expected = 0;                                                                          \
        for (type i = from; test; step)                                                            \
            expected += seen[i] == 1;                                                              \
        CHECK(count == expected);                                                                  \
    } while (0)

static void loops(void)
{
    LOOP("omp for", int, 0, i < N, i++);
    LOOP("omp for schedule(static, 7)", int, 3, i < N, i += 5);
    LOOP("omp for schedule(dynamic)", int, 0, i < N, i++);
    LOOP("omp for schedule(dynamic, 13) nowait", int, N - 1, i >= 0, i -= 3);
    LOOP("omp for schedule(guided, 3)", unsigned long long, 5, i < N, i += 2);
    LOOP("omp for schedule(monotonic : dynamic, 4)", unsigned long long, 0, i < N, i++);
    LOOP("omp for schedule(auto)", long, 0, i < N, i++);
    omp_set_schedule(omp_sched_guided, 4);
    LOOP("omp for schedule(runtime)", long, 0, i < N, i++);
    LOOP("omp for schedule(dynamic)", long, 5, i < 5, i++);
    /* bounds that sums would leave */
    unsigned long long sum = 0, last = ~0ULL;
#pragma omp parallel for schedule(dynamic, 3) reduction(+ : sum)
    for (unsigned long long i = last - 10; i < last; i++)
        sum += i - (last - 10);
    CHECK(sum == 45);
}

static void order(void)
{
    int next = 0, kept = 1, cells[20][20] = {{0}};
#pragma omp parallel for ordered schedule(dynamic, 3)
    for (int i = 0; i < N; i++) {
#pragma omp ordered
        kept &= next++ == i;
    }
    CHECK(kept && next == N);
    next = 0;
#pragma omp parallel for ordered schedule(static, 2)
    for (int i = 0; i < N; i++) {
        if (i % 3 == 0) {
#pragma omp ordered
            kept &= next++ == i / 3;
        }
    }
    CHECK(kept);
#pragma omp parallel for ordered(2) schedule(dynamic)
    for (int i = 1; i < 20; i++)
        for (int k = 1; k < 20; k++) {
#pragma omp ordered depend(sink : i - 1, k) depend(sink : i, k - 1)
            cells[i][k] =
                1 + (cells[i - 1][k] > cells[i][k - 1] ? cells[i - 1][k] : cells[i][k - 1]);
#pragma omp ordered depend(source)
        }
    CHECK(cells[19][19] == 37);
}

static void sharing(void)
{
    int sections = 0, singles = 0, masters = 0, scopes = 0, copied = 0, sum = 0, threads = 0;
    omp_lock_t lock;
    omp_nest_lock_t nest;
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
#pragma omp parallel
    {
        int value = 0;
#pragma omp sections reduction(+ : sections)
        {
            sections++;
#pragma omp section
            sections++;
#pragma omp section
            sections++;
        }
        for (int i = 0; i < 20; i++) {
#pragma omp single nowait
#pragma omp atomic
            singles++;
        }
#pragma omp single copyprivate(value)
        value = 42;
        CHECK(value == 42);
#pragma omp masked
        masters++;
#pragma omp critical(name)
        copied++;
        omp_set_lock(&lock);
        sum++;
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nest);
        CHECK(omp_test_nest_lock(&nest) == 2);
        threads++;
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
#ifdef __clang__ /* version 14 knows neither this nor strict */
#pragma omp for reduction(+ : scopes)
        for (int i = 0; i < omp_get_num_threads(); i++)
#else
#pragma omp scope reduction(+ : scopes)
#endif
            scopes++;
    }
    const int all = omp_get_max_threads();
    CHECK(sections == 3 && singles == 20 && masters == 1 && scopes == all);
    CHECK(copied == all && sum == all && threads == all);
    CHECK(omp_test_lock(&lock) && !omp_test_lock(&lock));
    omp_unset_lock(&lock);
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks                                                                                        */

static long fibonacci(int n)
{
    long a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a) final(n < 12) mergeable
    a = fibonacci(n - 1);
#pragma omp task shared(b) if (n > 9) untied
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

/* A chain of tasks over each of several addresses, with readers in between. */
static void chains(void)
{
    enum { CHAINS = 8, LINKS = 40 };
    int at[CHAINS] = {0}, seen[CHAINS][LINKS] = {{0}}, sum = 0;
#pragma omp parallel
#pragma omp single
    {
        for (int k = 0; k < LINKS; k++)
            for (int c = 0; c < CHAINS; c++) {
#pragma omp task depend(inout : at[c]) priority(k % 3)
                at[c]++;
#pragma omp task depend(in : at[c])
                seen[c][k] = at[c];
#pragma omp task depend(in : at[c], at[(c + 1) % CHAINS]) depend(mutexinoutset : sum)
                sum += at[c] - at[c] + 1;
            }
#pragma omp task depend(iterator(int i = 0 : CHAINS), in : at[i])
        for (int c = 0; c < CHAINS; c++)
            CHECK(at[c] == LINKS);
#pragma omp taskwait depend(in : sum)
        CHECK(sum == CHAINS * LINKS);
    }
    for (int c = 0; c < CHAINS; c++)
        for (int k = 0; k < LINKS; k++)
            CHECK(seen[c][k] == k + 1);
}

static void dependences(void)
{
    int x = 0, y = 0, z = 0, no = 0;
    omp_depend_t object;
#pragma omp parallel
#pragma omp single
    {
#pragma omp depobj(object) depend(inout : x)
#pragma omp task depend(out : x)
        x = 1;
#pragma omp task depend(depobj : object)
        x *= 10;
#pragma omp task if (no) depend(in : x)
        CHECK(x == 10);
#pragma omp task depend(out : y)
        {
            /* children have their own dependences */
#pragma omp task depend(out : y)
            y = 2;
#pragma omp task depend(in : y) shared(z)
            z = y;
#pragma omp taskwait
            CHECK(z == 2);
        }
#pragma omp task depend(in : y)
        CHECK(y == 2);
#pragma omp depobj(object) destroy
    }
}

/* Data of tasks: of many sizes, copied when they are created. */
static void data(void)
{
    struct {
        char bytes[300];
    } large;
    long sum = 0;
    double wide[4] __attribute__((aligned(64))) = {1, 2, 3, 4};
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 100; i++) {
        memset(&large, i, sizeof large);
        wide[3] = i;
#pragma omp task firstprivate(large, i, wide)
        {
            CHECK(large.bytes[299] == i && wide[3] == i);
#pragma omp atomic
            sum += large.bytes[0];
        }
    }
    CHECK(sum == 99 * 100 / 2);
}

static void groups(void)
{
    int a = 0, b = 0, sum = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskgroup
        {
#pragma omp task
            {
#pragma omp task
#pragma omp atomic
                a++;
            }
        }
        CHECK(a == 1);
#pragma omp taskgroup task_reduction(+ : sum)
        for (int i = 1; i <= 50; i++) {
#pragma omp task in_reduction(+ : sum)
            sum += i;
        }
        CHECK(sum == 50 * 51 / 2);
#ifdef __clang__
#pragma omp taskloop grainsize(7) reduction(+ : b)
#else
#pragma omp taskloop grainsize(strict : 7) reduction(+ : b)
#endif
        for (int i = 0; i < N; i++)
            b += i;
        CHECK(b == N * (N - 1) / 2);
#pragma omp taskloop num_tasks(9) nogroup shared(a)
        for (unsigned long long i = 0; i < 100; i++)
#pragma omp atomic
            a++;
#pragma omp taskwait
        CHECK(a == 101);
    }
#pragma omp parallel reduction(task, + : sum)
    {
#pragma omp task in_reduction(+ : sum)
        sum += 1000;
    }
    CHECK(sum == 50 * 51 / 2 + 1000 * omp_get_max_threads());
}

static void events(void)
{
    omp_event_handle_t first, second;
    int x = 0, y = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task detach(first) depend(out : x)
        x = 1;
#pragma omp task depend(in : x) detach(second)
        y = x + 1;
#pragma omp task
        {
            x += 0;
            omp_fulfill_event(first);
        }
#pragma omp task
        omp_fulfill_event(second);
#pragma omp taskwait
        CHECK(x == 1 && y == 2);
#ifndef __clang__ /* which has no event of an undeferred task */
#pragma omp task detach(first) depend(out : x) if (0)
        omp_fulfill_event(first);
#pragma omp task depend(in : x)
        y++;
#pragma omp taskwait
        CHECK(y == 3);
#endif
    }
}

/* More tasks that wait for others than are kept, created by a task, and by one that all wait for.
 */
static void crowds(void)
{
    enum { MANY = 6000 };
    int x = 0, sum = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp task depend(out : x)
        for (int i = 0; i < 300; i++) {
#pragma omp task depend(inout : sum)
            sum++;
        }
        for (int i = 0; i < MANY; i++) {
#pragma omp task depend(in : x)
#pragma omp atomic
            sum++;
        }
    }
    CHECK(sum == MANY + 300);
}

/* Threads of a team keep their data, also if regions inside had other ones. */
static void persistence(void)
{
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        own = 10 + omp_get_thread_num();
#pragma omp parallel num_threads(2)
        CHECK(omp_get_level() == 2);
    }
#pragma omp parallel num_threads(2)
    CHECK(own == 10 + omp_get_thread_num());
    omp_set_max_active_levels(1);
}

static void cancelled(void)
{
    int ran = 0, found = -1;
    if (!omp_get_cancellation())
        return;
#pragma omp parallel
    {
#pragma omp for schedule(dynamic)
        for (int i = 0; i < N; i++) {
            if (i == 10) {
#pragma omp atomic write
                found = i;
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
#pragma omp single
#pragma omp taskgroup
        for (int i = 0; i < N; i++) {
#pragma omp task
            {
#pragma omp atomic
                ran++;
#pragma omp cancel taskgroup
            }
        }
    }
    CHECK(found == 10 && ran >= 1);
#pragma omp parallel
    {
#pragma omp cancel parallel
        CHECK(0);
    }
}

static void leagues(void)
{
    int sum = 0;
#pragma omp teams num_teams(3) reduction(+ : sum)
    {
        CHECK(omp_get_num_teams() == 3);
        sum += omp_get_team_num();
#pragma omp parallel num_threads(2) reduction(+ : sum)
        sum += 10;
    }
    CHECK(sum == 63);
    int x = 5, y[4] = {1, 2, 3, 4};
#pragma omp target map(tofrom : y) firstprivate(x)
    {
        x++;
        for (int i = 0; i < 4; i++)
            y[i] *= x;
    }
    CHECK(x == 5 && y[3] == 24);
}

int main(void)
{
    void (*const all[])(void) = {regions, loops,  order,  sharing,     chains,    dependences, data,
                                 groups,  events, crowds, persistence, cancelled, leagues};
    long found = 0;
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            all[i]();
#pragma omp parallel
#pragma omp single
    found = fibonacci(20);
    CHECK(found == 6765);
    if (!wrong)
        puts("right");
    return wrong;
}
