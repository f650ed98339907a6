/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs by processes, over MPI: each is a node, and the first one
 * compares what all have read and left. Started by mpirun, see mpi_test.py.
 */
#include "nodes/testing_random.h"

int duet__testing_random(unsigned first, unsigned count);

static int open_rank(struct run *run, struct duet_message *message)
{
    struct member *member = opening;
    int error = duet_open(&member->node.duet, &run->setting.config, message);
    if (error)
        return error;
    run->own = member;
    run->duet = member->node.duet;
    member->node.number = duet_node(run->duet);
    member->cluster->fabric->count = duet_node_count(run->duet);
    member->cluster->grid = duet_node_grid(run->duet);
    return DUET_OK;
}

static void pass(FILE *stream, bool writes, void *at, size_t bytes)
{
    g_assert_cmpuint(writes ? fwrite(at, 1, bytes, stream) : fread(at, 1, bytes, stream), ==,
                     bytes);
}

/* What one process has and `check` looks at: to the stream, or from it. */
static void pass_all(FILE *stream, bool writes, struct member *member)
{
    struct run *run = member->run;
    for (unsigned i = 0; i < run->setting.steps; i++) {
        struct step *step = &run->steps[i];
        const size_t results = step->kind == EXPANDS || step->chain ? RESULTS : 1;
        pass(stream, writes, step->results, results * sizeof *step->results);
        pass(stream, writes, &step->ended, sizeof step->ended);
    }
    pass(stream, writes, run->real_sums, sizeof run->real_sums);
    pass(stream, writes, run->real_words, sizeof run->real_words);
    pass(stream, writes, &run->real_bare, sizeof run->real_bare);
    pass(stream, writes, member->words, sizeof member->words);
}

/* A process as it is known to the first one, from what it has sent. */
static void receive(struct member *other, const struct member *mine, unsigned number, char *bytes,
                    size_t count)
{
    *other = *mine;
    other->node.number = number;
    other->run = g_memdup2(mine->run, sizeof *mine->run);
    other->run->steps =
        g_memdup2(mine->run->steps, mine->run->setting.steps * sizeof *mine->run->steps);
    for (unsigned i = 0; i < mine->run->setting.steps; i++)
        other->run->steps[i].results = g_new0(uint64_t, RESULTS);
    FILE *stream = fmemopen(bytes, count, "r");
    pass_all(stream, false, other);
    fclose(stream);
}

static void forget(struct member *other)
{
    for (unsigned i = 0; i < other->run->setting.steps; i++)
        g_free(other->run->steps[i].results);
    g_free(other->run->steps);
    g_free(other->run);
}

static void compare(struct member *mine)
{
    const unsigned count = count_of(mine->run);
    struct duet__nodes *nodes = duet__nodes_of(mine->run->duet);
    struct member *members = g_new0(struct member, count);
    size_t *sizes = g_new0(size_t, count), bytes, at = 0;
    char *buffer;
    void *all;
    FILE *stream = open_memstream(&buffer, &bytes);
    pass_all(stream, true, mine);
    fclose(stream);
    g_assert_cmpint(duet__nodes_gather(nodes, buffer, bytes, &all, sizes), ==, DUET_OK);
    for (unsigned n = 0; n < count && all; at += sizes[n++])
        if (n)
            receive(&members[n], mine, n, (char *)all + at, sizes[n]);
    members[0] = *mine;
    if (all)
        check(mine->run, members, count);
    for (unsigned n = 1; n < count && all; n++)
        forget(&members[n]);
    free(all);
    free(buffer);
    g_free(sizes);
    g_free(members);
}

/* Whether it ended well: the same everywhere. */
static bool run_rank(struct cluster *cluster)
{
    struct member member = {.cluster = cluster};
    opening = &member;
    struct run *run = member.run = run_new(&cluster->setting);
    submit_all(run);
    check_error(run, duet_wait(run->duet));
    check_error(run, atomic_load(&run->refused));
    if (!run->setting.abrupt) {
        for (unsigned h = 0; h < handle_count(&run->setting) + SUMS; h++)
            check_error(run, duet_unregister(run->duet, any_handle(run, h)));
        for (unsigned i = 0; i < COMMON; i++)
            check_error(run, duet_unregister(run->duet, member.common[i]));
    }
    int error = duet_wait(run->duet);
    if (!error)
        compare(&member);
    g_assert_cmpint(duet_close(run->duet), ==, error);
    run_free(run);
    return !error;
}

int duet__testing_random(unsigned first, unsigned count)
{
    unsigned good = 0;
    for (unsigned number = first; number < first + count; number++) {
        struct cluster *cluster = g_new0(struct cluster, 1);
        static const char *const grids[] = {"1x%s", "%sx1", "%s"};
        g_autofree char *nodes =
            g_strdup_printf(grids[number % 3], g_getenv("OMPI_COMM_WORLD_SIZE"));
        draw(cluster, number);
        fabric_free(cluster->fabric);
        cluster->fabric = g_new0(struct fabric, 1); /* which only says how many nodes there are */
        cluster->world.open = open_rank;
        cluster->setting.config.nodes = nodes;
        good += run_rank(cluster);
        g_free(cluster->fabric);
        g_free(cluster);
    }
    return 2 * good > count ? EXIT_SUCCESS : EXIT_FAILURE;
}
