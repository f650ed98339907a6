/* SPDX-License-Identifier: Apache-2.0 */
/* Writing calibration files: every number with the digits that read back as the same one. */
#include "platforms/description.h"
#include "platforms/json.h"

static void append_number(GString *text, const char *key, double value)
{
    char digits[DUET__DIGITS_MAX];

    g_string_append_printf(text, ", \"%s\": %s", key, duet__digits(value, digits));
}

/* What is 0 was not measured. */
static void append_known(GString *text, const char *key, double value)
{
    if (value > 0)
        append_number(text, key, value);
}

/* An array up to its last element that is not 0; nothing where all are. */
static void append_list(GString *text, const char *key, const double *values, unsigned count)
{
    char digits[DUET__DIGITS_MAX];

    g_string_append_printf(text, ",\n         \"%s\": [", key);
    for (unsigned i = 0; i < count; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", duet__digits(values[i], digits));
    g_string_append_c(text, ']');
}

static unsigned count_known(const double *values, unsigned count)
{
    while (count > 0 && !(values[count - 1] > 0))
        count--;
    return count;
}

static void append_conditions(GString *text, const struct duet_point *point)
{
    bool any = false;

    for (unsigned i = 0; i < DUET_CONDITIONS; i++) {
        const struct duet_conditioned *c = &point->conditions[i];

        if (c->samples == 0)
            continue;
        g_string_append(text,
                        any ? ",\n                        " : ",\n         \"conditions\": [");
        g_string_append_printf(text, "{\"cold\": %s, \"busy\": %s, \"samples\": %" G_GUINT64_FORMAT,
                               i & DUET_CONDITION_COLD ? "true" : "false",
                               i & DUET_CONDITION_BUSY ? "true" : "false", c->samples);
        append_number(text, "mean_s", c->mean_s);
        append_number(text, "median_s", c->median_s);
        append_number(text, "deviation_s", c->deviation_s);
        g_string_append_c(text, '}');
        any = true;
    }
    if (any)
        g_string_append_c(text, ']');
}

static void append_point(GString *text, const struct duet_point *p)
{
    unsigned near = count_known(p->near_s, DUET_OPERANDS);
    unsigned far = count_known(p->far_s, DUET_OPERANDS);

    /* the reader wants at least one: what has none was given, not measured */
    g_string_append_printf(text, "{\"samples\": %" G_GUINT64_FORMAT, MAX(p->samples, 1));
    append_number(text, "size", p->size);
    append_number(text, "work", p->work);
    append_number(text, "mean_s", p->mean_s);
    append_number(text, "deviation_s", p->deviation_s);
    append_known(text, "median_s", p->median_s);
    if (p->rejected > 0)
        g_string_append_printf(text, ", \"rejected\": %" G_GUINT64_FORMAT, p->rejected);
    append_known(text, "base_s", p->base_s);
    append_known(text, "busy_ratio", p->busy_ratio);
    if (near > 0)
        append_list(text, "near_s", p->near_s, near);
    if (far > 0)
        append_list(text, "far_s", p->far_s, far);
    if (count_known(p->quantiles, DUET_QUANTILES) > 0)
        append_list(text, "quantiles", p->quantiles, DUET_QUANTILES);
    append_known(text, "run_deviation", p->run_deviation);
    append_conditions(text, p);
}

static void append_curve(GString *text, const struct duet_curve *curve,
                         const struct duet__origin *origin)
{
    g_string_append_printf(text, "\n    {\n      \"kernel\": \"%s\",\n      \"arch\": \"%s\",\n",
                           curve->kernel, curve->arch);
    if (curve->context[0] != '\0')
        g_string_append_printf(text, "      \"context\": \"%s\",\n", curve->context);
    g_string_append(text, "      \"origin\": ");
    duet__append_string(text, origin != NULL ? origin->curve
                                             : "copied from the platform it was made from");
    g_string_append(text, ",\n      \"points\": [");
    for (size_t i = 0; i < curve->count; i++) {
        const struct duet_point *p = &curve->points[i];
        const char *own = origin != NULL ? duet__origin_own(origin, p->work) : NULL;

        g_string_append_printf(text, "%s\n        ", i > 0 ? "," : "");
        append_point(text, p);
        if (own != NULL) {
            g_string_append(text, ", \"origin\": ");
            duet__append_string(text, own);
        }
        g_string_append_c(text, '}');
    }
    g_string_append(text, "\n      ]\n    }");
}

char *duet__format_calibration(const struct duet_calibration *calibration, const GPtrArray *origins)
{
    GString *text = g_string_new("{\n  \"schema\": 1,\n  \"curves\": [");

    for (size_t i = 0; i < calibration->count; i++) {
        g_string_append(text, i > 0 ? "," : "");
        append_curve(text, &calibration->curves[i],
                     origins != NULL ? g_ptr_array_index(origins, i) : NULL);
    }
    g_string_append(text, "\n  ]\n}\n");
    return g_string_free(text, FALSE);
}
