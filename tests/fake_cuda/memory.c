/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: that of devices, which is addresses that nobody may touch, with the bytes elsewhere; and
 * page-locked memory of the host.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fake_cuda/internal.h"

enum { PAGE = 4096, GRANULE = 512, POISON = 0xff, PIECE = 1 << 20 /* poisoned at once */ };

/* An allocation on a device, a block of cudaHostAlloc, or a registration: one list. */
struct block {
    struct block *next;
    enum { ON_DEVICE, POOLED, HOST_BLOCK, REGISTERED } what;
    unsigned device;
    struct span span;      /* the range as given away or registered */
    unsigned char *shadow; /* on devices: the host's address of its bytes */
    size_t mapped;         /* bytes mapped of the addresses, and of the shadow; guards included */
};

static struct block *blocks;

static bool contains(struct span outer, struct span inner)
{
    return inner.begin >= outer.begin && inner.bytes <= outer.bytes &&
           inner.begin - outer.begin <= outer.bytes - inner.bytes;
}

static bool overlap(struct span a, struct span b)
{
    return a.bytes && b.bytes && a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

static bool is_device(const struct block *block)
{
    return block->what == ON_DEVICE || block->what == POOLED;
}

/* Returns the first block that has some of `span`, or all. */
static struct block *touching(struct span span)
{
    struct block *block = blocks;
    while (block && !overlap(block->span, span))
        block = block->next;
    return block;
}

/* Takes the block of one of two kinds that begins here out of the list. Returns NULL if there is
   none. */
static struct block *take(const void *begin, bool device, bool registered)
{
    struct block **at = &blocks;
    while (*at && !((*at)->span.begin == (uintptr_t)begin && is_device(*at) == device &&
                    (device || ((*at)->what == REGISTERED) == registered)))
        at = &(*at)->next;
    struct block *block = *at;
    if (block)
        *at = block->next;
    return block;
}

static struct block *add(struct block block)
{
    struct block *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = block;
    copy->next = blocks;
    blocks = copy;
    return copy;
}

struct fake_place fake_find(struct span span)
{
    const struct block *block = touching(span);
    if (!block)
        return (struct fake_place){FAKE_PAGEABLE, 0};
    if (!contains(block->span, span))
        return (struct fake_place){FAKE_MIXED, 0};
    return (struct fake_place){is_device(block) ? FAKE_DEVICE : FAKE_LOCKED, block->device};
}

void *fake_shadow(unsigned device, struct span span)
{
    for (const struct block *block = blocks; block; block = block->next)
        if (is_device(block) && block->device == device && contains(block->span, span))
            return block->shadow + (span.begin - block->span.begin);
    return NULL;
}

void *fake_cuda_memory(unsigned device, const void *pointer, size_t bytes)
{
    fake_lock();
    void *result = fake_shadow(device, (struct span){(uintptr_t)pointer, bytes});
    fake_unlock();
    return result;
}

/* ------------------------------------------------------------------------------------------- */
/* Devices                                                                                      */

static size_t whole(size_t bytes, size_t piece)
{
    return (bytes + piece - 1) / piece * piece;
}

/* Maps `bytes` whose end is followed by a page that is not there. Returns NULL if refused. */
static unsigned char *map(size_t bytes, int protection)
{
    size_t mapped = whole(bytes, PAGE);
    unsigned char *at = mmap(NULL, mapped + 2 * (size_t)PAGE, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    if (protection != PROT_NONE && mprotect(at + PAGE, mapped, protection))
        abort();
    return at + PAGE;
}

static void unmap(void *at, size_t mapped)
{
    (void)munmap((char *)at - PAGE, mapped + 2 * (size_t)PAGE);
}

/* Fills memory of map() with poison. Nobody touches most of a large piece: it is one file, many
   times. */
static void poison(unsigned char *at, size_t bytes)
{
    memset(at, POISON, bytes < PIECE ? bytes : PIECE);
    if (bytes <= PIECE)
        return;
    int file = memfd_create("poison", MFD_CLOEXEC);
    if (file < 0 || write(file, at, PIECE) != PIECE)
        abort();
    for (size_t done = PIECE; done < bytes; done += PIECE)
        if (mmap(at + done, bytes - done < PIECE ? bytes - done : PIECE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) == MAP_FAILED)
            abort();
    (void)close(file);
}

static void release(struct block *block)
{
    if (is_device(block)) {
        unmap((void *)block->span.begin, block->mapped);
        unmap(block->shadow, block->mapped);
        fake_state()->devices[block->device].used -= whole(block->span.bytes, GRANULE);
    } else if (block->what == HOST_BLOCK) {
        unmap((void *)block->span.begin, block->mapped);
    }
    free(block);
}

static cudaError_t allocate(void **out, size_t bytes, unsigned device, bool pooled)
{
    struct fake *fake = fake_state();
    uint64_t *used = &fake->devices[device].used;
    if (!out)
        return cudaErrorInvalidValue;
    *out = NULL;
    if (!bytes)
        return cudaSuccess;
    uint64_t left = fake->config.memory_bytes - *used;
    if (bytes > left || whole(bytes, GRANULE) > left)
        return cudaErrorMemoryAllocation;
    unsigned char *addresses = map(bytes, PROT_NONE), *shadow = map(bytes, PROT_READ | PROT_WRITE);
    if (!addresses || !shadow)
        abort();
    poison(shadow, bytes);
    *used += whole(bytes, GRANULE);
    *out = addresses;
    (void)add((struct block){.what = pooled ? POOLED : ON_DEVICE,
                             .device = device,
                             .span = {(uintptr_t)addresses, bytes},
                             .shadow = shadow,
                             .mapped = whole(bytes, PAGE)});
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    cudaError_t error = fake_enter(FAKE_cudaMalloc, true);
    if (!error)
        error = fake_drain_device(fake_device());
    return fake_leave(error ? error : allocate(pointer, bytes, fake_device(), false));
}

/* Waits for the device, as CUDA's cudaFree does. Memory of a broken device is released as well. */
cudaError_t cudaFree(void *pointer)
{
    cudaError_t error = fake_enter(FAKE_cudaFree, false);
    if (error || !pointer)
        return fake_leave(error);
    const struct block *found = touching((struct span){(uintptr_t)pointer, 1});
    if (!found || found->span.begin != (uintptr_t)pointer || !is_device(found))
        return fake_leave(cudaErrorInvalidValue);
    error = fake_drain_device(found->device);
    struct block *block = take(pointer, true, false);
    if (block)
        release(block);
    return fake_leave(block ? error : cudaErrorInvalidValue);
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t handle)
{
    struct fake_stream *stream;
    cudaError_t error = fake_enter(FAKE_cudaMallocAsync, false);
    if (!error)
        error = fake_stream_of(handle, &stream);
    return fake_leave(error ? error : allocate(pointer, bytes, stream->device, true));
}

static void free_now(void *argument)
{
    fake_lock();
    struct block *block = take(*(void **)argument, true, false);
    if (block)
        release(block);
    else
        fake_violation("cudaFreeAsync of what was freed meanwhile");
    fake_unlock();
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t handle)
{
    struct fake_stream *stream;
    cudaError_t error = fake_enter(FAKE_cudaFreeAsync, false);
    if (!error)
        error = fake_stream_of(handle, &stream);
    const struct block *block = touching((struct span){(uintptr_t)pointer, 1});
    if (!error && (!block || block->span.begin != (uintptr_t)pointer || !is_device(block) ||
                   block->device != stream->device))
        error = cudaErrorInvalidValue;
    if (!error)
        fake_give(stream, fake_command(free_now, &pointer, sizeof pointer));
    return fake_leave(error);
}

/* ------------------------------------------------------------------------------------------- */
/* The host                                                                                     */

static cudaError_t allocate_host(void **out, size_t bytes)
{
    if (!out)
        return cudaErrorInvalidValue;
    *out = NULL;
    if (!bytes)
        return cudaSuccess;
    unsigned char *at = map(bytes, PROT_READ | PROT_WRITE);
    if (!at)
        return cudaErrorMemoryAllocation;
    poison(at, bytes);
    *out = at;
    (void)add((struct block){.what = HOST_BLOCK,
                             .span = {(uintptr_t)at, bytes},
                             .mapped = whole(bytes, PAGE)});
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    cudaError_t error = fake_enter(FAKE_cudaHostAlloc, true);
    if (!error && flags & ~(unsigned)(cudaHostAllocPortable | cudaHostAllocMapped |
                                      cudaHostAllocWriteCombined))
        error = cudaErrorInvalidValue;
    if (!error)
        error = fake_drain_device(fake_device());
    return fake_leave(error ? error : allocate_host(pointer, bytes));
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    cudaError_t error = fake_enter(FAKE_cudaMallocHost, true);
    return fake_leave(error ? error : allocate_host(pointer, bytes));
}

cudaError_t cudaFreeHost(void *pointer)
{
    cudaError_t error = fake_enter(FAKE_cudaFreeHost, false);
    if (error || !pointer)
        return fake_leave(error);
    struct block *block = take(pointer, false, false);
    if (!block)
        return fake_leave(cudaErrorInvalidValue);
    if (fake_host_in_use(block->span))
        fake_violation("cudaFreeHost(%p) while a command uses it", pointer);
    else
        fake_drain_all();
    release(block);
    return fake_leave(fake_state()->config.devices ? fake_error_of(fake_device()) : cudaSuccess);
}

static uint64_t registered(void)
{
    uint64_t bytes = 0;
    for (const struct block *block = blocks; block; block = block->next)
        bytes += block->what == REGISTERED ? block->span.bytes : 0;
    return bytes;
}

uint64_t fake_cuda_registered(void)
{
    fake_lock();
    uint64_t bytes = registered();
    fake_unlock();
    return bytes;
}

static struct span pages_of(struct span span)
{
    uintptr_t begin = span.begin / PAGE * PAGE;
    return (struct span){begin, whole(span.begin + span.bytes, PAGE) - begin};
}

/* True if registering `span` would lock something again. */
static bool locked_already(struct span span)
{
    bool pages = fake_state()->config.whole_pages;
    for (const struct block *block = blocks; block; block = block->next)
        if (pages ? overlap(pages_of(block->span), pages_of(span)) : overlap(block->span, span))
            return true;
    return false;
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    const unsigned flags_known = cudaHostRegisterPortable | cudaHostRegisterMapped;
    struct span span = {(uintptr_t)pointer, bytes};
    cudaError_t error = fake_enter(FAKE_cudaHostRegister, true);
    if (error)
        return fake_leave(error);
    uint64_t most = fake_state()->config.registered_bytes;
    if (!pointer || !bytes || flags & ~flags_known)
        return fake_leave(cudaErrorInvalidValue);
    if (locked_already(span))
        return fake_leave(cudaErrorHostMemoryAlreadyRegistered);
    if (most && (bytes > most || registered() > most - bytes))
        return fake_leave(cudaErrorMemoryAllocation);
    (void)add((struct block){.what = REGISTERED, .span = span});
    return fake_leave(cudaSuccess);
}

/* True if a call could use the context of another device than a broken one. */
static bool any_other(void)
{
    const struct fake *fake = fake_state();
    for (unsigned d = 0; d < fake->config.devices; d++)
        if (fake->devices[d].has_context && !fake->devices[d].broken)
            return true;
    return false;
}

cudaError_t cudaHostUnregister(void *pointer)
{
    cudaError_t error = fake_enter(FAKE_cudaHostUnregister, false);
    if (error)
        return fake_leave(error);
    if (fake_state()->config.devices && fake_error_of(fake_device()) && any_other())
        return fake_leave(fake_error_of(fake_device()));
    struct block *block = take(pointer, false, true);
    if (!block)
        return fake_leave(cudaErrorHostMemoryNotRegistered);
    if (fake_host_in_use(block->span))
        fake_violation("cudaHostUnregister(%p) while a command uses it", pointer);
    else
        fake_drain_all();
    release(block);
    return fake_leave(fake_state()->config.devices ? fake_error_of(fake_device()) : cudaSuccess);
}

/* ------------------------------------------------------------------------------------------- */
/* Leaks                                                                                        */

unsigned fake_memory_leaks(bool say)
{
    static const char *const kinds[] = {"device memory", "", "cudaHostAlloc", "registration"};
    unsigned count = 0;
    for (const struct block *block = blocks; block; block = block->next) {
        if (block->what == POOLED)
            continue;
        count++;
        if (say)
            (void)fprintf(stderr, "fake CUDA: %s of %zu bytes not released\n", kinds[block->what],
                          block->span.bytes);
    }
    return count;
}

void fake_memory_clear(void)
{
    while (blocks) {
        struct block *block = blocks;
        blocks = block->next;
        release(block);
    }
}
