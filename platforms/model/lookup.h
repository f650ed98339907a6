/* SPDX-License-Identifier: Apache-2.0 */
/* Times of the core's classes of executions in a calibration. */
#ifndef DUET_PLATFORMS_MODEL_LOOKUP_H
#define DUET_PLATFORMS_MODEL_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/error.h>

#include "platforms/model/curves.h"

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
