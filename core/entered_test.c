/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the graph for bounds: order, uses, data that is in the host's memory alone. */
#include "core/testing_lost.h"

enum { BLOCK = SLAB_ALIGN };

/* A task that reads the handle, after another one. */
static void submit_after(struct testing *t, struct duet_ref **ref, struct duet_ref *after,
                         struct duet_handle *handle)
{
    double flops = 0;
    const struct duet_access access = {handle, DUET_R};
    const struct duet_task_desc desc = {.codelet = t->any,
                                        .accesses = &access,
                                        .access_count = 1,
                                        .args = &flops,
                                        .args_bytes = sizeof flops,
                                        .extra = &(struct duet_task_extra){.ref = ref,
                                                                           .after = &after,
                                                                           .after_count = 1}};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
}

static void assert_uses(const struct duet__entered *kept, size_t task, const uint32_t *uses,
                        size_t count)
{
    const uint32_t first = task ? kept->tasks[task - 1].end : 0;
    g_assert_cmpmem(&kept->uses[first], (kept->tasks[task].end - first) * sizeof *uses, uses,
                    count * sizeof *uses);
}

#define USE(number, flags) ((uint32_t)(number) << DUET__USE_BITS | (uint32_t)(flags))

static void test_uses(void)
{
    struct duet_ref *first, *second;
    struct duet_class_stats stats;
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1, .gpus = 1}, "eager");
    struct duet_handle *a = testing_handle(t, BLOCK), *b = testing_handle(t, 2 * BLOCK);
    g_assert_null(duet__entered(t->core));
    duet__keep_entered(t->core);
    const struct duet__entered *kept = duet__entered(t->core);
    submit_to(t, t->gpu, NULL, a, DUET_RW, b, DUET_R);
    submit_to(t, t->any, NULL, b, DUET_W, a, DUET_COMMUTE);
    submit_after(t, &first, NULL, a);
    submit_after(t, &second, first, b);
    g_assert_cmpuint(kept->task_count, ==, 4);
    assert_uses(kept, 0,
                (uint32_t[]){USE(0, DUET__USE_READS | DUET__USE_IN_TURN), USE(1, DUET__USE_READS)},
                2);
    assert_uses(kept, 1, (uint32_t[]){USE(1, DUET__USE_IN_TURN), USE(0, DUET__USE_READS)}, 2);
    assert_uses(kept, 2, (uint32_t[]){USE(0, DUET__USE_READS)}, 1);
    assert_uses(kept, 3, (uint32_t[]){USE(2, DUET__USE_TASK), USE(1, DUET__USE_READS)}, 2);
    g_assert_cmpuint(kept->datum_count, ==, 2);
    g_assert_cmpuint(kept->bytes[0], ==, BLOCK);
    g_assert_cmpuint(kept->bytes[1], ==, 2 * BLOCK);
    g_assert_cmpint(duet_class_stats(t->core, kept->tasks[0].klass, &stats), ==, DUET_OK);
    g_assert_cmpstr(stats.kernel, ==, "for_gpus");
    (void)go(t, NULL);

    /* a new measurement begins with where data is then, and with numbers of its own */
    duet_stats_reset(t->core);
    g_assert_cmpuint(kept->task_count, ==, 0);
    submit_to(t, t->gpu, NULL, b, DUET_RW, NULL, 0);
    (void)go(t, NULL);
    duet_stats_reset(t->core);
    submit_after(t, NULL, second, b);
    assert_uses(kept, 0, (uint32_t[]){USE(0, DUET__USE_READS)}, 1);
    g_assert_cmpuint(kept->bytes[0], ==, 0);
    (void)go(t, NULL);
    duet_ref_free(first);
    duet_ref_free(second);
    lost_end(t, DUET_OK, NULL);
}

/* An acquisition is no kernel; data that was cut has places in common with its parts. */
static void test_others(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1, .gpus = 1}, "eager");
    struct duet_handle *a = testing_handle(t, BLOCK);
    duet__keep_entered(t->core);
    const struct duet__entered *kept = duet__entered(t->core);
    g_assert_cmpint(duet_acquire(t->core, a, DUET_R), ==, DUET_OK);
    g_assert_cmpint(duet_release(t->core, a), ==, DUET_OK);
    g_assert_cmpuint(kept->task_count, ==, 1);
    g_assert_cmpuint(kept->tasks[0].klass, ==, UINT32_MAX);
    atomic_store(&a->family, true);
    duet_stats_reset(t->core);
    submit_to(t, t->cpu, NULL, a, DUET_R, NULL, 0);
    g_assert_cmpuint(kept->bytes[0], ==, 0);
    (void)go(t, NULL);
    lost_end(t, DUET_OK, NULL);
}

TEST_MAIN(test_uses, test_others)
