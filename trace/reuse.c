/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinates of tasks, from which of them use the same data. */
#include "trace/bounds.h"

#include <math.h>
#include <string.h>

#include <glib.h>

#include <duet/random.h>

enum { PLANES = 3 };

/* A task: numbers of the data that it uses, and later its coordinates. */
struct point {
    uint32_t at[PLANES];
};

/* ------------------------------------------------------------------------------------------- */
/* Coordinates that are the same                                                                */

static uint32_t root(uint32_t *parents, uint32_t node)
{
    while (parents[node] != node)
        node = parents[node] = parents[parents[node]];
    return node;
}

/*
 * Each datum has two coordinates, of their own in each plane or, `one`, the same in all: of the
 * planes i k, j k and i j. A coordinate of a task is that of two of its data.
 */
static uint32_t *place(uint32_t *parents, const struct point *point, unsigned axis, bool other,
                       bool one)
{
    static const uint8_t planes[PLANES][2] = {{0, 2}, {1, 2}, {0, 1}},
                         seconds[PLANES][2] = {{0, 0}, {0, 1}, {1, 1}};
    const unsigned plane = planes[axis][other];
    return &parents[root(parents, 2 * (one ? point->at[plane] : PLANES * point->at[plane] + plane) +
                                      seconds[axis][other])];
}

/* Returns how many points are at one place at most. */
static double most_together(const struct point *points, uint32_t count)
{
    size_t size = 2;
    double most = 0;
    while (size < 2 * (size_t)count)
        size *= 2;
    struct place {
        uint32_t point, count;
    } *places = g_new0(struct place, size); /* a hash table */
    for (uint32_t p = 0; p < count; p++) {
        const uint32_t *at = points[p].at;
        const uint64_t both = (uint64_t)at[0] << 32 | at[1];
        size_t place = duet_random_stream(both, at[2]) & (size - 1);
        while (places[place].count &&
               memcmp(&points[places[place].point], &points[p], sizeof *points) != 0)
            place = (place + 1) & (size - 1);
        places[place].point = p;
        most = fmax(most, ++places[place].count);
    }
    g_free(places);
    return most;
}

/* Tasks that are at one place at most, of which the points become the coordinates. `one`: places
   without regard to order; INFINITY where not all have three different coordinates. */
static double crowd(GArray *points, size_t datum_count, bool one)
{
    struct point *all = (void *)points->data;
    const size_t nodes = datum_count * 2 * (one ? 1 : PLANES);
    uint32_t *parents = g_new(uint32_t, nodes + 1);
    for (uint32_t i = 0; i < nodes; i++)
        parents[i] = i;
    for (guint p = 0; p < points->len; p++)
        for (unsigned axis = 0; axis < PLANES; axis++)
            *place(parents, &all[p], axis, false, one) = *place(parents, &all[p], axis, true, one);
    for (guint p = 0; p < points->len; p++) {
        const struct point data = all[p];
        uint32_t *at = all[p].at;
        for (unsigned axis = 0; axis < PLANES; axis++)
            at[axis] = *place(parents, &data, axis, false, one);
        if (one && (at[0] == at[1] || at[1] == at[2] || at[0] == at[2])) {
            g_free(parents);
            return INFINITY;
        }
        if (one)
            all[p] = (struct point){{MIN(MIN(at[0], at[1]), at[2]), MAX(MAX(at[0], at[1]), at[2]),
                                     at[0] ^ at[1] ^ at[2]}};
    }
    g_free(parents);
    return most_together(all, points->len);
}

/* ------------------------------------------------------------------------------------------- */
/* Measures of three of the tasks' data                                                         */

/* The tasks that use data in the first accesses but number `without`. */
static GArray *take_points(const struct duet__entered *entered, uint32_t klass, unsigned without,
                           const double *bytes)
{
    GArray *points = g_array_new(FALSE, FALSE, sizeof(struct point));
    for (size_t i = 0; i < entered->task_count; i++) {
        struct point point;
        unsigned number = 0, taken = 0;
        if (entered->tasks[i].klass != klass)
            continue;
        for (uint32_t u = i ? entered->tasks[i - 1].end : 0;
             u < entered->tasks[i].end && taken < PLANES; u++) {
            const uint32_t use = entered->uses[u], datum = use >> DUET__USE_BITS;
            if (use & DUET__USE_TASK || number++ == without)
                continue;
            if (!(bytes[datum] > 0))
                break;
            point.at[taken++] = datum;
        }
        if (taken == PLANES)
            g_array_append_val(points, point);
    }
    return points;
}

/* Returns the factor of m^1.5 that bounds the points of m data, shared best among the planes: only
   planes that have no datum in common share them. */
static double overlap(const GArray *points, size_t datum_count)
{
    static const double factors[] = {DUET__REUSE_LEAST, 0.38490017945975052, 0.5, 1};
    uint8_t *planes = g_new0(uint8_t, datum_count + 1);
    bool common[8] = {false};
    for (guint p = 0; p < points->len; p++)
        for (unsigned i = 0; i < PLANES; i++)
            planes[g_array_index(points, struct point, p).at[i]] |= (uint8_t)(1 << i);
    for (size_t d = 0; d < datum_count; d++)
        common[planes[d]] = true;
    g_free(planes);
    return factors[(common[3] | common[7]) + (common[5] | common[7]) + (common[6] | common[7])];
}

static struct duet__reuse measure(const struct duet__entered *entered, uint32_t klass,
                                  unsigned without, const double *bytes)
{
    static const double triangles = 0.47140452079103168; /* sqrt(2) / 3 */
    const size_t count = entered->datum_count;
    g_autoptr(GArray) points = take_points(entered, klass, without, bytes);
    g_autoptr(GArray) again = g_array_copy(points);
    struct duet__reuse reuse = {.tasks = points->len, .bytes = INFINITY};
    for (guint p = 0; p < PLANES * points->len; p++)
        reuse.bytes = fmin(reuse.bytes, bytes[((const uint32_t *)(const void *)points->data)[p]]);
    reuse.factor = overlap(points, count) * crowd(points, count, false);
    if (reuse.factor > triangles)
        reuse.factor = fmin(reuse.factor, triangles * crowd(again, count, true));
    return reuse;
}

struct duet__reuse duet__reuse_find(const struct duet__entered *entered, uint32_t klass,
                                    const double *bytes)
{
    struct duet__reuse best = {0};
    double most = 0;
    for (unsigned without = 0; without <= PLANES; without++) {
        const struct duet__reuse own = measure(entered, klass, without, bytes);
        /* a measure of what has to be copied */
        const double copied = own.tasks > 0 ? own.tasks * pow(own.bytes, 1.5) / own.factor : 0;
        if (copied > most)
            best = own;
        most = fmax(most, copied);
    }
    return best;
}

double duet__reuse_copies(const struct duet__reuse *reuse, double room, double memories,
                          double *spare)
{
    const double data = floor(room / reuse->bytes);
    double most = 0, each = 0;
    *spare = 0;
    for (int power = -3; power <= 3; power++) {
        const double copies = ceil(ldexp(data + 1, power)),
                     tasks = floor(reuse->factor * pow(data + copies, 1.5) * (1 + 1e-12)),
                     sum = copies * (reuse->tasks / fmax(tasks, 1) - memories);
        if (!(sum > most))
            continue;
        most = sum;
        each = copies / fmax(tasks, 1);
        *spare = copies * memories;
    }
    return each;
}
