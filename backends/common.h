/* SPDX-License-Identifier: Apache-2.0 */
/* Small functions that backends of GPUs share. */
#ifndef DUET_BACKENDS_COMMON_H
#define DUET_BACKENDS_COMMON_H

#include <duet/error.h>
#include <duet/machine.h>

/*
 * Makes an architecture's name out of a device's: "NVIDIA H200" gives "h200", "Tesla
 * V100-SXM2-32GB" gives "v100-sxm2-32gb"; never an empty one.
 */
void duet__arch_name(char arch[DUET_NAME_MAX], const char *name);

/*
 * Returns the status for the value that a kernel's stream has left: itself if it is 0 or an enum
 * duet_error, else DUET_ETASK, with the value in *info.
 */
int duet__late_status(int late, int *info);

/* Usage of a thread so far. */
struct duet__usage {
    double computed_s; /* processor time, as exact as the system's ticks */
    long sleeps;       /* times that it gave up its core to wait */
};

void duet__thread_usage(struct duet__usage *usage);

/* Duration from which a kernel's function may have prepared something. */
#define DUET__PREPARING_S 5e-3

/*
 * True if a kernel's function has prepared something (opened a library, compiled or loaded code),
 * which is no part of the kernel. It took wall_s; `before` is its thread's usage at its start. A
 * function that was only preempted has prepared nothing: its kernel may have begun meanwhile.
 */
bool duet__has_prepared(double wall_s, const struct duet__usage *before);

#endif
