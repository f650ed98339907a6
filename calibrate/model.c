/* SPDX-License-Identifier: Apache-2.0 */
/* Fits a calibration to recorded runs, and judges it. */
#include "calibrate/model.h"

enum { LEAST_ROWS = 10 /* least rows that tell a bandwidth, or something of caches */ };

/* State of the fit. */
struct fitting {
    struct duet__executions executions;
    double *missing;
    double bandwidth_Bps;
};

/* ------------------------------------------------------------------------------------------- */
/* Bandwidth of memory */

/* True if it is the only kernel of the host in its workload, so that all neighbours run it, too. */
static bool is_only_kernel(const struct duet__executions *executions,
                           const struct duet__group *group)
{
    for (guint i = 0; i < executions->groups->len; i++) {
        const struct duet__group *other = duet__group_at(executions, i);
        if (other->host && strcmp(other->context, group->context) == 0 &&
            (strcmp(other->kernel, group->kernel) != 0 || strcmp(other->arch, group->arch) != 0))
            return false;
    }
    return true;
}

/* Bytes a second that an execution got from memory, if most of its data came from there; else 0. */
static double memory_rate(const struct duet__row *row, bool busy)
{
    if (!duet__row_cold(row) || !(busy ? duet__row_busy(row) : duet__row_alone(row)))
        return 0;
    return (busy ? row->others + 1 : 1) * row->from_memory;
}

/*
 * Mean bytes a second that executions got from memory: alone, or busy, and then with their
 * neighbours, which do the same; duet__kernel_seconds compares that with the bandwidth. A mean, so
 * that times add up, without values far from the median.
 */
static double attained_Bps(const struct duet__rows *rows, bool busy)
{
    double *rates = g_new(double, rows->count + 1);
    double bytes = 0, seconds = 0, median = 0;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (memory_rate(&rows->list[i], busy) > 0)
            rates[count++] = memory_rate(&rows->list[i], busy) / rows->seconds[i];
    if (count >= LEAST_ROWS)
        median = duet__median(rates, count);
    for (size_t i = 0; i < rows->count && median > 0; i++) {
        double own = memory_rate(&rows->list[i], busy);
        if (!(own > 0) || fabs(log(own / rows->seconds[i] / median)) > log(2))
            continue;
        bytes += own;
        seconds += rows->seconds[i];
    }
    g_free(rates);
    return seconds > 0 ? bytes / seconds : 0;
}

/*
 * Finds the bandwidth: that measured, or more if a kernel got more, as a limit is not below what
 * was reached. The machine may have been slower when it was measured. Leaves the missing parts for
 * a cache of this size.
 */
static void find_bandwidth(struct fitting *fitting, const struct duet_sharing *sharing)
{
    const struct duet__executions *executions = &fitting->executions;
    double best_Bps = fitting->bandwidth_Bps;
    duet__missing_find(executions, sharing, 0, fitting->missing);
    for (guint i = 0; i < executions->groups->len && fitting->bandwidth_Bps > 0; i++) {
        const struct duet__group *group = duet__group_at(executions, i);
        struct duet__rows rows;
        if (!group->host)
            continue;
        duet__rows_make(executions, group, fitting->missing, 0, &rows);
        best_Bps = fmax(best_Bps, attained_Bps(&rows, false));
        if (is_only_kernel(executions, group))
            best_Bps = fmax(best_Bps, attained_Bps(&rows, true));
        duet__rows_fini(&rows);
    }
    fitting->bandwidth_Bps = best_Bps;
}

/* ------------------------------------------------------------------------------------------- */
/* Size of the shared cache                                                                     */

enum {
    SIZES = 7,
    ENOUGH = 30000,    /* executions: the search walks the caches several times */
    LEAST_A_RUN = 500, /* least executions that are used of each run, if it has so many */
};

/* Sizes that are tried. A cache keeps a part over two octaves of sizes: finer steps tell
 * nothing. */
static const double parts[SIZES] = {1, 0.7071067812, 0.5, 0.3535533906, 0.25, 0.1767766953, 0.125};
static const double LARGEST = 0.5;  /* relative errors count as at most this */
static const double BETTER = 0.005; /* part by which the sum of squares has to fall */

/* State of the search. */
struct search {
    const struct duet__executions *executions;
    size_t limit; /* number of executions of each run that are used */
    struct duet_sharing given;
    duet__kernel_fit_fn *fit;
    double *missing; /* by operand, for the size that is tried */
};

/* Sum of squares of relative errors of one group, weighted by its time. */
static double score_rows(const struct duet__rows *rows, const struct duet__kernel_fit *kernel)
{
    double sum = 0, time = 0;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        double expected, error;
        if (!duet__row_alone(&rows->list[i]))
            continue;
        expected = duet__kernel_seconds(kernel, rows, i);
        error = fmin(fabs(rows->seconds[i] / expected - 1), LARGEST);
        sum += error * error;
        time += fmin(rows->seconds[i], (1 + LARGEST) * expected);
        count++;
    }
    return count >= LEAST_ROWS ? sum / (double)count * time : 0;
}

/* Sum of scores over all kernels of the host with this size. */
static double score(const struct search *search, uint64_t bytes)
{
    const struct duet__executions *executions = search->executions;
    struct duet_sharing sharing = search->given;
    double sum = 0;
    sharing.shared_bytes = bytes;
    duet__missing_find(executions, &sharing, search->limit, search->missing);
    for (guint i = 0; i < executions->groups->len; i++) {
        const struct duet__group *group = duet__group_at(executions, i);
        struct duet__rows rows;
        struct duet__kernel_fit kernel;
        if (!group->host || group->members->len < LEAST_ROWS)
            continue;
        duet__rows_make(executions, group, search->missing, search->limit, &rows);
        if (rows.bytes > 0 && rows.count >= LEAST_ROWS) {
            search->fit(&rows, NULL, search->given.bandwidth_Bps, &kernel, NULL);
            sum += score_rows(&rows, &kernel);
        }
        duet__rows_fini(&rows);
    }
    return sum;
}

/* The given size is replaced only by one that is clearly better. */
/* Returns the size of the shared cache that explains the times best, up to the one given; 0
 * stays. */
static uint64_t find_cache_size(const struct duet__executions *executions,
                                const struct duet_sharing *given, duet__kernel_fit_fn *fit)
{
    struct search search = {.executions = executions, .given = *given, .fit = fit};
    uint64_t best = given->shared_bytes;
    double least = INFINITY;
    if (best == 0 || executions->operand_count == 0)
        return best;
    search.limit = MAX(ENOUGH / executions->run_count, LEAST_A_RUN);
    search.missing = g_new0(double, executions->operand_count + 1);
    for (unsigned i = 0; i < SIZES; i++) {
        uint64_t bytes = (uint64_t)llround((double)given->shared_bytes * parts[i]);
        double own = score(&search, bytes);
        if (own < least) {
            least = i ? own : own * (1 - BETTER);
            best = bytes;
        }
    }
    g_free(search.missing);
    return best;
}

/* ------------------------------------------------------------------------------------------- */
/* One point                                                                                    */

enum {
    FOLDS = 5,
    NOISE_MOST = 10 /* most that a calibration has, as from stalls in the shortest kernels */
};

/* A fitted group: rows, figures, and marks of outliers. */
struct fitted {
    const struct duet__executions *executions;
    const struct duet__group *group;
    struct duet__rows rows;
    struct duet__kernel_fit kernel;
    duet__kernel_fit_fn *fit;
    bool *rejected;
    bool neighbours; /* kernels may have some */
};

/* ------------------------------------------------------------------------------------------- */
/* Figures                                                                                      */

/* Edge of an execution's tiles; 0 if they are not square, or it cannot be told. */
static double edge_of(const struct duet__executions *executions, const struct duet__group *group)
{
    const struct duet__execution *first =
        &executions->list[g_array_index(group->members, size_t, 0)];
    const struct duet__operand *operands = executions->operands + first->first;
    double element = group->kernel[0] == 's' ? 4 : group->kernel[0] == 'd' ? 8 : 0, edge;
    uint64_t largest = 0, sum = 0;
    bool equal = true;
    for (size_t i = 0; i < first->operands; i++) {
        equal = equal && operands[i].bytes == operands[0].bytes;
        sum += operands[i].bytes;
        largest = MAX(largest, operands[i].bytes);
    }
    /* work other than the bytes is flops: such kernels are on tiles, perhaps with vectors */
    if (element == 0 || largest == 0 || !(equal || group->work != (double)sum))
        return 0;
    edge = round(sqrt((double)largest / element));
    return edge * edge * element == (double)largest ? edge : 0;
}

/* Fills the figures that only kernels of the host have. */
static void fill_host(const struct fitted *fitted, struct duet__point *out)
{
    const struct duet__kernel_fit *kernel = &fitted->kernel;
    out->base_s = kernel->fit.base_s;
    out->memory_s = kernel->fit.memory_s;
    out->busy_ratio = kernel->busy_ratio;
}

/* Fills all figures of a point. */
static void fill_point(const struct fitted *fitted, struct duet__point *out)
{
    const struct duet__rows *rows = &fitted->rows;
    bool host = fitted->group->host;
    struct duet__summary summary;
    double *values = g_new0(double, rows->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (!fitted->rejected[i])
            values[count++] = rows->seconds[i];
    summary = duet__summarise(values, count);
    out->work = fitted->group->work;
    out->size = edge_of(fitted->executions, fitted->group);
    out->mean_s = summary.mean;
    out->median_s = summary.median;
    out->deviation_s = summary.deviation;
    out->samples = count;
    out->rejected = rows->count - count;
    if (host)
        fill_host(fitted, out);
    count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (!fitted->rejected[i])
            values[count++] = rows->seconds[i] /
                              (host ? duet__kernel_seconds(&fitted->kernel, rows, i) : out->mean_s);
    summary = duet__summarise(values, count);
    out->noise = summary.mean > 0 ? fmin(summary.deviation / summary.mean, NOISE_MOST) : 0;
    g_free(values);
}

/* Sums of a point's executions in one problem. */
struct share {
    uint64_t problem;
    double measured_s, predicted_s;
};

/* Uncertainty that is added where a kernel was measured alone only, or hardly alone: the error of
 * runs on other numbers of workers (docs/models.md). */
#define OTHER_NEIGHBOURS 0.12
enum { ALONE_PART = 10 }; /* beside others, one in so many executions is to be alone */

/*
 * Finds the standard deviation of the logarithm of measured by expected time in other problems than
 * the measured ones. Each of n measured problems counts with the sum of its executions, and
 * DUET__USUAL_UNCERTAINTY counts as one more; another problem differs from their mean by 1 + 1/n
 * times that variance.
 */
static void fill_uncertainty(const struct fitted *fitted, struct duet__point *out)
{
    g_autoptr(GArray) shares = g_array_new(FALSE, TRUE, sizeof(struct share));
    double squares = DUET__USUAL_UNCERTAINTY * DUET__USUAL_UNCERTAINTY;
    size_t alone = 0, kept = 0;
    bool single = false, busy = false; /* in a run on one worker; beside busy others */
    for (size_t i = 0; i < fitted->rows.count; i++) {
        const uint64_t problem = fitted->executions->runs[fitted->rows.list[i].run].of->problem;
        struct share *share = NULL;
        if (fitted->rejected[i])
            continue;
        kept++;
        single |= fitted->rows.list[i].workers <= 1;
        alone += duet__row_alone(&fitted->rows.list[i]);
        busy |= duet__row_busy(&fitted->rows.list[i]);
        for (guint k = 0; k < shares->len && !share; k++)
            if (g_array_index(shares, struct share, k).problem == problem)
                share = &g_array_index(shares, struct share, k);
        if (!share) {
            g_array_set_size(shares, shares->len + 1);
            share = &g_array_index(shares, struct share, shares->len - 1);
            share->problem = problem;
        }
        share->measured_s += fitted->rows.seconds[i];
        share->predicted_s += fitted->group->host
                                  ? duet__kernel_seconds(&fitted->kernel, &fitted->rows, i)
                                  : out->mean_s;
    }
    for (guint k = 0; k < shares->len; k++) {
        const struct share *share = &g_array_index(shares, struct share, k);
        const double off = log(share->measured_s / share->predicted_s);
        squares += off * off;
    }
    out->uncertainty = sqrt(squares / MAX(shares->len, 1) * (1 + 1.0 / MAX(shares->len, 1)));
    /* the ends of runs on several workers say little of one alone */
    if (fitted->neighbours && (!busy || (!single && ALONE_PART * alone < kept)))
        out->uncertainty = hypot(out->uncertainty, OTHER_NEIGHBOURS);
    out->uncertainty = fmin(out->uncertainty, NOISE_MOST);
}

/* Adds up the time of a point's executions and of its outliers, which are in no other figure. */
static void fill_rejected(const struct fitted *fitted, struct duet__quality *out)
{
    double out_s[2] = {0}, counts[2] = {0}; /* of undisturbed runs; [true]: of first writes */
    for (size_t i = 0; i < fitted->rows.count; i++) {
        const struct duet__execution *e =
            &fitted->executions->list[g_array_index(fitted->group->members, size_t, i)];
        const double rejected_s = fitted->rejected[i] ? fitted->rows.seconds[i] : 0;
        out->all_s += fitted->rows.seconds[i];
        out->rejected_s += rejected_s;
        if (fitted->executions->runs[e->run].of->disturbed)
            continue;
        out_s[e->fresh] += rejected_s;
        counts[e->fresh]++;
    }
    if (counts[false] > 0) /* else nothing tells first writes from others */
        out->fresh_s = fmax(0, out_s[true] - out_s[false] * counts[true] / counts[false]);
}

/* ------------------------------------------------------------------------------------------- */
/* Quality                                                                                      */

/* The fold with which each execution is left out. */
struct folds {
    unsigned count;
    unsigned *of; /* by row */
};

/* Divides into folds by runs, in turn; or by blocks of executions, if there are too few runs. */
static void divide_runs(const struct duet__rows *rows, unsigned wanted, struct folds *folds)
{
    size_t runs = 0, run = 0;
    for (size_t i = 0; i < rows->count; i++)
        runs += i == 0 || rows->list[i].run != rows->list[i - 1].run;
    folds->count = rows->count < wanted ? (unsigned)rows->count : wanted;
    for (size_t i = 0; i < rows->count; i++) {
        run += i > 0 && rows->list[i].run != rows->list[i - 1].run;
        folds->of[i] =
            (unsigned)(runs >= wanted ? run % folds->count : i * folds->count / rows->count);
    }
}

/* Predictions of the executions that were left out, over all folds. */
struct predictions {
    size_t count;
    double predicted_s, measured_s; /* sums of seconds */
    double *errors;                 /* relative errors, by execution */
};

/* Predicts the executions of one fold from the others. Outliers of the whole group are not
 * predicted. */
static void predict_fold(const struct fitted *fitted, const struct folds *folds, unsigned fold,
                         struct predictions *p)
{
    const struct duet__rows *rows = &fitted->rows;
    bool *used = g_new(bool, rows->count + 1), any = false;
    struct duet__kernel_fit kernel;
    for (size_t i = 0; i < rows->count; i++) {
        used[i] = !fitted->rejected[i] && folds->of[i] != fold;
        any = any || used[i];
    }
    if (any)
        fitted->fit(rows, used, fitted->kernel.bandwidth_Bps, &kernel, NULL);
    for (size_t i = 0; i < rows->count && any; i++) {
        if (fitted->rejected[i] || folds->of[i] != fold)
            continue;
        double seconds = duet__kernel_seconds(&kernel, rows, i);
        p->predicted_s += seconds;
        p->measured_s += rows->seconds[i];
        p->errors[p->count++] = fabs(seconds / rows->seconds[i] - 1);
    }
    g_free(used);
}

/* Cross-validates; NaN if nothing could be left out. */
static struct duet__model_error cross_validate(const struct fitted *fitted, unsigned wanted)
{
    struct folds folds = {.of = g_new0(unsigned, fitted->rows.count + 1)};
    struct predictions p = {.errors = g_new(double, fitted->rows.count + 1)};
    struct duet__model_error error = {NAN, NAN};
    if (wanted > 1)
        divide_runs(&fitted->rows, wanted, &folds);
    for (unsigned fold = 0; fold < folds.count; fold++)
        predict_fold(fitted, &folds, fold, &p);
    if (p.count)
        error = (struct duet__model_error){.sum = p.predicted_s / p.measured_s - 1,
                                           .execution = duet__median(p.errors, p.count)};
    g_free(folds.of);
    g_free(p.errors);
    return error;
}

/* Executions by condition, without outliers. */
static void fill_conditions(const struct fitted *fitted, struct duet__quality *out)
{
    const struct duet__rows *rows = &fitted->rows;
    g_autofree double *times = g_new0(double, rows->count + 1);
    for (int i = 0; i < DUET__CONDITIONS; i++) {
        size_t count = 0;
        for (size_t r = 0; r < rows->count; r++) {
            const struct duet__row *row = &rows->list[r];
            int own = (duet__row_cold(row) ? DUET__CONDITION_COLD : 0) |
                      (duet__row_busy(row) ? DUET__CONDITION_BUSY : 0);
            if (!fitted->rejected[r] && own == i)
                times[count++] = rows->seconds[r];
        }
        out->conditions[i] = duet__summarise(times, count);
    }
}

/*
 * Fits the point of a group and its quality, both zeroed before: cross-validated by runs, if the
 * group is in as many runs as there are folds, else by blocks of successive executions (fewer if
 * there are not so many). The errors of a single execution are NaN.
 */
static void fit_point(const struct duet__executions *executions, const struct duet__group *group,
                      const double *missing, double bandwidth_Bps,
                      const struct duet__model_options *options, struct duet__quality *out)
{
    g_autofree bool *rejected = g_new0(bool, group->members->len);
    struct fitted fitted = {.executions = executions,
                            .group = group,
                            .fit = options->fit ? options->fit : duet__kernel_fit,
                            .rejected = rejected,
                            .neighbours = group->host && options->cores != 1};
    (void)g_strlcpy(out->kernel, group->kernel, DUET_NAME_MAX);
    (void)g_strlcpy(out->arch, group->arch, DUET_NAME_MAX);
    (void)g_strlcpy(out->context, group->context, DUET_NAME_MAX);
    duet__rows_make(executions, group, missing, 0, &fitted.rows);
    fitted.fit(&fitted.rows, NULL, group->host ? bandwidth_Bps : 0, &fitted.kernel, rejected);
    fill_point(&fitted, &out->point);
    fill_uncertainty(&fitted, &out->point);
    fill_rejected(&fitted, out);
    if (group->host)
        fill_conditions(&fitted, out);
    out->error = cross_validate(&fitted, options->folds ? options->folds : FOLDS);
    duet__rows_fini(&fitted.rows);
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

/* Makes curves of points: those that differ only in work are neighbours. */
static int add_curves(struct duet__model *out, struct duet_message *message)
{
    struct duet__point *points = g_new(struct duet__point, out->quality_count);
    int error = DUET_OK;
    for (size_t i = 0, next; i < out->quality_count && !error; i = next) {
        const struct duet__quality *first = &out->quality[i];
        for (next = i; next < out->quality_count; next++) {
            const struct duet__quality *own = &out->quality[next];
            if (strcmp(own->kernel, first->kernel) != 0 || strcmp(own->arch, first->arch) != 0 ||
                strcmp(own->context, first->context) != 0)
                break;
            points[next - i] = own->point;
        }
        struct duet__curve curve = {.count = next - i, .points = points};
        g_strlcpy(curve.kernel, first->kernel, sizeof(curve.kernel));
        g_strlcpy(curve.arch, first->arch, sizeof(curve.arch));
        g_strlcpy(curve.context, first->context, sizeof(curve.context));
        error = duet__calibration_add(&out->calibration, &curve, message);
    }
    g_free(points);
    return error;
}

int duet__model_fit(const struct duet__recorded_run *runs, size_t run_count,
                    const struct duet__model_options *options, struct duet__model *out,
                    struct duet_message *message)
{
    struct fitting fitting = {.bandwidth_Bps = options->sharing.bandwidth_Bps};
    struct duet__executions *executions = &fitting.executions;
    struct duet_sharing given = options->sharing;
    duet__kernel_fit_fn *fit = options->fit ? options->fit : duet__kernel_fit;
    int error;
    *out = (struct duet__model){0};
    error = duet__executions_read(runs, run_count, options->task_overhead_s, executions, message);
    if (error)
        return error;
    if (!options->keep_states)
        duet__states_remove(executions, &out->calibration.states);
    fitting.missing = g_new0(double, executions->operand_count + 1);
    find_bandwidth(&fitting, &given);
    given.bandwidth_Bps = fitting.bandwidth_Bps;
    out->sharing = given;
    if (!options->keep_size)
        out->sharing.shared_bytes = find_cache_size(executions, &given, fit);
    find_bandwidth(&fitting, &out->sharing);
    out->sharing.bandwidth_Bps = fitting.bandwidth_Bps;
    out->quality_count = executions->groups->len;
    out->quality = g_new0(struct duet__quality, out->quality_count);
    for (guint i = 0; i < executions->groups->len; i++)
        fit_point(executions, duet__group_at(executions, i), fitting.missing, fitting.bandwidth_Bps,
                  options, &out->quality[i]);
    error = add_curves(out, message);
    g_free(fitting.missing);
    duet__executions_fini(executions);
    if (error)
        duet__model_fini(out);
    return error;
}

void duet__model_fini(struct duet__model *model)
{
    duet__calibration_fini(&model->calibration);
    g_free(model->quality);
    *model = (struct duet__model){0};
}
