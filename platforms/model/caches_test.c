/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the cache model: by hand, and random touches against a list that is searched through. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "platforms/model/effects.h"

enum { KIB = 1024, WORKERS = 4, SOCKETS = 3, HANDLES = 40 };

/* Four CPU workers on three sockets: 0 and 1, 2, 3. */
static const unsigned sockets[WORKERS] = {0, 0, 7, 2};

static void machine_init(struct duet_machine *machine, uint64_t shared_bytes)
{
    g_assert_cmpint(duet_machine_init(machine, 1, 1, WORKERS, 0), ==, 0);
    machine->sharing.shared_bytes = shared_bytes;
    for (unsigned w = 0; w < WORKERS; w++)
        machine->workers[w].socket = sockets[w];
}

static double touch(struct duet__caches *caches, unsigned worker, uint64_t handle, uint64_t bytes,
                    bool writes)
{
    struct duet__operand operand = {.handle = handle, .bytes = bytes, .writes = writes};
    double missing = -1;
    g_assert_cmpint(duet__caches_touch(caches, worker, &operand, 1, 1000 * KIB, &missing), ==, 0);
    return missing;
}

static void test_missing(void)
{
    g_assert_cmpfloat(duet__caches_missing(1e30, 0), ==, 0);
    g_assert_cmpfloat(duet__caches_missing(0, 64), ==, 0);
    g_assert_cmpfloat(duet__caches_missing(32, 64), ==, 0);
    g_assert_cmpfloat(duet__caches_missing(64, 64), ==, 0.5);
    g_assert_cmpfloat(duet__caches_missing(128, 64), ==, 1);
    g_assert_cmpfloat(duet__caches_missing(1e30, 64), ==, 1);
}

/* A cache of 32 KiB, pieces of 8 KiB. */
static void test_by_hand(void)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    struct duet__caches *caches;
    machine_init(&machine, 32 * KIB);
    g_assert_cmpint(duet__caches_new(&caches, &machine), ==, 0);
    /* never touched: all registered data was written since */
    g_assert_cmpfloat(touch(caches, 0, 1, 8 * KIB, false), ==, 1);
    g_assert_cmpfloat(touch(caches, 0, 1, 8 * KIB, false), ==, 0);
    for (uint64_t h = 2; h <= 4; h++)
        (void)touch(caches, 0, h, 8 * KIB, false);
    /* three others were touched since, and itself: as much as the cache, a half of which is kept
     * for sure */
    g_assert_cmpfloat(touch(caches, 0, 1, 8 * KIB, false), ==, 0.5);
    /* both workers of a socket use one cache; another socket has its own */
    g_assert_cmpfloat(touch(caches, 1, 1, 8 * KIB, false), ==, 0);
    g_assert_cmpfloat(touch(caches, 2, 1, 8 * KIB, false), ==, 1);
    g_assert_cmpfloat(touch(caches, 2, 1, 8 * KIB, false), ==, 0);
    /* a write takes the piece from all other sockets, not from the writer's own */
    g_assert_cmpfloat(touch(caches, 1, 1, 8 * KIB, true), ==, 0);
    g_assert_cmpfloat(touch(caches, 0, 1, 8 * KIB, false), ==, 0);
    g_assert_cmpfloat(touch(caches, 2, 1, 8 * KIB, false), ==, 1);
    duet__caches_free(caches);
}

/* A cache of unknown size holds everything. */
static void test_unknown(void)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    struct duet__caches *caches;
    machine_init(&machine, 0);
    g_assert_cmpint(duet__caches_new(&caches, &machine), ==, 0);
    g_assert_cmpfloat(touch(caches, 0, 1, 8 * KIB, true), ==, 0);
    g_assert_cmpfloat(touch(caches, 2, 1, 8 * KIB, false), ==, 0);
    duet__caches_free(caches);
}

/* A reference: pieces in the order of their last touch, latest last. */
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

/* Returns the part of a piece that is not in the list of this socket; a write removes it from
 * others. */
static double list_touch(struct list lists[SOCKETS], unsigned socket,
                         const struct duet__operand *operand, const uint64_t *bytes,
                         const struct duet_machine *machine)
{
    struct list *own = &lists[socket];
    double distance = list_distance(own, operand->handle, bytes);
    for (unsigned s = 0; s < SOCKETS; s++)
        if (s == socket || operand->writes)
            list_remove(&lists[s], operand->handle);
    own->handles[own->count++] = operand->handle;
    return duet__caches_missing(distance < 0 ? 1000.0 * KIB : distance,
                                (double)machine->sharing.shared_bytes);
}

static void test_random(void)
{
    static const unsigned list_of[WORKERS] = {0, 0, 1, 2};
    OWNED(duet_machine_fini) struct duet_machine machine;
    struct duet__caches *caches;
    struct list lists[SOCKETS] = {0};
    uint64_t bytes[HANDLES + 1];
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    unsigned between = 0;
    machine_init(&machine, 128 * KIB);
    g_assert_cmpint(duet__caches_new(&caches, &machine), ==, 0);
    for (unsigned h = 0; h <= HANDLES; h++)
        bytes[h] = (uint64_t)g_rand_int_range(random, 1, 16 * KIB);
    for (unsigned i = 0; i < 20000; i++) {
        unsigned worker = (unsigned)g_rand_int_range(random, 0, WORKERS);
        struct duet__operand operand = {
            .handle = (uint64_t)g_rand_int_range(random, 1, HANDLES),
            .writes = g_rand_int_range(random, 0, 8) == 0,
        };
        operand.bytes = bytes[operand.handle];
        double missing = touch(caches, worker, operand.handle, operand.bytes, operand.writes);
        g_assert_cmpfloat(missing, ==,
                          list_touch(lists, list_of[worker], &operand, bytes, &machine));
        between += missing > 0 && missing < 1;
    }
    g_assert_cmpuint(between, >, 1000); /* not only all or nothing was compared */
    duet__caches_free(caches);
}

/* Operands of one task are looked up before any of them is touched. */
static void test_task(void)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    struct duet__caches *caches;
    struct duet__operand operands[2] = {{1, 8 * KIB, false}, {1, 8 * KIB, true}};
    double missing[2];
    machine_init(&machine, 64 * KIB);
    g_assert_cmpint(duet__caches_new(&caches, &machine), ==, 0);
    g_assert_cmpint(duet__caches_touch(caches, 0, operands, 2, 64 * KIB, missing), ==, 0);
    g_assert_cmpfloat(missing[0], ==, 0.5); /* registered data is as large as the cache */
    g_assert_cmpfloat(missing[1], ==, 0.5);
    duet__caches_free(caches);
    duet__caches_free(NULL);
}

TEST_MAIN(test_missing, test_by_hand, test_unknown, test_random, test_task)
