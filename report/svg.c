/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that all SVG pictures share. */
#include "report/svg.h"

#include <math.h>

const char *const duet__svg_colours[] = {"#4e79a7", "#f28e2b", "#59a14f", "#b07aa1",
                                         "#e15759", "#3aa6a0", "#d4a72c", "#9c755f"};

void duet__svg_put(GString *svg, const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    text = g_markup_vprintf_escaped(format, args);
    va_end(args);
    g_string_append(svg, text);
    g_free(text);
}

double duet__svg_step(double range, int most)
{
    const double step = range / most, power = pow(10, floor(log10(step)));

    return power * (step <= power ? 1 : step <= 2 * power ? 2 : step <= 5 * power ? 5 : 10);
}
