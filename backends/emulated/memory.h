/* SPDX-License-Identifier: Apache-2.0 */
/* The slab of an emulated device: pages that hold NaNs until something is written to them. */
#ifndef DUET_EMULATED_MEMORY_H
#define DUET_EMULATED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>

enum { MEMORY_POISON = 0xff }; /* every byte: a NaN for float and double, -1 for integers */

/* Zeroed with file -1: none. */
struct memory {
    unsigned char *base;
    size_t bytes;       /* as asked for */
    size_t mapped;      /* that in whole pieces */
    size_t piece_bytes; /* of the file of poison, mapped over and over, copied on write */
    int file;           /* -1: address space only */
};

/*
 * Makes a slab of `bytes` > 0. Pages take memory only when they are written. `reserve`: addresses
 * alone, which nobody may touch. DUET_ENOMEM with a message.
 */
DUET_MUST_CHECK int duet__memory_open(struct memory *memory, uint64_t bytes, bool reserve,
                                      struct duet_message *message);

/*
 * Poisons it all again and gives its pages back. Nobody may be using it. Returns false if the
 * system refuses; contents are then unspecified.
 */
bool duet__memory_poison(struct memory *memory);

/* Unmaps it. Safe if open failed, and twice. */
void duet__memory_close(struct memory *memory);

/* true if `cols` columns of column_bytes, `pitch` apart, lie inside it from `at` on. */
bool duet__memory_holds(const struct memory *memory, const void *at, size_t column_bytes,
                        size_t cols, size_t pitch);

#endif
