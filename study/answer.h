/* SPDX-License-Identifier: Apache-2.0 */
/* What a file of results says: the best setting for each case, and how sure that is. */
#ifndef DUET_STUDY_ANSWER_H
#define DUET_STUDY_ANSWER_H

#include <stdio.h>

#include "study/store.h"

/*
 * Prints a table with a line for each case: each combination of the settings that vary and are not
 * chosen over. Of those that are (`best`: names of options, "tile,policy"; NULL: policy, tile and
 * others that one is free to choose; "": none), it says which are best there, by the mean
 * makespan of their runs, and how far before the second. With three runs or more of both, whose
 * differences are taken seed by seed, there is an interval of the lead in percent: of Student's t,
 * 95 % for all comparisons of a case together (Bonferroni). Where a run was made several times, by
 * several versions or on a platform that has changed, its newest result counts. Of many cases some
 * are shown, unless `every`. DUET_EINVAL: `best` names something else; DUET_EIO.
 */
DUET_MUST_CHECK int duet__study_show(FILE *stream, const struct duet__store *store,
                                     const char *best, bool every, struct duet_message *message);

/* Prints all rows, with all that is known of them, as CSV. DUET_EIO. */
DUET_MUST_CHECK int duet__study_csv(FILE *stream, const struct duet__store *store,
                                    struct duet_message *message);

#endif
