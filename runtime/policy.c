/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the policy that a text means: a name, a shared object or a schedule, and values of its
 * parameters.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include <glib.h>

#include "core/engine.h"
#include "runtime/open.h"
#include "runtime/schedule.h"

static int unknown_policy(const char *name, struct duet_message *message)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (size_t i = 0; duet_policy_at(i); i++)
        g_string_append_printf(known, "%s, ", duet_policy_at(i)->name);
    return duet_fail(message, DUET_ENOTFOUND,
                     "unknown policy '%s': known are %sor the path of a shared object, or of a "
                     "schedule (.json)",
                     name, known->str);
}

static atomic_bool came;

void duet__code_came(void)
{
    atomic_store(&came, true);
}

bool duet__is_fresh(void)
{
    return !atomic_load(&came);
}

static int load_policy(const char *path, const struct duet_policy **out,
                       struct duet_message *message)
{
    /* a name without '/' would be looked for in the system's library path */
    g_autofree char *here = strchr(path, '/') ? NULL : g_strconcat("./", path, NULL);
    void *object = dlopen(here ? here : path, RTLD_NOW | RTLD_LOCAL);
    duet__code_came();
    if (!object)
        return duet_fail(message, DUET_ENOTFOUND, "cannot load policy %s: %s", path, dlerror());
    const struct duet_policy *policy = dlsym(object, "duet_policy");
    if (!policy)
        return duet_fail(message, DUET_EINVAL,
                         "%s exports no symbol 'duet_policy': end it with "
                         "`const struct duet_policy duet_policy = {...};`",
                         path);
    int error = duet_policy_check(policy, message);
    if (!error)
        *out = policy;
    return error;
}

static int load_schedule(const char *path, const struct duet_policy **out,
                         struct duet_message *message)
{
    const struct duet__schedule *schedule;
    int error = duet__schedule_load(path, &schedule, message);
    if (!error)
        *out = &schedule->policy;
    return error;
}

char *duet__policy_base(const char *text)
{
    const char *slash = strrchr(text, '/'), *file = slash ? slash : text;
    return g_strndup(text, (size_t)(file - text) + strcspn(file, ":"));
}

/* Returns the parameters as a text: "alpha (1; 0 to 10), beta (...)", or "none". */
static char *describe(const struct duet_policy *policy)
{
    GString *text = g_string_new(NULL);
    for (unsigned i = 0; i < duet__parameter_count(policy); i++) {
        const struct duet_policy_parameter *one = &policy->parameters[i];
        g_string_append_printf(text, "%s%s (%g; %g to %g)", i ? ", " : "", one->name, one->initial,
                               one->least, one->most);
    }
    if (!text->len)
        g_string_append(text, "none");
    return g_string_free(text, FALSE);
}

/* Sets one parameter, given as "name=value"; `set` has those that have been set before. */
static int set_parameter(const struct duet_policy *policy, const char *given, double *values,
                         unsigned *set, struct duet_message *message)
{
    g_auto(GStrv) pair = g_strsplit(given, "=", 2);
    for (unsigned i = 0; pair[0] && i < duet__parameter_count(policy); i++) {
        const struct duet_policy_parameter *one = &policy->parameters[i];
        char *value = pair[1] ? pair[1] : pair[0], *end;
        if (strcmp(one->name, pair[0]) != 0)
            continue;
        if (*set >> i & 1)
            return duet_fail(message, DUET_EINVAL, "policy %s: %s is given twice", policy->name,
                             one->name);
        *set |= 1U << i;
        values[i] = g_ascii_strtod(value, &end);
        if (end == value || *end || !(values[i] >= one->least && values[i] <= one->most))
            return duet_fail(message, DUET_EINVAL,
                             "policy %s: %s is a number from %g to %g, not '%s'", policy->name,
                             one->name, one->least, one->most, pair[1] ? pair[1] : "");
        return DUET_OK;
    }
    g_autofree char *known = describe(policy);
    return duet_fail(message, DUET_EINVAL,
                     "policy %s has no parameter '%s' (as in NAME:PARAMETER=VALUE), but: %s",
                     policy->name, pair[0] ? pair[0] : "", known);
}

int duet__policy_load(const char *text, const struct duet_policy **out,
                      double values[DUET_PARAMETERS_MAX], struct duet_message *message)
{
    g_autofree char *name = duet__policy_base(text);
    double own[DUET_PARAMETERS_MAX];
    unsigned set = 0;
    *out = duet_policy_find(name);
    int error = DUET_OK;
    if (!*out && duet__schedule_is(name))
        error = load_schedule(name, out, message);
    else if (!*out)
        error = strchr(name, '/') || g_str_has_suffix(name, ".so") ? load_policy(name, out, message)
                                                                   : unknown_policy(name, message);
    if (error || !*out)
        return error;
    values = values ? values : own;
    for (unsigned i = 0; i < duet__parameter_count(*out); i++)
        values[i] = (*out)->parameters[i].initial;
    const char *rest = text + strlen(name);
    g_auto(GStrv) given = g_strsplit(rest, ":", -1); /* empty before the first ':' */
    for (unsigned i = 1; given[0] && given[i] && !error; i++)
        error = set_parameter(*out, given[i], values, &set, message);
    return error;
}
