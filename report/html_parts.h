/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the HTML page: what its files share. */
#ifndef DUET_HTML_PARTS_H
#define DUET_HTML_PARTS_H

#include <stdio.h>

#include "report/report.h"

/* Style sheet of the pages, lines ended by NULL. */
extern const char *const duet__html_style[];

/*
 * Script of the page of a report, in three parts, lines ended by NULL: sorts tables and reads the
 * timelines into `data`; functions that draw timelines, which find `data` and draw what `charts`
 * holds; makes the charts and the buttons.
 */
extern const char *const duet__html_script_tables[];
extern const char *const duet__html_script_timelines[];
extern const char *const duet__html_script_end[];

/* Bars of the makespans, with the lower bounds as lines. `summaries`: one a policy. */
void duet__html_makespans(FILE *stream, const struct duet_report *report,
                          const struct duet_policy_summary *summaries);

/* Table of kernels and where they ran. */
void duet__html_kernels(FILE *stream, const struct duet_recording *recording);

/* Bars of what the workers did. */
void duet__html_workers(FILE *stream, const struct duet_recording *recording);

/*
 * Timelines as JSON, for the script: one for each of `count` recordings, all on one time axis,
 * whose dates have `digits` digits behind the first, with about `max_bars` bars each. A kernel of
 * one name has one colour in all of them. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__html_timelines(FILE *stream,
                                         const struct duet_recording *const *recordings,
                                         size_t count, size_t max_bars, int digits,
                                         struct duet_message *message);

#endif
