/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rectangles that do not overlap, in a plane of rows and columns: which of them does another one
 * meet? O(log n) for what is laid out as tiles, or anything else in which few strips meet. Strips
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
    struct chunk *chunks; /* where all of them are */
    uint64_t rng;         /* of the treaps' priorities; any */
};

struct rectangle {
    uint64_t row, col, rows, cols; /* sizes > 0 */
};

/* What was added with a rectangle that this one meets; NULL: it meets none. */
const void *duet__plane_find(const struct plane *plane, struct rectangle wanted);

/* Adds a rectangle that meets none. false: no memory. */
bool duet__plane_add(struct plane *plane, struct rectangle added, const void *owner);

/* Takes out what was added. */
void duet__plane_remove(struct plane *plane, struct rectangle removed);

/* Frees what is left: the plane is empty then, and may be used again. */
void duet__plane_fini(struct plane *plane);

#endif
