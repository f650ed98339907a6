/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a machine's bus as StarPU has measured it, from DIR/bus/HOST.*: counts of processors,
 * figures between memory nodes (MB/s and microseconds, the host first), the CPUs near a device, and
 * the platform that StarPU makes of these for SimGrid, which alone has the memory of devices and
 * the bridges of PCI that they are behind.
 */
#include <math.h>
#include <string.h>

#include "platforms/internal.h"

enum { MOST_DEVICES = 64 };

struct device {
    char *model, *bridge; /* NULL: not known */
    double memory;
    unsigned near; /* CPU or NUMA node */
};

struct bus {
    const char *path;                                         /* path DIR/bus/HOST */
    const char *kind;                                         /* of devices: "cuda", "opencl" */
    unsigned cpus, first, count;                              /* first: node of the first device */
    double bandwidth_Bps[MOST_DEVICES + 1][MOST_DEVICES + 1], /* 0 is the host */
        latency_s[MOST_DEVICES + 1][MOST_DEVICES + 1];
    struct device devices[MOST_DEVICES];
    int inside;   /* while XML is read: the device whose properties follow; -1: none */
    int leads_to; /* while XML is read: the device that a route from the host leads to */
    struct duet_message *message;
};

static int read_text(const struct bus *bus, const char *kind, char **text)
{
    g_autofree char *path = g_strconcat(bus->path, ".", kind, NULL);
    size_t length;
    return duet__read_file(path, text, &length, bus->message);
}

/* Returns the text behind the next line, *line, which ends at its comment; NULL: there is none. */
static char *next_line(char *text, char **line, char **comment)
{
    char *end = text ? strchr(text, '\n') : NULL;
    *line = text;
    if (end)
        *end = 0;
    *comment = text ? strchr(text, '#') : NULL;
    if (*comment)
        *(*comment)++ = 0;
    return end ? end + 1 : NULL;
}

/* Reads the counts, "12 # Number of CPUs" and so on; older files have fewer kinds. */
static int read_config(struct bus *bus)
{
    g_autofree char *text = NULL;
    unsigned cuda = 0, opencl = 0, numa = 1;
    char *line, *comment;
    int error = read_text(bus, "config", &text);
    for (char *at = text; at && !error;) {
        guint64 count;
        at = next_line(at, &line, &comment);
        count = g_ascii_strtoull(line, NULL, 10);
        if (!comment || count > DUET__MAX_SOCKET_CORES)
            continue;
        if (strstr(comment, "CPUs"))
            bus->cpus = (unsigned)count;
        else if (strstr(comment, "NUMA"))
            numa = MAX((unsigned)count, 1);
        else if (strstr(comment, "CUDA"))
            cuda = (unsigned)count;
        else if (strstr(comment, "OpenCL"))
            opencl = (unsigned)count;
    }
    bus->kind = cuda ? "cuda" : "opencl";
    bus->count = cuda ? cuda : opencl;
    bus->first = numa;
    if (!error && (!bus->cpus || bus->count > MOST_DEVICES))
        return duet_fail(bus->message, DUET_EPARSE,
                         "%.300s.config: %u CPUs and %u devices: there should be some CPUs, and at "
                         "most %d devices",
                         bus->path, bus->cpus, bus->count, MOST_DEVICES);
    return error;
}

/* Reads a matrix with a row for each source and a column for each destination. */
static int read_matrix(struct bus *bus, const char *kind, double times, double by,
                       double matrix[MOST_DEVICES + 1][MOST_DEVICES + 1])
{
    g_autofree char *text = NULL;
    unsigned row = 0, rows = 0;
    char *line, *comment;
    int error = read_text(bus, kind, &text);
    for (char *at = text; at && !error;) {
        at = next_line(at, &line, &comment);
        if (!line[strspn(line, " \t\r")])
            continue;
        for (unsigned node = 0; node < bus->first + bus->count && rows <= bus->count; node++) {
            const double value = g_ascii_strtod(line, &line) * times / by;
            if (row > 0 && row < bus->first)
                break; /* the host's other, farther memory */
            if (node > 0 && node < bus->first)
                continue;
            matrix[rows][node ? node - bus->first + 1 : 0] = value;
        }
        rows += row == 0 || row >= bus->first;
        row++;
    }
    for (unsigned i = 0; i <= bus->count && !error; i++)
        for (unsigned k = 0; k <= bus->count; k++)
            if (i != k && (rows <= bus->count || !(matrix[i][k] > 0 && matrix[i][k] < 1e15)))
                return duet_fail(bus->message, DUET_EPARSE,
                                 "%.300s.%s: no figure between memory nodes %u and %u", bus->path,
                                 kind, i, k);
    return error;
}

/* Reads "GPU, the nearest CPU or NUMA node, the next one, ..." for the first kind of devices. */
static int read_affinity(struct bus *bus)
{
    g_autofree char *text = NULL;
    unsigned row = 0;
    char *line, *comment;
    int error = read_text(bus, "affinity", &text);
    for (char *at = text; at && !error && row < bus->count;) {
        at = next_line(at, &line, &comment);
        if (!line[strspn(line, " \t\r")])
            continue;
        (void)g_ascii_strtoull(line, &line, 10);
        bus->devices[row++].near = (unsigned)g_ascii_strtoull(line, NULL, 10);
    }
    return error;
}

static int device_of(const struct bus *bus, const char *host)
{
    const size_t length = strlen(bus->kind);
    const guint64 number =
        host && g_ascii_strncasecmp(host, bus->kind, length) == 0 && g_ascii_isdigit(host[length])
            ? g_ascii_strtoull(host + length, NULL, 10)
            : MOST_DEVICES;
    return number < bus->count ? (int)number : -1;
}

static void begin_element(GMarkupParseContext *context, const char *element, const char **names,
                          const char **values, void *data, GError **failure)
{
    struct bus *bus = data;
    struct device *device = bus->inside >= 0 ? &bus->devices[bus->inside] : NULL;
    const char *id = NULL, *value = NULL, *from = NULL, *to = NULL;
    (void)context;
    (void)failure;
    for (size_t i = 0; names[i]; i++) {
        id = strcmp(names[i], "id") == 0 ? values[i] : id;
        value = strcmp(names[i], "value") == 0 ? values[i] : value;
        from = strcmp(names[i], "src") == 0 ? values[i] : from;
        to = strcmp(names[i], "dst") == 0 ? values[i] : to;
    }
    if (strcmp(element, "host") == 0) {
        bus->inside = device_of(bus, id);
    } else if (strcmp(element, "route") == 0) {
        bus->leads_to = from && strcmp(from, "RAM") == 0 ? device_of(bus, to) : -1;
    } else if (device && id && value && strcmp(element, "prop") == 0) {
        if (strcmp(id, "memsize") == 0)
            device->memory = g_ascii_strtod(value, NULL);
        if (strcmp(id, "model") == 0) {
            g_free(device->model);
            device->model = g_strdup(value);
        }
    } else if (bus->leads_to >= 0 && id && g_str_has_suffix(id, " down")) {
        /* a device is behind the bridge that comes last in its route from the host */
        g_free(bus->devices[bus->leads_to].bridge);
        bus->devices[bus->leads_to].bridge = g_strdup(id);
    }
}

static int read_platform(struct bus *bus)
{
    static const GMarkupParser parser = {.start_element = begin_element};
    g_autoptr(GMarkupParseContext) context = g_markup_parse_context_new(&parser, 0, bus, NULL);
    g_autoptr(GError) failure = NULL;
    g_autofree char *text = NULL;
    int error = read_text(bus, "platform.xml", &text);
    bus->inside = bus->leads_to = -1;
    if (error)
        return error;
    if (!g_markup_parse_context_parse(context, text, -1, &failure) ||
        !g_markup_parse_context_end_parse(context, &failure))
        return duet_fail(bus->message, DUET_EPARSE, "%.300s.platform.xml: %.200s", bus->path,
                         failure->message);
    for (unsigned i = 0; i < bus->count; i++)
        if (!(bus->devices[i].memory >= 1 && bus->devices[i].memory < 0x1p62))
            return duet_fail(bus->message, DUET_EPARSE,
                             "%.300s.platform.xml: how much memory %s%u has is not there (memsize)",
                             bus->path, bus->kind, i);
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* The description                                                                              */

/* Makes a socket for each CPU or NUMA node that devices are near to; without devices, one. */
static void set_sockets(const struct bus *bus, struct duet__platform *p, unsigned *socket_of)
{
    unsigned nears[MOST_DEVICES];
    p->socket_count = 0;
    for (unsigned i = 0; i < bus->count; i++) {
        unsigned k = 0;
        while (k < p->socket_count && nears[k] != bus->devices[i].near)
            k++;
        nears[k] = bus->devices[i].near;
        p->socket_count = MAX(p->socket_count, k + 1);
        socket_of[i] = k;
    }
    p->socket_count = MIN(MAX(p->socket_count, 1), bus->cpus);
    p->sockets = g_new0(struct duet__platform_socket, p->socket_count);
    for (unsigned i = 0; i < bus->cpus; i++)
        p->sockets[i % p->socket_count].cores++;
    for (unsigned i = 0; i < bus->count; i++)
        socket_of[i] %= p->socket_count;
}

/* Names architectures: "cuda" where all devices are of one model, as StarPU has it; else "cuda0",
 * ... */
static void set_archs(const struct bus *bus, struct duet__platform *p)
{
    bool same = true;
    p->archs = g_new0(struct duet_arch, bus->count + 1);
    p->arch_count = 1;
    g_strlcpy(p->archs[0].name, "cpu", DUET_NAME_MAX);
    g_strlcpy(p->archs[0].backend, "cpu", DUET_NAME_MAX);
    for (unsigned i = 1; i < bus->count; i++)
        same = same && g_strcmp0(bus->devices[i].model, bus->devices[0].model) == 0;
    for (unsigned i = 0; i < bus->count; i++) {
        unsigned like = 0;
        while (g_strcmp0(bus->devices[like].model, bus->devices[i].model) != 0)
            like++;
        p->gpus[i].arch = like < i ? p->gpus[like].arch : p->arch_count;
        if (like < i)
            continue;
        g_snprintf(p->archs[p->arch_count].name, DUET_NAME_MAX, same ? "%s" : "%s%u", bus->kind, i);
        g_strlcpy(p->archs[p->arch_count++].backend, bus->kind, DUET_NAME_MAX);
    }
}

static struct duet__platform_figure figure(const struct bus *bus, unsigned from, unsigned to)
{
    return (struct duet__platform_figure){bus->bandwidth_Bps[from][to], bus->latency_s[from][to]};
}

/* Makes a switch of each bridge, as fast as its best device. Figures of the kind of link: the
 * last's. */
static void set_switches(const struct bus *bus, struct duet__platform *p, const unsigned *socket_of)
{
    p->kinds = g_new0(struct duet__platform_link, 1);
    p->kind_count = bus->count > 0;
    p->switches = g_new0(struct duet__platform_switch, bus->count + 1);
    g_strlcpy(p->kinds[0].name, "pcie", sizeof p->kinds[0].name);
    for (unsigned i = 0; i < bus->count; i++) {
        struct duet__platform_switch *at;
        unsigned like = i;
        for (unsigned k = 0; k < i && bus->devices[i].bridge; k++)
            if (g_strcmp0(bus->devices[k].bridge, bus->devices[i].bridge) == 0 && like == i)
                like = k;
        p->gpus[i].position = like < i ? p->gpus[like].position : p->switch_count++;
        p->gpus[i].memory_bytes = (uint64_t)bus->devices[i].memory;
        p->gpus[i].to_device = figure(bus, 0, i + 1);
        p->gpus[i].to_host = figure(bus, i + 1, 0);
        at = &p->switches[p->gpus[i].position];
        at->socket = like < i ? at->socket : socket_of[i];
        at->to_device_Bps = fmax(at->to_device_Bps, p->gpus[i].to_device.bandwidth_Bps);
        at->to_host_Bps = fmax(at->to_host_Bps, p->gpus[i].to_host.bandwidth_Bps);
        p->kinds[0].to_device = p->gpus[i].to_device;
        p->kinds[0].to_host = p->gpus[i].to_host;
        p->kinds[0].to_device.bandwidth_Bps = at->to_device_Bps;
        p->kinds[0].to_host.bandwidth_Bps = at->to_host_Bps;
    }
}

/* Makes direct copies, which OpenCL has none of: for each reach, means over the pairs. */
static void set_peers(const struct bus *bus, struct duet__platform *p)
{
    static const char *const names[] = {"peer_switch", "peer_socket", "peer_remote"};
    double pairs[DUET_REACHES] = {0};
    for (unsigned i = 0; i < bus->count && strcmp(bus->kind, "cuda") == 0; i++)
        for (unsigned k = i + 1; k < bus->count; k++) {
            const enum duet__reach reach = duet__reach_between(p, i, k);
            struct duet__platform_figure *up = &p->peers[reach].up, *down = &p->peers[reach].down;
            const struct duet__platform_figure there = figure(bus, i + 1, k + 1),
                                               back = figure(bus, k + 1, i + 1);
            const double share = 1 / ++pairs[reach];
            g_strlcpy(p->peers[reach].name, names[reach], sizeof p->peers[reach].name);
            up->bandwidth_Bps += (there.bandwidth_Bps - up->bandwidth_Bps) * share;
            up->latency_s += (there.latency_s - up->latency_s) * share;
            down->bandwidth_Bps += (back.bandwidth_Bps - down->bandwidth_Bps) * share;
            down->latency_s += (back.latency_s - down->latency_s) * share;
        }
}

static void bus_describe(const struct bus *bus, struct duet__platform *p)
{
    GString *text = g_string_new(NULL);
    g_string_printf(text, "%u CPUs", bus->cpus);
    for (unsigned i = 0; i < bus->count; i++)
        g_string_append_printf(text, ", %s",
                               bus->devices[i].model ? bus->devices[i].model : bus->kind);
    p->description = g_utf8_make_valid(text->str, -1);
    (void)g_string_free(text, TRUE);
    p->origin =
        g_strdup_printf("measured by StarPU (%s.*); costs of the runtime are assumed", bus->path);
    p->costs =
        (struct duet_costs){.submit_s = 1e-6, .push_s = 2e-7, .pop_s = 2e-7, .steal_s = 5e-7};
}

int duet__platform_read_starpu(const char *directory, const char *host, const char *name,
                               struct duet__platform *out, struct duet_message *message)
{
    g_autofree char *path = g_build_filename(directory, "bus", host, NULL);
    g_autofree struct bus *bus = g_new0(struct bus, 1);
    unsigned socket_of[MOST_DEVICES];
    int error;
    *out = (struct duet__platform){.name = ""};
    bus->path = path;
    bus->message = message;
    error = read_config(bus);
    error = error ? error : read_matrix(bus, "bandwidth", 1e6, 1, bus->bandwidth_Bps);
    error = error ? error : read_matrix(bus, "latency", 1, 1e6, bus->latency_s);
    error = error ? error : read_affinity(bus);
    error = error ? error : read_platform(bus);
    if (!error) {
        g_strlcpy(out->name, name, sizeof out->name);
        out->gpu_count = bus->count;
        out->gpus = g_new0(struct duet__platform_gpu, bus->count + 1);
        set_sockets(bus, out, socket_of);
        set_archs(bus, out);
        set_switches(bus, out, socket_of);
        set_peers(bus, out);
        bus_describe(bus, out);
    }
    for (unsigned i = 0; i < MOST_DEVICES; i++) {
        g_free(bus->devices[i].model);
        g_free(bus->devices[i].bridge);
    }
    return error;
}
