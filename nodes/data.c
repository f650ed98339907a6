/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of data that has an owner or holders. A node that is to read data that it does not hold
 * becomes holder number k; it gets the data from holder number k without its highest bit. So
 * holders form a binomial tree, as in MPI's broadcasts, whoever they are and whenever they ask.
 */
#include <stdlib.h>
#include <string.h>

#include "nodes/model.h"

/* ------------------------------------------------------------------------------------------- */
/* Records                                                                                      */

static struct duet__datum used = {.owner = DUET_NOBODY};

void duet__datum_use(struct duet_handle *handle)
{
    void **note = duet__handle_note(handle);
    if (!*note)
        *note = &used;
}

struct duet__datum *duet__datum_of(struct duet_handle *handle)
{
    struct duet__datum *datum = *duet__handle_note(handle);
    return datum == &used ? NULL : datum;
}

struct duet__datum *duet__datum_owned(struct duet_handle *handle)
{
    struct duet__datum *datum = duet__datum_of(handle);
    return datum && datum->owner != DUET_NOBODY ? datum : NULL;
}

/* Creates the record of data. NULL: no memory. */
static struct duet__datum *datum_new(struct duet__nodes *nodes, struct duet_handle *handle)
{
    struct duet__datum *datum = calloc(1, sizeof *datum);
    struct duet_handle **locals = nodes->hosted > 1 ? calloc(FEW, sizeof *locals) : NULL;
    if (!datum || (nodes->hosted > 1 && !locals)) {
        free(datum);
        free(locals);
        return NULL;
    }
    datum->front = handle;
    datum->tag = ++nodes->tags;
    datum->owner = datum->acquired = DUET_NOBODY;
    datum->temporary = duet__handle_temporary(handle);
    datum->holders = datum->few;
    datum->holder_room = FEW;
    datum->locals = locals;
    datum->next = nodes->data;
    if (datum->next)
        datum->next->prev = datum;
    nodes->data = datum;
    *duet__handle_note(handle) = datum;
    return datum;
}

void duet__datum_free(struct duet__nodes *nodes, struct duet__datum *datum)
{
    if (datum->prev)
        datum->prev->next = datum->next;
    else
        nodes->data = datum->next;
    if (datum->next)
        datum->next->prev = datum->prev;
    if (datum->holders != datum->few)
        free(datum->holders);
    duet__sum_free(datum);
    free(datum->bits);
    free(datum->locals);
    free(datum);
}

int duet__datum_own(struct duet__nodes *nodes, struct duet_handle *handle, unsigned node)
{
    struct duet__datum *datum = datum_new(nodes, handle);
    if (!datum)
        return duet__must(nodes->hosts, DUET_ENOMEM);
    datum->owner = node;
    datum->holders[datum->holder_count++] = node;
    if (node != nodes->first)
        duet__handle_elsewhere(duet__front(nodes), handle);
    duet__log_datum(&nodes->hosts[0].log, duet__handle_number(handle), datum->tag);
    return DUET_OK;
}

struct duet__datum *duet__datum_each(struct duet__nodes *nodes, struct duet_handle *handle)
{
    struct duet__datum *datum = duet__datum_of(handle);
    if (datum)
        return datum;
    datum = datum_new(nodes, handle);
    return datum && !duet__hold_all(nodes, datum) ? datum : NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Handles of simulated nodes                                                                   */

struct duet_handle *duet__local_new(struct duet__host *host, struct duet__datum *datum, bool valid)
{
    struct duet_handle *made = NULL;
    duet__touch(host);
    if (duet__handle_like(host->core, datum->front, valid && !datum->temporary, &made))
        return NULL;
    duet__log_datum(&host->log, duet__handle_number(made), datum->tag);
    if (datum->sum && duet__sum_tell(host, datum, made))
        return NULL; /* the handle stays until the core is closed */
    return made;
}

struct duet_handle **duet__at(const struct duet__host *host, struct duet__datum *datum, unsigned k)
{
    return host == host->nodes->hosts ? &datum->front : &datum->locals[k];
}

struct duet_handle *duet__local(struct duet__host *host, struct duet__datum *datum)
{
    const unsigned node = host->number;
    unsigned k = node < datum->holder_count && datum->holders[node] == node ? node : 0;
    while (datum->holders[k] != node)
        k++;
    struct duet_handle **at = duet__at(host, datum, k);
    if (!*at)
        *at = duet__local_new(host, datum, true);
    return *at;
}

/* Gives up the contents of the k-th holder, hosted here, after all that was submitted so far. */
static int drop_holder(struct duet__host *host, struct duet__datum *datum, unsigned k)
{
    struct duet_handle *local = *duet__at(host, datum, k);
    if (!local)
        return DUET_OK;
    duet__touch(host);
    return local == datum->front ? duet__handle_drop(host->core, local)
                                 : duet__unregister_submit_here(host->core, local);
}

/* ------------------------------------------------------------------------------------------- */
/* Holders                                                                                      */

bool duet__holds(const struct duet__datum *datum, unsigned node)
{
    if (datum->bits)
        return datum->bits[node / 64] >> node % 64 & 1;
    for (unsigned k = 0; k < datum->holder_count; k++)
        if (datum->holders[k] == node)
            return true;
    return false;
}

static int grow_holders(struct duet__datum *datum)
{
    const unsigned room = datum->holder_room < FEW ? FEW : 2 * datum->holder_room;
    const bool few = datum->holders == datum->few;
    unsigned *holders = realloc(few ? NULL : datum->holders, room * sizeof *holders);
    if (!holders)
        return DUET_ENOMEM;
    if (few)
        memcpy(holders, datum->few, sizeof datum->few);
    datum->holders = holders;
    struct duet_handle **locals =
        datum->locals ? realloc(datum->locals, room * sizeof *locals) : NULL;
    if (datum->locals && !locals)
        return DUET_ENOMEM;
    datum->locals = locals;
    datum->holder_room = room;
    return DUET_OK;
}

static int add_holder(const struct duet__nodes *nodes, struct duet__datum *datum, unsigned node,
                      struct duet_handle *local)
{
    if (datum->holder_count == datum->holder_room && grow_holders(datum))
        return DUET_ENOMEM;
    if (datum->locals)
        datum->locals[datum->holder_count] = local;
    datum->holders[datum->holder_count++] = node;
    if (datum->holder_count == MANY) {
        datum->bits = calloc((nodes->count + 63) / 64, sizeof *datum->bits);
        for (unsigned k = 0; datum->bits && k < MANY; k++)
            datum->bits[datum->holders[k] / 64] |= UINT64_C(1) << datum->holders[k] % 64;
    } else if (datum->bits) {
        datum->bits[node / 64] |= UINT64_C(1) << node % 64;
    }
    return DUET_OK;
}

/* Makes one node the only holder, with this handle. */
static void set_holder(struct duet__datum *datum, unsigned node, struct duet_handle *local)
{
    free(datum->bits);
    datum->bits = NULL;
    datum->holder_count = 1;
    datum->holders[0] = node;
    if (datum->locals)
        datum->locals[0] = local;
}

int duet__bring(struct duet__nodes *nodes, struct duet__datum *datum, unsigned node, int priority)
{
    if (duet__holds(datum, node))
        return DUET_OK;
    unsigned parent = datum->holder_count;
    while (parent & (parent - 1))
        parent &= parent - 1;
    parent ^= datum->holder_count;
    struct duet__host *from = duet__host_of(nodes, datum->holders[parent]);
    struct duet__host *to = duet__host_of(nodes, node);
    struct duet_handle *local = NULL;
    int error = DUET_OK;
    if (from) {
        local = duet__local(from, datum);
        error = local ? duet__message_make(from, local, datum->tag, node, false, priority)
                      : DUET_ENOMEM;
    }
    if (to && !error) {
        local = to == nodes->hosts ? datum->front : duet__local_new(to, datum, false);
        error = local ? duet__message_make(to, local, datum->tag, datum->holders[parent], true,
                                           priority)
                      : DUET_ENOMEM;
    }
    return error ? error : add_holder(nodes, datum, node, local);
}

int duet__supersede(struct duet__nodes *nodes, struct duet__datum *datum, unsigned node)
{
    if (duet__holds_alone(datum, node))
        return DUET_OK;
    struct duet_handle *kept = NULL;
    bool held = false;
    int error = DUET_OK;
    for (unsigned k = 0; k < datum->holder_count && !error; k++) {
        struct duet__host *host = duet__host_of(nodes, datum->holders[k]);
        if (datum->holders[k] == node) {
            held = true;
            kept = datum->locals ? datum->locals[k] : NULL;
        } else if (host) {
            error = drop_holder(host, datum, k);
        }
    }
    if (datum->locals && !held && node != nodes->first && !error) {
        kept = duet__local_new(duet__host_of(nodes, node), datum, false);
        error = kept ? DUET_OK : DUET_ENOMEM;
    }
    set_holder(datum, node, kept);
    return error;
}

int duet__hold_all(struct duet__nodes *nodes, struct duet__datum *datum)
{
    int error = DUET_OK;
    for (unsigned node = 0; node < nodes->count && !error; node++)
        if (!duet__holds(datum, node))
            error = add_holder(nodes, datum, node, NULL);
    return error;
}
