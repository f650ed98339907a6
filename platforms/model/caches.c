/* SPDX-License-Identifier: Apache-2.0 */
/* Where the data of a task is when it begins: LRU stacks of cores and sockets. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "platforms/model/effects.h"
#include "platforms/model/stack.h"

struct duet__caches {
    struct duet_sharing sharing;
    unsigned workers, sockets;    /* of CPUs */
    unsigned *socket;             /* by worker: position among `shared` */
    struct duet__stack *private_; /* by worker */
    struct duet__stack *shared;   /* by socket */
    uint64_t *bytes;              /* by piece; 0: not met yet */
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

/*
 * Pieces are numbered as the handles are, which a runtime counts from 1. Notes how large this one
 * is when it is met first.
 */
static int find(struct duet__caches *caches, const struct duet__operand *operand, uint32_t *out)
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

/* ------------------------------------------------------------------------------------------- */
/* Touching                                                                                     */

static struct duet__miss miss_of(const struct duet__caches *caches, unsigned worker, uint32_t piece,
                                 uint64_t registered_bytes)
{
    struct duet__miss miss;
    uint64_t distance = 0;
    double own = (double)caches->bytes[piece];
    if (duet__stack_distance(&caches->private_[worker], piece, &distance))
        miss.near =
            duet__caches_missing((double)distance + own, (double)caches->sharing.private_bytes);
    else
        miss.near = caches->sharing.private_bytes ? 1 : 0;
    double far = (double)registered_bytes;
    if (duet__stack_distance(&caches->shared[caches->socket[worker]], piece, &distance))
        far = (double)distance + own;
    miss.far = duet__caches_missing(far, (double)caches->sharing.shared_bytes);
    if (caches->sharing.private_bytes && miss.far > miss.near)
        miss.far = miss.near;
    return miss;
}

/* What others have of a piece that is written is of no use any more. */
static void invalidate(struct duet__caches *caches, unsigned worker, uint32_t piece)
{
    for (unsigned w = 0; w < caches->workers; w++)
        if (w != worker)
            duet__stack_remove(&caches->private_[w], piece, caches->bytes);
    for (unsigned s = 0; s < caches->sockets; s++)
        if (s != caches->socket[worker])
            duet__stack_remove(&caches->shared[s], piece, caches->bytes);
}

int duet__caches_touch(struct duet__caches *caches, unsigned worker,
                       const struct duet__operand *operands, size_t count,
                       uint64_t registered_bytes, struct duet__miss *miss)
{
    uint32_t piece = 0;
    int error = DUET_OK;
    for (size_t i = 0; i < count && !error; i++) {
        error = find(caches, &operands[i], &piece);
        if (!error)
            miss[i] = miss_of(caches, worker, piece, registered_bytes);
    }
    for (size_t i = 0; i < count && !error; i++) {
        error = find(caches, &operands[i], &piece);
        if (!error)
            error = duet__stack_touch(&caches->private_[worker], piece, caches->bytes);
        if (!error)
            error =
                duet__stack_touch(&caches->shared[caches->socket[worker]], piece, caches->bytes);
        if (!error && operands[i].writes)
            invalidate(caches, worker, piece);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Making and freeing                                                                           */

/* Counts CPU workers, which come first, and gives each the position of its socket. */
static void place(struct duet__caches *caches, const struct duet_machine *machine)
{
    for (unsigned w = 0; w < caches->workers; w++) {
        unsigned same = 0;
        while (same < w && machine->workers[same].socket != machine->workers[w].socket)
            same++;
        caches->socket[w] = same < w ? caches->socket[same] : caches->sockets++;
    }
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
    unsigned count = caches->workers ? caches->workers : 1;
    caches->socket = calloc(count, sizeof *caches->socket);
    caches->private_ = calloc(count, sizeof *caches->private_);
    caches->shared = calloc(count, sizeof *caches->shared);
    if (!caches->socket || !caches->private_ || !caches->shared) {
        duet__caches_free(caches);
        return DUET_ENOMEM;
    }
    place(caches, machine);
    *out = caches;
    return DUET_OK;
}

void duet__caches_free(struct duet__caches *caches)
{
    if (!caches)
        return;
    for (unsigned w = 0; caches->private_ && w < caches->workers; w++)
        duet__stack_fini(&caches->private_[w]);
    for (unsigned s = 0; caches->shared && s < caches->sockets; s++)
        duet__stack_fini(&caches->shared[s]);
    free(caches->socket);
    free(caches->private_);
    free(caches->shared);
    free(caches->bytes);
    free(caches);
}
