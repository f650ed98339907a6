/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slab of an emulated device. One small file of poison in memory is mapped over and over,
 * private: a page that was never written reads as poison and takes no memory, so that a device of
 * 100 GiB costs only the written pages.
 */
#include "backends/emulated/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PIECE_MIN = 2 << 20,
    PIECE_MAX = 64 << 20,
    PIECES = 512, /* about so many mappings a slab: a process may have some 65,000 */
};

static size_t round_up(uint64_t bytes, size_t unit)
{
    return (size_t)((bytes + unit - 1) / unit * unit);
}

/* Writes `bytes` of poison, so that full memory is an error here, and not a signal later. */
static bool fill_file(int file, size_t bytes)
{
    unsigned char block[1 << 14];
    memset(block, MEMORY_POISON, sizeof block);
    for (size_t done = 0; done < bytes;) {
        size_t left = bytes - done;
        ssize_t wrote = write(file, block, left < sizeof block ? left : sizeof block);
        if (wrote < 0 && errno != EINTR)
            return false;
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

bool duet__memory_poison(struct memory *memory)
{
    for (size_t at = 0; at < memory->mapped; at += memory->piece_bytes) {
        void *piece = mmap(memory->base + at, memory->piece_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, memory->file, 0);
        if (piece == MAP_FAILED)
            return false;
    }
    return true;
}

static int refused(struct memory *memory, uint64_t bytes, struct duet_message *message)
{
    bool large = bytes >= UINT64_C(1) << 30;
    int error = duet_fail(message, DUET_ENOMEM,
                          "emulated device: no %.1f %s of memory for it (%s): ask for less",
                          (double)bytes / (large ? 0x1p30 : 0x1p20), large ? "GiB" : "MiB",
                          strerror(errno));
    duet__memory_close(memory);
    return error;
}

int duet__memory_open(struct memory *memory, uint64_t bytes, bool reserve,
                      struct duet_message *message)
{
    size_t piece = round_up(bytes / PIECES, PIECE_MIN);
    *memory = (struct memory){.file = -1};
    if (bytes > SIZE_MAX / 2) {
        errno = ENOMEM;
        return refused(memory, bytes, message);
    }
    memory->bytes = (size_t)bytes;
    memory->piece_bytes = piece < PIECE_MIN ? PIECE_MIN : piece > PIECE_MAX ? PIECE_MAX : piece;
    memory->mapped = round_up(bytes, memory->piece_bytes);
    void *base =
        mmap(NULL, memory->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return refused(memory, bytes, message);
    memory->base = base;
    if (reserve)
        return DUET_OK;
    memory->file = memfd_create("duet-poison", MFD_CLOEXEC);
    if (memory->file < 0 || !fill_file(memory->file, memory->piece_bytes) ||
        !duet__memory_poison(memory))
        return refused(memory, bytes, message);
    return DUET_OK;
}

void duet__memory_close(struct memory *memory)
{
    if (memory->base)
        (void)munmap(memory->base, memory->mapped);
    if (memory->file >= 0)
        (void)close(memory->file);
    *memory = (struct memory){.file = -1};
}
