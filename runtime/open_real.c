/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a runtime that runs on this machine, with its own devices or emulated ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "runtime/open.h"
#include "core/engine.h"
#include "platforms/model/lookup.h"
#include "real/real.h"

enum { WATCHDOG_S = 10 }; /* unless the configuration says otherwise */

static double seconds(void *pace, const struct duet__class *klass, unsigned arch)
{
    const struct duet__times *times = pace;
    return duet__class_calibrated(klass, arch, &times->calibration, times->extrapolate, NULL);
}

static int classify(void *pace, const struct duet__class *klass, uint64_t *archs,
                    struct duet_message *message)
{
    const struct duet__times *times = pace;
    return duet__class_timed(klass, &times->calibration, times->extrapolate, archs, message);
}

/* An opening under way. The members that are left at its end are freed. */
struct opening {
    const struct duet_config *config;
    const struct duet__part *part; /* part of this machine; NULL: all of it */
    struct duet__times *times;     /* times of a paced emulation, else NULL */
    double scale;                  /* factor of time of a paced emulation, else 0 */
    struct duet_machine machine;   /* machine of the devices */
    unsigned *devices;             /* numbers at the backends; NULL in a paced emulation */
    struct duet_machine believed;  /* machine of the scheduler: the same at the emulation's pace */
};

/* Slows down the links and routes of a machine whose time runs `scale` times as long. */
static void stretch(struct duet_machine *machine, double scale)
{
    for (unsigned i = 0; i < machine->link_count; i++)
        machine->links[i].bandwidth_Bps /= scale;
    for (size_t i = 0; i < (size_t)machine->node_count * machine->node_count; i++) {
        machine->routes[i].bandwidth_Bps /= scale;
        machine->routes[i].latency_s *= scale;
    }
}

/* An emulated platform: its machine, and its kernel times as pace. */
static int rehearse(struct opening *opening, const struct duet__platform *platform,
                    struct duet_message *message)
{
    const struct duet_config *config = opening->config;
    int error = duet__open_platform(platform, config->emulate, config, &opening->times,
                                    &opening->machine, message);
    if (error)
        return error;
    opening->scale = config->scale > 0 ? config->scale : 1;
    error = duet_machine_copy(&opening->believed, &opening->machine);
    if (!error)
        stretch(&opening->believed, opening->scale);
    return error;
}

static void say(const char *line)
{
    (void)fprintf(stderr, "duet: %s\n", line);
}

int duet__open_machine(struct duet_machine *machine, unsigned **devices,
                       const struct duet_config *config, const struct duet__part *part,
                       struct duet_message *message)
{
    const struct real_wanted wanted = {
        .cpus = config->cpus,
        .gpus = config->gpus,
        .gpu_memory_bytes = config->gpu_memory_bytes,
        .gpu_memory_share = config->gpu_memory_share,
        .gpu_window = config->gpu_window,
        .gpu_window_short = config->gpu_window_short,
        .emulate = config->emulate != NULL,
        .devices = config->devices,
        .no_peer = config->no_peer,
        .part = part ? part->part : 0,
        .parts = part ? part->parts : 0,
        .cores = part ? MAX(part->cores, 1) : 0,
        .say = devices && !config->quiet ? say : NULL,
    };
    int error = duet__real_machine(machine, devices, &wanted, message);
    if (error)
        return error;
    error = duet_machine_check(machine, message);
    if (!error)
        return DUET_OK;
    duet_machine_fini(machine);
    if (devices) {
        free(*devices);
        *devices = NULL;
    }
    return error;
}

/* Opens the machine at hand. */
static int look(struct opening *opening, struct duet_message *message)
{
    int error = duet__open_machine(&opening->machine, &opening->devices, opening->config,
                                   opening->part, message);
    return error ? error : duet_machine_copy(&opening->believed, &opening->machine);
}

unsigned duet__usable_cores(void)
{
    return duet__real_cores();
}

double duet__spin_s(void)
{
    return SPIN_NS * 1e-9;
}

/* The default of pin_bytes: three quarters of the memory that the machine has now. */
static uint64_t pin_default(void)
{
    return duet__real_memory_bytes() / 4 * 3;
}

uint64_t duet__open_pin_bytes(const struct duet_config *config)
{
    if (config->no_pin)
        return 0;
    return config->pin_bytes ? config->pin_bytes : pin_default();
}

/* Makes the engine and the core, and starts them. */
static int start(struct opening *opening, struct duet__core_config *core, struct duet_runtime **out,
                 struct duet_message *message)
{
    const struct duet_config *config = opening->config;
    struct duet__times *times = g_steal_pointer(&opening->times);
    double watchdog_s = config->watchdog_s < 0   ? INFINITY
                        : config->watchdog_s > 0 ? config->watchdog_s
                                                 : WATCHDOG_S;
    const struct real_options options = {
        /* processes that have no core each would have the same ones */
        .bind = !config->no_bind && (!opening->part || opening->part->cores),
        .quiet = config->quiet,
        .watchdog_s = watchdog_s,
        .emulate = config->emulate != NULL,
        .lose = config->lose,
        .devices = opening->devices,
        .gpu_streams = config->gpu_streams ? config->gpu_streams : 1,
        .gpu_untimed = config->gpu_untimed,
        .pin_bytes = duet__open_pin_bytes(config),
        .pin_more = config->no_pin || config->pin_bytes ? NULL : pin_default,
        .scale = opening->scale,
        .seconds = times ? seconds : NULL,
        .classify = times ? classify : NULL,
        .pace = times,
    };
    int error = duet__real_new(&core->engine, &opening->machine, &options, message);
    if (error) {
        duet__times_free(times);
        return error;
    }
    core->machine = &opening->believed;
    core->computes = !times;
    core->ops = duet__real_ops();
    error = duet__open_bind(out, core, config, times, opening->scale, message);
    if (error)
        return error;
    error = duet__real_attach(core->engine, *out, message);
    if (error) {
        duet__core_free(*out);
        *out = NULL;
    }
    return error;
}

int duet__open_real(struct duet_runtime **out, const struct duet_config *config,
                    const struct duet__platform *platform, const struct duet__part *part,
                    struct duet_message *message)
{
    struct opening opening = {.config = config, .part = part};
    struct duet__core_config core;
    int error = duet__open_core(&core, config, message);
    if (!error)
        error = duet__open_paced(config) ? rehearse(&opening, platform, message)
                                         : look(&opening, message);
    if (!error)
        error = start(&opening, &core, out, message);
    duet__times_free(opening.times);
    free(opening.devices);
    duet_machine_fini(&opening.machine);
    duet_machine_fini(&opening.believed);
    return error;
}
