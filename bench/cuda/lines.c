/* SPDX-License-Identifier: Apache-2.0 */
/* What the peers print: one JSON object a line. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/peers.h"

void line_begin(const struct peers *peers, const char *peer)
{
    int driver, runtime, cublas;
    CUDA(cudaDriverGetVersion(&driver));
    CUDA(cudaRuntimeGetVersion(&runtime));
    CUBLAS(cublasGetVersion(peers->blas, &cublas));
    printf("{\"mode\": \"%s\", \"peer\": \"%s\", \"device\": \"%s\", \"driver\": %d, "
           "\"runtime\": %d, \"cublas\": %d",
           peers->mode, peer, peers->properties.name, driver, runtime, cublas);
}

void line_text(const char *key, const char *value)
{
    printf(", \"%s\": \"%s\"", key, value);
}

void line_integer(const char *key, uint64_t value)
{
    printf(", \"%s\": %" PRIu64, key, value);
}

void line_number(const char *key, double value)
{
    if (isfinite(value))
        printf(", \"%s\": %.9g", key, value);
    else
        printf(", \"%s\": null", key);
}

void line_flag(const char *key, bool value)
{
    printf(", \"%s\": %s", key, value ? "true" : "false");
}

static int compare(const void *left, const void *right)
{
    double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static double median(const struct peers_times *times)
{
    struct peers_times sorted = *times;
    qsort(sorted.values, sorted.count, sizeof sorted.values[0], compare);
    return (sorted.values[(sorted.count - 1) / 2] + sorted.values[sorted.count / 2]) / 2;
}

void line_times(const struct peers_times *times, const char *rate, double amount)
{
    printf(", \"seconds\": [");
    for (unsigned i = 0; i < times->count; i++)
        printf("%s%.9g", i ? ", " : "", times->values[i]);
    putchar(']');
    line_number("seconds_median", median(times));
    if (amount > 0)
        line_number(rate, amount / median(times));
}

void line_residual(double residual)
{
    bool right = residual < PEERS_THRESHOLD;
    line_number("residual", residual);
    line_number("threshold", PEERS_THRESHOLD);
    line_flag("verified", right);
    if (right)
        return;
    line_end();
    peers_fail("a wrong result: residual %g, to be below %g", residual, PEERS_THRESHOLD);
}

void line_end(void)
{
    puts("}");
    fflush(stdout);
}
