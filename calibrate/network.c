/* SPDX-License-Identifier: Apache-2.0 */
/* Fits the costs of simulated messages to measured ones. */

#include <math.h>
#include <string.h>

#include <glib.h>

#include <duet/nodes.h>

#include "calibrate/microbench.h"
#include "calibrate/model.h"

enum { SMALL_BYTES = 64, FIGURES = 3 /* at no bytes; a byte; beyond eager */ };

/* Summarises times without outliers. */
static struct duet__summary summarise(const double *seconds, size_t count, size_t *rejected)
{
    double *values = g_new(double, count + 1), *expected = g_new(double, count + 1);
    bool *out = g_new0(bool, count + 1);
    const double median = duet__rough_median(seconds, count);
    struct duet__summary summary;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        expected[i] = median;
    *rejected = duet__outliers(seconds, expected, count, out);
    for (size_t i = 0; i < count; i++)
        if (!out[i])
            values[kept++] = seconds[i];
    summary = duet__summarise(values, kept);
    g_free(values);
    g_free(expected);
    g_free(out);
    return summary;
}

static void row_of(const struct duet__network_fit *fit, size_t i, double row[FIGURES])
{
    const uint64_t bytes = fit->sizes[i].bytes;
    row[0] = 1;
    row[1] = (double)bytes;
    row[2] = bytes > fit->network.eager_bytes ? 1 : 0;
}

/* Least squares of relative errors, reweighted towards absolute values; one figure after the other,
 * none below 0, until they stay. */
static void fit_figures(const struct duet__network_fit *fit, double x[FIGURES])
{
    enum { ROUNDS = 100, SWEEPS = 200 };
    static const double CLOSE = 1e-3; /* errors this close count as equal */
    for (int round = 0; round < ROUNDS; round++) {
        double a[FIGURES][FIGURES] = {{0}}, right[FIGURES] = {0}, row[FIGURES];
        for (size_t i = 0; i < fit->count; i++) {
            const double seconds = fit->sizes[i].ping.median;
            double expected = 0, weight;
            row_of(fit, i, row);
            for (int k = 0; k < FIGURES; k++)
                expected += x[k] * row[k];
            weight = 1 / (seconds * seconds);
            weight /= round > 0 ? fmax(fabs(expected / seconds - 1), CLOSE) : 1;
            for (int k = 0; k < FIGURES; k++) {
                for (int l = 0; l < FIGURES; l++)
                    a[k][l] += weight * row[k] * row[l];
                right[k] += weight * row[k] * seconds;
            }
        }
        for (int i = 0; i < SWEEPS * FIGURES; i++) {
            const int k = i % FIGURES;
            double left = right[k];
            for (int l = 0; l < FIGURES; l++)
                left -= l == k ? 0 : a[k][l] * x[l];
            x[k] = a[k][k] > 0 ? fmax(left / a[k][k], 0) : 0;
        }
    }
}

/* Rounds to the digits that are known. */
static double rounded(double value)
{
    char digits[DUET_NAME_MAX];
    (void)g_snprintf(digits, sizeof digits, "%.3e", value);
    return g_ascii_strtod(digits, NULL);
}

int duet__network_fit(const struct duet__mpi_measured *measured, struct duet__network_fit *out,
                      struct duet_message *message)
{
    double x[FIGURES] = {0}, overhead_s = INFINITY;
    size_t ignored = 0;
    *out = (struct duet__network_fit){
        .network = {.kind = DUET__NETWORK_SWITCH, .eager_bytes = measured->eager_bytes}};
    for (unsigned i = 0; i < DUET__MPI_SIZES; i++) {
        const struct duet__mpi_times *times = &measured->sizes[i];
        struct duet__network_size *size = &out->sizes[out->count];
        size->bytes = UINT64_C(1) << i;
        size->ping = summarise(times->pings, times->ping_count, &size->rejected);
        size->stream_s = summarise(times->streams, times->stream_count, &ignored).median;
        if (size->bytes <= SMALL_BYTES && size->stream_s > 0)
            overhead_s = fmin(overhead_s, size->stream_s);
        out->count += size->ping.median > 0;
    }
    if (out->count < FIGURES)
        return duet_fail(message, DUET_EINVAL, "too few sizes of messages were measured");
    fit_figures(out, x);
    out->network.overhead_s = rounded(fmin(overhead_s, x[0] / 2));
    out->network.latency_s = rounded(fmax(x[0] - 2 * out->network.overhead_s, 0));
    out->network.bandwidth_Bps = rounded(1 / fmax(x[1], 1e-15));
    out->network.rendezvous_s = rounded(x[2]);
    for (size_t i = 0; i < out->count; i++)
        out->sizes[i].predicted_s =
            duet__network_message_s(&out->network, (double)out->sizes[i].bytes);
    return DUET_OK;
}

/* All processes make the same calls, so nothing here depends on time. */
int duet__foreign_measure(const struct duet__measurement *given, struct duet__measured *out)
{
    enum { BATCH = 1000, BATCHES = 30, HANDLES = 3, NODE = 1 };
    struct duet__microbench bench;
    struct duet_handle *handles[HANDLES];
    struct duet_access accesses[HANDLES];
    GArray *values = g_array_new(FALSE, FALSE, sizeof(double));
    if (duet__microbench_open(&bench, given, "eager", 1, 0)) {
        double *cells = g_new0(double, HANDLES);
        bench.memory = cells;
        for (unsigned i = 0; i < HANDLES; i++) {
            handles[i] = duet__microbench_vector(&bench, &cells[i], sizeof cells[i]);
            if (!bench.error)
                duet__microbench_note(&bench, duet_own(bench.runtime, handles[i], NODE));
            accesses[i] = (struct duet_access){handles[i], i + 1 < HANDLES ? DUET_R : DUET_RW};
        }
        for (unsigned batch = 0; batch <= BATCHES && !bench.error; batch++) {
            double begin_s = duet__clock_s(), task_s;
            for (unsigned i = 0; i < BATCH; i++)
                duet__microbench_submit(&bench, bench.empty, 0, accesses, HANDLES, NULL);
            task_s = (duet__clock_s() - begin_s) / BATCH;
            duet__microbench_wait(&bench);
            if (batch > 0) /* the first batch finds cold caches */
                g_array_append_val(values, task_s);
        }
        for (unsigned i = 0; i < HANDLES; i++)
            duet__microbench_forget(&bench, handles[i]);
    }
    *out = (struct duet__measured){
        .name = "foreign",
        .description = "a task that is submitted and does not concern this node",
    };
    duet__measured_set(out, values);
    return duet__microbench_close(&bench);
}
