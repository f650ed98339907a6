/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of built-in performance models. */
#include <string.h>

#include <duet/model.h>

#define MODEL(symbol) extern const struct duet_model symbol;
#include "core/models/list.h"
#undef MODEL

static const struct duet_model *const models[] = {
#define MODEL(symbol) &(symbol),
#include "core/models/list.h"
#undef MODEL
};

const struct duet_model *duet_model_at(size_t index)
{
    return index < sizeof models / sizeof models[0] ? models[index] : NULL;
}

const struct duet_model *duet_model_find(const char *name)
{
    for (size_t i = 0; duet_model_at(i); i++)
        if (!strcmp(models[i]->name, name))
            return models[i];
    return NULL;
}
