/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel nbody: moves the bodies of a subset by one step. nbody.c lists the accesses. */
#include <math.h>
#include <string.h>

#include "workloads/kernels.h"
#include "workloads/tiles.h"

enum { LANES = 64 /* bodies at a time: a constant, so that compilers use vectors */ };

/* Moves the bodies of `own` from `first` on: pull of all other bodies, subset after subset;
 * velocities; places. Lanes beyond the last body compute unused values. */
#define DEFINE_STEP(name, type, root)                                                              \
    static void name(const struct duet_buffer *all, size_t subsets, size_t own, size_t first,      \
                     type bodies)                                                                  \
    {                                                                                              \
        type x[LANES] = {0}, y[LANES] = {0}, z[LANES] = {0};                                       \
        type ax[LANES] = {0}, ay[LANES] = {0}, az[LANES] = {0};                                    \
        const struct duet_buffer *new = &all[subsets], *speeds = &all[subsets + 1];                \
        const size_t rest = new->rows - first, count = rest < LANES ? rest : LANES;                \
        const type *old = (const type *)all[own].data + first;                                     \
        memcpy(x, old, count * sizeof *x);                                                         \
        memcpy(y, old + all[own].ld, count * sizeof *y);                                           \
        memcpy(z, old + 2 * all[own].ld, count * sizeof *z);                                       \
        for (size_t subset = 0; subset < subsets; subset++) {                                      \
            const struct duet_buffer *from = &all[subset];                                         \
            const type *source = from->data;                                                       \
            for (size_t j = 0; j < from->rows; j++) {                                              \
                const type sx = source[j], sy = source[j + from->ld];                              \
                const type sz = source[j + 2 * from->ld], mass = 1 + source[j + 3 * from->ld];     \
                for (size_t i = 0; i < LANES; i++) {                                               \
                    const type dx = sx - x[i], dy = sy - y[i], dz = sz - z[i];                     \
                    const type square = dx * dx + dy * dy + dz * dz + (type)DUET__SOFTENING;       \
                    const type pull = mass / (square * root(square));                              \
                    ax[i] += pull * dx;                                                            \
                    ay[i] += pull * dy;                                                            \
                    az[i] += pull * dz;                                                            \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        const type *place[] = {x, y, z}, *pulls[] = {ax, ay, az};                                  \
        for (size_t axis = 0; axis < 3; axis++) {                                                  \
            type *to = (type *)new->data + first + axis *new->ld;                                  \
            type *speed = (type *)speeds->data + first + axis * speeds->ld;                        \
            for (size_t i = 0; i < count; i++) {                                                   \
                speed[i] += (type)DUET__TIME_STEP / bodies * pulls[axis][i];                       \
                to[i] = place[axis][i] + (type)DUET__TIME_STEP * speed[i];                         \
            }                                                                                      \
        }                                                                                          \
        memcpy((type *)new->data + first + 3 * new->ld, old + 3 * all[own].ld, count * sizeof *x); \
    }

DEFINE_STEP(step_single, float, sqrtf)
DEFINE_STEP(step_double, double, sqrt)

int duet__kernel_nbody(const struct duet_call *call)
{
    const struct duet__tile_args *args = call->args;
    const size_t subsets = call->buffer_count - 2;
    const struct duet_buffer *new = &call->buffers[subsets];
    for (size_t first = 0; first < new->rows; first += LANES)
        if (new->element_bytes == sizeof(float))
            step_single(call->buffers, subsets, args->k, first, (float)args->n);
        else
            step_double(call->buffers, subsets, args->k, first, args->n);
    return 0;
}
