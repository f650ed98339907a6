/* SPDX-License-Identifier: Apache-2.0 */
/* Links that devices share, and the routes over them. */
#include "real/machine.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ctype.h>
#include <limits.h>

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

/* ------------------------------------------------------------------------------------------- */
/* Paths of PCI Express as Linux's sysfs shows them. */

/*
 * Share of a link's bytes that copies reach. Packets of 128 or 256 bytes carry 20 to 28 bytes of
 * framing, header and checksum (0.83 to 0.92 of it is data), and acknowledgements and credits go
 * the same way. Measured, of 16 lanes: 0.75 to 0.81 (second generation; idgraf, mirage and attila
 * in platforms/), 0.67 (third; sirocco there), 0.70 to 0.76 (third, by NVIDIA's forum).
 */
static const double PAYLOAD = 0.8;

/*
 * Speed that ports without a real link claim: those of virtual machines, and tunnels (Thunderbolt).
 */
static const double CLAIMED_GTPS = 2.5;

/* ------------------------------------------------------------------------------------------- */
/* Reading                                                                                      */

/* Reads the first line of FOLDER/NAME; "" if it is not there or too long. */
static void read_file(const char *folder, const char *name, char *to, size_t size)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    *to = '\0';
    if (length > 0 && (size_t)length < sizeof path)
        (void)duet__read_line(path, to, size);
}

/* Reads "8.0 GT/s PCIe" or "2.5 GT/s": 8 or 2.5, whatever the locale's decimal point is. */
static double read_speed(const char *folder, const char *name)
{
    char text[64], *end;
    read_file(folder, name, text, sizeof text);
    if (!isdigit((unsigned char)*text))
        return 0;
    unsigned long whole = strtoul(text, &end, 10);
    double speed = (double)whole;
    if (*end == '.' && isdigit((unsigned char)end[1])) {
        speed += (end[1] - '0') / 10.0;
        end += 2;
    }
    return whole < 1000 && strstr(end, "GT/s") ? speed : 0;
}

/* Reads 1 to 32 lanes; 0: not known. Sleeping ports claim 63, or 255. */
static unsigned read_lanes(const char *folder, const char *name)
{
    char text[64];
    read_file(folder, name, text, sizeof text);
    if (!isdigit((unsigned char)*text))
        return 0;
    unsigned long lanes = strtoul(text, NULL, 10);
    return lanes <= 32 ? (unsigned)lanes : 0;
}

static unsigned hex_digits(const char *text)
{
    unsigned count = 0;
    while (isxdigit((unsigned char)text[count]))
        count++;
    return count;
}

/* True for DOMAIN:BUS:DEVICE.FUNCTION; a domain has four digits or more. */
static bool is_address(const char *text)
{
    unsigned domain = hex_digits(text);
    if (domain < 4 || domain > 8 || text[domain] != ':')
        return false;
    text += domain + 1;
    return hex_digits(text) == 2 && text[2] == ':' && hex_digits(text + 3) == 2 && text[5] == '.' &&
           hex_digits(text + 6) == 1 && text[7] == '\0';
}

static void read_port(const char *folder, const char *address, struct pci_port *port)
{
    (void)snprintf(port->address, sizeof port->address, "%s", address);
    port->speed_GTps = read_speed(folder, "max_link_speed");
    port->speed_now_GTps = read_speed(folder, "current_link_speed");
    port->lanes = read_lanes(folder, "max_link_width");
    port->lanes_now = read_lanes(folder, "current_link_width");
}

/*
 * Reads the ports on a path like /sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0, by splitting
 * it. Everything before the last root ("pci...") is a parent of a root that is no processor's own.
 */
static void read_ports(char *folder, struct pci_path *path)
{
    for (char *slash = strchr(folder, '/'); slash;) {
        char *name = slash + 1, *next = strchr(name, '/');
        if (next)
            *next = '\0';
        if (!strncmp(name, "pci", strlen("pci"))) {
            path->count = 0;
        } else if (is_address(name)) {
            if (path->count < PCI_PORTS)
                read_port(folder, name, &path->ports[path->count]);
            path->count++;
        }
        if (next)
            *next = '/';
        slash = next;
    }
    if (path->count > PCI_PORTS)
        path->count = 0;
}

void duet__pci_read(const char *root, const char *address, struct pci_path *path)
{
    char link[PATH_MAX], folder[PATH_MAX];
    memset(path, 0, sizeof *path);
    int length = snprintf(link, sizeof link, "%s/bus/pci/devices/%s", root, address);
    if (!is_address(address) || length < 0 || (size_t)length >= sizeof link ||
        !realpath(link, folder))
        return;
    read_file(folder, "local_cpulist", path->processors, sizeof path->processors);
    read_ports(folder, path);
}

/* ------------------------------------------------------------------------------------------- */
/* Links                                                                                        */

/* Returns false if a port says nothing, or less than the device behind it can do by generations. */
static bool believed(const struct pci_path *path, const struct pci_port *port)
{
    const struct pci_port *device = &path->ports[path->count - 1];
    return port->speed_GTps > 0 && port->lanes > 0 &&
           (port->speed_GTps > CLAIMED_GTPS || device->speed_GTps <= CLAIMED_GTPS);
}

/* Returns the bytes per second of a lane with its code: 8 bits in 10, 128 in 130, and the packets
   of 64 GT/s. */
static double lane_Bps(double speed_GTps)
{
    double code = speed_GTps <= 5 ? 0.8 : speed_GTps < 64 ? 128.0 / 130 : 242.0 / 256;
    return speed_GTps * 1e9 / 8 * code;
}

double duet__pci_Bps(const struct pci_path *path, unsigned port)
{
    const struct pci_port *lower = &path->ports[port];
    if (!believed(path, lower))
        return 0;
    double speed = lower->speed_GTps;
    unsigned lanes = lower->lanes;
    /* a card may have more lanes than its slot; the number in use does not vary like the speed */
    if (lower->lanes_now > 0 && lower->lanes_now < lanes)
        lanes = lower->lanes_now;
    if (port > 0) {
        const struct pci_port *upper = lower - 1;
        /* a virtual port may claim less than what runs through it */
        bool real = believed(path, upper) && lower->lanes_now <= upper->lanes &&
                    lower->speed_now_GTps <= upper->speed_GTps;
        if (real && upper->lanes < lanes)
            lanes = upper->lanes;
        if (real && upper->speed_GTps < speed)
            speed = upper->speed_GTps;
    }
    return lane_Bps(speed) * lanes * PAYLOAD;
}

/*
 * Links and the insides of switches alternate on a path: a device, or a switch's upper port, is at
 * the end of a link; a switch's lower port is on the bus inside. A port at the processor itself has
 * no link.
 */
bool duet__pci_up(const struct pci_path *path, unsigned *port)
{
    if (*port < 3)
        return false;
    *port -= 2;
    return true;
}
