/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs of tasks for tests, the kernel they run, and the order that they must keep. */
#ifndef DUET_CORE_TESTING_PROGRAM_H
#define DUET_CORE_TESTING_PROGRAM_H

#include "core/testing.h"

enum {
    HANDLES = 24,
    ACCESSES = 5,
    WORDS_MAX = 100, /* of a handle */
};

struct step {
    unsigned codelet; /* 0: any, 1: CPUs, 2: devices */
    unsigned count;
    unsigned handles[ACCESSES];
    uint8_t modes[ACCESSES];
    int priority;
    const char *where;
    uint64_t salt, result;
    uint64_t turn; /* when it was run, from 1 */
};

/* What a task carries. */
struct argument {
    struct step *step;
    uint64_t salt;
};

struct setting {
    struct testing_machine machine;
    const char *policy;
    uint64_t seed;
    unsigned steps, submitters;
    bool shared;  /* several submitters use the same handles */
    bool spin;    /* workers poll instead of parking, so that wakes order nothing */
    bool acquire; /* the submitter acquires, releases and unregisters now and then */
    unsigned fail_kernel, fail_copy; /* the n-th one fails; 0: none */
};

static inline uint64_t mix(uint64_t x)
{
    return duet_random_next(&x);
}

/* One kernel on buffers with effective modes. Returns what it has read. */
static inline uint64_t compute(uint64_t salt, uint64_t *const *buffers, const size_t *words,
                               const uint8_t *modes, unsigned count)
{
    uint64_t sum = salt;
    for (unsigned i = 0; i < count; i++)
        for (size_t j = 0; (modes[i] & DUET_R) && j < words[i]; j++)
            sum = mix(sum ^ buffers[i][j]);
    for (unsigned i = 0; i < count; i++)
        for (size_t j = 0; (modes[i] & DUET_W) && j < words[i]; j++)
            buffers[i][j] = mix(sum + 31 * i + j);
    return sum;
}

static inline void make_step(const struct setting *setting, unsigned submitter, uint64_t *rng,
                             struct step *step)
{
    const struct testing_machine *machine = &setting->machine;
    static const char *const wheres[] = {NULL, NULL, NULL, "card0", "cuda"};
    unsigned share =
        setting->submitters > 1 && !setting->shared ? HANDLES / setting->submitters : 0;
    memset(step, 0, sizeof *step);
    step->codelet = machine->cpus && machine->gpus ? duet_random_below(rng, 3) : 0;
    step->count = duet_random_below(rng, ACCESSES + 1);
    step->priority = (int)duet_random_below(rng, 5) - 2;
    step->where = machine->gpus && step->codelet != 1 ? wheres[duet_random_below(rng, 5)] : NULL;
    step->salt = duet_random_next(rng);
    for (unsigned i = 0; i < step->count; i++) {
        step->handles[i] = share ? submitter * share + duet_random_below(rng, share)
                                 : duet_random_below(rng, HANDLES);
        step->modes[i] = (uint8_t)(1 + duet_random_below(rng, 3));
        if (duet_random_below(rng, 2))
            step->modes[i] = DUET_R;
    }
}

/* What the core makes of a step's accesses: the same handle twice counts once. */
static inline void effective(const struct step *step, uint8_t modes[ACCESSES])
{
    memcpy(modes, step->modes, ACCESSES);
    for (unsigned i = 0; i < step->count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (modes[i] && modes[j] && step->handles[i] == step->handles[j]) {
                modes[j] |= modes[i];
                modes[i] = 0;
            }
        }
    }
}

/* Conflicting tasks of one submitter must have run in order of submission. */
static inline void check_order(const struct setting *setting, const struct step *steps)
{
    uint64_t wrote[HANDLES] = {0}, touched[HANDLES] = {0};
    for (unsigned i = 0; i < setting->steps; i++) {
        const struct step *step = &steps[i];
        TESTING_MUST(step->turn > 0);
        for (unsigned a = 0; a < step->count; a++) {
            unsigned h = step->handles[a];
            TESTING_MUST(step->turn >= wrote[h]);
            if (step->modes[a] & DUET_W)
                TESTING_MUST(step->turn >= touched[h]);
        }
        for (unsigned a = 0; a < step->count; a++) {
            unsigned h = step->handles[a];
            touched[h] = MAX(touched[h], step->turn);
            if (step->modes[a] & DUET_W)
                wrote[h] = step->turn;
        }
    }
}

static inline int by_turn(const void *left, const void *right)
{
    const struct step *a = left, *b = right;
    return (a->turn > b->turn) - (a->turn < b->turn);
}

#endif
