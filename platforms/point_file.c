/* SPDX-License-Identifier: Apache-2.0 */
/* One measured point of a calibration file, with what caches and neighbours do to it. */
#include <string.h>

#include "platforms/description.h"
#include "platforms/json.h"

static const double MOST_WORK = 1e24;
static const double MOST_SECONDS = 1e9;
static const double MOST_RATIO = 1e9;    /* of two times, both measured */
static const double MOST_DEVIATION = 10; /* relative */
static const uint64_t MOST_SAMPLES = UINT64_C(1) << 53;

/* Work is under "flops", "bytes" or "work" (either); a curve has the one of its first point. */
static int read_work(const struct duet__json *at, const char **unit, double *work)
{
    static const char *const units[] = {"flops", "bytes", "work"};
    const char *own = NULL;
    struct duet__json member;

    for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
        member = duet__json_member(at, units[i]);
        if (!duet__json_present(&member))
            continue;
        if (own != NULL)
            return duet__json_fail(at, DUET_EPARSE, "has both %s and %s", own, units[i]);
        own = units[i];
    }
    if (own == NULL)
        return duet__json_fail(at, DUET_EPARSE, "expected one of flops, bytes and work");
    if (*unit != NULL && strcmp(*unit, own) != 0)
        return duet__json_fail(at, DUET_EPARSE, "has %s where the points before have %s", own,
                               *unit);
    *unit = own;
    member = duet__json_member(at, own);
    return duet__json_number(&member, 1e-9, MOST_WORK, work);
}

/* Reads member `key` if it is there; otherwise leaves `value` alone. */
static int read_optional(const struct duet__json *at, const char *key, double most, double *value)
{
    struct duet__json member = duet__json_member(at, key);

    return duet__json_present(&member) ? duet__json_number(&member, 0, most, value) : DUET_OK;
}

/* The same for an array of numbers; what it does not have stays. */
static int read_list(const struct duet__json *at, const char *key, unsigned least, unsigned most,
                     double limit, double *values)
{
    struct duet__json list = duet__json_member(at, key);
    unsigned count = 0;
    int error;

    if (!duet__json_present(&list))
        return DUET_OK;
    error = duet__json_array(&list, least, most, &count);
    for (unsigned i = 0; i < count && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(&list, i);

        error = duet__json_number(&element, 0, limit, &values[i]);
    }
    return error;
}

static int read_quantiles(const struct duet__json *at, double quantiles[DUET_QUANTILES])
{
    struct duet__json list = duet__json_member(at, "quantiles");
    int error = read_list(at, "quantiles", DUET_QUANTILES, DUET_QUANTILES, MOST_RATIO, quantiles);

    for (unsigned i = 1; i < DUET_QUANTILES && error == DUET_OK; i++) {
        if (quantiles[i] < quantiles[i - 1]) {
            struct duet__json element = duet__json_element(&list, i);

            error = duet__json_fail(&element, DUET_EPARSE,
                                    "%g after %g, expected them in ascending order", quantiles[i],
                                    quantiles[i - 1]);
        }
    }
    return error;
}

static int read_condition(const struct duet__json *at, struct duet_point *point)
{
    static const char *const known[] = {"cold",     "busy",        "samples", "mean_s",
                                        "median_s", "deviation_s", NULL};
    struct duet_conditioned value = {0};
    double *const times[] = {&value.mean_s, &value.median_s, &value.deviation_s};
    const char *const *const names = &known[3];
    bool flags[2] = {false, false};
    struct duet_conditioned *condition;
    struct duet__json member;
    int error = duet__json_keys(at, known);

    for (unsigned i = 0; i < G_N_ELEMENTS(flags) && error == DUET_OK; i++) {
        member = duet__json_member(at, known[i]);
        error = duet__json_boolean(&member, &flags[i]);
    }
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "samples");
    error = duet__json_integer(&member, 1, MOST_SAMPLES, &value.samples);
    for (unsigned i = 0; i < G_N_ELEMENTS(times) && error == DUET_OK; i++) {
        member = duet__json_member(at, names[i]);
        error = duet__json_number(&member, 0, MOST_SECONDS, times[i]);
    }
    if (error != DUET_OK)
        return error;
    condition = &point->conditions[(flags[0] ? DUET_CONDITION_COLD : 0) |
                                   (flags[1] ? DUET_CONDITION_BUSY : 0)];
    if (condition->samples > 0)
        return duet__json_fail(at, DUET_EPARSE, "this condition is there twice");
    *condition = value;
    return DUET_OK;
}

static int read_conditions(const struct duet__json *at, struct duet_point *point)
{
    struct duet__json list = duet__json_member(at, "conditions");
    unsigned count = 0;
    int error;

    if (!duet__json_present(&list))
        return DUET_OK;
    error = duet__json_array(&list, 0, DUET_CONDITIONS, &count);
    for (unsigned i = 0; i < count && error == DUET_OK; i++) {
        struct duet__json element = duet__json_element(&list, i);

        error = read_condition(&element, point);
    }
    return error;
}

/* What only `duet calibrate` measures. */
static int read_details(const struct duet__json *at, struct duet_point *point)
{
    struct duet__json rejected = duet__json_member(at, "rejected");
    int error = DUET_OK;

    if (duet__json_present(&rejected))
        error = duet__json_integer(&rejected, 0, MOST_SAMPLES, &point->rejected);
    if (error == DUET_OK)
        error = read_optional(at, "median_s", MOST_SECONDS, &point->median_s);
    if (error == DUET_OK)
        error = read_optional(at, "base_s", MOST_SECONDS, &point->base_s);
    if (error == DUET_OK)
        error = read_list(at, "near_s", 0, DUET_OPERANDS, MOST_SECONDS, point->near_s);
    if (error == DUET_OK)
        error = read_list(at, "far_s", 0, DUET_OPERANDS, MOST_SECONDS, point->far_s);
    if (error == DUET_OK)
        error = read_optional(at, "busy_ratio", MOST_RATIO, &point->busy_ratio);
    if (error == DUET_OK)
        error = read_quantiles(at, point->quantiles);
    if (error == DUET_OK)
        error = read_optional(at, "run_deviation", MOST_DEVIATION, &point->run_deviation);
    return error == DUET_OK ? read_conditions(at, point) : error;
}

int duet__read_point(const struct duet__json *at, const char **unit, struct duet_point *point)
{
    static const char *const known[] = {"size",       "flops",       "bytes",     "work",
                                        "mean_s",     "deviation_s", "samples",   "origin",
                                        "rejected",   "median_s",    "base_s",    "near_s",
                                        "far_s",      "busy_ratio",  "quantiles", "run_deviation",
                                        "conditions", NULL};
    struct duet__json member;
    int error = duet__json_keys(at, known);

    if (error == DUET_OK)
        error = read_work(at, unit, &point->work);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "size");
    error = duet__json_number(&member, 0, MOST_WORK, &point->size);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "mean_s");
    error = duet__json_number(&member, 1e-12, MOST_SECONDS, &point->mean_s);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "deviation_s");
    error = duet__json_number(&member, 0, MOST_SECONDS, &point->deviation_s);
    if (error != DUET_OK)
        return error;
    member = duet__json_member(at, "samples");
    error = duet__json_integer(&member, 1, MOST_SAMPLES, &point->samples);
    return error == DUET_OK ? read_details(at, point) : error;
}
