/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of results: a SQLite data base with one row a run in the table `runs`. Its columns are
 * the key of a run (command, rep, version, platform_hash, inputs_hash), the build of duet and the
 * date of the row, the settings of the cell, and the members that duet__report_write_row writes; a
 * column that a row lacks is NULL. The table `settings` lists the columns that are settings, and
 * their options; `studies` lists the command lines that made rows. Rows are written in
 * transactions: whatever ends the process, committed rows are there and others are not. Other
 * processes may read meanwhile.
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
    GHashTable *columns; /* names of the columns of `runs` */
    bool writing;        /* a transaction is open */
    const char *line;    /* the command line that makes rows, borrowed; NULL: unknown */
    const struct duet__product *named; /* rows are in its order of names, borrowed; NULL: by
                                          the alphabet */
};

/* The key of a run: no two runs are alike in all of it. It borrows its texts. */
struct duet__run_key {
    const char *command;                     /* with its seed */
    uint64_t rep;                            /* number of the run, if a command makes several */
    const char *version;                     /* duet's version */
    const char *platform_hash, *inputs_hash; /* hashes of the platform, and of files beside it; "":
                                                none */
    const char *build;   /* only noted: the commit that duet is of; NULL: unknown */
    const char *program; /* a setting: the program with the places of its lists; NULL: none */
};

/* The figures of a run. */
struct duet__figures {
    double makespan_s;     /* INFINITY: the run has no result */
    double gflops, best_s; /* rate; the largest lower bound of the makespan; 0: not known */
    bool estimated;        /* some kernel times are estimates */
    double status;         /* DUET__ROW_FAILED and so on; 0: the run has a result */
};

/* Returns the place of the number that a row has in this column; NULL: it is none of them. */
double *duet__figure(struct duet__figures *figures, const char *column);

/* The use of a file. */
enum duet__store_use {
    DUET__STORE_SHOW,  /* read it: it has to be there */
    DUET__STORE_WRITE, /* add to it; it is made if it is not there */
};

/*
 * Opens a file (NULL: memory). duet__store_close closes it, also after an error. Returns
 * DUET_EINVAL, with the file unchanged, if it is something else, or of a version of duet with other
 * tables; DUET_EIO if the system refuses.
 */
DUET_MUST_CHECK int duet__store_open(struct duet__store *store, const char *path,
                                     enum duet__store_use use, struct duet_message *message);

/* Commits, and leaves one file. Returns errors of duet__store_commit; safe on a zeroed or closed
   store. */
int duet__store_close(struct duet__store *store, struct duet_message *message);

/* True if this run is in the store, with its figures; with `failed` only if it has not failed.
 *why: its error, for g_free; NULL: it has none. */
bool duet__store_has(struct duet__store *store, const struct duet__run_key *key, bool failed,
                     struct duet__figures *figures, char **why);

/*
 * Adds a run, or replaces it: the settings of its cell, then the members of `row`, an object of
 * JSON. The next duet__store_commit makes it last. Returns DUET_EIO if it cannot be written,
 * DUET_EPARSE if it is no object.
 */
DUET_MUST_CHECK int duet__store_put(struct duet__store *store, const struct duet__run_key *key,
                                    const struct duet__product *product, uint64_t cell,
                                    const char *row, struct duet_message *message);

/* Commits. Returns DUET_EIO if the rows since the last commit are lost; all before are there. */
DUET_MUST_CHECK int duet__store_commit(struct duet__store *store, struct duet_message *message);

/*
 * Adds the runs of another file that are not there, or have failed here and not there. *added:
 * their number; *differing: number of runs in both with different makespans. Returns DUET_EINVAL or
 * DUET_EIO: none are added.
 */
DUET_MUST_CHECK int duet__store_merge(struct duet__store *store, const char *path, uint64_t *added,
                                      uint64_t *differing, struct duet_message *message);

/* Makes a statement as by sqlite3_mprintf, for duet__store_asked. Returns NULL, and a message, if
   that fails: DUET_EIO. */
sqlite3_stmt *duet__store_ask(const struct duet__store *store, struct duet_message *message,
                              const char *format, ...);

/* Finalizes a statement. Returns DUET_EIO if its last step failed and was not its end: rows may be
   missing. */
int duet__store_asked(const struct duet__store *store, sqlite3_stmt *statement,
                      struct duet_message *message);

#endif
