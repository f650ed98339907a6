/* SPDX-License-Identifier: Apache-2.0 */
/* Makes elements, attributes and properties of XML a document that tables of fields read. */

#include <string.h>

#include <jansson.h>
#include <libxml/parser.h>
#include <libxml/tree.h>

#include "platforms/internal.h"

struct conversion {
    const char *path;
    struct duet_message *message;
    GHashTable *lines; /* json_t -> line */
    int error;
};

static void conversion_fail(struct conversion *c, const xmlNode *node, const char *format, ...)
    DUET_PRINTF(3, 4);

/* Notes the first error. */
static void conversion_fail(struct conversion *c, const xmlNode *node, const char *format, ...)
{
    g_autofree char *what = NULL;
    va_list args;
    if (c->error)
        return;
    va_start(args, format);
    what = g_strdup_vprintf(format, args);
    va_end(args);
    c->error = duet_fail(c->message, DUET_EPARSE, "%.200s:%ld: <%.40s>: %s", c->path,
                         xmlGetLineNo(node), (const char *)node->name, duet__json_clean(what));
}

/* Notes the line of a value, which is that of its element. */
static json_t *with_line(struct conversion *c, const xmlNode *node, json_t *value)
{
    g_hash_table_insert(c->lines, value, GSIZE_TO_POINTER((gsize)xmlGetLineNo(node)));
    return value;
}

/* Returns the value of an attribute, one text without entities; NULL if it is empty. */
static const char *value_of(const xmlAttr *attribute)
{
    return attribute->children != NULL ? (const char *)attribute->children->content : "";
}

static const char *attribute(const xmlNode *node, const char *name)
{
    const xmlAttr *found = xmlHasProp(node, (const xmlChar *)name);
    return found != NULL ? value_of(found) : NULL;
}

/* Adds a property to the object of an element; properties of others are ignored. */
static void add_property(struct conversion *c, const xmlNode *node, json_t *object)
{
    const char *id = attribute(node, "id"), *value = attribute(node, "value");
    g_auto(GStrv) keys = g_strsplit(id != NULL ? id : "", ".", -1);
    uint64_t number = 0;
    char **key = keys;
    bool numbered;
    if (id == NULL || value == NULL) {
        conversion_fail(c, node, "needs id and value");
        return;
    }
    if (!g_str_has_prefix(id, "duet."))
        return;
    numbered = duet__scan_whole(strrchr(id, '.') + 1, 0, UINT_MAX, &number);
    for (; key[1] != NULL; key++) {
        json_t *inner = json_object_get(object, *key);
        if (inner == NULL) {
            inner = numbered && key[2] == NULL ? json_array() : with_line(c, node, json_object());
            json_object_set_new(object, *key, inner);
        }
        object = inner;
    }
    if (numbered && json_array_size(object) != number)
        conversion_fail(c, node, "%.60s: numbers start at 0 without a gap", id);
    else if (numbered)
        json_array_append_new(object, with_line(c, node, json_string(value)));
    else if (json_object_get(object, *key) != NULL)
        conversion_fail(c, node, "%.60s is there twice", id);
    else if (json_object_set_new(object, *key, with_line(c, node, json_string(value))) != 0)
        conversion_fail(c, node, "%.60s is no name of a property", id);
}

static json_t *convert(struct conversion *c, const xmlNode *node);

/* Adds the contents of an element, but blanks and comments, to its object. */
static void add_child(struct conversion *c, const xmlNode *child, json_t *object)
{
    const char *name = (const char *)child->name;
    if (child->type == XML_COMMENT_NODE || child->type == XML_PI_NODE || xmlIsBlankNode(child))
        return;
    if (child->type != XML_ELEMENT_NODE) {
        conversion_fail(c, child->parent, "text or entities inside an element are not read");
    } else if (strcmp(name, "prop") == 0) {
        add_property(c, child, object);
    } else {
        if (json_object_get(object, name) == NULL)
            json_object_set_new(object, name, json_array());
        if (json_array_append_new(json_object_get(object, name), convert(c, child)) != 0)
            conversion_fail(c, child, "is an attribute and an element");
    }
}

/* Converts an element to an object. The parser bounds the depth. */
static json_t *convert(struct conversion *c, const xmlNode *node)
{
    json_t *object = with_line(c, node, json_object());
    for (const xmlAttr *a = node->properties; a != NULL; a = a->next)
        json_object_set_new(object, (const char *)a->name, json_string(value_of(a)));
    for (xmlNode *child = node->children, *next; child != NULL && !c->error; child = next) {
        next = child->next;
        add_child(c, child, object);
        xmlUnlinkNode(child); /* never holds the whole document twice */
        xmlFreeNode(child);
    }
    return object;
}

int duet__xml_parse(const char *text, size_t length, const char *path, const char *name,
                    struct duet_message *message, struct duet__json *root)
{
    struct conversion c = {.path = path, .message = message};
    xmlDoc *document = xmlReadMemory(text, (int)length, NULL, NULL,
                                     XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    xmlNode *top = xmlDocGetRootElement(document);

    *root = (struct duet__json){.path = path, .message = message};
    if (document == NULL) {
        const xmlError *last = xmlGetLastError();
        g_autofree char *reason =
            g_strdup(last != NULL && last->message != NULL ? last->message : "not XML");
        c.error = duet_fail(message, DUET_EPARSE, "%.200s:%d: %.200s", path,
                            last != NULL ? last->line : 1, g_strstrip(reason));
    } else if (document->intSubset != NULL && document->intSubset->children != NULL) {
        c.error = duet_fail(message, DUET_EPARSE,
                            "%.200s: declarations inside <!DOCTYPE> are not read", path);
    } else if (strcmp((const char *)top->name, name) != 0) {
        conversion_fail(&c, top, "expected <%s>", name);
    } else {
        root->lines = c.lines = g_hash_table_new(NULL, NULL);
        root->node = convert(&c, top);
    }
    if (c.error)
        duet__json_close(root);
    xmlFreeDoc(document);
    return c.error;
}

int duet__xml_record(struct duet__json *at, const struct duet__field *field)
{
    const char *text = json_string_value(at->node);
    g_auto(GStrv) words = g_strsplit(text != NULL ? text : "", " ", -1);
    json_t *record;
    if (at->lines == NULL || text == NULL)
        return DUET_OK;
    record = json_object();
    for (char **word = words; *word != NULL && field->key != NULL; word++, field++)
        json_object_set_new(record, field->key, json_string(*word));
    if (g_strv_length(words) > json_object_size(record)) {
        json_decref(record);
        return duet__json_fail(at, DUET_EPARSE, "\"%.60s\" has more words than are known", text);
    }
    g_hash_table_insert(at->lines, record, g_hash_table_lookup(at->lines, at->node));
    json_array_set_new(at->up->node, at->index, record);
    at->node = record;
    return DUET_OK;
}

struct unit {
    const char *name;
    double factor;
};

static const struct unit bandwidths[] = {
    {"", 1},          {"Bps", 1},        {"kBps", 1e3},     {"MBps", 1e6},     {"GBps", 1e9},
    {"TBps", 1e12},   {"KiBps", 0x1p10}, {"MiBps", 0x1p20}, {"GiBps", 0x1p30}, {"TiBps", 0x1p40},
    {"bps", 0.125},   {"kbps", 125},     {"Mbps", 125e3},   {"Gbps", 125e6},   {"Tbps", 125e9},
    {"Kibps", 0x1p7}, {"Mibps", 0x1p17}, {"Gibps", 0x1p27}, {"Tibps", 0x1p37}, {NULL},
};

static const struct unit times[] = {
    {"", 1},   {"s", 1},    {"ms", 1e-3}, {"us", 1e-6},  {"ns", 1e-9}, {"ps", 1e-12},
    {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}, {NULL},
};

bool duet__xml_quantity(const char *text, bool bandwidth, double *out)
{
    const struct unit *unit = bandwidth ? bandwidths : times;
    char *end = NULL;
    double number = g_ascii_strtod(text, &end);
    while (unit->name != NULL && strcmp(end, unit->name) != 0)
        unit++;
    if (!g_ascii_isdigit(text[0]) || unit->name == NULL)
        return false;
    *out = number * unit->factor;
    return true;
}

int duet__xml_value(struct duet__json *at, const struct duet__field *field)
{
    bool bandwidth = g_str_has_suffix(field->key, "_Bps") || strcmp(field->key, "bandwidth") == 0;
    const char *text = json_string_value(at->node), *expected = NULL;
    json_t *value = NULL;
    uint64_t number = 0;
    double quantity = 0;
    if (at->lines == NULL || text == NULL)
        return DUET_OK;
    switch (field->kind) {
    case DUET__NUMBER:
        expected = bandwidth ? "bandwidth, e.g. 6.0GBps" : "duration, e.g. 10us";
        if (duet__xml_quantity(text, bandwidth, &quantity))
            value = json_real(quantity);
        break;
    case DUET__INTEGER:
    case DUET__UNSIGNED:
        expected = "whole number";
        if (duet__scan_whole(text, 0, INT64_MAX, &number))
            value = json_integer((json_int_t)number);
        break;
    case DUET__BOOLEAN:
        expected = "truth value: true or false";
        if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
            value = json_boolean(text[0] == 't');
        break;
    default: /* the value is a text */
        return DUET_OK;
    }
    if (value == NULL)
        return duet__json_fail(at, DUET_EPARSE, "\"%.60s\" is no %s", text, expected);
    g_hash_table_insert(at->lines, value, g_hash_table_lookup(at->lines, at->node));
    json_object_set_new(at->up->node, at->key, value);
    at->node = value;
    return DUET_OK;
}
