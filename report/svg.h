/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that all SVG pictures share. */
#ifndef DUET_SVG_H
#define DUET_SVG_H

#include <glib.h>

/* Appends what printf would write, its texts escaped. The command's numbers have a '.' in every
   locale. */
void duet__svg_put(GString *svg, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Returns the step of an axis: 1, 2 or 5 times a power of ten, at most `most` of which are in a
   range > 0. */
double duet__svg_step(double range, int most);

/* Colours "#rrggbb", which begin again behind the last, readable on white and on dark grey. */
enum { DUET__SVG_COLOURS = 8 };
extern const char *const duet__svg_colours[DUET__SVG_COLOURS];

#endif
