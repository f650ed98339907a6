/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where registered data lies in the host's memory, to refuse what overlaps. Tiles of one matrix
 * interleave there without overlapping, so that their spans say nothing: seen as a plane with as
 * many bytes a column as from one column of the matrix to the next, each is one rectangle, or two
 * where it goes on at the top of the next column. There is a plane for each such distance, and one
 * column as high as all memory for what is contiguous.
 */
#include <stdlib.h>

#include "core/internal.h"

/* Handles whose columns are equally far apart; registry_lock. */
struct region {
    struct region *next;
    uint64_t stride;    /* bytes from column to column; 0: contiguous */
    uint64_t low, high; /* all that ever was in it */
    uint64_t count;     /* of what is */
    struct plane plane;
};

/* Memory of an area: `cols` pieces of `bytes`, from column to column `stride`, or one piece. */
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

/* A contiguous piece, or one of the same stride, in a plane. Returns how many rectangles it is. */
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
    if (rest >= stride) /* of a contiguous piece: whole columns */
        out[count++] = (struct rectangle){0, col + 1, stride, rest / stride};
    if (rest % stride)
        out[count++] = (struct rectangle){0, col + 1 + rest / stride, rest % stride, cols};
    return count;
}

static const struct duet_handle *find(const struct region *region, const struct memory *memory)
{
    struct rectangle parts[3];
    unsigned count = rectangles(region->stride, memory, parts);
    const struct duet_handle *found = NULL;
    for (unsigned i = 0; i < count && !found; i++)
        found = duet__plane_find(&region->plane, parts[i]);
    return found;
}

/* A handle of this region that shares memory with what is wanted, or NULL. */
static const struct duet_handle *meets(const struct region *region, const struct memory *wanted)
{
    if (!region->count || wanted->first >= region->high || wanted->end <= region->low)
        return NULL;
    if (!wanted->stride || wanted->stride == region->stride)
        return find(region, wanted);
    /* mostly there is nothing of another kind between its columns */
    const struct memory span = {wanted->first, wanted->end - wanted->first, 1, 0, wanted->end};
    const struct duet_handle *found = find(region, &span);
    if (!found)
        return NULL;
    found = NULL;
    for (uint64_t col = 0; col < wanted->cols && !found; col++) {
        const struct memory piece = {wanted->first + col * wanted->stride, wanted->bytes, 1, 0, 0};
        found = find(region, &piece);
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

/* Takes the first `count` rectangles of a handle out of its plane. */
static void take_out(struct region *region, const struct rectangle *parts, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        duet__plane_remove(&region->plane, parts[i]);
}

static bool enter(struct region *region, const struct memory *memory,
                  const struct duet_handle *handle)
{
    struct rectangle parts[3];
    unsigned count = rectangles(region->stride, memory, parts);
    for (unsigned i = 0; i < count; i++)
        if (!duet__plane_add(&region->plane, parts[i], handle)) {
            take_out(region, parts, i);
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
        found = meets(region, &memory);
    if (found)
        return duet_fail(message, DUET_EINVAL,
                         "data of %zu x %zu elements at %p shares memory with handle %llu, of %zu "
                         "x %zu elements at %p: register it once, and cut it into parts (duet_cut)",
                         area->rows, area->cols, area->data, (unsigned long long)found->id,
                         found->rows, found->cols, found->data);
    struct region *region = region_of(core, memory.stride);
    if (!region || !enter(region, &memory, handle))
        return duet_fail(message, DUET_ENOMEM, "no memory left for another handle");
    return DUET_OK;
}

/* Takes the first `count` areas of a handle out. registry_lock is held. */
static void leave(struct duet_runtime *core, const struct duet_handle *handle, unsigned count)
{
    while (count-- > 0) {
        struct rectangle parts[3];
        const struct duet_array area = duet__area(handle, count);
        const struct memory memory = memory_of(&area);
        if (!area.data)
            continue;
        struct region *region = region_of(core, memory.stride);
        take_out(region, parts, rectangles(region->stride, &memory, parts));
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
            leave(core, handle, i);
    }
    handle->entered = !error;
    spin_unlock(&core->registry_lock);
    return error;
}

/* registry_lock is held. */
void duet__region_leave(struct duet_runtime *core, struct duet_handle *handle)
{
    leave(core, handle, duet__area_count(handle));
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
