/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration from the environment and from --duet-* arguments, by the table of settings. The
 * only place of the library that reads the environment.
 */
#include <stdlib.h>
#include <string.h>

#include <duet/duet.h>
#include <duet/machine.h>

#include "world/settings.h"

void duet_config_init(struct duet_config *config)
{
    *config = (struct duet_config){.cpus = -1, .gpus = -1};
}

/* "gpu-memory" -> "DUET_GPU_MEMORY". */
static void variable_name(const char *name, char out[DUET_NAME_MAX])
{
    size_t i = 5;
    memcpy(out, "DUET_", 5);
    for (; *name; name++)
        out[i++] = (char)(*name == '-' ? '_' : *name - 'a' + 'A');
    out[i] = '\0';
}

int duet_config_environment(struct duet_config *config, struct duet_message *message)
{
    const struct duet__option *setting;
    for (size_t i = 0; (setting = duet__option_at(i)); i++) {
        char name[DUET_NAME_MAX];
        if (!(setting->where & DUET__IN_ENVIRONMENT))
            continue;
        variable_name(setting->name, name);
        const char *text = getenv(name);
        int error = text ? duet__option_set(setting, config, name, text, message) : DUET_OK;
        if (error)
            return error;
    }
    return DUET_OK;
}

/* The text of a known option in `argument`: what follows '=', "" without one; NULL: another one. */
static const char *match(const char *argument, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(argument, name, length) != 0)
        return NULL;
    return argument[length] == '=' ? argument + length + 1 : argument[length] ? NULL : "";
}

static int take_argument(struct duet_config *config, const char *argument,
                         struct duet_message *message)
{
    const struct duet__option *setting;
    for (size_t i = 0; (setting = duet__option_at(i)); i++) {
        const char *text = match(argument + strlen("--duet-"), setting->name);
        if (text && setting->where & DUET__IN_ENVIRONMENT) {
            char name[DUET_NAME_MAX + 8] = "--duet-";
            memcpy(name + 7, setting->name, strlen(setting->name) + 1);
            return duet__option_set(setting, config, name, text, message);
        }
    }
    return duet_fail(message, DUET_EINVAL,
                     "unknown option '%s': see the list of --duet-* options in duet/duet.h",
                     argument);
}

int duet_config_arguments(struct duet_config *config, int *argc, char **argv,
                          struct duet_message *message)
{
    int kept = 0;
    int error = DUET_OK;
    for (int i = 0; i < *argc; i++) {
        if (i > 0 && !error && !strncmp(argv[i], "--duet-", strlen("--duet-")))
            error = take_argument(config, argv[i], message);
        else
            argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    *argc = kept;
    return error;
}
