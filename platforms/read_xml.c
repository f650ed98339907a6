/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a machine from a SimGrid platform file, written by duet or by others. */
#include <math.h>
#include <string.h>

#include "platforms/internal.h"

struct host {
    struct duet_node node;
    unsigned is_host, cores;
};

struct link {
    double bandwidth_Bps, latency_s;
    unsigned policy;
    unsigned is_latency; /* carries a route's latency in files of duet: no link of the machine */
    unsigned
        first; /* in the machine: its index; if SPLITDUPLEX, that of NAME_UP, before NAME_DOWN */
};

struct route {
    unsigned from, to; /* indices of hosts */
    unsigned one_way;
    struct duet_route there, back;
};

/* The file while it is read. */
struct zone {
    struct duet__platform platform; /* first member: name, architectures, costs and the like */
    unsigned routing, schema, host_count, link_count, route_count, worker_count;
    struct host *hosts;
    struct link *links;
    struct route *routes;
    struct duet_worker *workers;
    char calibration[NAME_MAX + 1];
    GHashTable *by_name;   /* name -> struct link * */
    GArray *machine_links; /* struct duet_link */
    unsigned host;         /* index of the host whose memory is node 0 */
};

#define AT(type, member) .offset = offsetof(struct type, member)
#define SIZE(type, member) .room = sizeof(((struct type *)NULL)->member)
#define LIST(name, count, array, type, least, most, table, call)                                   \
    name, offsetof(struct zone, count), offsetof(struct zone, array), sizeof(struct type), least,  \
        most, .fields = (table), .check = (call)
#define ELSEWHERE(name) .key = (name), .kind = DUET__CUSTOM, .when = DUET__OPTIONAL

static const char *const devices[] = {"device", "host", NULL};

static const struct duet__field host_properties[] = {
    {"kind", DUET__CHOICE, DUET__OPTIONAL, AT(host, is_host), .choices = devices},
    {"capacity_bytes", DUET__INTEGER, DUET__OPTIONAL, AT(host, node.capacity_bytes), .least = 1,
     .most = 0x1p62},
    {NULL},
};

static const struct duet__field host_fields[] = {
    {"id", DUET__NAME, AT(host, node.name), SIZE(host, node.name)},
    {ELSEWHERE("speed")},
    {"core", DUET__UNSIGNED, DUET__OPTIONAL, AT(host, cores), .least = 1,
     .most = DUET__MAX_SOCKET_CORES},
    {ELSEWHERE("coordinates")},
    {"duet", DUET__OBJECT, DUET__OPTIONAL, .fields = host_properties},
    {NULL},
};

/* Finds the host whose memory is node 0: the marked one, else the one named "host", else the
 * first. */
static int check_host(const struct duet__json *at, void *root, unsigned index)
{
    struct zone *zone = root;
    const struct host *host = &zone->hosts[index];
    const struct host *chosen = &zone->hosts[zone->host];
    for (unsigned i = 0; i < index; i++)
        if (strcmp(zone->hosts[i].node.name, host->node.name) == 0)
            return duet__json_fail(at, DUET_EPARSE, "host %s is there twice", host->node.name);
    if (host->is_host && chosen->is_host && host != chosen)
        return duet__json_fail(at, DUET_EPARSE, "a second host with duet.kind=host");
    if (host->is_host || (!chosen->is_host && strcmp(host->node.name, "host") == 0))
        zone->host = index;
    return DUET_OK;
}

static const struct duet__list hosts = {
    LIST("host", host_count, hosts, host, 1, DUET__MAX_GPUS + 1, host_fields, check_host)};

enum { SHARED, FATPIPE, SPLITDUPLEX };

static const char *const policies[] = {"SHARED", "FATPIPE", "SPLITDUPLEX", NULL};
static const char *const link_kinds[] = {"link", "latency", NULL};

static const struct duet__field link_properties[] = {
    {"kind", DUET__CHOICE, DUET__OPTIONAL, AT(link, is_latency), .choices = link_kinds},
    {NULL},
};

static const struct duet__field link_fields[] = {
    {ELSEWHERE("id")},
    {"bandwidth", DUET__NUMBER, AT(link, bandwidth_Bps), .least = 1e-3, .most = 1e30},
    {"latency", DUET__NUMBER, DUET__OPTIONAL, AT(link, latency_s), .least = 0, .most = 1e9},
    {"sharing_policy", DUET__CHOICE, DUET__OPTIONAL, AT(link, policy), .choices = policies},
    {"duet", DUET__OBJECT, DUET__OPTIONAL, .fields = link_properties},
    {NULL},
};

static void add_link(struct zone *zone, const struct link *link, const char *name,
                     const char *suffix)
{
    struct duet_link own = {.bandwidth_Bps = link->bandwidth_Bps,
                            .per_copy = link->policy == FATPIPE};
    (void)g_snprintf(own.name, sizeof(own.name), "%s%s", name, suffix);
    g_array_append_val(zone->machine_links, own);
}

static int check_link(const struct duet__json *at, void *root, unsigned index)
{
    struct zone *zone = root;
    struct link *link = &zone->links[index];
    bool duplex = link->policy == SPLITDUPLEX;
    struct duet__json id = duet__json_member(at, "id");
    char plain[DUET_NAME_MAX];
    const char *name = NULL;
    int error = duet__json_string(&id, &name);
    link->first = zone->machine_links->len;
    if (!error &&
        !link->is_latency) { /* links for latencies have names that no link of a machine has */
        error = duet__json_name(&id, plain, sizeof(plain) - (duplex ? strlen("_DOWN") : 0));
        add_link(zone, link, name, duplex ? "_UP" : "");
        if (duplex)
            add_link(zone, link, name, "_DOWN");
    }
    if (!error && zone->machine_links->len > UINT16_MAX)
        error = duet__json_fail(at, DUET_EPARSE, "too many links, the most is %d", UINT16_MAX);
    if (!error && !g_hash_table_insert(zone->by_name, (char *)(uintptr_t)name, link))
        error = duet__json_fail(at, DUET_EPARSE, "link %s is there twice", name);
    return error;
}

static const struct duet__list links = {
    LIST("link", link_count, links, link, 0, UINT_MAX, link_fields, check_link)};

enum { NONE, UP, DOWN };

static const char *const directions[] = {"NONE", "UP", "DOWN", NULL};

static const struct duet__field crossing_fields[] = {
    {ELSEWHERE("id")},
    {"direction", DUET__CHOICE, DUET__OPTIONAL, .choices = directions},
    {NULL},
};

static const char *const symmetries[] = {"YES", "NO", NULL};

static const struct duet__field route_fields[] = {
    {"src", DUET__INDEX, AT(route, from), .list = &hosts},
    {"dst", DUET__INDEX, AT(route, to), .list = &hosts},
    {"symmetrical", DUET__CHOICE, DUET__OPTIONAL, AT(route, one_way), .choices = symmetries},
    {ELSEWHERE("link_ctn")},
    {NULL},
};

static void cross_link(struct duet_route *route, const struct link *link, bool down)
{
    route->direct = true;
    route->latency_s += link->latency_s;
    if (link->is_latency)
        return;
    route->links[route->count++] = (uint16_t)(link->first + (link->policy == SPLITDUPLEX && down));
    route->bandwidth_Bps = fmin(route->bandwidth_Bps, link->bandwidth_Bps);
}

/* Reads a <link_ctn> of a route, which crosses the other half of a duplex link on the way back. */
static int read_crossing(const struct duet__json *at, struct zone *zone, struct route *route)
{
    struct duet__json id = duet__json_member(at, "id");
    const struct link *link;
    const char *name = NULL;
    unsigned direction = NONE;
    int error = duet__part_read(at, crossing_fields, &direction, zone);
    if (!error)
        error = duet__json_string(&id, &name);
    if (error)
        return error;
    link = g_hash_table_lookup(zone->by_name, name);
    if (link == NULL)
        return duet__json_fail(at, DUET_EPARSE, "no link is named \"%.60s\"", name);
    if (link->policy == SPLITDUPLEX && direction == NONE)
        return duet__json_fail(at, DUET_EPARSE, "%.60s is SPLITDUPLEX: direction is UP or DOWN",
                               name);
    if (link->policy != SPLITDUPLEX && direction != NONE)
        return duet__json_fail(at, DUET_EPARSE, "%.60s is not SPLITDUPLEX: it has no direction",
                               name);
    if (!link->is_latency && route->there.count == DUET_ROUTE_LINKS)
        return duet__json_fail(at, DUET_EPARSE, "a route crosses at most %d links",
                               DUET_ROUTE_LINKS);
    cross_link(&route->there, link, direction == DOWN);
    cross_link(&route->back, link, direction != DOWN);
    return DUET_OK;
}

static int check_route(const struct duet__json *at, void *root, unsigned index)
{
    struct zone *zone = root;
    struct route *route = &zone->routes[index];
    struct duet__json crossings = duet__json_member(at, "link_ctn");
    unsigned count = 0;
    int error = duet__json_array(&crossings, 1, UINT_MAX, &count);
    route->there.bandwidth_Bps = route->back.bandwidth_Bps = INFINITY;
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json element = duet__json_element(&crossings, i);
        error = read_crossing(&element, zone, route);
    }
    if (error)
        return error;
    if (route->there.count == 0)
        return duet__json_fail(at, DUET_EPARSE, "a route crosses 1 to %d links, not 0",
                               DUET_ROUTE_LINKS);
    if (route->from == route->to)
        return duet__json_fail(at, DUET_EPARSE, "a route from a host to itself is not read");
    return DUET_OK;
}

static const struct duet__list routes = {
    LIST("route", route_count, routes, route, 0, UINT_MAX, route_fields, check_route)};

/* A worker's properties: "gpu0 c2050 gpu0 0 2 8". */
static const struct duet__field worker_fields[] = {
    {"worker", DUET__NAME, AT(duet_worker, name), SIZE(duet_worker, name)},
    {"architecture", DUET__INDEX, AT(duet_worker, arch), .list = &duet__archs},
    {"host", DUET__INDEX, AT(duet_worker, node), .list = &hosts}, /* becomes the node later */
    {"socket", DUET__UNSIGNED, AT(duet_worker, socket), .most = UINT_MAX},
    {"window", DUET__UNSIGNED, AT(duet_worker, window), .most = DUET_WINDOW_MAX},
    {"window_short", DUET__UNSIGNED, DUET__OPTIONAL, AT(duet_worker, window_short),
     .most = DUET_WINDOW_MAX},
    {NULL},
};

static const struct duet__list workers = {LIST("worker", worker_count, workers, duet_worker, 0,
                                               DUET__MAX_CORES + DUET__MAX_GPUS, worker_fields,
                                               NULL)};

static const struct duet__field properties[] = {
    {"schema", DUET__UNSIGNED, DUET__OPTIONAL, AT(zone, schema), .least = 1, .most = 1},
    {"calibration", DUET__NAME, DUET__OPTIONAL, AT(zone, calibration), SIZE(zone, calibration)},
    {"cost", DUET__OBJECT, DUET__OPTIONAL, AT(zone, platform.costs), .fields = duet__cost_fields,
     .partial = true},
    {"sharing", DUET__OBJECT, DUET__OPTIONAL, AT(zone, platform.sharing),
     .fields = duet__sharing_fields, .partial = true},
    {"cores", DUET__UNSIGNED, DUET__OPTIONAL, AT(zone, platform.cores), .most = DUET__MAX_CORES},
    {"first_waits", DUET__BOOLEAN, DUET__OPTIONAL, AT(zone, platform.first_waits)},
    {"arch", DUET__LIST, DUET__OPTIONAL, .list = &duet__archs},
    {"worker", DUET__LIST, DUET__OPTIONAL, .list = &workers},
    {NULL},
};

static const char *const routings[] = {"Full", NULL};

static const struct duet__field zone_fields[] = {
    {"id", DUET__NAME, AT(zone, platform.name), SIZE(zone, platform.name)},
    {"routing", DUET__CHOICE, AT(zone, routing), .choices = routings},
    {"host", DUET__LIST, .list = &hosts},
    {"link", DUET__LIST, DUET__OPTIONAL, .list = &links},
    {"route", DUET__LIST, DUET__OPTIONAL, .list = &routes},
    {"duet", DUET__OBJECT, DUET__OPTIONAL, .fields = properties},
    {NULL},
};

static int read_version(const struct duet__json *at, void *into, void *root)
{
    const char *version = NULL;
    int error = duet__json_string(at, &version);
    if (!error && strcmp(version, "4") != 0 && !g_str_has_prefix(version, "4."))
        error = duet__json_fail(at, DUET_EPARSE, "\"%.60s\" is not read, only 4.x", version);
    return error;
}

/* Returns the node of a host: 0 for the machine's host, the others in the order of the file. */
static unsigned node_of(const struct zone *zone, unsigned host)
{
    return host == zone->host ? DUET_HOST : host + (host < zone->host);
}

/* Makes architectures and workers for a file of others: cores of the host, one worker a device. */
static void invent_workers(struct zone *zone)
{
    static const struct duet_arch archs[] = {{"cpu", "cpu"}, {"gpu", "cuda"}};
    unsigned cores = MAX(zone->hosts[zone->host].cores, 1);
    struct duet_worker *worker = g_new0(struct duet_worker, cores + zone->host_count);
    zone->platform.archs = g_memdup2(archs, sizeof(archs));
    zone->platform.arch_count = G_N_ELEMENTS(archs);
    zone->workers = worker;
    zone->worker_count = cores + zone->host_count - 1;
    for (unsigned i = 0; i < cores; i++, worker++) {
        *worker = (struct duet_worker){.node = zone->host, .window = 1};
        (void)g_snprintf(worker->name, sizeof(worker->name), "cpu%u", i);
    }
    for (unsigned i = 0; i < zone->host_count; i++) {
        if (i == zone->host)
            continue;
        *worker = (struct duet_worker){.arch = 1, .node = i, .window = 2, .window_short = 8};
        memcpy((worker++)->name, zone->hosts[i].node.name, sizeof(worker->name));
    }
}

/* Checks what needs the whole file. */
static int check_zone(const struct duet__json *at, struct zone *zone)
{
    struct duet__json list = duet__json_member(at, "host");
    unsigned ways = 0;
    for (unsigned i = 0; i < zone->host_count; i++) {
        struct duet__json host = duet__json_element(&list, i);
        if (i != zone->host && zone->hosts[i].node.capacity_bytes == 0)
            return duet__json_fail(&host, DUET_EPARSE,
                                   "host %s is a device: say its memory, e.g. <prop "
                                   "id=\"duet.capacity_bytes\" value=\"2817982464\"/>",
                                   zone->hosts[i].node.name);
    }
    for (unsigned i = 0; i < zone->route_count; i++)
        ways += zone->routes[i].one_way ? 1 : 2;
    if (ways < 2 * (zone->host_count - 1)) /* before memory for all pairs is allocated */
        return duet__json_fail(at, DUET_EPARSE,
                               "%u routes cannot join the host with %u devices in both directions",
                               ways, zone->host_count - 1);
    return DUET_OK;
}

static int fill_route(const struct duet__json *at, const struct zone *zone, unsigned from,
                      unsigned to, const struct duet_route *way, struct duet_machine *machine)
{
    struct duet_route *route =
        &machine->routes[(size_t)node_of(zone, from) * machine->node_count + node_of(zone, to)];
    if (route->direct)
        return duet__json_fail(at, DUET_EPARSE, "two routes from %s to %s",
                               zone->hosts[from].node.name, zone->hosts[to].node.name);
    *route = *way;
    return DUET_OK;
}

static int make_machine(const struct duet__json *at, const struct zone *zone,
                        struct duet_machine *machine)
{
    const struct duet__platform *p = &zone->platform;
    struct duet_message why = {""};
    int error = duet_machine_init(machine, p->arch_count, zone->host_count, zone->worker_count,
                                  zone->machine_links->len);
    if (error)
        return duet__json_fail(at, error == DUET_EINVAL ? DUET_EPARSE : error,
                               "no architecture, or no worker");
    memcpy(machine->name, p->name, sizeof(machine->name));
    memcpy(machine->archs, p->archs, p->arch_count * sizeof(*p->archs));
    memcpy(machine->workers, zone->workers, zone->worker_count * sizeof(*zone->workers));
    if (machine->link_count > 0)
        memcpy(machine->links, zone->machine_links->data,
               machine->link_count * sizeof(*machine->links));
    for (unsigned i = 0; i < machine->worker_count; i++)
        machine->workers[i].node = node_of(zone, zone->workers[i].node);
    for (unsigned i = 0; i < zone->host_count; i++)
        machine->nodes[node_of(zone, i)] = zone->hosts[i].node;
    machine->nodes[DUET_HOST].capacity_bytes = 0;
    machine->costs = p->costs;
    machine->sharing = p->sharing;
    machine->cores = p->cores;
    machine->first_waits = p->first_waits;
    for (unsigned i = 0; i < zone->route_count && !error; i++) {
        const struct route *r = &zone->routes[i];
        error = fill_route(at, zone, r->from, r->to, &r->there, machine);
        if (!error && !r->one_way)
            error = fill_route(at, zone, r->to, r->from, &r->back, machine);
    }
    if (error)
        return error;
    error = duet_machine_check(machine, &why);
    if (error)
        error = duet__json_fail(at, error == DUET_EINVAL ? DUET_EPARSE : error, "%s", why.text);
    return error;
}

static int read_zone(const struct duet__json *at, void *into, void *root)
{
    struct zone *zone = root;
    const struct duet__json element = duet__json_element(at, 0);
    unsigned count = 0;
    int error = duet__json_array(at, 1, 1, &count);
    if (!error)
        error = duet__fields_read(&element, zone_fields, zone);
    if (!error)
        error = check_zone(&element, zone);
    if (!error && zone->platform.arch_count + zone->worker_count == 0)
        invent_workers(zone);
    if (!error)
        error = make_machine(&element, zone, &zone->platform.fixed);
    return error;
}

static const struct duet__field document_fields[] = {
    {"version", DUET__CUSTOM, .read = read_version},
    {ELSEWHERE("config")}, /* options of the simulator, not of the machine */
    {"zone", DUET__CUSTOM, .read = read_zone},
    {NULL},
};

int duet__read_xml(struct duet__platform *platform, const char *text, size_t length,
                   const char *path, char **calibration, struct duet_message *message)
{
    struct zone zone = {.by_name = g_hash_table_new(g_str_hash, g_str_equal),
                        .machine_links = g_array_new(FALSE, FALSE, sizeof(struct duet_link))};
    struct duet__json root;
    int error = duet__xml_parse(text, length, path, "platform", message, &root);
    if (!error)
        error = duet__fields_read(&root, document_fields, &zone);
    if (!error) {
        memcpy(platform->name, zone.platform.name, sizeof(platform->name));
        platform->description = g_strdup_printf("read from the SimGrid platform %s", path);
        platform->fixed = zone.platform.fixed;
        zone.platform.fixed = (struct duet_machine){.node_count = 0};
        *calibration = zone.calibration[0] != '\0' ? g_strdup(zone.calibration) : NULL;
    }
    duet__json_close(&root);
    duet__platform_fini(&zone.platform);
    g_free(zone.hosts);
    g_free(zone.links);
    g_free(zone.routes);
    g_free(zone.workers);
    g_hash_table_unref(zone.by_name);
    g_array_unref(zone.machine_links);
    return error;
}
