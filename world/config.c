/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration from the environment and from --duet-* arguments: one table of names. The only
 * place of the library that reads the environment.
 */
#include <stdlib.h>
#include <string.h>

#include <duet/duet.h>
#include <duet/machine.h>

#include "platforms/model/effects.h"
#include "world/units.h"

/* One setting: takes the text over into the configuration. `name` is for messages. */
struct setting {
    const char *name; /* as in --duet-NAME; DUET_NAME in the environment */
    int (*set)(struct duet_config *config, const char *name, const char *text,
               struct duet_message *message);
};

static int set_simulate(struct duet_config *config, const char *name, const char *text,
                        struct duet_message *message)
{
    config->simulate = *text ? text : NULL;
    return DUET_OK;
}

static int set_emulate(struct duet_config *config, const char *name, const char *text,
                       struct duet_message *message)
{
    config->emulate = *text ? text : NULL;
    return DUET_OK;
}

static int set_scale(struct duet_config *config, const char *name, const char *text,
                     struct duet_message *message)
{
    return duet__parse_scale(name, text, &config->scale, message);
}

static int set_lose(struct duet_config *config, const char *name, const char *text,
                    struct duet_message *message)
{
    config->lose = *text ? text : NULL;
    return DUET_OK;
}

static int set_watchdog(struct duet_config *config, const char *name, const char *text,
                        struct duet_message *message)
{
    return duet__parse_watchdog(name, text, &config->watchdog_s, message);
}

static int set_count(const char *name, const char *text, int *out, struct duet_message *message)
{
    uint64_t value = 0;
    int error = duet__parse_count(name, text, 0, 1000000, &value, message);
    if (!error)
        *out = (int)value;
    return error;
}

static int set_cpus(struct duet_config *config, const char *name, const char *text,
                    struct duet_message *message)
{
    return set_count(name, text, &config->cpus, message);
}

static int set_gpus(struct duet_config *config, const char *name, const char *text,
                    struct duet_message *message)
{
    return set_count(name, text, &config->gpus, message);
}

static int set_gpu_memory(struct duet_config *config, const char *name, const char *text,
                          struct duet_message *message)
{
    return duet__parse_memory(name, text, &config->gpu_memory_bytes, &config->gpu_memory_share,
                              message);
}

static int set_few(const char *name, const char *text, unsigned most, unsigned *out,
                   struct duet_message *message)
{
    uint64_t value = 0;
    int error = duet__parse_count(name, text, 1, most, &value, message);
    if (!error)
        *out = (unsigned)value;
    return error;
}

static int set_gpu_window(struct duet_config *config, const char *name, const char *text,
                          struct duet_message *message)
{
    return set_few(name, text, UNITS_GPU_WINDOW_MAX, &config->gpu_window, message);
}

static int set_gpu_window_short(struct duet_config *config, const char *name, const char *text,
                                struct duet_message *message)
{
    return set_few(name, text, UNITS_GPU_WINDOW_MAX, &config->gpu_window_short, message);
}

static int set_gpu_streams(struct duet_config *config, const char *name, const char *text,
                           struct duet_message *message)
{
    return set_few(name, text, UNITS_GPU_STREAMS_MAX, &config->gpu_streams, message);
}

static int set_pin(struct duet_config *config, const char *name, const char *text,
                   struct duet_message *message)
{
    return duet__parse_pin(name, text, &config->pin_bytes, &config->no_pin, message);
}

static int set_links(struct duet_config *config, const char *name, const char *text,
                     struct duet_message *message)
{
    config->links = text;
    return DUET_OK;
}

static int set_policy(struct duet_config *config, const char *name, const char *text,
                      struct duet_message *message)
{
    config->policy = text;
    return DUET_OK;
}

static int set_model(struct duet_config *config, const char *name, const char *text,
                     struct duet_message *message)
{
    config->model = text;
    return DUET_OK;
}

static int set_seed(struct duet_config *config, const char *name, const char *text,
                    struct duet_message *message)
{
    return duet__parse_count(name, text, 0, UINT64_MAX, &config->seed, message);
}

static int set_window(struct duet_config *config, const char *name, const char *text,
                      struct duet_message *message)
{
    uint64_t value = 0;
    int error = duet__parse_count(name, text, 1, UINT32_MAX, &value, message);
    if (!error)
        config->window = (size_t)value;
    return error;
}

static int set_flag(const char *name, const char *text, bool *out, struct duet_message *message)
{
    if (!strcmp(text, "1") || !strcmp(text, "yes") || !strcmp(text, "")) {
        *out = true;
    } else if (!strcmp(text, "0") || !strcmp(text, "no")) {
        *out = false;
    } else {
        return duet_fail(message, DUET_EINVAL, "%s takes 1 or 0, not '%s'", name, text);
    }
    return DUET_OK;
}

static int set_no_peer(struct duet_config *config, const char *name, const char *text,
                       struct duet_message *message)
{
    return set_flag(name, text, &config->no_peer, message);
}

static int set_no_bind(struct duet_config *config, const char *name, const char *text,
                       struct duet_message *message)
{
    return set_flag(name, text, &config->no_bind, message);
}

static int set_set_arch(struct duet_config *config, const char *name, const char *text,
                        struct duet_message *message)
{
    return set_flag(name, text, &config->set_arch, message);
}

static int set_noise(struct duet_config *config, const char *name, const char *text,
                     struct duet_message *message)
{
    return set_flag(name, text, &config->noise, message);
}

static int set_extrapolate(struct duet_config *config, const char *name, const char *text,
                           struct duet_message *message)
{
    return set_flag(name, text, &config->extrapolate, message);
}

static int set_no_costs(struct duet_config *config, const char *name, const char *text,
                        struct duet_message *message)
{
    return set_flag(name, text, &config->no_costs, message);
}

static int set_costs(struct duet_config *config, const char *name, const char *text,
                     struct duet_message *message)
{
    config->costs = text;
    return DUET_OK;
}

static int set_without(struct duet_config *config, const char *name, const char *text,
                       struct duet_message *message)
{
    unsigned bits = 0;
    int error = duet__effects_parse(name, text, &bits, message);
    if (!error)
        config->without = text;
    return error;
}

static int set_context(struct duet_config *config, const char *name, const char *text,
                       struct duet_message *message)
{
    config->context = *text ? text : NULL;
    return DUET_OK;
}

static int set_trace(struct duet_config *config, const char *name, const char *text,
                     struct duet_message *message)
{
    config->trace = *text ? text : NULL;
    return DUET_OK;
}

static int set_report(struct duet_config *config, const char *name, const char *text,
                      struct duet_message *message)
{
    return set_flag(name, text, &config->report, message);
}

static const struct setting settings[] = {
    {"simulate", set_simulate},
    {"emulate", set_emulate},
    {"scale", set_scale},
    {"lose", set_lose},
    {"watchdog", set_watchdog},
    {"no-bind", set_no_bind},
    {"cpus", set_cpus},
    {"gpus", set_gpus},
    {"gpu-memory", set_gpu_memory},
    {"gpu-window", set_gpu_window},
    {"gpu-window-short", set_gpu_window_short},
    {"gpu-streams", set_gpu_streams},
    {"pin", set_pin},
    {"links", set_links},
    {"no-peer", set_no_peer},
    {"policy", set_policy},
    {"model", set_model},
    {"seed", set_seed},
    {"window", set_window},
    {"set-arch", set_set_arch},
    {"noise", set_noise},
    {"extrapolate", set_extrapolate},
    {"no-costs", set_no_costs},
    {"costs", set_costs},
    {"without", set_without},
    {"context", set_context},
    {"trace", set_trace},
    {"report", set_report},
};

enum { SETTINGS = sizeof settings / sizeof settings[0] };

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
    for (size_t i = 0; i < SETTINGS; i++) {
        char name[DUET_NAME_MAX];
        variable_name(settings[i].name, name);
        const char *text = getenv(name);
        int error = text ? settings[i].set(config, name, text, message) : DUET_OK;
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
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *text = match(argument + strlen("--duet-"), settings[i].name);
        if (text) {
            char name[DUET_NAME_MAX + 8] = "--duet-";
            memcpy(name + 7, settings[i].name, strlen(settings[i].name) + 1);
            return settings[i].set(config, name, text, message);
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
