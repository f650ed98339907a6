/* SPDX-License-Identifier: Apache-2.0 */
/* The slab sub-allocator: constant-time allocation and release with immediate joining. */
#include "core/slab.h"

#include <stdlib.h>
#include <string.h>

#include <duet/error.h>

static unsigned log2_floor(uint64_t x)
{
    return 63u - (unsigned)__builtin_clzll(x);
}

/* Gives the list for free blocks of this size. */
static void list_of(uint64_t bytes, unsigned *row, unsigned *column)
{
    uint64_t units = bytes / SLAB_ALIGN;
    unsigned power = log2_floor(units);
    *row = power;
    *column = power < 4 ? (unsigned)((units << (4 - power)) & (SLAB_SECOND - 1))
                        : (unsigned)((units >> (power - 4)) & (SLAB_SECOND - 1));
}

static void insert_free(struct slab *slab, struct slab_block *block)
{
    unsigned row, column;
    list_of(block->bytes, &row, &column);
    block->free = 1;
    block->prev = NULL;
    block->next = slab->lists[row][column];
    if (block->next)
        block->next->prev = block;
    slab->lists[row][column] = block;
    slab->first |= UINT64_C(1) << row;
    slab->second[row] |= 1u << column;
}

static void remove_free(struct slab *slab, struct slab_block *block)
{
    unsigned row, column;
    list_of(block->bytes, &row, &column);
    if (block->next)
        block->next->prev = block->prev;
    if (block->prev) {
        block->prev->next = block->next;
    } else {
        slab->lists[row][column] = block->next;
        if (!block->next) {
            slab->second[row] &= ~(1u << column);
            if (!slab->second[row])
                slab->first &= ~(UINT64_C(1) << row);
        }
    }
    block->free = 0;
    block->next = block->prev = NULL;
}

/* The lock is held: nobody else writes it. */
static void set_used(struct slab *slab, uint64_t bytes)
{
    atomic_store_explicit(&slab->used_bytes, bytes, memory_order_relaxed);
}

static uint64_t used_bytes(const struct slab *slab)
{
    return atomic_load_explicit(&slab->used_bytes, memory_order_relaxed);
}

/* Returns a bookkeeping record; the arrays double, so a slab of any size needs few of them. */
static struct slab_block *new_record(struct slab *slab)
{
    if (!slab->spare) {
        if (slab->record_arrays == sizeof slab->records / sizeof slab->records[0])
            return NULL;
        size_t count = (size_t)8 << slab->record_arrays;
        struct slab_block *array = calloc(count, sizeof *array);
        if (!array)
            return NULL;
        slab->records[slab->record_arrays++] = array;
        for (size_t i = 0; i < count; i++) {
            array[i].next = slab->spare;
            slab->spare = &array[i];
        }
    }
    struct slab_block *record = slab->spare;
    slab->spare = record->next;
    memset(record, 0, sizeof *record);
    return record;
}

static void drop_record(struct slab *slab, struct slab_block *record)
{
    record->next = slab->spare;
    slab->spare = record;
}

int duet__slab_init(struct slab *slab, uint64_t capacity_bytes)
{
    memset(slab, 0, sizeof *slab);
    slab->capacity_bytes = capacity_bytes / SLAB_ALIGN * SLAB_ALIGN;
    if (slab->capacity_bytes == 0)
        return DUET_OK;
    struct slab_block *all = new_record(slab);
    if (!all)
        return DUET_ENOMEM;
    all->bytes = slab->capacity_bytes;
    insert_free(slab, all);
    return DUET_OK;
}

void duet__slab_fini(struct slab *slab)
{
    for (unsigned i = 0; i < slab->record_arrays; i++)
        free(slab->records[i]);
    memset(slab, 0, sizeof *slab);
}

/*
 * Returns a free block of the smallest adequate list: first the list that holds blocks of this very
 * size, which is searched since some of its blocks may be too small, then any block of a larger
 * list.
 */
static struct slab_block *find_free(const struct slab *slab, uint64_t bytes)
{
    unsigned row, column;
    list_of(bytes, &row, &column);
    for (struct slab_block *b = slab->lists[row][column]; b; b = b->next)
        if (b->bytes >= bytes)
            return b;
    uint32_t columns = slab->second[row] & (~UINT32_C(0) << 1 << column);
    if (!columns) {
        uint64_t rows = row == 63 ? 0 : slab->first & (~UINT64_C(0) << 1 << row);
        if (!rows)
            return NULL;
        row = (unsigned)__builtin_ctzll(rows);
        columns = slab->second[row];
    }
    return slab->lists[row][__builtin_ctz(columns)];
}

struct slab_block *duet__slab_alloc(struct slab *slab, uint64_t bytes)
{
    bytes = slab_round(bytes);
    if (bytes == 0 || bytes > slab->capacity_bytes)
        return NULL;
    struct slab_block *block = find_free(slab, bytes);
    if (!block)
        return NULL;
    if (block->bytes > bytes) {
        struct slab_block *rest = new_record(slab);
        if (!rest)
            return NULL;
        remove_free(slab, block);
        rest->offset = block->offset + bytes;
        rest->bytes = block->bytes - bytes;
        rest->before = block;
        rest->after = block->after;
        if (rest->after)
            rest->after->before = rest;
        block->after = rest;
        block->bytes = bytes;
        insert_free(slab, rest);
    } else {
        remove_free(slab, block);
    }
    set_used(slab, used_bytes(slab) + bytes);
    return block;
}

/* Appends `right`, the free neighbour of `left`, to it. */
static void block_join(struct slab *slab, struct slab_block *left, struct slab_block *right)
{
    left->bytes += right->bytes;
    left->after = right->after;
    if (left->after)
        left->after->before = left;
    drop_record(slab, right);
}

void duet__slab_free(struct slab *slab, struct slab_block *block)
{
    set_used(slab, used_bytes(slab) - block->bytes);
    if (block->after && block->after->free) {
        struct slab_block *right = block->after;
        remove_free(slab, right);
        block_join(slab, block, right);
    }
    if (block->before && block->before->free) {
        struct slab_block *left = block->before;
        remove_free(slab, left);
        block_join(slab, left, block);
        block = left;
    }
    insert_free(slab, block);
}
