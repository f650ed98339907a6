/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of built-in policies. */
#include <string.h>

#include <duet/model.h>
#include <duet/policy.h>

#include "core/engine.h"

#define POLICY(symbol) extern const struct duet_policy symbol;
#define MEASURING(symbol) POLICY(symbol)
#include "core/policies/list.h"
#undef POLICY
#undef MEASURING

static const struct duet_policy *const policies[] = {
#define POLICY(symbol) &(symbol),
#define MEASURING(symbol)
#include "core/policies/list.h"
#undef POLICY
#undef MEASURING
};

static const struct duet_policy *const measuring[] = {
#define POLICY(symbol)
#define MEASURING(symbol) &(symbol),
#include "core/policies/list.h"
#undef POLICY
#undef MEASURING
};

const struct duet_policy *duet_policy_at(size_t index)
{
    return index < sizeof policies / sizeof policies[0] ? policies[index] : NULL;
}

const struct duet_policy *duet_policy_find(const char *name)
{
    for (size_t i = 0; name && duet_policy_at(i); i++)
        if (!strcmp(policies[i]->name, name))
            return policies[i];
    for (size_t i = 0; name && i < sizeof measuring / sizeof measuring[0]; i++)
        if (!strcmp(measuring[i]->name, name))
            return measuring[i];
    return NULL;
}

unsigned duet__parameter_count(const struct duet_policy *policy)
{
    unsigned count = 0;
    while (policy->parameters && policy->parameters[count].name)
        count++;
    return count;
}

static int check_parameters(const struct duet_policy *policy, struct duet_message *message)
{
    unsigned count = duet__parameter_count(policy);
    if (count > DUET_PARAMETERS_MAX)
        return duet_fail(message, DUET_EINVAL, "policy %s has %u parameters: at most %d",
                         policy->name, count, DUET_PARAMETERS_MAX);
    for (unsigned i = 0; i < count; i++) {
        const struct duet_policy_parameter *one = &policy->parameters[i];
        if (!*one->name || one->name[strcspn(one->name, ":=, ")] || !one->description)
            return duet_fail(message, DUET_EINVAL,
                             "parameter %u of policy %s needs a name without ':', '=', ',' and "
                             "spaces, and a description",
                             i, policy->name);
        if (!(one->least <= one->initial && one->initial <= one->most))
            return duet_fail(message, DUET_EINVAL,
                             "parameter %s of policy %s is %g at first: not from %g to %g",
                             one->name, policy->name, one->initial, one->least, one->most);
    }
    return DUET_OK;
}

int duet_policy_check(const struct duet_policy *policy, struct duet_message *message)
{
    if (!policy || !policy->name || !*policy->name)
        return duet_fail(message, DUET_EINVAL, "a policy needs a name");
    if (!policy->description || !policy->source)
        return duet_fail(message, DUET_EINVAL, "policy %s needs a description and a source",
                         policy->name);
    if (policy->candidates && !duet__parameter_count(policy))
        return duet_fail(message, DUET_EINVAL,
                         "policy %s has candidates and no parameter that says on how many tasks "
                         "they are tried",
                         policy->name);
    if (!policy->candidates && (!policy->push || !policy->pop))
        return duet_fail(message, DUET_EINVAL, "policy %s lacks its %s slot", policy->name,
                         policy->push ? "pop" : "push");
    if ((unsigned)policy->order > DUET_HEAP_NEAREST)
        return duet_fail(message, DUET_EINVAL, "policy %s has no valid order", policy->name);
    if (policy->model && !duet_model_find(policy->model))
        return duet_fail(message, DUET_EINVAL,
                         "policy %s is meant for model %s, which is not there", policy->name,
                         policy->model);
    return check_parameters(policy, message);
}

/* ------------------------------------------------------------------------------------------- */
/* The registry of built-in performance models. */

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
    for (size_t i = 0; name && duet_model_at(i); i++)
        if (!strcmp(models[i]->name, name))
            return models[i];
    return NULL;
}
