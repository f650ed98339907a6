/* SPDX-License-Identifier: Apache-2.0 */
/* The slab of an emulated device: pages that hold NaNs until they are written. */
#ifndef DUET_EMULATED_MEMORY_H
#define DUET_EMULATED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>

enum { MEMORY_POISON = 0xff }; /* every byte: a NaN for float and double, -1 for integers */

/* A slab; zeroed with file -1: none. */
struct memory {
    unsigned char *base;
    size_t bytes;       /* requested size */
    size_t mapped;      /* size in whole pieces */
    size_t piece_bytes; /* size of the file of poison, which is mapped over and over, copied on
                           write */
    int file;           /* -1: address space only */
};

/*
 * Makes a slab of `bytes` > 0. Pages take memory only when they are written. `reserve`: addresses
 * alone, which may not be touched. DUET_ENOMEM with a message.
 */
DUET_MUST_CHECK int duet__memory_open(struct memory *memory, uint64_t bytes, bool reserve,
                                      struct duet_message *message);

/*
 * Poisons the slab again and frees its pages. It must be unused. Returns false if the system
 * refuses; contents are then unspecified.
 */
bool duet__memory_poison(struct memory *memory);

/* Unmaps the slab. Safe if open failed, and twice. */
void duet__memory_close(struct memory *memory);

/* True if `cols` columns of column_bytes, `pitch` apart, lie inside the slab from `at` on. */
bool duet__memory_holds(const struct memory *memory, const void *at, size_t column_bytes,
                        size_t cols, size_t pitch);

#endif
