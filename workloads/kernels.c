/* SPDX-License-Identifier: Apache-2.0 */
/* Finds kernels by name. */
#include "workloads/kernels.h"

/* ------------------------------------------------------------------------------------------- */
/* The kernel jacobi2d: computes a block of points, and the borders for its neighbours, from the
 * block and the borders of the step before. jacobi2d.c lists the accesses. */

/* Buffers of the call, those that are read first. */
enum { OLD, FROM_NORTH, FROM_SOUTH, FROM_WEST, FROM_EAST, NEW, NORTH, SOUTH, WEST, EAST };

/* Computes a column of new points from the same column of old ones, those to its left and right,
 * and the points above and below; not contracted to fused operations and always in this order. */
#define DEFINE_COLUMN(name, type)                                                                  \
    static void name(void *out, const void *same, const void *left, const void *right,             \
                     const void *above, const void *below, size_t rows)                            \
    {                                                                                              \
        type *restrict new = out;                                                                  \
        const type *old = same, *west = left, *east = right;                                       \
        const type quarter = (type)0.25, north = *(const type *)above;                             \
        const type south = *(const type *)below;                                                   \
        new[0] = ((north + (rows > 1 ? old[1] : south)) + (west[0] + east[0])) * quarter;          \
        for (size_t i = 1; i + 1 < rows; i++)                                                      \
            new[i] = ((old[i - 1] + old[i + 1]) + (west[i] + east[i])) * quarter;                  \
        if (rows > 1)                                                                              \
            new[rows - 1] =                                                                        \
                ((old[rows - 2] + south) + (west[rows - 1] + east[rows - 1])) * quarter;           \
    }

DEFINE_COLUMN(column_single, float)
DEFINE_COLUMN(column_double, double)

static void *at(const struct duet_buffer *b, size_t i, size_t j)
{
    return (char *)b->data + (i + j * b->ld) * b->element_bytes;
}

/* Copies row i, or column j, of a block into a border. */
static void copy_row(const struct duet_buffer *border, const struct duet_buffer *block, size_t i)
{
    for (size_t j = 0; j < block->cols; j++)
        memcpy(at(border, 0, j), at(block, i, j), block->element_bytes);
}

static void copy_column(const struct duet_buffer *border, const struct duet_buffer *block, size_t j)
{
    memcpy(border->data, at(block, 0, j), block->rows * block->element_bytes);
}

int duet__kernel_jacobi2d(const struct duet_call *call)
{
    const struct duet_buffer *b = call->buffers;
    size_t rows = b[NEW].rows, cols = b[NEW].cols;
    for (size_t j = 0; j < cols; j++) {
        void *west = j ? at(&b[OLD], 0, j - 1) : b[FROM_WEST].data;
        void *east = j + 1 < cols ? at(&b[OLD], 0, j + 1) : b[FROM_EAST].data;
        (b[NEW].element_bytes == sizeof(float)
             ? column_single
             : column_double)(at(&b[NEW], 0, j), at(&b[OLD], 0, j), west, east,
                              at(&b[FROM_NORTH], 0, j), at(&b[FROM_SOUTH], 0, j), rows);
    }
    copy_row(&b[NORTH], &b[NEW], 0);
    copy_row(&b[SOUTH], &b[NEW], rows - 1);
    copy_column(&b[WEST], &b[NEW], 0);
    copy_column(&b[EAST], &b[NEW], cols - 1);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* The kernel sort: a list in ascending order, by odd-even transposition. */

/* Defines as many rounds as elements, which sort any list (Habermann 1972). A round orders every
 * second pair of neighbours, the next round the others. */
#define DEFINE_SORT(name, type)                                                                    \
    static void name(type *list, size_t count)                                                     \
    {                                                                                              \
        for (size_t round = 0; round < count; round++) {                                           \
            for (size_t i = round % 2; i + 1 < count; i += 2) {                                    \
                type left = list[i], right = list[i + 1];                                          \
                list[i] = left < right ? left : right;                                             \
                list[i + 1] = left < right ? right : left;                                         \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_SORT(sort_single, float)
DEFINE_SORT(sort_double, double)

static int sort(const struct duet_call *call)
{
    const struct duet_buffer *list = &call->buffers[0];
    if (list->element_bytes == sizeof(float))
        sort_single(list->data, list->rows);
    else
        sort_double(list->data, list->rows);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */

/* The kernels that need no BLAS. */
static const struct duet__kernel kernels[] = {
    {"jacobi2d", duet__kernel_jacobi2d},
    {"nbody", duet__kernel_nbody},
    {"sort", sort},
    {NULL, NULL},
};

duet_kernel_fn duet__kernel(const char *base)
{
    const duet_kernel_fn run = duet__kernel_in(kernels, base);
    return run ? run : duet__blas_kernel(base);
}
