/* SPDX-License-Identifier: Apache-2.0 */
/* The cores that this process may use, in the order in which threads are bound to them. */
#ifndef DUET_REAL_TOPOLOGY_H
#define DUET_REAL_TOPOLOGY_H

#include <stdint.h>

#include <duet/error.h>
#include <duet/machine.h>

struct places;

/*
 * Finds the places: hardware threads within the process's affinity and control group, first one of
 * each core in order, then the cores' second ones, and so on. At least one. The caller frees *out.
 * DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__places_new(struct places **out);
/*
 * Makes the places of a described machine, for tests: hwloc's synthetic description, "pack:2 core:6
 * pu:2". DUET_EINVAL if it is none; otherwise as duet__places_new.
 */
DUET_MUST_CHECK int duet__places_synthetic(struct places **out, const char *description);
/* Frees the places. NULL is fine. */
void duet__places_free(struct places *places);

/* Returns the number of usable cores: places on different cores, or fewer by a quota. */
unsigned duet__places_cores(const struct places *places);
/* Returns the number of places; the first duet__places_cores of them are on different cores. */
unsigned duet__places_count(const struct places *places);
/* Returns the number of a place's processor package, from 0. */
unsigned duet__places_socket(const struct places *places, unsigned place);
/* Returns the operating system's number of the hardware thread at a place. */
unsigned duet__places_processor(const struct places *places, unsigned place);
/*
 * Returns the package near a device whose local processors Linux lists ("0-5,12-17"), or -1: it is
 * near several, near none that may be used, or the list is empty.
 */
int duet__places_near(const struct places *places, const char *processors);

/*
 * Assigns places to workers, CPU workers first: place[w], or -1, unbound. A device's thread gets a
 * core to itself, on the package near[device] while there is one (-1, or a package that is not
 * there: on the one with most cores left), as long as there are cores for all CPU workers and the
 * devices up to it. The CPU workers take one of each package in turn, cores first, then the second
 * hardware threads of cores, and are numbered package by package; all stay unbound if they are more
 * than places. The same arguments give the same places. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__places_deal(const struct places *places, unsigned cpus, unsigned devices,
                                      const int *near, int *place);

/*
 * Assigns places to the workers of a machine; `socket` of a device's worker is the package nearby.
 * DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__places_of(const struct places *places, const struct duet_machine *machine,
                                    int *place);

/* Binds the calling thread. If the system refuses, the thread stays unbound. */
void duet__places_bind(const struct places *places, unsigned place);

/*
 * Moves the calling thread, which is bound elsewhere or not at all, to this place's processor if it
 * runs on another one and may run there. Its binding is unchanged afterwards, and so it stays there
 * for as long as the system has no reason to move it.
 */
void duet__places_move(const struct places *places, unsigned place);

/*
 * Returns the cores' time that a process in a control group may use, rounded up; UINT_MAX:
 * unlimited. Linux's cgroup v2: `root` is where it is mounted, `membership` the file that names the
 * process's group (/proc/self/cgroup).
 */
unsigned duet__quota(const char *root, const char *membership);
/*
 * Returns the bytes of memory that the process may use; UINT64_MAX: unlimited. Arguments as
 * duet__quota; cgroup v1, too.
 */
uint64_t duet__memory_limit(const char *root, const char *membership);

#endif
