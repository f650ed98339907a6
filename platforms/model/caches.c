/* SPDX-License-Identifier: Apache-2.0 */
/* Finds which data of a task is in the caches when it begins: an LRU stack for each socket. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "platforms/model/effects.h"

enum { DATES_MIN = 256 };

/*
 * An LRU stack of pieces of data that tells how many bytes were touched since a piece was: a
 * Fenwick tree (Fenwick, Software: Practice and Experience 24(3), 1994) over the dates of touches.
 * Pieces are numbered from 0, densely.
 */
struct stack {
    uint64_t *tree;  /* Fenwick tree: bytes by date of last touch, from 1 */
    uint32_t *piece; /* by date: the piece that was touched */
    uint32_t *date;  /* by piece: date of its last touch; 0: it is not on the stack */
    uint32_t dates, now, pieces;
    uint64_t bytes; /* of all pieces on the stack */
};

static void tree_add(struct stack *stack, uint32_t date, uint64_t bytes)
{
    for (; date <= stack->dates; date += date & -date)
        stack->tree[date] += bytes;
}

/* Returns the bytes of pieces that were last touched at dates up to this one. */
static uint64_t up_to(const struct stack *stack, uint32_t date)
{
    uint64_t sum = 0;
    for (; date; date -= date & -date)
        sum += stack->tree[date];
    return sum;
}

/* Finds the bytes touched since a piece was, without its own. false: it is not on the stack. */
static bool stack_distance(const struct stack *stack, uint32_t piece, uint64_t *distance)
{
    if (piece >= stack->pieces || !stack->date[piece])
        return false;
    *distance = stack->bytes - up_to(stack, stack->date[piece]);
    return true;
}

/* Takes a piece off the stack. `bytes_of`: bytes of all pieces, by number. */
static void stack_remove(struct stack *stack, uint32_t piece, const uint64_t *bytes_of)
{
    if (piece >= stack->pieces || !stack->date[piece])
        return;
    tree_add(stack, stack->date[piece], -bytes_of[piece]); /* modulo 2^64, this subtracts */
    stack->bytes -= bytes_of[piece];
    stack->date[piece] = 0;
}

/* Makes room for the piece of this number. DUET_ENOMEM. */
static int make_room(struct stack *stack, uint32_t piece)
{
    if (piece < stack->pieces)
        return DUET_OK;
    uint32_t pieces = 2 * piece + 64;
    uint32_t *date = realloc(stack->date, pieces * sizeof *date);
    if (!date)
        return DUET_ENOMEM;
    memset(&date[stack->pieces], 0, (pieces - stack->pieces) * sizeof *date);
    stack->date = date;
    stack->pieces = pieces;
    return DUET_OK;
}

static uint32_t on_stack(const struct stack *stack)
{
    uint32_t count = 0;
    for (uint32_t d = 1; d <= stack->now; d++)
        count += stack->date[stack->piece[d]] == d;
    return count;
}

/* Renumbers dates from 1, in the same order, with room for at least as many again. DUET_ENOMEM. */
static int renumber(struct stack *stack, const uint64_t *bytes_of)
{
    uint32_t dates = DATES_MIN, last = 0;
    while (dates / 4 < on_stack(stack))
        dates *= 2;
    uint64_t *tree = calloc((size_t)dates + 1, sizeof *tree);
    uint32_t *piece = calloc((size_t)dates + 1, sizeof *piece);
    if (!tree || !piece) {
        free(tree);
        free(piece);
        return DUET_ENOMEM;
    }
    for (uint32_t d = 1; d <= stack->now; d++) {
        uint32_t old = stack->piece[d];
        if (stack->date[old] != d)
            continue;
        piece[++last] = old;
        stack->date[old] = last; /* last is at most d, so no date still to be read is overwritten */
    }
    free(stack->tree);
    free(stack->piece);
    stack->tree = tree;
    stack->piece = piece;
    stack->dates = dates;
    stack->now = last;
    for (uint32_t d = 1; d <= last; d++)
        tree_add(stack, d, bytes_of[piece[d]]);
    return DUET_OK;
}

/* Puts a piece on top of the stack. DUET_ENOMEM. */
static int stack_touch(struct stack *stack, uint32_t piece, const uint64_t *bytes_of)
{
    int error = make_room(stack, piece);
    if (!error && stack->now == stack->dates)
        error = renumber(stack, bytes_of);
    if (error)
        return error;
    stack_remove(stack, piece, bytes_of);
    stack->date[piece] = ++stack->now;
    stack->piece[stack->now] = piece;
    tree_add(stack, stack->now, bytes_of[piece]);
    stack->bytes += bytes_of[piece];
    return DUET_OK;
}

static void stack_fini(struct stack *stack)
{
    free(stack->tree);
    free(stack->piece);
    free(stack->date);
}

struct duet__caches {
    struct duet_sharing sharing;
    unsigned workers, count; /* numbers of CPU workers and of stacks */
    struct stack *stacks;    /* one a socket */
    unsigned *shared;        /* by worker: the stack of its socket */
    uint64_t *bytes;         /* by piece; 0: not used yet */
    uint32_t capacity;
};

double duet__caches_missing(double distance_bytes, double size_bytes)
{
    if (!(size_bytes > 0) || distance_bytes <= size_bytes / 2)
        return 0;
    if (distance_bytes >= 2 * size_bytes)
        return 1;
    return log2(distance_bytes / (size_bytes / 2)) / 2;
}

/* Sets *out to the number of an operand's piece. Numbers follow the handles, which a runtime counts
 * from 1. Notes the size of a new piece. */
static int find_piece(struct duet__caches *caches, const struct duet__operand *operand,
                      uint32_t *out)
{
    if (operand->handle > UINT32_MAX / 4)
        return DUET_ENOMEM;
    *out = (uint32_t)operand->handle;
    if (*out >= caches->capacity) {
        uint32_t capacity = 2 * *out + 128;
        uint64_t *bytes = realloc(caches->bytes, capacity * sizeof *bytes);
        if (!bytes)
            return DUET_ENOMEM;
        memset(bytes + caches->capacity, 0, (capacity - caches->capacity) * sizeof *bytes);
        caches->bytes = bytes;
        caches->capacity = capacity;
    }
    if (!caches->bytes[*out])
        caches->bytes[*out] = operand->bytes;
    return DUET_OK;
}

static double missing_of(const struct duet__caches *caches, const struct stack *stack,
                         uint32_t piece, uint64_t registered_bytes)
{
    uint64_t distance = 0;
    double reuse = (double)registered_bytes;
    if (stack_distance(stack, piece, &distance))
        reuse = (double)distance + (double)caches->bytes[piece];
    return duet__caches_missing(reuse, (double)caches->sharing.shared_bytes);
}

int duet__caches_touch(struct duet__caches *caches, unsigned worker,
                       const struct duet__operand *operands, size_t count,
                       uint64_t registered_bytes, double *missing)
{
    struct stack *stack = &caches->stacks[caches->shared[worker]];
    uint32_t piece = 0;
    int error = DUET_OK;
    for (size_t i = 0; i < count && !error; i++) {
        error = find_piece(caches, &operands[i], &piece);
        if (!error)
            missing[i] = missing_of(caches, stack, piece, registered_bytes);
    }
    for (size_t i = 0; i < count && !error; i++) {
        piece = (uint32_t)operands[i].handle;
        error = stack_touch(stack, piece, caches->bytes);
        /* other caches lose a piece that is written */
        for (unsigned s = 0; s < caches->count && operands[i].writes; s++)
            if (&caches->stacks[s] != stack)
                stack_remove(&caches->stacks[s], piece, caches->bytes);
    }
    return error;
}

int duet__caches_new(struct duet__caches **out, const struct duet_machine *machine)
{
    *out = NULL;
    struct duet__caches *caches = calloc(1, sizeof *caches);
    if (!caches)
        return DUET_ENOMEM;
    caches->sharing = machine->sharing;
    while (caches->workers < machine->worker_count &&
           machine->workers[caches->workers].node == DUET_HOST)
        caches->workers++;
    caches->stacks = calloc((size_t)caches->workers + 1, sizeof *caches->stacks);
    caches->shared = calloc((size_t)caches->workers + 1, sizeof *caches->shared);
    if (!caches->stacks || !caches->shared) {
        duet__caches_free(caches);
        return DUET_ENOMEM;
    }
    for (unsigned w = 0; w < caches->workers; w++) {
        unsigned same = 0; /* the first worker of its socket */
        while (machine->workers[same].socket != machine->workers[w].socket)
            same++;
        caches->shared[w] = same < w ? caches->shared[same] : caches->count++;
    }
    *out = caches;
    return DUET_OK;
}

void duet__caches_free(struct duet__caches *caches)
{
    if (!caches)
        return;
    for (unsigned s = 0; caches->stacks && s < caches->count; s++)
        stack_fini(&caches->stacks[s]);
    free(caches->stacks);
    free(caches->shared);
    free(caches->bytes);
    free(caches);
}
