/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, member after member. A name is that of a member of an object, NULL in an array. */
#ifndef DUET_CLI_EMIT_H
#define DUET_CLI_EMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Where it is written. Initialise the stream only. */
struct duet__emit {
    FILE *stream;
    unsigned depth; /* objects and arrays that are open */
    unsigned line;  /* the depth of the one that stands on one line with all in it; 0: none does */
    bool more;      /* something stands before the next member */
};

/* Begins an object ('{') or an array ('['), and ends it ('}', ']'). */
void duet__emit_open(struct duet__emit *json, const char *name, char bracket);
void duet__emit_close(struct duet__emit *json, char bracket);

/* Members. A text that is NULL, and a number that is not finite, are null. */
void duet__emit_text(struct duet__emit *json, const char *name, const char *text);
void duet__emit_number(struct duet__emit *json, const char *name, double value);
void duet__emit_count(struct duet__emit *json, const char *name, uint64_t value);
void duet__emit_flag(struct duet__emit *json, const char *name, bool value);
void duet__emit_null(struct duet__emit *json, const char *name);

#endif
