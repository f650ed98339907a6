/* SPDX-License-Identifier: Apache-2.0 */
/* The order of cells. */
#include <math.h>
#include <stdlib.h>

#include "study/table.h"

enum { FACTORS_MOST = 64, LOOKS = 8 /* points a cell */ };

/* Writes the number of values of each factor that varies. Returns the number of such factors. */
static unsigned sizes_of(const struct duet__product *product, uint64_t sizes[FACTORS_MOST])
{
    unsigned count = 0;

    for (guint f = 0; f < product->factors->len; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];

        if (factor->values->len == 1)
            continue;
        if (count < FACTORS_MOST)
            sizes[count++] = factor->values->len;
        else
            sizes[count - 1] *= factor->values->len;
    }
    return count;
}

static uint64_t divisor(uint64_t first, uint64_t second)
{
    while (second) {
        uint64_t rest = first % second;

        first = second;
        second = rest;
    }
    return first;
}

/* Puts the cells of a product into order[0..count). */
static void order_product(const struct duet__product *product, uint32_t *order)
{
    static const double golden = 0.6180339887498949;
    uint64_t sizes[FACTORS_MOST], count = product->count, found = 0, stride;
    double steps[FACTORS_MOST], root = 1.5;
    unsigned dimensions = sizes_of(product, sizes);
    g_autofree bool *seen = g_new0(bool, count);

    for (int i = 0; i < 100; i++) /* x^(d + 1) = x + 1 */
        root = pow(1 + root, 1.0 / (dimensions + 1));
    for (unsigned d = 0; d < dimensions; d++)
        steps[d] = pow(root, -(double)(d + 1));
    for (uint64_t i = 0; i < LOOKS * count + LOOKS && found < count; i++) {
        uint64_t cell = 0;

        for (unsigned d = 0; d < dimensions; d++) {
            double part = 0.5 + (double)i * steps[d];

            cell = cell * sizes[d] + (uint64_t)((part - floor(part)) * (double)sizes[d]);
        }
        if (!seen[cell])
            order[found++] = (uint32_t)(product->first + cell);
        seen[cell] = true;
    }
    stride = (uint64_t)((double)count * golden) + 1;
    while (divisor(stride, count) != 1)
        stride++;
    for (uint64_t i = 0, cell = 0; i < count; i++, cell = (cell + stride) % count)
        if (!seen[cell])
            order[found++] = (uint32_t)(product->first + cell);
}

/* A cell, and how far in its product it comes. */
struct turn {
    double part;
    uint32_t cell;
};

static int compare_turns(const void *first, const void *second)
{
    const struct turn *a = first, *b = second;

    if (a->part < b->part || a->part > b->part)
        return a->part < b->part ? -1 : 1;
    return a->cell < b->cell ? -1 : a->cell > b->cell;
}

uint32_t *duet__study_order(const struct duet__study *study)
{
    uint32_t *order = g_new0(uint32_t, study->count);
    struct turn *turns;

    for (guint p = 0; p < study->products->len; p++) {
        const struct duet__product *product = study->products->pdata[p];

        order_product(product, order + product->first);
    }
    if (study->products->len == 1)
        return order;
    turns = g_new(struct turn, study->count);
    for (uint64_t i = 0; i < study->count; i++) {
        const struct duet__product *product = duet__study_product(study, order[i]);

        turns[i] =
            (struct turn){((double)(i - product->first) + 0.5) / (double)product->count, order[i]};
    }
    qsort(turns, study->count, sizeof *turns, compare_turns);
    for (uint64_t i = 0; i < study->count; i++)
        order[i] = turns[i].cell;
    g_free(turns);
    return order;
}
