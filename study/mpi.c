/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI, in a process of its own that ends when it has said where to meet: its threads, its handlers
 * of signals and its changes of how memory is mapped have no place where simulations are forked.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nodes/mpi.h"
#include "study/study.h"

/* The findings of that process; the data are behind them. */
struct finding {
    int error;
    unsigned size, near;
    struct duet_message message;
};

static void share(int to, void *data, size_t bytes)
{
    struct finding found = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    found.error = duet__mpi_spread(data, bytes, &found.size, &found.near, &found.message);
    _exit(duet__send(to, &found, sizeof found) && duet__send(to, data, bytes) ? EXIT_SUCCESS
                                                                              : EXIT_FAILURE);
}

int duet__mpi_share(unsigned count, void *data, size_t bytes, unsigned *near,
                    struct duet_message *message)
{
    struct finding found = {0};
    int ends[2];
    pid_t child = pipe(ends) ? -1 : fork();
    bool good;
    if (child < 0)
        return duet_fail(message, DUET_EIO, "cannot start a process for MPI");
    if (!child)
        share(ends[1], data, bytes);
    close(ends[1]);
    good = duet__receive(ends[0], &found, sizeof found) && duet__receive(ends[0], data, bytes);
    close(ends[0]);
    waitpid(child, NULL, 0);
    *near = found.near;
    if (!good)
        return duet_fail(message, DUET_EIO, "MPI does not bring the %u ranks together", count);
    if (found.error)
        return duet_fail(message, found.error, "this is one of %u ranks, but %s", count,
                         found.message.text);
    if (found.size != count)
        return duet_fail(message, DUET_EIO,
                         "this is one of %u ranks, of which MPI sees %u: start it with the "
                         "launcher of the MPI that duet was built with (srun --mpi=pmix)",
                         count, found.size);
    return 0;
}
