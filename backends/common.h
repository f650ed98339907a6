/* SPDX-License-Identifier: Apache-2.0 */
/* Small things that backends of GPUs share. */
#ifndef DUET_BACKENDS_COMMON_H
#define DUET_BACKENDS_COMMON_H

#include <duet/error.h>
#include <duet/machine.h>

/*
 * The name of an architecture out of a device's: "NVIDIA H200" gives "h200", "Tesla V100-SXM2-32GB"
 * gives "v100-sxm2-32gb"; never an empty one.
 */
void duet__arch_name(char arch[DUET_NAME_MAX], const char *name);

/*
 * What a kernel's stream has left as its status: itself if it is 0 or an enum duet_error, else
 * DUET_ETASK, and *info is that status.
 */
int duet__late_status(int late, int *info);

/* Seconds that this thread has computed. */
double duet__thread_s(void);

/*
 * Enqueueing takes microseconds. A kernel's function that computes for longer than this has made
 * something first: a library was opened, a handle made, code compiled or loaded. That is not part
 * of the kernel. A thread that was only preempted for so long has made nothing, and its kernel may
 * have begun meanwhile.
 */
#define DUET__PREPARING_S 5e-3

#endif
