/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a performance model: what the scheduler believes a kernel takes. The core keeps one state
 * for each kernel and architecture, feeds it with measured times, and asks it for predictions.
 */
#ifndef DUET_MODEL_H
#define DUET_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* exported by libduet, as nothing else is */

/*
 * A model. The core serialises the calls for one state with a short lock, so they may neither block
 * nor call back. `work` > 0 is flops where the kernel counts them, else bytes accessed; `footprint`
 * tells executions apart that have the same work but other data sizes (StarPU's footprint) or, by
 * the codelet, another cost. There are some thousand pairs of these at most for one state: of more
 * sizes, the core tells the middle of a band that they are in.
 */
struct duet_model {
    const char *name;        /* as in --model */
    const char *description; /* one line */
    size_t state_size;       /* bytes for one kernel on one architecture, zeroed at the start */

    /*
     * `samples` executions took `mean_s` each on average. 0; 1: what it predicts of other work has
     * changed, too, so that it is asked again for all of it; DUET_ENOMEM: the measurement is lost.
     */
    int (*add)(void *state, double work, uint64_t footprint, double mean_s, uint64_t samples);

    /* Expected seconds of one execution; 0 if the model cannot tell. */
    double (*predict)(const void *state, double work, uint64_t footprint);

    /* Frees what the state holds. */
    void (*fini)(void *state);
};

/* The built-in model of this name, or NULL. The index-th one, NULL beyond the last. */
const struct duet_model *duet_model_find(const char *name);
const struct duet_model *duet_model_at(size_t index);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
