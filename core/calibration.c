/* SPDX-License-Identifier: Apache-2.0 */
/* Curves of measured kernel times: kept sorted by work, interpolated in log-log. */
#include <duet/calibration.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_work(const void *a, const void *b)
{
    const struct duet_point *left = a;
    const struct duet_point *right = b;

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
    return name != NULL && name[0] != '\0' && strlen(name) < DUET_NAME_MAX;
}

static int check_curve(const char *kernel, const char *arch, const struct duet_point *points,
                       size_t count, struct duet_message *message)
{
    if (!good_name(kernel) || !good_name(arch))
        return duet_fail(message, DUET_EINVAL,
                         "kernel \"%.64s\" on \"%.64s\": names have 1 to %d bytes",
                         kernel != NULL ? kernel : "", arch != NULL ? arch : "", DUET_NAME_MAX - 1);
    if (points == NULL || count == 0)
        return duet_fail(message, DUET_EINVAL, "kernel %s on %s: no points", kernel, arch);
    for (size_t i = 0; i < count; i++) {
        const struct duet_point *p = &points[i];

        if (!positive(p->work) || !not_negative(p->size) || !positive(p->mean_s) ||
            !not_negative(p->deviation_s))
            return duet_fail(message, DUET_EINVAL,
                             "kernel %s on %s, point %zu: work and mean must be positive and "
                             "finite, size and deviation not negative",
                             kernel, arch, i);
    }
    return DUET_OK;
}

int duet_calibration_add(struct duet_calibration *calibration, const char *kernel, const char *arch,
                         const struct duet_point *points, size_t count,
                         struct duet_message *message)
{
    struct duet_curve curve = {.count = count};
    struct duet_curve *curves;
    int error = check_curve(kernel, arch, points, count, message);

    if (error != DUET_OK)
        return error;
    if (duet_calibration_find(calibration, kernel, arch) != NULL)
        return duet_fail(message, DUET_EINVAL, "kernel %s on %s: there are times already", kernel,
                         arch);
    if (count > SIZE_MAX / sizeof(*points))
        return duet_fail(message, DUET_ENOMEM, "kernel %s on %s: too many points", kernel, arch);
    curve.points = malloc(count * sizeof(*points));
    if (curve.points == NULL)
        goto no_points;
    memcpy(curve.points, points, count * sizeof(*points));
    qsort(curve.points, count, sizeof(*points), by_work);
    for (size_t i = 1; i < count; i++) {
        if (!(curve.points[i - 1].work < curve.points[i].work)) {
            error = duet_fail(message, DUET_EINVAL, "kernel %s on %s: two points of work %.17g",
                              kernel, arch, curve.points[i].work);
            goto equal_points;
        }
    }
    curves = realloc(calibration->curves, (calibration->count + 1) * sizeof(*curves));
    if (curves == NULL)
        goto no_curves;
    memcpy(curve.kernel, kernel, strlen(kernel) + 1);
    memcpy(curve.arch, arch, strlen(arch) + 1);
    curves[calibration->count++] = curve;
    calibration->curves = curves;
    return DUET_OK;

no_curves:
no_points:
    error = duet_fail(message, DUET_ENOMEM, "kernel %s on %s: out of memory", kernel, arch);
equal_points:
    free(curve.points);
    return error;
}

const struct duet_curve *duet_calibration_find(const struct duet_calibration *calibration,
                                               const char *kernel, const char *arch)
{
    for (size_t i = 0; i < calibration->count; i++) {
        const struct duet_curve *curve = &calibration->curves[i];

        if (strcmp(curve->kernel, kernel) == 0 && strcmp(curve->arch, arch) == 0)
            return curve;
    }
    return NULL;
}

/* Index of the last point whose work is at most `work`; the first point's must be. */
static size_t last_not_above(const struct duet_curve *curve, double work)
{
    size_t low = 0;
    size_t high = curve->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (curve->points[middle].work <= work)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void give(double mean, double ratio, double *mean_s, double *deviation_s)
{
    if (mean_s != NULL)
        *mean_s = mean;
    if (deviation_s != NULL)
        *deviation_s = mean * ratio;
}

int duet_curve_at(const struct duet_curve *curve, double work, bool extrapolate, double *mean_s,
                  double *deviation_s)
{
    const struct duet_point *a;
    const struct duet_point *b;
    double share;

    if (curve == NULL || curve->count == 0 || !positive(work))
        return DUET_EINVAL;
    a = &curve->points[0];
    b = &curve->points[curve->count - 1];
    if (work < a->work || work > b->work) {
        const struct duet_point *end = work < a->work ? a : b;

        if (!extrapolate)
            return DUET_ENOMODEL;
        give(end->mean_s * (work / end->work), end->deviation_s / end->mean_s, mean_s, deviation_s);
        return DUET_OK;
    }
    a = &curve->points[last_not_above(curve, work)];
    if (a->work == work) { /* a measured point gives its own figures, without rounding */
        if (mean_s != NULL)
            *mean_s = a->mean_s;
        if (deviation_s != NULL)
            *deviation_s = a->deviation_s;
        return DUET_OK;
    }
    b = a + 1;
    share = log(work / a->work) / log(b->work / a->work);
    give(a->mean_s * pow(b->mean_s / a->mean_s, share),
         (1 - share) * (a->deviation_s / a->mean_s) + share * (b->deviation_s / b->mean_s), mean_s,
         deviation_s);
    return DUET_OK;
}

void duet_calibration_fini(struct duet_calibration *calibration)
{
    for (size_t i = 0; i < calibration->count; i++)
        free(calibration->curves[i].points);
    free(calibration->curves);
    calibration->curves = NULL;
    calibration->count = 0;
}
