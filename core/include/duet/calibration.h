/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured kernel times: for each kernel and architecture, a curve of points (work, mean time,
 * deviation). Made by platforms/ from a calibration file. The simulated engine draws from it what
 * the machine *does*; performance models may be primed from it with what the scheduler *believes*.
 *
 * Between two measured points time is interpolated linearly in log(time) over log(work), so that
 * t = a * work^b holds on each segment; a measured point gives exactly its own figure. "Work" is
 * flops where the kernel counts them, else bytes accessed.
 */
#ifndef DUET_CALIBRATION_H
#define DUET_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>
#include <duet/machine.h>

#ifdef __cplusplus
extern "C" {
#endif

struct duet_point {
    double work;        /* flops, or bytes where the kernel counts no flops; > 0 */
    double size;        /* tile edge in elements, 0 where the measurement was not square */
    double mean_s;      /* mean time of one execution, > 0 */
    double deviation_s; /* standard deviation, >= 0 */
    uint64_t samples;   /* executions measured */
};

struct duet_curve {
    char kernel[DUET_NAME_MAX]; /* e.g. "dgemm" */
    char arch[DUET_NAME_MAX];   /* name of the architecture, e.g. "c2050" */
    size_t count;
    struct duet_point *points; /* ascending in work, no two equal */
};

struct duet_calibration {
    size_t count;
    struct duet_curve *curves; /* no two with the same kernel and architecture */
};

/*
 * Appends a curve (its points are copied and sorted by work). Errors: DUET_EINVAL (empty, two
 * points of equal work, values not finite or not positive, kernel and arch already present),
 * DUET_ENOMEM; the calibration is then unchanged.
 */
DUET_MUST_CHECK int duet_calibration_add(struct duet_calibration *calibration, const char *kernel,
                                         const char *arch, const struct duet_point *points,
                                         size_t count, struct duet_message *message);

/* The curve of this kernel on this architecture, or NULL. */
const struct duet_curve *duet_calibration_find(const struct duet_calibration *calibration,
                                               const char *kernel, const char *arch);

/*
 * Mean and deviation at `work`, interpolated between measured points. Outside them: DUET_ENOMODEL
 * unless `extrapolate`, which continues the nearest segment's rate of work (work/time of the end
 * point; no gain of efficiency is invented). The deviation keeps the ratio to the mean of the
 * nearest point, interpolated between two. mean_s and deviation_s may be NULL.
 */
DUET_MUST_CHECK int duet_curve_at(const struct duet_curve *curve, double work, bool extrapolate,
                                  double *mean_s, double *deviation_s);

/* Frees everything. Safe on a zeroed calibration, and twice. */
void duet_calibration_fini(struct duet_calibration *calibration);

#ifdef __cplusplus
}
#endif
#endif
