/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a comparison: of `duet validate` and of `duet compare`. */
#ifndef DUET_CLI_VALIDATION_H
#define DUET_CLI_VALIDATION_H

#include "cli/job.h"
#include "validate/validation.h"

/*
 * Judges the cases, prints them as the options say, writes the page, and complains if a case is off
 * by more than is allowed. Returns the exit status; the caller calls duet__validation_fini.
 */
int duet__validation_show(const struct duet__job *job, struct duet__validation *validation);

#endif
