/* SPDX-License-Identifier: Apache-2.0 */
/* Support for tests of the real engine: a random program whose result tells its order. */
#ifndef DUET_REAL_TESTING_STEPS_H
#define DUET_REAL_TESTING_STEPS_H

#include "real/testing.h"

enum { CELLS = 24, STEPS = 1000 };

/* Not commutative and not associative: no other order gives the same. */
static inline uint64_t mix(uint64_t a, uint64_t b)
{
    a = (a ^ (b >> 29)) * UINT64_C(0xbf58476d1ce4e5b9) + b;
    return a ^ (a >> 32);
}

/* The last buffer becomes a mixture of all. */
static inline int mix_all(const struct duet_call *call)
{
    uint64_t *to = call->buffers[call->buffer_count - 1].data;
    for (size_t i = 0; i < call->buffer_count; i++) {
        const uint64_t *from = call->buffers[i].data;
        *to = mix(*to, *from);
    }
    return DUET_OK;
}

/* Submits so many tasks, each of which mixes one of `cells` into another, whatever comes of it. */
static inline void submit_mixes(struct duet_runtime *core, uint64_t cells[CELLS], unsigned count)
{
    struct duet_codelet *codelet = testing_codelet(core, "mix", mix_all, NULL);
    struct duet_access accesses[2] = {{.mode = DUET_R}, {.mode = DUET_RW}};
    struct duet_handle *handles[CELLS];
    for (unsigned c = 0; c < CELLS; c++)
        testing_must(core, duet_register_vector(core, &cells[c], 1, sizeof cells[c], &handles[c]));
    for (unsigned i = 0; i < count; i++) {
        accesses[0].handle = handles[i % CELLS];
        accesses[1].handle = handles[i * 7 % CELLS];
        testing_submit(core, codelet, accesses, 2, NULL, 0);
    }
}

struct step {
    unsigned count, cells[3];
};

static inline struct step step_at(uint64_t *seed)
{
    struct step step = {.count = 1 + (unsigned)(*seed = mix(*seed, 1)) % 3};
    for (unsigned i = 0; i < step.count; i++)
        step.cells[i] = (unsigned)(*seed = mix(*seed, i)) % CELLS;
    return step;
}

/* Computes the result of all steps, one after another. */
static inline void oracle(uint64_t *cells, uint64_t seed)
{
    for (unsigned s = 0; s < STEPS; s++) {
        struct step step = step_at(&seed);
        uint64_t *to = &cells[step.cells[step.count - 1]];
        for (unsigned i = 0; i < step.count; i++)
            *to = mix(*to, cells[step.cells[i]]);
    }
}

/*
 * Runs it and compares with the oracle. Returns the run's counters; an error only if `may_fail`,
 * and then contents are not compared.
 */
static inline struct duet_stats run_steps(struct testing *t, uint64_t seed, int *may_fail)
{
    struct duet_runtime *core = testing_open(t);
    struct duet_codelet *codelet = testing_codelet(core, "mix", mix_all, NULL);
    struct duet_handle *handles[CELLS];
    uint64_t cells[CELLS], expected[CELLS];
    for (unsigned c = 0; c < CELLS; c++) {
        cells[c] = expected[c] = c;
        handles[c] = testing_cells(core, &cells[c], 1);
    }
    oracle(expected, seed);
    for (unsigned s = 0; s < STEPS; s++) {
        struct step step = step_at(&seed);
        struct duet_access accesses[3];
        for (unsigned i = 0; i < step.count; i++)
            accesses[i] = (struct duet_access){handles[step.cells[i]],
                                               i + 1 == step.count ? DUET_RW : DUET_R};
        testing_submit(core, codelet, accesses, step.count, NULL, 0);
    }
    int error = duet_wait(core);
    for (unsigned c = 0; c < CELLS; c++) {
        int moved = duet_unregister(core, handles[c]);
        error = error ? error : moved;
    }
    if (may_fail)
        *may_fail = error;
    else if (error)
        g_error("%s", duet_last_message(core));
    if (!error)
        g_assert_cmpmem(cells, sizeof cells, expected, sizeof expected);
    g_assert_cmpuint(duet_tasks_done(core), ==, STEPS);
    struct duet_stats stats;
    duet_stats(core, &stats);
    duet__core_free(core);
    return stats;
}

#endif
