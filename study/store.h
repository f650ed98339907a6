/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of results: a SQLite data base with one row a run in the table `runs`. Its columns are
 * what makes a run what it is (command, rep, version, platform_hash, inputs_hash), the build of
 * duet and when the row was made, the settings of its cell, and what duet__report_write_row writes
 * of it; a column that a row lacks is NULL. The table `settings` says which columns are settings,
 * and of which option.
 *
 * Rows are written in transactions: whatever ends the process, those that were committed are there
 * and the others are not. Others may read meanwhile.
 */
#ifndef DUET_STUDY_STORE_H
#define DUET_STUDY_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include <duet/error.h>

#include "study/table.h"

struct duet__store {
    sqlite3 *database;
    char *path; /* NULL: in memory */
    sqlite3_stmt *known;
    GHashTable *columns; /* of `runs` */
    bool writing;        /* in a transaction */
};

/* What makes a run what it is: no two are alike in all of it. Borrowed texts. */
struct duet__run_key {
    const char *command;                     /* with its seed */
    uint64_t rep;                            /* of a command that makes several runs */
    const char *version;                     /* of duet */
    const char *platform_hash, *inputs_hash; /* of the platform, of files beside it; "": none */
    const char *build;   /* noted only: of which commit duet is; NULL: unknown */
    const char *program; /* a setting: the program with the places of its lists; NULL: none */
};

/* What is to be done with a file. */
enum duet__store_use {
    DUET__STORE_SHOW,  /* read it: it has to be there */
    DUET__STORE_WRITE, /* add to it; it is made if it is not there */
};

/*
 * Opens a file (NULL: memory). duet__store_close closes it, also after an error. DUET_EINVAL, with
 * the file as it was, where it is something else, or of a version of duet with other tables;
 * DUET_EIO where the system says no.
 */
DUET_MUST_CHECK int duet__store_open(struct duet__store *store, const char *path,
                                     enum duet__store_use use, struct duet_message *message);

/* Commits, and leaves one file. Errors as duet__store_commit; safe on a zeroed or closed one. */
int duet__store_close(struct duet__store *store, struct duet_message *message);

/* Whether this run is there; with `failed` only if it has not failed. */
bool duet__store_has(struct duet__store *store, const struct duet__run_key *key, bool failed);

/*
 * Adds a run, or replaces it: the settings of its cell, then the members of `row`, an object of
 * JSON. The next duet__store_commit makes it last. DUET_EIO: it cannot be written, DUET_EPARSE: it
 * is no object.
 */
DUET_MUST_CHECK int duet__store_put(struct duet__store *store, const struct duet__run_key *key,
                                    const struct duet__product *product, uint64_t cell,
                                    const char *row, struct duet_message *message);

/* DUET_EIO: what was put since the last time is not there, but all before it is. */
DUET_MUST_CHECK int duet__store_commit(struct duet__store *store, struct duet_message *message);

/*
 * Adds the runs of another file that are not there, or have failed here and not there. *added: how
 * many; *differing: how many are in both with different makespans. DUET_EINVAL, DUET_EIO: none are
 * added.
 */
DUET_MUST_CHECK int duet__store_merge(struct duet__store *store, const char *path, uint64_t *added,
                                      uint64_t *differing, struct duet_message *message);

/* A statement, made as by sqlite3_mprintf, for duet__store_asked. NULL with a message: DUET_EIO. */
sqlite3_stmt *duet__store_ask(const struct duet__store *store, struct duet_message *message,
                              const char *format, ...);

/* Finalizes it. DUET_EIO where its last step failed, and was not its end: rows may be missing. */
int duet__store_asked(const struct duet__store *store, sqlite3_stmt *statement,
                      struct duet_message *message);

#endif
