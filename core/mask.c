/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of workers that tasks are restricted to, numbered so that lists can sort tasks by them. */
#include <stdlib.h>

#include "core/internal.h"

uint64_t duet__kinds_of_archs(const struct duet_runtime *core, uint64_t archs)
{
    uint64_t kinds = 0;
    for (unsigned k = 0; k < core->kind_count; k++)
        if (archs >> core->kinds[k].arch & 1)
            kinds |= UINT64_C(1) << k;
    return kinds;
}

/* Appends a mask. mask_lock is held. */
static int mask_add(struct duet_runtime *core, uint64_t kinds, uint8_t *out)
{
    unsigned count = atomic_load_explicit(&core->mask_count, memory_order_relaxed);
    if (count == MASKS_MAX)
        return DUET_ENOMEM;
    struct mask *mask = &core->masks[count];
    /* read for each task: in cache lines that nobody writes */
    mask->workers = zeroed(whole_lines(core->worker_words * sizeof *mask->workers));
    if (!mask->workers)
        return DUET_ENOMEM;
    mask->kinds = kinds;
    for (unsigned w = 0; w < core->machine.worker_count; w++)
        if (kinds >> core->workers[w].kind & 1)
            mask->workers[w / 64] |= UINT64_C(1) << (w % 64);
    *out = (uint8_t)count;
    atomic_store_explicit(&core->mask_count, count + 1, memory_order_release);
    return DUET_OK;
}

static bool mask_find(const struct duet_runtime *core, uint64_t kinds, uint8_t *out)
{
    unsigned count = atomic_load_explicit(&core->mask_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        if (core->masks[i].kinds == kinds) {
            *out = (uint8_t)i;
            return true;
        }
    }
    return false;
}

/*
 * Returns the number of a set of kinds in *out. DUET_ENOMEM if there are too many different ones.
 */
int duet__mask_find(struct duet_runtime *core, uint64_t kinds, uint8_t *out)
{
    if (mask_find(core, kinds, out))
        return DUET_OK;
    spin_lock(&core->mask_lock);
    int error = mask_find(core, kinds, out) ? DUET_OK : mask_add(core, kinds, out);
    spin_unlock(&core->mask_lock);
    return error;
}

void duet__masks_fini(struct duet_runtime *core)
{
    unsigned count = atomic_load_explicit(&core->mask_count, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++)
        free(core->masks[i].workers);
}
