/* SPDX-License-Identifier: Apache-2.0 */
/* LRU stacks with distances in bytes. */
#include "platforms/model/stack.h"

#include <stdlib.h>
#include <string.h>

enum { DATES_MIN = 256 };

static void add(struct duet__stack *stack, uint32_t date, uint64_t bytes)
{
    for (; date <= stack->dates; date += date & -date)
        stack->tree[date] += bytes;
}

/* Bytes of what was touched at dates up to this one. */
static uint64_t up_to(const struct duet__stack *stack, uint32_t date)
{
    uint64_t sum = 0;
    for (; date; date -= date & -date)
        sum += stack->tree[date];
    return sum;
}

bool duet__stack_distance(const struct duet__stack *stack, uint32_t piece, uint64_t *distance)
{
    if (piece >= stack->pieces || !stack->date[piece])
        return false;
    *distance = stack->bytes - up_to(stack, stack->date[piece]);
    return true;
}

void duet__stack_remove(struct duet__stack *stack, uint32_t piece, const uint64_t *bytes_of)
{
    if (piece >= stack->pieces || !stack->date[piece])
        return;
    add(stack, stack->date[piece], -bytes_of[piece]); /* modulo 2^64, which takes it away */
    stack->bytes -= bytes_of[piece];
    stack->date[piece] = 0;
}

/* Knows a piece with this number. */
static int know(struct duet__stack *stack, uint32_t piece)
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

static uint32_t on_stack(const struct duet__stack *stack)
{
    uint32_t count = 0;
    for (uint32_t d = 1; d <= stack->now; d++)
        count += stack->date[stack->piece[d]] == d;
    return count;
}

/* Dates begin anew, in the same order, with room for at least as many again. */
static int renumber(struct duet__stack *stack, const uint64_t *bytes_of)
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
        stack->date[old] = last; /* at most d: no date that is still to be read */
    }
    free(stack->tree);
    free(stack->piece);
    stack->tree = tree;
    stack->piece = piece;
    stack->dates = dates;
    stack->now = last;
    for (uint32_t d = 1; d <= last; d++)
        add(stack, d, bytes_of[piece[d]]);
    return DUET_OK;
}

int duet__stack_touch(struct duet__stack *stack, uint32_t piece, const uint64_t *bytes_of)
{
    int error = know(stack, piece);
    if (!error && stack->now == stack->dates)
        error = renumber(stack, bytes_of);
    if (error)
        return error;
    duet__stack_remove(stack, piece, bytes_of);
    stack->date[piece] = ++stack->now;
    stack->piece[stack->now] = piece;
    add(stack, stack->now, bytes_of[piece]);
    stack->bytes += bytes_of[piece];
    return DUET_OK;
}

void duet__stack_fini(struct duet__stack *stack)
{
    free(stack->tree);
    free(stack->piece);
    free(stack->date);
    *stack = (struct duet__stack){0};
}
