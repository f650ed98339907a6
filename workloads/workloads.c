/* SPDX-License-Identifier: Apache-2.0 */
/* Finds workloads by name or number in the list of list.h. */
#include <inttypes.h>
#include <string.h>
#include <math.h>
#include <glib.h>

#include "workloads/tiles.h"

#define WORKLOAD(name) extern const struct duet__workload duet__workload_##name;
#include "workloads/list.h"
#undef WORKLOAD

static const struct duet__workload *const workloads[] = {
#define WORKLOAD(name) &duet__workload_##name,
#include "workloads/list.h"
#undef WORKLOAD
};

const struct duet__workload *duet__workload_at(size_t index)
{
    return index < sizeof workloads / sizeof *workloads ? workloads[index] : NULL;
}

const struct duet__workload *duet__workload_find(const char *name)
{
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        if (!strcmp(workloads[i]->name, name))
            return workloads[i];
    }
    return NULL;
}

char *duet__workload_measured(const struct duet__workload *workload,
                              const struct duet__problem *problem)
{
    const bool even = workload->tiled && !workload->tiled->cuts;
    const uint64_t last = even ? problem->n % problem->tile : 0;
    GString *text = g_string_new(NULL);
    g_string_printf(text, "duet calibrate %s --tile %" PRIu64, workload->name, problem->tile);
    if (last)
        g_string_append_printf(text, ",%" PRIu64, last);
    if (problem->precision == 's')
        g_string_append(text, " --precision s");
    if (last)
        g_string_append_printf(text,
                               "; the last tile is %" PRIu64 ", as n %" PRIu64
                               " is no multiple of %" PRIu64,
                               last, problem->n, problem->tile);
    return g_string_free(text, FALSE);
}

/* ------------------------------------------------------------------------------------------- */
/* Checks a problem and its settings against the parameters that a workload declares. */

static const struct duet__parameter *find_parameter(const struct duet__parameter *parameters,
                                                    const char *name)
{
    for (; parameters && parameters->name; parameters++) {
        if (!strcmp(parameters->name, name))
            return parameters;
    }
    return NULL;
}

/* Refuses a setting. DUET_EINVAL with the list of parameters. */
static int unknown_setting(const char *name, const struct duet__parameter *parameters,
                           struct duet_message *message)
{
    if (!parameters || !parameters->name)
        return duet_fail(message, DUET_EINVAL,
                         "unknown parameter '%s': this workload has none beside size, tile and "
                         "precision",
                         name);
    GString *known = g_string_new(NULL);
    for (const struct duet__parameter *p = parameters; p->name; p++)
        g_string_append_printf(known, "%s%s", known->len ? ", " : "", p->name);
    int error = duet_fail(message, DUET_EINVAL, "unknown parameter '%s': this workload has %s",
                          name, known->str);
    g_string_free(known, TRUE);
    return error;
}

/* True if `value` is one of the words of "a|b|c". */
static bool is_choice(const char *choices, const char *value)
{
    size_t length = strlen(value);
    for (const char *word = choices; word; word = strchr(word, '|')) {
        word += *word == '|';
        if (strcspn(word, "|") == length && !strncmp(word, value, length))
            return true;
    }
    return false;
}

/* Parses a finite number and nothing else; with `whole`, digits only. */
static bool parse_number(const char *text, bool whole, double *out)
{
    char *end;
    if (whole && (!*text || text[strspn(text, "0123456789")]))
        return false;
    *out = g_ascii_strtod(text, &end);
    return end != text && !*end && isfinite(*out);
}

/* True if `value` is within "low..high"; `dots` points at the "..". */
static bool is_in_range(const char *range, const char *dots, const char *value)
{
    size_t low_length = (size_t)(dots - range);
    const char *high = dots + 2;
    bool whole =
        !memchr(range, '.', low_length) && !memchr(range, 'e', low_length) && !strpbrk(high, ".e");
    double number;
    return parse_number(value, whole, &number) && number >= g_ascii_strtod(range, NULL) &&
           number <= g_ascii_strtod(high, NULL);
}

static int check_setting(const struct duet__setting *setting,
                         const struct duet__parameter *parameters, struct duet_message *message)
{
    const struct duet__parameter *parameter = find_parameter(parameters, setting->name);
    if (!parameter)
        return unknown_setting(setting->name, parameters, message);
    const char *dots = strstr(parameter->values, "..");
    if (!strcmp(setting->value, parameter->initial) ||
        (dots ? is_in_range(parameter->values, dots, setting->value)
              : is_choice(parameter->values, setting->value)))
        return 0;
    return duet_fail(message, DUET_EINVAL,
                     "parameter %s = '%s' is not possible: give %s (default %s)", setting->name,
                     setting->value, parameter->values, parameter->initial);
}

int duet__problem_check(const struct duet__problem *problem,
                        const struct duet__parameter *parameters, struct duet_message *message)
{
    if (!problem->n)
        return duet_fail(message, DUET_EINVAL, "size n is 0: give 1 or more");
    if (!problem->tile || problem->tile > DUET__TILE_MAX)
        return duet_fail(message, DUET_EINVAL, "tile edge %llu is not possible: give 1 to %d",
                         (unsigned long long)problem->tile, DUET__TILE_MAX);
    return duet__settings_check(problem, parameters, message);
}

int duet__settings_check(const struct duet__problem *problem,
                         const struct duet__parameter *parameters, struct duet_message *message)
{
    if (problem->precision != 's' && problem->precision != 'd')
        return duet_fail(message, DUET_EINVAL,
                         "precision '%c' is not possible: give 's' (single) or 'd' (double)",
                         g_ascii_isprint(problem->precision) ? problem->precision : '?');
    for (size_t i = 0; i < problem->setting_count; i++) {
        int error = check_setting(&problem->settings[i], parameters, message);
        if (error)
            return error;
    }
    return 0;
}

const char *duet__setting(const struct duet__problem *problem,
                          const struct duet__parameter *parameters, const char *name)
{
    for (size_t i = problem->setting_count; i-- > 0;) {
        if (!strcmp(problem->settings[i].name, name))
            return problem->settings[i].value;
    }
    const struct duet__parameter *parameter = find_parameter(parameters, name);
    return parameter ? parameter->initial : "";
}

uint64_t duet__setting_number(const struct duet__problem *problem,
                              const struct duet__parameter *parameters, const char *name,
                              uint64_t otherwise)
{
    const char *text = duet__setting(problem, parameters, name);
    return *text && !text[strspn(text, "0123456789")] ? g_ascii_strtoull(text, NULL, 10)
                                                      : otherwise;
}
