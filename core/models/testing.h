/* SPDX-License-Identifier: Apache-2.0 */
/* Support for tests of performance models: one model of a name, and its state. */
#ifndef DUET_CORE_MODELS_TESTING_H
#define DUET_CORE_MODELS_TESTING_H

#include <math.h>
#include <stdlib.h>

#include <duet/model.h>

#include <glib.h>

static const struct duet_model *model;
static void *state;

static inline void setup_model(const char *name)
{
    model = duet_model_find(name);
    g_assert_nonnull(model);
    state = calloc(1, model->state_size);
    g_assert_nonnull(state);
}

static inline void finish(void)
{
    model->fini(state);
    g_assert_cmpfloat(model->predict(state, 10, 0), ==, 0);
    model->fini(state); /* safe on an empty one */
    free(state);
}

#endif
