/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs for tests, the same in all worlds: steps of several threads of the application on
 * matrices of their own or of all, what their tasks become when they expand, and the kernel that
 * they run, which no change of order leaves alone.
 */
#ifndef DUET_CORE_TESTING_PROGRAM_H
#define DUET_CORE_TESTING_PROGRAM_H

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <duet/duet.h>
#include <duet/layout.h>
#include <duet/policy.h>
#include <duet/random.h>

#include <glib.h>

enum {
    HANDLES_FEW = 18,
    HANDLES_MAX = 300, /* handles of programs with tasks of many accesses */
    PARTS_MAX = 200,   /* parts of all matrices; their numbers follow HANDLES_MAX */
    VIEWS_MAX = HANDLES_MAX + PARTS_MAX,
    CUT_PARTS = 4, /* most parts of one cut */
    ACCESSES = 4,
    ACCESSES_MAX = 500,
    ROWS_MAX = 12,
    COLS_MAX = 6,
    PADDING_MAX = 3, /* most padding of the leading dimension */
    WORDS_MAX = (ROWS_MAX + PADDING_MAX) * COLS_MAX,
    /* most bytes of a matrix on a device, also as two arrays */
    BYTES_MAX = (ROWS_MAX * COLS_MAX * 8 + 511) / 256 * 256,
    SUMS = 4, /* vectors that nested tasks add to */
    SUM_WORDS = 16,
    SUBMITTERS_MAX = 3,
    AFTER_MAX = 3, /* steps that one comes after without data */
    EXPAND_ACCESSES = 3,
    BLOCKS = 4 * EXPAND_ACCESSES, /* blocks of one expansion */
    CHILDREN = BLOCKS + 3,
    FAN = 16, /* more than CHILDREN */
    DEPTH = 3,
    RESULTS = FAN * FAN * FAN + FAN * FAN + FAN + 1,
    CPUS_MAX = 69,
    GPUS_MAX = 23,
    MORE_MAX = 1000,      /* bytes of arguments beyond those that have a meaning */
    LONG_FIRST = 1000000, /* programs from this number on are ten times as long */
};

enum kind {
    ANY,
    CPUS,
    DEVICES,
    EXPANDS,
    KINDS,        /* number of kinds of tasks */
    LOOK = KINDS, /* the application acquires and releases */
    RENEW,        /* the application unregisters, changes and registers again; or cuts anew */
    WAIT,         /* the application waits for all */
};

struct run;

struct step {
    struct run *run;
    enum kind kind;
    unsigned count;
    unsigned *handles;
    uint8_t *modes, *effective;
    uint8_t *shown; /* effective modes, by buffer of its kernel */
    int priority;
    bool on_device; /* only */
    uint64_t salt;
    unsigned nested;   /* tasks that its kernel submits */
    unsigned chain;    /* tasks, with scratch of their own, on temporary data that its task writes
                          besides; 0: none */
    uint64_t *results; /* what its tasks have read, by their number; one if it does not expand */
    uint64_t turn;     /* when it was run, from 1; 0: it was not */
    bool run_expands;  /* the program has tasks that expand */
    bool alone;        /* nothing comes after it but for its data */
    bool refers;       /* the application keeps a reference to it */
    bool waits;        /* which is waited for after its submission */
    unsigned after[AFTER_MAX]; /* steps that come before it, which are so many earlier; 0: none */
    struct duet_ref *ref;
    _Atomic(uint64_t) computed; /* its tasks that have ended */
    uint64_t seen;              /* hash of all tasks before it, at its beginning */
    _Atomic(unsigned) ended;    /* times that its end was told */
    bool anew;                  /* RENEW: all of it is written, for lack of contents */
    unsigned tells;             /* times that its end is told, if all goes well */
    bool recorded;              /* a graph has its task: see testing_graph.h */
    /* of the recording of a graph: times that its first step is submitted, its steps, and matrices
       that are exchanged in every other round */
    unsigned rounds, length, exchanged[2];
    unsigned stride;         /* steps to that of the next round, whose task is the same; 0: it is
                                another one */
    _Atomic(unsigned) begun; /* rounds that have begun, if the task is the same */
};

/* Argument of a task. */
struct argument {
    struct step *step;
    uint64_t salt;
    unsigned number; /* number of the task within its step: 0, those of its children FAN * it + 1
                        ... */
    unsigned depth;
    uint8_t modes[EXPAND_ACCESSES]; /* effective modes of a child */
};

/* Argument of tasks that carry more, with no meaning. */
struct carried {
    struct argument argument;
    uint8_t more[MORE_MAX];
};

/* Differences between the worlds in which programs run. */
struct world {
    const char *arch; /* architecture of devices: "emulated", "cuda" */
    duet_kernel_fn work, add;
    /* makes run->duet of run->setting.config */
    int (*open)(struct run *run, struct duet_message *message);
    /* where kernels take time and do nothing; all NULL elsewhere: a task was submitted, the
       application has acquired the step's matrix, all is over and to be carried out, and the
       runtime is closed */
    void (*submitted)(struct run *run, const struct duet_task_desc *desc);
    void (*touched)(struct run *run, struct step *step);
    void (*carry_out)(struct run *run);
    void (*closed)(struct run *run);
    bool stays; /* programs never _exit: that takes a fork, which real CUDA does not survive */
    /* where there are several nodes; all NULL elsewhere: registers a matrix, has made temporary
       data, says more of a task (NULL: of a step of the application), acquires */
    void (*attach)(struct run *run, unsigned h);
    void (*made)(struct run *run, struct duet_handle *handle, uint64_t salt);
    void (*before)(struct run *run, struct step *step, struct duet_task_extra *extra);
    int (*acquire)(struct run *run, struct step *step);
};

struct setting {
    const struct world *world;
    struct duet_config config; /* its seed is the number of the program */
    unsigned archs;            /* kinds of devices, where the test makes the machine */
    bool alone;                /* one thread does everything */
    bool spin;                 /* workers poll, where the test makes them */
    bool observed;             /* by a thread that asks for statistics all the time */
    unsigned steps, submitters;
    bool shared;               /* several submitters use the same matrices */
    bool expand, nested, look; /* steps that expand, that submit, that are the application's */
    bool wait;                 /* half of those that expand wait for children */
    bool wide;                 /* tasks with hundreds of accesses */
    bool varied;               /* no two tasks are of the same work */
    bool cut;                  /* matrices have parts, which have parts */
    unsigned fail_kernel, cancel_at; /* the n-th kernel or expansion; 0: none */
    unsigned fail_copy;              /* likewise, where the test copies */
    unsigned cancel_step;            /* step of the first submitter before which it cancels; 0:
                                        none */
    bool abrupt;                     /* the runtime is closed at once, everything registered */
    bool exits;                      /* the process ends, nothing is waited for or closed */
    bool pin;                        /* the application page-locks the matrices */
    bool loses;                      /* devices are lost */
    bool breaks;                     /* by kernels, which fail then */
    bool graphs;                     /* some steps are submitted as a graph */
    char lose[16 * GPUS_MAX];        /* config.lose points to it */
};

static inline uint64_t mix(uint64_t x)
{
    return duet_random_next(&x);
}

static inline bool one_of(uint64_t *rng, unsigned count)
{
    return duet_random_below(rng, count) == 0;
}

static inline bool is_simulated(const struct setting *setting)
{
    return setting->world->carry_out != NULL;
}

/* Returns the length of programs with such a number, beside the usual. */
static inline unsigned length_of(uint64_t number)
{
    return (uint32_t)number < LONG_FIRST ? 1 : 10;
}

static inline unsigned handle_count(const struct setting *setting)
{
    return setting->wide ? HANDLES_MAX : HANDLES_FEW;
}

static inline uint64_t *word(const struct duet_buffer *buffer, size_t row, size_t col)
{
    return (uint64_t *)buffer->data + row + col * buffer->ld;
}

/* Reads the buffers with these effective modes. Returns the value to write then. */
static inline uint64_t read_all(uint64_t salt, const struct duet_buffer *buffers,
                                const uint8_t *modes, size_t count)
{
    uint64_t sum = salt;
    for (size_t i = 0; i < count; i++)
        for (size_t col = 0; (modes[i] & DUET_R) && col < buffers[i].cols; col++)
            for (size_t row = 0; row < buffers[i].rows; row++)
                sum = mix(sum ^ *word(&buffers[i], row, col));
    return sum;
}

static inline uint64_t compute(uint64_t salt, const struct duet_buffer *buffers,
                               const uint8_t *modes, size_t count)
{
    uint64_t sum = read_all(salt, buffers, modes, count);
    for (size_t i = 0; i < count; i++)
        for (size_t col = 0; (modes[i] & DUET_W) && col < buffers[i].cols; col++)
            for (size_t row = 0; row < buffers[i].rows; row++)
                *word(&buffers[i], row, col) = mix(sum + 31 * i + row + 1000 * col);
    return sum;
}

/* Merges accesses: a handle (or block) given twice counts once. */
static inline void effective(const unsigned *handles, const uint8_t *given, unsigned count,
                             uint8_t *modes)
{
    unsigned first[VIEWS_MAX] = {0}; /* access to each, from 1 */
    for (unsigned i = 0; i < count; i++) {
        unsigned *at = &first[handles[i]];
        modes[i] = *at ? 0 : given[i];
        if (*at)
            modes[*at - 1] |= given[i];
        else
            *at = i + 1;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Settings                                                                                     */

/* Little memory, short windows; now and then many more workers than cores. */
static inline void draw_machine(struct setting *setting, uint64_t *rng)
{
    static const uint64_t memories[] = {1, 1, 2, 4, 100};
    struct duet_config *config = &setting->config;
    bool crowd = one_of(rng, 40);
    config->cpus = crowd ? CPUS_MAX : (int)duet_random_below(rng, 4);
    config->gpus = crowd ? GPUS_MAX : (int)duet_random_below(rng, 5);
    if (config->cpus + config->gpus == 0)
        config->cpus = 1;
    config->gpu_memory_bytes = memories[duet_random_below(rng, 5)] * ACCESSES * BYTES_MAX;
    config->no_peer = one_of(rng, 2);
    config->gpu_window = duet_random_below(rng, 5);
    config->gpu_window_short = one_of(rng, 2) ? 0 : config->gpu_window + 4;
    config->window = one_of(rng, 2) ? 0 : one_of(rng, 3) ? 1 : 2 + duet_random_below(rng, 40);
    config->no_bind = config->quiet = true;
    setting->archs = 1 + duet_random_below(rng, 3);
}

static inline void draw_failures(struct setting *setting, uint64_t *rng)
{
    unsigned failure = duet_random_below(rng, 20);
    unsigned when = 1 + duet_random_below(rng, 100 * length_of(setting->config.seed));
    setting->fail_kernel = failure == 0 ? when : 0;
    setting->cancel_at = failure == 1 ? when : 0;
    setting->cancel_step = failure == 2 ? when : 0;
    setting->fail_copy = failure == 3 ? when : 0;
}

/* The program with this number, but for the machine, losses and what else a world is about. */
static inline void draw_program(struct setting *setting, uint64_t *rng, unsigned length)
{
    unsigned policies = 0;
    while (duet_policy_at(policies))
        policies++;
    setting->config.policy = duet_policy_at(duet_random_below(rng, policies))->name;
    setting->config.model = one_of(rng, 2)                  ? "history"
                            : setting->config.seed % 3 == 1 ? "regression"
                                                            : "segmented";
    setting->config.perturbation = setting->config.seed % 6 == 1 ? 0.3 : 0;
    setting->config.set_arch = one_of(rng, 4);
    setting->config.record = one_of(rng, 2);
    setting->config.keep_going = setting->config.seed % 2;
    setting->config.hold = setting->config.seed % 4 == 2;
    setting->config.nearest_source = setting->config.seed % 3 == 0;
    setting->config.priorities = setting->config.seed % 5 == 0   ? "bottom-level"
                                 : setting->config.seed % 5 == 1 ? "none"
                                                                 : NULL;
    setting->submitters = one_of(rng, 2) ? 1 + duet_random_below(rng, SUBMITTERS_MAX) : 1;
    setting->shared = setting->submitters > 1 && one_of(rng, 2);
    setting->steps =
        1 + duet_random_below(rng, length * length_of(setting->config.seed) / setting->submitters);
    setting->look = one_of(rng, 2);
    setting->nested = one_of(rng, 2);
    setting->expand = setting->config.cpus && one_of(rng, 2);
    setting->wait = true;
    setting->wide = one_of(rng, 8);
    setting->varied = one_of(rng, 2);
    setting->cut = one_of(rng, 2);
    setting->observed = one_of(rng, 2);
    setting->graphs = setting->config.seed % 5 < 2;
    setting->abrupt = one_of(rng, 6);
    setting->pin = one_of(rng, 2);
    draw_failures(setting, rng);
    if (setting->wide && (!setting->config.cpus || setting->config.set_arch))
        setting->config.gpu_memory_bytes = (HANDLES_MAX + SUMS) * BYTES_MAX;
}

/* ------------------------------------------------------------------------------------------- */
/* Steps                                                                                        */

/* A matrix for a submitter; one that only it may acquire, if it is to. */
static inline unsigned draw_handle(const struct setting *setting, unsigned submitter, bool acquire,
                                   uint64_t *rng)
{
    unsigned share = handle_count(setting) / setting->submitters;
    if (setting->shared && !acquire)
        return duet_random_below(rng, handle_count(setting));
    return submitter * share + duet_random_below(rng, share);
}

static inline void make_kind(const struct setting *setting, uint64_t *rng, struct step *step)
{
    bool gpus = setting->config.gpus > 0, cpus = setting->config.cpus > 0;
    unsigned drawn = duet_random_below(rng, 16);
    step->kind = gpus && cpus ? (enum kind)duet_random_below(rng, 3) : ANY;
    step->on_device = step->kind != CPUS && gpus && one_of(rng, 4);
    if (setting->look && drawn == 0)
        step->kind = LOOK;
    if (setting->look && drawn == 1)
        step->kind = setting->shared ? WAIT : RENEW;
    if (setting->expand && drawn > 12)
        step->kind = EXPANDS;
    step->count = duet_random_below(rng, ACCESSES + 1);
    if (setting->wide && step->kind < EXPANDS && drawn == 2) {
        step->kind = ANY; /* it may have to be a CPU, for the memory */
        step->on_device = false;
        step->count = 100 + duet_random_below(rng, ACCESSES_MAX - 99);
    }
    if (step->kind >= EXPANDS)
        step->on_device = false;
    if (step->kind == EXPANDS)
        step->count = MIN(step->count, EXPAND_ACCESSES);
    if (step->kind > EXPANDS)
        step->count = step->kind != WAIT;
}

/*
 * Draws the tasks it comes after, among the steps that its submitter has made before, `earlier` in
 * number.
 */
static inline void make_after(struct step *step, unsigned earlier)
{
    uint64_t drawn = mix(step->salt + 77);
    if (step->recorded)
        return;
    step->refers = step->kind < KINDS && !step->chain && drawn & 1 && !step->alone;
    step->waits = step->refers && (drawn >> 1) % 16 == 0;
    for (unsigned i = 0; i < AFTER_MAX && step->kind < KINDS && (drawn >> 5) % 3 == 0; i++) {
        unsigned back = 1 + (drawn >> (8 + 8 * i)) % 20;
        if (back <= earlier && (step - back)->refers)
            step->after[i] = back;
    }
}

/* Returns how many of the tasks that it comes after have ended. */
static inline uint64_t look_back(const struct step *step)
{
    uint64_t computed = 0;
    for (unsigned i = 0; i < AFTER_MAX; i++)
        if (step->after[i])
            computed += atomic_load(&(step - step->after[i])->computed);
    return computed;
}
/*
 * Draws the matrices and parts that a step uses: parts that overlap none of the others, unless both
 * are only read.
 */
static inline void draw_parts(struct run *run, struct step *step, uint64_t *rng);
/* Fills in step->shown. */
static inline void show_modes(const struct run *run, struct step *step);

static inline void make_step(struct run *run, const struct setting *setting, unsigned submitter,
                             uint64_t *rng, struct step *step)
{
    *step = (struct step){.run = run};
    make_kind(setting, rng, step);
    step->priority = (int)duet_random_below(rng, 5) - 2;
    step->salt = duet_random_next(rng);
    step->handles = g_new(unsigned, step->count + 1);
    step->modes = g_new(uint8_t, 2 * step->count + 1);
    step->effective = step->modes + step->count;
    for (unsigned i = 0; i < step->count; i++) {
        step->handles[i] = draw_handle(setting, submitter, step->kind > EXPANDS, rng);
        step->modes[i] = (uint8_t)(1 + duet_random_below(rng, 3));
        if (one_of(rng, 2))
            step->modes[i] = DUET_R;
        if (step->kind == RENEW)
            step->modes[i] = DUET_RW;
    }
    draw_parts(run, step, rng);
    effective(step->handles, step->modes, step->count, step->effective);
    show_modes(run, step);
    /* a simulated kernel does nothing */
    bool submits = step->kind == EXPANDS || !is_simulated(setting);
    if (setting->nested && submits && step->kind < KINDS && one_of(rng, 3))
        step->nested = 1 + duet_random_below(rng, 3);
    /* drawn from the salt: what else a program is does not depend on it */
    if (step->kind < EXPANDS && step->count < ACCESSES && step->salt >> 40 & 1)
        step->chain = 1 + (unsigned)(step->salt >> 41 & 3);
    step->alone = setting->world->attach;
    step->tells = step->kind < KINDS;
    step->run_expands =
        setting->expand && !is_simulated(setting); /* which has no memory for blocks */
    step->results = g_new0(uint64_t, step->kind == EXPANDS || step->chain ? RESULTS : 1);
}

static inline void step_free(struct step *step)
{
    g_free(step->handles);
    g_free(step->modes);
    g_free(step->shown);
    g_free(step->results);
    duet_ref_free(step->ref);
}

/* Conflicting steps of one submitter must have run in order of submission. */
static inline void check_order(const struct step *steps, unsigned count)
{
    uint64_t wrote[VIEWS_MAX] = {0}, touched[VIEWS_MAX] = {0};
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
    uint8_t mode; /* mode of the access */
};

struct child {
    enum kind kind;
    unsigned count;
    unsigned blocks[EXPAND_ACCESSES];
    uint8_t modes[EXPAND_ACCESSES];
    int priority;
    uint64_t salt;
};

/* Expansion of a task: blocks of its accesses, and children on them in order. */
struct family {
    unsigned block_count, child_count;
    struct block blocks[BLOCKS];
    struct child children[CHILDREN];
};

/* Effective modes of the task's buffers. */
static inline const uint8_t *modes_of(const struct argument *argument)
{
    return argument->number ? argument->modes : argument->step->shown;
}

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
        if (mode != DUET_W && one_of(rng, 5))
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
        bool writes = (family->blocks[b].mode & DUET_W) && one_of(rng, 2);
        child->blocks[a] = b;
        child->modes[a] = writes ? (one_of(rng, 2) ? DUET_RW : DUET_W) : DUET_R;
    }
}

/* Makes the family of an argument, the same for every caller. */
static inline void make_family(struct family *family, const struct argument *argument,
                               const struct duet_buffer *buffers, size_t count)
{
    uint64_t rng = argument->salt;
    const uint8_t *modes = modes_of(argument);
    memset(family, 0, sizeof *family);
    for (unsigned i = 0; i < count; i++)
        if (modes[i])
            cut(family, &rng, i, &buffers[i], modes[i]);
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

/* Returns the argument of the task of a step, and of child c of a task. */
static inline struct argument step_argument(struct step *step)
{
    return (struct argument){.step = step, .salt = step->salt};
}

/* Returns the argument of the n-th task on the temporary data of a step, n from 1. */
static inline struct argument chain_argument(struct step *step, unsigned n)
{
    struct argument argument = {.step = step, .salt = mix(step->salt + n), .number = n, .depth = 1};
    argument.modes[0] = (uint8_t)(argument.salt >> 8 & 1 ? DUET_RW : DUET_R);
    argument.modes[1] = DUET_W; /* scratch: it is written, and never read */
    return argument;
}

/* Some of them expand. */
static inline enum kind chain_kind(const struct step *step, unsigned n)
{
    bool expands = step->run_expands && mix(step->salt + n) >> 9 & 1;
    return expands ? EXPANDS : step->kind;
}

/* The shape of that data: rows and columns. */
static inline void chain_shape(const struct step *step, size_t *rows, size_t *cols)
{
    uint64_t rng = step->salt;
    *rows = 1 + duet_random_below(&rng, ROWS_MAX);
    *cols = 1 + duet_random_below(&rng, COLS_MAX);
}

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

/* Every fourth carries more, up to MORE_MAX. */
static inline size_t more_of(const struct argument *argument)
{
    return argument->salt >> 40 & 3 ? 0 : (argument->salt >> 42) % (MORE_MAX + 1);
}

/* Makes the carried argument. Returns its bytes. */
static inline size_t carry(struct carried *carried, const struct argument *argument)
{
    carried->argument = *argument;
    for (size_t i = 0; i < more_of(argument); i++)
        carried->more[i] = (uint8_t)mix(argument->salt + i);
    return offsetof(struct carried, more) + more_of(argument);
}

/* Checks that an argument arrives whole, aligned as malloc does. */
static inline void check_carried(const void *args)
{
    const struct carried *carried = args;
    g_assert_cmpuint((uintptr_t)args % 16, ==, 0);
    for (size_t i = 0; i < more_of(&carried->argument); i++)
        g_assert_cmpuint(carried->more[i], ==, (uint8_t)mix(carried->argument.salt + i));
}

/* ------------------------------------------------------------------------------------------- */
/* The state of a program that runs, and the forms in which matrices are registered */

/* Forms: duet_register_matrix; two arrays, of the first and the last columns; an own type. */
enum form { FORM_MATRIX, FORM_ARRAYS, FORM_OBJECT };

/* Contents of an own type: its matrix. */
struct object {
    size_t rows, cols, ld;
    uint64_t *words;
    uint64_t stamp; /* the first word, for whoever writes it */
};

/* A matrix, or a part of one, is cut. */
struct cutting {
    unsigned whole, first, count; /* numbers: of what is cut, of the parts */
    struct duet_part parts[CUT_PARTS];
};

struct run {
    struct setting setting;
    struct cutting cuts[PARTS_MAX];
    unsigned cut_count, part_count;
    const struct cutting *cut_by[VIEWS_MAX]; /* that made this part; NULL: it is a matrix */
    struct duet_runtime *duet;
    void *own;                                     /* the world's */
    struct duet_codelet *codelets[KINDS], *add[2]; /* add: anywhere, on CPUs */
    struct duet_codelet *waits;                    /* kernel of half of the tasks that expand */
    struct duet_codelet *clear, *add_up;           /* contributions to sums; NULL: none */
    struct duet_buffer real[VIEWS_MAX], expected[VIEWS_MAX];
    uint64_t real_words[HANDLES_MAX][WORDS_MAX], expected_words[HANDLES_MAX][WORDS_MAX];
    uint64_t real_sums[SUMS][SUM_WORDS], expected_sums[SUMS][SUM_WORDS];
    struct duet_handle *handles[VIEWS_MAX], *sums[SUMS];
    struct step *steps; /* those of submitter s begin at s * setting.steps */
    uint64_t tasks;     /* that the oracle has carried out */
    _Atomic(uint64_t) turn, kernels, copies, real_bare;
    uint64_t expected_bare;
    unsigned behind;         /* tasks submitted together with the last one, and after it */
    _Atomic(int) refused;    /* the first error of a submission */
    _Atomic(bool) must_fail; /* it was made to, and did */
    _Atomic(bool) over;      /* observers are to end */
    bool pinned;             /* the matrices */
    /* the run has failed: the oracle ignores what tasks have read */
    bool lenient;
    bool valid[HANDLES_MAX]; /* at the end */
    uint8_t form[VIEWS_MAX]; /* enum form */
    struct object objects[HANDLES_MAX];
};

/* ------------------------------------------------------------------------------------------- */
/* Own types                                                                                    */

static inline size_t object_bytes(const void *from)
{
    const struct object *object = from;
    return object->rows * object->cols * sizeof(uint64_t);
}

static inline void object_place(void *to, void *memory)
{
    struct object *object = to;
    object->words = memory;
    object->ld = object->rows;
}

static inline void object_copy(const void *from, void *to, struct duet_pieces *pieces)
{
    const struct object *source = from;
    struct object *object = to;
    object->stamp = source->stamp;
    for (size_t j = 0; j < object->cols; j++)
        duet_add_piece(pieces, object->words + j * object->ld, source->words + j * source->ld,
                       object->rows * sizeof(uint64_t));
}

static const struct duet_type object_type = {.name = "object",
                                             .object_bytes = sizeof(struct object),
                                             .bytes = object_bytes,
                                             .place = object_place,
                                             .copy = object_copy};

/*
 * Returns the matrix of a kernel's buffer, where an object has it. A kernel that wrote an object
 * must have said so.
 */
static inline struct duet_buffer matrix_in(const struct duet_buffer *buffer, uint8_t mode)
{
    if (buffer->element_bytes == sizeof(uint64_t))
        return *buffer;
    const struct object *object = buffer->data;
    if (mode & DUET_R)
        g_assert_cmphex(object->stamp, ==, *object->words);
    return (struct duet_buffer){.data = object->words,
                                .rows = object->rows,
                                .cols = object->cols,
                                .ld = object->ld,
                                .element_bytes = sizeof(uint64_t)};
}

/* `compute` of buffers that may be objects. */
static inline uint64_t compute_in(uint64_t salt, const struct duet_call *call, const uint8_t *modes)
{
    struct duet_buffer *seen = g_new(struct duet_buffer, call->buffer_count + 1);
    for (size_t i = 0; i < call->buffer_count; i++)
        seen[i] = matrix_in(&call->buffers[i], modes[i]);
    uint64_t result = compute(salt, seen, modes, call->buffer_count);
    for (size_t i = 0; i < call->buffer_count; i++)
        if (call->buffers[i].element_bytes != sizeof(uint64_t) && (modes[i] & DUET_W))
            ((struct object *)call->buffers[i].data)->stamp = *word(&seen[i], 0, 0);
    g_free(seen);
    return result;
}

/* ------------------------------------------------------------------------------------------- */
/* Forms                                                                                        */

/* Every sixth matrix that is not cut is of one of the others, where kernels know of these. */
static inline void draw_form(struct run *run, unsigned h, bool possible)
{
    if (!possible || h % 6 != 5)
        return;
    for (unsigned i = 0; i < run->cut_count; i++)
        if (run->cuts[i].whole == h)
            return;
    run->form[h] = h / 6 % 2 ? FORM_OBJECT : FORM_ARRAYS;
}

/* The columns of a matrix in its first array, or all of them. */
static inline size_t first_columns(const struct run *run, unsigned view, size_t cols)
{
    return run->form[view] == FORM_ARRAYS && cols > 1 ? cols / 2 : cols;
}

/* The buffers that kernels see of one. How many: 1 or 2. */
static inline unsigned show(const struct run *run, unsigned view, const struct duet_buffer *matrix,
                            struct duet_buffer *out)
{
    size_t first = first_columns(run, view, matrix->cols);
    out[0] = out[1] = *matrix;
    out[0].cols = first;
    out[1].cols -= first;
    out[1].data = word(matrix, 0, first);
    return first < matrix->cols ? 2 : 1;
}

static inline void show_modes(const struct run *run, struct step *step)
{
    unsigned n = 0;
    step->shown = g_new(uint8_t, 2 * step->count + 1);
    for (unsigned i = 0; i < step->count; i++) {
        const unsigned view = step->handles[i];
        const size_t cols = run->real[view].cols;
        for (unsigned k = first_columns(run, view, cols) < cols ? 2 : 1; k > 0; k--)
            step->shown[n++] = step->effective[i];
    }
    step->shown[n] = DUET_W; /* temporary data */
}

/* The application has written it itself. */
static inline void stamp(struct run *run, unsigned h)
{
    const struct duet_buffer *matrix = &run->real[h];
    if (run->form[h] != FORM_OBJECT)
        return;
    run->objects[h] =
        (struct object){matrix->rows, matrix->cols, matrix->ld, matrix->data, *word(matrix, 0, 0)};
}

static inline int register_matrix(struct run *run, unsigned h)
{
    const struct duet_buffer *matrix = &run->real[h];
    struct duet_buffer shown[2];
    struct duet_array arrays[2];
    const unsigned count = show(run, h, matrix, shown);
    for (unsigned i = 0; i < count; i++)
        arrays[i] = (struct duet_array){shown[i].data, shown[i].rows, shown[i].cols, shown[i].ld,
                                        sizeof(uint64_t)};
    stamp(run, h);
    if (run->form[h] == FORM_ARRAYS)
        return duet_register_arrays(run->duet, arrays, count, &run->handles[h]);
    if (run->form[h] == FORM_OBJECT)
        return duet_register_object(run->duet, &object_type, &run->objects[h], &run->handles[h]);
    return duet_register_matrix(run->duet, matrix->data, matrix->rows, matrix->cols, matrix->ld,
                                sizeof(uint64_t), &run->handles[h]);
}

#endif
