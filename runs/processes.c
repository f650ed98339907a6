/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the processes of one run agree. */
#include "runs/processes.h"

#include "nodes/mpi.h"

bool duet__processes_share(const struct duet__request *request)
{
    return duet__request_nodes(request) > 1 && !request->config.simulate;
}

int duet__processes_agree(bool together, struct duet__monitor *monitor, int error,
                          struct duet_message *message)
{
    const int number = duet__monitor_signal(monitor);

    if (number)
        error = number;
    if (together)
        error = duet__mpi_agree(error, message);
    if (error > 0 && !number)
        duet__monitor_adopt(monitor, error);
    return error;
}

void duet__processes_decline(const char *why)
{
    duet__mpi_decline(why);
}
