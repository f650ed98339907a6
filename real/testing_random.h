/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs for tests of the whole library: steps of several threads of the application on
 * matrices of their own or of all, what their tasks become when they expand, and the kernel that
 * they run, which no change of order leaves alone.
 */
#ifndef DUET_REAL_TESTING_RANDOM_H
#define DUET_REAL_TESTING_RANDOM_H

#include <stdatomic.h>
#include <string.h>

#include <glib.h>

#include <duet/duet.h>
#include <duet/random.h>

enum {
    HANDLES = 18,
    ACCESSES = 4,
    ROWS_MAX = 12,
    COLS_MAX = 6,
    PADDING_MAX = 3, /* of the leading dimension */
    WORDS_MAX = (ROWS_MAX + PADDING_MAX) * COLS_MAX,
    BYTES_MAX = ROWS_MAX * COLS_MAX * 8, /* of a matrix, densely stored */
    SUMS = 4,                            /* vectors that nested tasks add to */
    SUM_WORDS = 16,
    SUBMITTERS_MAX = 3,
    EXPAND_ACCESSES = 3,
    BLOCKS = 4 * EXPAND_ACCESSES, /* of one expansion */
    CHILDREN = BLOCKS + 3,
    FAN = 16, /* more than CHILDREN */
    DEPTH = 3,
    RESULTS = FAN * FAN * FAN + FAN * FAN + FAN + 1,
};

enum kind {
    ANY,
    CPUS,
    DEVICES,
    EXPANDS,
    KINDS,        /* of tasks */
    LOOK = KINDS, /* the application acquires and releases */
    RENEW,        /* the application unregisters, changes and registers again */
    WAIT,         /* the application waits for all */
};

struct run;

struct step {
    struct run *run;
    enum kind kind;
    unsigned count;
    unsigned handles[ACCESSES];
    uint8_t modes[ACCESSES];
    int priority;
    bool on_device; /* only */
    uint64_t salt;
    unsigned nested;   /* tasks that its kernel submits */
    uint64_t *results; /* what its tasks have read, by their number; one if it does not expand */
    uint64_t turn;     /* when it was run, from 1; 0: it was not */
};

/* What a task carries. */
struct argument {
    struct step *step;
    uint64_t salt;
    unsigned number; /* of the task within its step: 0, those of its children FAN * it + 1 ... */
    unsigned depth;
    uint8_t modes[ACCESSES]; /* effective */
};

/* What devices run of it. */
struct device_code {
    const char *arch; /* "emulated", "cuda" */
    duet_kernel_fn work, add;
};

struct setting {
    struct duet_config config;
    struct device_code device;
    uint64_t seed;
    unsigned steps, submitters;
    bool shared;               /* several submitters use the same matrices */
    bool expand, nested, look; /* steps that expand, that submit, that are the application's */
    unsigned fail_kernel, cancel_at; /* the n-th kernel or expansion; 0: none */
    unsigned cancel_step;            /* of the first submitter, before this one; 0: none */
    bool abrupt;                     /* the runtime is closed at once, everything registered */
    bool pin;                        /* the application page-locks the matrices */
    bool loses;                      /* devices are lost */
    bool breaks;                     /* by kernels, which fail then */
    char lose[64];                   /* config.lose points to it */
};

static inline uint64_t mix(uint64_t x)
{
    return duet_random_next(&x);
}

static inline uint64_t *word(const struct duet_buffer *buffer, size_t row, size_t col)
{
    return (uint64_t *)buffer->data + row + col * buffer->ld;
}

/* One kernel on buffers with effective modes. Returns what it has read. */
static inline uint64_t compute(uint64_t salt, const struct duet_buffer *buffers,
                               const uint8_t *modes, size_t count)
{
    uint64_t sum = salt;
    for (size_t i = 0; i < count; i++)
        for (size_t col = 0; (modes[i] & DUET_R) && col < buffers[i].cols; col++)
            for (size_t row = 0; row < buffers[i].rows; row++)
                sum = mix(sum ^ *word(&buffers[i], row, col));
    for (size_t i = 0; i < count; i++)
        for (size_t col = 0; (modes[i] & DUET_W) && col < buffers[i].cols; col++)
            for (size_t row = 0; row < buffers[i].rows; row++)
                *word(&buffers[i], row, col) = mix(sum + 31 * i + row + 1000 * col);
    return sum;
}

/* What accesses come to: the same handle (or block) twice counts once. */
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
/* Steps                                                                                        */

static inline bool losing(const struct setting *setting)
{
    return setting->loses;
}

/* A matrix for a submitter; one that only it may acquire, if it is to. */
static inline unsigned draw_handle(const struct setting *setting, unsigned submitter, bool acquire,
                                   uint64_t *rng)
{
    unsigned share = HANDLES / setting->submitters;
    if (setting->shared && !acquire)
        return duet_random_below(rng, HANDLES);
    return submitter * share + duet_random_below(rng, share);
}

static inline void make_kind(const struct setting *setting, uint64_t *rng, struct step *step)
{
    bool gpus = setting->config.gpus > 0, cpus = setting->config.cpus > 0;
    unsigned drawn = duet_random_below(rng, 16);
    step->kind = gpus && cpus ? (enum kind)duet_random_below(rng, 3) : ANY;
    if (step->kind != CPUS && gpus && duet_random_below(rng, 4) == 0)
        step->on_device = true;
    if (setting->look && drawn == 0)
        step->kind = LOOK;
    if (setting->look && drawn == 1)
        step->kind = setting->shared ? WAIT : RENEW;
    if (setting->expand && drawn > 12)
        step->kind = EXPANDS;
    if (step->kind >= EXPANDS)
        step->on_device = false;
}

static inline void make_step(struct run *run, const struct setting *setting, unsigned submitter,
                             uint64_t *rng, struct step *step)
{
    memset(step, 0, sizeof *step);
    step->run = run;
    make_kind(setting, rng, step);
    step->count = duet_random_below(rng, ACCESSES + 1);
    step->priority = (int)duet_random_below(rng, 5) - 2;
    step->salt = duet_random_next(rng);
    if (step->kind == EXPANDS)
        step->count = MIN(step->count, EXPAND_ACCESSES);
    if (step->kind > EXPANDS)
        step->count = step->kind != WAIT;
    for (unsigned i = 0; i < step->count; i++) {
        step->handles[i] = draw_handle(setting, submitter, step->kind > EXPANDS, rng);
        step->modes[i] = (uint8_t)(1 + duet_random_below(rng, 3));
        if (duet_random_below(rng, 2))
            step->modes[i] = DUET_R;
        if (step->kind == RENEW)
            step->modes[i] = DUET_RW;
    }
    if (setting->nested && step->kind < KINDS && duet_random_below(rng, 3) == 0)
        step->nested = 1 + duet_random_below(rng, 3);
    step->results = g_new0(uint64_t, step->kind == EXPANDS ? RESULTS : 1);
}

/* What the task of a step carries. */
static inline struct argument step_argument(struct step *step)
{
    struct argument argument = {.step = step, .salt = step->salt};
    effective(step->handles, step->modes, step->count, argument.modes);
    return argument;
}

/* Conflicting steps of one submitter must have run in order of submission. */
static inline void check_order(const struct step *steps, unsigned count)
{
    uint64_t wrote[HANDLES] = {0}, touched[HANDLES] = {0};
    for (unsigned i = 0; i < count; i++) {
        const struct step *step = &steps[i];
        g_assert_cmpuint(step->turn, >, 0);
        for (unsigned a = 0; a < step->count; a++) {
            unsigned h = step->handles[a];
            g_assert_cmpuint(step->turn, >=, step->modes[a] & DUET_W ? touched[h] : wrote[h]);
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

struct block {
    unsigned access;
    size_t row, col, rows, cols;
    uint8_t mode; /* of the access */
};

struct child {
    enum kind kind;
    unsigned count;
    unsigned blocks[EXPAND_ACCESSES];
    uint8_t modes[EXPAND_ACCESSES];
    int priority;
    uint64_t salt;
};

/* What a task becomes: blocks of its accesses, and children on them in order. */
struct family {
    unsigned block_count, child_count;
    struct block blocks[BLOCKS];
    struct child children[CHILDREN];
};

/* Cuts a matrix into one to four blocks; some of those that are read may be left out. */
static inline void cut(struct family *family, uint64_t *rng, unsigned access,
                       const struct duet_buffer *buffer, uint8_t mode)
{
    size_t rows[] = {0, 1 + duet_random_below(rng, (unsigned)buffer->rows), buffer->rows};
    size_t cols[] = {0, 1 + duet_random_below(rng, (unsigned)buffer->cols), buffer->cols};
    for (unsigned i = 0; i < 4; i++) {
        unsigned r = i % 2, c = i / 2;
        if (rows[r] == rows[r + 1] || cols[c] == cols[c + 1])
            continue;
        if (mode != DUET_W && duet_random_below(rng, 5) == 0)
            continue;
        family->blocks[family->block_count++] = (struct block){.access = access,
                                                               .row = rows[r],
                                                               .col = cols[c],
                                                               .rows = rows[r + 1] - rows[r],
                                                               .cols = cols[c + 1] - cols[c],
                                                               .mode = mode};
    }
}

/* A child on random blocks. What its parent only writes, a child wrote before. */
static inline void make_child(struct family *family, uint64_t *rng, unsigned kinds)
{
    struct child *child = &family->children[family->child_count++];
    child->kind = (enum kind)duet_random_below(rng, kinds);
    child->priority = (int)duet_random_below(rng, 5) - 2;
    child->salt = duet_random_next(rng);
    child->count = family->block_count ? duet_random_below(rng, EXPAND_ACCESSES + 1) : 0;
    for (unsigned a = 0; a < child->count; a++) {
        unsigned b = duet_random_below(rng, family->block_count);
        bool writes = (family->blocks[b].mode & DUET_W) && duet_random_below(rng, 2);
        child->blocks[a] = b;
        child->modes[a] = writes ? (duet_random_below(rng, 2) ? DUET_RW : DUET_W) : DUET_R;
    }
}

/* The same family for the same argument, whoever asks. */
static inline void make_family(struct family *family, const struct argument *argument,
                               const struct duet_buffer *buffers, size_t count)
{
    uint64_t rng = argument->salt;
    memset(family, 0, sizeof *family);
    for (unsigned i = 0; i < count; i++)
        if (argument->modes[i])
            cut(family, &rng, i, &buffers[i], argument->modes[i]);
    for (unsigned b = 0; b < family->block_count; b++) {
        if (family->blocks[b].mode != DUET_W)
            continue;
        family->children[family->child_count++] =
            (struct child){.kind = (enum kind)duet_random_below(&rng, EXPANDS),
                           .count = 1,
                           .blocks = {b},
                           .modes = {DUET_W},
                           .salt = duet_random_next(&rng)};
    }
    unsigned kinds = argument->depth + 1 < DEPTH ? KINDS : EXPANDS;
    for (unsigned i = duet_random_below(&rng, 4); i > 0; i--)
        make_child(family, &rng, kinds);
}

/* What child c carries. */
static inline struct argument child_argument(const struct family *family,
                                             const struct argument *parent, unsigned c)
{
    const struct child *child = &family->children[c];
    struct argument argument = {.step = parent->step,
                                .salt = child->salt,
                                .number = parent->number * FAN + c + 1,
                                .depth = parent->depth + 1};
    effective(child->blocks, child->modes, child->count, argument.modes);
    return argument;
}

#endif
