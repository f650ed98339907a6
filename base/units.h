/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers in options and variables, read strictly: the whole text has to be one, or the message
 * says which option, what was given, and what it should look like. On error, DUET_EINVAL, the
 * results are unchanged.
 */
#ifndef DUET_BASE_UNITS_H
#define DUET_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include <duet/machine.h>

/* The most that is taken of what has no limit of its own. */
enum { UNITS_GPU_WINDOW_MAX = DUET_WINDOW_MAX, UNITS_GPU_STREAMS_MAX = 64 };

/* A whole number from `low` to `high`, digits only. */
DUET_MUST_CHECK int duet__parse_count(const char *option, const char *text, uint64_t low,
                                      uint64_t high, uint64_t *out, struct duet_message *message);

/* A decimal number >= low and < high. */
DUET_MUST_CHECK int duet__parse_real(const char *option, const char *text, double low, double high,
                                     double *out, struct duet_message *message);

/* A part above 0, as a percentage: "5%" is 0.05. Its sign may be left out where that is said. */
DUET_MUST_CHECK int duet__parse_percent(const char *option, const char *text, bool sign,
                                        double *out, struct duet_message *message);

/*
 * The memory of a GPU: a size in bytes, > 0, or a part of what there is, above 0 % and at most
 * 100 %: "80%". Sizes are "6GiB", "500MB", "1.5GB", or a plain whole number of bytes; units are B,
 * kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (of 1024). Sets one of *bytes and *share
 * (at most 1) and the other to 0.
 */
DUET_MUST_CHECK int duet__parse_memory(const char *option, const char *text, uint64_t *bytes,
                                       double *share, struct duet_message *message);

/* Reads how much may be page-locked: a size, or "none". */
DUET_MUST_CHECK int duet__parse_pin(const char *option, const char *text, uint64_t *bytes,
                                    bool *none, struct duet_message *message);

/*
 * Bytes per second, > 0, a size with a unit and "/s": "12GB/s"; or "2x": a factor > 0 of what there
 * is. The other one is 0.
 */
DUET_MUST_CHECK int duet__parse_change(const char *option, const char *text, double *bandwidth,
                                       double *factor, struct duet_message *message);

/* Seconds, from 0 to an hour, with a unit: "1us", "250ns", "2ms", "0.5s", or "0". */
DUET_MUST_CHECK int duet__parse_seconds(const char *option, const char *text, double *out,
                                        struct duet_message *message);

/*
 * A watchdog's time, as in struct duet_config: seconds, without unit, from a hundredth; "never"
 * gives -1.
 */
DUET_MUST_CHECK int duet__parse_watchdog(const char *option, const char *text, double *out,
                                         struct duet_message *message);

/*
 * Parses "A,B,C", each of which may be a range of numbers, with a unit or without: "1..8",
 * "960..9600:960" (steps of 960), "1..64*2" (each twice the one before), "1x..8x*2". Adds them to
 * `values` (char *, of g_malloc): what they should be else, nobody looks at here, and they may be
 * empty. DUET_EINVAL where one stands twice, or there are more than 100,000.
 */
DUET_MUST_CHECK int duet__parse_list(const char *option, const char *text, GPtrArray *values,
                                     struct duet_message *message);

#endif
