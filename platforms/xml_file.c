/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the elements of a SimGrid platform file: hosts, links, routes and duet's properties.
 * No DTD, entity or network is ever loaded; what is not understood is refused with its line.
 */
#include "platforms/xml.h"

#include <math.h>
#include <string.h>

#include <libxml/parser.h>
#include <libxml/tree.h>

#include "platforms/description.h"

static int fail_at(const struct duet__xml *xml, const xmlNode *node, const char *format, ...)
    DUET_PRINTF(3, 4);

static int fail_at(const struct duet__xml *xml, const xmlNode *node, const char *format, ...)
{
    char *what;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    duet_fail(xml->message, DUET_EPARSE, "%.200s:%ld: <%.40s>: %s", xml->path, xmlGetLineNo(node),
              (const char *)node->name, what);
    g_free(what);
    return DUET_EPARSE;
}

static bool is(const xmlNode *node, const char *name)
{
    return strcmp((const char *)node->name, name) == 0;
}

/* The value of an attribute, NULL if it is not there. Lives in the reader's strings. */
static char *attribute(struct duet__xml *xml, xmlNode *node, const char *name)
{
    xmlChar *value = xmlGetNoNsProp(node, (const xmlChar *)name);
    char *kept = NULL;

    if (value != NULL)
        kept = g_string_chunk_insert_const(xml->strings, (const char *)value);
    xmlFree(value);
    return kept;
}

/* Refuses attributes that are not in `known` (NULL-ended): they would change what is meant. */
static int check_attributes(const struct duet__xml *xml, const xmlNode *node,
                            const char *const *known)
{
    for (const xmlAttr *a = node->properties; a != NULL; a = a->next)
        if (!g_strv_contains(known, (const char *)a->name))
            return fail_at(xml, node, "attribute %.60s is not read by duet", (const char *)a->name);
    return DUET_OK;
}

/* True for what may lie between elements: blanks, comments, processing instructions. */
static bool is_filling(const xmlNode *node)
{
    return node->type == XML_COMMENT_NODE || node->type == XML_PI_NODE || xmlIsBlankNode(node);
}

/* The next element from `node` on. *error is set where something else is in the way. */
static xmlNode *next_element(const struct duet__xml *xml, xmlNode *node, int *error)
{
    while (node != NULL && is_filling(node))
        node = node->next;
    if (node != NULL && node->type != XML_ELEMENT_NODE) {
        *error = fail_at(xml, node->parent, "text or entities inside an element are not read");
        return NULL;
    }
    return node;
}

/* Reads a name of a host or link, which must be a plain one. */
static int read_name(struct duet__xml *xml, xmlNode *node, const char *key, size_t size,
                     char **name)
{
    *name = attribute(xml, node, key);
    if (*name == NULL)
        return fail_at(xml, node, "attribute %s is missing", key);
    if (!duet__good_name(*name, size))
        return fail_at(xml, node, "%s=\"%.60s\" is no name: 1 to %zu letters, digits or _-.:+", key,
                       *name, size - 1);
    return DUET_OK;
}

/* Parses `text` = number unit, the unit one of `units`; *value is in the base unit. */
struct unit {
    const char *name;
    double factor;
};

static bool parse_with_unit(const char *text, const struct unit *units, size_t count, double *value)
{
    char *end = NULL;
    double number;

    if (!g_ascii_isdigit(text[0]) && text[0] != '.')
        return false;
    number = g_ascii_strtod(text, &end);
    if (end == text || !isfinite(number) || number < 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(end, units[i].name) == 0) {
            *value = number * units[i].factor;
            return isfinite(*value);
        }
    }
    return false;
}

bool duet__xml_bandwidth(const char *text, double *value)
{
    static const struct unit units[] = {
        {"", 1},           {"Bps", 1},        {"kBps", 1e3},     {"MBps", 1e6},
        {"GBps", 1e9},     {"TBps", 1e12},    {"KiBps", 0x1p10}, {"MiBps", 0x1p20},
        {"GiBps", 0x1p30}, {"TiBps", 0x1p40}, {"bps", 0.125},    {"kbps", 125},
        {"Mbps", 125e3},   {"Gbps", 125e6},   {"Tbps", 125e9},   {"Kibps", 0x1p7},
        {"Mibps", 0x1p17}, {"Gibps", 0x1p27}, {"Tibps", 0x1p37},
    };

    return parse_with_unit(text, units, G_N_ELEMENTS(units), value);
}

bool duet__xml_time(const char *text, double *value)
{
    static const struct unit units[] = {
        {"", 1},       {"s", 1},  {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9},
        {"ps", 1e-12}, {"m", 60}, {"h", 3600},  {"d", 86400}, {"w", 604800},
    };

    return parse_with_unit(text, units, G_N_ELEMENTS(units), value);
}

static int read_prop(struct duet__xml *xml, xmlNode *node, char **id, char **value)
{
    *id = attribute(xml, node, "id");
    *value = attribute(xml, node, "value");
    if (*id == NULL || *value == NULL)
        return fail_at(xml, node, "needs id and value");
    return DUET_OK;
}

static int read_zone_prop(struct duet__xml *xml, xmlNode *node)
{
    char *id = NULL, *value = NULL;
    int error = read_prop(xml, node, &id, &value);

    if (error != DUET_OK || !g_str_has_prefix(id, "duet."))
        return error;
    if (g_hash_table_contains(xml->props, id))
        return fail_at(xml, node, "%.60s is there twice", id);
    g_hash_table_insert(xml->props, id, value);
    return DUET_OK;
}

static int read_host_prop(struct duet__xml *xml, xmlNode *node, struct duet__xml_host *host)
{
    char *id = NULL, *value = NULL;
    int error = read_prop(xml, node, &id, &value);
    guint64 number = 0;

    if (error != DUET_OK || !g_str_has_prefix(id, "duet."))
        return error;
    if (strcmp(id, "duet.kind") == 0) {
        if (strcmp(value, "host") != 0 && strcmp(value, "device") != 0)
            return fail_at(xml, node, "duet.kind is host or device, not \"%.60s\"", value);
        host->kind = value[0] == 'h' ? DUET__XML_HOST : DUET__XML_DEVICE;
        return DUET_OK;
    }
    if (strcmp(id, "duet.capacity_bytes") == 0) {
        if (!g_ascii_string_to_unsigned(value, 10, 1, UINT64_MAX, &number, NULL))
            return fail_at(xml, node, "duet.capacity_bytes=\"%.60s\" is no number of bytes", value);
        host->capacity_bytes = number;
        return DUET_OK;
    }
    return fail_at(xml, node, "unknown property %.60s (known: duet.kind, duet.capacity_bytes)", id);
}

static int read_host(struct duet__xml *xml, xmlNode *node)
{
    static const char *const known[] = {"id", "speed", "core", "coordinates", NULL};
    struct duet__xml_host host = {.cores = 1, .line = xmlGetLineNo(node)};
    char *name = NULL, *text;
    guint64 cores = 1;
    int error = check_attributes(xml, node, known);

    if (error == DUET_OK)
        error = read_name(xml, node, "id", sizeof(host.name), &name);
    if (error != DUET_OK)
        return error;
    if (g_hash_table_contains(xml->host_index, name))
        return fail_at(xml, node, "host %s is there twice", name);
    if (xml->hosts->len > DUET__MAX_GPUS)
        return fail_at(xml, node, "too many hosts, the most is %d", DUET__MAX_GPUS + 1);
    text = attribute(xml, node, "core");
    if (text != NULL &&
        !g_ascii_string_to_unsigned(text, 10, 1, DUET__MAX_SOCKET_CORES, &cores, NULL))
        return fail_at(xml, node, "core=\"%.60s\" is no number from 1 to %d", text,
                       DUET__MAX_SOCKET_CORES);
    host.cores = (unsigned)cores;
    g_strlcpy(host.name, name, sizeof(host.name));
    for (xmlNode *c = next_element(xml, node->children, &error); c != NULL && error == DUET_OK;
         c = next_element(xml, c->next, &error))
        error = is(c, "prop") ? read_host_prop(xml, c, &host)
                              : fail_at(xml, c, "not read by duet inside a host");
    g_hash_table_insert(xml->host_index, name, GUINT_TO_POINTER(xml->hosts->len));
    g_array_append_val(xml->hosts, host);
    return error;
}

static bool is_link(const struct duet__xml *xml, const char *name)
{
    return g_hash_table_contains(xml->link_index, name) || g_hash_table_contains(xml->duplex, name);
}

static int add_link(struct duet__xml *xml, const xmlNode *node, struct duet__xml_link *link,
                    const char *name)
{
    if (is_link(xml, name))
        return fail_at(xml, node, "link %s is there twice", name);
    if (xml->links->len > UINT16_MAX)
        return fail_at(xml, node, "too many links, the most is %d", UINT16_MAX);
    g_strlcpy(link->link.name, name, sizeof(link->link.name));
    g_array_append_val(xml->links, *link);
    g_hash_table_insert(xml->link_index, g_string_chunk_insert(xml->strings, name),
                        GUINT_TO_POINTER(xml->links->len));
    return DUET_OK;
}

/* SimGrid's two links of a SPLITDUPLEX: NAME_UP and NAME_DOWN. */
static int add_duplex(struct duet__xml *xml, const xmlNode *node, struct duet__xml_link *link,
                      const char *name)
{
    char full[DUET_NAME_MAX + 8];
    int error;

    if (is_link(xml, name))
        return fail_at(xml, node, "link %s is there twice", name);
    g_hash_table_insert(xml->duplex, g_string_chunk_insert(xml->strings, name),
                        GUINT_TO_POINTER(xml->links->len + 1));
    g_snprintf(full, sizeof(full), "%s_UP", name);
    error = add_link(xml, node, link, full);
    if (error != DUET_OK)
        return error;
    g_snprintf(full, sizeof(full), "%s_DOWN", name);
    return add_link(xml, node, link, full);
}

static int read_link_figures(struct duet__xml *xml, xmlNode *node, struct duet__xml_link *link)
{
    const char *bandwidth = attribute(xml, node, "bandwidth");
    const char *latency = attribute(xml, node, "latency");

    if (bandwidth == NULL || !duet__xml_bandwidth(bandwidth, &link->link.bandwidth_Bps) ||
        !(link->link.bandwidth_Bps > 0))
        return fail_at(xml, node, "bandwidth=\"%.60s\" is no positive bandwidth, e.g. 6.0GBps",
                       bandwidth != NULL ? bandwidth : "");
    if (latency != NULL && !duet__xml_time(latency, &link->latency_s))
        return fail_at(xml, node, "latency=\"%.60s\" is no duration, e.g. 10us", latency);
    return DUET_OK;
}

static int read_link(struct duet__xml *xml, xmlNode *node)
{
    static const char *const known[] = {"id", "bandwidth", "latency", "sharing_policy", NULL};
    struct duet__xml_link link = {.latency_s = 0};
    char *name = attribute(xml, node, "id"), *policy, *id = NULL, *value = NULL;
    bool duplex;
    int error = check_attributes(xml, node, known);

    if (error == DUET_OK)
        error = read_link_figures(xml, node, &link);
    for (xmlNode *c = next_element(xml, node->children, &error); c != NULL && error == DUET_OK;
         c = next_element(xml, c->next, &error)) {
        error = is(c, "prop") ? read_prop(xml, c, &id, &value)
                              : fail_at(xml, c, "not read by duet inside a link");
        if (error == DUET_OK && id != NULL && strcmp(id, "duet.kind") == 0)
            link.latency_only = strcmp(value, "latency") == 0;
    }
    if (error != DUET_OK)
        return error;
    policy = attribute(xml, node, "sharing_policy");
    duplex = policy != NULL && strcmp(policy, "SPLITDUPLEX") == 0;
    link.link.per_copy = policy != NULL && strcmp(policy, "FATPIPE") == 0;
    if (policy != NULL && !duplex && !link.link.per_copy && strcmp(policy, "SHARED") != 0)
        return fail_at(xml, node,
                       "sharing_policy %.60s is not read (known: SHARED, FATPIPE, SPLITDUPLEX)",
                       policy);
    /* duet's own latency links carry a name that no link of a machine can have. */
    if (!link.latency_only)
        error =
            read_name(xml, node, "id",
                      duplex ? sizeof(link.link.name) - strlen("_DOWN") : sizeof(link.link.name),
                      &name);
    else if (name == NULL || strlen(name) >= sizeof(link.link.name))
        error = fail_at(xml, node, "needs an id of at most %d bytes", DUET_NAME_MAX - 1);
    if (error != DUET_OK)
        return error;
    return duplex ? add_duplex(xml, node, &link, name) : add_link(xml, node, &link, name);
}

/* Index of the link that a <link_ctn> crosses on the way there (or back). */
static int read_crossing(struct duet__xml *xml, xmlNode *node, bool back, unsigned *link)
{
    static const char *const known[] = {"id", "direction", NULL};
    const char *name = attribute(xml, node, "id");
    const char *direction = attribute(xml, node, "direction");
    int error = check_attributes(xml, node, known);
    unsigned duplex;

    if (error != DUET_OK)
        return error;
    if (name == NULL)
        return fail_at(xml, node, "attribute id is missing");
    duplex = GPOINTER_TO_UINT(g_hash_table_lookup(xml->duplex, name));
    if (duplex != 0) {
        bool down;

        if (direction == NULL || (strcmp(direction, "UP") != 0 && strcmp(direction, "DOWN") != 0))
            return fail_at(xml, node, "%.60s is SPLITDUPLEX: direction is UP or DOWN", name);
        down = (direction[0] == 'D') != back;
        *link = duplex - 1 + (down ? 1 : 0);
        return DUET_OK;
    }
    *link = GPOINTER_TO_UINT(g_hash_table_lookup(xml->link_index, name));
    if (*link == 0)
        return fail_at(xml, node, "no link is named \"%.60s\"", name);
    if (direction != NULL && strcmp(direction, "NONE") != 0)
        return fail_at(xml, node, "%.60s is not SPLITDUPLEX: it has no direction", name);
    *link -= 1;
    return DUET_OK;
}

static int read_end(struct duet__xml *xml, xmlNode *node, const char *key, unsigned *host)
{
    const char *name = attribute(xml, node, key);
    gpointer index = NULL;

    if (name == NULL)
        return fail_at(xml, node, "attribute %s is missing", key);
    if (!g_hash_table_lookup_extended(xml->host_index, name, NULL, &index))
        return fail_at(xml, node, "%s=\"%.60s\": no host before this line has that name", key,
                       name);
    *host = GPOINTER_TO_UINT(index);
    return DUET_OK;
}

/* Reads one way of a route. */
static int add_route(struct duet__xml *xml, xmlNode *node, bool back)
{
    struct duet__xml_route route = {0};
    unsigned links = 0;
    int error = read_end(xml, node, back ? "dst" : "src", &route.source);

    if (error == DUET_OK)
        error = read_end(xml, node, back ? "src" : "dst", &route.destination);
    if (error == DUET_OK && route.source == route.destination)
        error = fail_at(xml, node, "a route from a host to itself is not read by duet");
    if (error != DUET_OK)
        return error;
    for (xmlNode *c = next_element(xml, node->children, &error); c != NULL && error == DUET_OK;
         c = next_element(xml, c->next, &error)) {
        if (!is(c, "link_ctn"))
            return fail_at(xml, c, "not read by duet inside a route");
        if (route.count == G_N_ELEMENTS(route.links))
            return fail_at(xml, c, "a route crosses at most %d links", DUET_ROUTE_LINKS);
        error = read_crossing(xml, c, back, &route.links[route.count]);
        if (error != DUET_OK)
            return error;
        links += !g_array_index(xml->links, struct duet__xml_link, route.links[route.count])
                      .latency_only;
        route.count++;
    }
    if (error == DUET_OK && (links == 0 || links > DUET_ROUTE_LINKS))
        error =
            fail_at(xml, node, "a route crosses 1 to %d links, not %u", DUET_ROUTE_LINKS, links);
    if (error == DUET_OK)
        g_array_append_val(xml->routes, route);
    return error;
}

static int read_route(struct duet__xml *xml, xmlNode *node)
{
    static const char *const known[] = {"src", "dst", "symmetrical", NULL};
    const char *symmetrical = attribute(xml, node, "symmetrical");
    bool both = symmetrical == NULL || g_ascii_strcasecmp(symmetrical, "yes") == 0;
    int error = check_attributes(xml, node, known);

    if (error == DUET_OK)
        error = add_route(xml, node, false);
    if (error == DUET_OK && both)
        error = add_route(xml, node, true);
    return error;
}

static int read_zone(struct duet__xml *xml, xmlNode *zone)
{
    static const char *const known[] = {"id", "routing", NULL};
    const char *routing = attribute(xml, zone, "routing");
    int error = check_attributes(xml, zone, known);

    if (error == DUET_OK)
        error = read_name(xml, zone, "id", DUET_NAME_MAX, &xml->name);
    if (error == DUET_OK && (routing == NULL || g_ascii_strcasecmp(routing, "full") != 0))
        error = fail_at(xml, zone, "routing \"%.60s\" is not read, only Full",
                        routing != NULL ? routing : "");
    if (error != DUET_OK)
        return error;
    for (xmlNode *c = next_element(xml, zone->children, &error); c != NULL && error == DUET_OK;
         c = next_element(xml, c->next, &error)) {
        if (is(c, "prop"))
            error = read_zone_prop(xml, c);
        else if (is(c, "host"))
            error = read_host(xml, c);
        else if (is(c, "link"))
            error = read_link(xml, c);
        else if (is(c, "route"))
            error = read_route(xml, c);
        else
            error =
                fail_at(xml, c, "not read by duet: a zone has hosts, links and routes one by one");
    }
    return error;
}

static int read_platform(struct duet__xml *xml, xmlNode *root)
{
    const char *version = attribute(xml, root, "version");
    bool found = false;
    int error = DUET_OK;

    if (!is(root, "platform"))
        return fail_at(xml, root, "expected <platform>");
    if (version == NULL || !(g_str_equal(version, "4") || g_str_has_prefix(version, "4.")))
        return fail_at(xml, root, "version \"%.60s\" is not read, only 4.x",
                       version != NULL ? version : "");
    for (xmlNode *c = next_element(xml, root->children, &error); c != NULL && error == DUET_OK;
         c = next_element(xml, c->next, &error)) {
        if (is(c, "config")) /* options of the simulator, not of the machine */
            continue;
        if (!is(c, "zone") || found)
            return fail_at(xml, c, "not read by duet: a platform has one zone and nothing else");
        found = true;
        error = read_zone(xml, c);
    }
    if (error == DUET_OK && !found)
        error = fail_at(xml, root, "no zone");
    return error;
}

int duet__xml_parse(struct duet__xml *xml, const char *text, size_t length)
{
    xmlParserCtxt *context;
    xmlDoc *document = NULL;
    int error;

    if (length > (size_t)DUET__MAX_FILE_MIB << 20)
        return duet_fail(xml->message, DUET_EPARSE, "%s: too large", xml->path);
    context = xmlNewParserCtxt();
    if (context == NULL)
        return duet_fail(xml->message, DUET_ENOMEM, "%s: out of memory", xml->path);
    document = xmlCtxtReadMemory(context, text, (int)length, NULL, NULL,
                                 XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    if (document == NULL) {
        const xmlError *last = xmlCtxtGetLastError(context);
        char *reason = g_strdup(last != NULL && last->message != NULL ? last->message : "not XML");

        error = duet_fail(xml->message, DUET_EPARSE, "%s:%d: %.200s", xml->path,
                          last != NULL ? last->line : 1, g_strstrip(reason));
        g_free(reason);
    } else if (document->intSubset != NULL && document->intSubset->children != NULL) {
        error = duet_fail(xml->message, DUET_EPARSE,
                          "%s: declarations inside <!DOCTYPE> are not read", xml->path);
    } else {
        error = read_platform(xml, xmlDocGetRootElement(document));
    }
    xmlFreeDoc(document);
    xmlFreeParserCtxt(context);
    return error;
}

void duet__xml_init(struct duet__xml *xml, const char *path, struct duet_message *message)
{
    memset(xml, 0, sizeof(*xml));
    xml->path = path;
    xml->message = message;
    xml->strings = g_string_chunk_new(4096);
    xml->props = g_hash_table_new(g_str_hash, g_str_equal);
    xml->hosts = g_array_new(FALSE, FALSE, sizeof(struct duet__xml_host));
    xml->host_index = g_hash_table_new(g_str_hash, g_str_equal);
    xml->links = g_array_new(FALSE, FALSE, sizeof(struct duet__xml_link));
    xml->link_index = g_hash_table_new(g_str_hash, g_str_equal);
    xml->duplex = g_hash_table_new(g_str_hash, g_str_equal);
    xml->routes = g_array_new(FALSE, FALSE, sizeof(struct duet__xml_route));
}

void duet__xml_fini(struct duet__xml *xml)
{
    g_hash_table_unref(xml->props);
    g_array_unref(xml->hosts);
    g_hash_table_unref(xml->host_index);
    g_array_unref(xml->links);
    g_hash_table_unref(xml->link_index);
    g_hash_table_unref(xml->duplex);
    g_array_unref(xml->routes);
    g_string_chunk_free(xml->strings);
}
