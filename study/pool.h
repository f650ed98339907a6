/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker processes that make the runs of a study, on behalf of one coordinator, which alone has the
 * file of results. What goes to a worker and what comes back is plain data: it may be on another
 * machine.
 */
#ifndef DUET_STUDY_POOL_H
#define DUET_STUDY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <duet/error.h>

/* What a worker is to do. */
struct duet__work {
    uint64_t cell, rep;
    uint64_t losses; /* workers on other machines that were lost with it */
};

/* "status" of a row without a result, which has an "error", too. */
enum {
    DUET__ROW_FAILED = 1,  /* something went wrong */
    DUET__ROW_REFUSED = 2, /* there is no such simulation */
    DUET__ROW_SYSTEM = 3,  /* the system had no means for it (a full disk): it is not noted */
};

/* What it has done. */
struct duet__done {
    struct duet__work work;
    char *rows; /* objects of JSON, a line each; for g_free. NULL: the worker has died */
    struct duet_message message; /* of how it died; "": nobody knows, it was on another machine */
};

/*
 * Does it, in a worker: the rows, for g_free. What it needs it finds in `data`, as that was when
 * the worker was forked.
 */
typedef char *duet__work_fn(const struct duet__work *work, void *data);

struct duet__pool;

/*
 * Starts workers, which ignore the signals that end a process: duet__pool_free ends them, and so
 * does the end of this process. NULL with a message where the system has no means for them.
 */
struct duet__pool *duet__pool_new(unsigned count, duet__work_fn *work, void *data,
                                  struct duet_message *message);

/* Also those that are at work. NULL is fine. */
void duet__pool_free(struct duet__pool *pool);

/* Workers that have nothing to do, with `here` on this machine; those that have. */
unsigned duet__pool_idle(const struct duet__pool *pool, bool here);
unsigned duet__pool_busy(const struct duet__pool *pool);

/* Gives it to an idle worker, of which there is one. */
void duet__pool_give(struct duet__pool *pool, const struct duet__work *work, bool here);

/*
 * Waits so long for one that has done its work. 1: there is one; 0: none has. In place of a worker
 * that has died there is a new one. DUET_EIO: that could not be started.
 */
DUET_MUST_CHECK int duet__pool_take(struct duet__pool *pool, double seconds,
                                    struct duet__done *done, struct duet_message *message);

/* Adds a worker on another machine, to which this is the connection. */
void duet__pool_add(struct duet__pool *pool, int connection);

/* What a worker is, with its ends of pipes or a connection, until it or its parent ends. */
_Noreturn void duet__pool_work(int from, int to, duet__work_fn *work, void *data, pid_t parent);

/* All of it. false: the other side is gone. */
bool duet__send(int to, const void *data, size_t bytes);
bool duet__receive(int from, void *data, size_t bytes);

#endif
