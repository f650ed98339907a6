/* SPDX-License-Identifier: Apache-2.0 */
/* Non-negative least squares by an active set. */
#include <float.h>
#include <math.h>

#include "calibrate/fit.h"

enum { N = DUET__FIT_UNKNOWNS };

/* Unknowns that are not held at 0. */
struct free_set {
    unsigned list[N], count;
};

static struct free_set free_ones(unsigned n, const bool *is_free)
{
    struct free_set set = {.count = 0};
    for (unsigned i = 0; i < n; i++)
        if (is_free[i])
            set.list[set.count++] = i;
    return set;
}

/* Solves the equations of the free unknowns by Cholesky's decomposition; the others are 0. */
static void solve(unsigned n, const double *gram, const double *right, const bool *is_free,
                  double *c)
{
    struct free_set set = free_ones(n, is_free);
    double l[N][N], y[N];
    for (unsigned i = 0; i < set.count; i++) {
        for (unsigned j = 0; j <= i; j++) {
            double sum = gram[set.list[i] * n + set.list[j]];
            for (unsigned k = 0; k < j; k++)
                sum -= l[i][k] * l[j][k];
            l[i][j] = i == j ? sqrt(fmax(sum, DBL_MIN)) : sum / l[j][j];
        }
        y[i] = right[set.list[i]];
        for (unsigned k = 0; k < i; k++)
            y[i] -= l[i][k] * y[k];
        y[i] /= l[i][i];
    }
    for (unsigned i = 0; i < n; i++)
        c[i] = 0;
    for (unsigned i = set.count; i-- > 0;) {
        for (unsigned k = i + 1; k < set.count; k++)
            y[i] -= l[k][i] * y[k];
        y[i] /= l[i][i];
        c[set.list[i]] = y[i];
    }
}

/* The unknown at 0 that the sum of squares falls most with; n: none. */
static unsigned steepest(unsigned n, const double *gram, const double *right, const bool *is_free,
                         const double *c)
{
    unsigned best = n;
    double most = 0;
    for (unsigned i = 0; i < n; i++) {
        double slope = right[i], size = fabs(right[i]);
        if (is_free[i])
            continue;
        for (unsigned j = 0; j < n; j++) {
            slope -= gram[i * n + j] * c[j];
            size += fabs(gram[i * n + j] * c[j]);
        }
        /* in units of the unknown's own scale; what is rounding is 0 */
        double scaled = slope / sqrt(gram[i * n + i]);
        if (slope > size * 1e-12 && scaled > most) {
            most = scaled;
            best = i;
        }
    }
    return best;
}

/* Goes from c towards `wanted` until the first unknown is 0, which is held there. True: all the
 * way.
 */
static bool approach(unsigned n, const double *wanted, bool *is_free, double *c)
{
    double step = 1;
    unsigned first = n;
    for (unsigned i = 0; i < n; i++) {
        if (!is_free[i] || wanted[i] > 0)
            continue;
        double own = c[i] > 0 ? c[i] / (c[i] - wanted[i]) : 0;
        if (first == n || own < step) {
            step = own;
            first = i;
        }
    }
    for (unsigned i = 0; i < n; i++)
        c[i] = fmax(c[i] + step * (wanted[i] - c[i]), 0);
    if (first == n)
        return true;
    is_free[first] = false;
    c[first] = 0;
    return false;
}

void duet__nonnegative(unsigned n, const double *gram, const double *right, double *c)
{
    bool is_free[N] = {false};
    double wanted[N];
    for (unsigned i = 0; i < n; i++)
        c[i] = 0;
    /* it ends by itself; rounding could make it turn in a circle, and then any turn is as good */
    for (unsigned turn = 0; turn < 3 * n; turn++) {
        unsigned next = steepest(n, gram, right, is_free, c);
        if (next == n)
            return;
        is_free[next] = true;
        for (unsigned i = 0; i <= n; i++) {
            solve(n, gram, right, is_free, wanted);
            if (approach(n, wanted, is_free, c))
                break;
        }
    }
}
