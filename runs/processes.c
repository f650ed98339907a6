/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of one run agree on. */
#include "runs/processes.h"

#include "nodes/mpi.h"

int duet__processes_agree(const struct duet__request *request, struct duet__monitor *monitor,
                          int error, struct duet_message *message)
{
    const int number = duet__monitor_signal(monitor);

    if (number)
        error = number;
    if (duet__request_nodes(request) > 1 && !request->config.simulate)
        error = duet__mpi_agree(error, message);
    if (error > 0 && !number)
        atomic_store(&monitor->number, error);
    return error;
}

void duet__processes_decline(const char *why)
{
    duet__mpi_decline(why);
}
