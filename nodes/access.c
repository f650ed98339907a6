/* SPDX-License-Identifier: Apache-2.0 */
/* What the application does with data itself: acquires it, fetches it, gives it up. */
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

/*
 * The handle on a simulated node, or the front's. NULL: there is none, since nothing has used the
 * data there.
 */
static struct duet_handle *there(const struct duet__host *host, const struct duet__datum *datum)
{
    if (host == host->nodes->hosts)
        return datum->front;
    if (datum->owner == DUET_NOBODY)
        return datum->locals[host->number];
    for (unsigned k = 0; k < datum->holder_count; k++)
        if (datum->holders[k] == host->number)
            return datum->locals[k];
    return NULL;
}

/* Before an access to all of the data by the application. */
static int check(struct duet__nodes *nodes, struct duet_handle *handle, const char *function)
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

/* The nodes that acquire it have, or are about to have, what they need. */
static int prepare(struct duet__nodes *nodes, struct duet__datum *datum, enum duet_mode mode,
                   unsigned node)
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

/* The same of a thread of each node that is concerned. */
static int acquire_all(struct duet__nodes *nodes, const struct duet__datum *datum,
                       enum duet_mode mode, unsigned node)
{
    int error = DUET_OK;
    duet__catch_up(nodes);
    for (unsigned h = 0; h < nodes->hosted; h++) {
        struct duet__host *host = &nodes->hosts[h];
        struct duet_handle *local = concerns(host, node) ? there(host, datum) : NULL;
        if (local)
            error = first_of(error, duet__acquire_here(host->core, local, mode));
    }
    return error;
}

static int acquire(struct duet__nodes *nodes, struct duet_handle *handle, enum duet_mode mode,
                   unsigned node, bool *here)
{
    struct duet__datum *datum = duet__datum_owned(handle);
    int error = check(nodes, handle, "duet_acquire");
    if (error)
        return error;
    if (here)
        *here = node == EVERYWHERE || duet__host_of(nodes, node);
    if (datum) {
        error = prepare(nodes, datum, mode, node);
        if (error)
            return error;
        datum->acquired = node;
    }
    if (nodes->hosted > 1 && !datum)
        datum = duet__datum_of(handle);
    return datum ? acquire_all(nodes, datum, mode, node)
                 : duet__acquire_here(duet__front(nodes), handle, mode);
}

int duet__data_acquire(struct duet__nodes *nodes, struct duet_handle *handle, enum duet_mode mode,
                       unsigned node, bool *here)
{
    int error = duet__begin(nodes);
    return error ? error : duet__finish(nodes, acquire(nodes, handle, mode, node, here));
}

int duet__nodes_acquire(void *gate, struct duet_handle *handle, enum duet_mode mode)
{
    return duet__data_acquire(((struct duet__host *)gate)->nodes, handle, mode, EVERYWHERE, NULL);
}

static int release(struct duet__nodes *nodes, struct duet_handle *handle)
{
    struct duet__datum *datum = duet__datum_of(handle);
    const unsigned node = datum && datum->owner != DUET_NOBODY ? datum->acquired : EVERYWHERE;
    int error = DUET_OK;
    if (!datum || datum->front != handle || node == DUET_NOBODY)
        return duet__release_here(duet__front(nodes), handle); /* or it says that it is not */
    datum->acquired = DUET_NOBODY;
    for (unsigned h = 0; h < nodes->hosted; h++) {
        struct duet__host *host = &nodes->hosts[h];
        struct duet_handle *local = concerns(host, node) ? there(host, datum) : NULL;
        if (local)
            error = first_of(error, duet__release_here(host->core, local));
    }
    return error;
}

int duet__nodes_release(void *gate, struct duet_handle *handle)
{
    struct duet__nodes *nodes = ((struct duet__host *)gate)->nodes;
    int error = duet__begin(nodes);
    return error ? error : duet__finish(nodes, release(nodes, handle));
}

/* ------------------------------------------------------------------------------------------- */
/* Moving                                                                                       */

int duet__data_fetch(struct duet__nodes *nodes, struct duet_handle *handle, unsigned node,
                     bool owns)
{
    struct duet__datum *datum = duet__datum_owned(handle);
    int error = duet__begin(nodes);
    if (error)
        return error;
    error = check(nodes, handle, owns ? "duet_migrate" : "duet_fetch");
    if (!error) {
        error = prepare(nodes, datum, DUET_R, node);
        if (owns)
            datum->owner = node;
    }
    return duet__finish(nodes, error);
}

/* Nobody has it any more but that holder, or the first one. */
static int keep_one(struct duet__nodes *nodes, struct duet__datum *datum, unsigned node)
{
    return duet__supersede(nodes, datum, duet__holds(datum, node) ? node : datum->holders[0]);
}

/* Hints to the nodes that have the data. */
static int hint(struct duet__nodes *nodes, struct duet__datum *datum, enum duet__hint kind,
                unsigned node)
{
    int error = DUET_OK;
    if (kind != DUET__PREFETCH && datum->sum)
        error = duet__sum_end(nodes, datum, 0, kind == DUET__INVALIDATE);
    if (kind == DUET__INVALIDATE && !error)
        error = duet__supersede(nodes, datum, datum->owner);
    if (kind == DUET__WONT_USE && !error)
        error = keep_one(nodes, datum, datum->owner);
    for (unsigned h = 0; h < nodes->hosted && !error; h++) {
        struct duet__host *host = &nodes->hosts[h];
        struct duet_handle *local = duet__holds(datum, host->number) ? there(host, datum) : NULL;
        if (!local)
            continue;
        duet__touch(host);
        error = duet__must(host, duet__hint_here(host->core, local, kind, node));
    }
    return error;
}

int duet__nodes_hint(void *gate, struct duet_handle *handle, enum duet__hint kind, unsigned node)
{
    struct duet__nodes *nodes = ((struct duet__host *)gate)->nodes;
    struct duet__datum *datum = duet__datum_owned(handle);
    int error = duet__begin(nodes);
    if (error)
        return error;
    if (!datum)
        error = duet__hint_here(duet__front(nodes), handle, kind, node);
    else if (datum->front == handle && datum->acquired == DUET_NOBODY) /* else it is in vain */
        error = hint(nodes, datum, kind, node);
    return duet__finish(nodes, error);
}

/* ------------------------------------------------------------------------------------------- */
/* The end of data                                                                              */

static int end_here(struct duet_runtime *core, struct duet_handle *handle, bool waits)
{
    return waits ? duet__unregister_here(core, handle) : duet__unregister_submit_here(core, handle);
}

/* The last version is with the owner, if anybody needs it. */
static int bring_home(struct duet__nodes *nodes, struct duet__datum *datum)
{
    int error = datum->sum ? duet__sum_end(nodes, datum, 0, datum->temporary) : DUET_OK;
    if (!error && !datum->temporary)
        error = duet__bring(nodes, datum, datum->owner, 0);
    for (unsigned k = 0; k < datum->holder_count && !error; k++) {
        struct duet__host *host = duet__host_of(nodes, datum->holders[k]);
        if (host && (datum->temporary || host->number != datum->owner))
            error = duet__part_with(host, datum, k);
    }
    return duet__must(nodes->hosts, error);
}

static int unregister(struct duet__nodes *nodes, struct duet_handle *handle, bool waits)
{
    struct duet_runtime *front = duet__front(nodes);
    struct duet__datum *datum = duet__datum_of(handle);
    int error = DUET_OK;
    if (!datum || datum->front != handle)
        return end_here(front, handle, waits);
    if (datum->owner != DUET_NOBODY) {
        if (datum->acquired != DUET_NOBODY)
            error = release(nodes, handle);
        error = first_of(error, bring_home(nodes, datum));
        struct duet__host *owner = duet__host_of(nodes, datum->owner);
        struct duet_handle *local = owner && !datum->temporary ? there(owner, datum) : NULL;
        duet__catch_up(nodes);
        if (local && local != handle)
            error = first_of(error, end_here(owner->core, local, waits));
    }
    for (unsigned n = 0; datum->owner == DUET_NOBODY && n < nodes->count; n++)
        if (datum->locals[n])
            error = first_of(error,
                             duet__unregister_submit_here(nodes->hosts[n].core, datum->locals[n]));
    *duet__handle_note(handle) = NULL;
    duet__datum_free(nodes, datum);
    return first_of(error, end_here(front, handle, waits));
}

int duet__nodes_unregister(void *gate, struct duet_handle *handle, bool waits)
{
    struct duet__nodes *nodes = ((struct duet__host *)gate)->nodes;
    int error = duet__begin(nodes);
    return error ? error : duet__finish(nodes, unregister(nodes, handle, waits));
}
