/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured kernel times: for each kernel and architecture, a curve of points (work, mean time,
 * deviation). They come from a platform file or from a calibration. The simulated engine draws from
 * it what the machine *does*; performance models may be primed from it with what the scheduler
 * *believes*.
 *
 * Between two measured points time is interpolated linearly in log(time) over log(work), so that
 * t = a * work^b holds on each segment; a measured point gives exactly its own figure. "Work" is
 * flops where the kernel counts them, else bytes accessed.
 */
#ifndef DUET_MODEL_CURVES_H
#define DUET_MODEL_CURVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>
#include <duet/machine.h>

struct duet__point {
    double work;        /* flops, or bytes where the kernel counts no flops; > 0 */
    double size;        /* tile edge in elements, 0 where the measurement was not square */
    double mean_s;      /* mean time of one execution, > 0 */
    double deviation_s; /* standard deviation, >= 0 */
    uint64_t samples;   /* executions measured */

    /* What follows is 0 where it was not measured (duet calibrate measures it). */
    uint64_t rejected; /* outliers: measured, but in none of the other figures */
    double median_s;
    /*
     * What an execution alone is expected to take: base_s with all its data in the cache that its
     * socket shares, memory_s more with all of it in memory, and in proportion to the part of its
     * bytes that is. Both 0: mean_s.
     */
    double base_s, memory_s;
    double busy_ratio; /* how many times as long when all other workers of its socket compute,
                          beside what they take of shared caches and bandwidth; from 0.1 to 1000; 0:
                          as 1 */
    double noise; /* relative deviation, at most 10, of measured by expected time; 0: as that of the
                     time */
    const char *origin; /* where it comes from, a text that stays; NULL: as the curve's */
};

struct duet__curve {
    char kernel[DUET_NAME_MAX];  /* e.g. "dgemm" */
    char arch[DUET_NAME_MAX];    /* name of the architecture, e.g. "c2050" */
    char context[DUET_NAME_MAX]; /* workload in which it was measured: the same kernel takes other
                                    times on other operands; "": any */
    size_t count;
    struct duet__point *points; /* ascending in work, no two equal */
    const char *origin;         /* where they come from, a text that stays; NULL: not known */
};

struct duet__calibration {
    size_t count;
    struct duet__curve *curves; /* no two with the same kernel, architecture and context */
};

/*
 * Appends a copy of a curve, its points sorted by work. Errors: DUET_EINVAL (empty, two points of
 * equal work, values not finite or not positive, its like already present), DUET_ENOMEM; the
 * calibration is then unchanged.
 */
DUET_MUST_CHECK int duet__calibration_add(struct duet__calibration *calibration,
                                          const struct duet__curve *curve,
                                          struct duet_message *message);

/*
 * Keeps one curve of each kernel and architecture: that of the context, else that of any, else the
 * first. NULL: no context is known.
 */
void duet__calibration_select(struct duet__calibration *calibration, const char *context);

/* The curve of this kernel on this architecture (the first, if there are contexts), or NULL. */
const struct duet__curve *duet__calibration_find(const struct duet__calibration *calibration,
                                                 const char *kernel, const char *arch);

/*
 * The point at `work`, interpolated between measured points: times by power laws, memory_s
 * in proportion to base_s, ratios and noise (and the deviation's ratio to the mean) linearly in
 * log(work). What one of the two neighbours lacks, the result lacks; samples are 0. Outside them:
 * DUET_ENOMODEL unless `extrapolate`, which continues the rate of work (work/time) of the end
 * point; no gain of efficiency is invented.
 */
DUET_MUST_CHECK int duet__curve_point(const struct duet__curve *curve, double work,
                                      bool extrapolate, struct duet__point *out);

/* Frees everything. Safe on a zeroed calibration, and twice. */
void duet__calibration_fini(struct duet__calibration *calibration);

#endif
