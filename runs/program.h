/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that make their task graphs themselves, with libduet, as workloads: each run is a
 * process of its own, which is told by its environment what to be (world, policy, seed, ...), and
 * leaves its trace.
 */
#ifndef DUET_RUNS_PROGRAM_H
#define DUET_RUNS_PROGRAM_H

#include "runs/monitor.h"
#include "runs/request.h"
#include "trace/run.h"

/*
 * Makes a program the workload of a request: `argv`, NULL-ended, has it and its arguments, and is
 * kept by the request and its copies. It is called as its file is, in letters that a name can have.
 * DUET_EINVAL where there is none, DUET_ENOTFOUND where it cannot be run, with a message.
 */
DUET_MUST_CHECK int duet__program_take(struct duet__request *request, char *const *argv,
                                       struct duet_message *message);

/*
 * Runs the program of a request once, under a policy, with the request's configuration and seed,
 * and reads what it leaves into a zeroed run (NULL: it is a warm-up), with its recording,
 * or without `records` with no more of that than the machine of one node. Its
 * standard input is empty, its output is dropped, and of what it says on standard error the last
 * line is in the message if it fails. The platform that the request has in memory is the program's.
 * A signal that the monitor notes ends it (NULL: who forked this process does, by its process
 * group). DUET_ECANCELED for that, and where a signal ended the program; DUET_ETASK where it has
 * failed or left no trace, or several; DUET_EIO.
 */
DUET_MUST_CHECK int duet__program_run(const struct duet__request *request, const char *policy,
                                      struct duet__monitor *monitor, bool records,
                                      struct duet__run *run, struct duet_message *message);

#endif
