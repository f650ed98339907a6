/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of registered data in the host, to refuse overlaps. Tiles of one matrix interleave there
 * without overlapping, so that their spans do not decide. Seen as a plane with as many bytes a
 * column as from one column of the matrix to the next, each tile is one rectangle, or two where it
 * goes on at the top of the next column. There is a plane for each such distance, and for
 * contiguous data one column as high as all memory.
 */
#include "core/internal.h"

/* Handles whose columns are equally far apart. registry_lock. */
struct region {
    struct region *next;
    uint64_t stride;    /* bytes from column to column; 0: contiguous */
    uint64_t low, high; /* bounds of all memory that ever was in it */
    uint64_t count;     /* number of areas in it */
    struct plane plane;
};

/*
 * Memory of an area: `cols` pieces of `bytes`, `stride` bytes from one to the next, or one piece.
 */
struct memory {
    uint64_t first, bytes, cols, stride, end;
};

static struct memory memory_of(const struct duet_array *area)
{
    struct memory memory = {.first = (uintptr_t)area->data,
                            .bytes = area->rows * area->element_bytes,
                            .cols = area->cols,
                            .stride = area->ld * area->element_bytes};
    memory.end = memory.first + (memory.cols - 1) * memory.stride + memory.bytes;
    if (memory.bytes == memory.stride || memory.cols == 1)
        memory = (struct memory){memory.first, memory.end - memory.first, 1, 0, memory.end};
    return memory;
}

/*
 * Places a contiguous piece, or one of the same stride, in a plane. Returns the number of its
 * rectangles.
 */
static unsigned rectangles(uint64_t stride, const struct memory *memory, struct rectangle out[3])
{
    uint64_t first = memory->first, bytes = memory->bytes, cols = memory->cols;
    if (!stride) {
        out[0] = (struct rectangle){first, 0, bytes, 1};
        return 1;
    }
    uint64_t row = first % stride, col = first / stride;
    uint64_t top = bytes < stride - row ? bytes : stride - row, rest = bytes - top;
    unsigned count = 0;
    out[count++] = (struct rectangle){row, col, top, cols};
    if (rest >= stride) /* a contiguous piece: whole columns */
        out[count++] = (struct rectangle){0, col + 1, stride, rest / stride};
    if (rest % stride)
        out[count++] = (struct rectangle){0, col + 1 + rest / stride, rest % stride, cols};
    return count;
}

static const struct duet_handle *region_find(const struct region *region,
                                             const struct memory *memory)
{
    struct rectangle parts[3];
    unsigned count = rectangles(region->stride, memory, parts);
    const struct duet_handle *found = NULL;
    for (unsigned i = 0; i < count && !found; i++)
        found = duet__plane_find(&region->plane, parts[i]);
    return found;
}

/* Returns a handle of this region that shares memory with `wanted`, or NULL. */
static const struct duet_handle *region_overlap(const struct region *region,
                                                const struct memory *wanted)
{
    if (!region->count || wanted->first >= region->high || wanted->end <= region->low)
        return NULL;
    if (!wanted->stride || wanted->stride == region->stride)
        return region_find(region, wanted);
    /* mostly there is no other data between its columns */
    const struct memory span = {wanted->first, wanted->end - wanted->first, 1, 0, wanted->end};
    const struct duet_handle *found = region_find(region, &span);
    if (!found)
        return NULL;
    found = NULL;
    for (uint64_t col = 0; col < wanted->cols && !found; col++) {
        const struct memory piece = {wanted->first + col * wanted->stride, wanted->bytes, 1, 0, 0};
        found = region_find(region, &piece);
    }
    return found;
}

static struct region *region_of(struct duet_runtime *core, uint64_t stride)
{
    struct region *region = core->regions;
    while (region && region->stride != stride)
        region = region->next;
    if (region)
        return region;
    region = calloc(1, sizeof *region);
    if (region) {
        region->stride = stride;
        region->low = UINT64_MAX;
        region->next = core->regions;
        core->regions = region;
    }
    return region;
}

/* Removes the first `count` rectangles of a handle from its plane. */
static void rectangles_remove(struct region *region, const struct rectangle *parts, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        duet__plane_remove(&region->plane, parts[i]);
}

static bool region_enter(struct region *region, const struct memory *memory,
                         const struct duet_handle *handle)
{
    struct rectangle parts[3];
    unsigned count = rectangles(region->stride, memory, parts);
    for (unsigned i = 0; i < count; i++)
        if (!duet__plane_add(&region->plane, parts[i], handle)) {
            rectangles_remove(region, parts, i);
            return false;
        }
    region->low = memory->first < region->low ? memory->first : region->low;
    region->high = memory->end > region->high ? memory->end : region->high;
    region->count++;
    return true;
}

static int enter_area(struct duet_runtime *core, const struct duet_handle *handle,
                      const struct duet_array *area, struct duet_message *message)
{
    const struct memory memory = memory_of(area);
    const struct duet_handle *found = NULL;
    for (const struct region *region = core->regions; region && !found; region = region->next)
        found = region_overlap(region, &memory);
    if (found)
        return duet_fail(message, DUET_EINVAL,
                         "data of %zu x %zu elements at %p shares memory with handle %llu, of %zu "
                         "x %zu elements at %p: register it once, and cut it into parts (duet_cut)",
                         area->rows, area->cols, area->data, (unsigned long long)found->id,
                         found->rows, found->cols, found->data);
    struct region *region = region_of(core, memory.stride);
    if (!region || !region_enter(region, &memory, handle))
        return duet_fail(message, DUET_ENOMEM, "no memory left for another handle");
    return DUET_OK;
}

/* Removes the first `count` areas of a handle. registry_lock is held. */
static void region_leave(struct duet_runtime *core, const struct duet_handle *handle,
                         unsigned count)
{
    while (count-- > 0) {
        struct rectangle parts[3];
        const struct duet_array area = duet__area(handle, count);
        const struct memory memory = memory_of(&area);
        if (!area.data)
            continue;
        struct region *region = region_of(core, memory.stride);
        rectangles_remove(region, parts, rectangles(region->stride, &memory, parts));
        region->count--;
    }
}

int duet__region_enter(struct duet_runtime *core, struct duet_handle *handle,
                       struct duet_message *message)
{
    const unsigned count = duet__area_count(handle);
    int error = DUET_OK;
    spin_lock(&core->registry_lock);
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet_array area = duet__area(handle, i);
        error = area.data ? enter_area(core, handle, &area, message) : DUET_OK;
        if (error)
            region_leave(core, handle, i);
    }
    handle->entered = !error;
    spin_unlock(&core->registry_lock);
    return error;
}

/* registry_lock is held. */
void duet__region_leave(struct duet_runtime *core, struct duet_handle *handle)
{
    region_leave(core, handle, duet__area_count(handle));
}

void duet__regions_fini(struct duet_runtime *core)
{
    while (core->regions) {
        struct region *next = core->regions->next;
        duet__plane_fini(&core->regions->plane);
        free(core->regions);
        core->regions = next;
    }
}
