/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs of tasks for tests, the kernel they run, the order that they must keep, and what
 * they become when they expand.
 */
#ifndef DUET_CORE_TESTING_PROGRAM_H
#define DUET_CORE_TESTING_PROGRAM_H

#include "core/testing_engine.h"

enum {
    HANDLES = 24,
    ACCESSES = 5,
    WORDS_MAX = 100, /* of a handle */
    SUMS = 4,        /* handles that nested tasks add to */
    SUM_WORDS = 16,
    EXPAND_ACCESSES = 3,
    BLOCKS = 3 * EXPAND_ACCESSES, /* of one expansion */
    CHILDREN = 2 * EXPAND_ACCESSES + 4,
    FAN = 16,                  /* more than children and 1 */
    DEPTH = 3,                 /* of expansions */
    RESULTS = FAN * FAN * FAN, /* numbers of tasks within a step that expands */
};

enum kind { ANY, CPUS, DEVICES, EXPANDS, KINDS };

struct step {
    enum kind kind;
    unsigned count;
    unsigned handles[ACCESSES];
    uint8_t modes[ACCESSES];
    int priority;
    const char *where;
    uint64_t salt;
    unsigned nested;   /* tasks that its kernel submits */
    uint64_t *results; /* what its tasks have read, by their number; one if it does not expand */
    uint64_t turn;     /* when it was run, from 1 */
};

/* What a task carries. */
struct argument {
    struct step *step;
    uint64_t salt;
    unsigned number; /* of the task within its step: 0, those of its children FAN * it + 1 ... */
    unsigned depth;
    uint8_t modes[ACCESSES]; /* effective */
};

struct setting {
    struct engine_setting engine;
    unsigned steps, submitters;
    bool shared;  /* several submitters use the same handles */
    bool acquire; /* the submitter acquires, releases and unregisters now and then */
    bool expand;  /* some steps expand */
    bool nested;  /* some steps submit tasks */
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
    const struct testing_machine *machine = &setting->engine.machine;
    static const char *const wheres[] = {NULL, NULL, NULL, "card0", "cuda"};
    unsigned share =
        setting->submitters > 1 && !setting->shared ? HANDLES / setting->submitters : 0;
    memset(step, 0, sizeof *step);
    step->kind = machine->cpus && machine->gpus ? (enum kind)duet_random_below(rng, 3) : ANY;
    step->count = duet_random_below(rng, ACCESSES + 1);
    step->priority = (int)duet_random_below(rng, 5) - 2;
    step->where = machine->gpus && step->kind != CPUS ? wheres[duet_random_below(rng, 5)] : NULL;
    step->salt = duet_random_next(rng);
    for (unsigned i = 0; i < step->count; i++) {
        step->handles[i] = share ? submitter * share + duet_random_below(rng, share)
                                 : duet_random_below(rng, HANDLES);
        step->modes[i] = (uint8_t)(1 + duet_random_below(rng, 3));
        if (duet_random_below(rng, 2))
            step->modes[i] = DUET_R;
    }
    if (setting->expand && duet_random_below(rng, 4) == 0) {
        step->kind = EXPANDS;
        step->where = NULL;
        step->count = MIN(step->count, EXPAND_ACCESSES);
    }
    if (setting->nested && duet_random_below(rng, 3) == 0)
        step->nested = 1 + duet_random_below(rng, 3);
    step->results = g_new0(uint64_t, step->kind == EXPANDS ? RESULTS : 1);
}

/* What the core makes of accesses: the same handle (or block) twice counts once. */
static inline void effective(const unsigned *handles, const uint8_t *given, unsigned count,
                             uint8_t *modes)
{
    memcpy(modes, given, count);
    for (unsigned i = 0; i < count; i++) {
        for (unsigned j = 0; j < i; j++) {
            if (modes[i] && modes[j] && handles[i] == handles[j]) {
                modes[j] |= modes[i];
                modes[i] = 0;
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Order                                                                                        */

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

/* ------------------------------------------------------------------------------------------- */
/* Expansion                                                                                    */

/* What a task becomes: blocks of its accesses, and children on them in order. */
struct family {
    unsigned block_count, child_count;
    struct {
        unsigned access;
        size_t first, words;
        uint8_t mode; /* of the access */
    } blocks[BLOCKS];
    struct {
        enum kind kind;
        unsigned count;
        unsigned blocks[EXPAND_ACCESSES];
        uint8_t modes[EXPAND_ACCESSES];
        int priority;
        uint64_t salt;
    } children[CHILDREN];
};

/* Cuts the data of one access into one to three blocks. */
static inline void cut(struct family *family, uint64_t *rng, unsigned access, size_t words,
                       uint8_t mode)
{
    unsigned parts = 1 + duet_random_below(rng, mode == DUET_W ? 2 : 3);
    size_t first = 0;
    for (unsigned p = 0; p < parts && first < words; p++) {
        /* what is only written is covered, so that no word of it is left undefined */
        bool rest = p == parts - 1 && (mode == DUET_W || duet_random_below(rng, 4));
        size_t length =
            rest ? words - first : 1 + duet_random_below(rng, (unsigned)(words - first));
        family->blocks[family->block_count].access = access;
        family->blocks[family->block_count].first = first;
        family->blocks[family->block_count].words = length;
        family->blocks[family->block_count++].mode = mode;
        first += length;
    }
}

/* A child on random blocks. What its parent only writes, a child wrote before. */
static inline void make_child(struct family *family, uint64_t *rng, bool deeper)
{
    unsigned c = family->child_count++;
    family->children[c].kind = (enum kind)duet_random_below(rng, deeper ? KINDS : EXPANDS);
    family->children[c].priority = (int)duet_random_below(rng, 5) - 2;
    family->children[c].salt = duet_random_next(rng);
    family->children[c].count =
        family->block_count ? duet_random_below(rng, EXPAND_ACCESSES + 1) : 0;
    for (unsigned a = 0; a < family->children[c].count; a++) {
        unsigned b = duet_random_below(rng, family->block_count);
        bool writes = (family->blocks[b].mode & DUET_W) && duet_random_below(rng, 2);
        family->children[c].blocks[a] = b;
        family->children[c].modes[a] =
            writes ? (duet_random_below(rng, 2) ? DUET_RW : DUET_W) : DUET_R;
    }
}

/* The same family for the same argument, whoever asks. */
static inline void make_family(struct family *family, const struct argument *argument,
                               const size_t *words, size_t count)
{
    uint64_t rng = argument->salt;
    memset(family, 0, sizeof *family);
    for (unsigned i = 0; i < count; i++)
        if (argument->modes[i])
            cut(family, &rng, i, words[i], argument->modes[i]);
    for (unsigned b = 0; b < family->block_count; b++) {
        if (family->blocks[b].mode != DUET_W)
            continue;
        unsigned c = family->child_count++;
        family->children[c].kind = (enum kind)duet_random_below(&rng, EXPANDS);
        family->children[c].count = 1;
        family->children[c].blocks[0] = b;
        family->children[c].modes[0] = DUET_W;
        family->children[c].salt = duet_random_next(&rng);
    }
    for (unsigned i = duet_random_below(&rng, 5); i > 0; i--)
        make_child(family, &rng, argument->depth + 1 < DEPTH);
}

/* What child c carries. */
static inline struct argument child_argument(const struct family *family,
                                             const struct argument *parent, unsigned c)
{
    struct argument argument = {.step = parent->step,
                                .salt = family->children[c].salt,
                                .number = parent->number * FAN + c + 1,
                                .depth = parent->depth + 1};
    effective(family->children[c].blocks, family->children[c].modes, family->children[c].count,
              argument.modes);
    return argument;
}

/* What the task of a step carries. */
static inline struct argument step_argument(struct step *step)
{
    struct argument argument = {.step = step, .salt = step->salt};
    effective(step->handles, step->modes, step->count, argument.modes);
    return argument;
}

#endif
