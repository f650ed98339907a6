/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regression: one power law t = a * work^b for all sizes, by least squares on the logarithms of all
 * executions (StarPU's regression-based model). Smoother and smaller than a history, less exact.
 */
#include <math.h>
#include <string.h>

#include <duet/model.h>

/* Sums over executions of x = log work and y = log time. */
struct state {
    double n, x, y, xx, xy;
};

/* Returns the logarithm of the work; tasks without data count as work 1. */
static double log_work(double work)
{
    return work > 0 ? log(work) : 0;
}

static int regression_add(void *self, double work, uint64_t footprint, double mean_s,
                          uint64_t samples)
{
    struct state *s = self;
    double n = (double)samples, x = log_work(work), y = log(mean_s);
    if (!isfinite(y)) /* a time of 0 */
        return DUET_OK;
    s->n += n;
    s->x += n * x;
    s->y += n * y;
    s->xx += n * x * x;
    s->xy += n * x * y;
    return DUET_OK;
}

static double regression_predict(const void *self, double work, uint64_t footprint)
{
    const struct state *s = self;
    if (!(s->n > 0))
        return 0;
    double mean_x = s->x / s->n, mean_y = s->y / s->n;
    double variance = s->xx / s->n - mean_x * mean_x;
    /* one size only, up to rounding: time in proportion to work */
    double slope = variance > 1e-9 ? (s->xy / s->n - mean_x * mean_y) / variance : 1;
    return exp(mean_y + slope * (log_work(work) - mean_x));
}

static void regression_fini(void *self)
{
    memset(self, 0, sizeof(struct state));
}

const struct duet_model duet__model_regression = {
    .name = "regression",
    .description = "one power law over all sizes, by least squares",
    .state_size = sizeof(struct state),
    .add = regression_add,
    .predict = regression_predict,
    .fini = regression_fini,
};
