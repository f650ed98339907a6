/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Gantt chart as data: rows of bars, few enough to be drawn. The SVG file and the HTML page are
 * made from it.
 */
#ifndef DUET_GANTT_H
#define DUET_GANTT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <duet/error.h>

#include "report/recording.h"

enum duet_gantt_lane {
    DUET_GANTT_KERNELS, /* of one worker */
    DUET_GANTT_IN,      /* copies to a device */
    DUET_GANTT_OUT,     /* copies from a device; one to another device stands in both rows */
};

/* What is moved by a copy, by the ends it has: the colour of its bar. */
enum duet_gantt_copy {
    DUET_GANTT_TO_DEVICE,
    DUET_GANTT_TO_HOST,
    DUET_GANTT_BETWEEN,
    DUET_GANTT_COPIES, /* how many kinds there are */
};

/* One event, or several neighbours that are too short to be told apart. */
struct duet_gantt_bar {
    double start_s, end_s;
    uint64_t id, bytes;           /* of the first event; bytes: of all */
    uint32_t colour;              /* kernel index, or enum duet_gantt_copy: the larger part's */
    uint32_t count;               /* events */
    uint16_t source, destination; /* memory nodes of the first event */
};

struct duet_gantt_row {
    const char *name; /* of the worker, or of the node; owned by the machine */
    enum duet_gantt_lane lane;
    unsigned index; /* worker (KERNELS) or memory node */
    size_t first, count;
};

struct duet_gantt {
    const struct duet_recording *recording; /* borrowed */
    struct duet_gantt_row *rows;            /* CPUs, then each device: kernels, in, out */
    size_t row_count;
    struct duet_gantt_bar *bars; /* row by row, each by start_s */
    size_t bar_count;
    double end_s; /* end of the time axis, from 0; > 0 */
};

/*
 * Builds the chart with about `max_bars` bars at most: short neighbours (shorter than what is left
 * to one bar) become one. The recording must outlive it. The caller owns it (duet_gantt_fini).
 * Errors: DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet_gantt_build(struct duet_gantt *gantt,
                                     const struct duet_recording *recording, size_t max_bars,
                                     struct duet_message *message);

/* Frees it. Safe on a zeroed chart, and twice. */
void duet_gantt_fini(struct duet_gantt *gantt);

/* Bars of the chart in a file of its own, so that it stays below a few megabytes. */
enum { DUET_GANTT_SVG_BARS = 20000 };

/*
 * Writes a self-contained SVG picture with `title` and, below it, `subtitle` (may be NULL). Write
 * errors are left for the one who closes the stream.
 */
void duet_gantt_write_svg(FILE *stream, const struct duet_gantt *gantt, const char *title,
                          const char *subtitle);

/* Colour of a kernel and of a kind of copy, "#rrggbb"; readable on white and on dark grey. */
const char *duet_gantt_kernel_colour(size_t kernel);
const char *duet_gantt_copy_colour(enum duet_gantt_copy copy);

/* What a kind of copy is called in legends. */
const char *duet_gantt_copy_name(enum duet_gantt_copy copy);

/*
 * Step of a time axis from 0 to `end_s` with about `wanted` ticks: 1, 2 or 5 times a power of ten.
 */
double duet_gantt_tick(double end_s, unsigned wanted);

/* The unit to write times of that order in: *scale of them make a second ("ms" and 1000). */
const char *duet_gantt_unit(double end_s, double *scale);

#endif
