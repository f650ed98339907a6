/* SPDX-License-Identifier: Apache-2.0 */
/* The transport over MPI, in its module: MPI is opened when a program runs on several nodes. */
#include "runtime/modules/module.h"

int duet__mpi_meet(struct duet__mpi **out, unsigned nodes, struct duet__mpi_place *place,
                   struct duet_message *message)
{
    const struct duet__mpi_module *mpi = duet__module_open("mpi", message);
    *out = NULL;
    return mpi ? mpi->meet(out, nodes, place, message) : DUET_EABSENT;
}

int duet__mpi_agree(int error, struct duet_message *message)
{
    struct duet_message own = {""};
    const struct duet__mpi_module *mpi = duet__module_open("mpi", &own);
    if (mpi)
        return mpi->agree(error, message);
    *message = own;
    return DUET_EABSENT;
}

void duet__mpi_decline(const char *why)
{
    const struct duet__mpi_module *mpi = duet__module_open("mpi", NULL);
    if (mpi)
        mpi->decline(why);
}

int duet__mpi_spread(void *data, size_t bytes, unsigned *count, unsigned *near,
                     struct duet_message *message)
{
    const struct duet__mpi_module *mpi = duet__module_open("mpi", message);
    return mpi ? mpi->spread(data, bytes, count, near, message) : DUET_EABSENT;
}

/* The functions below are called with results of duet__mpi_meet: the module is open. */

void duet__mpi_start(struct duet__mpi *mpi, struct duet_runtime *core, struct duet__nodes *nodes,
                     const struct duet__mpi_calls *calls)
{
    const struct duet__mpi_module *module = duet__module_open("mpi", NULL);
    if (module)
        module->start(mpi, core, nodes, calls);
}

const struct duet__transport *duet__mpi_transport(void)
{
    const struct duet__mpi_module *module = duet__module_open("mpi", NULL);
    return module ? module->transport() : NULL;
}

int duet__mpi_measure(double seconds, struct duet__mpi_measured *out, struct duet_message *message)
{
    const struct duet__mpi_module *mpi = duet__module_open("mpi", message);
    *out = (struct duet__mpi_measured){0};
    return mpi ? mpi->measure(seconds, out, message) : DUET_EABSENT;
}
