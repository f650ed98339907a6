/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that is not one matrix. To the graph, the cache and policies it is so many bytes, like any
 * other; the rest is behind one pointer of its handle: its areas of the host's memory, the buffers
 * that kernels get, and the pieces of a copy.
 *
 * Objects of a program's own type: the host has the application's object, each device one of its
 * own, which is made anew from the registered one when a copy comes in, or a task only writes. Both
 * happen on the thread of the device's worker, and while nobody else uses that replica: it was not
 * valid, or is about to be overwritten by the holder of the granted access.
 */
#include "core/internal.h"

enum kind { PLANES, ARRAYS, OWN };

/* A matrix in the host's memory, and its offset in the data on a device. */
struct area {
    struct duet_array array;
    uint64_t offset;
};

struct layout {
    enum kind kind;
    size_t planes, plane; /* only of a block */
    struct duet_type type;
    char *objects; /* objects by node; the host's is as registered */
    unsigned count, capacity;
    struct area *areas;
};

enum { ARRAYS_MAX = 1024 };

/* ------------------------------------------------------------------------------------------- */
/* Areas                                                                                        */

static bool add_area(struct layout *layout, const struct duet_array *array, uint64_t offset)
{
    if (layout->count == layout->capacity) {
        unsigned capacity = layout->capacity ? 2 * layout->capacity : 4;
        struct area *areas = realloc(layout->areas, capacity * sizeof *areas);
        if (!areas)
            return false;
        layout->areas = areas;
        layout->capacity = capacity;
    }
    layout->areas[layout->count++] = (struct area){*array, offset};
    return true;
}

static struct duet_array matrix_of(const struct duet_handle *handle)
{
    return (struct duet_array){handle->data, handle->rows, handle->cols, handle->ld,
                               handle->element_bytes};
}

unsigned duet__area_count(const struct duet_handle *handle)
{
    return handle->layout ? handle->layout->count : 1;
}

struct duet_array duet__area(const struct duet_handle *handle, unsigned index)
{
    return handle->layout ? handle->layout->areas[index].array : matrix_of(handle);
}

unsigned duet__areas_placed(const struct duet_handle *handle)
{
    unsigned placed = 0;
    for (unsigned i = 0; i < duet__area_count(handle); i++)
        placed += duet__area(handle, i).data != NULL;
    return placed;
}

void duet__be_placed(struct duet_handle *handle)
{
    struct layout *layout = handle->layout;
    handle->temporary = true;
    handle->ld = handle->rows;
    if (!layout)
        return;
    layout->plane = handle->rows * handle->cols;
    for (unsigned i = 0; i < layout->count; i++)
        layout->areas[i].array.ld = layout->areas[i].array.rows;
}

/* Places the areas at `memory`; NULL: they have no address again. */
void duet__layout_place(struct duet_handle *handle, void *memory)
{
    const struct layout *layout = handle->layout;
    for (unsigned i = 0; i < layout->count; i++)
        layout->areas[i].array.data = memory ? (char *)memory + layout->areas[i].offset : NULL;
}

/* Copies a layout for another core, without addresses. NULL: no memory. */
static struct layout *layout_like(const struct layout *like, unsigned nodes)
{
    struct layout *layout = calloc(1, sizeof *layout);
    if (!layout)
        return NULL;
    *layout = *like;
    layout->capacity = layout->count;
    layout->areas = calloc(like->count, sizeof *like->areas);
    layout->objects = like->objects ? calloc(nodes, like->type.object_bytes) : NULL;
    if (!layout->areas || (like->objects && !layout->objects)) {
        duet__layout_free(layout);
        return NULL;
    }
    for (unsigned i = 0; i < like->count; i++) {
        layout->areas[i] = like->areas[i];
        layout->areas[i].array.data = NULL;
    }
    if (like->objects)
        memcpy(layout->objects, like->objects, like->type.object_bytes);
    return layout;
}

int duet__handle_like(struct duet_runtime *core, const struct duet_handle *like, bool valid,
                      struct duet_handle **out)
{
    const bool own = like->layout && like->layout->kind == OWN;
    *out = NULL;
    if (like->of || (core->computes && (valid || own)))
        return duet__refuse(core, DUET_EINVAL,
                            "there can be nothing like handle %llu here: it is %s",
                            (unsigned long long)like->id,
                            like->of ? "a part" : "at no address, and this computes");
    struct layout *layout =
        like->layout ? layout_like(like->layout, core->machine.node_count) : NULL;
    struct duet_handle *handle = NULL;
    if (layout || !like->layout)
        handle =
            duet__handle_new(core, NULL, like->rows, like->cols, like->ld, like->element_bytes);
    if (!handle) {
        duet__layout_free(layout);
        return duet__refuse(core, DUET_ENOMEM, "no memory left for another handle");
    }
    handle->layout = layout;
    handle->bytes = like->bytes;
    handle->slab_bytes = like->slab_bytes;
    atomic_fetch_add_explicit(&core->registered_bytes, handle->bytes, memory_order_relaxed);
    if (!valid)
        duet__handle_elsewhere(core, handle);
    *out = handle;
    return DUET_OK;
}

void duet__layout_free(struct layout *layout)
{
    if (!layout)
        return;
    free(layout->objects);
    free(layout->areas);
    free(layout);
}

static uint64_t array_bytes(const struct duet_array *array)
{
    return (uint64_t)array->rows * array->cols * array->element_bytes;
}

/* ------------------------------------------------------------------------------------------- */
/* Objects                                                                                      */

static void *object_of(const struct duet_handle *handle, unsigned node)
{
    const struct layout *layout = handle->layout;
    return node == DUET_HOST ? handle->data : layout->objects + node * layout->type.object_bytes;
}

/* Returns the object of a device, as it was registered, with its data at `memory`. */
static void *object_place(const struct duet_handle *handle, unsigned node, void *memory)
{
    const struct layout *layout = handle->layout;
    void *object = object_of(handle, node);
    if (node != DUET_HOST) {
        memcpy(object, layout->objects, layout->type.object_bytes);
        layout->type.place(object, memory);
    }
    return object;
}

struct duet_pieces {
    duet__piece_fn give;
    void *arg;
    const char *memory; /* memory of the device, in which one end of each piece lies */
    uint64_t bytes;
    bool in;   /* pieces go into `memory` */
    int error; /* the first error */
};

void duet_add_piece(struct duet_pieces *pieces, void *to, const void *from, size_t bytes)
{
    const struct duet__piece piece = {.to = to,
                                      .from = from,
                                      .column_bytes = bytes,
                                      .cols = 1,
                                      .to_pitch = bytes,
                                      .from_pitch = bytes};
    uintptr_t at = (uintptr_t)(pieces->in ? to : from) - (uintptr_t)pieces->memory;
    if (pieces->error || !bytes)
        return;
    bool within = at <= pieces->bytes && bytes <= pieces->bytes - at;
    pieces->error = within ? pieces->give(pieces->arg, &piece) : DUET_EINVAL;
}

/* ------------------------------------------------------------------------------------------- */
/* Copies                                                                                       */

/* Sets the rows of a triangle; the other elements are not copied. */
static void set_slant(struct duet__piece *piece, const struct duet_handle *handle)
{
    size_t first, end, next_first, next_end;
    if (handle->shape == FULL)
        return;
    duet__shape_column(handle->shape, handle->rows, 0, &first, &end);
    duet__shape_column(handle->shape, handle->rows, 1, &next_first, &next_end);
    piece->first = first * handle->element_bytes;
    piece->end = end * handle->element_bytes;
    piece->first_step = (next_first - first) * handle->element_bytes;
    piece->end_step = (next_end - end) * handle->element_bytes;
}

/* Returns one end of a matrix: without gaps in `memory` of a device; NULL: in the host's. */
static void *end_of(const struct duet_array *array, void *memory, uint64_t offset, size_t *pitch)
{
    *pitch = (memory ? array->rows : array->ld) * array->element_bytes;
    return memory ? (char *)memory + offset : array->data;
}

/* Gives the pieces of a copy between places on devices, or (NULL) in the host's memory. */
static int give_areas(const struct duet_handle *handle, void *from, void *to, duet__piece_fn give,
                      void *arg)
{
    const struct layout *layout = handle->layout;
    int error = DUET_OK;
    for (unsigned i = 0; i < duet__area_count(handle) && !error; i++) {
        /* an address is read only where it is needed: another thread may write it now */
        const struct duet_array one = layout ? (struct duet_array){NULL} : matrix_of(handle);
        const struct duet_array *array = layout ? &layout->areas[i].array : &one;
        const uint64_t offset = layout ? layout->areas[i].offset : 0;
        struct duet__piece piece = {.column_bytes = array->rows * array->element_bytes,
                                    .cols = array->cols};
        piece.from = end_of(array, from, offset, &piece.from_pitch);
        piece.to = end_of(array, to, offset, &piece.to_pitch);
        set_slant(&piece, handle);
        error = give(arg, &piece);
    }
    return error;
}

int duet__copy_pieces(const struct duet__copy *copy, void *source, void *destination,
                      duet__piece_fn give, void *arg)
{
    const struct duet_handle *handle = copy->handle;
    const struct layout *layout = handle->layout;
    char *from = copy->source == DUET_HOST ? NULL : (char *)source + copy->source_offset;
    char *to =
        copy->destination == DUET_HOST ? NULL : (char *)destination + copy->destination_offset;
    if (layout && layout->kind == OWN) {
        struct duet_pieces pieces = {give, arg, to ? to : from, handle->bytes, to != NULL, 0};
        layout->type.copy(object_of(handle, copy->source),
                          object_place(handle, copy->destination, to), &pieces);
        return pieces.error;
    }
    return give_areas(handle, from, to, give, arg);
}

/* the data of a registered object stays at its place */
int duet__handle_pieces(const struct duet_handle *handle, duet__piece_fn give, void *arg)
{
    return give_areas(handle, NULL, NULL, give, arg);
}

/* ------------------------------------------------------------------------------------------- */
/* Buffers of kernels */

static unsigned buffers_of(const struct duet_handle *handle)
{
    const struct layout *layout = handle->layout;
    return layout && layout->kind == ARRAYS ? layout->count : 1;
}

size_t duet__task_buffer_count(const struct duet_task *task)
{
    size_t count = 0;
    for (unsigned i = 0; i < task->access_count; i++)
        count += buffers_of(task->accesses[i].handle);
    return count;
}

/* Returns a matrix as a buffer, at its place in the memory of a device, or the host's (NULL). */
static struct duet_buffer buffer_of(const struct duet_array *array, void *memory, uint64_t offset)
{
    size_t ld = memory ? array->rows : array->ld;
    return (struct duet_buffer){.data = memory ? (char *)memory + offset : array->data,
                                .rows = array->rows,
                                .cols = array->cols,
                                .ld = ld,
                                .element_bytes = array->element_bytes,
                                .planes = 1,
                                .plane = ld * array->cols};
}

/*
 * Returns the index-th buffer of an access, whose data is at `memory` on a device, or in the host's
 * (NULL).
 */
static struct duet_buffer buffer_at(const struct access *access, unsigned node, void *memory,
                                    unsigned index)
{
    const struct duet_handle *handle = access->handle;
    const struct layout *layout = handle->layout;
    if (layout && layout->kind == ARRAYS)
        return buffer_of(&layout->areas[index].array, memory, layout->areas[index].offset);
    const struct duet_array array = matrix_of(handle);
    struct duet_buffer buffer = buffer_of(&array, memory, 0);
    if (layout && layout->kind == PLANES) {
        buffer.planes = layout->planes;
        buffer.plane = memory ? buffer.plane : layout->plane;
    } else if (layout) {
        bool only_writes = access->mode && !(access->mode & DUET_R);
        buffer.data = only_writes ? object_place(handle, node, memory) : object_of(handle, node);
    }
    return buffer;
}

void duet__laid_buffers(const struct duet_task *task, unsigned node, void *base,
                        struct duet_buffer *out)
{
    for (unsigned i = 0; i < task->access_count; i++) {
        const struct access *access = &task->accesses[i];
        const struct duet_handle *handle = access->handle;
        void *memory = NULL;
        if (node != DUET_HOST)
            memory = (char *)base + handle->replicas[node]->block->offset;
        for (unsigned index = 0; index < buffers_of(handle); index++)
            *out++ = buffer_at(access, node, memory, index);
    }
}

const char *duet__no_matrix(const struct duet_handle *handle)
{
    static const char *const names[] = {[PLANES] = "a block of several planes",
                                        [ARRAYS] = "several arrays",
                                        [OWN] = "of a program's own type"};
    return handle->layout ? names[handle->layout->kind] : NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Registering                                                                                  */

/*
 * Makes a handle with a layout, which it owns from then on. `seen` describes it as a matrix, `room`
 * is its size on a device. layout NULL or `failed`: there was no memory for it.
 */
static int register_layout(struct duet_runtime *runtime, struct layout *layout, bool failed,
                           const struct duet_array *seen, uint64_t bytes, uint64_t room,
                           struct duet_handle **out)
{
    struct duet_handle *handle = NULL;
    if (layout && !failed)
        handle = duet__handle_new(runtime, seen->data, seen->rows, seen->cols, seen->ld,
                                  seen->element_bytes);
    if (!handle) {
        duet__layout_free(layout);
        return duet__refuse(runtime, DUET_ENOMEM, "no memory left for another handle");
    }
    /* it is on core->handles already, but threads that walk these read none of these fields */
    handle->layout = layout;
    handle->bytes = bytes;
    handle->slab_bytes = slab_round(room);
    int error = duet__handle_register(runtime, handle);
    if (!error)
        *out = handle;
    return error;
}

static struct layout *layout_new(enum kind kind)
{
    struct layout *layout = calloc(1, sizeof *layout);
    if (layout)
        layout->kind = kind;
    return layout;
}

/* Adds as few areas as possible: columns or planes that follow each other evenly are one. */
static bool add_planes(struct layout *layout, const struct duet_array *first)
{
    const size_t planes = layout->planes, plane = layout->plane;
    const struct duet_array *f = first;
    if (plane == f->ld * f->cols || f->cols == 1)
        return add_area(layout,
                        &(struct duet_array){f->data, f->rows, f->cols * planes,
                                             f->cols == 1 ? plane : f->ld, f->element_bytes},
                        0);
    if (f->ld == f->rows)
        return add_area(layout,
                        &(struct duet_array){f->data, f->rows * f->cols, planes, plane,
                                             f->element_bytes},
                        0);
    bool good = true;
    for (size_t k = 0; k < planes && good; k++) {
        struct duet_array array = *f;
        array.data = f->data ? (char *)f->data + k * plane * f->element_bytes : NULL;
        good = add_area(layout, &array, k * array_bytes(f));
    }
    return good;
}

int duet_register_block(struct duet_runtime *runtime, void *data, size_t rows, size_t cols,
                        size_t planes, size_t ld, size_t plane, size_t element_bytes,
                        struct duet_handle **out)
{
    const struct duet_array first = {data, rows, cols, ld, element_bytes};
    *out = NULL;
    int error = duet__shape_check(runtime, rows, cols, ld, element_bytes);
    if (!error)
        error = duet__address_check(runtime, &first);
    if (error)
        return error;
    if (planes == 0 || planes > UINT32_MAX || plane < ld * cols ||
        plane > SIZE_MAX / 4 / element_bytes / planes)
        return duet__refuse(runtime, DUET_EINVAL,
                            "cannot register a block of %zu x %zu x %zu elements, with %zu from "
                            "plane to plane and a leading dimension of %zu: planes must not "
                            "overlap, or exceed the address space",
                            rows, cols, planes, plane, ld);
    struct layout *layout = layout_new(PLANES);
    bool failed = !layout;
    if (layout) {
        layout->planes = planes;
        layout->plane = plane;
        failed = !add_planes(layout, &first);
    }
    uint64_t bytes = array_bytes(&first) * planes;
    return register_layout(runtime, layout, failed, &first, bytes, bytes, out);
}

int duet_register_arrays(struct duet_runtime *runtime, const struct duet_array *arrays,
                         size_t count, struct duet_handle **out)
{
    *out = NULL;
    if (!arrays || count == 0 || count > ARRAYS_MAX)
        return duet__refuse(runtime, DUET_EINVAL,
                            "a handle has 1 to %d arrays, and these are %zu at %p", ARRAYS_MAX,
                            arrays ? count : 0, (const void *)arrays);
    struct layout *layout = layout_new(ARRAYS);
    uint64_t bytes = 0, room = 0;
    bool failed = !layout;
    int error = DUET_OK;
    for (size_t i = 0; i < count && !failed && !error; i++) {
        const struct duet_array *array = &arrays[i];
        error =
            duet__shape_check(runtime, array->rows, array->cols, array->ld, array->element_bytes);
        if (!error)
            error = duet__address_check(runtime, array);
        if (error)
            break;
        uint64_t offset = slab_round(room);
        failed = !add_area(layout, array, offset);
        bytes += array_bytes(array);
        room = offset + array_bytes(array);
    }
    if (error) {
        duet__layout_free(layout);
        return error;
    }
    return register_layout(runtime, layout, failed, &arrays[0], bytes, room, out);
}

/* Result of a type's own functions: the pieces of an object's data. */
struct survey {
    struct layout *layout;
    bool failed, nowhere;
};

static int see_piece(void *arg, const struct duet__piece *piece)
{
    struct survey *survey = arg;
    const struct duet_array array = {(void *)(uintptr_t)piece->from, piece->column_bytes, 1,
                                     piece->column_bytes, 1};
    if (!piece->from)
        survey->nowhere = true;
    else if (!add_area(survey->layout, &array, 0))
        survey->failed = true;
    return survey->failed ? DUET_ENOMEM : DUET_OK;
}

/*
 * Finds the pieces of an object by a copy to a device with a fictitious address, which is not
 * touched.
 */
static int survey_object(struct duet_runtime *runtime, struct survey *survey, const void *object,
                         size_t bytes)
{
    const struct duet_type *type = &survey->layout->type;
    void *memory = (void *)(uintptr_t)SLAB_ALIGN, *there = malloc(type->object_bytes);
    struct duet_pieces pieces = {see_piece, survey, memory, bytes, true, DUET_OK};
    if (!there)
        return DUET_ENOMEM;
    memcpy(there, object, type->object_bytes);
    type->place(there, memory);
    type->copy(object, there, &pieces);
    free(there);
    if (pieces.error == DUET_EINVAL)
        return duet__refuse(runtime, DUET_EINVAL,
                            "type %s: `copy` names a piece that goes beyond the %zu bytes that "
                            "`bytes` asks for, from where `place` puts them",
                            type->name, bytes);
    if (survey->nowhere && runtime->computes)
        return duet__refuse(runtime, DUET_EINVAL,
                            "type %s: `copy` names a piece at no address (NULL) of the object that "
                            "is registered: allocate its data first",
                            type->name);
    return DUET_OK;
}

int duet_register_object(struct duet_runtime *runtime, const struct duet_type *type, void *object,
                         struct duet_handle **out)
{
    *out = NULL;
    if (!type || !type->name || !type->object_bytes || !type->bytes || !type->place ||
        !type->copy || !object)
        return duet__refuse(
            runtime, DUET_EINVAL,
            "duet_register_object needs an object, and a type with all of its fields");
    const size_t bytes = type->bytes(object), object_bytes = type->object_bytes;
    if (bytes == 0 || bytes > SIZE_MAX / 4)
        return duet__refuse(runtime, DUET_EINVAL,
                            "type %s: an object of %zu bytes of data cannot be registered",
                            type->name, bytes);
    struct survey seen = {.layout = layout_new(OWN)};
    struct layout *layout = seen.layout;
    if (layout) {
        layout->type = *type;
        layout->objects = calloc(runtime->machine.node_count, object_bytes);
        if (layout->objects)
            memcpy(layout->objects, object, object_bytes);
        int error = layout->objects ? survey_object(runtime, &seen, object, bytes) : DUET_OK;
        if (error == DUET_EINVAL) {
            duet__layout_free(layout);
            return error;
        }
        seen.failed = error || seen.failed || !layout->objects;
    }
    const struct duet_array all = {object, 1, 1, 1, object_bytes};
    return register_layout(runtime, layout, seen.failed, &all, bytes, bytes, out);
}
