/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of LLVM's interface share, and functions of gcc's that they call. */
#ifndef DUET_OPENMP_KMPC_H
#define DUET_OPENMP_KMPC_H

#include "openmp/gomp/gomp.h"

#define IDENT void *loc, int gtid

/* A function as the name of a kernel. */
#define KERNEL(function) ((void (*)(void *))(void (*)(void))(function))

/* Returns the number of the calling thread in the process. */
int duet__kmpc_gtid(void);

/* Returns zeroed memory; ends the program if there is none. */
void *duet__kmpc_memory(size_t bytes);

/* The beginning of memory that the members of a team share. */
struct kmpc_shared {
    atomic_uint left;  /* members that have left it */
    atomic_bool ready; /* the first member has set it up, and lets the others go on */
};

/* Returns zeroed memory that all members get that call this. *first: the caller sets it up. */
void *duet__kmpc_share(size_t bytes, bool *first);
/* Leaves the memory. Returns true to the last member, which frees it. */
bool duet__kmpc_share_last(struct kmpc_shared *shared);

void omp_set_affinity_format(const char *text);
size_t omp_get_affinity_format(char *buffer, size_t size);
size_t omp_capture_affinity(char *buffer, size_t size, const char *text);
bool GOMP_cancel(int which, bool wanted);
bool GOMP_cancellation_point(int which);
void GOMP_atomic_start(void);
void GOMP_atomic_end(void);
void GOMP_critical_name_start(void **name);
void GOMP_critical_name_end(void **name);
bool GOMP_loop_runtime_next(long *first, long *end);
void GOMP_loop_end_nowait(void);
void GOMP_ordered_start(void);
bool GOMP_single_start(void);
void GOMP_taskwait(void);
void GOMP_taskwait_depend(void **depend);
void GOMP_task_reduction_remap(size_t count, size_t originals, void **addresses);
void GOMP_teams_reg(void (*run)(void *), void *data, unsigned teams, unsigned limit,
                    unsigned flags);

#endif
