/* SPDX-License-Identifier: Apache-2.0 */
#include "platforms/model/draws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <duet/random.h>

#include "platforms/model/effects.h"

/* Standard deviations of the logarithms of bandwidths, and of costs and a network's latency:
   assumed, nobody has measured them. */
#define LINK_UNCERTAINTY 0.05
#define MEMORY_UNCERTAINTY 0.1
#define COST_UNCERTAINTY 0.2

int duet__draws_parse(const char *what, const char *text, unsigned *runs,
                      struct duet_message *message)
{
    static const char median[] = "median:";
    char *end = NULL;
    long count = 0;
    *runs = 0;
    if (!text || strcmp(text, "run") == 0) {
        *runs = text != NULL;
        return DUET_OK;
    }
    if (strncmp(text, median, sizeof median - 1) == 0 && text[sizeof median - 1] >= '0' &&
        text[sizeof median - 1] <= '9')
        count = strtol(text + sizeof median - 1, &end, 10);
    if (!end || *end || count < 1 || count > DUET__DRAWS_RUNS)
        return duet_fail(message, DUET_EINVAL,
                         "%s: '%.60s' is neither run (the interval of one run) nor median:K (that "
                         "of the median of K runs, 1 to %d)",
                         what, text, DUET__DRAWS_RUNS);
    *runs = (unsigned)count;
    return DUET_OK;
}

/* Returns the state of the random stream of a quantity, which both seeds of a pair share. */
static uint64_t stream_of(const struct duet__draws *draws, const char *name, const char *of)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a, of both names and their ends */
    for (size_t i = 0; i <= strlen(name); i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i <= strlen(of); i++)
        hash = (hash ^ (unsigned char)of[i]) * UINT64_C(0x100000001b3);
    return duet_random_stream(draws->seed / 2 ^ UINT64_C(0x64726177), hash);
}

double duet__draw_normal(const struct duet__draws *draws, const char *name, const char *of)
{
    uint64_t state = stream_of(draws, name, of);
    double u = duet_random_unit(&state), v = duet_random_unit(&state);
    double z = duet__normal(u, v);
    return draws->seed % 2 ? -z : z;
}

static bool is_held(const struct duet__draws *draws, const char *name, const char *of)
{
    const struct duet__hold *hold = draws->hold;
    return hold && strcmp(hold->name, name) == 0 && strcmp(hold->of, of) == 0;
}

static double draw_factor(const struct duet__draws *draws, const char *name, const char *of,
                          double deviation)
{
    if (is_held(draws, name, of))
        deviation = draws->hold->measured ? fmin(deviation, DUET__USUAL_UNCERTAINTY) : 0;
    return draws->runs && deviation > 0 ? exp(deviation * duet__draw_normal(draws, name, of)) : 1;
}

double duet__draw_kernel(const struct duet__draws *draws, const char *kernel, const char *arch,
                         const struct duet__point *point)
{
    return draw_factor(draws, kernel, arch, point->uncertainty);
}

static int compare(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

double duet__draw_state(const struct duet__draws *draws, const struct duet__states *states)
{
    enum { MOST = 999 }; /* medians of more runs hardly differ */
    uint64_t state = stream_of(draws, "", "state");
    const unsigned runs = draws->runs < MOST ? draws->runs : MOST;
    double u[MOST], at, factor;
    unsigned place;
    if (!states->runs)
        return 1;
    if (!runs || is_held(draws, "", "state"))
        return states->factor[DUET__STATES / 2];
    for (unsigned i = 0; i < runs; i++)
        u[i] = duet_random_unit(&state);
    qsort(u, runs, sizeof *u, compare);
    at = (u[runs / 2] + u[(runs - 1) / 2]) / 2;
    at = (draws->seed % 2 ? 1 - at : at) * (DUET__STATES - 1);
    place = at < DUET__STATES - 2 ? (unsigned)at : DUET__STATES - 2;
    factor =
        states->factor[place] + (at - place) * (states->factor[place + 1] - states->factor[place]);
    return factor * draw_factor(draws, "", "drift", states->drift);
}

void duet__draw_machine(const struct duet__draws *draws, const struct duet__states *states,
                        struct duet_machine *machine)
{
    struct duet_costs *costs = &machine->costs;
    double *const all[] = {&costs->submit_s, &costs->push_s,          &costs->pop_s,
                           &costs->steal_s,  &costs->kernel_launch_s, &costs->copy_launch_s,
                           &costs->event_s,  &costs->wake_s,          &costs->foreign_s};
    double factor = draw_factor(draws, "", "costs", COST_UNCERTAINTY);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] *= factor;
    if (!states)
        return;
    machine->sharing.bandwidth_Bps *=
        draw_factor(draws, "", "memory", MEMORY_UNCERTAINTY) / duet__draw_state(draws, states);
    factor = draw_factor(draws, "", "links", LINK_UNCERTAINTY);
    for (unsigned i = 0; i < machine->link_count; i++)
        machine->links[i].bandwidth_Bps *= factor;
    for (unsigned i = 0; i < machine->node_count * machine->node_count; i++)
        machine->routes[i].bandwidth_Bps *= factor;
}

void duet__draw_network(const struct duet__draws *draws, struct duet__network *network)
{
    const double factor = draw_factor(draws, "", "latency", COST_UNCERTAINTY);
    network->bandwidth_Bps *= draw_factor(draws, "", "network", LINK_UNCERTAINTY);
    network->latency_s *= factor;
    network->overhead_s *= factor;
    network->rendezvous_s *= factor;
}
