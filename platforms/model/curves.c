/* SPDX-License-Identifier: Apache-2.0 */
/* Curves of measured kernel times: kept sorted by work, interpolated in log-log. */
#include "platforms/model/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_work(const void *a, const void *b)
{
    const struct duet__point *left = a;
    const struct duet__point *right = b;
    return (left->work > right->work) - (left->work < right->work);
}

static bool positive(double value)
{
    return isfinite(value) && value > 0;
}

static bool not_negative(double value)
{
    return isfinite(value) && value >= 0;
}

static bool good_name(const char *name)
{
    return name[0] != '\0' && memchr(name, '\0', DUET_NAME_MAX) != NULL;
}

/* True if the optional figures of a point are valid; each is 0 where it was not measured. */
static bool good_details(const struct duet__point *p)
{
    return not_negative(p->median_s) && not_negative(p->base_s) && not_negative(p->memory_s) &&
           not_negative(p->noise) && p->noise <= 10 && not_negative(p->uncertainty) &&
           p->uncertainty <= 10 &&
           (p->busy_ratio == 0 || (p->busy_ratio >= 0.1 && p->busy_ratio <= 1000));
}

static int check_curve(const struct duet__curve *curve, struct duet_message *message)
{
    const char *kernel = curve->kernel, *arch = curve->arch;
    if (!good_name(kernel) || !good_name(arch) || !memchr(curve->context, '\0', DUET_NAME_MAX))
        return duet_fail(message, DUET_EINVAL,
                         "kernel \"%.31s\" on \"%.31s\" in \"%.31s\": names have 1 to %d bytes",
                         kernel, arch, curve->context, DUET_NAME_MAX - 1);
    if (curve->points == NULL || curve->count == 0)
        return duet_fail(message, DUET_EINVAL, "kernel %s on %s: no points", kernel, arch);
    for (size_t i = 0; i < curve->count; i++) {
        const struct duet__point *p = &curve->points[i];
        if (!positive(p->work) || !not_negative(p->size) || !positive(p->mean_s) ||
            !not_negative(p->deviation_s))
            return duet_fail(message, DUET_EINVAL,
                             "kernel %s on %s, point %zu: work and mean must be positive and "
                             "finite, size and deviation not negative",
                             kernel, arch, i);
        if (!good_details(p))
            return duet_fail(
                message, DUET_EINVAL,
                "kernel %s on %s, point %zu: times must be finite and not negative, the busy ratio "
                "from 0.1 to 1000, noise and uncertainty at most 10",
                kernel, arch, i);
    }
    return DUET_OK;
}

static bool is_of(const struct duet__curve *curve, const char *kernel, const char *arch)
{
    return strcmp(curve->kernel, kernel) == 0 && strcmp(curve->arch, arch) == 0;
}

int duet__calibration_add(struct duet__calibration *calibration, const struct duet__curve *given,
                          struct duet_message *message)
{
    struct duet__curve curve = *given, *curves;
    int error = check_curve(given, message);
    if (error)
        return error;
    for (size_t i = 0; i < calibration->count; i++)
        if (is_of(&calibration->curves[i], curve.kernel, curve.arch) &&
            strcmp(calibration->curves[i].context, curve.context) == 0)
            return duet_fail(message, DUET_EINVAL, "kernel %s on %s%s%s: there are times already",
                             curve.kernel, curve.arch, *curve.context ? " in " : "", curve.context);
    curve.points = calloc(curve.count, sizeof(*curve.points));
    if (curve.points == NULL)
        goto no_points;
    memcpy(curve.points, given->points, curve.count * sizeof(*curve.points));
    qsort(curve.points, curve.count, sizeof(*curve.points), by_work);
    for (size_t i = 1; i < curve.count; i++) {
        if (!(curve.points[i - 1].work < curve.points[i].work)) {
            error = duet_fail(message, DUET_EINVAL, "kernel %s on %s: two points of work %.17g",
                              curve.kernel, curve.arch, curve.points[i].work);
            goto equal_points;
        }
    }
    curves = realloc(calibration->curves, (calibration->count + 1) * sizeof(*curves));
    if (curves == NULL)
        goto no_curves;
    curves[calibration->count++] = curve;
    calibration->curves = curves;
    return DUET_OK;

no_curves:
no_points:
    error =
        duet_fail(message, DUET_ENOMEM, "kernel %s on %s: out of memory", curve.kernel, curve.arch);
equal_points:
    free(curve.points);
    return error;
}

const struct duet__curve *duet__calibration_find(const struct duet__calibration *calibration,
                                                 const char *kernel, const char *arch)
{
    for (size_t i = 0; i < calibration->count; i++)
        if (is_of(&calibration->curves[i], kernel, arch))
            return &calibration->curves[i];
    return NULL;
}

/* Ranks how well a curve suits the context: higher is better. */
static int context_rank(const struct duet__curve *curve, const char *context)
{
    if (context != NULL && strcmp(curve->context, context) == 0)
        return 2;
    return curve->context[0] == '\0';
}

/* True if another curve of this kernel and architecture is preferred: better, or as good and
 * first. */
static bool beaten(const struct duet__calibration *calibration, size_t index, const char *context)
{
    const struct duet__curve *curve = &calibration->curves[index];
    int own = context_rank(curve, context);
    for (size_t i = 0; i < calibration->count; i++) {
        const struct duet__curve *other = &calibration->curves[i];
        int its = context_rank(other, context);
        if (i != index && is_of(other, curve->kernel, curve->arch) &&
            (its > own || (its == own && i < index)))
            return true;
    }
    return false;
}

int duet__calibration_copy(struct duet__calibration *to, const struct duet__calibration *from,
                           struct duet_message *message)
{
    int error = DUET_OK;
    for (size_t i = 0; i < from->count && !error; i++)
        error = duet__calibration_add(to, &from->curves[i], message);
    if (error)
        duet__calibration_fini(to);
    else
        to->states = from->states;
    return error;
}

void duet__calibration_select(struct duet__calibration *calibration, const char *context)
{
    size_t kept = 0;
    /* a curve that was removed keeps its name here, so the order does not matter */
    for (size_t i = calibration->count; i-- > 0;) {
        if (!beaten(calibration, i, context))
            continue;
        free(calibration->curves[i].points);
        calibration->curves[i].points = NULL;
        calibration->curves[i].count = 0;
    }
    for (size_t i = 0; i < calibration->count; i++)
        if (calibration->curves[i].points != NULL)
            calibration->curves[kept++] = calibration->curves[i];
    calibration->count = kept;
}

/* Uncertainty of a point, or the usual one. */
static double uncertainty_of(const struct duet__point *point)
{
    return point->uncertainty > 0 ? point->uncertainty : DUET__USUAL_UNCERTAINTY;
}

/*
 * Adds to the uncertainty of a point what it has from being so many octaves of work away from the
 * nearest measured one. Figures of single points left out of the built-in platforms' curves:
 * bench/coverage.py --curves.
 */
static void widen(struct duet__point *out, double octaves)
{
    static const double octave[DUET__BASES] =
        {[DUET__INTERPOLATED] = 0.05, [DUET__EXTRAPOLATED] = 0.12};
    out->uncertainty = hypot(out->uncertainty, octave[out->basis] * octaves);
}

/* Continues the end point's rate of work. */
static void continue_rate(const struct duet__point *end, double work, struct duet__point *out)
{
    double factor = work / end->work;
    *out = *end;
    out->size = 0;
    out->mean_s *= factor;
    out->deviation_s *= factor;
    out->median_s *= factor;
    out->base_s *= factor;
    out->memory_s *= factor;
    out->uncertainty = uncertainty_of(end);
    out->basis = end->basis ? end->basis : DUET__EXTRAPOLATED;
    widen(out, fabs(log2(factor)));
}

/* Interpolates t = c * work^e between two times; 0 if one is not known. */
static double power_law(double a, double b, double share)
{
    return a > 0 && b > 0 ? a * pow(b / a, share) : 0;
}

static double linear_between(double a, double b, double share)
{
    return (1 - share) * a + share * b;
}

static void interpolate(const struct duet__point *a, const struct duet__point *b, double share,
                        struct duet__point *out)
{
    out->mean_s = power_law(a->mean_s, b->mean_s, share);
    out->deviation_s =
        out->mean_s * linear_between(a->deviation_s / a->mean_s, b->deviation_s / b->mean_s, share);
    out->median_s = power_law(a->median_s, b->median_s, share);
    out->base_s = power_law(a->base_s, b->base_s, share);
    if (out->base_s > 0)
        out->memory_s =
            out->base_s * linear_between(a->memory_s / a->base_s, b->memory_s / b->base_s, share);
    if (a->busy_ratio > 0 && b->busy_ratio > 0)
        out->busy_ratio = linear_between(a->busy_ratio, b->busy_ratio, share);
    /* noise around base_s and noise around the mean do not mix */
    if (a->noise > 0 && b->noise > 0 && (a->base_s > 0) == (b->base_s > 0))
        out->noise = linear_between(a->noise, b->noise, share);
    out->uncertainty = linear_between(uncertainty_of(a), uncertainty_of(b), share);
    out->basis =
        a->basis || b->basis ? (a->basis > b->basis ? a->basis : b->basis) : DUET__INTERPOLATED;
    widen(out, fmin(share, 1 - share) * log2(b->work / a->work));
}

int duet__curve_point(const struct duet__curve *curve, double work, bool extrapolate,
                      struct duet__point *out)
{
    const struct duet__point *a, *last;
    if (curve == NULL || curve->count == 0 || !positive(work))
        return DUET_EINVAL;
    a = curve->points;
    last = &a[curve->count - 1];
    if ((work < a->work || work > last->work) && !extrapolate)
        return DUET_ENOMODEL;
    while (a < last && a[1].work <= work)
        a++;
    *out = (struct duet__point){.work = work};
    if (a->work == work) /* a measured point gives its own figures, without rounding errors */
        *out = *a;
    else if (work < a->work || a == last)
        continue_rate(a, work, out);
    else
        interpolate(a, a + 1, log(work / a->work) / log(a[1].work / a->work), out);
    out->work = work;
    out->uncertainty = uncertainty_of(out);
    out->samples = out->rejected = 0;
    return DUET_OK;
}

void duet__calibration_fini(struct duet__calibration *calibration)
{
    for (size_t i = 0; i < calibration->count; i++)
        free(calibration->curves[i].points);
    free(calibration->curves);
    calibration->curves = NULL;
    calibration->count = 0;
}
