/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the transport over MPI share. */
#ifndef DUET_NODES_MPI_INTERNAL_H
#define DUET_NODES_MPI_INTERNAL_H

#include <pthread.h>
#include <mpi.h>

#include "nodes/mpi.h"

enum { NOTICE_TAG = 1, GATHER_TAG, CLOCK_TAG }; /* tags in `control` */

/* The failure of a node, as it is told to the others. */
struct notice {
    int error;
    char why[DUET_MESSAGE_MAX];
};

/* A request that MPI works on, with the function to call at its end. */
struct under_way {
    void (*ended)(struct duet__mpi *mpi, void *what, const MPI_Status *status);
    void *what;
};

/* Answer of a node to the question if it is there; MISSED: not in time, which was reported. */
enum answer { ANSWERED, ASKED, MISSED };

/* A collective in which all processes tell how many bytes they have for node 0: mostly none. */
struct meeting {
    enum { NONE, WANTED, BEGUN, MET } stage;
    int error;
    uint64_t bytes; /* size of `mine` */
    void *mine;     /* a copy, as the application's may be gone before it is sent */
    uint64_t *sizes;
    char *all;      /* at node 0: the gathered data */
    unsigned parts; /* parts of it, sent or received, that are in flight */
};

struct duet__mpi {
    unsigned node, count;
    int most_tag;
    MPI_Comm data, control;
    struct duet_runtime *core;
    struct duet__nodes *nodes;
    const struct duet__mpi_calls *calls;
    pthread_t thread;
    bool started;
    double ahead_s; /* lead of the core's clock over node 0's */

    pthread_mutex_t lock;
    pthread_cond_t wake, changed; /* wake up the thread; the application */
    /* protected by the lock */
    struct duet__message *ready, **ready_end;
    bool sleeps, poked, closing;
    int error;  /* first failure of any node */
    bool known; /* the error is known to the model */
    unsigned failed_node;
    struct notice notice;
    struct meeting meeting;

    /* used by the thread only */
    struct duet__outbox *outbox;
    MPI_Request *requests;
    MPI_Status *statuses;
    int *ended;
    struct under_way *under_way;
    unsigned request_count, request_capacity;
    struct notice news;           /* place where the next notice is received */
    bool listens, meets, failing; /* a notice is awaited; a meeting has begun; the failure is known
                                     to the thread */
    bool closed, over;            /* the others were told of the closing; all have closed */
    double moved_s;               /* date of the last progress */
    double asked_s;               /* date of the last question whether others are there */
    char asked[];                 /* by node: enum answer */
};

/* Finds ahead_s, before the thread is started. Collective. */
void duet__mpi_compare_clocks(struct duet__mpi *mpi);

/* Frees everything that duet__mpi_meet made, and `mpi` itself. */
void duet__mpi_leave(struct duet__mpi *mpi);

/* ------------------------------------------------------------------------------------------- */
/* Layouts of data in memory for MPI, so that it sends and receives in place. */

/* Arguments of an MPI call. duet__mpi_layout_end frees its type after the call. */
struct layout {
    void *address;
    int count;
    MPI_Datatype type;
};

/*
 * Makes the layout of a datum's contents in the host's memory. DUET_ENOMEM, DUET_EIO, errors of
 * calls->pieces.
 */
DUET_MUST_CHECK int duet__mpi_layout(const struct duet__mpi_calls *calls,
                                     const struct duet_handle *handle, size_t bytes,
                                     struct layout *out);

/* Makes the layout of `bytes` at an address. */
DUET_MUST_CHECK int duet__mpi_layout_bytes(void *address, size_t bytes, struct layout *out);

void duet__mpi_layout_end(struct layout *layout);

#endif
