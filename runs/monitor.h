/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread beside runs on this machine: draws their progress, and gives them up when a signal asks
 * for the end of the process. A second signal ends the process at once; the first one's echo does
 * not. After the first one the process ends, too, where no kernel or copy begins or ends, or a
 * runtime does not open, for three seconds. Where a policy crashes or calls exit(), a line says so
 * before the process ends.
 */
#ifndef DUET_RUNS_MONITOR_H
#define DUET_RUNS_MONITOR_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include <duet/duet.h>

/* ------------------------------------------------------------------------------------------- */
/* Progress bar on standard error, where that is a terminal                                     */

/* State of a progress bar. Zero-initialise, then duet__progress_init. */
struct duet__progress {
    bool shown;     /* true if standard error is a terminal, and a bar was not forbidden */
    bool drawn;     /* true if there is a bar to be removed */
    uint64_t total; /* tasks of all runs */
    uint64_t run_count;
    uint64_t before_tasks, before_runs; /* finished before those told to duet__progress_draw */
    double start_s;
};

void duet__progress_init(struct duet__progress *progress, bool wanted, uint64_t total,
                         uint64_t run_count);

/* Draws the bar: `done` tasks, `runs` finished runs. */
void duet__progress_draw(struct duet__progress *progress, uint64_t done, uint64_t runs);

/* Draws the bar at this share of the whole, and beside it what is being done. */
void duet__progress_say(struct duet__progress *progress, double share, const char *what);

/* Removes the bar: call before anything else is written on the terminal. */
void duet__progress_clear(struct duet__progress *progress);

/* ------------------------------------------------------------------------------------------- */
/* Runs that are watched                                                                        */

/* Signals that are waited for, by one thread. */
struct duet__signals {
    sigset_t watched, mask;      /* signals waited for; the mask before */
    struct sigaction actions[4]; /* the actions before */
};

/*
 * Holds back the signals that end a process, but for those that are ignored, and with `children`
 * that of the end of a child, so that they can be waited for. Threads that are there already hand
 * them on; threads that are started from now on block them.
 */
void duet__signals_hold(struct duet__signals *signals, bool children);
/*
 * Waits at most `seconds`, below 1, for a held signal. Returns the number of the one that came; 0:
 * none did, or it was the end of a child, or the echo of the first one: the same signal from the
 * same process once more, as timeout(1) sends it.
 */
int duet__signals_take(const struct duet__signals *signals, double seconds);
/* Lets signals go: one that comes from now on does what it did before; but once a signal was taken,
   it ends the process, unless it is that one's echo. */
void duet__signals_release(struct duet__signals *signals);

/* A monitor of runs. Zero-initialise, then duet__monitor_start. */
struct duet__monitor {
    /* runtime at work; taken out by whoever uses it, so that it is not closed meanwhile */
    _Atomic(struct duet_runtime *) runtime;
    _Atomic(uint64_t) before, finished_runs; /* tasks before this run; runs over */
    atomic_int number;                       /* number of the signal that came; 0: none */
    atomic_uint node;                        /* 1 and this process's number; 0: no other process */
    atomic_uint opening;                     /* 1 and looks while a runtime opens; 0: none does */
    atomic_bool over;
    GThread *thread;
    struct duet__signals signals;
    struct duet__progress progress;
    uint64_t tasks; /* number of tasks of one run */
    /* The monitor's thread alone uses the members below. */
    bool signalled;       /* true if a signal has come to this process */
    int stuck_worker;     /* result of duet_worker_scheduling at the last look */
    unsigned stuck_looks; /* looks after the signal with the same worker and steps */
    uint64_t stuck_steps; /* steps of duet_worker_scheduling at the last look */
    bool told;            /* true if it was said that this process waits */
};

/*
 * Starts a monitor, before any runtime is opened (so that no thread of one takes a signal). `bar`
 * as in duet__progress_init; `tasks` are those of each of the `runs`. Ignored signals stay so.
 */
void duet__monitor_start(struct duet__monitor *monitor, bool bar, uint64_t tasks, uint64_t runs);

/* Ends a monitor. A signal that comes from now on does what it did before duet__monitor_start; but
   after one was adopted it is held back to the end of the process, which is to report. */
void duet__monitor_stop(struct duet__monitor *monitor);

/* Tells the monitor that a runtime is about to open under this policy, for its lines; NULL: it is
   closed, or has not opened. The text is borrowed until the next call or duet__monitor_stop. */
void duet__monitor_open(struct duet__monitor *monitor, const char *policy);

/* Show a runtime to the monitor; take it away again, before it is closed. */
void duet__monitor_watch(struct duet__monitor *monitor, struct duet_runtime *runtime);
void duet__monitor_leave(struct duet__monitor *monitor);

/* Counts a finished run in that runtime; NULL: in a process of its own. */
void duet__monitor_count(struct duet__monitor *monitor, const struct duet_runtime *runtime);

/* Acts as if a signal had come that came to another process; its own is then no second one. */
void duet__monitor_adopt(struct duet__monitor *monitor, int number);

/* Returns the number of the signal that came; 0: none. */
int duet__monitor_signal(struct duet__monitor *monitor);

#endif
