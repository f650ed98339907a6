/* SPDX-License-Identifier: Apache-2.0 */
/* Places the tiles of a matrix in memory, and fills them at random by seed and place. */
#include "workloads/data.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <glib.h>

enum {
    PAGE_BYTES = 4096,
    LARGE_PAGE_BYTES = 1 << 21, /* on x86-64, and on ARM with pages of 4 KiB */
    ADDRESS_BITS = 57,          /* no machine addresses more */
    CHUNK = 512,                /* elements that are drawn at a time */
};

/* ------------------------------------------------------------------------------------------- */
/* Random numbers that are a function of a counter: splitmix64 (Steele, Lea, Flood, "Fast splittable
   pseudorandom number generators", 2014), a stream for each column.                            */

static const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Returns the index-th number of a stream. */
static uint64_t random_number(uint64_t key, uint64_t index)
{
    return mix(key + (index + 1) * golden);
}

/* Returns the index-th number of a stream, uniform in [-1/2, 1/2). */
static double uniform(uint64_t key, uint64_t index)
{
    return (double)(random_number(key, index) >> 11) * 0x1p-53 - 0.5;
}

uint64_t duet__data_key(uint64_t seed, unsigned matrix)
{
    return random_number(mix(seed), matrix);
}

/* ------------------------------------------------------------------------------------------- */
/* Memory                                                                                       */

uint64_t duet__storage_bytes(const struct duet__storage *s)
{
    uint64_t elements = s->rows * s->cols;
    if (s->lower && !s->whole) { /* columns j of tiles lack their first j tiles */
        uint64_t full = s->cols / s->tile_cols, rest = s->cols % s->tile_cols;
        uint64_t above = full * (full - 1) / 2 * s->tile_cols + full * rest;
        elements -= above * s->tile_rows;
    }
    return elements * s->element_bytes;
}

void *duet__pages_allocate(uint64_t bytes)
{
    uint64_t page = bytes < LARGE_PAGE_BYTES ? PAGE_BYTES : LARGE_PAGE_BYTES;
    uint64_t pages = (bytes + page - 1) / page;
    void *memory = bytes >> ADDRESS_BITS ? NULL : aligned_alloc(page, pages * page);
    /* only advice, which may be refused */
    if (memory && page == LARGE_PAGE_BYTES)
        (void)madvise(memory, pages * page, MADV_HUGEPAGE);
    return memory;
}

/* Reserves addresses for all tiles, of which this process writes some: more than there is memory
 * may be reserved. Large pages would also back the tiles beside smaller ones. */
static void *reserve_memory(const struct duet__storage *s, uint64_t bytes)
{
    uint64_t tile = s->whole ? 0 : (uint64_t)s->tile_rows * s->tile_cols * s->element_bytes;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    (void)madvise(memory, bytes, tile < LARGE_PAGE_BYTES ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    return memory;
}

int duet__storage_allocate(struct duet__storage *s, struct duet_message *message)
{
    uint64_t bytes = duet__storage_bytes(s);
    s->memory = s->dealt ? reserve_memory(s, bytes) : duet__pages_allocate(bytes);
    if (s->memory)
        return 0;
    return duet_fail(message, DUET_ENOMEM,
                     "no memory for a matrix of %llu x %llu elements: %llu bytes; choose a smaller "
                     "problem",
                     (unsigned long long)s->rows, (unsigned long long)s->cols,
                     (unsigned long long)bytes);
}

void duet__storage_free(struct duet__storage *s)
{
    if (s->dealt && s->memory)
        munmap(s->memory, duet__storage_bytes(s));
    else
        free(s->memory);
    s->memory = NULL;
}

size_t duet__piece(uint64_t size, uint32_t tile, uint32_t index)
{
    uint64_t rest = size - (uint64_t)index * tile;
    return rest < tile ? (size_t)rest : tile;
}

/* Returns the offset of a tile, in elements, if tiles follow each other. */
static uint64_t tile_offset(const struct duet__storage *s, uint32_t i, uint32_t j)
{
    uint64_t row = (uint64_t)i * s->tile_rows, col = (uint64_t)j * s->tile_cols;
    uint64_t offset = col * s->rows;
    if (s->lower) { /* column c of tiles lacks its first c tiles */
        row -= (uint64_t)j * s->tile_rows;
        offset -= (uint64_t)j * (j - 1) / 2 * s->tile_rows * s->tile_cols;
    }
    return offset + row * duet__piece(s->cols, s->tile_cols, j);
}

void *duet__storage_tile(const struct duet__storage *s, uint32_t i, uint32_t j, size_t *ld)
{
    uint64_t whole_offset = (uint64_t)i * s->tile_rows + (uint64_t)j * s->tile_cols * s->rows;
    *ld = s->whole ? s->rows : duet__piece(s->rows, s->tile_rows, i);
    return s->memory + (s->whole ? whole_offset : tile_offset(s, i, j)) * s->element_bytes;
}

struct duet_buffer duet__storage_view(const struct duet__storage *s, uint32_t i, uint32_t j)
{
    struct duet_buffer tile = {.rows = duet__piece(s->rows, s->tile_rows, i),
                               .cols = duet__piece(s->cols, s->tile_cols, j),
                               .element_bytes = s->element_bytes};
    tile.data = duet__storage_tile(s, i, j, &tile.ld);
    return tile;
}

void *duet__storage_at(const struct duet__storage *s, uint64_t i, uint64_t j)
{
    size_t ld;
    char *tile =
        duet__storage_tile(s, (uint32_t)(i / s->tile_rows), (uint32_t)(j / s->tile_cols), &ld);
    return tile + (i % s->tile_rows + j % s->tile_cols * ld) * s->element_bytes;
}

double duet__storage_value(const struct duet__storage *s, uint64_t i, uint64_t j)
{
    const void *at = duet__storage_at(s, i, j);
    return s->element_bytes == 4 ? (double)*(const float *)at : *(const double *)at;
}

/* ------------------------------------------------------------------------------------------- */
/* Contents                                                                                     */

/* Rounds a value to the precision in which it is stored. */
static double rounded(const struct duet__storage *s, double value)
{
    return s->element_bytes == 4 ? (double)(float)value : value;
}

/*
 * True if a sparse matrix has tile (i,j). The pattern is that of sparselu in the Barcelona OpenMP
 * Tasks Suite (Duran et al., ICPP 2009): three diagonals, and of the tiles with two even numbers
 * those whose smaller number is a multiple of 3.
 */
static bool sparse_tile(uint64_t i, uint64_t j)
{
    uint64_t first = i < j ? i : j, last = i < j ? j : i;
    return last - first <= 1 || (first % 6 == 0 && last % 2 == 0);
}

double duet__storage_initial(const struct duet__storage *s, uint64_t i, uint64_t j)
{
    if (s->contents == DUET__ZEROS ||
        (s->contents == DUET__SPARSE && !sparse_tile(i / s->tile_rows, j / s->tile_cols)))
        return 0;
    bool mirrored = s->contents == DUET__SYMMETRIC && i < j;
    double value = uniform(random_number(s->key, mirrored ? i : j), mirrored ? j : i);
    if (i == j && s->contents != DUET__RANDOM)
        value += (double)s->rows;
    return rounded(s, value);
}

void duet__storage_initial_column(const struct duet__storage *s, uint64_t i, uint64_t j,
                                  size_t count, double *out)
{
    bool stream = s->contents != DUET__ZEROS && s->contents != DUET__SPARSE &&
                  (s->contents != DUET__SYMMETRIC || i >= j);
    uint64_t key = random_number(s->key, j);
    for (size_t r = 0; stream && r < count; r++)
        out[r] = rounded(s, uniform(key, i + r));
    for (size_t r = 0; !stream && r < count; r++)
        out[r] = duet__storage_initial(s, i + r, j);
    if (i <= j && j - i < count)
        out[j - i] = duet__storage_initial(s, j, j);
}

void duet__store_values(void *data, const double *values, size_t count, size_t element_bytes)
{
    if (element_bytes == sizeof(double)) {
        memcpy(data, values, count * sizeof *values);
        return;
    }
    for (size_t r = 0; r < count; r++)
        ((float *)data)[r] = (float)values[r];
}

static void fill_tile(const struct duet__storage *s, uint32_t i, uint32_t j)
{
    double values[CHUNK];
    size_t ld, rows = duet__piece(s->rows, s->tile_rows, i),
               cols = duet__piece(s->cols, s->tile_cols, j);
    char *tile = duet__storage_tile(s, i, j, &ld);
    for (size_t c = 0; c < cols; c++) {
        for (size_t r = 0; r < rows; r += CHUNK) {
            size_t count = rows - r < CHUNK ? rows - r : CHUNK;
            duet__storage_initial_column(s, (uint64_t)i * s->tile_rows + r,
                                         (uint64_t)j * s->tile_cols + c, count, values);
            duet__store_values(tile + (r + c * ld) * s->element_bytes, values, count,
                               s->element_bytes);
        }
    }
}

struct filling {
    const struct duet__storage *storage;
    duet__tile_fn *wanted;
    const void *self;
};

/* Fills columns of tiles. */
static void fill_columns(void *self, uint64_t first, uint64_t end)
{
    const struct filling *filling = self;
    const struct duet__storage *s = filling->storage;
    uint32_t row_tiles = (uint32_t)((s->rows + s->tile_rows - 1) / s->tile_rows);
    for (uint32_t j = (uint32_t)first; j < end; j++) {
        for (uint32_t i = s->lower ? j : 0; i < row_tiles; i++)
            if (!filling->wanted || filling->wanted(filling->self, i, j))
                fill_tile(s, i, j);
    }
}

void duet__storage_fill(const struct duet__storage *s, duet__tile_fn *wanted, const void *self)
{
    struct filling filling = {s, wanted, self};
    duet__share((s->cols + s->tile_cols - 1) / s->tile_cols, s->rows * s->cols, fill_columns,
                &filling);
}

/* ------------------------------------------------------------------------------------------- */
/* Threads that last only as long as the work they share                                        */

enum { THREADS_MAX = 64, ENOUGH = 1 << 20 /* elements that are worth the start of a thread */ };

struct part {
    duet__part_fn *run;
    void *self;
    uint64_t first, end;
};

static void *run_part(void *opaque)
{
    const struct part *part = opaque;
    part->run(part->self, part->first, part->end);
    return NULL;
}

void duet__share(uint64_t count, uint64_t elements, duet__part_fn *run, void *self)
{
    GThread *threads[THREADS_MAX];
    struct part parts[THREADS_MAX];
    uint64_t most = MIN(count, elements / ENOUGH);
    uint64_t wanted = CLAMP(most, 1, MIN(g_get_num_processors(), THREADS_MAX));
    for (uint64_t i = 0; i < wanted; i++) {
        parts[i] = (struct part){run, self, count * i / wanted, count * (i + 1) / wanted};
        threads[i] = i ? g_thread_try_new("duet-share", run_part, &parts[i], NULL) : NULL;
    }
    for (uint64_t i = 0; i < wanted; i++) {
        if (threads[i])
            g_thread_join(threads[i]);
        else
            run_part(&parts[i]);
    }
}
