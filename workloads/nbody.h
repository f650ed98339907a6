/* SPDX-License-Identifier: Apache-2.0 */
/* Constants that the workload nbody and its kernel share. */
#ifndef DUET_NBODY_H
#define DUET_NBODY_H

/* Units: the gravitational constant and the edge of the cube in which bodies begin are 1. Each of n
 * bodies has the mass (1 + m) / n, with m uniform in [-1/2, 1/2) and stored. */
#define DUET__TIME_STEP 0.01
#define DUET__SOFTENING 0.0025 /* added to squares of distances: pulls stay finite */

#endif
