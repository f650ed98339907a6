/* SPDX-License-Identifier: Apache-2.0 */
/* What the tasks of a random program do: compute, expand, submit tasks of their own, fail. */
#ifndef DUET_CORE_TESTING_TASKS_H
#define DUET_CORE_TESTING_TASKS_H

#include <sched.h>

#include "core/testing_program.h"

struct run {
    struct setting setting;
    struct duet_runtime *duet;
    void *own;                                     /* the world's */
    struct duet_codelet *codelets[KINDS], *add[2]; /* add: anywhere, on CPUs */
    struct duet_buffer real[HANDLES_MAX], expected[HANDLES_MAX];
    uint64_t real_words[HANDLES_MAX][WORDS_MAX], expected_words[HANDLES_MAX][WORDS_MAX];
    uint64_t real_sums[SUMS][SUM_WORDS], expected_sums[SUMS][SUM_WORDS];
    struct duet_handle *handles[HANDLES_MAX], *sums[SUMS];
    struct step *steps; /* those of submitter s begin at s * setting.steps */
    uint64_t tasks;     /* that the oracle has carried out */
    _Atomic(uint64_t) turn, kernels, copies, real_bare;
    uint64_t expected_bare;
    _Atomic(int) refused;    /* the first error of a submission */
    _Atomic(bool) must_fail; /* it was made to, and did */
    _Atomic(bool) over;      /* observers are to end */
    bool pinned;             /* the matrices */
};

/* ------------------------------------------------------------------------------------------- */
/* Nested tasks: they add, so that their order does not matter                                  */

/* What an adding task carries. */
struct addition {
    struct run *run;
    uint64_t salt;
    unsigned deeper; /* generations of tasks that come of it */
};

/*
 * Half of them have no data at all, and add to a number that is none of the library's: not where
 * only devices that may be lost could run them, and run them again.
 */
static inline bool is_bare(const struct run *run, uint64_t salt)
{
    return (salt >> 20 & 1) && !(run->setting.loses && run->setting.config.cpus == 0);
}

static inline uint64_t descendant(uint64_t salt, unsigned i)
{
    return mix(salt + 1000 + i);
}

/* Generations of the i-th task that a step's submits. */
static inline unsigned generations(const struct run *run, uint64_t salt, unsigned i)
{
    return is_simulated(&run->setting) ? 0 : (unsigned)(salt >> i) % 5;
}

static inline void add_to(uint64_t *words, uint64_t salt)
{
    for (uint64_t j = 0; j < SUM_WORDS; j++)
        words[j] += mix(salt + j);
}

/* The world learns what was accepted; the run, what was refused first. */
static inline int submitted(struct run *run, int error, const struct duet_task_desc *desc)
{
    int none = DUET_OK;
    if (error)
        (void)atomic_compare_exchange_strong(&run->refused, &none, error);
    else if (run->setting.world->submitted)
        run->setting.world->submitted(run, desc);
    return error;
}

/*
 * Where devices may be lost and their tasks run again, CPUs run what adds to memory that is not the
 * device's.
 */
static inline void submit_addition(struct run *run, uint64_t salt, unsigned deeper)
{
    const struct addition addition = {.run = run, .salt = salt, .deeper = deeper};
    const enum duet_mode mode = salt >> 30 & 1 ? DUET_COMMUTE : DUET_RW;
    const struct duet_access access = {run->sums[salt % SUMS], mode};
    const struct duet_task_desc desc = {.codelet =
                                            run->add[run->setting.loses && is_bare(run, salt)],
                                        .accesses = &access,
                                        .access_count = !is_bare(run, salt),
                                        .args = &addition,
                                        .args_bytes = sizeof addition};
    (void)submitted(run, duet_submit(run->duet, &desc), &desc);
}

static inline void submit_nested(struct run *run, uint64_t salt, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        submit_addition(run, descendant(salt, i), generations(run, salt, i));
}

static inline void replay_addition(struct run *run, uint64_t salt, unsigned deeper)
{
    run->tasks++;
    if (is_bare(run, salt))
        run->expected_bare += mix(salt);
    else
        add_to(run->expected_sums[salt % SUMS], salt);
    for (unsigned i = 0; deeper && i < 2; i++)
        replay_addition(run, descendant(salt, i), deeper - 1);
}

static inline void replay_nested(struct run *run, uint64_t salt, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        replay_addition(run, descendant(salt, i), generations(run, salt, i));
}

/* ------------------------------------------------------------------------------------------- */
/* Kernels                                                                                      */

/* The n-th of something that is to fail then: whether it does. */
static inline int count(struct run *run, _Atomic(uint64_t) *counter, unsigned fails, uint64_t *out)
{
    *out = atomic_fetch_add(counter, 1) + 1;
    if (*out != fails)
        return DUET_OK;
    atomic_store(&run->must_fail, true);
    return DUET_EIO;
}

/* What all kernels begin with: the one that is to fails, or cancels the run. */
static inline int count_kernel(struct run *run)
{
    uint64_t number;
    int error = count(run, &run->kernels, run->setting.fail_kernel, &number);
    if (number % 16 == 0)
        (void)sched_yield();
    if (number == run->setting.cancel_at) {
        atomic_store(&run->must_fail, true);
        duet_cancel(run->duet);
    }
    return error;
}

static inline int add(const struct duet_call *call)
{
    struct addition addition;
    memcpy(&addition, call->args, sizeof addition);
    int error = count_kernel(addition.run);
    if (error)
        return error;
    if (call->buffer_count)
        add_to(call->buffers[0].data, addition.salt);
    else
        (void)atomic_fetch_add(&addition.run->real_bare, mix(addition.salt));
    for (unsigned i = 0; addition.deeper && i < 2; i++)
        submit_addition(addition.run, descendant(addition.salt, i), addition.deeper - 1);
    return DUET_OK;
}

/* The task of a step begins, not one of its children. */
static inline void begin(const struct argument *argument)
{
    struct step *step = argument->step;
    if (argument->number)
        return;
    g_assert_true(step->turn == 0 || step->run->setting.loses);
    step->turn = atomic_fetch_add(&step->run->turn, 1) + 1;
    step->seen = look_back(step);
    submit_nested(step->run, step->salt, step->nested);
}

static inline int work(const struct duet_call *call)
{
    struct argument argument;
    memcpy(&argument, call->args, sizeof argument);
    check_carried(call->args);
    g_assert_true(call->runtime == argument.step->run->duet);
    int error = count_kernel(argument.step->run);
    if (error)
        return error;
    begin(&argument);
    argument.step->results[argument.number] =
        compute(argument.salt, call->buffers, modes_of(&argument), call->buffer_count);
    atomic_fetch_add(&argument.step->computed, 1);
    return DUET_OK;
}

/* All tasks carry a pointer and their salt first, of which this is made: each its own work. */
static inline double varied_flops(const void *args)
{
    struct addition addition;
    memcpy(&addition, args, sizeof addition);
    return 1 + (double)(addition.salt >> 11);
}

/* Up to 20 us; on devices less. */
static inline double cost(const void *args, const char *arch)
{
    struct addition addition;
    memcpy(&addition, args, sizeof addition);
    return (1e-9 + 2e-5 * duet_random_unit(&addition.salt)) / (strstr(arch, "card") ? 3 : 1);
}

static inline int submit_child(struct run *run, struct duet_expansion *expansion,
                               const struct family *family, struct duet_handle *const *blocks,
                               const struct argument *parent, unsigned c)
{
    const struct child *child = &family->children[c];
    const struct argument argument = child_argument(family, parent, c);
    struct carried carried;
    struct duet_access accesses[EXPAND_ACCESSES];
    for (unsigned a = 0; a < child->count; a++)
        accesses[a] =
            (struct duet_access){blocks[child->blocks[a]], (enum duet_mode)child->modes[a]};
    const struct duet_task_desc desc = {.codelet = run->codelets[child->kind],
                                        .accesses = accesses,
                                        .access_count = child->count,
                                        .args = &carried,
                                        .args_bytes = carry(&carried, &argument),
                                        .priority = child->priority};
    return submitted(run, duet_expand_submit(expansion, &desc), &desc);
}

static inline int expand(struct duet_expansion *expansion, const struct duet_call *call)
{
    struct argument argument;
    struct family family;
    struct duet_handle *blocks[BLOCKS];
    memcpy(&argument, call->args, sizeof argument);
    check_carried(call->args);
    int error = count_kernel(argument.step->run);
    if (error)
        return error;
    begin(&argument);
    make_family(&family, &argument, call->buffers, call->buffer_count);
    for (unsigned b = 0; b < family.block_count && !error; b++)
        error = duet_expand_block(expansion, family.blocks[b].access, family.blocks[b].row,
                                  family.blocks[b].col, family.blocks[b].rows,
                                  family.blocks[b].cols, &blocks[b]);
    for (unsigned c = 0; c < family.child_count && !error; c++)
        error = submit_child(argument.step->run, expansion, &family, blocks, &argument, c);
    return error;
}

#endif
