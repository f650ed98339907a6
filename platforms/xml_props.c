/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of SimGrid platforms, by the tables of members; and numbers with SimGrid's units. */
#include "platforms/xml.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "platforms/fields.h"

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

/* A number followed by a unit of SimGrid's ("125MBps", "10us"), in the base unit. */
static bool parse_with_unit(const char *text, const struct unit *unit, double *value)
{
    char *end = NULL;
    double number;

    if (!g_ascii_isdigit(text[0]) && text[0] != '.')
        return false;
    number = g_ascii_strtod(text, &end);
    while (unit->name != NULL && strcmp(end, unit->name) != 0)
        unit++;
    *value = number * unit->factor;
    return end != text && unit->name != NULL && isfinite(*value) && number >= 0;
}

bool duet__xml_bandwidth(const char *text, double *value)
{
    return parse_with_unit(text, bandwidths, value);
}

bool duet__xml_time(const char *text, double *value)
{
    return parse_with_unit(text, times, value);
}

bool duet__xml_unsigned(const char *text, unsigned least, unsigned most, unsigned *value)
{
    guint64 number = 0;
    bool good = g_ascii_string_to_unsigned(text, 10, least, most, &number, NULL);

    if (good)
        *value = (unsigned)number;
    return good;
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
        return duet__xml_unsigned(text, 0, UINT_MAX, value) ? NULL : "a number of cores";
    case DUET__BOOLEAN:
        *(bool *)value = strcmp(text, "true") == 0;
        return *(bool *)value || strcmp(text, "false") == 0 ? NULL : "true or false";
    default:
        if (g_str_has_suffix(field->key, "_Bps"))
            return parse_with_unit(text, bandwidths, value) ? NULL : "a bandwidth";
        return parse_with_unit(text, times, value) ? NULL : "a duration";
    }
}

/* Whether a member is told by a property: names are told in another way. */
static bool is_told(const struct duet__field *field)
{
    return field->kind != DUET__ELSEWHERE && field->kind != DUET__NAME;
}

char *duet__props_read(GHashTable *props, const char *prefix, const struct duet__field *fields,
                       void *into)
{
    char *wrong = NULL;

    for (; fields->key != NULL && wrong == NULL; fields++) {
        char *id = g_strdup_printf("%s.%s", prefix, fields->key);
        const char *expected = NULL;
        gpointer text = NULL;

        if (is_told(fields) && g_hash_table_steal_extended(props, id, NULL, &text))
            expected = parse_value(fields, text, duet__field_at(fields, into));
        if (expected != NULL)
            wrong = g_strdup_printf("property %.60s: expected %s", id, expected);
        g_free(id);
    }
    return wrong;
}

void duet__prop_write(GString *text, const char *indent, const char *name, const char *value)
{
    g_string_append_printf(text, "%s<prop id=\"%s\" value=\"%s\"/>\n", indent, name, value);
}

/* Empty where there is nothing to say. */
static void print_value(const struct duet__field *field, const void *value, bool needed,
                        char text[DUET__DIGITS_MAX])
{
    text[0] = '\0';
    if (field->kind == DUET__NUMBER &&
        (*(const double *)value > 0 || (needed && field->when == DUET__NEEDED)))
        duet__digits(*(const double *)value, text);
    else if (field->kind == DUET__INTEGER && *(const uint64_t *)value > 0)
        g_snprintf(text, DUET__DIGITS_MAX, "%" G_GUINT64_FORMAT, *(const uint64_t *)value);
    else if (field->kind == DUET__UNSIGNED && *(const unsigned *)value > 0)
        g_snprintf(text, DUET__DIGITS_MAX, "%u", *(const unsigned *)value);
    else if (field->kind == DUET__BOOLEAN && *(const bool *)value)
        g_strlcpy(text, "true", DUET__DIGITS_MAX);
}

void duet__props_write(GString *text, const char *prefix, const struct duet__field *fields,
                       const void *from, bool needed)
{
    for (; fields->key != NULL; fields++) {
        char *id = g_strdup_printf("%s.%s", prefix, fields->key);
        char value[DUET__DIGITS_MAX];

        print_value(fields, duet__field_at(fields, from), needed, value);
        if (value[0] != '\0')
            duet__prop_write(text, "    ", id, value);
        g_free(id);
    }
}
