/* SPDX-License-Identifier: Apache-2.0 */
/* From a SimGrid platform file to a machine: files written by duet, and plain ones of others. */
#include <limits.h>
#include <string.h>

#include "platforms/tables.h"
#include "platforms/xml.h"

static const struct duet__xml_host *host_at(const struct duet__xml *r, unsigned index)
{
    return &g_array_index(r->hosts, struct duet__xml_host, index);
}

/* The node of a host: that of the machine's host first, the others in the order of the file. */
static unsigned node_of(const struct duet__xml *r, unsigned host)
{
    return host == r->host ? DUET_HOST : host + (host < r->host);
}

/* The host whose memory is node 0: the one marked, else the one named "host", else the first. */
static bool find_host(struct duet__xml *r)
{
    bool marked = false;
    gpointer named = NULL;

    (void)g_hash_table_lookup_extended(r->host_index, "host", NULL, &named);
    r->host = GPOINTER_TO_UINT(named);
    for (unsigned i = 0; i < r->hosts->len; i++) {
        const struct duet__xml_host *h = host_at(r, i);

        if (h->is_host && marked)
            return duet__xml_fail(r, DUET_EPARSE, "%ld: a second host with duet.kind=host",
                                  h->line);
        if (h->is_host)
            r->host = i;
        marked = marked || h->is_host;
    }
    return true;
}

static bool check_hosts(struct duet__xml *r)
{
    if (r->hosts->len == 0)
        return duet__xml_fail(r, DUET_EPARSE, " no host");
    if (!find_host(r))
        return false;
    for (unsigned i = 0; i < r->hosts->len; i++) {
        const struct duet__xml_host *h = host_at(r, i);

        if (i != r->host && h->node.capacity_bytes == 0)
            return duet__xml_fail(r, DUET_EPARSE,
                                  "%ld: host %s is a device: say its memory, e.g. <prop "
                                  "id=\"duet.capacity_bytes\" value=\"2817982464\"/>",
                                  h->line, h->node.name);
    }
    return r->routes->len >= 2 * (r->hosts->len - 1) || /* before room for all pairs is made */
           duet__xml_fail(r, DUET_EPARSE,
                          " %u routes cannot join the host with %u devices in both directions",
                          r->routes->len, r->hosts->len - 1);
}

/* Takes a property of the zone, so that those nobody knows are left; NULL where there is none. */
static const char *take_prop(struct duet__xml *r, const char *id)
{
    gpointer value = NULL;

    (void)g_hash_table_steal_extended(r->props, id, NULL, &value);
    return value;
}

static bool bad_prop(struct duet__xml *r, const char *id, const char *expected)
{
    return duet__xml_fail(r, DUET_EPARSE, " property %.60s: expected %s", id, expected);
}

/* "x5650 cpu" */
static bool read_arch(struct duet__xml *r, char *const *words, unsigned count)
{
    struct duet_arch arch;

    if (count != 2 || !duet__good_name(words[0], sizeof(arch.name)) ||
        !duet__good_name(words[1], sizeof(arch.backend)))
        return false;
    g_strlcpy(arch.name, words[0], sizeof(arch.name));
    g_strlcpy(arch.backend, words[1], sizeof(arch.backend));
    g_array_append_val(r->archs, arch);
    return true;
}

static bool find_arch(const struct duet__xml *r, const char *name, unsigned *index)
{
    for (*index = 0; *index < r->archs->len; ++*index)
        if (strcmp(g_array_index(r->archs, struct duet_arch, *index).name, name) == 0)
            return true;
    return false;
}

/* "gpu0 c2050 gpu0 0 2 8": worker, architecture, host, socket, window; that of short tasks */
static bool read_worker(struct duet__xml *r, char *const *words, unsigned count)
{
    struct duet_worker worker = {.arch = 0};
    gpointer host = NULL;

    if ((count != 5 && count != 6) || !duet__good_name(words[0], sizeof(worker.name)) ||
        !find_arch(r, words[1], &worker.arch) ||
        !g_hash_table_lookup_extended(r->host_index, words[2], NULL, &host) ||
        !duet__xml_unsigned(words[3], 0, UINT_MAX, &worker.socket) ||
        !duet__xml_unsigned(words[4], 0, UINT_MAX, &worker.window) ||
        (count == 6 && !duet__xml_unsigned(words[5], 0, UINT_MAX, &worker.window_short)))
        return false;
    worker.node = node_of(r, GPOINTER_TO_UINT(host));
    g_strlcpy(worker.name, words[0], sizeof(worker.name));
    g_array_append_val(r->workers, worker);
    return true;
}

/* Reads PREFIX0, PREFIX1, ... while they are there. */
static bool read_numbered(struct duet__xml *r, const char *prefix, const char *expected,
                          bool (*read)(struct duet__xml *r, char *const *words, unsigned count))
{
    for (unsigned i = 0; i < DUET__MAX_CORES + DUET__MAX_GPUS && r->error == DUET_OK; i++) {
        char *id = g_strdup_printf("%s%u", prefix, i);
        const char *value = take_prop(r, id);
        char **words = value != NULL ? g_strsplit(value, " ", 7) : NULL;

        if (words != NULL && !read(r, words, g_strv_length(words)))
            bad_prop(r, id, expected);
        g_strfreev(words);
        g_free(id);
        if (value == NULL)
            break;
    }
    return r->error == DUET_OK;
}

static bool read_members(struct duet__xml *r, const char *prefix, const struct duet__field *fields,
                         void *into)
{
    char *wrong = duet__props_read(r->props, prefix, fields, into);

    if (wrong != NULL)
        duet__xml_fail(r, DUET_EPARSE, " %s", wrong);
    g_free(wrong);
    return r->error == DUET_OK;
}

/* Is the unread property `a` more telling than `b`? Those that only lack another one are less. */
static bool tells_more(const char *a, const char *b)
{
    bool numbered_a = g_str_has_prefix(a, "duet.arch.") || g_str_has_prefix(a, "duet.worker.");
    bool numbered_b = g_str_has_prefix(b, "duet.arch.") || g_str_has_prefix(b, "duet.worker.");

    return numbered_a != numbered_b ? numbered_b : strcmp(a, b) < 0;
}

/* Names one of the properties that nothing has read, always the same. */
static bool check_unknown(struct duet__xml *r)
{
    const char *id = NULL;
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, r->props);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        if (id == NULL || tells_more(key, id))
            id = key;
    return id == NULL ||
           duet__xml_fail(
               r, DUET_EPARSE,
               " the zone's duet properties do not fit together, see %.60s (numbers start at 0 "
               "without a gap; files without duet.schema have no architectures and workers)",
               (const char *)id);
}

/* Architectures and workers of a file that duet did not write: cores of the host, one per device.
 */
static void invent(struct duet__xml *r)
{
    static const struct duet_arch archs[] = {{"cpu", "cpu"}, {"gpu", "cuda"}};

    g_array_append_vals(r->archs, archs, G_N_ELEMENTS(archs));
    for (unsigned i = 0; i < host_at(r, r->host)->cores; i++) {
        struct duet_worker w = {.window = 1};

        (void)g_snprintf(w.name, sizeof(w.name), "cpu%u", i);
        g_array_append_val(r->workers, w);
    }
    for (unsigned i = 0; i < r->hosts->len; i++) {
        struct duet_worker w = {.arch = 1, .node = node_of(r, i), .window = 2, .window_short = 8};

        memcpy(w.name, host_at(r, i)->node.name, sizeof(w.name));
        if (i != r->host)
            g_array_append_val(r->workers, w);
    }
}

static bool read_props(struct duet__xml *r, const char **calibration)
{
    const char *schema = take_prop(r, "duet.schema");

    *calibration = take_prop(r, "duet.calibration");
    if (*calibration != NULL && !duet__good_name(*calibration, NAME_MAX))
        return bad_prop(r, "duet.calibration", "the name of a file beside this one");
    if (!read_members(r, "duet.cost", duet__cost_fields, &r->rest.costs) ||
        !read_members(r, "duet.sharing", duet__sharing_fields, &r->rest.sharing) ||
        !read_members(r, "duet", duet__root_fields, &r->rest))
        return false;
    if (schema == NULL)
        invent(r);
    else if (strcmp(schema, "1") != 0)
        return bad_prop(r, "duet.schema", "1");
    else if (!read_numbered(r, "duet.arch.", "\"name backend\"", read_arch) ||
             !read_numbered(r, "duet.worker.",
                            "\"worker architecture host socket window [window of short tasks]\"",
                            read_worker))
        return false;
    return check_unknown(r);
}

static bool fill_routes(struct duet__xml *r, struct duet_machine *machine)
{
    for (unsigned i = 0; i < r->routes->len; i++) {
        const struct duet__xml_route *way = &g_array_index(r->routes, struct duet__xml_route, i);
        struct duet_route *route =
            &machine->routes[(size_t)node_of(r, way->source) * machine->node_count +
                             node_of(r, way->destination)];

        if (route->direct)
            return duet__xml_fail(r, DUET_EPARSE, " two routes from %s to %s",
                                  host_at(r, way->source)->node.name,
                                  host_at(r, way->destination)->node.name);
        *route = way->route;
    }
    return true;
}

static bool make_machine(struct duet__xml *r, struct duet_machine *machine)
{
    struct duet_message why = {""};
    int error =
        duet_machine_init(machine, r->archs->len, r->hosts->len, r->workers->len, r->links->len);

    if (error != DUET_OK)
        return duet__xml_fail(r, error == DUET_EINVAL ? DUET_EPARSE : error,
                              " no architecture, or no worker");
    g_strlcpy(machine->name, r->name, sizeof(machine->name));
    memcpy(machine->archs, r->archs->data, r->archs->len * sizeof(*machine->archs));
    memcpy(machine->workers, r->workers->data, r->workers->len * sizeof(*machine->workers));
    if (r->links->len > 0)
        memcpy(machine->links, r->links->data, r->links->len * sizeof(*machine->links));
    for (unsigned i = 0; i < r->hosts->len; i++)
        machine->nodes[node_of(r, i)] = host_at(r, i)->node;
    machine->nodes[DUET_HOST].capacity_bytes = 0;
    machine->costs = r->rest.costs;
    machine->sharing = r->rest.sharing;
    machine->cores = r->rest.cores;
    machine->first_waits = r->rest.first_waits;
    if (!fill_routes(r, machine))
        return false;
    error = duet_machine_check(machine, &why);
    return error == DUET_OK ||
           duet__xml_fail(r, error == DUET_EINVAL ? DUET_EPARSE : error, " %s", why.text);
}

int duet__read_xml(struct duet_platform *platform, const char *text, size_t length,
                   const char *path, char **calibration, struct duet_message *message)
{
    struct duet__xml r = {
        .path = path,
        .message = message,
        .strings = g_string_chunk_new(4096),
        .props = g_hash_table_new(g_str_hash, g_str_equal),
        .host_index = g_hash_table_new(g_str_hash, g_str_equal),
        .crossings = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
        .hosts = g_array_new(FALSE, FALSE, sizeof(struct duet__xml_host)),
        .links = g_array_new(FALSE, FALSE, sizeof(struct duet_link)),
        .routes = g_array_new(FALSE, FALSE, sizeof(struct duet__xml_route)),
        .archs = g_array_new(FALSE, FALSE, sizeof(struct duet_arch)),
        .workers = g_array_new(FALSE, FALSE, sizeof(struct duet_worker)),
    };
    GArray *const arrays[] = {r.hosts, r.links, r.routes, r.archs, r.workers};
    const char *kernel_times = NULL;

    if (duet__xml_parse(&r, text, length) && check_hosts(&r) && read_props(&r, &kernel_times) &&
        make_machine(&r, &platform->fixed)) {
        g_strlcpy(platform->name, r.name, sizeof(platform->name));
        platform->description = g_strdup_printf("read from the SimGrid platform %s", path);
        *calibration = g_strdup(kernel_times);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_unref(arrays[i]);
    g_hash_table_unref(r.props);
    g_hash_table_unref(r.host_index);
    g_hash_table_unref(r.crossings);
    g_string_chunk_free(r.strings);
    return r.error;
}
