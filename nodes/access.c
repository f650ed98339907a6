/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The application's own operations on data of several nodes: acquiring, fetching and unregistering.
 */
#include <stdlib.h>

#include "nodes/model.h"

static bool concerns(const struct duet__host *host, unsigned node)
{
    return node == EVERYWHERE || node == host->number;
}

static int first_of(int error, int other)
{
    return error ? error : other;
}

int duet__data_check(struct duet__nodes *nodes, struct duet_handle *handle, const char *function)
{
    const struct duet__datum *datum = duet__datum_owned(handle);
    if (datum && datum->front != handle)
        return duet__refuse(duet__front(nodes), DUET_EINVAL,
                            "%s was called with a part of data that has an owner: it needs the "
                            "whole",
                            function);
    if (datum && datum->acquired != DUET_NOBODY)
        return duet__refuse(duet__front(nodes), DUET_EINVAL,
                            "%s was called with data that is acquired", function);
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Acquiring                                                                                    */

/*
 * Brings the current version to the nodes that acquire the data, or makes it about to arrive there.
 */
static int bring_to_acquire(struct duet__nodes *nodes, struct duet__datum *datum,
                            enum duet_mode mode, unsigned node)
{
    const unsigned first = node == EVERYWHERE ? 0 : node;
    const unsigned end = node == EVERYWHERE ? nodes->count : node + 1;
    int error = datum->sum ? duet__sum_end(nodes, datum, 0, mode == DUET_W) : DUET_OK;
    for (unsigned n = first; n < end && (mode & DUET_R) && !error; n++)
        error = duet__bring(nodes, datum, n, 0);
    if (!error && (mode & DUET_W))
        error =
            node == EVERYWHERE ? duet__hold_all(nodes, datum) : duet__supersede(nodes, datum, node);
    return duet__must(nodes->hosts, error);
}

/* Acquires the data on a thread of each concerned node that holds it, or (mode 0) releases it. */
static int take_all(struct duet__nodes *nodes, struct duet__datum *datum, unsigned mode,
                    unsigned node)
{
    int error = DUET_OK;
    for (unsigned k = 0; k < datum->holder_count; k++) {
        struct duet__host *host = duet__host_of(nodes, datum->holders[k]);
        struct duet_handle *local = host && concerns(host, node) ? *duet__at(host, datum, k) : NULL;
        if (local)
            error =
                first_of(error, mode ? duet__must(host, duet__acquire_here(host->core, local, mode))
                                     : duet__release_here(host->core, local));
    }
    return error;
}

static int acquire_data(struct duet__nodes *nodes, struct duet_handle *handle, enum duet_mode mode,
                        unsigned node, bool *here)
{
    struct duet__datum *datum = duet__datum_owned(handle);
    int error = duet__data_check(nodes, handle, "duet_acquire");
    if (error)
        return error;
    if (here)
        *here = node == EVERYWHERE || duet__host_of(nodes, node);
    if (datum) {
        error = bring_to_acquire(nodes, datum, mode, node);
        if (error)
            return error;
        datum->acquired = node;
    }
    if (nodes->hosted > 1 && !datum)
        datum = duet__datum_of(handle);
    duet__catch_up(nodes);
    return datum ? take_all(nodes, datum, mode, node)
                 : duet__waited(nodes->hosts, duet__acquire_here(duet__front(nodes), handle, mode));
}

int duet__data_acquire(struct duet__nodes *nodes, struct duet_handle *handle, enum duet_mode mode,
                       unsigned node, bool *here)
{
    return duet__begin(nodes) ? duet__finish(nodes, acquire_data(nodes, handle, mode, node, here))
                              : DUET_EINVAL;
}

int duet__nodes_acquire(void *gate, struct duet_handle *handle, enum duet_mode mode)
{
    return duet__data_acquire(((struct duet__host *)gate)->nodes, handle, mode, EVERYWHERE, NULL);
}

static int release_data(struct duet__nodes *nodes, struct duet_handle *handle)
{
    struct duet__datum *datum = duet__datum_of(handle);
    const unsigned node = datum && datum->owner != DUET_NOBODY ? datum->acquired : EVERYWHERE;
    if (!datum || datum->front != handle || node == DUET_NOBODY)
        return duet__release_here(duet__front(nodes), handle); /* the core reports that it is not
                                                                  acquired */
    datum->acquired = DUET_NOBODY;
    return take_all(nodes, datum, 0, node);
}

int duet__nodes_release(void *gate, struct duet_handle *handle)
{
    struct duet__nodes *nodes = ((struct duet__host *)gate)->nodes;
    return duet__begin(nodes) ? duet__finish(nodes, release_data(nodes, handle)) : DUET_EINVAL;
}

/* ------------------------------------------------------------------------------------------- */
/* Moving                                                                                       */

int duet__data_fetch(struct duet__nodes *nodes, struct duet_handle *handle, unsigned node,
                     bool owns)
{
    struct duet__datum *datum = duet__datum_owned(handle);
    if (!duet__begin(nodes))
        return DUET_EINVAL;
    int error = duet__data_check(nodes, handle, owns ? "duet_migrate" : "duet_fetch");
    if (!error) {
        error = bring_to_acquire(nodes, datum, DUET_R, node);
        if (owns)
            datum->owner = node;
    }
    return duet__finish(nodes, error);
}

/* Leaves one holder: this node if it holds the data, else the first one. */
static int keep_one(struct duet__nodes *nodes, struct duet__datum *datum, unsigned node)
{
    return duet__supersede(nodes, datum, duet__holds(datum, node) ? node : datum->holders[0]);
}

/* Gives a hint to the nodes that hold the data. */
static int hint_holders(struct duet__nodes *nodes, struct duet__datum *datum, enum duet__hint kind,
                        unsigned node)
{
    int error = DUET_OK;
    if (kind != DUET__PREFETCH && datum->sum)
        error = duet__sum_end(nodes, datum, 0, kind == DUET__INVALIDATE);
    if (kind == DUET__INVALIDATE && !error)
        error = duet__supersede(nodes, datum, datum->owner);
    if (kind == DUET__WONT_USE && !error)
        error = keep_one(nodes, datum, datum->owner);
    for (unsigned k = 0; k < datum->holder_count && !error; k++) {
        struct duet__host *host = duet__host_of(nodes, datum->holders[k]);
        struct duet_handle *local = host ? *duet__at(host, datum, k) : NULL;
        if (!local)
            continue;
        duet__touch(host);
        error = duet__hint_here(host->core, local, kind, node);
        if (kind != DUET__PREFETCH) /* only one machine may refuse a prefetch, which changes
                                       nothing */
            error = duet__must(host, error);
    }
    return error;
}

int duet__nodes_hint(void *gate, struct duet_handle *handle, enum duet__hint kind, unsigned node)
{
    struct duet__nodes *nodes = ((struct duet__host *)gate)->nodes;
    struct duet__datum *datum = duet__datum_owned(handle);
    int error = DUET_OK;
    if (!duet__begin(nodes))
        return DUET_EINVAL;
    if (!datum)
        error = duet__hint_here(duet__front(nodes), handle, kind, node);
    else if (datum->front == handle && datum->acquired == DUET_NOBODY) /* otherwise the hint has no
                                                                   effect */
        error = hint_holders(nodes, datum, kind, node);
    return duet__finish(nodes, error);
}

/* ------------------------------------------------------------------------------------------- */
/* The end of data                                                                              */

static int unregister_at(struct duet_runtime *core, struct duet_handle *handle, bool waits)
{
    return waits ? duet__unregister_here(core, handle) : duet__unregister_submit_here(core, handle);
}

/*
 * Brings the last version to the owner, unless the data is temporary, and leaves that one holder.
 */
static int bring_home(struct duet__nodes *nodes, struct duet__datum *datum)
{
    int error = datum->sum ? duet__sum_end(nodes, datum, 0, datum->temporary) : DUET_OK;
    if (!error && !datum->temporary)
        error = duet__bring(nodes, datum, datum->owner, 0);
    if (!error)
        error = keep_one(nodes, datum, datum->owner);
    return duet__must(nodes->hosts, error);
}

static int unregister_data(struct duet__nodes *nodes, struct duet_handle *handle, bool waits)
{
    struct duet_runtime *front = duet__front(nodes);
    struct duet__datum *datum = duet__datum_of(handle);
    int error = DUET_OK;
    if (!datum || datum->front != handle)
        return duet__waited(nodes->hosts, unregister_at(front, handle, waits));
    if (datum->owner != DUET_NOBODY) {
        if (datum->acquired != DUET_NOBODY)
            error = release_data(nodes, handle);
        error = first_of(error, bring_home(nodes, datum));
        duet__catch_up(nodes);
    }
    for (unsigned k = 0; k < datum->holder_count; k++) {
        struct duet__host *host = duet__host_of(nodes, datum->holders[k]);
        struct duet_handle *local = host ? *duet__at(host, datum, k) : NULL;
        if (local && local != handle)
            error = first_of(error, unregister_at(host->core, local,
                                                  waits && datum->owner != DUET_NOBODY));
    }
    *duet__handle_note(handle) = NULL;
    duet__datum_free(nodes, datum);
    return first_of(error, duet__waited(nodes->hosts, unregister_at(front, handle, waits)));
}

int duet__nodes_unregister(void *gate, struct duet_handle *handle, bool waits)
{
    struct duet__nodes *nodes = ((struct duet__host *)gate)->nodes;
    return duet__begin(nodes) ? duet__finish(nodes, unregister_data(nodes, handle, waits))
                              : DUET_EINVAL;
}
