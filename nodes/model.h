/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structures of the nodes' model. All of it belongs to the application's thread, except messages in
 * transit (message.c) and failures (nodes.c). Every process does the same bookkeeping for
 * everything except handles: holders, owners, tags and turns are the same in all of them.
 */
#ifndef DUET_NODES_MODEL_H
#define DUET_NODES_MODEL_H

#include <stdatomic.h>

#include "core/engine.h"
#include "nodes/nodes.h"

enum {
    FEW = 4,   /* holders of a datum that need no allocation */
    MANY = 32, /* number of holders from which on there is a bit for each node */
};

/* All nodes, in place of one. */
#define EVERYWHERE (DUET_NOBODY - 1)

/* A node that is hosted here. */
struct duet__host {
    struct duet__nodes *nodes;
    struct duet_runtime *core;
    unsigned number;
    uint64_t seen; /* turn up to which its application's thread was charged */
    struct duet__node_log log;
};

/* The contribution of a node that does not hold the data to its reduction: temporary data. */
struct duet__part_sum {
    unsigned node;
    uint64_t tag;
    struct duet_handle *handle; /* NULL: not on this process */
};

/* Reduction of data: its kernels, and the parts not combined yet, in order of their first tasks. */
struct duet__sum {
    const struct duet_codelet *init, *combine;
    bool open; /* tasks have reduced, and no other access has followed */
    unsigned count, room;
    struct duet__part_sum *parts;
};

/*
 * Data that the model knows: with an owner or, in simulations of several nodes, data of each node
 * (owner DUET_NOBODY), which all nodes hold. The holders have the current version, or it is on its
 * way to them, in the order in which they asked; the first one wrote it.
 */
struct duet__datum {
    struct duet__datum *next, *prev; /* in the list of all data */
    struct duet_handle *front;       /* the application's handle, on the first node hosted here */
    struct duet__sum *sum;           /* NULL: there is no reduction */
    uint64_t tag;
    unsigned owner;
    unsigned acquired; /* node, EVERYWHERE or DUET_NOBODY */
    bool temporary;
    double write_path_s, change_path_s; /* longest path to its last write; and to commuting or
                                           reducing accesses since */
    unsigned holder_count, holder_room;
    unsigned *holders;
    uint64_t *bits; /* one bit by node; only with many holders */
    /* only in simulations of several nodes: the holders' handles; NULL: it was valid there at first
       and is not needed yet. The front's is not among them */
    struct duet_handle **locals;
    unsigned few[FEW];
};

struct duet__nodes {
    unsigned count, first, hosted;
    struct duet_grid grid;
    const struct duet__transport *transport;
    void *transport_of;
    _Atomic(bool) busy;   /* a thread is in a call */
    _Atomic(bool) failed; /* the run has failed, here or elsewhere */
    uint64_t turn;        /* number of the current call, or the last one */
    uint64_t tags;
    bool keeps_path;
    double path_s; /* longest path over all nodes, each task where it is fastest */
    struct duet__datum *data;
    /* for one task: data with an owner by access, and the accesses as one core gets them */
    struct duet__datum **touched;
    struct duet_access *accesses;
    size_t access_room;
    /* kernels in cores other than the front's: first the front's, then by host */
    struct duet_codelet ***codelets;
    size_t codelet_count;
    struct duet__host hosts[];
};

static inline struct duet__host *duet__host_of(struct duet__nodes *nodes, unsigned node)
{
    return node - nodes->first < nodes->hosted ? &nodes->hosts[node - nodes->first] : NULL;
}

static inline struct duet_runtime *duet__front(struct duet__nodes *nodes)
{
    return nodes->hosts[0].core;
}

static inline bool duet__holds_alone(const struct duet__datum *datum, unsigned node)
{
    return datum->holder_count == 1 && datum->holders[0] == node;
}

/* nodes.c */
/*
 * Begins a call of the application, which is one step of the sequence. False: it was refused, with
 * DUET_EINVAL, as another thread is in one.
 */
bool duet__begin(struct duet__nodes *nodes);
/* Ends the call. Returns `error`. */
int duet__finish(struct duet__nodes *nodes, int error);
/* Notes that a task or message is about to be submitted on that node. */
void duet__touch(struct duet__host *host);
/*
 * Charges the nodes' threads for all tasks of other nodes, before the application's thread waits.
 */
void duet__catch_up(struct duet__nodes *nodes);
/*
 * Handles the error of an operation on that node that had to succeed: the run fails, since other
 * processes do not know that it did not. Returns `error`.
 */
int duet__must(struct duet__host *host, int error);
/* Handles the error of a wait: if this process is stuck, the run fails, since other processes would
   wait for its messages for ever. Returns the error. */
int duet__waited(struct duet__host *host, int error);

/* data.c */
/* Notes that the data is used: it cannot get an owner from now on, unless it has one. */
void duet__datum_use(struct duet_handle *handle);
/* Returns the model's record of the data, or NULL. */
struct duet__datum *duet__datum_of(struct duet_handle *handle);
/* Returns the record of data with an owner; NULL: it has none. */
struct duet__datum *duet__datum_owned(struct duet_handle *handle);
/*
 * Returns the record of the data; in a simulation of several nodes, data without an owner gets one.
 * NULL: no memory.
 */
struct duet__datum *duet__datum_each(struct duet__nodes *nodes, struct duet_handle *handle);
int duet__datum_own(struct duet__nodes *nodes, struct duet_handle *handle, unsigned node);
void duet__datum_free(struct duet__nodes *nodes, struct duet__datum *datum);
bool duet__holds(const struct duet__datum *datum, unsigned node);
/* Returns the place of the handle of the k-th holder, which is hosted here. */
struct duet_handle **duet__at(const struct duet__host *host, struct duet__datum *datum, unsigned k);
/* Returns the data's handle on a node that is hosted here and holds it. NULL: no memory. */
struct duet_handle *duet__local(struct duet__host *host, struct duet__datum *datum);
/*
 * Registers new data of its shape there; `valid`: its contents are there (simulated). NULL: no
 * memory.
 */
struct duet_handle *duet__local_new(struct duet__host *host, struct duet__datum *datum, bool valid);
/* Makes the node a holder of the current version, for tasks of this priority. */
int duet__bring(struct duet__nodes *nodes, struct duet__datum *datum, unsigned node, int priority);
/* Makes the node the only holder, of the next version, which is about to be written there. */
int duet__supersede(struct duet__nodes *nodes, struct duet__datum *datum, unsigned node);
/* Makes all nodes holders. */
int duet__hold_all(struct duet__nodes *nodes, struct duet__datum *datum);

/* access.c */
/* Refuses `function`'s call unless the handle is the whole data and is not acquired. */
int duet__data_check(struct duet__nodes *nodes, struct duet_handle *handle, const char *function);
int duet__data_acquire(struct duet__nodes *nodes, struct duet_handle *handle, enum duet_mode mode,
                       unsigned node, bool *here);
int duet__data_fetch(struct duet__nodes *nodes, struct duet_handle *handle, unsigned node,
                     bool owns);
int duet__nodes_acquire(void *gate, struct duet_handle *handle, enum duet_mode mode);
int duet__nodes_release(void *gate, struct duet_handle *handle);
int duet__nodes_unregister(void *gate, struct duet_handle *handle, bool waits);
int duet__nodes_hint(void *gate, struct duet_handle *handle, enum duet__hint kind, unsigned node);

/* reduction.c */
int duet__nodes_reduction(void *gate, struct duet_handle *handle, const struct duet_codelet *init,
                          const struct duet_codelet *combine);
/* Gives the host's core the data's reduction, for a handle that is new there. */
int duet__sum_tell(struct duet__host *host, const struct duet__datum *datum,
                   struct duet_handle *handle);
/* Notes a reducing task on that node. */
int duet__sum_add(struct duet__nodes *nodes, struct duet__datum *datum, unsigned node,
                  int priority);
/* Returns the handle that reducing tasks use on that node. NULL: no memory. */
struct duet_handle *duet__sum_local(struct duet__host *host, struct duet__datum *datum);
/* Combines the parts, as another access follows. `overwrites`: the parts are of no use. */
int duet__sum_end(struct duet__nodes *nodes, struct duet__datum *datum, int priority,
                  bool overwrites);
void duet__sum_free(struct duet__datum *datum);

/* submit.c */
int duet__nodes_submit(void *gate, const struct duet_task_desc *task);
/* Returns the kernel in the host's core. NULL: no memory. */
struct duet_codelet *duet__codelet_at(struct duet__host *host, const struct duet_codelet *codelet);

/* message.c */
/* Submits one end of a message, at a node that is hosted here. */
int duet__message_make(struct duet__host *host, struct duet_handle *handle, uint64_t tag,
                       unsigned other, bool arrives, int priority);

#endif
