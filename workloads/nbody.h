/* SPDX-License-Identifier: Apache-2.0 */
/* What the workload nbody and its kernel must agree on. */
#ifndef DUET_NBODY_H
#define DUET_NBODY_H

/* In units in which the gravitational constant and the edge of the cube in which bodies begin
   are 1. Of n bodies one has the mass (1 + m) / n, with m uniform in [-1/2, 1/2): m is what is
   stored. */
#define DUET__TIME_STEP 0.01
#define DUET__SOFTENING 0.0025 /* added to the square of a distance: no pull is infinite */

#endif
