/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the HTML page of a comparison: what its files share. */
#ifndef DUET_HTML_CASES_H
#define DUET_HTML_CASES_H

#include <stdio.h>

#include <glib.h>

#include "report/output.h"
#include "validate/validation.h"

/* Style sheet beside that of a report's page, and the script, lines ended by NULL. The script has
 * the functions that draw timelines between its two parts. */
extern const char *const duet__html_cases_style[];
extern const char *const duet__html_cases_script[];
extern const char *const duet__html_cases_script_end[];

enum {
    DUET__HTML_PAIRS = 24,       /* cases with timelines in a page */
    DUET__HTML_PAIR_BARS = 1200, /* about so many bars in each timeline */
};

/* How cases are told apart in plots: workloads by colour, policies by form. Names are borrowed. */
struct duet__marks {
    GPtrArray *workloads, *policies;
};

struct duet__marks duet__marks_of(const struct duet_validation *validation);
void duet__marks_fini(struct duet__marks *marks);

/* The mark of a case as a small picture in text. */
void duet__html_mark(FILE *stream, const struct duet__marks *marks, const struct duet_case *the);

/* What the marks mean, as a list. */
void duet__html_marks_legend(FILE *stream, const struct duet__marks *marks);

/* First against second, both axes logarithmic, with the line of equality; nothing without cases
 * that have both. */
void duet__html_scatter(FILE *stream, const struct duet_validation *validation,
                        const struct duet_validation_figures *figures,
                        const struct duet__marks *marks);

/* The errors along a line for each workload. */
void duet__html_strip(FILE *stream, const struct duet_validation *validation,
                      const struct duet_validation_figures *figures,
                      const struct duet__marks *marks);

/* A case in an element that a mark and a tip belong to: opens and closes a link to its details. */
void duet__html_mark_at(FILE *stream, const struct duet_validation *validation,
                        const struct duet_validation_figures *figures,
                        const struct duet__marks *marks, size_t index, double x, double y);

/* Where the errors of all cases come from, as bars; nothing if no case is explained. */
void duet__html_causes(FILE *stream, const struct duet_validation *validation,
                       const struct duet_validation_figures *figures);

/* Every case with its explanation, some with timelines. DUET_ENOMEM. */
DUET_MUST_CHECK int duet__html_details(FILE *stream, const struct duet_validation *validation,
                                       const struct duet_validation_figures *figures,
                                       struct duet_message *message);

static inline void duet__html_text(FILE *stream, const char *before, const char *text,
                                   const char *after)
{
    fputs(before, stream);
    duet_write_xml_text(stream, text);
    fputs(after, stream);
}

/* The same of a text that is then freed. */
static inline void duet__html_own(FILE *stream, const char *before, char *text, const char *after)
{
    duet__html_text(stream, before, text, after);
    g_free(text);
}

#endif
