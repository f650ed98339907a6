/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures messages between node 0 and each of the others. Node 0 tells the next step, and the
 * other node does its half of it. Sends are synchronous, as the transport's are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nodes/mpi_internal.h"

enum {
    LARGEST = 1 << (DUET__MPI_SIZES - 1),
    LEAST = 11,            /* least number of samples of a size, whatever time they take */
    MOST = 201,            /* largest number of samples of a size */
    BURST = 64,            /* messages of a stream, if BURST_BYTES allows */
    BURST_BYTES = 8 << 20, /* most bytes of a stream */
    CROSSING = 64 << 10,   /* larger messages are measured in both directions at once */
    ROOM = 16 * LARGEST,   /* each is in another place than those before, which caches may hold */
};

enum { ORDER_TAG = 1, DATA_TAG = 2 };

/* Order of node 0 to the other node to take part in a step. */
struct order {
    enum { END, PING, STREAM, UNEXPECTED } kind;
    int bytes, count;
};

struct measuring {
    MPI_Comm comm;
    int node;     /* number of the other node */
    char *data;   /* ROOM bytes */
    double end_s; /* end of the time to measure it */
    struct duet__mpi_measured *out;
};

/* Measures messages in both directions at once, as in runs: if those share something, such as the
   memory of one machine, it takes longer. Returns the seconds of a message. */
static double measure_crossing(const struct measuring *m, int bytes)
{
    static unsigned place;
    MPI_Request requests[2];
    const unsigned places = ROOM / (unsigned)bytes;
    char *out = m->data + (size_t)(place++ % places) * (size_t)bytes;
    char *in = m->data + (size_t)(place++ % places) * (size_t)bytes;
    double start = MPI_Wtime();
    MPI_Irecv(in, bytes, MPI_BYTE, m->node, DATA_TAG, m->comm, &requests[0]);
    MPI_Issend(out, bytes, MPI_BYTE, m->node, DATA_TAG, m->comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    return MPI_Wtime() - start;
}

/*
 * Does one half of an exchange: the one that sends first, or the other. Returns the seconds of a
 * message.
 */
static double exchange_ping(const struct measuring *m, int bytes, bool first)
{
    if (bytes > CROSSING)
        return measure_crossing(m, bytes);
    double start = MPI_Wtime();
    for (int half = 0; half < 2; half++)
        if ((half == 0) == first)
            MPI_Ssend(m->data, bytes, MPI_BYTE, m->node, DATA_TAG, m->comm);
        else
            MPI_Recv(m->data, bytes, MPI_BYTE, m->node, DATA_TAG, m->comm, MPI_STATUS_IGNORE);
    return (MPI_Wtime() - start) / 2;
}

/*
 * Sends or receives many messages at once, and an empty message back. Returns the seconds of each.
 */
static double exchange_stream(const struct measuring *m, int bytes, int count, bool first)
{
    MPI_Request requests[BURST];
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++)
        if (first)
            MPI_Issend(m->data, bytes, MPI_BYTE, m->node, DATA_TAG, m->comm, &requests[i]);
        else
            MPI_Irecv(m->data, bytes, MPI_BYTE, m->node, DATA_TAG, m->comm, &requests[i]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    if (first)
        MPI_Recv(NULL, 0, MPI_BYTE, m->node, ORDER_TAG, m->comm, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, m->node, ORDER_TAG, m->comm);
    return (MPI_Wtime() - start) / count;
}

static void send_order(const struct measuring *m, struct order order)
{
    MPI_Send(&order, sizeof order, MPI_BYTE, m->node, ORDER_TAG, m->comm);
}

/*
 * True if a send ends although the other node, which waits for the next order within MPI, has not
 * asked for its data. Never true if it is not eager; it may be false for an eager one if a node is
 * kept from its processor.
 */
static bool is_eager(const struct measuring *m, int bytes)
{
    enum { LOOKS = 100 };
    static const double PATIENCE_S = 2e-3;
    MPI_Request request;
    int ended = 0;
    send_order(m, (struct order){UNEXPECTED, bytes, 1});
    MPI_Isend(m->data, bytes, MPI_BYTE, m->node, DATA_TAG, m->comm, &request);
    double start = MPI_Wtime();
    for (int i = 0; !ended && (i < LOOKS || MPI_Wtime() - start < PATIENCE_S); i++)
        MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, m->node, ORDER_TAG, m->comm); /* now it may ask */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return ended;
}

/* Waits for an order of node 0, without loading the processors, which nodes being measured may
   need. */
static void await_order(const struct measuring *m)
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    for (int there = 0; !there;) {
        MPI_Iprobe(0, ORDER_TAG, m->comm, &there, MPI_STATUS_IGNORE);
        if (!there)
            nanosleep(&pause, NULL);
    }
}

/* Does the other node's half of all orders. */
static void follow_orders(const struct measuring *m)
{
    await_order(m);
    for (struct order order = {PING, 0, 0};;) {
        MPI_Recv(&order, sizeof order, MPI_BYTE, 0, ORDER_TAG, m->comm, MPI_STATUS_IGNORE);
        if (order.kind == END)
            return;
        for (int i = 0; i < order.count && order.kind == PING; i++)
            (void)exchange_ping(m, order.bytes, false);
        if (order.kind == STREAM)
            (void)exchange_stream(m, order.bytes, order.count, false);
        if (order.kind == UNEXPECTED) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, ORDER_TAG, m->comm, MPI_STATUS_IGNORE);
            MPI_Recv(m->data, order.bytes, MPI_BYTE, 0, DATA_TAG, m->comm, MPI_STATUS_IGNORE);
        }
    }
}

/* Measures exchanges of size number `size` in the given time; the first one is not kept. */
static void measure_size(const struct measuring *m, unsigned size, double seconds)
{
    struct duet__mpi_times *out = &m->out->sizes[size];
    const double end_s = MPI_Wtime() + seconds;
    const int bytes = 1 << size;
    const int burst = bytes * BURST <= BURST_BYTES ? BURST : BURST_BYTES / bytes;
    for (int i = 0; i <= MOST && (i <= LEAST || MPI_Wtime() < end_s); i++) {
        send_order(m,
                   (struct order){PING, bytes, 2}); /* the first of them finds both nodes there */
        (void)exchange_ping(m, bytes, true);
        double took_s = exchange_ping(m, bytes, true);
        if (i > 0)
            out->pings[out->ping_count++] = took_s;
        if (i % 4 != 0)
            continue;
        send_order(m, (struct order){STREAM, bytes, burst});
        took_s = exchange_stream(m, bytes, burst, true);
        if (i > 0)
            out->streams[out->stream_count++] = took_s;
    }
}

/* Returns the largest eager message from `below` to less than `above` bytes, by bisection. */
static uint64_t find_eager(const struct measuring *m, int below, int above)
{
    while (above - below > 1) {
        int middle = below + (above - below) / 2;
        bool eager = false;
        for (int i = 0; i < 4 && !eager; i++)
            eager = is_eager(m, middle);
        if (eager)
            below = middle;
        else
            above = middle;
    }
    return (uint64_t)below;
}

/* Measures everything with one node, which waits for it. */
static void measure_node(const struct measuring *m, double seconds)
{
    uint64_t eager = find_eager(m, 0, LARGEST);
    if (m->node == 1 || eager < m->out->eager_bytes)
        m->out->eager_bytes = eager;
    for (unsigned size = 0; size < DUET__MPI_SIZES; size++)
        measure_size(m, size, seconds / DUET__MPI_SIZES);
    send_order(m, (struct order){END, 0, 0});
}

/* Makes room for the times of `others` other nodes. */
static int make_times_room(struct duet__mpi_measured *out, size_t others)
{
    for (unsigned i = 0; i < DUET__MPI_SIZES; i++) {
        out->sizes[i].pings = calloc(others * MOST + 1, sizeof(double));
        out->sizes[i].streams = calloc(others * MOST + 1, sizeof(double));
        if (!out->sizes[i].pings || !out->sizes[i].streams)
            return DUET_ENOMEM;
    }
    return DUET_OK;
}

int duet__mpi_measure(double seconds, struct duet__mpi_measured *out, struct duet_message *message)
{
    struct duet__mpi *mpi;
    struct duet__mpi_place place;
    *out = (struct duet__mpi_measured){0};
    int error = duet__mpi_meet(&mpi, 0, &place, message);
    if (error)
        return error;
    struct measuring m = {.comm = mpi->data, .data = malloc(ROOM), .out = out};
    out->nodes = mpi->count;
    out->node = place.node;
    error = m.data ? DUET_OK : DUET_ENOMEM;
    if (m.data)
        memset(m.data, 1, ROOM); /* so that its pages exist */
    if (!error && out->node == 0)
        error = make_times_room(out, out->nodes - 1);
    error = duet__mpi_agree(error, message);
    if (!error && out->nodes < 2)
        error = duet_fail(message, DUET_EINVAL,
                          "messages are measured between processes: mpirun -n 2 duet calibrate "
                          "--nodes");
    if (!error && out->node > 0) {
        follow_orders(&m);
        await_order(&m); /* the end of the whole measurement */
        MPI_Recv(NULL, 0, MPI_BYTE, 0, ORDER_TAG, m.comm, MPI_STATUS_IGNORE);
    }
    for (m.node = 1; m.node < (int)out->nodes && out->node == 0 && !error; m.node++)
        measure_node(&m, seconds / (out->nodes - 1));
    for (m.node = 1; m.node < (int)out->nodes && out->node == 0 && !error; m.node++)
        MPI_Send(NULL, 0, MPI_BYTE, m.node, ORDER_TAG, m.comm);
    free(m.data);
    duet__mpi_transport()->close(mpi);
    return error;
}
