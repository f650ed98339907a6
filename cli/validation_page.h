/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a comparison as a file: of `duet validate` and of `duet compare`. */
#ifndef DUET_CLI_VALIDATION_PAGE_H
#define DUET_CLI_VALIDATION_PAGE_H

#include "validate/validation.h"

/* Writes it, whole or not at all. Exit status, after a complaint where it could not be written. */
int duet__validation_page(const char *path, const struct duet_validation *validation,
                          const struct duet_validation_figures *figures);

#endif
