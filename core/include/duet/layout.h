/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles for data that is not one matrix: a block in three dimensions, several arrays, a type of
 * the program's own. Tasks use such handles like any other, and the application acquires and
 * unregisters them as always. They cannot be cut into parts or blocks, reduced, or given as
 * scratch. Their pages are page-locked for GPUs only by duet_pin. The conventions are those of
 * duet/duet.h.
 */
#ifndef DUET_LAYOUT_H
#define DUET_LAYOUT_H

#include <duet/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Registers rows x cols x planes elements of `element_bytes`: element (i, j, k) is number i + j *
 * ld + k * plane from `data` on, with ld >= rows and plane >= ld * cols. Kernels get one buffer
 * with its own `ld` and `plane`: on devices there are no gaps. Everything else, and errors, as
 * duet_register_matrix.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_register_block(struct duet_runtime *runtime, void *data,
                                                    size_t rows, size_t cols, size_t planes,
                                                    size_t ld, size_t plane, size_t element_bytes,
                                                    struct duet_handle **out);

/* One of several arrays, in the terms of duet_register_matrix; a vector has cols = 1 and ld = rows.
 */
struct duet_array {
    void *data;
    size_t rows, cols, ld, element_bytes;
};

/*
 * Registers `count` arrays (at most 1,024) as one handle: a sparse matrix in compressed rows is
 * three. A task may access all of them in the mode of its access. Kernels get a buffer for each, in
 * this order, after the buffers of the accesses before: the number of a buffer is then not that of
 * an access. On devices they lie in one piece of memory, each aligned to 256 bytes. duet_address
 * returns that of the first. Errors as duet_register_matrix.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_register_arrays(struct duet_runtime *runtime,
                                                     const struct duet_array *arrays, size_t count,
                                                     struct duet_handle **out);

struct duet_pieces; /* a list of pieces that `copy` of struct duet_type makes */

/*
 * A type of the program's own: a struct, the *object*, with pointers to its data and other fields.
 * On a device a kernel gets another object, whose pointers are valid there, so that one kernel may
 * be used in all memories; with CUDA that object is in the host's memory, and its pointers are the
 * GPU's. The functions are called on any thread, inside of the runtime: they may neither call it
 * nor touch the data, whose memory may be a device's.
 */
struct duet_type {
    const char *name;    /* in messages */
    size_t object_bytes; /* size of an object, which memcpy may copy */
    /* Returns the room for its data on a device, which is also what a copy counts. Asked once. */
    size_t (*bytes)(const void *object);
    /* Sets the pointers of `object`, a copy of the registered one, into `memory`: so many bytes,
       aligned to 256. */
    void (*place)(void *object, void *memory);
    /* Names by duet_add_piece each piece of data to be copied from `from` to `to`, and copies other
       fields that have to be the same. Nobody else uses `to` meanwhile. */
    void (*copy)(const void *from, void *to, struct duet_pieces *pieces);
};

/* Adds a piece to a copy: `bytes` are copied between the two objects after `copy` has returned. */
DUET_EXPORT void duet_add_piece(struct duet_pieces *pieces, void *to, const void *from,
                                size_t bytes);

/*
 * Registers an object, which stays the application's. Kernels on CPUs get the object itself, as
 * buffers[i].data, and duet_address returns it. Changes that a kernel makes to fields of an object
 * (not with CUDA) travel with its data. A task that only writes (DUET_W) gets the object on a
 * device as it was registered. This calls all three functions once, also in simulations; the places
 * of the data in the host's memory may not change until it is unregistered. The type is copied.
 * Errors: DUET_EINVAL (something is missing, there are no bytes; pieces that are not within these,
 * have no address although kernels compute, or share memory with another handle), DUET_ENOMEM.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_register_object(struct duet_runtime *runtime,
                                                     const struct duet_type *type, void *object,
                                                     struct duet_handle **out);

#ifdef __cplusplus
}
#endif
#endif
