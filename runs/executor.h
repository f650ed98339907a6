/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that execute jobs: a child of this process for each job, with which ends what the job
 * breaks or leaves open, and workers on other machines. A job is a number, and its result is bytes.
 */
#ifndef DUET_RUNS_EXECUTOR_H
#define DUET_RUNS_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <duet/error.h>

/*
 * Executes a job in a child and writes its result, which the child flushes, and no other stream.
 * The child has all that its parent had when the job was given, but an empty standard input,
 * standard error as its output, and SIGINT, SIGTERM and SIGHUP ignored.
 */
typedef void duet__execute_fn(uint64_t job, FILE *result, void *data);

/* A job that has ended, with its result. */
struct duet__ended {
    uint64_t job;
    char *result; /* `length` bytes with a zero behind them, for free; NULL: its process has died,
                     or was lost */
    size_t length;
    bool lost;                   /* true if the worker on another machine, or the server, is gone */
    struct duet_message message; /* how the process died; "" if it did not, or was lost */
};

struct duet__executor;

/* Returns an executor with room for `children` jobs at a time in this process's children. */
struct duet__executor *duet__executor_new(unsigned children, duet__execute_fn *execute, void *data);

/* Returns true while this process may execute another job: the ones so far have left nothing. */
typedef bool duet__fresh_fn(void);

/*
 * Has servers, a process each, execute the jobs in place of this process: for many short jobs,
 * since after a fork each page that this process writes to is copied. A server executes them itself
 * while `fresh` says so; where it does not any more, or is NULL, each job has a child. A job that
 * kills a server is lost with it. To be called before the first job.
 */
void duet__executor_settle(struct duet__executor *executor, duet__fresh_fn *fresh);

/* Ends the jobs at work and frees the executor. NULL is fine. */
void duet__executor_free(struct duet__executor *executor);

/* Number of jobs that can be given; with `here` to children of this process. */
unsigned duet__executor_idle(const struct duet__executor *executor, bool here);

/* Number of jobs that are at work. */
unsigned duet__executor_busy(const struct duet__executor *executor);

/*
 * Gives a job to a child, or without `here` also to a worker on another machine; one of them is
 * idle. DUET_EIO with a message: no process can be started.
 */
DUET_MUST_CHECK int duet__executor_give(struct duet__executor *executor, uint64_t job, bool here,
                                        struct duet_message *message);

/* Waits at most `seconds` for a job to end. Returns false if none has. */
DUET_MUST_CHECK bool duet__executor_take(struct duet__executor *executor, double seconds,
                                         struct duet__ended *ended);

/* Ends the jobs from `first` to `last` at which processes here are. They leave nothing. Returns
   their number. */
unsigned duet__executor_end(struct duet__executor *executor, uint64_t first, uint64_t last);

/* Adds a worker on another machine, which serves this connection. SIGPIPE is ignored. */
void duet__executor_add(struct duet__executor *executor, int connection);

/*
 * Executes the jobs that come by a connection, itself or in children, as duet__executor_settle has
 * it, until the other side or `parent`, which has forked this process, ends. Closes the connection.
 * Signals of a terminal are ignored: the other side has them.
 */
void duet__executor_serve(int connection, pid_t parent, duet__execute_fn *execute, void *data,
                          duet__fresh_fn *fresh);

/* Sends or receives all bytes by a file. Returns false if the other side is gone. */
bool duet__send(int file, const void *data, size_t bytes);
bool duet__receive(int file, void *data, size_t bytes);

#endif
