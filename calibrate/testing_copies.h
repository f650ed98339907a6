/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of measured copies: Idgraf's emulated buses, which take exact times. */
#ifndef DUET_CALIBRATE_TESTING_COPIES_H
#define DUET_CALIBRATE_TESTING_COPIES_H

#include <math.h>

#include <glib.h>

#include <duet/trace.h>

#include "calibrate/testing.h"
#include "base/clock.h"
#include "runtime/testing.h"

/* Fails unless a value is near. Emulated copies alone have exact dates; on a busy machine two that
 * should be simultaneous may miss each other. */
static inline void testing_near(const char *what, double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * expected))
        g_error("%s: %g instead of %g", what, value, expected);
}

/* Builds the measured machine. */
static inline void testing_machine(const struct duet_config *config, struct duet_machine *machine)
{
    struct duet_runtime *duet = testing_open(config);
    g_assert_cmpint(duet_machine_copy(machine, duet_runtime_machine(duet)), ==, DUET_OK);
    g_assert_cmpint(duet_close(duet), ==, DUET_OK);
}

/* Measures copies for so long. */
static inline struct duet__copies testing_copies(const struct duet_config *config, double budget_s)
{
    struct duet__copies copies;
    WORKS(duet__copies_measure(&(struct duet__measurement){.config = config,
                                                           .end_s = duet__clock_s() + budget_s,
                                                           .message = hear()},
                               &copies));
    return copies;
}

static inline void testing_pairs(const struct duet__copies *copies,
                                 const struct duet_machine *machine)
{
    unsigned nodes = machine->node_count;
    g_assert_cmpuint(copies->node_count, ==, nodes);
    g_assert_cmpuint(copies->pair_count, ==, (size_t)nodes * (nodes - 1));
    for (size_t i = 0; i < copies->pair_count; i++) {
        const struct duet__copy_pair *pair = &copies->pairs[i];
        const struct duet_route *route =
            duet_machine_route(machine, pair->source, pair->destination);
        g_assert_true(pair->direct == route->direct);
        if (!pair->direct)
            continue;
        g_assert_cmpuint(pair->samples, >=, 10);
        testing_near("latency", pair->latency_s, route->latency_s, 0.2);
        testing_near("bandwidth", pair->bandwidth_Bps, route->bandwidth_Bps, 0.02);
    }
}

/* Returns the link that a route shares with others. */
static inline unsigned testing_shared(const struct duet_machine *machine, unsigned source,
                                      unsigned destination)
{
    return duet_machine_route(machine, source, destination)->links[0];
}

static inline void testing_switches(const struct duet__copies *copies,
                                    const struct duet_machine *machine)
{
    for (unsigned a = 1; a < machine->node_count; a++) {
        unsigned own = copies->switches[a - 1];
        unsigned down = testing_shared(machine, DUET_HOST, a);
        unsigned up = testing_shared(machine, a, DUET_HOST);
        g_assert_cmpuint(own, <, copies->switch_count);
        /* a GPU slower than its switch, and alone behind it, hides the switch's bandwidth */
        testing_near("down", copies->to_device_Bps[own], machine->links[down].bandwidth_Bps, 0.02);
        testing_near("up", copies->to_host_Bps[own], machine->links[up].bandwidth_Bps, 0.02);
        for (unsigned b = a + 1; b < machine->node_count; b++)
            g_assert_true((copies->switches[b - 1] == own) ==
                          (testing_shared(machine, DUET_HOST, b) == down));
    }
}

#endif
