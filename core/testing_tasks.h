/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the tasks of a random program: compute, expand, submit tasks of their own, fail. */
#ifndef DUET_CORE_TESTING_TASKS_H
#define DUET_CORE_TESTING_TASKS_H

#include <sched.h>

#include <duet/hint.h>
#include <duet/parts.h>

#include "core/testing_program.h"

/* ------------------------------------------------------------------------------------------- */
/* Parts                                                                                        */

static inline struct duet_buffer window_of(const struct duet_buffer *whole,
                                           const struct duet_part *part)
{
    struct duet_buffer buffer = *whole;
    buffer.data = word(whole, part->row, part->col);
    buffer.rows = part->rows;
    buffer.cols = part->cols;
    return buffer;
}

/* Draws a cut into one to four parts, of which some may be left out. */
static inline void draw_cut(struct run *run, unsigned whole, uint64_t *rng)
{
    const struct duet_buffer *buffer = &run->real[whole];
    if (run->part_count + CUT_PARTS > PARTS_MAX)
        return;
    struct cutting *cut = &run->cuts[run->cut_count++];
    *cut = (struct cutting){.whole = whole, .first = HANDLES_MAX + run->part_count};
    size_t rows[] = {0, 1 + duet_random_below(rng, (unsigned)buffer->rows), buffer->rows};
    size_t cols[] = {0, 1 + duet_random_below(rng, (unsigned)buffer->cols), buffer->cols};
    for (unsigned i = 0; i < CUT_PARTS; i++) {
        unsigned r = i % 2, c = i / 2, number = HANDLES_MAX + run->part_count;
        if (rows[r] == rows[r + 1] || cols[c] == cols[c + 1] || (cut->count && one_of(rng, 5)))
            continue;
        struct duet_part *part = &cut->parts[cut->count++];
        *part = (struct duet_part){rows[r], cols[c], rows[r + 1] - rows[r], cols[c + 1] - cols[c]};
        run->real[number] = window_of(buffer, part);
        run->expected[number] = window_of(&run->expected[whole], part);
        run->cut_by[number] = cut;
        run->part_count++;
    }
}

static inline unsigned matrix_of(const struct run *run, unsigned view)
{
    while (run->cut_by[view])
        view = run->cut_by[view]->whole;
    return view;
}

/* Up to two cuts of a matrix, and now and then some of their parts. */
static inline void draw_cuts(struct run *run, unsigned h, uint64_t *rng)
{
    unsigned first = run->part_count;
    for (unsigned i = duet_random_below(rng, 3); i > 0; i--)
        draw_cut(run, h, rng);
    for (unsigned end = run->part_count; first < end; first++)
        if (one_of(rng, 4))
            draw_cut(run, HANDLES_MAX + first, rng);
}

/* Cuts a matrix as was drawn, and its parts. */
static inline void cut_matrix(struct run *run, unsigned h)
{
    for (unsigned i = 0; i < run->cut_count; i++) {
        const struct cutting *cut = &run->cuts[i];
        if (matrix_of(run, cut->whole) == h)
            g_assert_cmpint(duet_cut(run->duet, run->handles[cut->whole], cut->parts, cut->count,
                                     &run->handles[cut->first]),
                            ==, DUET_OK);
    }
}

/* true unless they are parts of one cut, of other matrices, or the same. */
static inline bool overlap(const struct run *run, unsigned a, unsigned b)
{
    for (unsigned x = a;; x = run->cut_by[x]->whole) {
        const struct cutting *by = NULL;
        for (unsigned y = b;; y = run->cut_by[y]->whole) {
            if (x == y && a != b) {
                const struct cutting *way = NULL;
                for (unsigned z = a; z != x; z = way->whole)
                    way = run->cut_by[z];
                return way != by;
            }
            by = run->cut_by[y];
            if (!by)
                break;
        }
        if (!run->cut_by[x])
            return false;
    }
}

static inline void draw_parts(struct run *run, struct step *step, uint64_t *rng)
{
    /* what is no matrix has no blocks, and another neighbour that is one */
    for (unsigned i = 0; i < step->count && step->kind == EXPANDS; i++)
        step->handles[i] -= run->form[step->handles[i]] != FORM_MATRIX;
    for (unsigned i = 0; i < step->count && run->part_count && step->kind != RENEW; i++) {
        unsigned *view = &step->handles[i], part = HANDLES_MAX + duet_random_below(rng, PARTS_MAX);
        for (unsigned tries = 0; tries < run->part_count; tries++) {
            part = HANDLES_MAX + (part - HANDLES_MAX + 1) % run->part_count;
            if (matrix_of(run, part) == *view)
                break;
        }
        if (matrix_of(run, part) == *view && !one_of(rng, 3))
            *view = part;
        for (unsigned j = 0; j < i; j++) {
            if (((step->modes[i] | step->modes[j]) & DUET_W) &&
                overlap(run, step->handles[i], step->handles[j])) {
                step->handles[i] = step->handles[j];
                step->modes[i] = DUET_R;
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Nested tasks: they add, so that their order does not matter                                  */

/* Argument of an adding task. */
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

/* Gives hints about the data of a later step, now and then. */
static inline void give_hints(const struct run *run, const struct step *step)
{
    unsigned nodes = 1 + (unsigned)run->setting.config.gpus;
    for (unsigned a = 0; a < step->count && a < ACCESSES; a++) {
        struct duet_handle *handle = run->handles[step->handles[a]];
        uint64_t drawn = mix(step->salt + 500 + a);
        int error = DUET_OK;
        if (drawn % 8 == 0)
            error = duet_prefetch(run->duet, handle, (unsigned)(drawn >> 8) % nodes);
        else if (drawn % 8 == 1)
            error = duet_wont_use(run->duet, handle);
        else if (drawn % 4 == 2 && !run->setting.shared && step->effective[a] == DUET_W)
            error = duet_invalidate(run->duet, handle);
        g_assert_cmpint(error, ==, DUET_OK);
    }
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

/* True if sums are reduced: there is code for it. */
static inline bool reduces(const struct run *run)
{
    return run->add_up != NULL;
}

static inline enum duet_mode adding_mode(const struct run *run, uint64_t salt)
{
    static const enum duet_mode modes[] = {DUET_RW, DUET_COMMUTE, DUET_REDUCE, DUET_REDUCE};
    return modes[salt >> 30 & (reduces(run) ? 3 : 1)];
}

static inline int clear_sum(const struct duet_call *call)
{
    memset(call->buffers[0].data, 0, SUM_WORDS * sizeof(uint64_t));
    return DUET_OK;
}

static inline int add_up(const struct duet_call *call)
{
    uint64_t *into = call->buffers[0].data;
    const uint64_t *from = call->buffers[1].data;
    for (unsigned i = 0; i < SUM_WORDS; i++)
        into[i] += from[i];
    return DUET_OK;
}

/*
 * Submits an addition. If devices may be lost and their tasks run again, CPUs run additions to
 * memory that is not the device's.
 */
static inline void submit_addition(struct run *run, uint64_t salt, unsigned deeper)
{
    const struct addition addition = {.run = run, .salt = salt, .deeper = deeper};
    const enum duet_mode mode = adding_mode(run, salt);
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

/* Begins all kernels: the chosen one fails, or cancels the run. */
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

/*
 * The task of a step begins, not one of its children. Where the task is the same in all rounds of a
 * graph, that of the next round does.
 */
static inline void begin(struct argument *argument)
{
    if (argument->number)
        return;
    if (argument->step->stride)
        argument->step +=
            (size_t)argument->step->stride * atomic_fetch_add(&argument->step->begun, 1);
    struct step *step = argument->step;
    g_assert_true(step->turn == 0 || step->run->setting.loses);
    step->turn = atomic_fetch_add(&step->run->turn, 1) + 1;
    step->seen = look_back(step);
    give_hints(step->run, step); /* which do nothing in a kernel */
    submit_nested(step->run, step->salt, step->nested);
}

static inline int work(const struct duet_call *call)
{
    struct argument argument;
    memcpy(&argument, call->args, sizeof argument);
    check_carried(call->args);
    g_assert_true(call->runtime == argument.step->run->duet);
    int error = count_kernel(argument.step->run);
    if (error) {
        /* what it leaves is not valid */
        (void)compute_in(~argument.salt, call, modes_of(&argument));
        return error;
    }
    begin(&argument);
    argument.step->results[argument.number] = compute_in(argument.salt, call, modes_of(&argument));
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

/* Does a task that expands wait for its first children, and compute with what they have left? */
static inline bool does_wait(const struct run *run, uint64_t salt)
{
    return run->setting.wait && (salt >> 33 & 1);
}

static inline struct duet_codelet *codelet_of(const struct run *run, enum kind kind, uint64_t salt)
{
    return kind == EXPANDS && does_wait(run, salt) ? run->waits : run->codelets[kind];
}

/* Computes the value of a task itself. */
static inline uint64_t compute_between(const struct argument *argument,
                                       const struct duet_buffer *buffers, size_t count)
{
    return compute(argument->salt + 1, buffers, modes_of(argument), count);
}

static inline double sums_cost(const void *args, const char *arch)
{
    return 1e-6;
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
    const struct duet_task_desc desc = {.codelet = codelet_of(run, child->kind, argument.salt),
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
    for (unsigned c = 0; c < family.child_count && !error; c++) {
        if (does_wait(argument.step->run, argument.salt) && c == family.child_count / 2) {
            error = duet_expand_wait(expansion);
            if (!error && !is_simulated(&argument.step->run->setting))
                argument.step->results[argument.number] =
                    compute_between(&argument, call->buffers, call->buffer_count);
        }
        if (!error)
            error = submit_child(argument.step->run, expansion, &family, blocks, &argument, c);
    }
    return error;
}

#endif
