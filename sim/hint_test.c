/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Benefit of hints in simulations, in time and in bytes; they change no result where kernels
 * compute. The figures are those of docs/applications.md.
 */
#include <stdlib.h>
#include <string.h>

#include <duet/duet.h>
#include <duet/trace.h>

#include "sim/testing.h"
#include "runtime/testing.h"

enum { TILES = 24, EDGE = 1000, ROOM = 6 }; /* tiles in the memory of the GPU */

static const uint64_t TILE_BYTES = sizeof(double) * EDGE * EDGE;

/* 1 ms wherever it runs; a tile takes a little longer to a GPU. */
static double cost(const void *args, const char *arch)
{
    return 1e-3;
}

static int fill(const struct duet_call *call)
{
    double *to = call->buffers[0].data;
    for (size_t i = 0; i < (size_t)EDGE * EDGE; i++)
        to[i] = (double)(i % 7);
    return DUET_OK;
}

static int add(const struct duet_call *call)
{
    double *to = call->buffers[0].data;
    const double *from = call->buffers[1].data;
    for (size_t i = 0; i < (size_t)EDGE * EDGE; i++)
        to[i] += from[i];
    return DUET_OK;
}

struct world {
    struct duet_runtime *duet;
    struct duet_codelet *fill, *add, *prepare;
    struct duet_handle *tiles[TILES], *sum;
    double *data;
    bool hints;
};

static struct duet_codelet *codelet(const struct world *world, const char *name, duet_kernel_fn run,
                                    bool cpu)
{
    const struct duet_implementation where[] = {{cpu ? "cpu" : "cuda", cpu ? run : NULL},
                                                {"emulated", run}};
    const struct duet_codelet_desc desc = {.name = name,
                                           .implementations = where,
                                           .implementation_count = cpu ? 1 : 2,
                                           .cost = cost};
    struct duet_codelet *made = NULL;
    must(world->duet, duet_register_codelet(world->duet, &desc, &made));
    return made;
}

static void open_world(struct world *world, bool simulate, bool hints)
{
    struct duet_config config = testing_config(simulate ? "idgraf" : NULL, 1, 1);
    config.emulate = simulate ? NULL : "free";
    config.gpu_memory_bytes = ROOM * (TILE_BYTES + 4096);
    *world = (struct world){.duet = testing_open(&config), .hints = hints};
    world->data = calloc((TILES + 1) * (size_t)EDGE * EDGE, sizeof(double));
    for (size_t i = 0; i <= TILES; i++)
        must(world->duet,
             duet_register_matrix(world->duet, world->data + i * EDGE * EDGE, EDGE, EDGE, EDGE,
                                  sizeof(double), i < TILES ? &world->tiles[i] : &world->sum));
    world->fill = codelet(world, "fill", fill, false);
    world->add = codelet(world, "add", add, false);
    world->prepare = codelet(world, "prepare", fill, true);
}

static void submit(const struct world *world, const struct duet_codelet *kernel,
                   struct duet_handle *a, enum duet_mode mode, struct duet_handle *read)
{
    const struct duet_access accesses[] = {{a, mode}, {read, DUET_R}};
    const struct duet_task_desc task = {.codelet = kernel,
                                        .accesses = accesses,
                                        .access_count = read ? 2 : 1};
    must(world->duet, duet_submit(world->duet, &task));
}

/* A CPU prepares one tile of two; the GPU's part of the work may fetch the other meanwhile. */
static void ahead(const struct world *world)
{
    for (unsigned i = 0; i < ROOM - 1; i++) {
        submit(world, world->prepare, world->sum, DUET_W, NULL);
        if (world->hints)
            must(world->duet, duet_prefetch(world->duet, world->tiles[i], 1));
        submit(world, world->add, world->tiles[i], DUET_RW, world->sum);
    }
}

/* More results than there is room for, each used once. */
static void results(const struct world *world)
{
    for (unsigned i = 0; i < TILES; i++) {
        submit(world, world->fill, world->tiles[i], DUET_W, NULL);
        if (world->hints)
            must(world->duet, duet_wont_use(world->duet, world->tiles[i]));
    }
}

/* Runs the program with its data as steps to a sum only. */
static void steps(const struct world *world)
{
    submit(world, world->fill, world->sum, DUET_W, NULL);
    for (unsigned i = 0; i < TILES; i++) {
        submit(world, world->fill, world->tiles[i], DUET_W, NULL);
        submit(world, world->add, world->sum, DUET_RW, world->tiles[i]);
        if (world->hints)
            must(world->duet, duet_invalidate(world->duet, world->tiles[i]));
    }
}

typedef void (*program_fn)(const struct world *world);

/* Returns a figure of the contents; *stats: the run's. */
static double run(program_fn program, bool simulate, bool hints, struct duet_stats *stats)
{
    struct world world;
    open_world(&world, simulate, hints);
    program(&world);
    must(world.duet, duet_wait(world.duet));
    duet_stats(world.duet, stats);
    must(world.duet, duet_unregister(world.duet, world.sum));
    must(world.duet, duet_unregister(world.duet, world.tiles[0]));
    const double last = world.data[(size_t)TILES * EDGE * EDGE + 5] + 1000 * world.data[5];
    g_assert_cmpint(duet_close(world.duet), ==, DUET_OK);
    free(world.data);
    return last;
}

struct simulation {
    const char *name;
    program_fn program;
    bool hints;
};

static void simulate_one(const void *argument, FILE *out)
{
    const struct simulation *one = argument;
    struct duet_stats stats;
    (void)run(one->program, true, one->hints, &stats);
    g_assert_cmpuint(fwrite(&stats, sizeof stats, 1, out), ==, 1);
}

/* Figures without hints and with; one simulation a process. */
static void simulate(const char *name, program_fn program, struct duet_stats stats[2])
{
    for (int hints = 0; hints < 2; hints++) {
        const struct simulation one = {name, program, hints};
        GByteArray *bytes = lab_fork(simulate_one, &one);
        g_assert_cmpuint(bytes->len, ==, sizeof *stats);
        memcpy(&stats[hints], bytes->data, sizeof *stats);
        g_byte_array_unref(bytes);
        g_test_message("%s, %s hints: %.1f ms, %.0f MB in, %.0f MB out", name,
                       hints ? "with" : "without", 1e3 * stats[hints].makespan_s,
                       1e-6 * (double)stats[hints].bytes_to_device,
                       1e-6 * (double)stats[hints].bytes_to_host);
    }
}

/* Compares the numbers with and without hints. */
static void compare(program_fn program)
{
    struct duet_stats stats;
    const double without = run(program, false, false, &stats);
    g_assert_cmpfloat(without, ==, run(program, false, true, &stats));
}

static void test_results(void)
{
    compare(ahead);
    compare(results);
}

static void test_steps(void)
{
    struct duet_stats stats;
    g_assert_cmpfloat(fmod(run(steps, false, true, &stats), 1000), ==, 5 * (TILES + 1));
}

static void test_worth(void)
{
    struct duet_stats stats[2];
    simulate("prefetch", ahead, stats);
    g_assert_cmpfloat(stats[1].makespan_s, <, 0.85 * stats[0].makespan_s);
    g_assert_cmpuint(stats[1].bytes_to_device, ==, stats[0].bytes_to_device);
    simulate("wont_use", results, stats);
    g_assert_cmpfloat(stats[1].makespan_s, <=, stats[0].makespan_s);
    simulate("invalidate", steps, stats);
    g_assert_cmpfloat(stats[1].makespan_s, <=, stats[0].makespan_s);
    g_assert_cmpuint(stats[1].bytes_to_host, <, stats[0].bytes_to_host / 4);
}

/* Hints with no handle or no node are refused, and those inside a task are left. */
static void test_refused(void)
{
    struct world world;
    open_world(&world, false, false);
    REFUSED(world.duet, duet_prefetch(world.duet, world.sum, 2), DUET_EINVAL,
            "one of the 2 memory nodes");
    g_assert_cmpint(duet_wont_use(world.duet, NULL), ==, DUET_EINVAL);
    g_assert_cmpint(duet_close(world.duet), ==, DUET_OK);
    free(world.data);
}

TEST_MAIN(test_worth, test_results, test_steps, test_refused)
