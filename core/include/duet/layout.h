/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that is not one matrix, as a handle: a block in three dimensions, several arrays, a type of
 * the program's own. Tasks use such handles like any other, and the application acquires and
 * unregisters them as always. They cannot be cut into parts or blocks, reduced, or given as
 * scratch. On GPUs, pages of theirs are page-locked only by duet_pin. The conventions are those of
 * duet/duet.h.
 */
#ifndef DUET_LAYOUT_H
#define DUET_LAYOUT_H

#include <duet/handles.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* exported by libduet, as nothing else is */

/*
 * Registers rows x cols x planes elements of `element_bytes`: element (i, j, k) is number
 * i + j * ld + k * plane from `data` on, with ld >= rows and plane >= ld * cols. Kernels get one
 * buffer, with its own `ld` and `plane`: on devices there are no gaps. Otherwise, and errors, as
 * duet_matrix.
 */
DUET_MUST_CHECK int duet_block(struct duet_runtime *runtime, void *data, size_t rows, size_t cols,
                               size_t planes, size_t ld, size_t plane, size_t element_bytes,
                               struct duet_handle **out);

/* One of several arrays: as the arguments of duet_matrix; of a vector cols is 1, ld is rows. */
struct duet_array {
    void *data;
    size_t rows, cols, ld, element_bytes;
};

/*
 * Registers `count` arrays (at most 1,024) as one handle: a sparse matrix in compressed rows is
 * three. What a task does to the handle, it may do to all of them. Kernels get a buffer for each,
 * in this order, so that the number of a buffer is no longer that of an access: those of an access
 * follow those of the accesses before it. On devices they lie in one piece of memory, each aligned
 * to 256 bytes. Errors as duet_matrix. duet_address is that of the first.
 */
DUET_MUST_CHECK int duet_arrays(struct duet_runtime *runtime, const struct duet_array *arrays,
                                size_t count, struct duet_handle **out);

struct duet_pieces; /* of a copy that is to be made */

/*
 * A type of the program's own: a struct, the *object*, with pointers to its data and what else
 * there is to know of it. On a device a kernel gets another object, whose pointers are valid there,
 * so that the same kernel may be used in all memories; with CUDA the object itself is in the host's
 * memory, and its pointers are the GPU's. The functions are called on any thread, inside of the
 * runtime: they neither call it nor touch the data, whose memory may be a device's.
 */
struct duet_type {
    const char *name;    /* in messages */
    size_t object_bytes; /* of an object; one may be copied by memcpy */
    /* Room for its data on a device, and what copying it counts as. Asked once. */
    size_t (*bytes)(const void *object);
    /* Points the pointers of an object, a copy of what was registered, to `memory`: that many
       bytes, aligned to 256. */
    void (*place)(void *object, void *memory);
    /* The data of `from` is to be copied to that of `to`: names each piece of it by duet_piece, and
       takes over what else has to be the same. Nobody else uses `to` meanwhile. */
    void (*copy)(const void *from, void *to, struct duet_pieces *pieces);
};

/* `bytes` are to be copied, after the function has returned, between places of the two objects. */
void duet_piece(struct duet_pieces *pieces, void *to, const void *from, size_t bytes);

/*
 * Registers an object, which stays the application's; kernels on CPUs get it itself, as
 * buffers[i].data, and duet_address is where it is. What a kernel changes in an object (not with
 * CUDA) goes along with its data. Where a task only writes (DUET_W), the object on a device is as
 * it was registered. All three functions are called once by this, also in simulations, and where
 * the data is in the host's memory may not change until it is unregistered. The type is copied.
 * Errors: DUET_EINVAL (something is missing, there are no bytes; pieces that are not within these,
 * are at no address although kernels compute, or share memory with another handle), DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet_data(struct duet_runtime *runtime, const struct duet_type *type,
                              void *object, struct duet_handle **out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
