/* SPDX-License-Identifier: Apache-2.0 */
/* MPI datatypes for data in place. */
#include "nodes/mpi_internal.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

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
