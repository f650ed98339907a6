/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: counts what a program sends over MPI, by MPI's profiling interface. When it
 * finalises MPI each process adds a line "MESSAGES BYTES" to the file messages.txt of its folder.
 * Collectives count as the fewest messages that do it. MPI_Pcontrol(1) begins anew, MPI_Pcontrol(0)
 * ends it.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static atomic_ullong messages, bytes;
static atomic_bool ended;

static void count(unsigned long long sent, int elements, MPI_Datatype type)
{
    int size = 0;
    if (atomic_load(&ended))
        return;
    MPI_Type_size(type, &size);
    atomic_fetch_add(&messages, sent);
    atomic_fetch_add(&bytes, sent * (unsigned long long)elements * (unsigned long long)size);
}

#define BLOCKING(name)                                                                             \
    int MPI_##name(const void *data, int elements, MPI_Datatype type, int to, int tag,             \
                   MPI_Comm comm)                                                                  \
    {                                                                                              \
        count(to != MPI_PROC_NULL, elements, type);                                                \
        return PMPI_##name(data, elements, type, to, tag, comm);                                   \
    }
#define STARTED(name)                                                                              \
    int MPI_##name(const void *data, int elements, MPI_Datatype type, int to, int tag,             \
                   MPI_Comm comm, MPI_Request *request)                                            \
    {                                                                                              \
        count(to != MPI_PROC_NULL, elements, type);                                                \
        return PMPI_##name(data, elements, type, to, tag, comm, request);                          \
    }
BLOCKING(Send)
BLOCKING(Ssend)
BLOCKING(Rsend)
BLOCKING(Bsend)
STARTED(Isend)
STARTED(Issend)
STARTED(Irsend)

/* Returns the number of other processes, and whether this one is the root. */
static unsigned long long others(MPI_Comm comm, int root, bool *is_root)
{
    int size = 1, rank = 0;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    *is_root = rank == root;
    return (unsigned long long)(size - 1);
}

int MPI_Bcast(void *data, int elements, MPI_Datatype type, int root, MPI_Comm comm)
{
    bool is_root;
    unsigned long long sent = others(comm, root, &is_root);
    count(is_root ? sent : 0, elements, type);
    return PMPI_Bcast(data, elements, type, root, comm);
}

int MPI_Reduce(const void *data, void *result, int elements, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm)
{
    bool is_root;
    (void)others(comm, root, &is_root);
    count(is_root ? 0 : 1, elements, type);
    return PMPI_Reduce(data, result, elements, type, op, root, comm);
}

int MPI_Allreduce(const void *data, void *result, int elements, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    bool is_root;
    (void)others(comm, 0, &is_root);
    count(is_root ? 0 : 2, elements, type);
    return PMPI_Allreduce(data, result, elements, type, op, comm);
}

int MPI_Pcontrol(const int level, ...)
{
    if (level) {
        atomic_store(&messages, 0);
        atomic_store(&bytes, 0);
    }
    atomic_store(&ended, level == 0);
    return MPI_SUCCESS;
}

int MPI_Finalize(void)
{
    static const char name[] = "messages.txt";
    char line[64];
    int file = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
    int length =
        snprintf(line, sizeof line, "%llu %llu\n", atomic_load(&messages), atomic_load(&bytes));
    if (file < 0 || write(file, line, (size_t)length) != length)
        perror(name);
    if (file >= 0)
        close(file);
    return PMPI_Finalize();
}
