/* SPDX-License-Identifier: Apache-2.0 */
/* Measures messages from memory to memory of two processes, to and fro, and many at once, by calls
 * of MPI alone and through duet's transport. mpirun -n 2 build/bench/messages */
#include <mpi.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "nodes/mpi.h"

enum { MANY = 51200, MOST_BYTES = 4 << 20, DEPTH = 64 };

static int rank;
static char *memory;

static double cpu_s(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* ------------------------------------------------------------------------------------------- */
/* MPI alone                                                                                    */

static void finish(MPI_Request *request)
{
    int ended = 0;
    while (!ended)
        MPI_Test(request, &ended, MPI_STATUS_IGNORE);
}

/* Sends to and fro, by the calls that the transport makes. */
static void to_and_fro(size_t bytes, unsigned times)
{
    for (unsigned i = 0; i < 2 * times; i++) {
        MPI_Request request;
        if (i % 2 == (unsigned)rank)
            MPI_Issend(memory, (int)bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &request);
        else
            MPI_Irecv(memory, (int)bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &request);
        finish(&request);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* The transport                                                                                */

static struct duet__mpi *mpi;
static struct exchange {
    struct duet__message message;
    size_t bytes;
    unsigned left; /* number of messages to begin */
} exchanges[DEPTH];
static sem_t ended;
static bool returns; /* arrived messages go back */

static int piece_of(const struct duet_handle *handle, duet__piece_fn give, void *arg)
{
    const struct exchange *exchange = (const void *)handle;
    return give(arg, &(struct duet__piece){.to = memory,
                                           .from = memory,
                                           .column_bytes = exchange->bytes,
                                           .cols = 1,
                                           .to_pitch = exchange->bytes,
                                           .from_pitch = exchange->bytes});
}

static double now(const struct duet_runtime *core)
{
    return MPI_Wtime();
}

static void failed(struct duet__nodes *nodes, int error, const char *why)
{
    (void)fprintf(stderr, "messages: %d, %s\n", error, why);
    exit(1);
}

static void begin(struct exchange *exchange)
{
    exchange->left--;
    duet__mpi_transport()->ready(mpi, &exchange->message);
}

static void done(struct duet__message *message, int status)
{
    struct exchange *exchange = (void *)message->handle;
    if (status)
        failed(NULL, status, "a message has failed");
    message->turn++;
    if (returns) {
        unsigned from = message->from;
        message->from = message->to;
        message->to = from;
        message->arrives = !message->arrives;
    }
    if (exchange->left)
        begin(exchange);
    else
        sem_post(&ended);
}

/* Exchanges `depth` messages at a time, each `times` times, from rank 0. */
static void exchange(size_t bytes, unsigned times, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++) {
        exchanges[i] = (struct exchange){.message = {.tag = i,
                                                     .from = 0,
                                                     .to = 1,
                                                     .bytes = bytes,
                                                     .arrives = rank == 1,
                                                     .handle = (void *)&exchanges[i]},
                                         .bytes = bytes,
                                         .left = times};
        begin(&exchanges[i]);
    }
    for (unsigned i = 0; i < depth; i++)
        while (sem_wait(&ended))
            ;
}

static void to_and_fro_through(size_t bytes, unsigned times)
{
    returns = true;
    exchange(bytes, 2 * times, 1);
}

/* ------------------------------------------------------------------------------------------- */
/* Many at once                                                                                 */

static void many(size_t bytes, unsigned times)
{
    MPI_Request requests[DEPTH];
    for (unsigned i = 0; i < times; i += DEPTH) {
        for (unsigned k = 0; k < DEPTH; k++)
            if (rank == 0)
                MPI_Issend(memory, (int)bytes, MPI_BYTE, 1, (int)k, MPI_COMM_WORLD, &requests[k]);
            else
                MPI_Irecv(memory, (int)bytes, MPI_BYTE, 0, (int)k, MPI_COMM_WORLD, &requests[k]);
        MPI_Waitall(DEPTH, requests, MPI_STATUSES_IGNORE);
    }
}

static void many_through(size_t bytes, unsigned times)
{
    returns = false;
    exchange(bytes, times / DEPTH, DEPTH);
}

/* ------------------------------------------------------------------------------------------- */

static void measure(const char *name, void (*run)(size_t bytes, unsigned times), size_t bytes,
                    unsigned times, unsigned messages)
{
    enum { ROUNDS = 5 };
    double best_s = 1e9, cpu = 1e9;
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (mpi)
            (void)duet__mpi_transport()->barrier(mpi);
        else
            MPI_Barrier(MPI_COMM_WORLD);
        double start_s = MPI_Wtime(), cpu_start_s = cpu_s();
        run(bytes, times);
        double took_s = MPI_Wtime() - start_s, used_s = cpu_s() - cpu_start_s;
        best_s = took_s < best_s ? took_s : best_s;
        cpu = used_s < cpu ? used_s : cpu;
    }
    if (rank == 0)
        printf("%-14s %9zu %10.2f %10.3f %10.2f\n", name, bytes, best_s / messages * 1e6,
               (double)bytes * messages / best_s * 1e-9, cpu / messages * 1e6);
    (void)fflush(stdout);
}

static void measure_all(const char *name, void (*run)(size_t, unsigned), const char *name_many,
                        void (*run_many)(size_t, unsigned))
{
    for (size_t bytes = 8; bytes <= MOST_BYTES; bytes *= bytes < 4096 ? 512 : 32) {
        unsigned times = bytes < 100000 ? 500 : (unsigned)(100000000 / bytes);
        measure(name, run, bytes, times, 2 * times);
    }
    measure(name_many, run_many, 8, MANY, MANY);
    measure(name_many, run_many, 4096, MANY / 4, MANY / 4);
}

int main(void)
{
    static const struct duet__mpi_calls calls = {done, failed, piece_of, now};
    struct duet__mpi_place place;
    struct duet_message message = {""};
    struct duet__mpi *opened;
    memory = calloc(1, MOST_BYTES);
    (void)sem_init(&ended, 0, 0);
    if (!memory || duet__mpi_meet(&opened, 2, &place, &message)) {
        (void)fprintf(stderr, "messages: %s\n", message.text);
        return 1;
    }
    rank = (int)place.node;
    if (rank == 0)
        printf("%-14s %9s %10s %10s %10s\n", "", "bytes", "us", "GB/s", "CPU us");
    measure_all("MPI", to_and_fro, "many", many);
    duet__mpi_start(opened, NULL, NULL, &calls);
    mpi = opened;
    measure_all("transport", to_and_fro_through, "many through", many_through);
    duet__mpi_transport()->close(mpi);
    free(memory);
    return 0;
}
