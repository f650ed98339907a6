/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of values, ranges of numbers in them, and numbers of nodes. */
#include <math.h>
#include <string.h>

#include <glib.h>

#include "nodes/nodes.h"
#include "base/json.h"
#include "runtime/settings.h"
#include "base/units.h"

enum { VALUES_MOST = 100000, NODES_MOST = 4096 };

/* Reads a number and the unit behind it, which ends before one of `ends`; false: no number. */
static bool read_number(const char **at, const char *ends, double *value, char **unit)
{
    char *end = NULL;
    size_t length;

    if (!g_ascii_isdigit(**at) || g_str_has_prefix(*at, "0x"))
        return false;
    *value = g_ascii_strtod(*at, &end);
    length = strcspn(end, ends);
    *unit = g_strndup(end, length);
    *at = end + length;
    return isfinite(*value) && strcspn(*unit, "0123456789.:*") == length;
}

/* "A", "A..B", "A..B:STEP", "A..B*FACTOR"; a unit that one of them lacks is that of the others. */
struct range {
    double from, to, step;
    char sign; /* ':' or '*' */
    char *unit;
};

/* false: it is something else that begins with a digit. */
static bool read_range(const char *element, const char *dots, struct range *range)
{
    g_autofree char *first = g_strndup(element, (size_t)(dots - element)), *unit = NULL;
    g_autofree char *last = NULL, *step = NULL;
    const char *at = first, *rest = dots + 2;
    bool good =
        read_number(&at, "", &range->from, &unit) && read_number(&rest, ":*", &range->to, &last);

    range->sign = ':';
    range->step = 1;
    if (good && *rest) {
        range->sign = *rest++;
        good = read_number(&rest, "", &range->step, &step);
    }
    if (!good)
        return false;
    range->unit = g_strdup(*last ? last : unit);
    return (!*unit || !strcmp(unit, range->unit)) &&
           (!step || !*step || (range->sign == ':' && !strcmp(step, range->unit))) &&
           range->from <= range->to &&
           (range->sign == ':' ? range->step > 0 : range->step > 1 && range->from > 0);
}

static int add(const char *option, char *value, GPtrArray *values, struct duet_message *message)
{
    g_ptr_array_add(values, value);
    if (values->len > VALUES_MOST)
        return duet_fail(message, DUET_EINVAL, "%s takes at most %d values", option, VALUES_MOST);
    return 0;
}

static int add_range(const char *option, const struct range *range, GPtrArray *values,
                     struct duet_message *message)
{
    static const double rounding = 1e-9;
    int error = 0;

    for (guint i = 0; !error; i++) {
        char digits[G_ASCII_DTOSTR_BUF_SIZE];
        double value =
            range->sign == ':' ? range->from + i * range->step : range->from * pow(range->step, i);

        if (value > range->to * (1 + rounding))
            break;
        if (value < 1e15 && fabs(value - round(value)) <= rounding * value)
            error = add(option, g_strdup_printf("%.0f%s", value, range->unit), values, message);
        else
            error = add(option,
                        g_strconcat(g_ascii_formatd(digits, sizeof digits, "%.12g", value),
                                    range->unit, NULL),
                        values, message);
    }
    return error;
}

int duet__parse_list(const char *option, const char *text, GPtrArray *values,
                     struct duet_message *message)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    g_autoptr(GHashTable) known = g_hash_table_new(g_str_hash, g_str_equal);
    const guint first = values->len;
    int error = *text ? 0 : add(option, g_strdup(""), values, message);

    for (char **part = parts; *part && !error; part++) {
        const char *dots = g_ascii_isdigit(**part) ? strstr(*part, "..") : NULL;
        struct range range = {.unit = NULL};

        if (!dots)
            error = add(option, g_strdup(*part), values, message);
        else if (read_range(*part, dots, &range))
            error = add_range(option, &range, values, message);
        else
            error = duet_fail(message, DUET_EINVAL,
                              "%s: '%s' is no range: A..B, A..B:STEP or A..B*FACTOR, with A up to "
                              "B, a step above 0 or a factor above 1",
                              option, *part);
        g_free(range.unit);
    }
    for (guint i = first; i < values->len && !error; i++)
        if (!g_hash_table_add(known, values->pdata[i]) && *(const char *)values->pdata[i])
            error = duet_fail(message, DUET_EINVAL, "%s names %s twice", option,
                              (const char *)values->pdata[i]);
    return error;
}

int duet__parse_nodes(const char *option, const char *text, struct duet_grid *out,
                      struct duet_message *message)
{
    g_auto(GStrv) words = g_strsplit(text ? text : "1", "x", 2);
    uint64_t first = 0, second = 1;
    bool good = words[0] && duet__scan_whole(words[0], 1, NODES_MOST, &first) &&
                (!words[1] || duet__scan_whole(words[1], 1, NODES_MOST / first, &second));

    if (!good)
        return duet_fail(
            message, DUET_EINVAL,
            "%s takes a number of nodes, or rows and columns of them, up to %d in all, "
            "such as 4 or 2x2, not '%s'",
            option, NODES_MOST, text);
    *out = words[1] ? (struct duet_grid){(unsigned)first, (unsigned)second}
                    : duet__grid_square((unsigned)first);
    return 0;
}

struct duet_grid duet__nodes_wanted(const struct duet_config *config)
{
    struct duet_grid grid;
    struct duet_message ignored;
    return duet__parse_nodes("", config->nodes, &grid, &ignored) ? (struct duet_grid){1, 1} : grid;
}
