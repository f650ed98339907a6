/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the model, between its files. */
#ifndef DUET_CALIBRATE_MODEL_POINT_H
#define DUET_CALIBRATE_MODEL_POINT_H

#include <stdbool.h>

#include <duet/calibration.h>
#include <duet/error.h>

#include "calibrate/fit_group.h"
#include "calibrate/model.h"
#include "calibrate/samples.h"

/* A fitted group: its rows, what they gave, which of them are outliers. */
struct duet__fitted {
    const struct duet__samples *samples;
    const struct duet__group *group;
    const struct duet__rows *rows;
    const struct duet__kernel_fit *kernel;
    const bool *rejected;
};

/* Everything that a point says. DUET_ENOMEM. */
DUET_MUST_CHECK int duet__point_fill(const struct duet__fitted *fitted, struct duet_point *out);

/*
 * How well it predicts what it has not seen: by runs, if the group has executions of at least
 * `folds` of them, else by `folds` blocks of successive executions (fewer if there are not so
 * many). The errors of a single execution are 0. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__quality_fill(const struct duet__fitted *fitted,
                                       const struct duet_point *point, unsigned folds,
                                       struct duet__quality *out);

/*
 * Sizes of caches that explain the times best, of some around those given: *out. Sizes of 0 stay.
 * DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__sharing_search(const struct duet__samples *samples,
                                         const struct duet_sharing *given,
                                         struct duet_sharing *out);

#endif
