/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are either whole or not there, and the few ways in which reports write text into them.
 */
#ifndef DUET_REPORT_FILE_H
#define DUET_REPORT_FILE_H

#include <stdio.h>

#include <duet/error.h>

/* A file being written. Zero-initialise. */
struct duet_output {
    FILE *stream;    /* write here */
    char *path;      /* what it is going to be */
    char *temporary; /* what it is meanwhile; NULL where `path` is no ordinary file (/dev/stdout) */
};

/*
 * Opens a temporary file beside `path` (beside its target, where it is a symbolic link). Errors:
 * DUET_EIO with a message that names the file, DUET_ENOMEM; output is then closed.
 */
DUET_MUST_CHECK int duet_output_open(struct duet_output *output, const char *path,
                                     struct duet_message *message);

/*
 * Ends the file and gives it its name, replacing an older one at once. On error (DUET_EIO with a
 * message) the older one stays and the temporary file is removed. Closed in both cases.
 */
DUET_MUST_CHECK int duet_output_commit(struct duet_output *output, struct duet_message *message);

/* Removes the temporary file and closes. Safe on a closed output. */
void duet_output_discard(struct duet_output *output);

/* Writes text for XML and HTML, in elements and in quoted attributes. */
void duet_write_xml_text(FILE *stream, const char *text);

#endif
