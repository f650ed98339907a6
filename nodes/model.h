/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model's structures. All of it belongs to the application's thread, but for messages that are
 * on their way (message.c) and what fails (nodes.c). Every process does the same to what is not
 * about a handle: holders, owners, tags and turns are the same in all of them.
 */
#ifndef DUET_NODES_MODEL_H
#define DUET_NODES_MODEL_H

#include <stdatomic.h>

#include "core/engine.h"
#include "nodes/log.h"
#include "nodes/nodes.h"

enum {
    FEW = 4,   /* holders of a datum that need no allocation */
    MANY = 32, /* from so many on there is a bit for each node */
};

/* In place of a node: all of them. */
#define EVERYWHERE (DUET_NOBODY - 1)

/* A node that is hosted here. */
struct duet__host {
    struct duet__nodes *nodes;
    struct duet_runtime *core;
    unsigned number;
    uint64_t seen; /* up to this turn its application's thread was charged for */
    struct duet__node_log log;
};

/* What a node that has not the data itself has added to it: temporary data. */
struct duet__part_sum {
    unsigned node;
    uint64_t tag;
    struct duet_handle *handle; /* NULL: it is not here */
};

/* How data is reduced, and what is not combined yet, in order of the first task. */
struct duet__sum {
    const struct duet_codelet *init, *combine;
    bool open; /* tasks have reduced, and no other access has followed */
    unsigned count, room;
    struct duet__part_sum *parts;
};

/*
 * Data of which the model knows: with an owner or, in simulations of several nodes, one for each
 * node (owner DUET_NOBODY), all of which hold it. The holders have the current version, or it is on
 * its way to them, in the order in which they asked; the first one wrote it.
 */
struct duet__datum {
    struct duet__datum *next, *prev; /* of all */
    struct duet_handle *front;       /* the application's, on the first node that is hosted */
    struct duet__sum *sum;           /* NULL: there is no reduction */
    uint64_t tag;
    unsigned owner;
    unsigned acquired; /* node, EVERYWHERE or DUET_NOBODY */
    bool temporary;
    double write_path_s, change_path_s; /* the longest to its last write; also to what commutes or
                                           is reduced since */
    unsigned holder_count, holder_room;
    unsigned *holders;
    uint64_t *bits; /* by node; of many holders only */
    /* simulations of several nodes: the holders' handles, NULL: it was valid there at first and is
       not needed yet. The front is not among them */
    struct duet_handle **locals;
    unsigned few[FEW];
};

struct duet__nodes {
    unsigned count, first, hosted;
    struct duet_grid grid;
    const struct duet__transport *transport;
    void *transport_of;
    _Atomic(bool) busy;   /* a thread is in a call */
    _Atomic(bool) failed; /* the run has, here or elsewhere */
    uint64_t turn;        /* of the current call, or the last one */
    uint64_t tags;
    bool keeps_path;
    double path_s; /* the longest over all nodes, each task where it is fastest */
    struct duet__datum *data;
    /* of a task: data with an owner by access, and the accesses as one core gets them */
    struct duet__datum **touched;
    struct duet_access *accesses;
    size_t access_room;
    /* kernels in cores other than the front's: front's, then by host */
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
 * A call of the application begins, which is one step of the sequence. false: it was refused, with
 * DUET_EINVAL, as another thread is in one.
 */
bool duet__begin(struct duet__nodes *nodes);
/* It ends, with this error. */
int duet__finish(struct duet__nodes *nodes, int error);
/* Something is about to be submitted on that node. */
void duet__touch(struct duet__host *host);
/* The same before its application's thread waits. */
void duet__catch_up(struct duet__nodes *nodes);
/*
 * The error of something on that node that had to succeed: the run fails, since other processes do
 * not know that it did not.
 */
int duet__must(struct duet__host *host, int error);
/* Likewise of a wait: where nothing goes on here, others would wait for what was to come for ever.
 */
int duet__waited(struct duet__host *host, int error);

/* data.c */
/* It is used: nobody can own it from now on, unless somebody does. */
void duet__datum_use(struct duet_handle *handle);
/* What the model knows of the data, or NULL. */
struct duet__datum *duet__datum_of(struct duet_handle *handle);
/* The same of data with an owner. NULL: it has none. */
struct duet__datum *duet__datum_owned(struct duet_handle *handle);
/* The same; in a simulation of several nodes data that nobody owns gets one. NULL: no memory. */
struct duet__datum *duet__datum_each(struct duet__nodes *nodes, struct duet_handle *handle);
int duet__datum_own(struct duet__nodes *nodes, struct duet_handle *handle, unsigned node);
void duet__datum_free(struct duet__nodes *nodes, struct duet__datum *datum);
bool duet__holds(const struct duet__datum *datum, unsigned node);
/* Where the handle of the k-th holder is, which is hosted here. */
struct duet_handle **duet__at(const struct duet__host *host, struct duet__datum *datum, unsigned k);
/* The data's handle on a node that is hosted here, and holds it. NULL: no memory. */
struct duet_handle *duet__local(struct duet__host *host, struct duet__datum *datum);
/* New data of its shape there, whose contents are there (simulated) or not. NULL: no memory. */
struct duet_handle *duet__local_new(struct duet__host *host, struct duet__datum *datum, bool valid);
/* The node holds the current version from now on, for tasks of this priority. */
int duet__bring(struct duet__nodes *nodes, struct duet__datum *datum, unsigned node, int priority);
/* The node alone holds the next version: it is about to be written there. */
int duet__supersede(struct duet__nodes *nodes, struct duet__datum *datum, unsigned node);
/* All nodes hold it. */
int duet__hold_all(struct duet__nodes *nodes, struct duet__datum *datum);

/* access.c */
/* Refuses a call in whose name it is made: it needs the whole, and that it is not acquired. */
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
/* The handle is new in the host's core: it is reduced as the data is. */
int duet__sum_tell(struct duet__host *host, const struct duet__datum *datum,
                   struct duet_handle *handle);
/* A task on that node reduces. */
int duet__sum_add(struct duet__nodes *nodes, struct duet__datum *datum, unsigned node,
                  int priority);
/* What it gets there. NULL: no memory. */
struct duet_handle *duet__sum_local(struct duet__host *host, struct duet__datum *datum);
/* Another access follows. `overwrites`: what was added is of no use. */
int duet__sum_end(struct duet__nodes *nodes, struct duet__datum *datum, int priority,
                  bool overwrites);
void duet__sum_free(struct duet__datum *datum);

/* submit.c */
int duet__nodes_submit(void *gate, const struct duet_task_desc *task);
/* The kernel in the host's core. NULL: no memory. */
struct duet_codelet *duet__codelet_at(struct duet__host *host, const struct duet_codelet *codelet);

/* message.c */
/* One end of a message, at a node that is hosted here. */
int duet__message_make(struct duet__host *host, struct duet_handle *handle, uint64_t tag,
                       unsigned other, bool arrives, int priority);

#endif
