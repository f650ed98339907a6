/* SPDX-License-Identifier: Apache-2.0 */
/* The cores that this process may use, in the order in which threads are bound to them. */
#ifndef DUET_REAL_TOPOLOGY_H
#define DUET_REAL_TOPOLOGY_H

#include <duet/error.h>

struct places;

/*
 * Looks at the machine. Places are hardware threads within the process's affinity and control
 * group: first one of each core in order, then the cores' second ones, and so on. At least one. The
 * caller frees *out. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__places_new(struct places **out);
/* NULL is fine. */
void duet__places_free(struct places *places);

/* Cores that may be used: as many as there are places on different ones, or a quota allows. */
unsigned duet__places_cores(const struct places *places);
/* Places in all; the first duet__places_cores of them are on different cores. */
unsigned duet__places_count(const struct places *places);
/* Number of the processor package that a place is on, from 0. */
unsigned duet__places_socket(const struct places *places, unsigned place);
/* Binds the calling thread. Where the system does not let it, the thread stays unbound. */
void duet__places_bind(const struct places *places, unsigned place);

/*
 * How many cores' time a process in a control group may use, rounded up; UINT_MAX: any. Linux's
 * cgroup v2: `root` is where it is mounted, `membership` the file that says which group the process
 * is in (/proc/self/cgroup).
 */
unsigned duet__quota(const char *root, const char *membership);

#endif
