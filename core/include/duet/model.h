/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a performance model: the kernel times that the scheduler expects. The core keeps one
 * state for each kernel and architecture, feeds it with measured times, and asks it for
 * predictions.
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

/*
 * A performance model. The core serialises the calls for one state with a short lock, so they may
 * neither block nor call back. `work` > 0 is flops where the kernel counts them, else bytes
 * accessed. `footprint` distinguishes executions that have the same work but other data sizes
 * (StarPU's footprint) or, by the codelet, another cost. One state sees some thousand pairs of
 * these at most: of more sizes, the core gives the middle of the band that contains them.
 */
struct duet_model {
    const char *name;        /* as in --model */
    const char *description; /* one line */
    size_t state_size;       /* bytes for one kernel on one architecture, zeroed at the start */

    /*
     * Learns that `samples` executions took `mean_s` each on average. Returns 0; 1 if predictions
     * for other work have changed, too, so that the core asks again for all of it; DUET_ENOMEM if
     * the measurement is lost.
     */
    int (*add)(void *state, double work, uint64_t footprint, double mean_s, uint64_t samples);

    /* Returns the expected seconds of one execution; 0 if the model cannot tell. */
    double (*predict)(const void *state, double work, uint64_t footprint);

    /* Frees what the state holds. */
    void (*fini)(void *state);
};

/* Return the built-in model of a name, or NULL; and the index-th one, NULL beyond the last. */
DUET_EXPORT const struct duet_model *duet_model_find(const char *name);
DUET_EXPORT const struct duet_model *duet_model_at(size_t index);

#ifdef __cplusplus
}
#endif
#endif
