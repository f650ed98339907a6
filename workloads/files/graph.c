/* SPDX-License-Identifier: Apache-2.0 */
/* Building a task graph, and putting its tasks into an order. */
#include "workloads/files/graph.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

void duet__graph_init(struct duet__graph *graph)
{
    *graph = (struct duet__graph){
        .kernels = g_ptr_array_new_with_free_func(g_free),
        .wheres = g_ptr_array_new_with_free_func(g_free),
        .archs = g_ptr_array_new_with_free_func(g_free),
        .seconds = g_array_new(FALSE, FALSE, sizeof(double)),
        .tasks = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_task)),
        .accesses = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_access)),
        .after = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
        .data = g_array_new(FALSE, FALSE, sizeof(struct duet__graph_data)),
        .texts = g_string_chunk_new(1 << 16),
        .kernel_index = g_hash_table_new(g_str_hash, g_str_equal),
    };
    g_ptr_array_add(graph->wheres, g_strdup(""));
}

void duet__graph_fini(struct duet__graph *graph)
{
    g_free(graph->name);
    g_free(graph->origin);
    g_clear_pointer(&graph->kernel_index, g_hash_table_unref);
    g_clear_pointer(&graph->kernels, g_ptr_array_unref);
    g_clear_pointer(&graph->wheres, g_ptr_array_unref);
    g_clear_pointer(&graph->archs, g_ptr_array_unref);
    g_clear_pointer(&graph->seconds, g_array_unref);
    g_clear_pointer(&graph->tasks, g_array_unref);
    g_clear_pointer(&graph->accesses, g_array_unref);
    g_clear_pointer(&graph->after, g_array_unref);
    g_clear_pointer(&graph->data, g_array_unref);
    g_clear_pointer(&graph->texts, g_string_chunk_free);
    *graph = (struct duet__graph){0};
}

/* ------------------------------------------------------------------------------------------- */
/* Adding                                                                                       */

const char *duet__graph_text(struct duet__graph *graph, const char *text)
{
    char *valid;
    if (!text || !*text)
        return NULL;
    valid = g_utf8_validate(text, -1, NULL) ? NULL : g_utf8_make_valid(text, -1);
    text = g_string_chunk_insert(graph->texts, valid ? valid : text);
    g_free(valid);
    return text;
}

uint32_t duet__graph_kernel(struct duet__graph *graph, const char *name)
{
    g_autofree char *valid = duet__json_clean(g_utf8_make_valid(name, -1));
    const char *end = valid;
    gpointer index;
    while (strlen(end) >= DUET_NAME_MAX)
        end = g_utf8_next_char(end);
    if (end > valid && strpbrk(end, "./:") && strpbrk(end, "./:")[1])
        end = strpbrk(end, "./:") + 1;
    if (!*end)
        end = "task";
    if (g_hash_table_lookup_extended(graph->kernel_index, end, NULL, &index))
        return GPOINTER_TO_UINT(index);
    if (graph->kernels->len == DUET__GRAPH_KERNELS_MAX)
        return DUET__GRAPH_KERNELS_MAX - 1;
    g_ptr_array_add(graph->kernels, g_strdup(end));
    g_hash_table_insert(graph->kernel_index, graph->kernels->pdata[graph->kernels->len - 1],
                        GUINT_TO_POINTER(graph->kernels->len - 1));
    return graph->kernels->len - 1;
}

/* Returns the index of a text, added if it is new. */
static uint32_t find_or_add(GPtrArray *texts, const char *text)
{
    guint index;
    if (!g_ptr_array_find_with_equal_func(texts, text, g_str_equal, &index)) {
        index = texts->len;
        g_ptr_array_add(texts, g_strdup(text));
    }
    return index;
}

uint32_t duet__graph_arch(struct duet__graph *graph, const char *name)
{
    g_assert(!graph->tasks->len);
    return find_or_add(graph->archs, name);
}

bool duet__graph_where(struct duet__graph *graph, const char *where, uint32_t *index)
{
    *index = find_or_add(graph->wheres, where);
    return graph->wheres->len <= DUET__GRAPH_WHERES_MAX;
}

struct duet__graph_task *duet__graph_add(struct duet__graph *graph, uint32_t kernel)
{
    const struct duet__graph_task task = {.accesses = graph->accesses->len,
                                          .after = graph->after->len,
                                          .kernel = kernel};
    const double unknown = NAN;
    g_array_append_val(graph->tasks, task);
    for (guint i = 0; i < graph->archs->len; i++)
        g_array_append_val(graph->seconds, unknown);
    return &g_array_index(graph->tasks, struct duet__graph_task, graph->tasks->len - 1);
}

void duet__graph_add_access(struct duet__graph *graph, uint32_t data, enum duet_mode mode)
{
    const struct duet__graph_access access = {data, mode};
    g_array_append_val(graph->accesses, access);
}

uint32_t duet__graph_add_data(struct duet__graph *graph, uint64_t bytes, const char *name,
                              bool initial)
{
    const struct duet__graph_data data = {bytes, duet__graph_text(graph, name), initial};
    g_array_append_val(graph->data, data);
    return graph->data->len - 1;
}

/* ------------------------------------------------------------------------------------------- */
/* Looking                                                                                      */

const struct duet__graph_access *duet__graph_accesses(const struct duet__graph *graph, size_t task,
                                                      size_t *count)
{
    const size_t first = duet__graph_task(graph, task)->accesses;
    const bool last = task + 1 == graph->tasks->len;
    *count = (last ? graph->accesses->len : duet__graph_task(graph, task + 1)->accesses) - first;
    return &g_array_index(graph->accesses, struct duet__graph_access, first);
}

const uint32_t *duet__graph_after(const struct duet__graph *graph, size_t task, size_t *count)
{
    const size_t first = duet__graph_task(graph, task)->after;
    const bool last = task + 1 == graph->tasks->len;
    *count = (last ? graph->after->len : duet__graph_task(graph, task + 1)->after) - first;
    return &g_array_index(graph->after, uint32_t, first);
}

double duet__graph_reference(const struct duet__graph *graph, size_t task)
{
    const double *seconds = duet__graph_seconds(graph, task);
    for (guint i = 0; i < graph->archs->len; i++)
        if (!isnan(seconds[i]))
            return seconds[i];
    return NAN;
}

const char *duet__graph_label(const struct duet__graph *graph, size_t task,
                              char buffer[DUET__GRAPH_LABEL_MAX])
{
    const char *name = duet__graph_task(graph, task)->name;
    const uint32_t job = duet__graph_task(graph, task)->job;
    if (job)
        g_snprintf(buffer, DUET__GRAPH_LABEL_MAX, "job %u (%.60s)", job,
                   name ? name
                        : duet__graph_kernel_name(graph, duet__graph_task(graph, task)->kernel));
    else if (name)
        g_snprintf(buffer, DUET__GRAPH_LABEL_MAX, "task '%.60s'", name);
    else
        g_snprintf(buffer, DUET__GRAPH_LABEL_MAX, "task %zu", task);
    return buffer;
}

/* ------------------------------------------------------------------------------------------- */
/* Order                                                                                        */

/* A depth-first search that leaves a task after all its predecessors. */
struct search {
    struct duet__graph *graph;
    size_t *first;   /* by task: index in `from` of its first predecessor */
    uint32_t *from;  /* predecessors, sorted by successor */
    bool *by_data;   /* like `from`: the edge became data */
    size_t *at;      /* by task: its next predecessor */
    uint8_t *state;  /* by task */
    uint32_t *place; /* by task: its new position */
    GArray *path;    /* uint32_t: tasks that are begun and not left */
    GArray *order;   /* uint32_t: tasks that are left */
};

enum { UNSEEN, BEGUN, LEFT };

static int refuse_cycle(const struct search *search, uint32_t again, const char *path,
                        struct duet_message *message)
{
    enum { MOST = 4 };
    g_autoptr(GString) text = g_string_new(NULL);
    guint i = search->path->len, shown = 0;
    uint32_t task;
    /* from the task that was met again back to it, in order */
    do {
        char label[DUET__GRAPH_LABEL_MAX];
        task = g_array_index(search->path, uint32_t, --i);
        if (shown++ < MOST)
            g_string_append_printf(text, "%s%s", text->len ? ", then " : "",
                                   duet__graph_label(search->graph, task, label));
    } while (task != again);
    if (shown > MOST)
        g_string_append_printf(text, " and %u more", shown - MOST);
    return duet_fail(message, DUET_EPARSE, "%.300s: a cycle, no order of these is possible: %s",
                     path, text->str);
}

static void begin(struct search *search, uint32_t task)
{
    search->state[task] = BEGUN;
    g_array_append_val(search->path, task);
}

/* Leaves `task` and all its predecessors. DUET_EPARSE for a cycle. */
static int leave_task(struct search *search, uint32_t task, const char *path,
                      struct duet_message *message)
{
    if (search->state[task] == UNSEEN)
        begin(search, task);
    while (search->path->len) {
        task = g_array_index(search->path, uint32_t, search->path->len - 1);
        if (search->at[task] == search->first[task + 1]) {
            search->state[task] = LEFT;
            g_array_append_val(search->order, task);
            g_array_set_size(search->path, search->path->len - 1);
            continue;
        }
        task = search->from[search->at[task]++];
        if (search->state[task] == BEGUN)
            return refuse_cycle(search, task, path, message);
        if (search->state[task] == UNSEEN)
            begin(search, task);
    }
    return 0;
}

/* Copies tasks, with their accesses and times, in that order; edges come later. */
static void permute_tasks(struct duet__graph *graph, const uint32_t *order)
{
    struct duet__graph old = *graph;
    graph->tasks = g_array_sized_new(FALSE, FALSE, sizeof(struct duet__graph_task), old.tasks->len);
    graph->seconds = g_array_sized_new(FALSE, FALSE, sizeof(double), old.seconds->len);
    graph->accesses =
        g_array_sized_new(FALSE, FALSE, sizeof(struct duet__graph_access), old.accesses->len);
    for (guint i = 0; i < old.tasks->len; i++) {
        struct duet__graph_task task = *duet__graph_task(&old, order[i]);
        size_t count;
        const struct duet__graph_access *accesses = duet__graph_accesses(&old, order[i], &count);
        task.accesses = graph->accesses->len;
        g_array_append_val(graph->tasks, task);
        if (count)
            g_array_append_vals(graph->accesses, accesses, (guint)count);
        if (old.archs->len)
            g_array_append_vals(graph->seconds, duet__graph_seconds(&old, order[i]),
                                old.archs->len);
    }
    g_array_unref(old.tasks);
    g_array_unref(old.seconds);
    g_array_unref(old.accesses);
}

/* Adds the predecessors of tasks, which are in order by now, as explicit edges, each once. */
static void enter_edges(const struct search *search)
{
    struct duet__graph *graph = search->graph;
    const uint32_t *order = (const uint32_t *)(void *)search->order->data;
    uint32_t *seen = g_new0(uint32_t, graph->tasks->len + 1); /* by task: 1 + its successor that was
                                                                 seen last */

    g_array_set_size(graph->after, 0);
    for (uint32_t i = 0; i < graph->tasks->len; i++) {
        g_array_index(graph->tasks, struct duet__graph_task, i).after = graph->after->len;
        for (size_t k = search->first[order[i]]; k < search->first[order[i] + 1]; k++) {
            const uint32_t from = search->place[search->from[k]];
            if (seen[from] == i + 1 || search->by_data[k])
                continue;
            seen[from] = i + 1;
            g_array_append_val(graph->after, from);
        }
    }
    g_free(seen);
}

/* Makes data of edges that have bytes; tasks access nothing else. */
static void enter_data(const struct search *search, const GArray *edges)
{
    struct duet__graph *graph = search->graph;
    size_t *at = g_new0(size_t, graph->tasks->len + 2);
    const struct duet__graph_edge *edge = (const struct duet__graph_edge *)(void *)edges->data;
    struct duet__graph_access *accesses;
    for (guint i = 0; i < edges->len; i++) {
        at[search->place[edge[i].from] + 1] += edge[i].bytes > 0;
        at[search->place[edge[i].to] + 1] += edge[i].bytes > 0;
    }
    for (guint i = 0; i < graph->tasks->len; i++)
        at[i + 1] += at[i];
    for (guint i = 0; i < graph->tasks->len && at[graph->tasks->len]; i++)
        g_array_index(graph->tasks, struct duet__graph_task, i).accesses = at[i];
    g_array_set_size(graph->accesses, MAX(graph->accesses->len, (guint)at[graph->tasks->len]));
    accesses = (struct duet__graph_access *)(void *)graph->accesses->data;
    for (guint i = 0; i < edges->len; i++)
        if (edge[i].bytes) {
            const uint32_t data = duet__graph_add_data(graph, edge[i].bytes, NULL, false);
            accesses[at[search->place[edge[i].from]]++] = (struct duet__graph_access){data, DUET_W};
            accesses[at[search->place[edge[i].to]]++] = (struct duet__graph_access){data, DUET_R};
        }
    g_free(at);
}

/* Sorts edges by successor, stably: a counting sort. */
static void sort_edges(struct search *search, const GArray *edges)
{
    const guint count = search->graph->tasks->len;
    const struct duet__graph_edge *edge = (const struct duet__graph_edge *)(void *)edges->data;
    search->first = g_new0(size_t, count + 2);
    search->from = g_new(uint32_t, edges->len + 1);
    search->by_data = g_new(bool, edges->len + 1);
    for (guint i = 0; i < edges->len; i++)
        search->first[edge[i].to + 2]++;
    for (guint i = 0; i < count; i++)
        search->first[i + 2] += search->first[i + 1];
    for (guint i = 0; i < edges->len; i++) {
        const size_t at = search->first[edge[i].to + 1]++;
        search->from[at] = edge[i].from;
        search->by_data[at] = edge[i].bytes > 0;
    }
    search->at = g_memdup2(search->first, (count + 1) * sizeof *search->first);
}

int duet__graph_order(struct duet__graph *graph, const GArray *edges, const char *path,
                      struct duet_message *message)
{
    const guint count = graph->tasks->len;
    struct search search = {.graph = graph,
                            .state = g_new0(uint8_t, count + 1),
                            .place = g_new(uint32_t, count + 1),
                            .path = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                            .order = g_array_sized_new(FALSE, FALSE, sizeof(uint32_t), count)};
    bool sorted = true;
    int error = 0;
    sort_edges(&search, edges);
    for (uint32_t i = 0; i < count && !error; i++)
        error = leave_task(&search, i, path, message);
    for (uint32_t i = 0; i < count && !error; i++) {
        const uint32_t old = g_array_index(search.order, uint32_t, i);
        search.place[old] = i;
        sorted &= old == i;
    }
    if (!error && !sorted)
        permute_tasks(graph, (const uint32_t *)(void *)search.order->data);
    if (!error)
        enter_edges(&search);
    if (!error)
        enter_data(&search, edges);
    g_free(search.first);
    g_free(search.from);
    g_free(search.by_data);
    g_free(search.at);
    g_free(search.state);
    g_free(search.place);
    g_array_unref(search.path);
    g_array_unref(search.order);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Finds predecessors by sequential task flow. Successive accesses of one datum that all read, or
 * all add, form a group; any other access is a group of its own; each comes after all of the group
 * before. Commuting tasks keep their order here, as a group of them would have edges between all of
 * them and the next group.
 */

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
