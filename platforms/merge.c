/* SPDX-License-Identifier: Apache-2.0 */
/* New kernel times together with those of an older calibration that they do not replace. */
#include <math.h>
#include <string.h>

#include "platforms/description.h"

/* Works this close are the same: a count of flops that was rounded in another place. */
static const double SAME_WORK = 1e-9;

static bool has_work(const struct duet_curve *curve, double work)
{
    for (size_t i = 0; i < curve->count; i++)
        if (fabs(curve->points[i].work - work) <= SAME_WORK * work)
            return true;
    return false;
}

static const struct duet_curve *counterpart(const struct duet_calibration *calibration,
                                            const struct duet_curve *curve)
{
    for (size_t i = 0; i < calibration->count; i++) {
        const struct duet_curve *other = &calibration->curves[i];

        if (strcmp(other->kernel, curve->kernel) == 0 && strcmp(other->arch, curve->arch) == 0 &&
            strcmp(other->context, curve->context) == 0)
            return other;
    }
    return NULL;
}

/* The points of an old curve that its new counterpart lacks, each with its origin. */
static void keep_points(const struct duet_curve *old, const struct duet__origin *old_origin,
                        const struct duet_curve *new, GArray *points, struct duet__origin *origin)
{
    for (size_t i = 0; i < old->count; i++) {
        const struct duet_point *point = &old->points[i];
        const char *own = duet__origin_own(old_origin, point->work);

        if (has_work(new, point->work))
            continue;
        g_array_append_vals(points, point, 1);
        own = own != NULL ? own : old_origin->curve;
        if (strcmp(own, origin->curve) != 0)
            duet__origin_add(origin, point->work, own);
    }
}

static struct duet__origin *copy_origin(const struct duet__origin *from)
{
    struct duet__origin *copy = duet__origin_new(from->curve);

    for (unsigned i = 0; i < from->points->len; i++) {
        const struct duet__point_origin *own =
            &g_array_index(from->points, struct duet__point_origin, i);

        duet__origin_add(copy, own->work, own->text);
    }
    return copy;
}

/* Adds a curve of these points; takes `origin`. */
static int add(struct duet_calibration *out, GPtrArray *origins, const struct duet_curve *names,
               const struct duet_point *points, size_t count, struct duet__origin *origin,
               struct duet_message *message)
{
    int error = duet_calibration_add_context(out, names->kernel, names->arch, names->context,
                                             points, count, message);

    if (error == DUET_OK)
        g_ptr_array_add(origins, origin);
    else
        duet__origin_free(origin);
    return error;
}

static int add_new(const struct duet_curve *curve, const char *text,
                   const struct duet_platform *old, struct duet_calibration *out,
                   GPtrArray *origins, struct duet_message *message)
{
    const struct duet_curve *before = old != NULL ? counterpart(&old->calibration, curve) : NULL;
    GArray *points = g_array_new(FALSE, FALSE, sizeof(struct duet_point));
    struct duet__origin *origin = duet__origin_new(text);
    int error;

    if (curve->count > 0)
        g_array_append_vals(points, curve->points, (guint)curve->count);
    if (before != NULL)
        keep_points(before,
                    g_ptr_array_index(old->origins, (size_t)(before - old->calibration.curves)),
                    curve, points, origin);
    error = add(out, origins, curve, (const struct duet_point *)(void *)points->data, points->len,
                origin, message);
    g_array_unref(points);
    return error;
}

int duet__merge(const struct duet_calibration *new, const char *origin,
                const struct duet_platform *old, struct duet_calibration *out, GPtrArray *origins,
                struct duet_message *message)
{
    int error = DUET_OK;

    for (size_t i = 0; i < new->count &&error == DUET_OK; i++)
        error = add_new(&new->curves[i], origin, old, out, origins, message);
    for (size_t i = 0; old != NULL && i < old->calibration.count && error == DUET_OK; i++) {
        const struct duet_curve *curve = &old->calibration.curves[i];

        if (counterpart(new, curve) == NULL)
            error = add(out, origins, curve, curve->points, curve->count,
                        copy_origin(g_ptr_array_index(old->origins, i)), message);
    }
    return error;
}
