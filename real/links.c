/* SPDX-License-Identifier: Apache-2.0 */
/* Links that devices share, and the routes over them. */
#include "real/links.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEVELS = 3, /* most levels of switches above a device: routes then cross at most
                   DUET_ROUTE_LINKS links */
    DOWN = 0,   /* the link to the device, if there are two */
    UP = 1,     /* the link to the host, if there are two */
};

/* Defaults: 10 GB/s; 10 us, as measured on the machines of platforms/ (9 to 13). */
static const double USUAL_BPS = 1e10, USUAL_LATENCY_S = 1e-5;

/* A link that joins a switch, or several in a row, with the processor or the next switch above. */
struct uplink {
    const char *address; /* address of the port at its lower end */
    double bandwidth_Bps;
    unsigned first_link; /* first of two links */
};

struct device {
    double own_Bps, latency_s;
    unsigned own; /* first of two links */
    unsigned levels;
    unsigned uplinks[LEVELS]; /* from the nearest to the processor's */
    double ports_Bps;         /* bandwidth of all its links to NVLink switches, one way; 0: none */
    unsigned ports;           /* first of two links */
};

struct links {
    const struct link_end *ends;
    const struct backend_link *between;
    unsigned device_count, uplink_count, count;
    struct device *devices;
    struct uplink *uplinks;
    struct duet_link *all;
    struct duet_route *routes;
};

/* ------------------------------------------------------------------------------------------- */
/* Shared links */

/* Returns the smaller bandwidth; 0 means not known. */
static double narrower(double a, double b)
{
    if (a <= 0 || b <= 0)
        return a > 0 ? a : b;
    return fmin(a, b);
}

/* True if copies to this device cross the link above the port of this address. */
static bool crosses(const struct pci_path *path, const char *address)
{
    unsigned port = path->count - 1;
    if (!path->count)
        return false;
    do {
        if (!strcmp(path->ports[port].address, address))
            return true;
    } while (duet__pci_up(path, &port));
    return false;
}

static unsigned count_sharers(const struct links *links, const char *address)
{
    unsigned count = 0;
    for (unsigned d = 0; d < links->device_count; d++)
        count += crosses(&links->ends[d].path, address);
    return count;
}

/* Returns the number of the uplink above this port, which is made if it is new. */
static unsigned find_uplink(struct links *links, const char *address)
{
    unsigned u = 0;
    while (u < links->uplink_count && strcmp(links->uplinks[u].address, address) != 0)
        u++;
    if (u == links->uplink_count)
        links->uplinks[links->uplink_count++] = (struct uplink){.address = address};
    return u;
}

/* Finds the shared links from a device to the processor. The set of sharers can only grow on the
   way, so that links with equally many sharers have the same ones, and are one. */
static void find_shared(struct links *links, unsigned d)
{
    const struct pci_path *path = &links->ends[d].path;
    struct device *device = &links->devices[d];
    unsigned sharers = 1, port = path->count - 1;
    if (!path->count)
        return;
    do {
        const char *address = path->ports[port].address;
        double bandwidth = duet__pci_Bps(path, port);
        unsigned now = count_sharers(links, address);
        if (now > 1 && now != sharers) {
            if (device->levels == LEVELS)
                return;
            device->uplinks[device->levels++] = find_uplink(links, address);
        }
        sharers = now;
        double *narrowest = &device->own_Bps;
        if (now > 1)
            narrowest = &links->uplinks[device->uplinks[device->levels - 1]].bandwidth_Bps;
        *narrowest = narrower(*narrowest, bandwidth);
    } while (duet__pci_up(path, &port));
}

/* Sets the bandwidth of unknown uplinks to that of the fastest device below. */
static void guess_uplinks(struct links *links)
{
    for (unsigned u = 0; u < links->uplink_count; u++) {
        struct uplink *uplink = &links->uplinks[u];
        if (uplink->bandwidth_Bps > 0)
            continue;
        for (unsigned d = 0; d < links->device_count; d++)
            for (unsigned l = 0; l < links->devices[d].levels; l++)
                if (links->devices[d].uplinks[l] == u)
                    uplink->bandwidth_Bps = fmax(uplink->bandwidth_Bps, links->devices[d].own_Bps);
    }
}

static const struct backend_link *link_between(const struct links *links, unsigned source,
                                               unsigned destination)
{
    return &links->between[(size_t)source * links->device_count + destination];
}

static bool is_kind(const struct backend_link *link, const char *kind)
{
    return link->direct && link->bandwidth_Bps > 0 && !strcmp(link->kind, kind);
}

/* Sets the width of a device's links to NVLink switches to the widest connection with another
   device, as the narrower of two limits their connection. */
static void find_ports(struct links *links, unsigned d)
{
    for (unsigned other = 0; other < links->device_count; other++) {
        const struct backend_link *out = link_between(links, d, other),
                                  *in = link_between(links, other, d);
        double *ports = &links->devices[d].ports_Bps;
        if (other != d && is_kind(out, "nvswitch"))
            *ports = fmax(*ports, out->bandwidth_Bps);
        if (other != d && is_kind(in, "nvswitch"))
            *ports = fmax(*ports, in->bandwidth_Bps);
    }
}

/* Finds the links of all devices. The system's data on a device's slot is better than the backend's
   on all devices of its kind. */
static void find_all(struct links *links)
{
    for (unsigned d = 0; d < links->device_count; d++) {
        struct device *device = &links->devices[d];
        const struct link_end *end = &links->ends[d];
        device->latency_s = end->latency_s > 0 ? end->latency_s : USUAL_LATENCY_S;
        find_shared(links, d);
        if (device->own_Bps <= 0 && device->levels)
            device->own_Bps = links->uplinks[device->uplinks[0]].bandwidth_Bps;
        if (device->own_Bps <= 0)
            device->own_Bps = end->bandwidth_Bps;
        if (device->own_Bps <= 0)
            device->own_Bps = USUAL_BPS;
        find_ports(links, d);
    }
    guess_uplinks(links);
}

/* ------------------------------------------------------------------------------------------- */
/* Links                                                                                        */

__attribute__((format(printf, 3, 4))) static unsigned add_link(struct links *links,
                                                               double bandwidth_Bps,
                                                               const char *format, ...)
{
    struct duet_link *link = &links->all[links->count];
    va_list arguments;
    *link = (struct duet_link){.bandwidth_Bps = bandwidth_Bps};
    va_start(arguments, format);
    (void)vsnprintf(link->name, sizeof link->name, format, arguments);
    va_end(arguments);
    return links->count++;
}

static void make_links(struct links *links)
{
    for (unsigned d = 0; d < links->device_count; d++) {
        struct device *device = &links->devices[d];
        device->own = add_link(links, device->own_Bps, "pcie%u-to-device", d);
        (void)add_link(links, device->own_Bps, "pcie%u-to-host", d);
    }
    for (unsigned u = 0; u < links->uplink_count; u++) {
        struct uplink *uplink = &links->uplinks[u];
        uplink->first_link = add_link(links, uplink->bandwidth_Bps, "switch%u-to-device", u);
        (void)add_link(links, uplink->bandwidth_Bps, "switch%u-to-host", u);
    }
    for (unsigned d = 0; d < links->device_count; d++) {
        struct device *device = &links->devices[d];
        if (device->ports_Bps <= 0)
            continue;
        device->ports = add_link(links, device->ports_Bps, "nvlink-gpu%u-in", d);
        (void)add_link(links, device->ports_Bps, "nvlink-gpu%u-out", d);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Routes                                                                                       */

static void route_cross(const struct links *links, struct duet_route *route, unsigned link)
{
    double bandwidth = links->all[link].bandwidth_Bps;
    if (route->count == 0 || bandwidth < route->bandwidth_Bps)
        route->bandwidth_Bps = bandwidth;
    route->links[route->count++] = (uint16_t)link;
}

/* True if `uplink` is above this device. NULL, the host, is below none. */
static bool is_below(const struct device *device, unsigned uplink)
{
    for (unsigned l = 0; device && l < device->levels; l++)
        if (device->uplinks[l] == uplink)
            return true;
    return false;
}

/* Crosses the links from a device up to where the way to `other` turns down; NULL: to the host. */
static void route_up(const struct links *links, struct duet_route *route,
                     const struct device *device, const struct device *other)
{
    route_cross(links, route, device->own + UP);
    for (unsigned l = 0; l < device->levels; l++)
        if (!is_below(other, device->uplinks[l]))
            route_cross(links, route, links->uplinks[device->uplinks[l]].first_link + UP);
}

static void route_down(const struct links *links, struct duet_route *route,
                       const struct device *device, const struct device *other)
{
    for (unsigned l = device->levels; l-- > 0;)
        if (!is_below(other, device->uplinks[l]))
            route_cross(links, route, links->uplinks[device->uplinks[l]].first_link + DOWN);
    route_cross(links, route, device->own + DOWN);
}

static struct duet_route *route_at(const struct links *links, unsigned source, unsigned destination)
{
    return &links->routes[(size_t)source * (links->device_count + 1) + destination];
}

static void make_host_routes(struct links *links, unsigned d)
{
    const struct device *device = &links->devices[d];
    struct duet_route *in = route_at(links, DUET_HOST, 1 + d);
    struct duet_route *out = route_at(links, 1 + d, DUET_HOST);
    in->direct = out->direct = true;
    in->latency_s = out->latency_s = device->latency_s;
    route_down(links, in, device, NULL);
    route_up(links, out, device, NULL);
}

static void make_peer_route(struct links *links, unsigned source, unsigned destination)
{
    const struct backend_link *link = link_between(links, source, destination);
    const struct device *from = &links->devices[source], *to = &links->devices[destination];
    struct duet_route *route = route_at(links, 1 + source, 1 + destination);
    if (!link->direct)
        return;
    route->direct = true;
    route->latency_s = fmax(from->latency_s, to->latency_s);
    if (is_kind(link, "nvlink")) {
        route_cross(links, route,
                    add_link(links, link->bandwidth_Bps, "nvlink-gpu%u-to-gpu%u", source,
                             destination));
    } else if (is_kind(link, "nvswitch")) {
        route_cross(links, route, from->ports + UP);
        route_cross(links, route, to->ports + DOWN);
    } else {
        route_up(links, route, from, to);
        route_down(links, route, to, from);
    }
}

/* ------------------------------------------------------------------------------------------- */

static int reserve_links(struct links *links)
{
    size_t devices = links->device_count, nodes = devices + 1;
    links->devices = calloc(nodes, sizeof *links->devices);
    links->uplinks = calloc(LEVELS * nodes, sizeof *links->uplinks);
    links->all = calloc((4 + 2 * LEVELS + devices) * nodes, sizeof *links->all);
    links->routes = calloc(nodes * nodes, sizeof *links->routes);
    return links->devices && links->uplinks && links->all && links->routes ? DUET_OK : DUET_ENOMEM;
}

int duet__links_new(struct links **out, const struct link_end *ends, unsigned count,
                    const struct backend_link *between_them)
{
    *out = NULL;
    struct links *links = calloc(1, sizeof *links);
    if (!links)
        return DUET_ENOMEM;
    links->ends = ends;
    links->between = between_them;
    links->device_count = count;
    int error = reserve_links(links);
    if (!error) {
        find_all(links);
        make_links(links);
        for (unsigned s = 0; s < count; s++) {
            make_host_routes(links, s);
            for (unsigned d = 0; d < count; d++)
                if (s != d)
                    make_peer_route(links, s, d);
        }
        error = links->count > UINT16_MAX + 1U ? DUET_EINVAL : DUET_OK;
    }
    if (error) {
        duet__links_free(links);
        return error;
    }
    *out = links;
    return DUET_OK;
}

void duet__links_free(struct links *links)
{
    if (!links)
        return;
    free(links->devices);
    free(links->uplinks);
    free(links->all);
    free(links->routes);
    free(links);
}

unsigned duet__links_count(const struct links *links)
{
    return links->count;
}

void duet__links_fill(const struct links *links, struct duet_machine *machine)
{
    size_t nodes = links->device_count + 1;
    if (links->count > 0)
        memcpy(machine->links, links->all, links->count * sizeof *links->all);
    memcpy(machine->routes, links->routes, nodes * nodes * sizeof *links->routes);
}
