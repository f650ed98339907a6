/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions over nodes. Tasks on the node that has the data reduce it as on one node; each other
 * node has a part, which is initialised before its first such task, and which its tasks reduce.
 * When another access follows, the parts are combined along a binomial tree, in the order in which
 * nodes have begun, by tasks on data that messages bring.
 */
#include <stdlib.h>

#include "nodes/model.h"

int duet__sum_tell(struct duet__host *host, const struct duet__datum *datum,
                   struct duet_handle *handle)
{
    const struct duet_codelet *init = duet__codelet_at(host, datum->sum->init);
    const struct duet_codelet *combine = duet__codelet_at(host, datum->sum->combine);
    if (!init || !combine)
        return DUET_ENOMEM;
    return duet__reduction_here(host->core, handle, init, combine);
}

static int set_reduction(struct duet__nodes *nodes, struct duet_handle *handle,
                         const struct duet_codelet *init, const struct duet_codelet *combine)
{
    struct duet__datum *datum = duet__datum_of(handle);
    int error = duet__data_check(nodes, handle, "duet_set_reduction");
    if (!error)
        error = duet__reduction_here(duet__front(nodes), handle, init, combine);
    if (error) /* EINVAL is the same in all processes, other errors concern this machine alone */
        return error == DUET_EINVAL || !duet__datum_owned(handle) ? error
                                                                  : duet__must(nodes->hosts, error);
    duet__datum_use(handle);
    if (!datum && nodes->hosted > 1 && !duet__handle_is_part(handle))
        datum = duet__datum_each(nodes, handle);
    if (!datum)
        return DUET_OK;
    datum->sum = calloc(1, sizeof *datum->sum);
    if (!datum->sum)
        return duet__must(nodes->hosts, DUET_ENOMEM);
    datum->sum->init = init;
    datum->sum->combine = combine;
    for (unsigned k = 0; k < datum->holder_count && !error; k++) {
        struct duet__host *host = duet__host_of(nodes, datum->holders[k]);
        struct duet_handle *local = host ? *duet__at(host, datum, k) : NULL;
        if (local && local != handle)
            error = duet__must(host, duet__sum_tell(host, datum, local));
    }
    return error;
}

int duet__nodes_reduction(void *gate, struct duet_handle *handle, const struct duet_codelet *init,
                          const struct duet_codelet *combine)
{
    struct duet__nodes *nodes = ((struct duet__host *)gate)->nodes;
    return duet__begin(nodes) ? duet__finish(nodes, set_reduction(nodes, handle, init, combine))
                              : DUET_EINVAL;
}

/* ------------------------------------------------------------------------------------------- */

static struct duet__part_sum *find_part(const struct duet__sum *sum, unsigned node)
{
    for (unsigned i = 0; i < sum->count; i++)
        if (sum->parts[i].node == node)
            return &sum->parts[i];
    return NULL;
}

struct duet_handle *duet__sum_local(struct duet__host *host, struct duet__datum *datum)
{
    const struct duet__part_sum *part = find_part(datum->sum, host->number);
    return part ? part->handle : duet__local(host, datum);
}

static int submit_on(struct duet__host *host, const struct duet_codelet *codelet,
                     const struct duet_access *accesses, size_t count, int priority)
{
    const struct duet_task_desc desc = {.codelet = duet__codelet_at(host, codelet),
                                        .accesses = accesses,
                                        .access_count = count,
                                        .priority = priority};
    return desc.codelet ? duet__submit_here(host->core, &desc) : DUET_ENOMEM;
}

int duet__sum_add(struct duet__nodes *nodes, struct duet__datum *datum, unsigned node, int priority)
{
    struct duet__sum *sum = datum->sum;
    sum->open = true;
    if (node == datum->holders[0] || find_part(sum, node))
        return DUET_OK;
    if (sum->count == sum->room) {
        const unsigned room = 2 * sum->room + 4;
        struct duet__part_sum *parts = realloc(sum->parts, room * sizeof *parts);
        if (!parts)
            return DUET_ENOMEM;
        sum->parts = parts;
        sum->room = room;
    }
    struct duet__part_sum *part = &sum->parts[sum->count++];
    *part = (struct duet__part_sum){.node = node, .tag = ++nodes->tags};
    struct duet__host *host = duet__host_of(nodes, node);
    if (!host)
        return DUET_OK;
    part->handle = duet__local_new(host, datum, false);
    if (!part->handle)
        return DUET_ENOMEM;
    const struct duet_access written = {part->handle, DUET_W};
    return submit_on(host, sum->init, &written, 1, priority);
}

/* ------------------------------------------------------------------------------------------- */

/* Brings the part of one node to another, and combines it with that one's. */
static int combine_parts(struct duet__nodes *nodes, struct duet__datum *datum,
                         const struct duet__part_sum *from, const struct duet__part_sum *to,
                         int priority)
{
    struct duet__host *sender = duet__host_of(nodes, from->node);
    struct duet__host *receiver = duet__host_of(nodes, to->node);
    int error = DUET_OK;
    if (sender) {
        error = duet__message_make(sender, from->handle, from->tag, to->node, false, priority);
        if (!error)
            error = duet__unregister_submit_here(sender->core, from->handle);
    }
    if (!receiver || error)
        return error;
    struct duet_handle *arrived = duet__local_new(receiver, datum, false);
    struct duet_handle *into = to->handle ? to->handle : duet__local(receiver, datum);
    if (!arrived || !into)
        return DUET_ENOMEM;
    const struct duet_access accesses[] = {{into, DUET_RW}, {arrived, DUET_R}};
    error = duet__message_make(receiver, arrived, from->tag, from->node, true, priority);
    if (!error)
        error = submit_on(receiver, datum->sum->combine, accesses, 2, priority);
    return error ? error : duet__unregister_submit_here(receiver->core, arrived);
}

int duet__sum_end(struct duet__nodes *nodes, struct duet__datum *datum, int priority,
                  bool overwrites)
{
    struct duet__sum *sum = datum->sum;
    const struct duet__part_sum root = {.node = datum->holders[0]};
    const unsigned count = sum->count + 1; /* the root is number 0 */
    int error = DUET_OK;
    if (!sum->open)
        return DUET_OK;
    for (unsigned i = 0; overwrites && i < sum->count && !error; i++)
        if (sum->parts[i].handle)
            error = duet__unregister_submit_here(duet__host_of(nodes, sum->parts[i].node)->core,
                                                 sum->parts[i].handle);
    for (unsigned step = 1; !overwrites && step < count; step *= 2)
        for (unsigned to = 0; to + step < count && !error; to += 2 * step)
            error = combine_parts(nodes, datum, &sum->parts[to + step - 1],
                                  to ? &sum->parts[to - 1] : &root, priority);
    sum->count = 0;
    sum->open = false;
    return error || overwrites ? error : duet__supersede(nodes, datum, root.node);
}

void duet__sum_free(struct duet__datum *datum)
{
    if (datum->sum)
        free(datum->sum->parts);
    free(datum->sum);
}
