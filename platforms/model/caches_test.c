/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the cache model: by hand, and random touches against a list that is searched through. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "platforms/model/effects.h"

enum { KIB = 1024, WORKERS = 3, HANDLES = 40 };

/* Three CPU workers on two sockets: 0 and 1, 2. */
static void machine_init(struct duet_machine *machine, uint64_t private_bytes,
                         uint64_t shared_bytes)
{
    g_assert_cmpint(duet_machine_init(machine, 1, 1, WORKERS, 0), ==, 0);
    machine->sharing.private_bytes = private_bytes;
    machine->sharing.shared_bytes = shared_bytes;
    machine->workers[2].socket = 7;
}

static struct duet__miss touch(struct duet__caches *caches, unsigned worker, uint64_t handle,
                               uint64_t bytes, bool writes)
{
    struct duet__operand operand = {.handle = handle, .bytes = bytes, .writes = writes};
    struct duet__miss miss = {-1, -1};
    g_assert_cmpint(duet__caches_touch(caches, worker, &operand, 1, 1000 * KIB, &miss), ==, 0);
    return miss;
}

#define ASSERT_MISS(miss, n, f)                                                                    \
    do {                                                                                           \
        struct duet__miss got = miss;                                                              \
        g_assert_cmpfloat(got.near, ==, n);                                                        \
        g_assert_cmpfloat(got.far, ==, f);                                                         \
    } while (0)

static void test_missing(void)
{
    g_assert_cmpfloat(duet__caches_missing(1e30, 0), ==, 0);
    g_assert_cmpfloat(duet__caches_missing(0, 64), ==, 0);
    g_assert_cmpfloat(duet__caches_missing(32, 64), ==, 0);
    g_assert_cmpfloat(duet__caches_missing(64, 64), ==, 0.5);
    g_assert_cmpfloat(duet__caches_missing(128, 64), ==, 1);
    g_assert_cmpfloat(duet__caches_missing(1e30, 64), ==, 1);
}

/* A private cache of 32 KiB, a shared one of 256 KiB, pieces of 8 KiB. */
static void test_by_hand(void)
{
    struct duet_machine machine;
    struct duet__caches *caches;
    machine_init(&machine, 32 * KIB, 256 * KIB);
    g_assert_cmpint(duet__caches_new(&caches, &machine), ==, 0);
    /* never touched: all that is registered was written since */
    ASSERT_MISS(touch(caches, 0, 1, 8 * KIB, false), 1, 1);
    ASSERT_MISS(touch(caches, 0, 1, 8 * KIB, false), 0, 0);
    for (uint64_t h = 2; h <= 4; h++)
        (void)touch(caches, 0, h, 8 * KIB, false);
    /* three others since, and itself: as large as the cache, of which a half is kept for sure */
    ASSERT_MISS(touch(caches, 0, 1, 8 * KIB, false), 0.5, 0);
    /* on the same socket, but not this worker's */
    ASSERT_MISS(touch(caches, 1, 1, 8 * KIB, false), 1, 0);
    ASSERT_MISS(touch(caches, 1, 1, 8 * KIB, false), 0, 0);
    /* another socket has its own shared cache */
    ASSERT_MISS(touch(caches, 2, 1, 8 * KIB, false), 1, 1);
    /* who writes takes it away from all others */
    ASSERT_MISS(touch(caches, 1, 1, 8 * KIB, true), 0, 0);
    ASSERT_MISS(touch(caches, 0, 1, 8 * KIB, false), 1, 0);
    ASSERT_MISS(touch(caches, 2, 1, 8 * KIB, false), 1, 1);
    duet__caches_free(caches);
    duet_machine_fini(&machine);
}

/* Caches of unknown size hold everything. */
static void test_unknown(void)
{
    struct duet_machine machine;
    struct duet__caches *caches;
    machine_init(&machine, 0, 0);
    g_assert_cmpint(duet__caches_new(&caches, &machine), ==, 0);
    ASSERT_MISS(touch(caches, 0, 1, 8 * KIB, true), 0, 0);
    ASSERT_MISS(touch(caches, 2, 1, 8 * KIB, false), 0, 0);
    duet__caches_free(caches);
    duet_machine_fini(&machine);
}

/* The model as a list of what was touched, latest last. */
struct list {
    uint64_t handles[HANDLES];
    unsigned count;
};

static void list_remove(struct list *list, uint64_t handle)
{
    for (unsigned i = 0; i < list->count; i++)
        if (list->handles[i] == handle) {
            memmove(&list->handles[i], &list->handles[i + 1],
                    (list->count - i - 1) * sizeof list->handles[0]);
            list->count--;
            return;
        }
}

static double list_distance(const struct list *list, uint64_t handle, const uint64_t *bytes)
{
    double sum = 0;
    for (unsigned i = list->count; i-- > 0;) {
        sum += (double)bytes[list->handles[i]];
        if (list->handles[i] == handle)
            return sum;
    }
    return -1;
}

static struct duet__miss list_touch(struct list *private, struct list *shared, unsigned worker,
                                    const struct duet__operand *operand, const uint64_t *bytes,
                                    const struct duet_machine *machine)
{
    unsigned socket = worker == 2;
    double near = list_distance(&private[worker], operand -> handle, bytes);
    double far = list_distance(&shared[socket], operand->handle, bytes);
    struct duet__miss miss =
        {near < 0 ? 1 : duet__caches_missing(near, (double)machine->sharing.private_bytes),
         duet__caches_missing(far < 0 ? 1000.0 * KIB : far, (double)machine->sharing.shared_bytes)};
    miss.far = MIN(miss.far, miss.near);
    for (unsigned w = 0; w < WORKERS; w++)
        if (w == worker || operand->writes)
            list_remove(&private[w], operand -> handle);
    for (unsigned s = 0; s < 2; s++)
        if (s == socket || operand->writes)
            list_remove(&shared[s], operand->handle);
    private[worker].handles[private[worker].count++] = operand->handle;
    shared[socket].handles[shared[socket].count++] = operand->handle;
    return miss;
}

static void test_random(void)
{
    struct duet_machine machine;
    struct duet__caches *caches;
    struct list private[WORKERS] = {0}, shared[2] = {0};
    uint64_t bytes[HANDLES + 1];
    GRand *random = g_rand_new_with_seed(5);
    unsigned between = 0;
    machine_init(&machine, 32 * KIB, 128 * KIB);
    g_assert_cmpint(duet__caches_new(&caches, &machine), ==, 0);
    for (unsigned h = 0; h <= HANDLES; h++)
        bytes[h] = (uint64_t)g_rand_int_range(random, 1, 16 * KIB);
    for (unsigned i = 0; i < 20000; i++) {
        unsigned worker = (unsigned)g_rand_int_range(random, 0, WORKERS);
        struct duet__operand operand = {
            .handle = (uint64_t)g_rand_int_range(random, 1, HANDLES),
            .writes = g_rand_int_range(random, 0, 3) == 0,
        };
        operand.bytes = bytes[operand.handle];
        struct duet__miss miss = {0},
                          right = list_touch(private, shared, worker, &operand, bytes, &machine);
        g_assert_cmpint(duet__caches_touch(caches, worker, &operand, 1, 1000 * KIB, &miss), ==, 0);
        g_assert_cmpfloat(miss.near, ==, right.near);
        g_assert_cmpfloat(miss.far, ==, right.far);
        between += miss.far > 0 && miss.far < 1;
    }
    g_assert_cmpuint(between, >, 100); /* not only all or nothing was compared */
    g_rand_free(random);
    duet__caches_free(caches);
    duet_machine_fini(&machine);
}

/* Operands of one task are looked for before any of them is touched. */
static void test_task(void)
{
    struct duet_machine machine;
    struct duet__caches *caches;
    struct duet__operand operands[2] = {{1, 8 * KIB, false}, {1, 8 * KIB, true}};
    struct duet__miss miss[2];
    machine_init(&machine, 32 * KIB, 256 * KIB);
    g_assert_cmpint(duet__caches_new(&caches, &machine), ==, 0);
    g_assert_cmpint(duet__caches_touch(caches, 0, operands, 2, 64 * KIB, miss), ==, 0);
    g_assert_cmpfloat(miss[1].near, ==, 1);
    g_assert_cmpfloat(miss[1].far, ==, 0); /* what is registered fits */
    duet__caches_free(caches);
    duet__caches_free(NULL);
    duet_machine_fini(&machine);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/effects/caches/missing", test_missing);
    g_test_add_func("/effects/caches/by-hand", test_by_hand);
    g_test_add_func("/effects/caches/unknown", test_unknown);
    g_test_add_func("/effects/caches/random", test_random);
    g_test_add_func("/effects/caches/task", test_task);
    return g_test_run();
}
