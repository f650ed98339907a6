/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task costs the thread that submits it where there are several nodes: the sequence of a
 * Cholesky factorisation of empty tasks, with 1 to 3 accesses, in the process of one of four nodes
 * that owns nothing ("foreign": no task concerns it; "foreign-path": the same where the longest
 * path over nodes is kept, as duet run does), or all ("own", with the time until all have run), and
 * on a runtime of one node ("alone").
 *
 * Usage: nodes [TILES [REPEATS]]
 * Prints a JSON object a line for each of these and repeat.
 */
#include <stdbool.h>

#include <duet/duet.h>

#include "bench/timing.h"
#include "nodes/nodes.h"

enum { NODES = 4 };

struct tiles {
    struct duet_runtime *duet;
    struct duet_codelet *kernel;
    unsigned count;
    struct duet_handle **handles; /* of the lower triangle, by row * count + col */
    char *memory;
    size_t tasks;
};

static void expect(int error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "%s: %s\n", what, duet_strerror(error));
    exit(1);
}

static int nothing(const struct duet_call *call)
{
    (void)call;
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* No message is sent: nobody needs what others have                                            */

static void ready(void *transport, struct duet__message *message)
{
    (void)transport;
    (void)message;
    expect(DUET_EINVAL, "a message");
}

static void fail(void *transport, unsigned node, int error, const char *why)
{
    (void)transport;
    (void)node;
    expect(error, why);
}

static int barrier(void *transport)
{
    (void)transport;
    return DUET_OK;
}

static const struct duet__transport transport = {.ready = ready, .fail = fail, .barrier = barrier};

/* ------------------------------------------------------------------------------------------- */

static struct duet_handle *tile(const struct tiles *tiles, unsigned row, unsigned col)
{
    return tiles->handles[row * tiles->count + col];
}

/* foreign: dealt out to all nodes but this one. */
static void make_tiles(struct tiles *tiles, bool foreign)
{
    const unsigned count = tiles->count;
    for (unsigned row = 0; row < count; row++)
        for (unsigned col = 0; col <= row; col++) {
            struct duet_handle **handle = &tiles->handles[row * count + col];
            char *memory = &tiles->memory[row * count + col];
            expect(duet_vector(tiles->duet, memory, 1, 1, handle), "duet_vector");
            const unsigned owner = foreign ? 1 + (row + 2 * col) % (NODES - 1) : 0;
            expect(duet_own(tiles->duet, *handle, owner), "duet_own");
        }
}

static void submit(struct tiles *tiles, const struct duet_access *accesses, size_t count)
{
    const struct duet_task_desc desc = {.codelet = tiles->kernel,
                                        .accesses = accesses,
                                        .access_count = count};
    expect(duet_submit(tiles->duet, &desc), "duet_submit");
    tiles->tasks++;
}

static void cholesky(struct tiles *tiles)
{
    for (unsigned k = 0; k < tiles->count; k++) {
        submit(tiles, (struct duet_access[]){{tile(tiles, k, k), DUET_RW}}, 1);
        for (unsigned i = k + 1; i < tiles->count; i++)
            submit(tiles,
                   (struct duet_access[]){{tile(tiles, k, k), DUET_R},
                                          {tile(tiles, i, k), DUET_RW}},
                   2);
        for (unsigned i = k + 1; i < tiles->count; i++) {
            for (unsigned j = k + 1; j < i; j++)
                submit(tiles,
                       (struct duet_access[]){{tile(tiles, i, k), DUET_R},
                                              {tile(tiles, j, k), DUET_R},
                                              {tile(tiles, i, j), DUET_RW}},
                       3);
            submit(tiles,
                   (struct duet_access[]){{tile(tiles, i, k), DUET_R},
                                          {tile(tiles, i, i), DUET_RW}},
                   2);
        }
    }
}

static void measure(const char *name, unsigned count, bool several, bool foreign, bool path)
{
    struct tiles tiles = {.count = count};
    struct duet_config config;
    struct duet__nodes *nodes = NULL;
    struct duet_message message = {""};
    const struct duet_implementation cpu = {.arch = "cpu", .run = nothing};
    const struct duet_codelet_desc desc = {.name = "nothing",
                                           .implementations = &cpu,
                                           .implementation_count = 1};
    duet_config_init(&config);
    config.cpus = 1;
    config.gpus = 0;
    config.quiet = true;
    expect(duet_open(&tiles.duet, &config, &message), message.text);
    const struct duet__nodes_config several_nodes = {.count = NODES,
                                                     .hosted = 1,
                                                     .grid = {2, 2},
                                                     .cores = &tiles.duet,
                                                     .transport = &transport};
    if (several)
        expect(duet__nodes_new(&nodes, &several_nodes, &message), message.text);
    if (path)
        duet__nodes_keep_path(nodes);
    expect(duet_codelet(tiles.duet, &desc, &tiles.kernel), "duet_codelet");
    tiles.handles = zeroed((size_t)count * count * sizeof(struct duet_handle *));
    tiles.memory = zeroed((size_t)count * count);
    make_tiles(&tiles, foreign);
    double start = seconds();
    cholesky(&tiles);
    expect(duet_wait(tiles.duet), "duet_wait");
    double elapsed = seconds() - start;
    printf("{\"runtime\": \"duet\", \"benchmark\": \"nodes\", \"case\": \"%s\", \"size\": %u, "
           "\"unit\": \"ns/task\", \"value\": %.6g}\n",
           name, count, 1e9 * elapsed / (double)tiles.tasks);
    duet__nodes_free(nodes);
    expect(duet_close(tiles.duet), "duet_close");
    free(tiles.handles);
    free(tiles.memory);
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 80;
    long repeats = argc > 2 ? strtol(argv[2], NULL, 10) : 5;
    if (argc > 3 || count < 1 || count > 1000 || repeats < 1) {
        fprintf(stderr, "usage: %s [TILES [REPEATS]]\n", argv[0]);
        return 2;
    }
    for (long i = 0; i < repeats; i++) {
        measure("foreign", (unsigned)count, true, true, false);
        measure("foreign-path", (unsigned)count, true, true, true);
        measure("own", (unsigned)count, true, false, false);
        measure("alone", (unsigned)count, false, false, false);
    }
    return 0;
}
