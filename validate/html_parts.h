/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the HTML page: what its files share. */
#ifndef DUET_HTML_PARTS_H
#define DUET_HTML_PARTS_H

#include <stdio.h>

#include "validate/report.h"

/* Style sheet and script of the page, lines ended by NULL. */
extern const char *const duet__html_style[];
extern const char *const duet__html_script[];

/* Bars of the makespans, with the lower bounds as lines. `summaries`: one a policy. */
void duet__html_makespans(FILE *stream, const struct duet_report *report,
                          const struct duet_policy_summary *summaries);

/* Table of kernels and where they ran. */
void duet__html_kernels(FILE *stream, const struct duet_recording *recording);

/* Bars of what the workers did. */
void duet__html_workers(FILE *stream, const struct duet_recording *recording);

/* The timelines as JSON, for the script. DUET_ENOMEM. */
DUET_MUST_CHECK int duet__html_timelines(FILE *stream, const struct duet_report *report,
                                         struct duet_message *message);

#endif
