/* SPDX-License-Identifier: Apache-2.0 */
/* Finds how much tasks can do with few data: what has to come again where memory is small. */
#ifndef DUET_TRACE_REUSE_H
#define DUET_TRACE_REUSE_H

#include <stddef.h>
#include <stdint.h>

#include "core/engine.h"

/*
 * A limit of reuse: among `tasks` tasks of a class no more than factor * m^1.5 use nothing but m
 * data, each of at least `bytes`, whatever data these are. All 0: nothing is known.
 */
struct duet__reuse {
    double tasks, factor, bytes;
};

/* The least factor: 3^-1.5, of three planes without a datum in common, one task at a place. */
#define DUET__REUSE_LEAST 0.19245008972987526

/*
 * Looks at tasks as points in space, of which each datum that they read is the shadow on a plane:
 * c(i,j) += a(i,k) b(k,j). So many points have no smaller shadows than by Loomis and Whitney, "An
 * inequality related to the isoperimetric inequality", Bulletin of the AMS 55, 1949: at most
 * sqrt(|A| |B| |C|). (For products of matrices Irony, Toledo, Tiskin, "Communication lower bounds
 * for distributed-memory matrix multiplication", JPDC 64, 2004.) Coordinates are found: what shares
 * an A or a C has the same i, and so on, for each three of the first four data that the tasks of
 * class `klass` use; where several tasks are at one point, they count as often. A datum that is in
 * two of the planes takes part in both, which the factor says; where the planes are one, as in
 * Cholesky's, points are triangles of data (as by Ballard, Demmel, Holtz, Schwartz, "Minimizing
 * communication in numerical linear algebra", SIAM J. Matrix Anal. 32, 2011).
 *
 * `bytes`: by datum, 0 of those that may be in a memory without having been copied there.
 */
struct duet__reuse duet__reuse_find(const struct duet__entered *entered, uint32_t klass,
                                    const double *bytes);

/*
 * Copies into memories that hold `room` bytes each, which so many tasks need: at least the value
 * returned times their number, less *spare. Between one moment and another, when c copies have
 * arrived in a memory of room for r data, no more tasks can run there than r + c data are enough
 * for, so that n of them need c (n / that - 1); the c for which that is most.
 */
double duet__reuse_copies(const struct duet__reuse *reuse, double room, double memories,
                          double *spare);

#endif
