/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a matrix that a workload computes on: where its tiles lie, and what they are filled
 * with, which is a function of seed, row and column: the same on every machine and in every layout.
 */
#ifndef DUET_DATA_H
#define DUET_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>

/* What a matrix is filled with. */
enum duet__contents {
    DUET__ZEROS,
    DUET__RANDOM,    /* uniform in [-1/2, 1/2) */
    DUET__DOMINANT,  /* that, and as many as it has rows added to the diagonal */
    DUET__SPARSE,    /* the same in tiles that duet__sparse_tile has, zeros in others */
    DUET__SYMMETRIC, /* DUET__DOMINANT and symmetric, hence positive definite (PLASMA's plghe) */
};

/* A matrix; all but `memory` is the caller's to fill. */
struct duet__storage {
    uint64_t rows, cols;           /* elements */
    uint32_t tile_rows, tile_cols; /* of all tiles but the last of a column or row */
    size_t element_bytes;          /* 4 or 8; floating point unless filled with zeros */
    bool lower;                    /* the tiles above the diagonal are not there */
    bool whole;                    /* one column-major matrix with ld = rows, as LAPACK has it; else
                                      tile after tile, columns first, ld = rows of the tile */
    bool dealt; /* among nodes: no memory is used but for tiles that are written here */
    enum duet__contents contents;
    uint64_t key; /* what the random numbers are a function of (duet__data_key) */
    char *memory; /* aligned to 4,096 bytes */
};

/* Elements of the index-th of the pieces of length `tile` that `size` is cut into. */
size_t duet__piece(uint64_t size, uint32_t tile, uint32_t index);

/* The key of matrix number `matrix` of a problem with this seed. */
uint64_t duet__data_key(uint64_t seed, unsigned matrix);

/* Bytes of its memory. */
uint64_t duet__storage_bytes(const struct duet__storage *storage);

/*
 * Memory for so many bytes, untouched, in large pages where the system has some: with small ones
 * memory is slower. NULL where there is none; free.
 */
void *duet__pages_allocate(uint64_t bytes);

/* Allocates the memory, untouched. DUET_ENOMEM with a message that says how many bytes. */
DUET_MUST_CHECK int duet__storage_allocate(struct duet__storage *storage,
                                           struct duet_message *message);

/* Frees the memory. Safe on a zeroed storage, and twice. */
void duet__storage_free(struct duet__storage *storage);

/* Where the tile at row i, column j of the grid begins; *ld: its leading dimension, elements. */
void *duet__storage_tile(const struct duet__storage *storage, uint32_t i, uint32_t j, size_t *ld);

/* Returns a tile of the storage as the buffer that a kernel gets. */
struct duet_buffer duet__storage_view(const struct duet__storage *storage, uint32_t i, uint32_t j);

/* Where the element at row i, column j lies: for checks, not for speed. */
void *duet__storage_at(const struct duet__storage *storage, uint64_t i, uint64_t j);

/* The value of that element, of floating point. */
double duet__storage_value(const struct duet__storage *storage, uint64_t i, uint64_t j);

/*
 * Has a sparse matrix tile (i,j)? The pattern of sparselu in the Barcelona OpenMP Tasks Suite
 * (Duran et al., ICPP 2009): three diagonals, and of the tiles with two even numbers those whose
 * smaller number is a multiple of 3.
 */
bool duet__sparse_tile(uint64_t i, uint64_t j);

/* The value that duet__storage_fill gives to element (i, j), whatever its memory holds now. */
double duet__storage_initial(const struct duet__storage *storage, uint64_t i, uint64_t j);

/* The same for `count` rows of column j from row i on. */
void duet__storage_initial_column(const struct duet__storage *storage, uint64_t i, uint64_t j,
                                  size_t count, double *out);

/* Whether tile (i,j) is wanted. Called by several threads at once. */
typedef bool duet__tile_fn(const void *self, uint32_t i, uint32_t j);

/* Writes the initial values of every tile that there is and that is wanted; NULL: all are. */
void duet__storage_fill(const struct duet__storage *storage, duet__tile_fn *wanted,
                        const void *self);

/* Writes `count` values to `data` as elements of element_bytes. */
void duet__store_values(void *data, const double *values, size_t count, size_t element_bytes);

#endif
