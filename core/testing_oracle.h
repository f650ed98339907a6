/* SPDX-License-Identifier: Apache-2.0 */
/* Possible ends of a random program: its errors, and its results otherwise. */
#ifndef DUET_CORE_TESTING_ORACLE_H
#define DUET_CORE_TESTING_ORACLE_H

#include <stdlib.h>

#include <duet/failure.h>

#include "core/testing_tasks.h"

/* A run may fail as it was made to, and in no other way. */
static inline bool expected(const struct setting *setting, int error)
{
    bool fails = setting->fail_kernel || setting->fail_copy || setting->loses || setting->breaks ||
                 setting->cancel_at || setting->cancel_step;
    return !error || (error == DUET_EDATA && fails) || (error == DUET_ELOST && setting->loses) ||
           (error == DUET_EIO && (setting->fail_kernel || setting->fail_copy)) ||
           (error == DUET_ETASK && setting->breaks) ||
           (error == DUET_ECANCELED && (setting->cancel_at || setting->cancel_step));
}

static inline void check_error(const struct run *run, int error)
{
    const char *message = error ? duet_last_message(run->duet) : "";
    if (!expected(&run->setting, error) || (error && !*message))
        g_error("program %" G_GUINT64_FORMAT ": %s (%s)", run->setting.config.seed,
                duet_strerror(error), message);
}

/* ------------------------------------------------------------------------------------------- */
/* The oracle                                                                                   */

static inline void replay_task(const struct argument *argument, bool expands,
                               const struct duet_buffer *buffers, unsigned count)
{
    struct run *run = argument->step->run;
    if (!expands) {
        uint64_t result = compute(argument->salt, buffers, modes_of(argument), count);
        if (!run->lenient)
            g_assert_cmphex(argument->step->results[argument->number], ==, result);
        run->tasks++;
        return;
    }
    struct family family;
    run->tasks += does_wait(run, argument->salt);
    make_family(&family, argument, buffers, count);
    for (unsigned c = 0; c < family.child_count; c++) {
        if (does_wait(run, argument->salt) && c == family.child_count / 2 &&
            !is_simulated(&run->setting)) {
            uint64_t result = compute_between(argument, buffers, count);
            if (!run->lenient)
                g_assert_cmphex(argument->step->results[argument->number], ==, result);
        }
        struct argument child = child_argument(&family, argument, c);
        struct duet_buffer parts[EXPAND_ACCESSES];
        for (unsigned a = 0; a < family.children[c].count; a++) {
            const struct block *block = &family.blocks[family.children[c].blocks[a]];
            parts[a] = buffers[block->access];
            parts[a].data = word(&parts[a], block->row, block->col);
            parts[a].rows = block->rows;
            parts[a].cols = block->cols;
        }
        replay_task(&child, family.children[c].kind == EXPANDS, parts, family.children[c].count);
    }
}

/* Changes a matrix that the application has acquired, or unregistered. */
static inline uint64_t touch(const struct step *step, const struct duet_buffer *buffer)
{
    const uint8_t anew = DUET_W;
    return compute(step->salt, buffer, step->anew ? &anew : step->modes, 1);
}

static inline struct duet_buffer temporary_buffer(const struct step *step, void *words)
{
    struct duet_buffer buffer = {.data = words, .element_bytes = sizeof(uint64_t)};
    chain_shape(step, &buffer.rows, &buffer.cols);
    buffer.ld = buffer.rows;
    return buffer;
}

static inline void replay(struct run *run, struct step *step)
{
    struct duet_buffer buffers[2 * ACCESSES_MAX + 1];
    uint64_t words[WORDS_MAX], scratch[WORDS_MAX];
    struct argument argument = step_argument(step);
    unsigned count = 0;
    for (unsigned i = 0; i < step->count; i++)
        count += show(run, step->handles[i], &run->expected[step->handles[i]], &buffers[count]);
    if (step->kind < KINDS) {
        buffers[count] = temporary_buffer(step, words);
        replay_task(&argument, step->kind == EXPANDS, buffers, count + (step->chain > 0));
        for (unsigned n = 1; n <= step->chain; n++) {
            argument = chain_argument(step, n);
            const struct duet_buffer two[] = {buffers[count], temporary_buffer(step, scratch)};
            replay_task(&argument, chain_kind(step, n) == EXPANDS, two, 2);
        }
        replay_nested(run, step->salt, step->nested);
    } else if (step->kind != WAIT) {
        uint64_t result = touch(step, &run->expected[step->handles[0]]);
        if (!run->lenient)
            g_assert_cmphex(step->results[0], ==, result);
    }
}

/* Each began when all that it comes after had ended, and its own end was told once. */
static inline void check_after(const struct run *run)
{
    for (unsigned i = 0; i < run->setting.steps * run->setting.submitters; i++) {
        const struct step *step = &run->steps[i];
        bool known = !is_simulated(&run->setting) || step->kind != EXPANDS;
        if (known && !run->setting.loses)
            g_assert_cmpuint(step->seen, ==, look_back(step));
        g_assert_cmpuint(atomic_load(&step->ended), ==, step->tells);
    }
}

/*
 * Steps of several submitters on the same matrices have no order of their own: any in which they
 * ran is right, if data was coherent in that order.
 */
static inline void check_steps(struct run *run)
{
    unsigned total = run->setting.steps * run->setting.submitters;
    check_after(run);
    for (unsigned s = 0; s < run->setting.submitters && !is_simulated(&run->setting); s++)
        check_order(&run->steps[s * run->setting.steps], run->setting.steps);
    if (run->setting.shared)
        qsort(run->steps, total, sizeof *run->steps, by_turn);
    for (unsigned i = 0; i < total; i++)
        replay(run, &run->steps[i]);
    g_assert_cmphex(atomic_load(&run->real_bare), ==, run->expected_bare);
}

static inline void check_contents(const struct run *run)
{
    /* what lies between the columns included */
    g_assert_cmpmem(run->real_words, sizeof run->real_words, run->expected_words,
                    sizeof run->expected_words);
    g_assert_cmpmem(run->real_sums, sizeof run->real_sums, run->expected_sums,
                    sizeof run->expected_sums);
}

/*
 * Checks handles of a failed run: a handle that is still valid has what all of the program makes of
 * it, since no task that was to write it has failed, or was cancelled for lack of its data. Where
 * the order of several submitters is known, and nothing was refused.
 */
static inline void check_valid(struct run *run)
{
    const struct setting *setting = &run->setting;
    if (setting->shared || is_simulated(setting) || atomic_load(&run->refused))
        return;
    run->lenient = true;
    for (unsigned i = 0; i < setting->steps * setting->submitters; i++)
        replay(run, &run->steps[i]);
    for (unsigned h = 0; h < handle_count(setting); h++)
        if (run->valid[h])
            g_assert_cmpmem(run->real_words[h], sizeof run->real_words[h], run->expected_words[h],
                            sizeof run->expected_words[h]);
}

static inline struct duet_handle *any_handle(const struct run *run, unsigned h)
{
    return h < SUMS ? run->sums[h] : run->handles[h - SUMS];
}

/* Looks at what has failed; every other run goes on as if nothing had. true: this one does. */
static inline bool recover(struct run *run)
{
    for (unsigned h = 0; h < handle_count(&run->setting); h++) {
        /* home first: devices may still be lost */
        check_error(run, duet_acquire(run->duet, run->handles[h], DUET_R));
        run->valid[h] = duet_valid(run->duet, run->handles[h]);
        g_assert_cmpint(duet_release(run->duet, run->handles[h]), ==, DUET_OK);
    }
    for (unsigned i = 0; i < SUMS; i++) { /* likewise: what was added to them is on devices */
        check_error(run, duet_acquire(run->duet, run->sums[i], DUET_R));
        g_assert_cmpint(duet_release(run->duet, run->sums[i]), ==, DUET_OK);
    }
    if (run->setting.config.seed % 4 < 2)
        return false;
    g_assert_cmpint(duet_recover(run->duet), ==, DUET_OK);
    for (unsigned h = 0; h < handle_count(&run->setting) + SUMS; h++) {
        struct duet_handle *handle = any_handle(run, h);
        if (duet_valid(run->duet, handle))
            continue;
        g_assert_cmpint(duet_acquire(run->duet, handle, DUET_R), !=, DUET_OK);
        g_assert_cmpint(duet_release(run->duet, handle), ==, DUET_OK);
        /* that it was lost may only have been noticed here */
        g_assert_cmpint(duet_recover(run->duet), ==, DUET_OK);
        g_assert_cmpint(duet_acquire(run->duet, handle, DUET_W), ==, DUET_OK);
        g_assert_cmpint(duet_release(run->duet, handle), ==, DUET_OK);
        g_assert_cmpint(duet_acquire(run->duet, handle, DUET_R), ==, DUET_OK);
        g_assert_cmpint(duet_release(run->duet, handle), ==, DUET_OK);
    }
    g_assert_cmpint(duet_wait(run->duet), ==, DUET_OK);
    return true;
}

#endif
