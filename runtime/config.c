/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration from the environment and from --duet-* arguments, by the table of settings. The
 * only place of the library that reads the environment.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include <duet/duet.h>
#include <duet/machine.h>

#include "runtime/settings.h"

const char *duet_version(void)
{
    return DUET_VERSION;
}

void duet_config_init_size(struct duet_config *config, size_t size)
{
    const struct duet_config own = {.size = size, .cpus = -1, .gpus = -1};
    if (size > sizeof own)
        memset((char *)config + sizeof own, 0, size - sizeof own);
    memcpy(config, &own, MIN(size, sizeof own));
}

int duet__config_take(struct duet_config *own, const struct duet_config *given,
                      struct duet_message *message)
{
    duet_config_init(own);
    if (given->size < offsetof(struct duet_config, scale) || given->size > 2 * sizeof *own)
        return duet_fail(message, DUET_EINVAL,
                         "a configuration that was not set: call duet_config_init first");
    if (given->size > sizeof *own)
        return duet_fail(message, DUET_EINVAL,
                         "the program was compiled with a newer duet than this libduet, %s",
                         duet_version());
    memcpy(own, given, given->size);
    own->size = sizeof *own;
    return DUET_OK;
}

/* Writes fields back to the program's struct, which may be an older and shorter one. */
static void give(struct duet_config *config, struct duet_config *own)
{
    own->size = config->size;
    memcpy(config, own, config->size);
}

/* Returns the variable of a setting, "DUET_GPU_MEMORY"; free with g_free. */
static char *variable_of(const struct duet__option *setting)
{
    g_autofree char *upper = g_ascii_strup(setting->name, -1);
    return g_strconcat("DUET_", g_strdelimit(upper, "-", '_'), NULL);
}

/* Returns the setting with the longest common beginning, half its name or more; NULL: none. */
static const struct duet__option *like(const char *name)
{
    const struct duet__option *setting, *found = NULL;
    size_t longest = 2;
    for (size_t i = 0; (setting = duet__option_at(i)); i++) {
        size_t common = 0;
        while (name[common] && name[common] == setting->name[common])
            common++;
        if (setting->where & DUET__IN_ENVIRONMENT && common > longest &&
            2 * common >= strlen(setting->name)) {
            longest = common;
            found = setting;
        }
    }
    return found;
}

/* Says once in a process which variables set nothing though they begin as those of settings do:
   they are misspelt. */
static void tell_unknown(void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&told))
        return;
    g_auto(GStrv) names = g_listenv();
    for (char **name = names; *name; name++) {
        g_autofree char *text = g_ascii_strdown(*name, -1);
        const char *own =
            g_str_has_prefix(*name, "DUET_") ? g_strdelimit(text, "_", '-') + strlen("DUET_") : "";
        const struct duet__option *near = like(own);
        g_autofree char *meant = near ? variable_of(near) : NULL;
        if (near && !duet__option_find(own, DUET__IN_ENVIRONMENT))
            fprintf(stderr, "duet: %s sets nothing: did you mean %s?\n", *name, meant);
    }
}

int duet_config_environment(struct duet_config *config, struct duet_message *message)
{
    const struct duet__option *setting;
    struct duet_config own;
    int error = duet__config_take(&own, config, message);
    if (error)
        return error;
    for (size_t i = 0; (setting = duet__option_at(i)) && !error; i++) {
        g_autofree char *name = variable_of(setting);
        const char *text = setting->where & DUET__IN_ENVIRONMENT ? getenv(name) : NULL;
        error = text ? duet__option_set(setting, &own, name, text, message) : DUET_OK;
    }
    if (!error)
        tell_unknown();
    give(config, &own);
    return error;
}

char **duet__config_environment(const struct duet_config *config, char **environment)
{
    const struct duet__option *setting;
    for (size_t i = 0; (setting = duet__option_at(i)); i++) {
        g_autofree char *name = variable_of(setting);
        g_autofree char *text =
            setting->where & DUET__IN_ENVIRONMENT ? duet__option_text(setting, config) : NULL;
        if (text)
            environment = g_environ_setenv(environment, name, text, TRUE);
        else if (setting->where & DUET__IN_ENVIRONMENT)
            environment = g_environ_unsetenv(environment, name);
    }
    return environment;
}

/* True if a setting of configurations is no part of what a trace says of machine and policy. */
static bool is_traced(const struct duet__option *setting)
{
    static const char *const others[] = {"cpus", "gpus", "gpu-memory", "policy", NULL};
    const unsigned changes = DUET__FACTOR | DUET__IN_SIMULATE;
    return setting->offset < sizeof(struct duet_config) &&
           (!strcmp(setting->name, "links") ||
            ((setting->where & changes) == changes && !g_strv_contains(others, setting->name)));
}

char *duet__settings_text(const struct duet_config *config)
{
    const struct duet__option *setting;
    GString *all = g_string_new(NULL);
    for (size_t i = 0; (setting = duet__option_at(i)); i++) {
        g_autofree char *text = is_traced(setting) ? duet__option_text(setting, config) : NULL;
        if (text)
            g_string_append_printf(all, "%s%s=%s", all->len ? "; " : "", setting->name, text);
    }
    return g_string_free(all, !all->len);
}

int duet__settings_read(const char *text, struct duet_config *config, struct duet_message *message)
{
    g_auto(GStrv) parts = g_strsplit(text ? text : "", "; ", -1);
    int error = DUET_OK;
    for (unsigned p = 0; parts[p] && !error; p++) {
        char *value = strchr(parts[p], '=');
        const struct duet__option *setting;
        if (value)
            *value++ = 0;
        for (size_t i = 0; (setting = duet__option_at(i)); i++)
            if (is_traced(setting) && !strcmp(setting->name, parts[p]))
                break;
        error = setting && value
                    ? duet__option_set(setting, config, parts[p], g_intern_string(value), message)
                    : duet_fail(message, DUET_EINVAL, "there is no setting '%.40s'", parts[p]);
    }
    return error;
}

static int take_argument(struct duet_config *config, const char *argument,
                         struct duet_message *message)
{
    const char *text = strchr(argument, '=');
    g_autofree char *name =
        g_strndup(argument, text ? (size_t)(text - argument) : strlen(argument));
    const struct duet__option *setting =
        duet__option_find(name + strlen("--duet-"), DUET__IN_ENVIRONMENT);
    if (setting && setting->value && !text)
        return duet_fail(message, DUET_EINVAL, "%s takes a value behind an equals sign: %s=%s",
                         name, name, setting->value);
    if (setting)
        return duet__option_set(setting, config, name, text ? text + 1 : "", message);
    setting = like(name + strlen("--duet-"));
    return duet_fail(message, DUET_EINVAL, "unknown option '%s'%s%s%s (duet list options has all)",
                     argument, setting ? ": did you mean --duet-" : "",
                     setting ? setting->name : "", setting ? "?" : "");
}

int duet_config_arguments(struct duet_config *config, int *argc, char **argv,
                          struct duet_message *message)
{
    struct duet_config own;
    int kept = 0;
    int error = duet__config_take(&own, config, message);
    if (error)
        return error;
    for (int i = 0; i < *argc; i++) {
        if (i > 0 && !error && !strncmp(argv[i], "--duet-", strlen("--duet-")))
            error = take_argument(&own, argv[i], message);
        else
            argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    *argc = kept;
    give(config, &own);
    return error;
}
