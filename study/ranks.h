/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A study on several machines: processes that a launcher of MPI programs has started, the ranks.
 * MPI tells them where to meet, no more. From there on each of their workers has a connection of
 * TCP with rank 0, which ends when either of them does: a worker that dies is noticed, and the
 * others go on, whatever MPI would do.
 */
#ifndef DUET_STUDY_RANKS_H
#define DUET_STUDY_RANKS_H

#include <duet/error.h>

#include "study/study.h"

enum { DUET__TOKEN = 37 /* length of a UUID */ };

struct duet__ranks {
    unsigned rank, count; /* this process's number, and that of all */
    unsigned near;        /* ranks on this machine, once they have met */
    /* rank 0 only */
    int listening;               /* the socket for workers that connect */
    char token[DUET__TOKEN];     /* workers that connect know it */
    struct duet_message trouble; /* why a rank can do nothing; "": there is none */
};

/*
 * Meets the other ranks, in rank 0, and tells them where it listens. They call duet__ranks_serve.
 * Blocks until all are there. Returns DUET_EABSENT if this build is without MPI, DUET_EIO if they
 * cannot meet.
 */
DUET_MUST_CHECK int duet__ranks_meet(struct duet__ranks *ranks, struct duet_message *message);

/* Takes the workers that have connected with rank 0 into the executor. */
void duet__ranks_admit(struct duet__ranks *ranks, struct duet__executor *executor);

/*
 * Serves rank 0 in every other rank: its workers execute the jobs that rank 0 gives, each over a
 * connection of its own, until rank 0 has ended. With something in `trouble`, which this rank has
 * and rank 0 may not have, the rank only reports that.
 */
void duet__ranks_serve(const struct duet__plan *plan, const struct duet_message *trouble);

/*
 * Copies `data` of rank 0 to all ranks by MPI, and counts the ranks on this machine. Returns errors
 * of duet__ranks_meet.
 */
DUET_MUST_CHECK int duet__mpi_share(unsigned count, void *data, size_t bytes, unsigned *near,
                                    struct duet_message *message);

#endif
