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

#include <duet/machine.h>

/* End of a message about a kernel without a time, of use to whoever makes tasks of their own. */
#define DUET__OWN_TIMES                                                                            \
    ", or give its tasks times: in the file of a task graph, as cost= in DOT, in a program by "    \
    "the codelet's cost function"

/* Sources of a kernel's time, the surest first. */
enum duet__basis {
    DUET__MEASURED,
    DUET__INTERPOLATED, /* between two measured sizes */
    DUET__EXTRAPOLATED, /* beyond the measured sizes */
    DUET__ESTIMATED,    /* from data sheets, as for machines of `duet platform new` */
    DUET__GUESSED,      /* by the codelet's cost function alone */
    DUET__BASES,
};

struct duet__point {
    double work;        /* flops, or bytes where the kernel counts no flops; > 0 */
    double size;        /* tile edge in elements, 0 where the measurement was not square */
    double mean_s;      /* mean time of one execution, > 0 */
    double deviation_s; /* standard deviation, >= 0 */
    uint64_t samples;   /* executions measured */

    /* Members below are 0 where they were not measured; duet calibrate measures them. */
    uint64_t rejected; /* outliers: measured, but in none of the other figures */
    double median_s;
    /*
     * Expected time of an execution alone: base_s with all its data in its socket's shared cache,
     * and memory_s more with all of it in memory; in between in proportion to the missing bytes.
     * Both 0: mean_s.
     */
    double base_s, memory_s;
    double busy_ratio; /* factor when all other workers of its socket compute, beside the effects of
                          shared caches and bandwidth; 0.1 to 1000; 0: 1 */
    double noise; /* relative deviation, at most 10, of measured from expected time; 0: that of the
                     time */
    double uncertainty; /* how far the expected time is off in other problems than the measured
                           ones: the standard deviation of its logarithm; 0: not known */
    const char *origin; /* source of the point, a text that stays; NULL: the curve's */
    enum duet__basis basis;
};

struct duet__curve {
    char kernel[DUET_NAME_MAX];  /* e.g. "dgemm" */
    char arch[DUET_NAME_MAX];    /* name of the architecture, e.g. "c2050" */
    char context[DUET_NAME_MAX]; /* workload of the measurement, as the same kernel takes other
                                    times on other operands; "": any */
    size_t count;
    struct duet__point *points; /* ascending in work, no two equal */
    const char *origin;         /* source of the points, a text that stays; NULL: not known */
};

/* Uncertainty of measured times where the platform does not say it: what a case left out of the
   corpora was off by, in the median (docs/models.md). */
#define DUET__USUAL_UNCERTAINTY 0.03
/* Uncertainty of times that only a codelet's cost function gives: assumed. */
#define DUET__GUESS_UNCERTAINTY 0.3

enum { DUET__STATES = 21 };

/* States of the machine that a calibration saw: the factor by which all kernels of CPU workers took
   longer in a run than in the median run on one worker, or on several. That one took longer than it
   would without outliers, by `alone` or `busy`. */
struct duet__states {
    uint64_t runs; /* runs whose state is known; 0: none is */
    double drift;  /* standard deviation of the logarithm of a later calibration's median state */
    double alone, busy; /* > 0 */
    double
        factor[DUET__STATES]; /* quantiles 0, 5, ... 100 % of the states, > 0; the median is about
                                 1 */
};

struct duet__calibration {
    size_t count;
    struct duet__curve *curves; /* no two with the same kernel, architecture and context */
    struct duet__states states;
};

/*
 * Appends a copy of a curve, its points sorted by work. Errors: DUET_EINVAL (empty, two points of
 * equal work, values not finite or not positive, its like already present), DUET_ENOMEM; the
 * calibration is then unchanged.
 */
DUET_MUST_CHECK int duet__calibration_add(struct duet__calibration *calibration,
                                          const struct duet__curve *curve,
                                          struct duet_message *message);

/* Keeps one curve of each kernel and architecture: that of the context, else one of any context,
 * else the first. context NULL: not known. */
void duet__calibration_select(struct duet__calibration *calibration, const char *context);

/* Returns the curve of a kernel on an architecture (the first of several contexts), or NULL. */
const struct duet__curve *duet__calibration_find(const struct duet__calibration *calibration,
                                                 const char *kernel, const char *arch);

/*
 * Sets *out to the point at `work`. Between measured points times follow power laws, memory_s in
 * proportion to base_s; ratios and noise (and the deviation's ratio to the mean) are linear in
 * log(work). A figure that one of the two neighbours lacks is 0; samples are 0. Outside the
 * measured points: DUET_ENOMODEL unless `extrapolate`, which continues the rate of work (work/time)
 * of the end point; no gain of efficiency is invented. The uncertainty is never 0: it has what
 * is usual (docs/models.md) where it was not measured, and grows with the distance from the nearest
 * point.
 */
DUET_MUST_CHECK int duet__curve_point(const struct duet__curve *curve, double work,
                                      bool extrapolate, struct duet__point *out);

/* Fills an empty calibration with a copy of another one. DUET_ENOMEM: it is empty still. */
DUET_MUST_CHECK int duet__calibration_copy(struct duet__calibration *to,
                                           const struct duet__calibration *from,
                                           struct duet_message *message);

/* Frees everything. Safe on a zeroed calibration, and twice. */
void duet__calibration_fini(struct duet__calibration *calibration);

/* ------------------------------------------------------------------------------------------- */
/* Times of the core's classes of executions in a calibration. */

struct duet__class;

/*
 * Clears the architectures on which neither the calibration nor the codelet's cost function knows a
 * time; for engines whose kernels take calibrated times. A size outside the measured ones is
 * refused (unless `extrapolate`) even if another architecture could take it: leaving one out in
 * silence would be another machine. DUET_ENOMODEL with a message, also if nothing is left.
 */
DUET_MUST_CHECK int duet__class_timed(const struct duet__class *klass,
                                      const struct duet__calibration *calibration, bool extrapolate,
                                      uint64_t *archs, struct duet_message *message);
/*
 * Returns the mean seconds of an execution on one architecture: the calibration's, else the cost
 * function's; <= 0: not known. *deviation_s (may be NULL): the measured standard deviation, else 0.
 */
double duet__class_calibrated(const struct duet__class *klass, unsigned arch,
                              const struct duet__calibration *calibration, bool extrapolate,
                              double *deviation_s);

/* Sets *out to the calibration's point for a class on one architecture (duet__curve_point). false:
 * there is none, or none at this size. */
bool duet__class_point(const struct duet__class *klass, unsigned arch,
                       const struct duet__calibration *calibration, bool extrapolate,
                       struct duet__point *out);

#endif
