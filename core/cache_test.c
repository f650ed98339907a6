/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of device memory as a cache: who makes room, what is copied for it, and who waits. */
#include "core/testing_script.h"

enum { BLOCK = SLAB_ALIGN, CPU = 0, GPU = 1 };

#define ONE "cpus=1 gpus=1 unasked "
#define TWO "cpus=1 gpus=2 kinds=2 unasked "

/* A write-back of a for c is on its way, which then finds room where b was. */
#define LEAVES                                                                                     \
    "data a b c; gpu a:w; gpu0 work 1; gpu b:w; gpu0 work 1; gpu c:w; gpu0 evict a gpu0>host;"     \
    "unregister b; gpu0 run 3;"

static const struct script scripts[] = {
    {"the least recently used leaves, a hit makes data the newest; the invalid goes before all",
     ONE "blocks=3",
     "data a b c d e; gpu a:r; gpu0 work 1; gpu b:r; gpu0 work 1; gpu c:r; gpu0 work 1;"
     "gpu a:r; gpu0 work 1; copies 3; gpu d:r; gpu0 work 1;"
     "valid a host gpu0; valid b host; valid c host gpu0; valid d host gpu0;"
     "gpu e:r; gpu0 work 1; valid a host gpu0; valid c host; valid d host gpu0; valid e host gpu0;"
     "cpu e:w; cpu0 work 1; gpu b:r; gpu0 work 1; valid a host gpu0; valid d host gpu0;"
     "evictions 3; write_backs 0; copies 3; reads_on_device 7; read_hits 1"},
    {"only a sole copy is written back; its place is free when that is done, and not before",
     ONE "blocks=2",
     "data a b c; gpu a:w; gpu0 work 1; copies 0; gpu b:r; gpu0 work 1; gpu c:r;"
     "gpu0 evict a gpu0>host; gpu0 idle; valid a gpu0; done a; valid a host; gpu0 work 1;"
     "valid b host gpu0; valid c host gpu0; gpu b:rw; gpu0 work 1; cpu b:r; drain; gpu a:r c:r;"
     "gpu0 work 1; write_backs 1; evictions 2; copies_to_host 2"},
    {"a task in preparation keeps its data; the next one waits for it and is woken by its end",
     ONE "blocks=3",
     "data a b c d; gpu a:w b:w; gpu c:w d:w; gpu0 run 1; gpu0 idle; pinned gpu0 2; blocked gpu0 1;"
     "done 1; pinned gpu0 0; gpu0 work 1; blocked gpu0 0; valid c gpu0; valid d gpu0"},
    {"a copy to another device pins what it reads; its end wakes the worker that waits",
     TWO "blocks=1",
     "data a b; gpu a:w; gpu0 work 1; gpu a:r; gpu1 copy a gpu0>gpu1; gpu b:w; gpu0 idle;"
     "unwoken gpu0; done a; woken gpu0; gpu0 work 1; drain; wait"},
    {"with room enough, but in pieces of which the task itself holds one, all is cleared",
     ONE "blocks=4",
     "data a b c d e*3; gpu a:{r|w|rw}; gpu0 work 1; gpu b:{r|w|rw}; gpu0 work 1;"
     "gpu c:{r|w|rw}; gpu0 work 1; gpu d:{r|w|rw}; gpu0 work 1; copies {4|0|4}; gpu b:r e:r;"
     "gpu0 work 1; used gpu0 4; copies {2|6|6}"},
    {"data that a granted task will overwrite is dropped: the writer may be at work already",
     ONE "blocks=1",
     "data a b; gpu a:w; gpu0 work 1; cpu a:w; cpu0 run 2; gpu b:r; gpu0 work 1;"
     "copied b host>gpu0; copies 0; done 2; valid a host; write_backs 0"},
    {"who reads what is being written back need not wait for that", ONE "blocks=2",
     LEAVES "gpu a:r; gpu0 run 4; hush gpu0; done a; unwoken gpu0; valid a host gpu0; done 3;"
            "done 4; valid a host gpu0"},
    {"who changes what is being written back waits for that", ONE "blocks=2",
     LEAVES "gpu a:{w|rw}; gpu0 idle; hush gpu0; done a; woken gpu0; valid a host gpu0; gpu0 run 4;"
            "done 3; done 4; valid a gpu0"},
    {"new contents for a place whose old ones are being written back come after these, by the host",
     TWO "blocks=2",
     LEAVES "gpu a:w; gpu1 work 1; valid a gpu1; gpu a:{r|w|rw}; gpu0 idle; gpu1 work 0; done a;"
            "gpu1 work 0; gpu0 work 1; copies {2|0|2}; done 3;"
            "valid a {host gpu0 gpu1|gpu0|gpu0}; wait"},
};

/* A task of exactly the slab's size runs after anything; a byte more is refused, and says why. */
static void test_limits(void)
{
    double flops = 1;
    struct testing_machine make = {.cpus = 1, .gpus = 1, .capacity_bytes = 4 * BLOCK};
    OWNED(testing_end) struct testing *t = testing_init(&make, "eager", 1);
    struct duet_handle *whole = testing_handle(t, 4 * BLOCK);
    struct duet_handle *half = testing_handle(t, 2 * BLOCK), *rest = testing_handle(t, BLOCK + 1);
    struct duet_handle *more = testing_handle(t, BLOCK + 1);
    for (unsigned i = 0; i < 3; i++) {
        (void)testing_submit(t, t->gpu, i % 2 ? half : whole, DUET_RW, i % 2 ? rest : NULL,
                             i % 2 ? DUET_RW : 0, 0);
        g_assert_cmpuint(testing_work(t, GPU, NULL), ==, 1);
    }
    struct duet_access accesses[] = {{half, DUET_R}, {rest, DUET_R}, {more, DUET_R}};
    struct duet_task_desc desc = {.codelet = t->gpu,
                                  .accesses = accesses,
                                  .access_count = 3,
                                  .args = &flops,
                                  .args_bytes = sizeof flops};
    REFUSED(t->core, duet_submit(t->core, &desc), DUET_ETOOBIG, "needs 1536 bytes");
    TOLD(t->core, "1024");
    desc.codelet = t->any; /* runs where there is room */
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(duet_worker_stats(t->core, CPU).tasks, ==, 1);
}

/* Unregistering gives every place back. */
static void test_unregister(void)
{
    struct testing_machine make = {.cpus = 1,
                                   .gpus = 2,
                                   .gpu_archs = 2,
                                   .capacity_bytes = 8 * BLOCK};
    OWNED(testing_end) struct testing *t = testing_init(&make, "eager", 1);
    for (unsigned i = 0; i < 50; i++) {
        struct duet_handle *h = testing_handle(t, (i % 4 + 1) * BLOCK);
        for (int mode = DUET_R; mode <= DUET_RW; mode++)
            (void)testing_submit(t, t->gpu, h, mode, NULL, 0, 0);
        g_assert_cmpint(duet_unregister(t->core, h), ==, DUET_OK);
        g_assert_cmpuint(t->core->nodes[1].slab.used_bytes, ==, 0);
        g_assert_cmpuint(t->core->nodes[2].slab.used_bytes, ==, 0);
    }
    g_assert_null(t->core->handles);
}

SCRIPTS_MAIN(test_scripts, test_limits, test_unregister)
