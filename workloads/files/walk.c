/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds predecessors by sequential task flow. Successive accesses of one datum that all read, or
 * all add, form a group; any other access is a group of its own; each comes after all of the group
 * before. Commuting tasks keep their order here, as a group of them would have edges between all of
 * them and the next group.
 */
#include "workloads/files/graph.h"

/* State of a datum. Accesses are numbered from 1; 0: none. */
struct flow {
    uint32_t mode;      /* of the present group */
    size_t now, before; /* last access of the present group, and of the one before */
};

struct link {
    size_t next; /* the access of the same group before it */
    uint32_t task;
};

struct duet__graph_walk {
    const struct duet__graph *graph;
    struct flow *flows; /* by data */
    struct link *links; /* by access */
    uint32_t *found;    /* by task: its index in `edges` */
    GArray *edges;      /* struct duet__graph_edge: of the current task */
    uint32_t task;      /* number of the next task */
};

struct duet__graph_walk *duet__graph_walk_new(const struct duet__graph *graph)
{
    struct duet__graph_walk *walk = g_new(struct duet__graph_walk, 1);

    *walk = (struct duet__graph_walk){
        .graph = graph,
        .flows = g_new0(struct flow, graph->data->len + 1),
        .links = g_new0(struct link, (size_t)graph->accesses->len + 1),
        .found = g_new0(uint32_t, graph->tasks->len + 1),
        .edges = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_edge)),
    };
    return walk;
}

void duet__graph_walk_free(struct duet__graph_walk *walk)
{
    g_free(walk->flows);
    g_free(walk->links);
    g_free(walk->found);
    g_array_unref(walk->edges);
    g_free(walk);
}

/* Adds `from` to the predecessors of the current task, with these bytes. */
static void add_edge(struct duet__graph_walk *walk, uint32_t from, uint64_t bytes)
{
    const struct duet__graph_edge edge = {from, walk->task, bytes};
    uint32_t *found = &walk->found[from];

    if (from == walk->task)
        return;
    if (*found < walk->edges->len &&
        g_array_index(walk->edges, struct duet__graph_edge, *found).from == from) {
        g_array_index(walk->edges, struct duet__graph_edge, *found).bytes += bytes;
        return;
    }
    *found = walk->edges->len;
    g_array_append_val(walk->edges, edge);
}

/* Adds an access, numbered from 1, of the current task. */
static void enter_access(struct duet__graph_walk *walk, const struct duet__graph_access *access,
                         size_t number)
{
    struct flow *flow = &walk->flows[access->data];
    const bool shares = access->mode == DUET_R || access->mode == DUET_REDUCE;

    if (access->mode == DUET_SCRATCH)
        return;
    if (flow->mode != access->mode || !shares) {
        flow->before = flow->now;
        flow->now = 0;
        flow->mode = access->mode;
    }
    walk->links[number] = (struct link){flow->now, walk->task};
    flow->now = number;
    for (size_t i = flow->before; i; i = walk->links[i].next) {
        const uint32_t mode =
            g_array_index(walk->graph->accesses, struct duet__graph_access, i - 1).mode;
        const bool flows = mode & DUET_W && access->mode & DUET_R;

        add_edge(walk, walk->links[i].task,
                 flows ? duet__graph_datum(walk->graph, access->data)->bytes : 0);
    }
}

const struct duet__graph_edge *duet__graph_walk_next(struct duet__graph_walk *walk, size_t *count)
{
    size_t many;
    const struct duet__graph_access *accesses =
        duet__graph_accesses(walk->graph, walk->task, &many);
    const size_t first = duet__graph_task(walk->graph, walk->task)->accesses + 1;
    const uint32_t *after;

    g_array_set_size(walk->edges, 0);
    for (size_t i = 0; i < many; i++)
        enter_access(walk, &accesses[i], first + i);
    after = duet__graph_after(walk->graph, walk->task, &many);
    for (size_t i = 0; i < many; i++)
        add_edge(walk, after[i], 0);
    walk->task++;
    *count = walk->edges->len;
    return (const struct duet__graph_edge *)(void *)walk->edges->data;
}
