/* SPDX-License-Identifier: Apache-2.0 */
/* From a SimGrid platform file to a machine: files written by duet, and plain ones of others. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "platforms/description.h"
#include "platforms/tables.h"
#include "platforms/xml.h"

/* What a machine is made of besides hosts, links and routes. */
struct parts {
    GArray *archs;             /* struct duet_arch */
    GArray *workers;           /* struct duet_worker */
    struct duet_platform rest; /* costs, sharing, cores, first_waits */
    unsigned *nodes;           /* by host: its node */
    GHashTable *read;          /* names of the properties that have been read */
};

static struct duet__xml_host *host_at(const struct duet__xml *xml, unsigned index)
{
    return &g_array_index(xml->hosts, struct duet__xml_host, index);
}

static struct duet__xml_link *link_at(const struct duet__xml *xml, unsigned index)
{
    return &g_array_index(xml->links, struct duet__xml_link, index);
}

/* The host whose memory is node 0: the one marked, else the one named "host", else the first. */
static int find_host(const struct duet__xml *xml, unsigned *host)
{
    bool marked = false;
    bool named = false;

    *host = 0;
    for (unsigned i = 0; i < xml->hosts->len; i++) {
        const struct duet__xml_host *h = host_at(xml, i);

        if (h->kind == DUET__XML_HOST) {
            if (marked)
                return duet_fail(xml->message, DUET_EPARSE,
                                 "%s:%ld: a second host with duet.kind=host", xml->path, h->line);
            marked = true;
            *host = i;
        } else if (!marked && !named && strcmp(h->name, "host") == 0) {
            named = true;
            *host = i;
        }
    }
    return DUET_OK;
}

/* Numbers the nodes: the host first, the others in the order of the file. */
static int number_nodes(const struct duet__xml *xml, struct parts *parts)
{
    unsigned host = 0;
    unsigned next = 1;
    int error;

    if (xml->hosts->len == 0)
        return duet_fail(xml->message, DUET_EPARSE, "%s: no host", xml->path);
    error = find_host(xml, &host);
    if (error != DUET_OK)
        return error;
    for (unsigned i = 0; i < xml->hosts->len; i++) {
        const struct duet__xml_host *h = host_at(xml, i);

        if (i == host)
            continue;
        parts->nodes[i] = next++;
        if (h->capacity_bytes == 0)
            return duet_fail(xml->message, DUET_EPARSE,
                             "%s:%ld: host %s is a device: say its memory, e.g. <prop "
                             "id=\"duet.capacity_bytes\" value=\"2817982464\"/>",
                             xml->path, h->line, h->name);
    }
    if (xml->routes->len < 2 * (xml->hosts->len - 1)) /* before room for all pairs is made */
        return duet_fail(xml->message, DUET_EPARSE,
                         "%s: %u routes cannot join the host with %u devices in both directions",
                         xml->path, xml->routes->len, xml->hosts->len - 1);
    return DUET_OK;
}

static int bad_prop(const struct duet__xml *xml, const char *id, const char *expected)
{
    return duet_fail(xml->message, DUET_EPARSE, "%s: property %.60s: expected %s", xml->path, id,
                     expected);
}

static bool parse_unsigned(const char *text, unsigned most, unsigned *value)
{
    guint64 number = 0;

    if (!g_ascii_string_to_unsigned(text, 10, 0, most, &number, NULL))
        return false;
    *value = (unsigned)number;
    return true;
}

/* "x5650 cpu" */
static int read_arch(const struct duet__xml *xml, const char *id, const char *value,
                     struct parts *parts)
{
    char **words = g_strsplit(value, " ", 3);
    struct duet_arch arch = {.name = "", .backend = ""};
    bool good = g_strv_length(words) == 2 && duet__good_name(words[0], sizeof(arch.name)) &&
                duet__good_name(words[1], sizeof(arch.backend));

    if (good) {
        g_strlcpy(arch.name, words[0], sizeof(arch.name));
        g_strlcpy(arch.backend, words[1], sizeof(arch.backend));
        g_array_append_val(parts->archs, arch);
    }
    g_strfreev(words);
    return good ? DUET_OK : bad_prop(xml, id, "\"name backend\"");
}

static bool find_arch(const struct parts *parts, const char *name, unsigned *index)
{
    for (*index = 0; *index < parts->archs->len; ++*index)
        if (strcmp(g_array_index(parts->archs, struct duet_arch, *index).name, name) == 0)
            return true;
    return false;
}

/* "gpu0 c2050 gpu0 0 2 8": worker, architecture, host, socket, window; that of short tasks */
static int read_worker(const struct duet__xml *xml, const char *id, const char *value,
                       struct parts *parts)
{
    char **words = g_strsplit(value, " ", 7);
    unsigned count = g_strv_length(words);
    struct duet_worker worker = {.arch = 0};
    gpointer host = NULL;
    bool good = (count == 5 || count == 6) && duet__good_name(words[0], sizeof(worker.name)) &&
                find_arch(parts, words[1], &worker.arch) &&
                g_hash_table_lookup_extended(xml->host_index, words[2], NULL, &host) &&
                parse_unsigned(words[3], UINT_MAX, &worker.socket) &&
                parse_unsigned(words[4], UINT_MAX, &worker.window) &&
                (count == 5 || parse_unsigned(words[5], UINT_MAX, &worker.window_short));

    if (good) {
        worker.node = parts->nodes[GPOINTER_TO_UINT(host)];
        g_strlcpy(worker.name, words[0], sizeof(worker.name));
        g_array_append_val(parts->workers, worker);
    }
    g_strfreev(words);
    return good ? DUET_OK
                : bad_prop(xml, id,
                           "\"worker architecture host socket window [window of short tasks]\"");
}

/* The value of a property of the zone, which then counts as read; NULL where there is none. */
static const char *zone_prop(const struct duet__xml *xml, struct parts *parts, const char *id)
{
    gpointer name = NULL, value = NULL;

    if (g_hash_table_lookup_extended(xml->props, id, &name, &value))
        g_hash_table_add(parts->read, name);
    return value;
}

/* Reads PREFIX0, PREFIX1, ... while they are there. */
static int read_numbered(const struct duet__xml *xml, const char *prefix, struct parts *parts,
                         int (*read)(const struct duet__xml *xml, const char *id, const char *value,
                                     struct parts *parts))
{
    for (unsigned i = 0; i < DUET__MAX_CORES + DUET__MAX_GPUS; i++) {
        char id[DUET_NAME_MAX];
        const char *value;
        int error;

        g_snprintf(id, sizeof(id), "%s%u", prefix, i);
        value = zone_prop(xml, parts, id);
        if (value == NULL)
            break;
        error = read(xml, id, value, parts);
        if (error != DUET_OK)
            return error;
    }
    return DUET_OK;
}

/* The value of a property, by the kind of the member that it is; NULL: good, else what is wrong. */
static const char *parse_value(const struct duet__field *field, const char *text, void *value)
{
    guint64 number = 0;

    switch (field->kind) {
    case DUET__INTEGER:
        if (!g_ascii_string_to_unsigned(text, 10, 0, UINT64_MAX, &number, NULL))
            return "a number of bytes";
        *(uint64_t *)value = number;
        return NULL;
    case DUET__UNSIGNED:
        return parse_unsigned(text, UINT_MAX, value) ? NULL : "a number of cores";
    case DUET__BOOLEAN:
        *(bool *)value = strcmp(text, "true") == 0;
        return *(bool *)value || strcmp(text, "false") == 0 ? NULL : "true or false";
    default:
        if (g_str_has_suffix(field->key, "_Bps"))
            return duet__xml_bandwidth(text, value) ? NULL : "a bandwidth";
        return duet__xml_time(text, value) ? NULL : "a duration";
    }
}

/* Properties PREFIX.KEY for the members of a struct; those of names are told in another way. */
static int read_members(const struct duet__xml *xml, struct parts *parts, const char *prefix,
                        const struct duet__field *fields, void *into)
{
    for (; fields->key != NULL; fields++) {
        char id[2 * DUET_NAME_MAX];
        const char *value, *expected;

        if (fields->kind == DUET__ELSEWHERE || fields->kind == DUET__NAME)
            continue;
        g_snprintf(id, sizeof(id), "%s.%s", prefix, fields->key);
        value = zone_prop(xml, parts, id);
        if (value == NULL)
            continue;
        expected = parse_value(fields, value, duet__field_at(fields, into));
        if (expected != NULL)
            return bad_prop(xml, id, expected);
    }
    return DUET_OK;
}

/* Is the unread property `a` more telling than `b`? Those that only lack another one are less. */
static bool tells_more(const char *a, const char *b)
{
    bool numbered_a = g_str_has_prefix(a, "duet.arch.") || g_str_has_prefix(a, "duet.worker.");
    bool numbered_b = g_str_has_prefix(b, "duet.arch.") || g_str_has_prefix(b, "duet.worker.");

    return numbered_a != numbered_b ? numbered_b : strcmp(a, b) < 0;
}

/* Names one of the properties that nothing has read, always the same. */
static int unknown_prop(const struct duet__xml *xml, const struct parts *parts)
{
    const char *id = NULL;
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, xml->props);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        if (!g_hash_table_contains(parts->read, key) && (id == NULL || tells_more(key, id)))
            id = key;
    if (id == NULL)
        return DUET_OK;
    return duet_fail(xml->message, DUET_EPARSE,
                     "%s: the zone's duet properties do not fit together, see %.60s (numbers start "
                     "at 0 without a gap; files without duet.schema have no architectures and "
                     "workers)",
                     xml->path, id);
}

/* Architectures and workers of a file that duet did not write: cores of the host, one per device.
 */
static int invent(const struct duet__xml *xml, struct parts *parts)
{
    static const struct duet_arch archs[] = {{"cpu", "cpu"}, {"gpu", "cuda"}};

    g_array_append_vals(parts->archs, archs, G_N_ELEMENTS(archs));
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < xml->hosts->len; i++) {
            const struct duet__xml_host *h = host_at(xml, i);
            bool device = parts->nodes[i] != DUET_HOST;

            if (device != (pass == 1))
                continue;
            for (unsigned j = 0; j < (device ? 1 : h->cores); j++) {
                struct duet_worker w = {.arch = device,
                                        .node = parts->nodes[i],
                                        .window = device ? 2 : 1,
                                        .window_short = device ? 8 : 0};

                if (device)
                    g_strlcpy(w.name, h->name, sizeof(w.name));
                else
                    (void)snprintf(w.name, sizeof(w.name), "cpu%u", j);
                g_array_append_val(parts->workers, w);
            }
        }
    }
    return DUET_OK;
}

static int read_parts(const struct duet__xml *xml, struct parts *parts, const char **calibration)
{
    const char *schema = zone_prop(xml, parts, "duet.schema");
    int error = number_nodes(xml, parts);

    if (error != DUET_OK)
        return error;
    *calibration = zone_prop(xml, parts, "duet.calibration");
    if (*calibration != NULL && !duet__good_name(*calibration, NAME_MAX))
        return bad_prop(xml, "duet.calibration", "the name of a file beside this one");
    error = read_members(xml, parts, "duet.cost", duet__cost_fields, &parts->rest.costs);
    if (error == DUET_OK)
        error =
            read_members(xml, parts, "duet.sharing", duet__sharing_fields, &parts->rest.sharing);
    if (error == DUET_OK)
        error = read_members(xml, parts, "duet", duet__root_fields, &parts->rest);
    if (error != DUET_OK)
        return error;
    if (schema == NULL) {
        error = invent(xml, parts);
    } else {
        if (strcmp(schema, "1") != 0)
            return bad_prop(xml, "duet.schema", "1");
        error = read_numbered(xml, "duet.arch.", parts, read_arch);
        if (error == DUET_OK)
            error = read_numbered(xml, "duet.worker.", parts, read_worker);
    }
    return error == DUET_OK ? unknown_prop(xml, parts) : error;
}

/* Numbers the links that are the machine's; their count. */
static unsigned number_links(const struct duet__xml *xml)
{
    unsigned count = 0;

    for (unsigned i = 0; i < xml->links->len; i++)
        if (!link_at(xml, i)->latency_only)
            link_at(xml, i)->index = count++;
    return count;
}

static int fill_routes(const struct duet__xml *xml, const struct parts *parts,
                       struct duet_machine *machine)
{
    for (unsigned i = 0; i < xml->routes->len; i++) {
        const struct duet__xml_route *r = &g_array_index(xml->routes, struct duet__xml_route, i);
        size_t place =
            (size_t)parts->nodes[r->source] * machine->node_count + parts->nodes[r->destination];
        struct duet_route *route = &machine->routes[place];

        if (route->direct)
            return duet_fail(xml->message, DUET_EPARSE, "%s: two routes from %s to %s", xml->path,
                             host_at(xml, r->source)->name, host_at(xml, r->destination)->name);
        route->direct = true;
        route->bandwidth_Bps = INFINITY;
        for (unsigned j = 0; j < r->count; j++) {
            const struct duet__xml_link *link = link_at(xml, r->links[j]);

            route->latency_s += link->latency_s;
            if (link->latency_only)
                continue;
            route->links[route->count++] = (uint16_t)link->index;
            route->bandwidth_Bps = fmin(route->bandwidth_Bps, link->link.bandwidth_Bps);
        }
    }
    return DUET_OK;
}

static int make_machine(const struct duet__xml *xml, const struct parts *parts,
                        struct duet_machine *machine)
{
    struct duet_message why = {""};
    int error = duet_machine_init(machine, parts->archs->len, xml->hosts->len, parts->workers->len,
                                  number_links(xml));

    if (error != DUET_OK)
        return duet_fail(xml->message, error == DUET_EINVAL ? DUET_EPARSE : error,
                         "%s: no architecture, or no worker", xml->path);
    g_strlcpy(machine->name, xml->name, sizeof(machine->name));
    memcpy(machine->archs, parts->archs->data, machine->arch_count * sizeof(*machine->archs));
    memcpy(machine->workers, parts->workers->data,
           machine->worker_count * sizeof(*machine->workers));
    machine->costs = parts->rest.costs;
    machine->sharing = parts->rest.sharing;
    machine->cores = parts->rest.cores;
    machine->first_waits = parts->rest.first_waits;
    for (unsigned i = 0; i < xml->hosts->len; i++) {
        struct duet_node *node = &machine->nodes[parts->nodes[i]];

        memcpy(node->name, host_at(xml, i)->name, sizeof(node->name));
        if (parts->nodes[i] != DUET_HOST)
            node->capacity_bytes = host_at(xml, i)->capacity_bytes;
    }
    for (unsigned i = 0; i < xml->links->len; i++)
        if (!link_at(xml, i)->latency_only)
            machine->links[link_at(xml, i)->index] = link_at(xml, i)->link;
    error = fill_routes(xml, parts, machine);
    if (error != DUET_OK)
        return error;
    error = duet_machine_check(machine, &why);
    if (error != DUET_OK)
        duet_fail(xml->message, DUET_EPARSE, "%s: %s", xml->path, why.text);
    return error == DUET_EINVAL ? DUET_EPARSE : error;
}

int duet__read_xml(struct duet_platform *platform, const char *text, size_t length,
                   const char *path, char **calibration, struct duet_message *message)
{
    struct parts parts = {.archs = g_array_new(FALSE, FALSE, sizeof(struct duet_arch)),
                          .workers = g_array_new(FALSE, FALSE, sizeof(struct duet_worker)),
                          .read = g_hash_table_new(g_str_hash, g_str_equal)};
    const char *times = NULL;
    struct duet__xml xml;
    int error;

    duet__xml_init(&xml, path, message);
    error = duet__xml_parse(&xml, text, length);
    parts.nodes = g_new0(unsigned, xml.hosts->len + 1);
    if (error == DUET_OK)
        error = read_parts(&xml, &parts, &times);
    if (error == DUET_OK)
        error = make_machine(&xml, &parts, &platform->fixed);
    if (error == DUET_OK) {
        g_strlcpy(platform->name, xml.name, sizeof(platform->name));
        platform->description = g_strdup_printf("read from the SimGrid platform %s", path);
        *calibration = g_strdup(times);
    }
    g_hash_table_unref(parts.read);
    duet__xml_fini(&xml);
    g_free(parts.nodes);
    g_array_unref(parts.archs);
    g_array_unref(parts.workers);
    return error;
}
