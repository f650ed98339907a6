/* SPDX-License-Identifier: Apache-2.0 */
/* Part of random programs: temporary data that a step makes, and steps that are submitted as a
 * graph, again and again. */
#ifndef DUET_CORE_TESTING_GRAPH_H
#define DUET_CORE_TESTING_GRAPH_H

#include <duet/graph.h>

#include "core/testing_oracle.h"

/* Temporary data of a step. */
static inline struct duet_handle *make_temporary(struct run *run, const struct step *step)
{
    struct duet_handle *handle;
    size_t rows, cols;
    chain_shape(step, &rows, &cols);
    g_assert_cmpint(duet_register_temporary(run->duet, rows, cols, sizeof(uint64_t), &handle), ==,
                    DUET_OK);
    if (run->setting.world->made)
        run->setting.world->made(run, handle, step->salt);
    return handle;
}

/* Tasks on temporary data that was written, which then goes away, with or without a wait. */
static inline void submit_chain(struct run *run, struct step *step, struct duet_handle *temporary)
{
    struct duet_handle *scratch = make_temporary(run, step);
    for (unsigned n = 1; n <= step->chain; n++) {
        const struct argument argument = chain_argument(step, n);
        const struct duet_access accesses[] = {{temporary, (enum duet_mode)argument.modes[0]},
                                               {scratch, DUET_SCRATCH}};
        struct carried carried;
        const struct duet_task_desc desc = {.codelet =
                                                codelet_of(run, chain_kind(step, n), argument.salt),
                                            .accesses = accesses,
                                            .access_count = 2,
                                            .args = &carried,
                                            .args_bytes = carry(&carried, &argument),
                                            .priority = step->priority};
        (void)submitted(run, duet_submit(run->duet, &desc), &desc);
    }
    g_assert_cmpint(duet_unregister_submit(run->duet, scratch), ==, DUET_OK);
    if (run->setting.look && step->salt >> 43 & 1)
        check_error(run, duet_unregister(run->duet, temporary));
    else
        g_assert_cmpint(duet_unregister_submit(run->duet, temporary), ==, DUET_OK);
}

static inline void tell_end(struct duet_runtime *runtime, void *arg, int status)
{
    struct step *step = arg;
    struct run *run = step->run;
    g_assert_true(runtime == run->duet && expected(&run->setting, status));
    atomic_fetch_add(&step->ended, 1);
}

/* ------------------------------------------------------------------------------------------- */
/* Graphs */

/*
 * Makes a step of a later round: the task of `of`, or one with other values, in which a matrix and
 * another one are exchanged if they differ.
 */
static inline void repeat_step(struct step *step, const struct step *of, bool same,
                               const unsigned *exchanged)
{
    const uint64_t low = UINT64_C(0x3fffffff); /* bits that decide about nothing else */
    const uint64_t salt = (of->salt & ~low) | (mix(step->salt) & low);
    step_free(step);
    *step = *of;
    step->handles = g_memdup2(of->handles, (of->count + 1) * sizeof *of->handles);
    step->modes = g_memdup2(of->modes, 2 * of->count + 1);
    step->effective = step->modes + step->count;
    step->shown = g_memdup2(of->shown, 2 * of->count + 1);
    step->results = g_new0(uint64_t, RESULTS);
    step->salt = same ? of->salt : salt;
    step->rounds = step->stride = step->tells = 0;
    for (unsigned a = 0; a < step->count; a++)
        for (unsigned i = 0; i < 2; i++)
            if (of->handles[a] == exchanged[i])
                step->handles[a] = exchanged[!i];
}

/* Draws a matrix that steps of a submitter use, and another one of its shape, or the same. */
static inline void draw_exchange(const struct run *run, const struct step *step, unsigned submitter,
                                 uint64_t *rng, unsigned *exchanged)
{
    exchanged[0] = exchanged[1] = step->count ? step->handles[0] : 0;
    for (unsigned tries = 0; step->count && !run->part_count && tries < 40; tries++) {
        unsigned other = draw_handle(&run->setting, submitter, false, rng);
        if (run->real[other].rows == run->real[exchanged[0]].rows &&
            run->real[other].cols == run->real[exchanged[0]].cols &&
            run->form[other] == FORM_MATRIX && run->form[exchanged[0]] == FORM_MATRIX)
            exchanged[1] = other;
    }
}

/*
 * Makes a graph of some steps of a submitter, from a random one on, and its later rounds of the
 * steps after them: with the same arguments, or with others.
 */
static inline void make_graph(struct run *run, struct step *steps, unsigned submitter,
                              uint64_t *rng)
{
    static const unsigned none[2];
    const struct setting *setting = &run->setting;
    struct step *first = steps + duet_random_below(rng, setting->steps);
    unsigned left = (unsigned)(steps + setting->steps - first), length = 0;
    bool same = !setting->loses && one_of(rng, 2); /* a lost device's task begins twice */
    while (length < 12 && length < left && first[length].kind < KINDS)
        length++;
    length = length ? 1 + duet_random_below(rng, length) : 0;
    unsigned rounds = 2 + duet_random_below(rng, 8);
    rounds = length ? MIN(rounds, left / length) : 0;
    if (rounds < 2)
        return;
    draw_exchange(run, first, submitter, rng, first->exchanged);
    first->rounds = rounds;
    for (unsigned i = 0; i < length; i++) {
        struct step *step = first + i;
        step->recorded = true;
        step->chain = 0;
        step->tells = (step->salt >> 61 & 3) == 3 ? rounds : 0;
        step->length = length;
        step->stride = same ? length : 0;
        for (unsigned k = 1; k < rounds; k++)
            repeat_step(step + (size_t)k * length, step, same,
                        same || k % 2 == 0 ? none : first->exchanged);
    }
}

/* Describes the task of a step but for what few tasks have. */
static inline struct duet_task_desc describe_step(const struct run *run, struct step *step,
                                                  struct carried *carried,
                                                  struct duet_access *accesses)
{
    const struct argument argument = step_argument(step);
    for (unsigned a = 0; a < step->count; a++)
        accesses[a] =
            (struct duet_access){run->handles[step->handles[a]], (enum duet_mode)step->modes[a]};
    return (struct duet_task_desc){
        .codelet = codelet_of(run, step->kind, step->salt),
        .accesses = accesses,
        .access_count = step->count,
        .args = carried,
        .args_bytes = carry(carried, &argument),
        .priority = step->priority,
        .where = step->on_device ? duet_where(run->duet, run->setting.world->arch) : 0,
    };
}

/* Lets a graph use a matrix where the recording used another one, if it did. */
static inline void set_matrix(struct run *run, struct duet_graph *graph, const struct step *first,
                              unsigned recorded, unsigned instead)
{
    bool used = false;
    for (unsigned i = 0; i < first->length; i++)
        for (unsigned a = 0; a < first[i].count; a++)
            used |= first[i].handles[a] == recorded;
    g_assert_cmpint(duet_graph_set_handle(graph, run->handles[recorded], run->handles[instead]), ==,
                    used ? DUET_OK : DUET_EINVAL);
}

/* Submits round k of a graph, whose recording has begun with the step `first`. */
static inline void submit_round(struct run *run, struct duet_graph *graph, struct step *first,
                                unsigned k)
{
    struct step *round = first + (size_t)k * first->length;
    struct carried carried;
    struct duet_access accesses[ACCESSES_MAX];
    const unsigned *exchanged = first->exchanged;
    for (unsigned i = 0; i < first->length && !first->stride; i++) {
        const struct duet_task_desc desc = describe_step(run, &round[i], &carried, accesses);
        g_assert_cmpint(duet_graph_set_value(graph, i, 0, desc.args, desc.args_bytes), ==, DUET_OK);
    }
    if (exchanged[0] != exchanged[1] && !first->stride) {
        set_matrix(run, graph, first, exchanged[0], exchanged[k % 2]);
        set_matrix(run, graph, first, exchanged[1], exchanged[!(k % 2)]);
    }
    int error = duet_graph_submit(run->duet, graph);
    for (unsigned i = 0; i < first->length; i++) {
        const struct duet_task_desc desc = describe_step(run, &round[i], &carried, accesses);
        if (run->setting.world->submitted) /* where one thread does everything */
            run->behind = first->length - 1 - i;
        (void)submitted(run, error, &desc);
    }
}

#endif
