/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units, read strictly. */
#include "world/units.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <glib.h>

enum { LONGEST_S = 3600 }; /* longer than any operation of a runtime can take */

struct unit {
    const char *name;
    double bytes;
};

static const struct unit units[] = {
    {"B", 1},
    {"kB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
    {"KiB", 1024.0},
    {"MiB", 1024.0 * 1024},
    {"GiB", 1024.0 * 1024 * 1024},
    {"TiB", 1024.0 * 1024 * 1024 * 1024},
};

int duet__parse_count(const char *option, const char *text, uint64_t low, uint64_t high,
                      uint64_t *out, struct duet_message *message)
{
    uint64_t value = 0;
    bool good = *text && !text[strspn(text, "0123456789")];

    if (good) {
        errno = 0;
        value = g_ascii_strtoull(text, NULL, 10);
        good = errno == 0 && value >= low && value <= high;
    }
    if (!good && high == UINT64_MAX)
        return duet_fail(message, DUET_EINVAL,
                         "%s takes a whole number of %" PRIu64 " or more, not "
                         "'%s'",
                         option, low, text);
    if (!good)
        return duet_fail(message, DUET_EINVAL,
                         "%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'",
                         option, low, high, text);
    *out = value;
    return 0;
}

/* Reads digits, point and exponent from the start of `text`; *end is what follows. */
static bool scan_real(const char *text, double *value, const char **end)
{
    char *stop;

    /* g_ascii_strtod takes blanks, signs, "inf" and hexadecimal numbers as well */
    if (!(g_ascii_isdigit(*text) || (*text == '.' && g_ascii_isdigit(text[1]))) ||
        (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')))
        return false;
    *value = g_ascii_strtod(text, &stop);
    *end = stop;
    return isfinite(*value);
}

int duet__parse_real(const char *option, const char *text, double low, double high, double *out,
                     struct duet_message *message)
{
    const char *end;
    double value;

    if (!scan_real(text, &value, &end) || *end || value < low || value >= high)
        return duet_fail(message, DUET_EINVAL, "%s takes a number from %g to below %g, not '%s'",
                         option, low, high, text);
    *out = value;
    return 0;
}

/* A number and a unit that ends at `suffix`, which is "" or "/s". */
static bool scan_bytes(const char *text, const char *suffix, double *bytes, bool *has_unit)
{
    const char *end;

    if (!scan_real(text, bytes, &end))
        return false;
    *has_unit = *end != 0;
    if (!*end)
        return !*suffix;
    for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
        size_t length = strlen(units[i].name);

        if (strncmp(end, units[i].name, length) == 0 && strcmp(end + length, suffix) == 0) {
            *bytes *= units[i].bytes;
            return true;
        }
    }
    return false;
}

int duet__parse_size(const char *option, const char *text, uint64_t *out,
                     struct duet_message *message)
{
    double bytes;
    bool has_unit;
    bool good = scan_bytes(text, "", &bytes, &has_unit);

    if (good && !has_unit)
        return duet__parse_count(option, text, 1, UINT64_MAX, out, message);
    if (!good || bytes < 1 || bytes >= 0x1p63)
        return duet_fail(message, DUET_EINVAL,
                         "%s takes a size such as 6GiB, 500MB or 2817982464, not '%s'", option,
                         text);
    *out = (uint64_t)llround(bytes);
    return 0;
}

int duet__parse_memory(const char *option, const char *text, uint64_t *bytes, double *share,
                       struct duet_message *message)
{
    const char *end = text;
    double percent = 0;
    bool part = g_str_has_suffix(text, "%");
    uint64_t size = 0;
    int result = 0;

    if (!part)
        result = duet__parse_size(option, text, &size, NULL);
    else if (!scan_real(text, &percent, &end) || strcmp(end, "%") != 0 || !(percent > 0) ||
             percent > 100)
        result = DUET_EINVAL;
    if (result)
        return duet_fail(message, result,
                         "%s takes a size such as 6GiB, 500MB or 2817982464, or a part of the "
                         "memory, up to 100%%, such as 80%%, not '%s'",
                         option, text);
    *bytes = size;
    *share = percent / 100;
    return 0;
}

int duet__parse_pin(const char *option, const char *text, uint64_t *bytes, bool *none,
                    struct duet_message *message)
{
    uint64_t size = 0;

    if (strcmp(text, "none") != 0 && duet__parse_size(option, text, &size, NULL))
        return duet_fail(message, DUET_EINVAL,
                         "%s takes a size such as 6GiB, 500MB or 2817982464, or 'none', not '%s'",
                         option, text);
    *bytes = size;
    *none = size == 0;
    return 0;
}

int duet__parse_bandwidth(const char *option, const char *text, double *out,
                          struct duet_message *message)
{
    double bytes;
    bool has_unit;

    if (!scan_bytes(text, "/s", &bytes, &has_unit) || !(bytes > 0) || !isfinite(bytes))
        return duet_fail(message, DUET_EINVAL,
                         "%s takes a bandwidth such as 12GB/s or 800MB/s, not '%s'", option, text);
    *out = bytes;
    return 0;
}

int duet__parse_change(const char *option, const char *text, double *bandwidth, double *factor,
                       struct duet_message *message)
{
    const char *end = text;
    double value = 0;

    *bandwidth = *factor = 0;
    if (!scan_real(text, &value, &end) || strcmp(end, "x") != 0)
        return duet__parse_bandwidth(option, text, bandwidth, message);
    if (!(value > 0) || !isfinite(value))
        return duet_fail(message, DUET_EINVAL, "%s takes factors above 0 such as 2x, not '%s'",
                         option, text);
    *factor = value;
    return 0;
}

int duet__parse_seconds(const char *option, const char *text, double *out,
                        struct duet_message *message)
{
    static const struct {
        const char *name;
        double seconds;
    } known[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    const char *end = text;
    double value = 0;

    if (scan_real(text, &value, &end)) {
        if (!*end && value == 0) {
            *out = 0;
            return 0;
        }
        for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
            if (strcmp(end, known[i].name) != 0)
                continue;
            if (value * known[i].seconds > LONGEST_S)
                return duet_fail(message, DUET_EINVAL, "%s takes times of up to %ds, not '%s'",
                                 option, LONGEST_S, text);
            *out = value * known[i].seconds;
            return 0;
        }
    }
    return duet_fail(message, DUET_EINVAL, "%s takes a time such as 250ns, 1us, 90s or 0, not '%s'",
                     option, text);
}

int duet__parse_scale(const char *option, const char *text, double *out,
                      struct duet_message *message)
{
    return duet__parse_real(option, text, 1e-6, 1e6, out, message);
}

int duet__parse_watchdog(const char *option, const char *text, double *out,
                         struct duet_message *message)
{
    const char *end = text;
    double value = 0;

    if (strcmp(text, "never") == 0) {
        *out = -1;
        return 0;
    }
    if (!scan_real(text, &value, &end) || *end || value < 0.01 || value > 1e9)
        return duet_fail(message, DUET_EINVAL,
                         "%s takes seconds (0.01 or more) or 'never', not '%s'", option, text);
    *out = value;
    return 0;
}
