/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine as SimGrid's XML: memory nodes are hosts, each direction of a shared link is a link.
 * Latencies are 0: the engine pays them, since SimGrid's shares would depend on them.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/network.h"

struct text {
    char *bytes;
    size_t length, capacity;
    bool failed;
};

static void DUET_PRINTF(2, 3) append(struct text *text, const char *format, ...)
{
    enum { LINE = 256 };
    if (text->capacity - text->length < LINE) {
        size_t capacity = 2 * text->capacity + 4096;
        char *bytes = realloc(text->bytes, capacity);
        if (!bytes) {
            text->failed = true;
            return;
        }
        text->bytes = bytes;
        text->capacity = capacity;
    }
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text->bytes + text->length, LINE, format, arguments);
    va_end(arguments);
    if (written < 0 || written >= LINE)
        text->failed = true;
    else
        text->length += (size_t)written;
}

/*
 * The narrowest limit on each copy alone of a route, 0 if it has none that binds: one no narrower
 * than a shared link of the same route changes no date, and leaving it out saves a third of the
 * cost of a copy.
 */
static double limit_of(const struct duet_machine *machine, const struct duet_route *route)
{
    double limit = HUGE_VAL, shared = HUGE_VAL;
    for (unsigned i = 0; route->direct && i < route->count; i++) {
        const struct duet_link *link = &machine->links[route->links[i]];
        double *narrowest = link->per_copy ? &limit : &shared;
        *narrowest = fmin(*narrowest, link->bandwidth_Bps);
    }
    return limit < shared ? limit : 0;
}

/*
 * Each route gets a limit of its own: a link that many routes have in common would tie the
 * equations of all their flows together, although it does not make them share anything.
 */
static void append_limit(struct text *text, const struct duet_machine *machine, unsigned source,
                         unsigned destination)
{
    double limit = limit_of(machine, duet_machine_route(machine, source, destination));
    if (limit > 0)
        append(text,
               "<link id=\"c%u-%u\" bandwidth=\"%.17gBps\" latency=\"0s\" "
               "sharing_policy=\"FATPIPE\"/>\n",
               source, destination, limit);
}

static void append_route(struct text *text, const struct duet_machine *machine, unsigned source,
                         unsigned destination)
{
    const struct duet_route *route = duet_machine_route(machine, source, destination);
    if (source == destination || !route->direct)
        return;
    append(text, "<route src=\"n%u\" dst=\"n%u\" symmetrical=\"NO\">", source, destination);
    for (unsigned i = 0; i < route->count; i++)
        if (!machine->links[route->links[i]].per_copy)
            append(text, "<link_ctn id=\"l%u\"/>", (unsigned)route->links[i]);
    if (limit_of(machine, route) > 0)
        append(text, "<link_ctn id=\"c%u-%u\"/>", source, destination);
    append(text, "</route>\n");
}

char *duet__network_platform(const struct duet_machine *machine)
{
    struct text text = {0};
    append(&text, "<?xml version='1.0'?>\n"
                  "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                  "<platform version=\"4.1\">\n<zone id=\"machine\" routing=\"Full\">\n");
    for (unsigned n = 0; n < machine->node_count; n++)
        append(&text, "<host id=\"n%u\" speed=\"1Gf\"/>\n", n);
    for (unsigned l = 0; l < machine->link_count; l++)
        if (!machine->links[l].per_copy)
            append(&text, "<link id=\"l%u\" bandwidth=\"%.17gBps\" latency=\"0s\"/>\n", l,
                   machine->links[l].bandwidth_Bps);
    for (unsigned s = 0; s < machine->node_count; s++)
        for (unsigned d = 0; d < machine->node_count; d++)
            append_limit(&text, machine, s, d);
    for (unsigned s = 0; s < machine->node_count; s++)
        for (unsigned d = 0; d < machine->node_count; d++)
            append_route(&text, machine, s, d);
    append(&text, "</zone>\n</platform>\n");
    if (text.failed) {
        free(text.bytes);
        return NULL;
    }
    return text.bytes;
}
