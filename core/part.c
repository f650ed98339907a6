/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of data: windows of a handle that do not overlap, each a handle of its own. An application
 * cuts its data (cut.c), a task that expands the data of its accesses (expand.c).
 */
#include "core/internal.h"

enum { PARTS_MAX = 32767 }; /* parts of a cut: one task accesses those of two cuts */

struct parts *duet__parts_new(struct duet_handle *whole, struct duet_expansion *expansion)
{
    struct parts *parts = calloc(1, sizeof *parts);
    if (parts) {
        parts->whole = whole;
        parts->expansion = expansion;
    }
    return parts;
}

static bool lies_within(const struct duet_part *part, const struct duet_handle *whole)
{
    return part->rows && part->cols && part->row < whole->rows && part->col < whole->cols &&
           part->rows <= whole->rows - part->row && part->cols <= whole->cols - part->col;
}

static struct rectangle rectangle_of(const struct duet_part *part)
{
    return (struct rectangle){part->row, part->col, part->rows, part->cols};
}

static int check_part(const struct parts *parts, const struct duet_part *part,
                      struct duet_message *message)
{
    const struct duet_handle *whole = parts->whole, *other;
    if (whole->layout)
        return duet_fail(message, DUET_EINVAL, "handle %llu is %s, which cannot be cut",
                         (unsigned long long)whole->id, duet__no_matrix(whole));
    if (!lies_within(part, whole))
        return duet_fail(message, DUET_EINVAL,
                         "a part of %zu x %zu at (%zu, %zu) does not lie within its whole, which "
                         "has %zu x %zu",
                         part->rows, part->cols, part->row, part->col, whole->rows, whole->cols);
    if (whole->shape != FULL)
        return duet_fail(message, DUET_EINVAL, "a triangle or a diagonal cannot be cut further");
    other = duet__plane_find(&parts->plane, rectangle_of(part));
    if (other)
        return duet_fail(message, DUET_EINVAL,
                         "a part of %zu x %zu at (%zu, %zu) overlaps an earlier one of %zu x %zu "
                         "at (%zu, %zu)",
                         part->rows, part->cols, part->row, part->col, other->rows, other->cols,
                         other->row, other->col);
    if (parts->count == PARTS_MAX)
        return duet_fail(message, DUET_EINVAL, "more than %d parts of one handle", PARTS_MAX);
    return DUET_OK;
}

/* Makes room for one more part. */
static bool reserve_part(struct parts *parts)
{
    if (parts->count < parts->capacity)
        return true;
    unsigned capacity = parts->capacity ? 2 * parts->capacity : 16;
    struct duet_handle **handles = realloc(parts->handles, capacity * sizeof *handles);
    if (!handles)
        return false;
    parts->handles = handles;
    parts->capacity = capacity;
    return true;
}

void duet__shape_column(enum shape shape, size_t rows, size_t col, size_t *first, size_t *end)
{
    bool below = shape == LOWER || shape == STRICTLY_LOWER;
    bool above = shape == UPPER || shape == STRICTLY_UPPER;
    *first = below || shape == DIAGONAL ? col + (shape == STRICTLY_LOWER) : 0;
    *end = above || shape == DIAGONAL ? col + (shape != STRICTLY_UPPER) : rows;
}

/*
 * Sets the shape of a part. A device has room for the whole square; only elements of the part are
 * copied.
 */
static void set_shape(struct duet_handle *handle, enum shape shape)
{
    uint64_t n = handle->rows, elements = n * handle->cols;
    if (shape == LOWER || shape == UPPER)
        elements = n * (n + 1) / 2;
    else if (shape == STRICTLY_LOWER || shape == STRICTLY_UPPER)
        elements = n * (n - 1) / 2;
    else if (shape == DIAGONAL)
        elements = n;
    handle->shape = (uint8_t)shape;
    handle->bytes = elements * handle->element_bytes;
}

int duet__part_add(struct duet_runtime *core, struct parts *parts, const struct duet_part *part,
                   enum shape shape, struct duet_message *message)
{
    const struct duet_handle *whole = parts->whole;
    int error = check_part(parts, part, message);
    if (error)
        return error;
    size_t first = (part->row + part->col * whole->ld) * whole->element_bytes;
    void *data = whole->data ? (char *)whole->data + first : NULL;
    struct duet_handle *handle = NULL;
    if (reserve_part(parts))
        handle =
            duet__handle_new(core, data, part->rows, part->cols, whole->ld, whole->element_bytes);
    /* parts of a cut into triangles share a square, in which they do not overlap */
    if (!handle || (shape == FULL && !duet__plane_add(&parts->plane, rectangle_of(part), handle))) {
        if (handle)
            duet__handle_remove(core, handle);
        return duet_fail(message, DUET_ENOMEM, "no memory left for another part");
    }
    handle->of = parts;
    set_shape(handle, shape);
    handle->row = part->row;
    handle->col = part->col;
    parts->handles[parts->count++] = handle;
    parts->bytes += handle->bytes;
    return DUET_OK;
}

/* Frees the record alone: its handles are freed, or will be. */
static struct parts *parts_free(struct parts *parts)
{
    struct parts *next = parts->next;
    duet__plane_fini(&parts->plane);
    free(parts->handles);
    free(parts);
    return next;
}

struct parts *duet__parts_remove(struct duet_runtime *core, struct parts *parts)
{
    for (unsigned i = 0; i < parts->count; i++) {
        struct duet_handle *part = parts->handles[i];
        while (part->cuts)
            part->cuts = duet__parts_remove(core, part->cuts);
        duet__handle_remove(core, part);
    }
    return parts_free(parts);
}

void duet__cuts_fini(struct duet_handle *handle)
{
    while (handle->cuts)
        handle->cuts = parts_free(handle->cuts);
}
