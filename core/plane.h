/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rectangles that do not overlap, in a plane of rows and columns, and a search for one that
 * overlaps another. O(log n) for tiles, or anything else in which few strips meet. Strips
 * (rectangles with the same first column) are kept by columns, the rectangles of each by rows:
 * interval trees (Cormen et al., Introduction to Algorithms, 14.3) that are treaps (Aragon, Seidel,
 * FOCS 1989).
 */
#ifndef DUET_CORE_PLANE_H
#define DUET_CORE_PLANE_H

#include <stdbool.h>
#include <stdint.h>

struct strip;
struct chunk;

struct plane {
    struct strip *strips; /* NULL: there are no rectangles */
    struct strip *spare;  /* records to use again */
    struct chunk *chunks; /* memory of all records */
    uint64_t rng;         /* state for the treaps' priorities; any value */
};

struct rectangle {
    uint64_t row, col, rows, cols; /* sizes > 0 */
};

/* Returns the owner of a rectangle that overlaps `wanted`, or NULL. */
const void *duet__plane_find(const struct plane *plane, struct rectangle wanted);

/* Adds a rectangle that overlaps none. Returns false if there is no memory. */
bool duet__plane_add(struct plane *plane, struct rectangle added, const void *owner);

/* Removes a rectangle that was added. */
void duet__plane_remove(struct plane *plane, struct rectangle removed);

/* Frees all rectangles: the plane is then empty, and may be used again. */
void duet__plane_fini(struct plane *plane);

#endif
