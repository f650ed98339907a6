/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime's own operations take: which there are, and what the simulation charges. */
#include "calibrate/costs.h"

#include <math.h>

#include <glib.h>

#include "calibrate/lab.h"

static const struct {
    const char *name, *description;
} table[DUET__COSTS] = {
    [DUET__COST_SUBMIT] = {"submit", "submitting a task of three accesses that waits for another"},
    [DUET__COST_PUSH] = {"push", "making a task ready when the one before it ends: the time of a "
                                 "task in a chain less that of an independent one"},
    [DUET__COST_POP] = {"pop", "an empty independent task, from its worker's own list until it is "
                               "reported done"},
    [DUET__COST_STEAL] = {"steal", "an empty independent task, from another worker's list until it "
                                   "is reported done; each attempt is charged what that takes "
                                   "longer than pop"},
    [DUET__COST_ATTEMPT] = {"attempt", "an attempt to steal from a worker that has nothing"},
    [DUET__COST_TASK] = {"task", "all of an empty task in a chain on one worker: submit, push, "
                                 "pop"},
    [DUET__COST_WAKE] = {"wake", "from a task's submission until its kernel begins on a CPU worker "
                                 "that sleeps, less submit"},
    [DUET__COST_SPIN] = {"spin", "how long a CPU worker has had nothing to do when it sleeps"},
    [DUET__COST_KERNEL_LAUNCH] = {"kernel_launch", "from when a task without copies is ready until "
                                                   "its kernel starts on an idle device"},
    [DUET__COST_COPY_LAUNCH] = {"copy_launch", "from the decision to copy to an idle device until "
                                               "the copy starts"},
    [DUET__COST_EVENT] = {"event", "from the end of a device's kernel until the runtime knows"},
    [DUET__COST_ALLOCATE] = {"allocate", "a block of device memory: what a launch takes longer "
                                         "with one"},
    [DUET__COST_PIN] = {"pin", "page-locking 1 MiB of memory"},
};

void duet__costing_why(struct duet__costing *costing, enum duet__cost cost, const char *why)
{
    struct duet__measured *measured = &costing->costs[cost];
    measured->samples = 0;
    (void)g_strlcpy(measured->why, why, sizeof measured->why);
}

int duet__costs_measure(const struct duet_config *config, double budget_s,
                        bool (*stop)(void *context), void *context,
                        struct duet__measured costs[DUET__COSTS], struct duet_message *message)
{
    static int (*const parts[])(struct duet__costing *) = {duet__costs_tasks, duet__costs_steals,
                                                           duet__costs_wakes, duet__costs_devices};
    struct duet__costing costing = {.config = config,
                                    .budget = duet__lab_budget(budget_s, stop, context),
                                    .costs = costs,
                                    .message = message};
    int error = DUET_OK;
    for (unsigned i = 0; i < DUET__COSTS; i++)
        costs[i] =
            (struct duet__measured){.name = table[i].name, .description = table[i].description};
    for (size_t i = 0; i < G_N_ELEMENTS(parts) && !error; i++)
        error = parts[i](&costing);
    return error;
}

void duet__costs_fill(const struct duet__measured costs[DUET__COSTS], struct duet_costs *out)
{
    double median_s[DUET__COSTS];
    /* push is a difference, which noise can turn negative where it is small */
    for (unsigned i = 0; i < DUET__COSTS; i++)
        median_s[i] = costs[i].samples > 0 && costs[i].median_s > 0 ? costs[i].median_s : 0;
    *out = (struct duet_costs){
        .submit_s = median_s[DUET__COST_SUBMIT],
        .push_s = median_s[DUET__COST_PUSH],
        .pop_s = median_s[DUET__COST_POP],
        .steal_s = fmax(0, median_s[DUET__COST_STEAL] - median_s[DUET__COST_POP]),
        .kernel_launch_s = median_s[DUET__COST_KERNEL_LAUNCH],
        .copy_launch_s = median_s[DUET__COST_COPY_LAUNCH],
        .event_s = median_s[DUET__COST_EVENT],
        .wake_s = median_s[DUET__COST_WAKE],
        .spin_s = median_s[DUET__COST_SPIN],
    };
}
