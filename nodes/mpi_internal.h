/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the transport over MPI share. */
#ifndef DUET_NODES_MPI_INTERNAL_H
#define DUET_NODES_MPI_INTERNAL_H

#include <pthread.h>

#include "nodes/mpi_layout.h"
#include "nodes/outbox.h"

enum { NOTICE_TAG = 1, GATHER_TAG, CLOCK_TAG }; /* of `control` */

/* The failure of a node, as it is told to the others. */
struct notice {
    int error;
    char why[DUET_MESSAGE_MAX];
};

/* A request that MPI works on, and what is to be done at its end. */
struct under_way {
    void (*ended)(struct duet__mpi *mpi, void *what, const MPI_Status *status);
    void *what;
};

/* Whether a node has answered when asked if it is there; MISSED: not in time, which was said. */
enum answer { ANSWERED, ASKED, MISSED };

/* A collective in which all processes tell how many bytes they have for node 0: mostly none. */
struct meeting {
    enum { NONE, WANTED, BEGUN, MET } stage;
    int error;
    uint64_t bytes; /* of `mine` */
    void *mine;     /* a copy, as the application may be gone before it is sent */
    uint64_t *sizes;
    char *all;      /* at node 0: what has come */
    unsigned parts; /* of it, or of what is sent, that are under way */
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
    double ahead_s; /* of the core's clock, against node 0's */

    pthread_mutex_t lock;
    pthread_cond_t wake, changed; /* of the thread; of the application */
    /* under the lock: */
    struct duet__message *ready, **ready_end;
    bool sleeps, poked, closing;
    int error;  /* the first failure of any node */
    bool known; /* to what stands before the core */
    unsigned failed_node;
    struct notice notice;
    struct meeting meeting;

    /* the thread's own: */
    struct duet__outbox *outbox;
    MPI_Request *requests;
    MPI_Status *statuses;
    int *ended;
    struct under_way *under_way;
    unsigned request_count, request_capacity;
    struct notice news;           /* where the next one is received */
    bool listens, meets, failing; /* for it; in a meeting; the failure is known to the thread */
    bool closed, over;            /* the others were told so; all have closed */
    double moved_s;               /* when something happened last */
    double asked_s;               /* when it asked last whether others are there */
    char asked[];                 /* each node: enum answer */
};

/* Finds ahead_s, before the thread is started. Collective. */
void duet__mpi_compare_clocks(struct duet__mpi *mpi);

/* Gives up what duet__mpi_meet made, and `mpi` itself. */
void duet__mpi_leave(struct duet__mpi *mpi);

#endif
