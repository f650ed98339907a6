/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel sort: a list in ascending order, by odd-even transposition. */
#include "workloads/kernels.h"

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

int duet__kernel_sort(const struct duet_call *call)
{
    const struct duet_buffer *list = &call->buffers[0];
    if (list->element_bytes == sizeof(float))
        sort_single(list->data, list->rows);
    else
        sort_double(list->data, list->rows);
    return 0;
}
