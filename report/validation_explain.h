/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the text for terminals that explains the errors. */
#ifndef DUET_VALIDATION_EXPLAIN_H
#define DUET_VALIDATION_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "validate/validation.h"

/* Over all cases, then of the worst three, or of all cases if `verbose`; nothing if none is known.
 */
void duet__put_explanation(FILE *stream, const struct duet_validation *validation,
                           const struct duet_validation_figures *figures, bool verbose);

#endif
