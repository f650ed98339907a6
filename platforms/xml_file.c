/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the elements of a SimGrid platform file: hosts, links, routes and duet's properties. No
 * DTD, entity or network is ever loaded; what is not understood is refused with its line.
 */
#include <math.h>
#include <string.h>

#include <libxml/parser.h>
#include <libxml/tree.h>

#include "platforms/xml.h"

static bool fail_at(struct duet__xml *r, const xmlNode *node, const char *format, ...)
    DUET_PRINTF(3, 4);

bool duet__xml_fail(struct duet__xml *r, int error, const char *format, ...)
{
    char *what;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    r->error = duet_fail(r->message, error, "%.200s:%s", r->path, what);
    g_free(what);
    return false;
}

static bool fail_at(struct duet__xml *r, const xmlNode *node, const char *format, ...)
{
    char *what;
    va_list args;

    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    duet__xml_fail(r, DUET_EPARSE, "%ld: <%.40s>: %s", xmlGetLineNo(node), (const char *)node->name,
                   what);
    g_free(what);
    return false;
}

/* The value of an attribute, NULL if it is not there. */
static const char *attribute(struct duet__xml *r, const xmlNode *node, const char *name)
{
    xmlChar *value = xmlGetNoNsProp(node, (const xmlChar *)name);
    const char *kept = NULL;

    if (value != NULL)
        kept = g_string_chunk_insert_const(r->strings, (const char *)value);
    xmlFree(value);
    return kept;
}

/* An element that may be inside another. */
struct child {
    const char *name; /* NULL ends a table */
    bool (*read)(struct duet__xml *r, const xmlNode *node,
                 void *into);  /* into the other's struct */
    const char *attributes[5]; /* that it may have: others would change what is meant; none: any */
};

static bool check_attributes(struct duet__xml *r, const xmlNode *node, const struct child *child)
{
    for (const xmlAttr *a = node->properties; a != NULL && child->attributes[0] != NULL;
         a = a->next)
        if (!g_strv_contains(child->attributes, (const char *)a->name))
            return fail_at(r, node, "attribute %.60s is not read by duet", (const char *)a->name);
    return true;
}

/* Reads all elements inside another; between them are blanks, comments and instructions. */
static bool read_children(struct duet__xml *r, const xmlNode *parent, const struct child *known,
                          const char *place, void *into)
{
    for (xmlNode *c = parent->children; c != NULL; c = c->next) {
        const struct child *child = known;

        if (c->type == XML_COMMENT_NODE || c->type == XML_PI_NODE || xmlIsBlankNode(c))
            continue;
        if (c->type != XML_ELEMENT_NODE)
            return fail_at(r, parent, "text or entities inside an element are not read");
        while (child->name != NULL && strcmp(child->name, (const char *)c->name) != 0)
            child++;
        if (child->name == NULL)
            return fail_at(r, c, "not read by duet%s", place);
        if (!check_attributes(r, c, child) || !child->read(r, c, into))
            return false;
    }
    return true;
}

/* The name of a host, link or zone, which must be a plain one; NULL where it is not. */
static const char *read_name(struct duet__xml *r, const xmlNode *node, size_t size)
{
    const char *name = attribute(r, node, "id");

    if (name == NULL)
        fail_at(r, node, "attribute id is missing");
    else if (!duet__good_name(name, size))
        fail_at(r, node, "id=\"%.60s\" is no name: 1 to %zu letters, digits or _-.:+", name,
                size - 1);
    return r->error == DUET_OK ? name : NULL;
}

static bool read_prop(struct duet__xml *r, const xmlNode *node, const char **id, const char **value)
{
    *id = attribute(r, node, "id");
    *value = attribute(r, node, "value");
    return (*id != NULL && *value != NULL) || fail_at(r, node, "needs id and value");
}

static bool read_zone_prop(struct duet__xml *r, const xmlNode *node, void *into)
{
    const char *id = NULL, *value = NULL;

    if (!read_prop(r, node, &id, &value))
        return false;
    return !g_str_has_prefix(id, "duet.") ||
           g_hash_table_insert(r->props, (gpointer)(uintptr_t)id, (gpointer)(uintptr_t)value) ||
           fail_at(r, node, "%.60s is there twice", id);
}

static bool read_host_prop(struct duet__xml *r, const xmlNode *node, void *into)
{
    struct duet__xml_host *host = into;
    const char *id = NULL, *value = NULL;
    guint64 number = 0;

    if (!read_prop(r, node, &id, &value))
        return false;
    if (strcmp(id, "duet.kind") == 0) {
        if (strcmp(value, "host") != 0 && strcmp(value, "device") != 0)
            return fail_at(r, node, "duet.kind is host or device, not \"%.60s\"", value);
        host->is_host = value[0] == 'h';
    } else if (strcmp(id, "duet.capacity_bytes") == 0) {
        if (!g_ascii_string_to_unsigned(value, 10, 1, UINT64_MAX, &number, NULL))
            return fail_at(r, node, "duet.capacity_bytes=\"%.60s\" is no number of bytes", value);
        host->node.capacity_bytes = number;
    } else if (g_str_has_prefix(id, "duet.")) {
        return fail_at(r, node, "unknown property %.60s (known: duet.kind, duet.capacity_bytes)",
                       id);
    }
    return true;
}

static bool read_host(struct duet__xml *r, const xmlNode *node, void *into)
{
    static const struct child children[] = {{"prop", read_host_prop, {NULL}}, {NULL}};
    struct duet__xml_host host = {.cores = 1, .line = xmlGetLineNo(node)};
    const char *cores = attribute(r, node, "core");
    const char *name = read_name(r, node, sizeof(host.node.name));

    if (name == NULL)
        return false;
    if (g_hash_table_contains(r->host_index, name))
        return fail_at(r, node, "host %s is there twice", name);
    if (r->hosts->len > DUET__MAX_GPUS)
        return fail_at(r, node, "too many hosts, the most is %d", DUET__MAX_GPUS + 1);
    if (cores != NULL && !duet__xml_unsigned(cores, 1, DUET__MAX_SOCKET_CORES, &host.cores))
        return fail_at(r, node, "core=\"%.60s\" is no number from 1 to %d", cores,
                       DUET__MAX_SOCKET_CORES);
    g_strlcpy(host.node.name, name, sizeof(host.node.name));
    g_hash_table_insert(r->host_index, (gpointer)(uintptr_t)name, GUINT_TO_POINTER(r->hosts->len));
    if (!read_children(r, node, children, " inside a host", &host))
        return false;
    g_array_append_val(r->hosts, host);
    return true;
}

/* Gives a name its meaning in routes. */
static bool add_crossing(struct duet__xml *r, const xmlNode *node, const char *name,
                         const struct duet__xml_crossing *crossing)
{
    if (g_hash_table_contains(r->crossings, name))
        return fail_at(r, node, "link %s is there twice", name);
    g_hash_table_insert(r->crossings, g_strdup(name), g_memdup2(crossing, sizeof(*crossing)));
    return true;
}

static bool add_link(struct duet__xml *r, const xmlNode *node, struct duet_link link,
                     const char *name, const char *suffix, double latency_s)
{
    const struct duet__xml_crossing crossing = {.link = r->links->len, .latency_s = latency_s};

    if (r->links->len > UINT16_MAX)
        return fail_at(r, node, "too many links, the most is %d", UINT16_MAX);
    (void)g_snprintf(link.name, sizeof(link.name), "%s%s", name, suffix);
    g_array_append_val(r->links, link);
    return add_crossing(r, node, link.name, &crossing);
}

static bool read_link_figures(struct duet__xml *r, const xmlNode *node, struct duet_link *link,
                              struct duet__xml_crossing *crossing)
{
    const char *bandwidth = attribute(r, node, "bandwidth");
    const char *latency = attribute(r, node, "latency");
    const char *policy = attribute(r, node, "sharing_policy");

    if (bandwidth == NULL || !duet__xml_bandwidth(bandwidth, &link->bandwidth_Bps) ||
        !(link->bandwidth_Bps > 0))
        return fail_at(r, node, "bandwidth=\"%.60s\" is no positive bandwidth, e.g. 6.0GBps",
                       bandwidth != NULL ? bandwidth : "");
    if (latency != NULL && !duet__xml_time(latency, &crossing->latency_s))
        return fail_at(r, node, "latency=\"%.60s\" is no duration, e.g. 10us", latency);
    crossing->duplex = g_strcmp0(policy, "SPLITDUPLEX") == 0;
    link->per_copy = g_strcmp0(policy, "FATPIPE") == 0;
    return policy == NULL || crossing->duplex || link->per_copy || strcmp(policy, "SHARED") == 0 ||
           fail_at(r, node,
                   "sharing_policy %.60s is not read (known: SHARED, FATPIPE, SPLITDUPLEX)",
                   policy);
}

static bool read_link_prop(struct duet__xml *r, const xmlNode *node, void *into)
{
    struct duet__xml_crossing *crossing = into;
    const char *id = NULL, *value = NULL;
    bool good = read_prop(r, node, &id, &value);

    if (good && strcmp(id, "duet.kind") == 0)
        crossing->latency_only = strcmp(value, "latency") == 0;
    return good;
}

static bool read_link(struct duet__xml *r, const xmlNode *node, void *into)
{
    static const struct child children[] = {{"prop", read_link_prop, {NULL}}, {NULL}};
    struct duet__xml_crossing crossing = {.link = r->links->len};
    struct duet_link link = {.name = ""};
    const size_t room = sizeof(link.name);
    const char *name;

    if (!read_link_figures(r, node, &link, &crossing) ||
        !read_children(r, node, children, " inside a link", &crossing))
        return false;
    if (crossing.latency_only) { /* by a name that no link of a machine can have */
        name = attribute(r, node, "id");
        return name != NULL && strlen(name) < room
                   ? add_crossing(r, node, name, &crossing)
                   : fail_at(r, node, "needs an id of at most %d bytes", DUET_NAME_MAX - 1);
    }
    name = read_name(r, node, crossing.duplex ? room - strlen("_DOWN") : room);
    if (name == NULL)
        return false;
    if (!crossing.duplex)
        return add_link(r, node, link, name, "", crossing.latency_s);
    return add_crossing(r, node, name, &crossing) &&
           add_link(r, node, link, name, "_UP", crossing.latency_s) &&
           add_link(r, node, link, name, "_DOWN", crossing.latency_s);
}

/* A <link_ctn> of a route; on the way back it crosses the other half of what is duplex. */
static bool read_crossing(struct duet__xml *r, const xmlNode *node, void *into)
{
    struct duet__xml_route *way = into;
    struct duet_route *route = &way->route;
    const char *name = attribute(r, node, "id");
    const char *direction = attribute(r, node, "direction");
    const struct duet__xml_crossing *crossing;
    bool down = g_strcmp0(direction, "DOWN") == 0;
    unsigned link;

    if (name == NULL)
        return fail_at(r, node, "attribute id is missing");
    crossing = g_hash_table_lookup(r->crossings, name);
    if (crossing == NULL)
        return fail_at(r, node, "no link is named \"%.60s\"", name);
    if (crossing->duplex && !down && g_strcmp0(direction, "UP") != 0)
        return fail_at(r, node, "%.60s is SPLITDUPLEX: direction is UP or DOWN", name);
    if (!crossing->duplex && direction != NULL && strcmp(direction, "NONE") != 0)
        return fail_at(r, node, "%.60s is not SPLITDUPLEX: it has no direction", name);
    route->latency_s += crossing->latency_s;
    if (crossing->latency_only)
        return true;
    if (route->count == DUET_ROUTE_LINKS)
        return fail_at(r, node, "a route crosses at most %d links", DUET_ROUTE_LINKS);
    link = crossing->link + (crossing->duplex && down != way->back);
    route->links[route->count++] = (uint16_t)link;
    route->bandwidth_Bps =
        fmin(route->bandwidth_Bps, g_array_index(r->links, struct duet_link, link).bandwidth_Bps);
    return true;
}

static bool read_end(struct duet__xml *r, const xmlNode *node, const char *key, unsigned *host)
{
    const char *name = attribute(r, node, key);
    gpointer index = NULL;

    if (name == NULL)
        return fail_at(r, node, "attribute %s is missing", key);
    if (!g_hash_table_lookup_extended(r->host_index, name, NULL, &index))
        return fail_at(r, node, "%s=\"%.60s\": no host before this line has that name", key, name);
    *host = GPOINTER_TO_UINT(index);
    return true;
}

static bool read_way(struct duet__xml *r, const xmlNode *node, bool back)
{
    static const struct child children[] = {{"link_ctn", read_crossing, {"id", "direction"}},
                                            {NULL}};
    struct duet__xml_route way = {.back = back,
                                  .route = {.direct = true, .bandwidth_Bps = INFINITY}};

    if (!read_end(r, node, back ? "dst" : "src", &way.source) ||
        !read_end(r, node, back ? "src" : "dst", &way.destination))
        return false;
    if (way.source == way.destination)
        return fail_at(r, node, "a route from a host to itself is not read by duet");
    if (!read_children(r, node, children, " inside a route", &way))
        return false;
    if (way.route.count == 0)
        return fail_at(r, node, "a route crosses 1 to %d links, not 0", DUET_ROUTE_LINKS);
    g_array_append_val(r->routes, way);
    return true;
}

static bool read_route(struct duet__xml *r, const xmlNode *node, void *into)
{
    const char *symmetrical = attribute(r, node, "symmetrical");
    bool both = symmetrical == NULL || g_ascii_strcasecmp(symmetrical, "yes") == 0;

    return read_way(r, node, false) && (!both || read_way(r, node, true));
}

static bool read_zone(struct duet__xml *r, const xmlNode *zone, void *into)
{
    static const struct child children[] =
        {{"prop", read_zone_prop, {NULL}},
         {"host", read_host, {"id", "speed", "core", "coordinates"}},
         {"link", read_link, {"id", "bandwidth", "latency", "sharing_policy"}},
         {"route", read_route, {"src", "dst", "symmetrical"}},
         {NULL}};
    const char *routing = attribute(r, zone, "routing");

    if (r->name != NULL)
        return fail_at(r, zone, "not read by duet: a platform has one zone and nothing else");
    r->name = read_name(r, zone, DUET_NAME_MAX);
    if (r->name == NULL)
        return false;
    if (routing == NULL || g_ascii_strcasecmp(routing, "full") != 0)
        return fail_at(r, zone, "routing \"%.60s\" is not read, only Full",
                       routing != NULL ? routing : "");
    return read_children(r, zone, children, ": a zone has hosts, links and routes one by one",
                         NULL);
}

/* Options of the simulator, not of the machine. */
static bool skip(struct duet__xml *r, const xmlNode *node, void *into)
{
    return true;
}

static bool read_root(struct duet__xml *r, const xmlNode *root)
{
    static const struct child children[] = {{"config", skip, {NULL}},
                                            {"zone", read_zone, {"id", "routing"}},
                                            {NULL}};
    const char *version = attribute(r, root, "version");

    if (strcmp((const char *)root->name, "platform") != 0)
        return fail_at(r, root, "expected <platform>");
    if (version == NULL || !(g_str_equal(version, "4") || g_str_has_prefix(version, "4.")))
        return fail_at(r, root, "version \"%.60s\" is not read, only 4.x",
                       version != NULL ? version : "");
    return read_children(r, root, children, ": a platform has one zone and nothing else", NULL) &&
           (r->name != NULL || fail_at(r, root, "no zone"));
}

bool duet__xml_parse(struct duet__xml *r, const char *text, size_t length)
{
    xmlParserCtxt *context;
    xmlDoc *document = NULL;

    if (length > (size_t)DUET__MAX_FILE_MIB << 20)
        return duet__xml_fail(r, DUET_EPARSE, " too large");
    context = xmlNewParserCtxt();
    if (context == NULL)
        return duet__xml_fail(r, DUET_ENOMEM, " out of memory");
    document = xmlCtxtReadMemory(context, text, (int)length, NULL, NULL,
                                 XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    if (document == NULL) {
        const xmlError *last = xmlCtxtGetLastError(context);
        char *reason = g_strdup(last != NULL && last->message != NULL ? last->message : "not XML");

        duet__xml_fail(r, DUET_EPARSE, "%d: %.200s", last != NULL ? last->line : 1,
                       g_strstrip(reason));
        g_free(reason);
    } else if (document->intSubset != NULL && document->intSubset->children != NULL) {
        duet__xml_fail(r, DUET_EPARSE, " declarations inside <!DOCTYPE> are not read");
    } else {
        read_root(r, xmlDocGetRootElement(document));
    }
    xmlFreeDoc(document);
    xmlFreeParserCtxt(context);
    return r->error == DUET_OK;
}
