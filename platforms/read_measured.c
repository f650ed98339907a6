/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a description that say what the runtime and the memory take on this machine. */
#include "platforms/description.h"
#include "platforms/json.h"

static const double MOST_SECONDS = 1e3;
static const double LEAST_BPS = 1e3;
static const double MOST_BPS = 1e15;
static const uint64_t MOST_BYTES = UINT64_C(1) << 50;

const char *const duet__cost_names[DUET__COST_KINDS] = {"submit_s",        "push_s",
                                                        "pop_s",           "steal_s",
                                                        "kernel_launch_s", "copy_launch_s",
                                                        "event_s",         "wake_s",
                                                        "spin_s"};

double *duet__cost(struct duet_costs *costs, unsigned index)
{
    double *const values[DUET__COST_KINDS] = {&costs->submit_s,        &costs->push_s,
                                              &costs->pop_s,           &costs->steal_s,
                                              &costs->kernel_launch_s, &costs->copy_launch_s,
                                              &costs->event_s,         &costs->wake_s,
                                              &costs->spin_s};

    return values[index];
}

static int read_costs(const struct duet__json *root, struct duet_costs *costs)
{
    struct duet__json at = duet__json_member(root, "costs");
    const char *known[DUET__COST_KINDS + 2] = {NULL};
    int error;

    for (unsigned i = 0; i < DUET__COST_KINDS; i++)
        known[i] = duet__cost_names[i];
    known[DUET__COST_KINDS] = "origin";
    error = duet__json_keys(&at, known);
    if (error == DUET_OK)
        error = duet__check_origin(&at);
    for (unsigned i = 0; i < DUET__COST_KINDS && error == DUET_OK; i++) {
        struct duet__json member = duet__json_member(&at, duet__cost_names[i]);

        if (i < DUET__COSTS_ALWAYS || duet__json_present(&member))
            error = duet__json_number(&member, 0, MOST_SECONDS, duet__cost(costs, i));
    }
    return error;
}

static int read_sharing(const struct duet__json *root, struct duet_sharing *sharing)
{
    static const char *const known[] = {"private_bytes", "shared_bytes", "bandwidth_Bps", "origin",
                                        NULL};
    struct duet__json at = duet__json_member(root, "sharing");
    struct duet__json member;
    int error;

    if (!duet__json_present(&at))
        return DUET_OK;
    error = duet__json_keys(&at, known);
    if (error == DUET_OK)
        error = duet__check_origin(&at);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(&at, "private_bytes");
    error = duet__json_integer(&member, 0, MOST_BYTES, &sharing->private_bytes);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(&at, "shared_bytes");
    error = duet__json_integer(&member, 0, MOST_BYTES, &sharing->shared_bytes);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(&at, "bandwidth_Bps");
    error = duet__json_number(&member, 0, MOST_BPS, &sharing->bandwidth_Bps);
    if (error == DUET_OK && sharing->bandwidth_Bps > 0 && sharing->bandwidth_Bps < LEAST_BPS)
        error = duet__json_fail(&member, DUET_EPARSE, "%g is out of range, expected 0 or %g to %g",
                                sharing->bandwidth_Bps, LEAST_BPS, MOST_BPS);
    return error;
}

static int read_probe(const struct duet__json *root, double *seconds)
{
    static const char *const known[] = {"seconds", "origin", NULL};
    struct duet__json at = duet__json_member(root, "probe");
    struct duet__json member;
    int error;

    if (!duet__json_present(&at))
        return DUET_OK;
    error = duet__json_keys(&at, known);
    if (error == DUET_OK)
        error = duet__check_origin(&at);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(&at, "seconds");
    return duet__json_number(&member, 1e-9, MOST_SECONDS, seconds);
}

int duet__read_flag(const struct duet__json *at, const char *key, bool *value)
{
    struct duet__json member = duet__json_member(at, key);

    return duet__json_present(&member) ? duet__json_boolean(&member, value) : DUET_OK;
}

int duet__read_measured(const struct duet__json *root, struct duet_platform *platform)
{
    struct duet__description *d = &platform->machine;
    struct duet__json cores = duet__json_member(root, "cores");
    int error = read_costs(root, &d->costs);

    if (error == DUET_OK)
        error = read_sharing(root, &d->sharing);
    if (error == DUET_OK && duet__json_present(&cores))
        error = duet__json_unsigned(&cores, 0, DUET__MAX_CORES, &d->cores);
    if (error == DUET_OK)
        error = duet__read_flag(root, "first_waits", &d->first_waits);
    return error == DUET_OK ? read_probe(root, &platform->probe_s) : error;
}
