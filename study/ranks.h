/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A study on several machines: processes that a launcher of MPI programs has started, the ranks.
 * MPI says them where to meet, no more. From there on each of their workers has a connection of TCP
 * with rank 0, which ends when either of them does: one that dies is noticed, and the others go on,
 * whatever MPI would do.
 */
#ifndef DUET_STUDY_RANKS_H
#define DUET_STUDY_RANKS_H

#include <duet/error.h>

#include "study/study.h"

enum { DUET__TOKEN = 37 /* of a UUID */ };

struct duet__ranks {
    unsigned rank, count; /* which of how many this process is */
    unsigned near;        /* of them on this machine, once they have met */
    /* of rank 0 */
    int listening;               /* for those that connect */
    char token[DUET__TOKEN];     /* that these know */
    struct duet_message trouble; /* of a rank that can do nothing; "": there is none */
};

/*
 * Of rank 0: meets the others, which duet__ranks_serve, and says them where it listens. Blocks
 * until all are there. DUET_EABSENT: this build is without MPI; DUET_EIO: they cannot meet.
 */
DUET_MUST_CHECK int duet__ranks_meet(struct duet__ranks *ranks, struct duet_message *message);

/* Takes the workers that have connected with rank 0 into the executor. */
void duet__ranks_admit(struct duet__ranks *ranks, struct duet__executor *executor);

/*
 * Of the others: has workers do what rank 0 hands out, each with a connection of its own, until
 * that has ended. With something in `trouble`, which this rank has and rank 0 may not have, that is
 * all that it says.
 */
void duet__ranks_serve(const struct duet__plan *plan, const struct duet_message *trouble);

/*
 * By MPI: makes `data` of all ranks what it is on rank 0, and counts those on this machine. Errors
 * of duet__ranks_meet.
 */
DUET_MUST_CHECK int duet__mpi_share(unsigned count, void *data, size_t bytes, unsigned *near,
                                    struct duet_message *message);

#endif
