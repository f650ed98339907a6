/* SPDX-License-Identifier: Apache-2.0 */
/* The cores that this process may use, in the order in which threads are bound to them. */
#ifndef DUET_REAL_TOPOLOGY_H
#define DUET_REAL_TOPOLOGY_H

#include <stdint.h>

#include <duet/error.h>
#include <duet/machine.h>

struct places;

/*
 * Looks at the machine. Places are hardware threads within the process's affinity and control
 * group: first one of each core in order, then the cores' second ones, and so on. At least one. The
 * caller frees *out. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__places_new(struct places **out);
/*
 * The same of a machine that is described and not looked at, for tests: hwloc's synthetic
 * description, "pack:2 core:6 pu:2". DUET_EINVAL if it is none.
 */
DUET_MUST_CHECK int duet__places_synthetic(struct places **out, const char *description);
/* NULL is fine. */
void duet__places_free(struct places *places);

/* Cores that may be used: as many as there are places on different ones, or a quota allows. */
unsigned duet__places_cores(const struct places *places);
/* Places in all; the first duet__places_cores of them are on different cores. */
unsigned duet__places_count(const struct places *places);
/* Number of the processor package that a place is on, from 0. */
unsigned duet__places_socket(const struct places *places, unsigned place);
/* The operating system's number of the hardware thread at a place. */
unsigned duet__places_processor(const struct places *places, unsigned place);
/*
 * The package near a device whose local processors Linux lists ("0-5,12-17"), or -1: it is near
 * several, near none that may be used, or the list says nothing.
 */
int duet__places_near(const struct places *places, const char *processors);

/*
 * Deals the places to workers, CPU workers first: place[w], or -1, unbound. A device's thread gets
 * a core to itself, on the package near[device] while there is one (-1, or a package that is not
 * there: on the one with most cores left), as long as there are cores for all CPU workers and the
 * devices up to it. The CPU workers take one of each package in turn, cores first, then the second
 * hardware threads of cores, and are numbered package by package; all stay unbound if they are more
 * than places. The same arguments give the same places. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__places_deal(const struct places *places, unsigned cpus, unsigned devices,
                                      const int *near, int *place);

/* The same for the workers of a machine, of which `socket` says what its devices are near. */
DUET_MUST_CHECK int duet__places_of(const struct places *places, const struct duet_machine *machine,
                                    int *place);

/* Binds the calling thread. Where the system does not let it, the thread stays unbound. */
void duet__places_bind(const struct places *places, unsigned place);

/*
 * Moves the calling thread, which is bound elsewhere or not at all, to this place's processor if it
 * runs on another one and may run there. It is bound as it was afterwards, and so stays there for
 * as long as the system has no reason to move it.
 */
void duet__places_move(const struct places *places, unsigned place);

/*
 * How many cores' time a process in a control group may use, rounded up; UINT_MAX: any. Linux's
 * cgroup v2: `root` is where it is mounted, `membership` the file that says which group the process
 * is in (/proc/self/cgroup).
 */
unsigned duet__quota(const char *root, const char *membership);
/* How many bytes of memory it may use, in the same way; UINT64_MAX: any. cgroup v1, too. */
uint64_t duet__memory_limit(const char *root, const char *membership);

#endif
