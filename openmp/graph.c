/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a graph of a recording by running through the tasks like one thread that runs each where it
 * is created: every piece then comes after all its predecessors, and depend clauses have their
 * meaning in this order. There is no recursion, since tasks nest deeper than stacks.
 *
 * Two stacks hold the last pieces of tasks that nobody has waited for yet: children of the tasks
 * that are open now, and deeper descendants. A taskwait takes the children of its task, a taskgroup
 * and a barrier take both kinds. The pieces that a task leaves are deeper ones to its creator, and
 * lie on top of the stack already, so that each entry moves once.
 */
#include "openmp/recording.h"
#include "base/files.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

enum { NONE = UINT32_MAX };

/* An address in depend clauses, which has a meaning among the tasks of one creator only. */
struct data {
    const struct duet__omp_task *creator;
    const void *address;
    uint32_t index;
};

struct walk {
    struct duet__omp_graph *graph;
    const void *runtime;                    /* its module */
    struct duet__omp_list children, deeper; /* uint32_t */
    struct data *data;                      /* hash table, half empty at least */
    size_t data_room;                       /* a power of 2 */
    jmp_buf no_memory;
};

static void *add(struct walk *walk, struct duet__omp_list *list, size_t size)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        void *items = list->count < NONE / 2 ? realloc(list->items, room * size) : NULL;
        if (!items)
            longjmp(walk->no_memory, 1);
        list->items = items;
        list->room = room;
    }
    return (char *)list->items + list->count++ * size;
}

static void add_index(struct walk *walk, struct duet__omp_list *list, uint32_t index)
{
    *(uint32_t *)add(walk, list, sizeof index) = index;
}

static struct duet__omp_piece *piece_at(const struct walk *walk, uint32_t index)
{
    return (struct duet__omp_piece *)walk->graph->pieces.items + index;
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels and data                                                                             */

/* Returns the kernel of a place, added if it is new; pieces of one place come together. */
static uint32_t kernel_of(struct walk *walk, const char *kind, const void *code)
{
    struct duet__omp_list *kernels = &walk->graph->kernels;
    const struct duet__omp_place *places = kernels->items;
    for (size_t i = kernels->count; i-- > 0;)
        if (places[i].code == code && places[i].kind == kind)
            return (uint32_t)i;
    *(struct duet__omp_place *)add(walk, kernels, sizeof *places) =
        (struct duet__omp_place){.code = code, .kind = kind};
    return (uint32_t)kernels->count - 1;
}

/* Sets the code of tasks that the runtime creates for a taskloop to that of the taskloop. */
static void find_code(struct walk *walk, struct duet__omp_task *task)
{
    const struct duet__omp_list *kernels = &walk->graph->kernels;
    const struct duet__omp_place *places = kernels->items;
    for (size_t i = kernels->count; i-- > 0;)
        if (places[i].code == task->code)
            return;
    if (duet__omp_module(task->code) == walk->runtime)
        task->code = task->created_under ? task->created_under : task->parent->code;
}

static struct data *find_data(struct data *table, size_t room, const struct duet__omp_task *creator,
                              const void *address)
{
    uint64_t hash = ((uintptr_t)creator * 31 + (uintptr_t)address) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 20) & (room - 1);
    while (table[at].creator && (table[at].creator != creator || table[at].address != address))
        at = (at + 1) & (room - 1);
    return &table[at];
}

static uint32_t data_of(struct walk *walk, const struct duet__omp_task *creator,
                        const void *address)
{
    uint32_t *count = &walk->graph->data_count;
    struct data *found;
    if (2 * (size_t)*count >= walk->data_room) {
        size_t room = walk->data_room ? 2 * walk->data_room : 256;
        struct data *table = calloc(room, sizeof *table);
        if (!table)
            longjmp(walk->no_memory, 1);
        for (size_t i = 0; i < walk->data_room; i++)
            if (walk->data[i].creator)
                *find_data(table, room, walk->data[i].creator, walk->data[i].address) =
                    walk->data[i];
        free(walk->data);
        walk->data = table;
        walk->data_room = room;
    }
    found = find_data(walk->data, walk->data_room, creator, address);
    if (!found->creator)
        *found = (struct data){.creator = creator, .address = address, .index = (*count)++};
    return found->index;
}

/* Adds the accesses of the newest piece, by the clauses of `task`. */
static void add_accesses(struct walk *walk, const struct duet__omp_task *task)
{
    struct duet__omp_list *accesses = &walk->graph->accesses;
    size_t first = piece_at(walk, (uint32_t)walk->graph->pieces.count - 1)->accesses;
    for (uint32_t i = 0; i < task->dependence_count; i++) {
        const ompt_dependence_t *one = &task->dependences[i];
        bool exclusive = one->dependence_type == ompt_dependence_type_mutexinoutset ||
                         one->dependence_type == ompt_dependence_type_inoutset;
        bool waits = task->flags & ompt_task_taskwait; /* a task of taskwait excludes nobody */
        const char *mode = one->dependence_type == ompt_dependence_type_in    ? "r"
                           : one->dependence_type == ompt_dependence_type_out ? "w"
                           : exclusive && !waits                              ? "commute"
                                                                              : "rw";
        struct duet__piece_access *access, *known = accesses->items;
        uint32_t data;
        size_t k = first;
        if (!one->variable.ptr)
            continue;
        data = data_of(walk, task->parent, one->variable.ptr);
        while (k < accesses->count && known[k].data != data)
            k++;
        if (k < accesses->count) {
            known[k].mode = known[k].mode == mode ? mode : "rw";
            continue;
        }
        access = add(walk, accesses, sizeof *access);
        *access = (struct duet__piece_access){.data = data, .mode = mode};
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Pieces                                                                                       */

static uint32_t add_piece(struct walk *walk, const char *kind, const void *code)
{
    struct duet__omp_graph *graph = walk->graph;
    uint32_t kernel = kernel_of(walk, kind, code);
    struct duet__omp_piece *piece = add(walk, &graph->pieces, sizeof *piece);
    *piece = (struct duet__omp_piece){.kernel = kernel,
                                      .after = graph->after.count,
                                      .accesses = graph->accesses.count};
    return (uint32_t)graph->pieces.count - 1;
}

/* Makes the newest piece come after this one. */
static void add_after(struct walk *walk, uint32_t piece)
{
    if (piece != NONE)
        add_index(walk, &walk->graph->after, piece);
}

/* Makes the newest piece come after those in the list beyond `count`, which then have been waited
 * for. */
static void add_after_list(struct walk *walk, struct duet__omp_list *list, size_t count)
{
    for (size_t i = count; i < list->count; i++)
        add_after(walk, ((const uint32_t *)list->items)[i]);
    list->count = count;
}

/* Continues a task with a new piece. Each piece has all its accesses, since successors of the task
 * come after its last one. */
static void go_on(struct walk *walk, struct duet__omp_task *task, uint32_t after)
{
    uint32_t last = task->piece;
    task->piece = add_piece(walk,
                            task->parent   ? ""
                            : task->region ? "parallel:"
                                           : "serial",
                            task->code);
    if (last != NONE)
        piece_at(walk, last)->is_task = false;
    else
        piece_at(walk, task->piece)->is_task = task->parent != NULL;
    add_after(walk, after);
    add_accesses(walk, task);
}

static void begin(struct walk *walk, struct duet__omp_task *task, uint32_t after)
{
    task->children = walk->children.count;
    task->deeper = walk->deeper.count;
    task->piece = NONE;
    if (task->parent)
        find_code(walk, task);
    go_on(walk, task, after);
}

/* Waits for all that was not waited for since the stacks had these heights. */
static void join_pieces(struct walk *walk, struct duet__omp_task *task, size_t children,
                        size_t deeper)
{
    if (children == walk->children.count && deeper == walk->deeper.count)
        return;
    go_on(walk, task, task->piece);
    add_after_list(walk, &walk->children, children);
    add_after_list(walk, &walk->deeper, deeper);
}

static void add_time(const struct walk *walk, const struct duet__omp_task *task, uint64_t ns)
{
    if (task->piece != NONE)
        piece_at(walk, task->piece)->ns += (double)ns;
}

/* ------------------------------------------------------------------------------------------- */
/* Parallel regions                                                                             */

/* Sorts implicit tasks by their numbers. */
static struct duet__omp_task *sort_team(struct duet__omp_task *team)
{
    struct duet__omp_task *sorted = NULL, *next;
    for (; team; team = next) {
        struct duet__omp_task **at = &sorted;
        next = team->sibling;
        while (*at && (*at)->index < team->index)
            at = &(*at)->sibling;
        team->sibling = *at;
        *at = team;
    }
    return sorted;
}

static struct duet__omp_task *begin_region(struct walk *walk, struct duet__omp_region *region)
{
    region->children = walk->children.count;
    region->deeper = walk->deeper.count;
    region->start = region->creator->piece;
    atomic_store(&region->team, sort_team(atomic_load(&region->team)));
    for (struct duet__omp_task *task = region->team; task; task = task->sibling) {
        task->piece = NONE;
        task->waits = false; /* the thread begins at a barrier */
    }
    if (!region->team)
        return region->creator;
    begin(walk, region->team, region->start);
    return region->team;
}

/* Makes the newest piece come after all pieces of the region. */
static void join_team(struct walk *walk, struct duet__omp_region *region)
{
    for (struct duet__omp_task *task = region->team; task; task = task->sibling)
        add_after(walk, task->piece);
    add_after_list(walk, &walk->children, region->children);
    add_after_list(walk, &walk->deeper, region->deeper);
}

/* Returns the next implicit task of a region, when one is at a barrier or at its end. */
static struct duet__omp_task *next_of_team(struct walk *walk, struct duet__omp_task *task)
{
    struct duet__omp_region *region = task->region;
    struct duet__omp_task *next = task->sibling, *creator = region->creator;
    if (!next) {
        for (next = region->team; next && !next->waits; next = next->sibling)
            ;
        if (!next) {
            if (creator->parent || creator->region || creator->first) {
                go_on(walk, creator, NONE);
                join_team(walk, region);
            }
            return creator;
        }
        region->start = add_piece(walk, "barrier", NULL);
        join_team(walk, region);
    } else if (next->piece != NONE && !next->waits) {
        return next_of_team(walk, next);
    }
    next->waits = false;
    begin(walk, next, region->start);
    return next;
}

/* Adds the parts of a loop, after the earlier pieces of its thread, and before a barrier or the end
 * of the region: they are on the deeper stack, since no taskwait waits for them. */
static void add_loop(struct walk *walk, struct duet__omp_task *task,
                     const struct duet__omp_step *loop)
{
    if (!loop->ns)
        return;
    for (uint64_t i = 0; i < loop->parts; i++) {
        uint32_t part = add_piece(walk, "loop:", loop->code);
        piece_at(walk, part)->is_task = true;
        piece_at(walk, part)->ns = (double)loop->ns / (double)loop->parts;
        add_after(walk, task->piece);
        add_index(walk, &walk->deeper, part);
    }
    go_on(walk, task, task->piece);
}

/* ------------------------------------------------------------------------------------------- */
/* The walk                                                                                     */

static struct duet__omp_task *leave_task(struct walk *walk, struct duet__omp_task *task)
{
    struct duet__omp_task *parent = task->parent;
    add_time(walk, task, task->own_ns);
    if (task->region)
        return next_of_team(walk, task);
    if (!parent)
        return NULL;
    for (size_t i = task->children; i < walk->children.count; i++)
        add_index(walk, &walk->deeper, ((const uint32_t *)walk->children.items)[i]);
    walk->children.count = task->children;
    if (!task->undeferred)
        add_index(walk, &walk->children, task->piece);
    go_on(walk, parent, task->undeferred ? task->piece : parent->piece);
    return parent;
}

/* Takes a step of a task. Returns the task whose turn is next. */
static struct duet__omp_task *take_step(struct walk *walk, struct duet__omp_task *task,
                                        struct duet__omp_step *step)
{
    switch (step->kind) {
    case DUET__STEP_CREATE:
        begin(walk, step->task, task->piece);
        return step->task;
    case DUET__STEP_DEPEND:
        go_on(walk, task, task->piece);
        add_accesses(walk, step->task);
        break;
    case DUET__STEP_WAIT:
        join_pieces(walk, task, task->children, walk->deeper.count);
        for (struct duet__omp_step *group = task->group; group; group = group->next)
            group->children = task->children; /* the group's earlier list is gone */
        break;
    case DUET__STEP_GROUP:
        step->children = walk->children.count;
        step->deeper = walk->deeper.count;
        step->next = task->group;
        task->group = step;
        break;
    case DUET__STEP_UNGROUP:
        step = task->group;
        task->group = step->next;
        join_pieces(walk, task, step->children, step->deeper);
        break;
    case DUET__STEP_BARRIER:
        if (!task->region || (!task->first && !task->own_ns))
            break; /* the region's end joins all of it */
        if (!task->region->team->sibling) {
            join_pieces(walk, task, task->region->children, task->region->deeper);
            break;
        }
        task->waits = true;
        return next_of_team(walk, task);
    case DUET__STEP_REGION:
        return begin_region(walk, step->region);
    case DUET__STEP_LOOP:
        add_loop(walk, task, step);
        break;
    }
    return task;
}

/* Leaves out everything before the first parallel region and after the last. */
static void trim_initial(struct duet__omp_task *initial)
{
    struct duet__omp_step *last = NULL;
    while (initial->first && initial->first->kind != DUET__STEP_REGION)
        initial->first = initial->first->next;
    for (struct duet__omp_step *step = initial->first; step; step = step->next)
        if (step->kind == DUET__STEP_REGION)
            last = step;
    if (last)
        last->next = NULL;
    initial->own_ns = 0;
}

/* Makes `graph`, zeroed but for its recording, which is used up. false: out of memory. */
static bool graph_make(struct duet__omp_graph *graph)
{
    struct walk walk = {.graph = graph, .runtime = graph->of->runtime_module};
    struct duet__omp_task *volatile task = graph->of->initial; /* volatile for longjmp */
    if (setjmp(walk.no_memory) == 0) {
        trim_initial(task);
        task->piece = NONE;
        while (task) {
            struct duet__omp_step *step = task->first;
            if (step) {
                task->first = step->next;
                add_time(&walk, task, step->before_ns);
                task = take_step(&walk, task, step);
            } else {
                task = leave_task(&walk, task);
            }
        }
        *(struct duet__omp_piece *)add(&walk, &graph->pieces, sizeof(struct duet__omp_piece)) =
            (struct duet__omp_piece){.after = graph->after.count,
                                     .accesses = graph->accesses.count};
    }
    free(walk.children.items);
    free(walk.deeper.items);
    free(walk.data);
    return !task;
}

static void graph_fini(struct duet__omp_graph *graph)
{
    const struct duet__omp_place *places = graph->kernels.items;
    for (size_t i = 0; i < graph->kernels.count; i++) {
        free(places[i].name);
        free(places[i].key);
    }
    free(graph->pieces.items);
    free(graph->after.items);
    free(graph->accesses.items);
    free(graph->kernels.items);
}

/* ------------------------------------------------------------------------------------------- */
/* Writes a recording as a graph in duet's own format (docs/formats.md). */

static void write_piece(struct duet__json_writer *json, const struct duet__omp_graph *graph,
                        size_t index)
{
    const struct duet__omp_piece *piece =
        (const struct duet__omp_piece *)graph->pieces.items + index;
    const struct duet__omp_place *places = graph->kernels.items;
    const struct duet__piece_access *accesses = graph->accesses.items;
    const uint32_t *after = graph->after.items;
    duet__json_print(json, "\n  {kernel: %u, seconds: [%g]", places[piece->kernel].kernel,
                     piece->ns / 1e9);
    for (size_t i = piece->accesses; i < piece[1].accesses; i++)
        duet__json_print(json, i == piece->accesses ? "accesses: [[%u, %s]" : "[%u, %s]",
                         accesses[i].data, accesses[i].mode);
    if (piece->accesses < piece[1].accesses)
        duet__json_end(json, ']');
    for (size_t i = piece->after; i < piece[1].after; i++)
        duet__json_print(json, i == piece->after ? "after: [%u" : "%u", after[i]);
    if (piece->after < piece[1].after)
        duet__json_end(json, ']');
    if (!piece->is_task)
        duet__json_put_string(json, "where", "cpu");
    duet__json_end(json, '}');
}

static void write_graph(FILE *file, const void *data)
{
    const struct duet__omp_graph *graph = data;
    const struct duet__omp_recording *of = graph->of;
    struct duet__json_writer writer = {.stream = file, .dense = true}, *json = &writer;
    const struct duet__omp_place *places = graph->kernels.items;
    double seconds = (double)(of->end_ns - of->begin_ns) / 1e9;
    duet__json_print(json,
                     "{format: %s, schema: 1, name: %s, origin: %s"
                     "\n makespan_s: %g, architectures: [%s]\n kernels: [",
                     "duet-graph", program_invocation_short_name, of->runtime, seconds, "cpu");
    if (of->only_makespan)
        duet__json_put_string(json, NULL, "program");
    for (size_t i = 0; i < graph->kernels.count; i++)
        if (places[i].name)
            duet__json_put_string(json, NULL, places[i].name);
    duet__json_print(json, "]\n data: [");
    for (uint32_t i = 0; i < graph->data_count; i++)
        duet__json_print(json, "{bytes: %" PRIu64 "}", of->bytes);
    duet__json_print(json, "]\n tasks: [");
    for (size_t i = 0; i + 1 < graph->pieces.count; i++) /* the last piece only ends lists */
        write_piece(json, graph, i);
    if (of->only_makespan)
        duet__json_print(json, "{kernel: 0, seconds: [%g]}", seconds);
    duet__json_print(json, "]}");
    fputc('\n', file);
}

const char *duet__omp_write(const struct duet__omp_recording *recording, const char *path)
{
    struct duet__omp_graph graph = {.of = recording};
    const char *problem = NULL;
    char temporary[PATH_MAX];
    FILE *file;
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.%ld.part", path, (long)getpid()) >=
        sizeof temporary)
        return strerror(ENAMETOOLONG);
    file = fopen(temporary, "w");
    if (!file)
        return strerror(errno);
    if (recording->initial && !graph_make(&graph))
        problem = "there is not enough memory for it";
    else if (!duet__omp_names(graph.kernels.items, graph.kernels.count, recording->of_gcc))
        problem = "there is not enough memory for its names";
    else if (!duet__gzip_write(path, file, write_graph, &graph) || fsync(fileno(file)))
        problem = strerror(errno);
    graph_fini(&graph);
    fclose(file);
    if (!problem && rename(temporary, path))
        problem = strerror(errno);
    if (problem)
        unlink(temporary);
    return problem;
}
