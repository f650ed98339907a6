/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a comparison: of `duet validate` and of `duet compare`. */
#ifndef DUET_CLI_VALIDATION_H
#define DUET_CLI_VALIDATION_H

#include "cli/job.h"
#include "validate/validation.h"

/*
 * Judges the cases, prints them as the options say, writes the page, and complains where a case is
 * off by more than is allowed. Exit status; duet__validation_fini afterwards.
 */
int duet__validation_show(const struct duet__job *job, struct duet__validation *validation);

#endif
