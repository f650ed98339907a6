/* SPDX-License-Identifier: Apache-2.0 */
/* Support for tests: machines made of devices that are not there. */
#ifndef DUET_REAL_TESTING_MACHINE_H
#define DUET_REAL_TESTING_MACHINE_H

#include <glib.h>

#include "real/machine.h"

/* Parts of a machine; begun by testing_parts, changed by tests, ended by testing_end. */
struct testing_parts {
    struct duet_config config;
    struct parts parts;
};

/* `devices` GPUs that reach each other directly, beside the processors of hwloc's description. */
static inline void testing_parts(struct testing_parts *t, const char *processors, unsigned cpus,
                                 unsigned devices)
{
    size_t some = devices ? devices : 1;
    *t = (struct testing_parts){.config = {.gpu_memory_share = 1}};
    t->parts = (struct parts){.config = &t->config,
                              .cpus = cpus,
                              .devices = g_new0(struct found, some),
                              .ends = g_new0(struct link_end, some),
                              .between = g_new0(struct backend_link, some * some),
                              .device_count = devices};
    g_assert_cmpint(duet__places_synthetic(&t->parts.places, processors), ==, DUET_OK);
    for (unsigned d = 0; d < devices; d++) {
        t->parts.devices[d] = (struct found){.backend = duet__backend_find("emulated"),
                                             .index = d,
                                             .info = {.arch = "c2050", .memory_bytes = 1 << 20}};
        for (unsigned other = 0; other < devices; other++)
            t->parts.between[(size_t)d * devices + other].direct = other != d;
    }
}

static inline void testing_end(struct testing_parts *t)
{
    duet__places_free(t->parts.places);
    g_free(t->parts.devices);
    g_free(t->parts.ends);
    g_free(t->parts.between);
}

/* Adds a way for data from one device to another. */
static inline void testing_join(struct testing_parts *t, unsigned source, unsigned destination,
                                const char *kind, double bandwidth_Bps)
{
    struct backend_link *link =
        &t->parts.between[(size_t)source * t->parts.device_count + destination];
    *link = (struct backend_link){.direct = *kind != '\0', .bandwidth_Bps = bandwidth_Bps};
    g_strlcpy(link->kind, kind, sizeof link->kind);
}

/* The machine, which holds all that machine.h promises. End it with duet_machine_fini. */
static inline void testing_make(struct testing_parts *t, struct duet_machine *machine)
{
    if (duet__machine_make(machine, &t->parts, hear()) || duet_machine_check(machine, hear()))
        g_error("%s", heard());
}

/* Checks a route: nodes by name, and the links it crosses, "" if there is none. */
static inline void testing_route(const struct duet_machine *machine, const char *from,
                                 const char *to, const char *links, double bandwidth_Bps)
{
    unsigned nodes[2] = {0, 0};
    for (unsigned n = 0; n < machine->node_count; n++) {
        nodes[0] = strcmp(machine->nodes[n].name, from) ? nodes[0] : n;
        nodes[1] = strcmp(machine->nodes[n].name, to) ? nodes[1] : n;
    }
    const struct duet_route *route = duet_machine_route(machine, nodes[0], nodes[1]);
    g_autoptr(GString) crossed = g_string_new("");
    for (unsigned i = 0; i < route->count; i++)
        g_string_append_printf(crossed, "%s%s", i ? " " : "", machine->links[route->links[i]].name);
    g_assert_cmpint(route->direct, ==, *links != '\0');
    g_assert_cmpstr(crossed->str, ==, links);
    g_assert_cmpfloat_with_epsilon(route->bandwidth_Bps, bandwidth_Bps,
                                   1e-6 * bandwidth_Bps + 1e-9);
}

#endif
