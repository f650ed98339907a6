/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings as bytes, from one process to another of the same program, so that the types say it
 * all. What cannot be written is missed when it is read.
 */
#ifndef DUET_TRACE_WIRE_H
#define DUET_TRACE_WIRE_H

#include <stdio.h>

#include "trace/recording.h"

/* Reads an array of `count` elements, with room for one more: of malloc. NULL: the file is not as
   long as it says. */
void *duet__wire_read(FILE *stream, size_t count, size_t bytes);
void duet__wire_write(FILE *stream, const void *array, size_t count, size_t bytes);

/* Writes the arrays that a recording points to, names as texts with their ends. */
void duet__recording_write(FILE *stream, const struct duet__recording *recording);

/*
 * Puts what was written in place of the pointers of *out, whose counts are known; nothing if it has
 * no machine. false: a part is missing, and *out is to be freed as it is.
 */
DUET_MUST_CHECK bool duet__recording_read(FILE *stream, struct duet__recording *out);

#endif
