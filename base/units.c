/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units, read strictly. */
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"

enum { LONGEST_S = 3600 }; /* longer than any operation of a runtime can take */

/* A unit that may follow a number, and the factor that it stands for; ended by NULL. */
struct unit {
    const char *name;
    double factor;
};

static const struct unit no_unit[] = {{"", 1}, {NULL, 0}};
static const struct unit percent[] = {{"%", 1}, {NULL, 0}};
static const struct unit times[] = {{"x", 1}, {NULL, 0}};
static const struct unit seconds[] = {{"ns", 1e-9},
                                      {"us", 1e-6},
                                      {"ms", 1e-3},
                                      {"s", 1},
                                      {NULL, 0}};
static const struct unit bytes_of[] = {
    {"B", 1},        {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {NULL, 0},
};

/* Returns true if all of `text` is a number, one of the units, and `suffix`. */
static bool scan(const char *text, const struct unit *units, const char *suffix, double *out)
{
    char *end;
    double value;
    /* g_ascii_strtod takes blanks, signs, "inf" and hexadecimal numbers as well */
    if (!(g_ascii_isdigit(*text) || (*text == '.' && g_ascii_isdigit(text[1]))) ||
        g_ascii_strncasecmp(text, "0x", 2) == 0)
        return false;
    value = g_ascii_strtod(text, &end);
    for (; units->name; units++) {
        size_t length = strlen(units->name);
        if (strncmp(end, units->name, length) == 0 && strcmp(end + length, suffix) == 0) {
            *out = value * units->factor;
            return isfinite(*out);
        }
    }
    return false;
}

static bool scan_size(const char *text, uint64_t *out)
{
    double value;
    if (!scan(text, bytes_of, "", &value))
        return duet__scan_whole(text, 1, UINT64_MAX, out);
    if (value < 1 || value >= 0x1p63)
        return false;
    *out = (uint64_t)llround(value);
    return true;
}

int duet__parse_count(const char *option, const char *text, uint64_t low, uint64_t high,
                      uint64_t *out, struct duet_message *message)
{
    if (duet__scan_whole(text, low, high, out))
        return 0;
    if (high == UINT64_MAX)
        return duet_fail(message, DUET_EINVAL,
                         "%s takes a whole number of %" PRIu64 " or more, not '%s'", option, low,
                         text);
    return duet_fail(message, DUET_EINVAL,
                     "%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'", option,
                     low, high, text);
}

int duet__parse_real(const char *option, const char *text, double low, double high, double *out,
                     struct duet_message *message)
{
    double value;
    if (!scan(text, no_unit, "", &value) || value < low || value >= high)
        return duet_fail(message, DUET_EINVAL, "%s takes a number from %g to below %g, not '%s'",
                         option, low, high, text);
    *out = value;
    return 0;
}

int duet__parse_percent(const char *option, const char *text, bool sign, double *out,
                        struct duet_message *message)
{
    double value;
    bool good = scan(text, percent, "", &value) || (!sign && scan(text, no_unit, "", &value));
    if (!good || !(value > 0) || value >= 1e6)
        return duet_fail(message, DUET_EINVAL,
                         "%s takes a percentage above 0%s, such as 5%%, not '%s'", option,
                         sign ? " with its sign" : "", text);
    *out = value / 100;
    return 0;
}

int duet__parse_memory(const char *option, const char *text, uint64_t *bytes, double *share,
                       struct duet_message *message)
{
    double part = 0;
    uint64_t size = 0;
    bool good = scan(text, percent, "", &part) ? part > 0 && part <= 100 : scan_size(text, &size);
    if (!good)
        return duet_fail(message, DUET_EINVAL,
                         "%s takes a size such as 6GiB, 500MB or 2817982464, or a part of the "
                         "memory, up to 100%%, such as 80%%, not '%s'",
                         option, text);
    *bytes = size;
    *share = part / 100;
    return 0;
}

int duet__parse_pin(const char *option, const char *text, uint64_t *bytes, bool *none,
                    struct duet_message *message)
{
    uint64_t size = 0;
    if (strcmp(text, "none") != 0 && !scan_size(text, &size))
        return duet_fail(message, DUET_EINVAL,
                         "%s takes a size such as 6GiB, 500MB or 2817982464, or 'none', not '%s'",
                         option, text);
    *bytes = size;
    *none = size == 0;
    return 0;
}

int duet__parse_change(const char *option, const char *text, double *bandwidth, double *factor,
                       struct duet_message *message)
{
    double value;
    bool relative = scan(text, times, "", &value);
    if (!relative && !scan(text, bytes_of, "/s", &value))
        value = 0;
    if (!(value > 0))
        return duet_fail(message, DUET_EINVAL, "%s takes a %s, not '%s'", option,
                         relative ? "factor above 0 such as 2x"
                                  : "bandwidth with its unit, such as 12GB/s or 12000000000B/s, or "
                                    "a factor such as 2x",
                         text);
    *bandwidth = relative ? 0 : value;
    *factor = relative ? value : 0;
    return 0;
}

int duet__parse_seconds(const char *option, const char *text, double *out,
                        struct duet_message *message)
{
    double value;
    bool good = scan(text, seconds, "", &value) || (scan(text, no_unit, "", &value) && value == 0);
    if (good && value > LONGEST_S)
        return duet_fail(message, DUET_EINVAL, "%s takes times of up to %ds, not '%s'", option,
                         LONGEST_S, text);
    if (!good)
        return duet_fail(message, DUET_EINVAL,
                         "%s takes a time with its unit, such as 250ns, 1us, 90s or 0, not '%s'",
                         option, text);
    *out = value;
    return 0;
}

int duet__parse_watchdog(const char *option, const char *text, double *out,
                         struct duet_message *message)
{
    double value = -1;
    if (strcmp(text, "never") != 0 &&
        (!scan(text, no_unit, "", &value) || value < 0.01 || value > 1e9))
        return duet_fail(message, DUET_EINVAL,
                         "%s takes seconds without a unit, such as 30 (0.01 or more), or 'never', "
                         "not '%s'",
                         option, text);
    *out = value;
    return 0;
}
