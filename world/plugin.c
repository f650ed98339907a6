/* SPDX-License-Identifier: Apache-2.0 */
/* Loading policies. */
#include "world/plugin.h"

#include <dlfcn.h>
#include <string.h>

#include <glib.h>

static int unknown(const char *name, struct duet_message *message)
{
    GString *known = g_string_new(NULL);
    for (size_t i = 0; duet_policy_at(i); i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "", duet_policy_at(i)->name);
    duet_fail(message, DUET_ENOTFOUND,
              "unknown policy '%s': known are %s, or the path of a shared object", name,
              known->str);
    g_string_free(known, TRUE);
    return DUET_ENOTFOUND;
}

static int load(const char *path, const struct duet_policy **out, struct duet_message *message)
{
    /* a name without '/' would be looked for in the system's library path */
    g_autofree char *here = strchr(path, '/') ? NULL : g_strconcat("./", path, NULL);
    void *object = dlopen(here ? here : path, RTLD_NOW | RTLD_LOCAL);
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

int duet__policy_load(const char *name, const struct duet_policy **out,
                      struct duet_message *message)
{
    *out = duet_policy_find(name);
    if (*out)
        return DUET_OK;
    if (strchr(name, '/') || g_str_has_suffix(name, ".so"))
        return load(name, out, message);
    return unknown(name, message);
}
