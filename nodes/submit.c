/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the node of a task, and translates its accesses. */
#include <math.h>
#include <stdlib.h>

#include "nodes/model.h"

/* Summary of a task's accesses that decides where it runs. */
struct place {
    unsigned written, read, reduced; /* owner of the first datum of that mode; DUET_NOBODY */
    bool owned, own;                 /* some data has an owner; some has none */
    bool plain;                      /* no access reduces or is scratch */
};

static int refuse_access(struct duet__nodes *nodes, size_t i, const char *why)
{
    return duet__refuse(duet__front(nodes), DUET_EINVAL, "access %zu of a task %s", i, why);
}

static inline void set_first(unsigned *at, unsigned owner)
{
    if (*at == DUET_NOBODY)
        *at = owner;
}

/* Checks an access to data that nobody owns. */
static int check_unowned(struct duet__nodes *nodes, struct duet_handle *handle, size_t i)
{
    duet__datum_use(handle);
    if (nodes->hosted > 1 && duet__handle_is_part(handle))
        return refuse_access(nodes, i, "is a part: there are none in simulations of several nodes");
    return DUET_OK;
}

/* Adds an access to the summary. Has to be cheap for a task that does not concern this node. */
static int check_access(struct duet__nodes *nodes, const struct duet_access *access, size_t i,
                        struct place *place)
{
    const enum duet_mode mode = access->mode;
    const bool usual = mode >= DUET_R && mode <= DUET_RW, reduces = mode == DUET_REDUCE;
    if (!access->handle || !(usual || mode == DUET_COMMUTE || reduces || mode == DUET_SCRATCH))
        return refuse_access(nodes, i, "has no handle, or no valid mode");
    place->plain &= mode <= DUET_COMMUTE;
    if (mode == DUET_SCRATCH)
        return DUET_OK;
    struct duet__datum *datum = *duet__handle_note(access->handle);
    if (!datum || datum->owner == DUET_NOBODY) {
        place->own = true;
        return check_unowned(nodes, access->handle, i);
    }
    if (datum->front != access->handle)
        return refuse_access(nodes, i,
                             "is a part of data that has an owner: with several nodes tasks use "
                             "the whole, or tiles that are registered");
    if (datum->acquired != DUET_NOBODY)
        return refuse_access(nodes, i,
                             "is data that the application has acquired: with several nodes "
                             "duet_release comes before");
    if (reduces && !datum->sum)
        return refuse_access(nodes, i,
                             "reduces data of which nobody has said how: call duet_set_reduction "
                             "before");
    nodes->touched[i] = datum;
    place->owned = true;
    set_first(reduces         ? &place->reduced
              : mode & DUET_W ? &place->written
                              : &place->read,
              datum->owner);
    return DUET_OK;
}

/* Makes room for the notes of a task's accesses. */
static int make_access_room(struct duet__nodes *nodes, size_t count)
{
    struct duet__datum **touched = realloc(nodes->touched, 2 * count * sizeof *touched);
    nodes->touched = touched ? touched : nodes->touched;
    struct duet_access *accesses = realloc(nodes->accesses, 2 * count * sizeof *accesses);
    nodes->accesses = accesses ? accesses : nodes->accesses;
    if (!touched || !accesses)
        return duet__must(nodes->hosts, DUET_ENOMEM);
    nodes->access_room = 2 * count;
    return DUET_OK;
}

/* Refuses options that are not possible with several nodes. */
static int check_extra(struct duet__nodes *nodes, const struct duet_task_extra *extra,
                       unsigned node)
{
    bool after = false;
    for (size_t i = 0; i < extra->after_count; i++)
        after |= extra->after[i] != NULL;
    if (extra->node && *extra->node >= nodes->count)
        return duet__refuse(duet__front(nodes), DUET_EINVAL,
                            "a task is to run on node %u: this run has %u", *extra->node,
                            nodes->count);
    if ((extra->ref || after) && (node != EVERYWHERE || nodes->hosted > 1))
        return duet__refuse(duet__front(nodes), DUET_EINVAL,
                            "a task of one node has a reference, or comes after one: over nodes "
                            "the order of tasks follows from their data alone");
    return DUET_OK;
}

static int place_task(struct duet__nodes *nodes, const struct duet_task_desc *task,
                      struct place *place, unsigned *node)
{
    *place = (struct place){DUET_NOBODY, DUET_NOBODY, DUET_NOBODY, false, false, true};
    for (size_t i = 0; i < task->access_count; i++) {
        int error = check_access(nodes, &task->accesses[i], i, place);
        if (error)
            return error;
    }
    if (place->owned && place->own)
        return duet__refuse(duet__front(nodes), DUET_EINVAL,
                            "a task uses data that has an owner, and data that nobody owns: call "
                            "duet_own for all of it");
    const unsigned by_data = place->written != DUET_NOBODY ? place->written
                             : place->read != DUET_NOBODY  ? place->read
                                                           : place->reduced;
    *node = by_data == DUET_NOBODY ? EVERYWHERE : by_data;
    if (!task->extra)
        return DUET_OK;
    if (task->extra->node)
        *node = *task->extra->node;
    return check_extra(nodes, task->extra, *node);
}

/*
 * Brings the data that the task reads to its node, and makes the node the only holder of the data
 * that it writes.
 */
static int move_data(struct duet__nodes *nodes, const struct duet_task_desc *task, unsigned node)
{
    int error = DUET_OK;
    for (size_t i = 0; i < task->access_count && !error; i++) {
        const enum duet_mode mode = task->accesses[i].mode;
        struct duet__datum *datum = nodes->touched[i];
        if (mode > DUET_COMMUTE)
            continue;
        if (datum->sum)
            error = duet__sum_end(nodes, datum, task->priority, mode == DUET_W);
        if ((mode & DUET_R) && !error && datum->holders[0] != node)
            error = duet__bring(nodes, datum, node, task->priority);
    }
    for (size_t i = 0; i < task->access_count && !error; i++) {
        const enum duet_mode mode = task->accesses[i].mode;
        struct duet__datum *datum = nodes->touched[i];
        if (mode == DUET_REDUCE)
            error = duet__sum_add(nodes, datum, node, task->priority);
        else if (mode != DUET_SCRATCH && (mode & DUET_W) && !duet__holds_alone(datum, node))
            error = duet__supersede(nodes, datum, node);
    }
    return error;
}

/* Extends the longest path by a task on data with owners: over reads of written data only. A writer
   waits on its own node for earlier readers, but never for replicas elsewhere. */
static void lengthen_path(struct duet__nodes *nodes, const struct duet_task_desc *task)
{
    double path_s = 0;
    for (size_t i = 0; i < task->access_count; i++) {
        const enum duet_mode mode = task->accesses[i].mode;
        const struct duet__datum *datum = nodes->touched[i];
        if (mode == DUET_R || mode == DUET_RW)
            path_s = fmax(path_s, datum->change_path_s);
        else if (mode == DUET_COMMUTE)
            path_s = fmax(path_s, datum->write_path_s);
    }
    path_s += duet__shortest_s(task);
    for (size_t i = 0; i < task->access_count; i++) {
        const enum duet_mode mode = task->accesses[i].mode;
        struct duet__datum *datum = nodes->touched[i];
        if (mode == DUET_W || mode == DUET_RW)
            datum->write_path_s = datum->change_path_s = path_s;
        else if (mode == DUET_COMMUTE || mode == DUET_REDUCE)
            datum->change_path_s = fmax(datum->change_path_s, path_s);
    }
    nodes->path_s = fmax(nodes->path_s, path_s);
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks as a core gets them */

struct duet_codelet *duet__codelet_at(struct duet__host *host, const struct duet_codelet *codelet)
{
    struct duet__nodes *nodes = host->nodes;
    const size_t at = (size_t)(host - nodes->hosts);
    size_t i = 0;
    if (at == 0)
        return (struct duet_codelet *)(uintptr_t)codelet;
    while (i < nodes->codelet_count && nodes->codelets[i][0] != codelet)
        i++;
    if (i == nodes->codelet_count) {
        struct duet_codelet ***more = realloc(nodes->codelets, (i + 1) * sizeof *nodes->codelets);
        if (!more)
            return NULL;
        nodes->codelets = more;
        nodes->codelets[i] = calloc(nodes->hosted, sizeof **nodes->codelets);
        if (!nodes->codelets[i])
            return NULL;
        nodes->codelets[i][0] = (struct duet_codelet *)(uintptr_t)codelet;
        nodes->codelet_count++;
    }
    struct duet_codelet **made = &nodes->codelets[i][at];
    if (!*made)
        *made = duet__codelet_like(host->core, codelet);
    return *made;
}

/* Returns the handle of an access on the node. NULL: no memory. */
static struct duet_handle *handle_at(struct duet__host *host, const struct duet_access *access)
{
    struct duet__nodes *nodes = host->nodes;
    struct duet__datum *datum = duet__datum_of(access->handle);
    if (access->mode == DUET_SCRATCH) /* only its shape counts */
        return access->handle;
    if (!datum && nodes->hosted > 1)
        datum = duet__datum_each(nodes, access->handle);
    if (!datum)
        return nodes->hosted > 1 ? NULL : access->handle;
    return access->mode == DUET_REDUCE && datum->owner != DUET_NOBODY ? duet__sum_local(host, datum)
                                                                      : duet__local(host, datum);
}

/*
 * Submits the task on a node that is hosted here; `tells`: its end is reported to the application.
 */
static int submit_at(struct duet__host *host, const struct duet_task_desc *task, bool as_is,
                     bool tells)
{
    struct duet__nodes *nodes = host->nodes;
    struct duet_task_desc there = *task;
    struct duet_task_extra extra;
    if (!as_is) {
        for (size_t i = 0; i < task->access_count; i++) {
            struct duet_handle *handle = handle_at(host, &task->accesses[i]);
            if (!handle)
                return DUET_ENOMEM;
            nodes->accesses[i] = (struct duet_access){handle, task->accesses[i].mode};
        }
        there.accesses = nodes->accesses;
        there.codelet = duet__codelet_at(host, task->codelet);
        if (!there.codelet)
            return DUET_ENOMEM;
    }
    if (task->extra) {
        extra = *task->extra;
        extra.node = NULL;
        extra.done = tells ? extra.done : NULL;
        there.extra = &extra;
    }
    duet__touch(host);
    host->seen = nodes->turn;
    return duet__submit_here(host->core, &there);
}

static int submit_everywhere(struct duet__nodes *nodes, const struct duet_task_desc *task)
{
    int error = submit_at(&nodes->hosts[0], task, nodes->hosted == 1, true);
    for (unsigned h = 1; h < nodes->hosted && !error; h++)
        error = duet__must(&nodes->hosts[h], submit_at(&nodes->hosts[h], task, false, false));
    return error;
}

static int submit_task(struct duet__nodes *nodes, const struct duet_task_desc *task)
{
    struct place place;
    unsigned node = EVERYWHERE;
    if (!task || !task->codelet || task->access_count > UINT16_MAX ||
        (task->access_count && !task->accesses))
        return duet__submit_here(duet__front(nodes), task); /* the core reports the error */
    int error = DUET_OK;
    if (task->access_count > nodes->access_room)
        error = make_access_room(nodes, task->access_count);
    if (!error)
        error = place_task(nodes, task, &place, &node);
    if (error)
        return error;
    if (node == EVERYWHERE)
        return submit_everywhere(nodes, task);
    struct duet__host *host = duet__host_of(nodes, node);
    if (place.owned && nodes->keeps_path)
        lengthen_path(nodes, task);
    if (place.owned)
        error = move_data(nodes, task, node);
    if (host && !error)
        error = submit_at(host, task, nodes->hosted == 1 && place.plain, true);
    return duet__must(host ? host : nodes->hosts, error);
}

int duet__nodes_submit(void *gate, const struct duet_task_desc *task)
{
    struct duet__nodes *nodes = ((struct duet__host *)gate)->nodes;
    return duet__begin(nodes) ? duet__finish(nodes, submit_task(nodes, task)) : DUET_EINVAL;
}
