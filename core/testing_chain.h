/* SPDX-License-Identifier: Apache-2.0 */
/* Part of random programs: temporary data that a step makes, and the tasks that use it. */
#ifndef DUET_CORE_TESTING_CHAIN_H
#define DUET_CORE_TESTING_CHAIN_H

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

#endif
