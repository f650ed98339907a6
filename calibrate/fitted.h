/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the model, between its files. */
#ifndef DUET_CALIBRATE_FITTED_H
#define DUET_CALIBRATE_FITTED_H

#include <stdbool.h>

#include "calibrate/model.h"

/* A fitted group: its rows, what they gave, which of them are outliers. */
struct duet__fitted {
    const struct duet__executions *executions;
    const struct duet__group *group;
    struct duet__rows rows;
    struct duet__kernel_fit kernel;
    bool *rejected;
};

/*
 * Says of *out, whose point is there, how well models predict what they have not seen: by runs, if
 * the group has executions of at least `folds` of them, else by `folds` blocks of successive
 * executions (fewer if there are not so many); and with `compare` by problems. The errors of a
 * single execution are 0.
 */
void duet__quality_fill(const struct duet__fitted *fitted, unsigned folds, bool compare,
                        struct duet__quality *out);

/* Sizes of caches that explain the times best, of some around those given. Sizes of 0 stay. */
struct duet_sharing duet__cache_sizes(const struct duet__executions *executions,
                                      const struct duet_sharing *given);

#endif
