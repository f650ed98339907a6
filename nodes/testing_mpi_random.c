/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs by processes, over MPI: each is a node, and compares what all have read and left.
 * Started by mpirun, see mpi_test.py.
 */
#include <mpi.h>

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

static void reduce(void *at, size_t count, MPI_Datatype type, MPI_Op op)
{
    g_assert_false(MPI_Allreduce(MPI_IN_PLACE, at, (int)count, type, op, MPI_COMM_WORLD));
}

/* Merges what the processes have, which have zeros where another one's counts. */
static void merge_all(struct member *member)
{
    struct run *run = member->run;
    for (unsigned i = 0; i < run->setting.steps; i++) {
        struct step *step = &run->steps[i];
        reduce(step->results, step->kind == EXPANDS || step->chain ? RESULTS : 1, MPI_UINT64_T,
               MPI_BOR);
        reduce(&step->ended, 1, MPI_UNSIGNED, MPI_SUM);
    }
    for (unsigned h = 0; h < handle_count(&run->setting); h++) {
        if (member->owners[h] != member->node.number)
            memset(run->real_words[h], 0, sizeof run->real_words[h]);
        reduce(run->real_words[h], sizeof run->real_words[h] / sizeof(uint64_t), MPI_UINT64_T,
               MPI_BOR);
    }
    for (unsigned i = 0; i < COMMON; i++)
        if (owner_of_common(run, i) != member->node.number)
            memset(member->words[i], 0, sizeof member->words[i]);
    reduce(member->words, sizeof member->words / sizeof(uint64_t), MPI_UINT64_T, MPI_BOR);
    reduce(run->real_sums, sizeof run->real_sums / sizeof(uint64_t), MPI_UINT64_T, MPI_SUM);
    reduce(&run->real_bare, sizeof run->real_bare / sizeof(uint64_t), MPI_UINT64_T, MPI_SUM);
}

/* Returns true if it ended well: the same everywhere. */
static bool run_rank(struct cluster *cluster)
{
    struct member member = {.cluster = cluster};
    run_node_program(&member);
    int error = duet_wait(member.run->duet);
    g_assert_cmpint(duet_close(member.run->duet), ==, error);
    if (!error) {
        merge_all(&member);
        check(&member);
    }
    run_free(member.run);
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
        fabric_free(&cluster->fabric);
        cluster->fabric = g_new0(struct fabric, 1); /* which only says how many nodes there are */
        cluster->world.open = open_rank;
        cluster->setting.config.nodes = nodes;
        good += run_rank(cluster);
        g_free(cluster->fabric);
        g_free(cluster);
    }
    return 2 * good > count ? EXIT_SUCCESS : EXIT_FAILURE;
}
