/* SPDX-License-Identifier: Apache-2.0 */
/* Opens MPI, and finds the other processes. */
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nodes/mpi_internal.h"

/* Number of open runtimes. MPI is opened once a process, and closed at its end. */
static atomic_int open_runtimes;
static atomic_bool agreed;    /* this process has agreed with the others on something */
static struct notice parting; /* notice of a process that has left the others; error 0: none has */

/*
 * Runs at the end of the process. Without duet_close the others would wait for this one for ever.
 */
static void finalize_mpi(void)
{
    int finalized;
    MPI_Finalized(&finalized);
    if (finalized)
        return;
    if (atomic_load(&open_runtimes)) {
        int node;
        MPI_Comm_rank(MPI_COMM_WORLD, &node);
        (void)
            fprintf(stderr,
                    "duet: node %d: the process ends without duet_close, and all others with it\n",
                    node);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    MPI_Finalize();
}

/* Makes MPI's symbols global: Open MPI opens parts of its own that find its functions by their
   names alone, and a module's libraries are private to it. */
static void share_symbols(void)
{
    Dl_info of;
    if (dladdr((void *)(uintptr_t)MPI_Init_thread, &of) && of.dli_fname)
        (void)dlopen(of.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

static int open_mpi(struct duet_message *message)
{
    int initialized, finalized, threads;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (finalized)
        return duet_fail(message, DUET_EINVAL,
                         "the program has finalised MPI, which cannot be opened again: open the "
                         "runtime before");
    if (initialized) {
        MPI_Query_thread(&threads);
        if (threads < (atomic_load(&open_runtimes) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED))
            return duet_fail(message, DUET_EINVAL,
                             "MPI was opened for too few threads: nodes need MPI_Init_thread with "
                             "MPI_THREAD_SERIALIZED at least, and MPI_THREAD_MULTIPLE if the "
                             "program calls MPI as well, or opens two runtimes at once");
        return DUET_OK;
    }
    share_symbols();
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &threads))
        return duet_fail(message, DUET_EIO, "MPI cannot be opened");
    if (threads < MPI_THREAD_SERIALIZED) {
        MPI_Finalize();
        return duet_fail(message, DUET_EABSENT, "this MPI is for one thread only: nodes need more");
    }
    (void)atexit(finalize_mpi);
    return DUET_OK;
}

static unsigned size_of(MPI_Comm processes, unsigned *position)
{
    int count, rank;
    MPI_Comm_size(processes, &count);
    MPI_Comm_rank(processes, &rank);
    *position = (unsigned)rank;
    return (unsigned)count;
}

/* Finds the processes on this machine, and those of them that may use the same cores. */
static void look_around(struct duet__mpi_place *place)
{
    MPI_Comm beside, sharers;
    cpu_set_t cores;
    uint32_t hash = 2166136261; /* FNV-1a: a number of the set of cores */
    CPU_ZERO(&cores);
    (void)sched_getaffinity(0, sizeof cores, &cores);
    for (size_t i = 0; i < sizeof cores; i++)
        hash = (hash ^ ((const unsigned char *)&cores)[i]) * 16777619;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &beside);
    MPI_Comm_split(beside, (int)(hash >> 1), 0, &sharers);
    place->beside = size_of(beside, &place->position);
    place->sharers = size_of(sharers, &place->share);
    MPI_Comm_free(&sharers);
    MPI_Comm_free(&beside);
}

static int check_count(unsigned nodes, int count, struct duet_message *message)
{
    if (count == (int)nodes || nodes == 0)
        return DUET_OK;
    return duet_fail(message, DUET_EINVAL,
                     "%u nodes are wanted, and there %s %d process%s: start the program with "
                     "mpirun -n %u, of the MPI that duet was built with",
                     nodes, count == 1 ? "is" : "are", count, count == 1 ? "" : "es", nodes);
}

static void make_communicators(struct duet__mpi *mpi)
{
    int *most, there;
    MPI_Comm_dup(MPI_COMM_WORLD, &mpi->data);
    MPI_Comm_dup(MPI_COMM_WORLD, &mpi->control);
    MPI_Comm_set_errhandler(mpi->data, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(mpi->control, MPI_ERRORS_RETURN);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &there);
    mpi->most_tag = there ? *most : 32767; /* guaranteed by the standard */
}

static int init_synchronisation(struct duet__mpi *mpi)
{
    pthread_condattr_t clock;
    if (pthread_condattr_init(&clock))
        return DUET_ENOMEM;
    int error = pthread_condattr_setclock(&clock, CLOCK_MONOTONIC) ||
                pthread_cond_init(&mpi->wake, &clock) || pthread_cond_init(&mpi->changed, NULL) ||
                pthread_mutex_init(&mpi->lock, NULL);
    pthread_condattr_destroy(&clock);
    return error ? DUET_ENOMEM : DUET_OK;
}

void duet__mpi_leave(struct duet__mpi *mpi)
{
    MPI_Comm_free(&mpi->data);
    MPI_Comm_free(&mpi->control);
    pthread_cond_destroy(&mpi->wake);
    pthread_cond_destroy(&mpi->changed);
    pthread_mutex_destroy(&mpi->lock);
    duet__outbox_free(mpi->outbox);
    free(mpi->meeting.mine);
    free(mpi->meeting.all);
    free(mpi->meeting.sizes);
    free(mpi->requests);
    free(mpi->statuses);
    free(mpi->ended);
    free(mpi->under_way);
    free(mpi);
    atomic_fetch_sub(&open_runtimes, 1);
}

int duet__mpi_meet(struct duet__mpi **out, unsigned nodes, struct duet__mpi_place *place,
                   struct duet_message *message)
{
    int count, node, error = open_mpi(message);
    *out = NULL;
    if (error)
        return error;
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    MPI_Comm_rank(MPI_COMM_WORLD, &node);
    place->node = (unsigned)node;
    struct duet__mpi *mpi = calloc(1, sizeof *mpi + (size_t)count);
    uint64_t *sizes = calloc((size_t)count, sizeof *sizes);
    error = check_count(nodes, count, message);
    if (!error && (!mpi || !sizes || duet__outbox_new(&mpi->outbox, (unsigned)count) ||
                   init_synchronisation(mpi)))
        error = duet_fail(message, DUET_ENOMEM, "no memory left for %d nodes", count);
    /* an error in one process alone would leave the others waiting */
    error = duet__mpi_agree(error, message);
    if (error || !mpi) {
        if (mpi)
            duet__outbox_free(mpi->outbox);
        free(sizes);
        free(mpi);
        return error;
    }
    mpi->meeting.sizes = sizes;
    mpi->node = (unsigned)node;
    mpi->count = (unsigned)count;
    mpi->ready_end = &mpi->ready;
    look_around(place);
    make_communicators(mpi);
    atomic_fetch_add(&open_runtimes, 1);
    *out = mpi;
    return DUET_OK;
}

/*
 * Finds how far this node's clock is ahead of node 0's: by the quickest of some questions, half of
 * whose time the answer took (Cristian, Distributed Computing 3, 1989).
 */
void duet__mpi_compare_clocks(struct duet__mpi *mpi)
{
    enum { QUESTIONS = 20 };
    double best_s = INFINITY, theirs = 0;
    for (unsigned node = 1; node < mpi->count && !mpi->node; node++)
        for (unsigned i = 0; i < QUESTIONS; i++) {
            MPI_Recv(NULL, 0, MPI_BYTE, (int)node, CLOCK_TAG, mpi->control, MPI_STATUS_IGNORE);
            theirs = mpi->calls->now(mpi->core);
            MPI_Send(&theirs, 1, MPI_DOUBLE, (int)node, CLOCK_TAG, mpi->control);
        }
    for (unsigned i = 0; i < QUESTIONS && mpi->node; i++) {
        double before = mpi->calls->now(mpi->core);
        MPI_Send(NULL, 0, MPI_BYTE, 0, CLOCK_TAG, mpi->control);
        MPI_Recv(&theirs, 1, MPI_DOUBLE, 0, CLOCK_TAG, mpi->control, MPI_STATUS_IGNORE);
        double after = mpi->calls->now(mpi->core);
        if (after - before < best_s) {
            best_s = after - before;
            mpi->ahead_s = before + best_s / 2 - theirs;
        }
    }
}

/* Returns the error that a process has told all, with its message; above 0, a signal's number. */
static int told_error(const struct notice *notice, struct duet_message *message)
{
    *message = (struct duet_message){""};
    return duet_fail(message, notice->error, "%s", notice->why);
}

/*
 * Agrees by three numbers of each process, of which the least counts: its own number or, without an
 * error, one more than the largest, or, with a signal, one below 0, as signals go first; false if
 * it has no error; false if it leaves. If all fail and there is no signal, each keeps its own
 * error.
 */
static int agree_all(int error, bool stays, struct duet_message *message)
{
    enum { FIRST, FAILS, STAYS, NUMBERS };
    struct notice notice = {.error = error};
    int count, node, least[NUMBERS];
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    MPI_Comm_rank(MPI_COMM_WORLD, &node);
    int mine[NUMBERS] = {error > 0 ? node - count : error ? node : count, error != 0, stays};
    MPI_Allreduce(mine, least, NUMBERS, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (least[FIRST] == count)
        return DUET_OK;
    const char *text = error > 0        ? strsignal(error)
                       : *message->text ? message->text
                                        : duet_strerror(error);
    const bool all_fail = least[FAILS] && least[FIRST] >= 0;
    const bool as_it_is = all_fail || strncmp(text, "node ", 5) == 0;
    if (as_it_is || snprintf(notice.why, sizeof notice.why, "node %d: %s", node, text) < 0)
        (void)snprintf(notice.why, sizeof notice.why, "%s", text);
    if (!all_fail)
        MPI_Bcast(&notice, sizeof notice, MPI_BYTE, (least[FIRST] + count) % count, MPI_COMM_WORLD);
    if (!least[STAYS])
        parting = notice;
    return all_fail ? error : told_error(&notice, message);
}

int duet__mpi_agree(int error, struct duet_message *message)
{
    struct duet_message own = {""};
    int initialized;
    MPI_Initialized(&initialized);
    if (!initialized && open_mpi(&own)) {
        *message = own;
        return DUET_EIO;
    }
    agreed = true;
    return parting.error ? told_error(&parting, message) : agree_all(error, true, message);
}

void duet__mpi_decline(const char *why)
{
    struct duet_message message = {""};
    if (!agreed && !open_mpi(&message) &&
        agree_all(duet_fail(&message, DUET_ECANCELED, "%s", why), false, &message))
        return;
}

int duet__mpi_spread(void *data, size_t bytes, unsigned *count, unsigned *near,
                     struct duet_message *message)
{
    MPI_Comm node;
    int all, beside;
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &beside);
    MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    *count = (unsigned)all;
    *near = (unsigned)beside;
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* MPI datatypes for data in place. */

enum { RUN_BYTES = 1 << 30 }; /* the most of one run: MPI counts by an int */

/* Pieces of a datum: the first one alone while it is a matrix, else all runs of bytes. */
struct pieces {
    struct duet__piece matrix;
    unsigned count;
    size_t run_count, run_capacity;
    MPI_Aint *at;
    int *bytes;
    bool nowhere; /* data has no address, since nothing is computed */
};

/*
 * Buffer for data without an address, shared by all such messages. Buffers are kept until the
 * process ends: new ones take several times as long to write to.
 */
struct room {
    struct room *before; /* smaller; it may still be in use */
    size_t bytes;
    char data[];
};

static struct room *rooms; /* the newest is the largest */
static pthread_mutex_t rooms_lock = PTHREAD_MUTEX_INITIALIZER;

static int add_run(struct pieces *pieces, char *at, size_t bytes)
{
    while (bytes) {
        size_t some = bytes < RUN_BYTES ? bytes : RUN_BYTES;
        if (pieces->run_count == pieces->run_capacity) {
            size_t capacity = 2 * pieces->run_capacity + 16;
            MPI_Aint *more = realloc(pieces->at, capacity * sizeof *more);
            int *lengths = more ? realloc(pieces->bytes, capacity * sizeof *lengths) : NULL;
            pieces->at = more ? more : pieces->at;
            pieces->bytes = lengths ? lengths : pieces->bytes;
            if (!more || !lengths)
                return DUET_ENOMEM;
            pieces->run_capacity = capacity;
        }
        MPI_Get_address(at, &pieces->at[pieces->run_count]);
        pieces->bytes[pieces->run_count++] = (int)some;
        at += some;
        bytes -= some;
    }
    return DUET_OK;
}

/*
 * Adds the runs of a piece, column after column: for a triangle those between its ends, see struct
 * duet__piece.
 */
static int add_runs(struct pieces *pieces, const struct duet__piece *piece)
{
    bool slanted = piece->end || piece->end_step;
    int error = DUET_OK;
    for (size_t col = 0; col < piece->cols && !error; col++) {
        size_t first = piece->first + col * piece->first_step;
        size_t end = slanted ? piece->end + col * piece->end_step : piece->column_bytes;
        error = add_run(pieces, (char *)piece->to + col * piece->to_pitch + first, end - first);
    }
    return error;
}

static int add_piece(void *arg, const struct duet__piece *piece)
{
    struct pieces *pieces = arg;
    pieces->nowhere |= !piece->to;
    if (pieces->nowhere)
        return DUET_OK;
    bool plain = !piece->first && !piece->first_step && !piece->end && !piece->end_step;
    if (!pieces->count++ && plain) {
        pieces->matrix = *piece;
        return DUET_OK;
    }
    int error = DUET_OK;
    if (pieces->matrix.cols) {
        error = add_runs(pieces, &pieces->matrix);
        pieces->matrix.cols = 0;
    }
    return error ? error : add_runs(pieces, piece);
}

static int commit_type(int made, MPI_Datatype *type)
{
    return made || MPI_Type_commit(type) ? DUET_EIO : DUET_OK;
}

/* Makes the type of any runs of bytes, at absolute addresses. */
static int runs_type(const struct pieces *pieces, struct layout *out)
{
    if (pieces->run_count > INT_MAX)
        return DUET_EINVAL;
    *out = (struct layout){.address = MPI_BOTTOM, .count = 1};
    return commit_type(MPI_Type_create_hindexed((int)pieces->run_count, pieces->bytes, pieces->at,
                                                MPI_BYTE, &out->type),
                       &out->type);
}

/*
 * Makes the type of one matrix or of all runs. Types are not kept for the next message: making one
 * takes 0.6 us.
 */
static int make_type(struct pieces *pieces, struct layout *out)
{
    const struct duet__piece *matrix = &pieces->matrix;
    bool dense = matrix->cols == 1 || matrix->to_pitch == matrix->column_bytes;
    if (!matrix->cols)
        return runs_type(pieces, out);
    *out = (struct layout){.address = matrix->to, .count = 1, .type = MPI_BYTE};
    if (dense && matrix->column_bytes * matrix->cols <= INT_MAX) {
        out->count = (int)(matrix->column_bytes * matrix->cols);
        return DUET_OK;
    }
    if (matrix->column_bytes <= INT_MAX && matrix->cols <= INT_MAX)
        return commit_type(MPI_Type_create_hvector((int)matrix->cols, (int)matrix->column_bytes,
                                                   (MPI_Aint)matrix->to_pitch, MPI_BYTE,
                                                   &out->type),
                           &out->type);
    int error = add_runs(pieces, matrix);
    return error ? error : runs_type(pieces, out);
}

static int room_layout(size_t bytes, struct layout *out)
{
    pthread_mutex_lock(&rooms_lock);
    struct room *room = rooms;
    if (!room || room->bytes < bytes) {
        const size_t more = 2 * bytes;
        room = calloc(1, sizeof *room + more);
        if (room) {
            room->before = rooms;
            room->bytes = more;
            rooms = room;
        }
    }
    pthread_mutex_unlock(&rooms_lock);
    return room ? duet__mpi_layout_bytes(room->data, bytes, out) : DUET_ENOMEM;
}

int duet__mpi_layout(const struct duet__mpi_calls *calls, const struct duet_handle *handle,
                     size_t bytes, struct layout *out)
{
    struct pieces pieces = {.count = 0};
    int error = calls->pieces(handle, add_piece, &pieces);
    if (!error && pieces.nowhere)
        error = room_layout(bytes, out);
    else if (!error)
        error = make_type(&pieces, out);
    free(pieces.at);
    free(pieces.bytes);
    return error;
}

int duet__mpi_layout_bytes(void *address, size_t bytes, struct layout *out)
{
    struct pieces pieces = {.matrix = {.to = address, .column_bytes = bytes, .cols = 1}};
    int error = make_type(&pieces, out);
    free(pieces.at);
    free(pieces.bytes);
    return error;
}

void duet__mpi_layout_end(struct layout *layout)
{
    if (layout->type != MPI_BYTE)
        MPI_Type_free(&layout->type);
}
