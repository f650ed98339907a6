/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a matrix that a workload computes on: the places of its tiles, and their contents,
 * which are a function of seed, row and column: the same on every machine and in every layout. */
#ifndef DUET_DATA_H
#define DUET_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>

/* Contents of a matrix. */
enum duet__contents {
    DUET__ZEROS,
    DUET__RANDOM,    /* uniform in [-1/2, 1/2) */
    DUET__DOMINANT,  /* random, with the number of rows added to the diagonal */
    DUET__SPARSE,    /* DUET__DOMINANT in tiles that duet__sparse_tile has, 0 in others */
    DUET__SYMMETRIC, /* DUET__DOMINANT and symmetric, hence positive definite (PLASMA's plghe) */
};

/* A matrix; the caller fills all members but `memory`. */
struct duet__storage {
    uint64_t rows, cols;                      /* elements */
    uint32_t tile_rows, tile_cols;            /* edges of tiles but the last in a column or row */
    size_t element_bytes;                     /* 4 or 8; floating point unless filled with zeros */
    bool lower;                               /* there are no tiles above the diagonal */
    bool (*is_there)(uint32_t i, uint32_t j); /* only these tiles have data, but all have memory;
                                                 NULL: all */
    bool whole; /* one column-major matrix with ld = rows, as in LAPACK; else
                   tile after tile, columns first, ld = rows of the tile */
    bool dealt; /* among nodes: only tiles written here use memory */
    enum duet__contents contents;
    uint64_t key; /* makes the random numbers (duet__data_key) */
    char *memory; /* aligned to 4,096 bytes */
};

/* Returns the elements of piece `index` if `size` is cut into pieces of `tile`. */
size_t duet__piece(uint64_t size, uint32_t tile, uint32_t index);

/* Returns the key of matrix number `matrix` of a problem with this seed. */
uint64_t duet__data_key(uint64_t seed, unsigned matrix);

/* Returns the bytes of its memory. */
uint64_t duet__storage_bytes(const struct duet__storage *storage);

/* Allocates memory, untouched, in large pages where the system has some: with small ones memory is
 * slower. NULL: none is left. Free with free. */
void *duet__pages_allocate(uint64_t bytes);

/* Allocates the memory, untouched. DUET_ENOMEM with a message that says how many bytes. */
DUET_MUST_CHECK int duet__storage_allocate(struct duet__storage *storage,
                                           struct duet_message *message);

/* Frees the memory. Safe on a zeroed storage, and twice. */
void duet__storage_free(struct duet__storage *storage);

/* Returns the first element of the tile at row i, column j of the grid; *ld: leading dimension in
 * elements. */
void *duet__storage_tile(const struct duet__storage *storage, uint32_t i, uint32_t j, size_t *ld);

/* Returns a tile of the storage as a buffer for kernels. */
struct duet_buffer duet__storage_view(const struct duet__storage *storage, uint32_t i, uint32_t j);

/* Returns the address of the element at row i, column j; slow, for checks. */
void *duet__storage_at(const struct duet__storage *storage, uint64_t i, uint64_t j);

/* Returns the value of the floating-point element at row i, column j. */
double duet__storage_value(const struct duet__storage *storage, uint64_t i, uint64_t j);

/* Returns the value that duet__storage_fill gives to element (i, j), whatever is stored now. */
double duet__storage_initial(const struct duet__storage *storage, uint64_t i, uint64_t j);

/* Returns these values for `count` rows of column j from row i on. */
void duet__storage_initial_column(const struct duet__storage *storage, uint64_t i, uint64_t j,
                                  size_t count, double *out);

/* True if tile (i,j) is to be filled. Called by several threads at once. */
typedef bool duet__tile_fn(const void *self, uint32_t i, uint32_t j);

/* Fills every existing tile for which `wanted` (NULL: all) is true with its initial values. */
void duet__storage_fill(const struct duet__storage *storage, duet__tile_fn *wanted,
                        const void *self);

/* Writes `count` values to `data` as elements of element_bytes. */
void duet__store_values(void *data, const double *values, size_t count, size_t element_bytes);

/* ------------------------------------------------------------------------------------------- */
/* Sharing the filling and judging of large data among all cores */

/* Does the part [first, end) of the work. */
typedef void duet__part_fn(void *self, uint64_t first, uint64_t end);

/*
 * Calls `run` for parts of [0, count), which together are all of it, on as many threads as this
 * process has cores; fewer if there are less than about a million of `elements` for each. Blocks
 * until all have ended. Parts must not write what others read or write. Never fails: parts for
 * which there is no thread run on the caller's.
 */
void duet__share(uint64_t count, uint64_t elements, duet__part_fn *run, void *self);

#endif
