/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's own operations, measured and as the simulation charges them. */
#include "calibrate/costs.h"

#include <math.h>

#include "calibrate/microbench.h"

static const char one_worker[] = "there is one CPU worker, the application's own thread";
static const char no_device[] = "there is no device";

/* The costs before anything was measured. */
static const struct duet__measured none[DUET__COSTS] = {
    [DUET__COST_SUBMIT] = {"submit", "submitting a task of three accesses that waits for another"},
    [DUET__COST_PUSH] = {"push", "making a task ready when the one before it ends: the time of a "
                                 "task in a chain less that of an independent one"},
    [DUET__COST_POP] = {"pop", "an empty independent task, from its worker's own list until it is "
                               "reported done"},
    [DUET__COST_STEAL] = {"steal",
                          "an empty independent task, from another worker's list until it "
                          "is reported done; each attempt is charged what that takes "
                          "longer than pop",
                          .why = "there is one CPU worker, and nobody to steal from"},
    [DUET__COST_TASK] = {"task", "all of an empty task in a chain on one worker: submit, push, "
                                 "pop"},
    [DUET__COST_WAKE] = {"wake",
                         "from a task's submission until its kernel begins on a CPU worker "
                         "that sleeps, less submit",
                         .why = one_worker},
    [DUET__COST_SPIN] = {"spin",
                         "how long a CPU worker has had nothing to do when it sleeps: by "
                         "the runtime's own rule",
                         .why = one_worker},
    [DUET__COST_KERNEL_LAUNCH] = {"kernel_launch",
                                  "from when a task without copies is ready until "
                                  "its kernel starts on an idle device",
                                  .why = no_device},
    [DUET__COST_COPY_LAUNCH] = {"copy_launch",
                                "from the decision to copy to an idle device until "
                                "the copy starts",
                                .why = no_device},
    [DUET__COST_EVENT] = {"event", "from the end of a device's kernel until the runtime knows",
                          .why = no_device},
};

/* The benches, and the costs that each measures. */
static const struct {
    const char *policy;
    int cpus, gpus;
    void (*measure)(struct duet__microbench *bench, struct duet__measured *costs);
} parts[] = {
    {"ws", 1, 0, duet__costs_tasks},
    {"ws", 2, 0, duet__costs_steals},
    {"pinned", 2, 0, duet__costs_wakes},
    {"pinned", 1, 1, duet__costs_devices},
};

int duet__costs_measure(const struct duet__measurement *given,
                        struct duet__measured costs[DUET__COSTS])
{
    int error = DUET_OK;
    for (unsigned i = 0; i < DUET__COSTS; i++)
        costs[i] = none[i];
    for (size_t i = 0; i < G_N_ELEMENTS(parts) && !error; i++) {
        struct duet__microbench bench;
        if (parts[i].gpus && given->config->gpus == 0)
            continue;
        if (duet__microbench_open(&bench, given, parts[i].policy, parts[i].cpus, parts[i].gpus))
            parts[i].measure(&bench, costs);
        error = duet__microbench_close(&bench);
    }
    return error;
}
