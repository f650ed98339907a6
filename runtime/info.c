/* SPDX-License-Identifier: Apache-2.0 */
/* The machine at hand beside the one that a run would make of it. */
#include <string.h>

#include <glib.h>

#include "runtime/open.h"

/* True if the message is about what was asked for, rather than about the machine, of which a GPU
 * without memory left is a part. */
static bool is_refusal(int error)
{
    switch (error) {
    case DUET_EINVAL:
    case DUET_ENOTFOUND:
    case DUET_EPARSE:
        return true;
    default:
        return false;
    }
}

static int make_machine(struct duet__info *info, const struct duet_config *config,
                        struct duet_message *message)
{
    if (!duet__open_paced(config))
        return duet__real_machine(&info->machine, NULL, config, NULL, message);
    return duet__open_platform(NULL, config->emulate, config, NULL, &info->machine, message);
}

/* Returns the survey's number of the nth device of a run, or -1; `name`: its backend's, or NULL. */
static int nth_device(const struct duet__survey *survey, enum survey_kind kind, const char *name,
                      unsigned nth)
{
    for (unsigned d = 0; d < survey->device_count; d++) {
        const struct survey_device *device = &survey->devices[d];
        const struct survey_backend *backend = &survey->backends[device->backend];
        if (backend->kind != kind || device->error || (name && strcmp(backend->name, name) != 0))
            continue;
        if (kind != SURVEY_DEVICES || nth-- == 0)
            return (int)d;
    }
    return -1;
}

static const char *devices_of(const struct duet_config *config)
{
    return config->devices ? config->devices : "cuda";
}

/* Finds the devices of workers: runs take them in the survey's order; a platform has none here. */
static void find_devices(struct duet__info *info, const struct duet_config *config)
{
    const struct duet_machine *machine = &info->machine;
    enum survey_kind kind = config->emulate ? SURVEY_EMULATED : SURVEY_DEVICES;
    const char *name = config->emulate ? NULL : devices_of(config);
    unsigned devices = 0;
    info->devices = g_new(int, machine->worker_count);
    for (unsigned w = 0; w < machine->worker_count; w++) {
        bool host = machine->workers[w].node == DUET_HOST;
        if (duet__open_paced(config))
            info->devices[w] = -1;
        else if (host)
            info->devices[w] = nth_device(&info->survey, SURVEY_CORES, NULL, 0);
        else
            info->devices[w] = nth_device(&info->survey, kind, name, devices++);
    }
}

/* Finds the workers of a machine that is made, with their devices and hardware threads. */
static int find_workers(struct duet__info *info, const struct duet_config *config,
                        struct duet_message *message)
{
    int error = duet__real_check_lose(&info->machine, config->lose, message);
    if (error)
        return error;
    find_devices(info, config);
    info->processors = g_new(int, info->machine.worker_count);
    for (unsigned w = 0; w < info->machine.worker_count; w++)
        info->processors[w] = -1;
    return config->no_bind ? DUET_OK : duet__survey_places(&info->machine, info->processors);
}

int duet__info_open(struct duet__info *info, const struct duet_config *config, bool all,
                    struct duet_message *message)
{
    *info = (struct duet__info){0};
    int error = duet__survey(&info->survey, all ? NULL : devices_of(config));
    if (error)
        return duet_fail(message, error, "no memory left for looking at the machine");
    info->pin_bytes = duet__real_pin_bytes(config);
    info->error = make_machine(info, config, &info->why);
    if (is_refusal(info->error))
        error = duet_fail(message, info->error, "%s", info->why.text);
    else if (!info->error)
        error = find_workers(info, config, message);
    if (error)
        duet__info_fini(info);
    return error;
}

void duet__info_fini(struct duet__info *info)
{
    duet__survey_fini(&info->survey);
    duet_machine_fini(&info->machine);
    g_free(info->processors);
    g_free(info->devices);
    *info = (struct duet__info){0};
}
