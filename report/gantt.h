/* SPDX-License-Identifier: Apache-2.0 */
/* A Gantt chart as data: rows of bars. The SVG file and the timelines of pages are made from it. */
#ifndef DUET_GANTT_H
#define DUET_GANTT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <glib.h>

#include "trace/recording.h"

enum duet__gantt_lane {
    DUET_GANTT_KERNELS, /* of one worker */
    DUET_GANTT_IN,      /* copies to a device, or messages to a node */
    DUET_GANTT_OUT,     /* copies or messages from it; one between devices, or nodes, is in both
                           rows */
};

/* Ends of a copy, which are the colour of its bar. */
enum duet__gantt_copy {
    DUET_GANTT_TO_DEVICE,
    DUET_GANTT_TO_HOST,
    DUET_GANTT_BETWEEN,
    DUET_GANTT_MESSAGE,
    DUET_GANTT_COPIES, /* number of kinds */
};

/* One event, or several neighbours that have been merged. */
struct duet__gantt_bar {
    double start_s, end_s;
    uint64_t id, bytes;           /* id: of the first event; bytes: of all */
    uint64_t colour;              /* index of the kernel, or enum duet__gantt_copy; the larger
                                     part's if merged */
    uint64_t count;               /* events */
    uint64_t source, destination; /* memory nodes of the first event */
};

struct duet__gantt_row {
    const char *name; /* worker or node; owned by the machine */
    enum duet__gantt_lane lane;
    unsigned index; /* worker (KERNELS) or memory node */
    unsigned node;  /* memory node that the row belongs to */
    GArray *bars;   /* struct duet__gantt_bar, by start_s */
};

struct duet__gantt {
    const struct duet__recording *recording; /* borrowed */
    struct duet__gantt_row *rows;            /* CPUs, then each device: kernels, in, out */
    size_t row_count, bar_count;
    size_t *places;  /* indices in `rows`, by lane and index */
    double end_s;    /* end of the time axis, from 0; > 0 */
    double merged_s; /* bars shorter than this were merged with what follows; 0: none were */
};

/*
 * Makes the chart of a recording, which must outlive it, with about `max_bars` bars at most: if
 * there are more events, short neighbours become one bar. The caller owns it (duet__gantt_fini).
 */
void duet__gantt_init(struct duet__gantt *gantt, const struct duet__recording *recording,
                      size_t max_bars);

/* Frees it. Safe on a zeroed chart, and twice. */
void duet__gantt_fini(struct duet__gantt *gantt);

/* Returns the row of a worker, or of a memory's copies; row_count: there is none (for the host's
 * copies). */
size_t duet__gantt_find(const struct duet__gantt *gantt, enum duet__gantt_lane lane,
                        unsigned index);

/* Returns a bar of a row. */
static inline const struct duet__gantt_bar *duet__gantt_bar(const struct duet__gantt_row *row,
                                                            size_t index)
{
    return &g_array_index(row->bars, struct duet__gantt_bar, index);
}

/* Most bars in a file of the chart, so that it stays below a few megabytes. */
enum { DUET_GANTT_SVG_BARS = 20000 };

/*
 * Writes a recording as a self-contained SVG picture with `title` and `subtitle`, which says so
 * where bars are merged. Write errors are left for the one who closes the stream.
 */
void duet__gantt_write_svg(FILE *stream, const struct duet__recording *recording, const char *title,
                           const char *subtitle);

/* Writes what the chart shows as CSV, a line for each kernel and copy. */
void duet__gantt_write_csv(FILE *stream, const struct duet__recording *recording);

/* Colours of kinds of copies, as duet__svg_colours are of kernels; names of these kinds in legends.
 */
extern const char *const duet__gantt_copy_colours[DUET_GANTT_COPIES];
extern const char *const duet__gantt_copy_names[DUET_GANTT_COPIES];

/* Returns the unit for times of that order; *scale of them make a second ("ms" and 1000). */
const char *duet__gantt_unit(double end_s, double *scale);

/* ------------------------------------------------------------------------------------------- */
/* Parts that all SVG pictures share. */

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
