/* SPDX-License-Identifier: Apache-2.0 */
/* A report as one HTML page that needs nothing else: no network, no other file. */
#ifndef DUET_HTML_H
#define DUET_HTML_H

#include <stdio.h>

#include <duet/error.h>

#include "report/report.h"

/* Bars of one policy's timeline in a page. */
enum { DUET_HTML_BARS = 60000 };

/*
 * Writes the page. Policies with a recording get a timeline, the table of their kernels and the
 * load of their workers, all of the first run. Write errors are left to the one who closes the
 * stream. Errors: DUET_ENOMEM, DUET_EINVAL (a policy without runs).
 */
DUET_MUST_CHECK int duet_html_write(FILE *stream, const struct duet_report *report,
                                    struct duet_message *message);

#endif
