/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a report, a comparison or a study as one HTML page that needs nothing else: no network, no
 * other file. Its data is the output of --json, of which the page's script makes everything. Write
 * errors are left to the one who closes the stream.
 */
#ifndef DUET_PAGE_H
#define DUET_PAGE_H

#include <stdio.h>

#include "base/files.h"
#include "report/report.h"
#include "validate/validation.h"

/*
 * Writes the page of a report of at least one policy. Those with a recording get a timeline, the
 * table of their kernels and the load of their workers, all of the first run.
 */
void duet__page_write_report(FILE *stream, const struct duet__report *report);

/* Writes the page of an explanation: cause, changes, tables, and the timeline of its run. */
void duet__page_write_why(FILE *stream, const struct duet__why *why);

/*
 * Writes the page of a comparison: the summary, first against second as a plot, a table to sort and
 * filter, for each case the explanation as bars, and the timelines of what was recorded.
 */
void duet__page_write_validation(FILE *stream, const struct duet__validation *validation);

/* Writes a page whose data is one JSON object, written by `write` with `data`. */
void duet__page_write(FILE *stream, duet__file_fn *write, const void *data);

/* ------------------------------------------------------------------------------------------- */
/* The page without its data: page.html with style sheet, d3 and scripts, put together and made an
 * object by cmake/page.cmake. The data belongs where it says @REPORT@ and @EXTRA@. */

extern const char duet__page_template[];

#endif
