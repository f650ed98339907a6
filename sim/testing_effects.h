/* SPDX-License-Identifier: Apache-2.0 */
/* Calibrated kernels for tests of what the simulated machine does to them. */
#ifndef DUET_SIM_TESTING_EFFECTS_H
#define DUET_SIM_TESTING_EFFECTS_H

#include "sim/testing.h"

static inline double lab_flops(const void *args)
{
    return *(const double *)args;
}

/* A calibration in which kernel "k" has this point on every worker of these, at 100 flops. */
static inline struct duet__calibration lab_calibrate(const struct duet__point *point, unsigned cpus,
                                                     unsigned gpus)
{
    struct duet__calibration calibration = {0};
    for (unsigned w = 0; w < cpus + gpus; w++) {
        struct duet__point own = *point;
        struct duet__curve curve = {.kernel = "k", .points = &own, .count = 1};
        own.work = 100;
        own.samples = 10;
        g_snprintf(curve.arch, sizeof curve.arch, "%s%u", w < cpus ? "cpu" : "gpu",
                   w < cpus ? w : w - cpus);
        g_assert_cmpint(duet__calibration_add(&calibration, &curve, NULL), ==, DUET_OK);
    }
    return calibration;
}

/* A task of kernel k with one access, or none. */
static inline void lab_k(struct lab *lab, const char *where, struct duet_handle *handle,
                         enum duet_mode mode)
{
    struct duet_codelet *codelet = duet_codelet_find(lab->duet, "k");
    const struct duet_access access = {handle, mode};
    const double flops = 100;
    if (!codelet)
        codelet = lab_codelet(lab, "k", lab_flops, NULL);
    const struct duet_task_desc task = {.codelet = codelet,
                                        .accesses = &access,
                                        .access_count = handle != NULL,
                                        .args = &flops,
                                        .args_bytes = sizeof flops,
                                        .where = where ? duet_where(lab->duet, where) : 0};
    if (duet_submit(lab->duet, &task))
        g_error("%s", duet_last_message(lab->duet));
}

#endif
