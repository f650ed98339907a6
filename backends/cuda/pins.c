/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locked ranges of the host's memory. */
#include "backends/cuda/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SMALLEST = 256 << 10, /* bytes of a handle from which page-locking is worth a system call */
    GAPS = 2,             /* a handle's span is page-locked if it is at most so many times its
                             bytes */
    PIECE_GIB = 64,
    REFUSALS = 8, /* refusals of memory, or of a larger limit, after which the system is not asked
                     again */
    LINE = 512,
};

/* Remarks to the user, made once each. */
enum { TOLD_REFUSED = 1, TOLD_LIMIT = 2, TOLD_SHARED = 4 };

struct pin_range {
    uintptr_t begin, end;  /* whole pages */
    uintptr_t first, last; /* requested bytes, last exclusive */
    const void *owner;     /* `data` of the pin that made or adopted it; NULL: only marks use it */
    unsigned users;        /* marks that point here */
    _Atomic(bool) alive;   /* registered; marks are read without the mutex */
    struct pin_range *next;
};

/* Returns the value of a mark of a handle that is not page-locked. */
static void *staged(struct pins *pins)
{
    return pins;
}

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* ------------------------------------------------------------------------------------------- */
/* Ranges by address, with the mutex held                                                       */

/* Returns the index of the first range that ends behind `address`, or count. */
static size_t range_find(const struct pins *pins, uintptr_t address)
{
    size_t low = 0, high = pins->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pins->ranges[middle]->end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool overlaps(const struct pins *pins, uintptr_t begin, uintptr_t end)
{
    size_t i = range_find(pins, begin);
    return i < pins->count && pins->ranges[i]->begin < end;
}

/* Returns the range that contains all of these bytes, or NULL. */
static struct pin_range *holder(const struct pins *pins, uintptr_t begin, uintptr_t end)
{
    size_t i = range_find(pins, begin);
    if (i == pins->count || pins->ranges[i]->begin > begin || pins->ranges[i]->end < end)
        return NULL;
    return pins->ranges[i];
}

/* True if adjacent pinned ranges contain all of these bytes. */
static bool covered(const struct pins *pins, uintptr_t begin, uintptr_t end)
{
    for (size_t i = range_find(pins, begin); i < pins->count; i++) {
        const struct pin_range *range = pins->ranges[i];
        if (range->begin > begin || !range->owner)
            return false;
        if (range->end >= end)
            return true;
        begin = range->end;
    }
    return false;
}

static bool reserve_range(struct pins *pins)
{
    if (pins->count < pins->capacity)
        return true;
    size_t capacity = pins->capacity ? 2 * pins->capacity : 16;
    void *grown = realloc(pins->ranges, capacity * sizeof(struct pin_range *));
    if (!grown)
        return false;
    pins->ranges = grown;
    pins->capacity = capacity;
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * cudaHostRegister and cudaHostUnregister from any thread. Both work on the current device, which
 * on an application's thread is the first one although nobody has chosen it: that may be broken,
 * another process's, or not in use.
 */

struct request {
    void *begin;
    size_t bytes; /* 0: unregister */
    int device;
    bool failed;
    struct failure *failure;
};

static bool call_cuda(const struct request *request)
{
    if (!request->bytes)
        return duet__cuda_failed(request->failure, "cudaHostUnregister",
                                 cudaHostUnregister(request->begin));
    /* portable: page-locked for every device, not only the one current on this thread */
    return duet__cuda_failed(request->failure, "cudaHostRegister",
                             cudaHostRegister(request->begin, request->bytes,
                                              cudaHostRegisterPortable));
}

static void *call_aside(void *argument)
{
    struct request *request = argument;
    request->failed =
        duet__cuda_failed(request->failure, "cudaSetDevice", cudaSetDevice(request->device)) ||
        call_cuda(request);
    return NULL;
}

/* Makes the call with `device` current, on a thread of its own if another one is. */
static bool call_on(struct request *request, int device, int current)
{
    pthread_t thread;
    request->device = device;
    if (device < 0 || device == current || pthread_create(&thread, NULL, call_aside, request))
        return call_cuda(request);
    (void)pthread_join(thread, NULL);
    return request->failed;
}

/*
 * Page-locks whole pages for all devices, or ends that. The current device of this thread stays.
 * Returns true if not done, with the call and the reason in *request->failure.
 */
static bool make_request(struct cuda *cuda, struct request *request)
{
    int current = -1;
    if (!cuda)
        return call_cuda(request);
    duet__cuda_ignore(cudaGetDevice(&current));
    int device = duet__cuda_well(cuda, current, -1);
    if (device == REGISTER_NEVER) { /* registrations stay */
        *request->failure = (struct failure){"cudaHostRegister", cudaErrorDevicesUnavailable};
        return request->bytes > 0;
    }
    bool failed = call_on(request, device, current);
    while (failed && device >= 0 && duet__cuda_fate(request->failure->error) != FATE_REFUSED) {
        device = duet__cuda_well(cuda, current, device);
        if (device >= 0)
            failed = call_on(request, device, current);
    }
    return failed;
}

/* ------------------------------------------------------------------------------------------- */
/* Registering, with the mutex held                                                             */

/* True if so many more bytes may be page-locked. */
static bool within_limit(struct pins *pins, uint64_t bytes)
{
    if (bytes > pins->limit_bytes - pins->bytes && pins->more && pins->vain < REFUSALS) {
        uint64_t now_bytes = pins->more(pins->clock);
        pins->vain = now_bytes > pins->limit_bytes ? 0 : pins->vain + 1;
        pins->limit_bytes = now_bytes > pins->limit_bytes ? now_bytes : pins->limit_bytes;
    }
    return bytes <= pins->limit_bytes - pins->bytes;
}

/*
 * Gives the whole pages around these bytes. Returns false if they do not fit into the address
 * space.
 */
static bool pages(const struct pins *pins, const void *data, uint64_t bytes, uintptr_t *begin,
                  uintptr_t *end)
{
    uintptr_t first = (uintptr_t)data, mask = pins->page_bytes - 1;
    if (!bytes || bytes > UINTPTR_MAX - first - mask)
        return false;
    *begin = first & ~mask;
    *end = (first + bytes + mask) & ~mask;
    return true;
}

/* Enters a range and page-locks it. NULL: not done; *failure is the reason if CUDA refused it. */
static struct pin_range *range_add(struct pins *pins, uintptr_t begin, uintptr_t end,
                                   struct failure *failure)
{
    struct pin_range *range = reserve_range(pins) ? calloc(1, sizeof *range) : NULL;
    *failure = (struct failure){.call = "calloc", .error = cudaErrorMemoryAllocation};
    if (!range)
        return NULL;
    struct request request = {.begin = (void *)begin, .bytes = end - begin, .failure = failure};
    if (make_request(pins->cuda, &request)) {
        free(range);
        return NULL;
    }
    size_t i = range_find(pins, begin);
    memmove(&pins->ranges[i + 1], &pins->ranges[i], (pins->count - i) * sizeof(void *));
    pins->ranges[i] = range;
    pins->count++;
    pins->bytes += end - begin;
    range->begin = range->first = begin;
    range->end = range->last = end;
    atomic_store_explicit(&range->alive, true, memory_order_release);
    return range;
}

/* Ends the registration; the record stays while marks point to it. */
static void range_drop(struct pins *pins, struct pin_range *range)
{
    struct failure failure;
    struct request request = {.begin = (void *)range->begin, .failure = &failure};
    size_t i = range_find(pins, range->begin);
    pins->count--;
    memmove(&pins->ranges[i], &pins->ranges[i + 1], (pins->count - i) * sizeof(void *));
    pins->bytes -= range->end - range->begin;
    atomic_store_explicit(&range->alive, false, memory_order_release);
    if (make_request(pins->cuda, &request))
        pins->stuck = true;
    if (!range->users) {
        free(range);
        return;
    }
    range->next = pins->dead;
    pins->dead = range;
}

/* ------------------------------------------------------------------------------------------- */
/* Requests of the application */

/* Returns a likely cause of a refusal, as CUDA's error alone does not help the user. */
static const char *guess(const struct pins *pins, const struct failure *failure)
{
    if (duet__cuda_fate(failure->error) != FATE_REFUSED)
        return "a GPU is broken, and none is left to ask";
    if (failure->error == cudaErrorInvalidValue)
        return "is all of it memory of this process?";
    if (failure->error != cudaErrorHostMemoryAlreadyRegistered)
        return "is it mapped read-only or from a file, does a container or virtual machine limit "
               "page-locking, or is too little of the memory free?";
    return pins->stuck ? "some of it is page-locked since before, which CUDA has refused to end, "
                         "as it does when a GPU is lost"
                       : "the application has page-locked some of it by CUDA itself";
}

static int refused(const struct pins *pins, const void *data, uint64_t bytes,
                   const struct failure *failure, struct duet_message *message)
{
    char text[FAILURE_TEXT];
    bool wrong = failure->error == cudaErrorHostMemoryAlreadyRegistered ||
                 failure->error == cudaErrorInvalidValue;
    return duet_fail(message, wrong ? DUET_EINVAL : DUET_ENOMEM,
                     "page-locking %.1f MiB at %p, beside %.1f MiB that are: %s: %s", mib(bytes),
                     data, mib(pins->bytes), duet__cuda_text(text, failure), guess(pins, failure));
}

/* Drops the ranges that pin(data) made. Returns their number. */
static size_t drop_owned(struct pins *pins, const void *data)
{
    size_t dropped = 0;
    for (size_t i = pins->count; i-- > 0;) {
        struct pin_range *range = pins->ranges[i];
        if (range->owner != data)
            continue;
        dropped++;
        range->owner = NULL;
        range_drop(pins, range);
    }
    return dropped;
}

/* Page-locks a range by as many registrations as needed, all or none. */
static int add_owned(struct pins *pins, const void *data, uintptr_t begin, uintptr_t end,
                     struct duet_message *message)
{
    while (begin < end) {
        struct failure failure;
        uintptr_t stop = end - begin > pins->piece_bytes ? begin + pins->piece_bytes : end;
        struct pin_range *range = range_add(pins, begin, stop, &failure);
        if (!range) {
            int error = refused(pins, data, end - begin, &failure, message);
            (void)drop_owned(pins, data);
            return error;
        }
        range->owner = data;
        begin = stop;
    }
    return DUET_OK;
}

static int pin_pages(struct pins *pins, const void *data, uint64_t bytes,
                     struct duet_message *message)
{
    uintptr_t begin, end;
    if (!data || !pages(pins, data, bytes, &begin, &end))
        return duet_fail(message, DUET_EINVAL,
                         "page-locking %" PRIu64 " bytes at %p: no such memory", bytes, data);
    struct pin_range *range = holder(pins, begin, end);
    if (range && !range->owner)
        range->owner = data; /* of a handle: stays until `unpin` at least */
    if (range || covered(pins, begin, end))
        return DUET_OK;
    if (overlaps(pins, begin, end))
        return duet_fail(message, DUET_EINVAL,
                         "page-locking %.1f MiB at %p: some of its pages are page-locked already "
                         "and others not; page-lock all of it at once, before its first tasks",
                         mib(bytes), data);
    if (!pins->limit_bytes)
        return duet_fail(message, DUET_ENOMEM,
                         "page-locking %.1f MiB at %p: page-locking is switched off", mib(bytes),
                         data);
    if (!within_limit(pins, end - begin))
        return duet_fail(
            message, DUET_ENOMEM,
            "page-locking %.1f MiB at %p: %.1f MiB of at most %.1f MiB are page-locked "
            "already; the limit is an option (DUET_PIN, or --pin)",
            mib(bytes), data, mib(pins->bytes), mib(pins->limit_bytes));
    return add_owned(pins, data, begin, end, message);
}

static void tell_once(struct pins *pins, unsigned what, const char *line)
{
    if (pins->say && !(pins->told & what))
        pins->say(pins->clock, line);
    pins->told |= what;
}

/* Tells the user of a refusal, which an application may ignore, since all works without. */
static void tell_pin(struct pins *pins, const struct duet_message *refusal)
{
    char line[LINE + 64];
    (void)snprintf(line, sizeof line, "cuda: %s; copies of this data are slower", refusal->text);
    tell_once(pins, TOLD_REFUSED, line);
    pins->told |= TOLD_LIMIT | TOLD_SHARED; /* parts of it need no remark */
}

int duet__pins_pin(struct pins *pins, void *data, uint64_t bytes, struct duet_message *message)
{
    struct duet_message refusal = {""};
    (void)pthread_mutex_lock(&pins->mutex);
    int error = pin_pages(pins, data, bytes, &refusal);
    if (error == DUET_ENOMEM && pins->limit_bytes)
        tell_pin(pins, &refusal);
    (void)pthread_mutex_unlock(&pins->mutex);
    return error ? duet_fail(message, error, "%s", refusal.text) : DUET_OK;
}

int duet__pins_unpin(struct pins *pins, void *data, struct duet_message *message)
{
    (void)pthread_mutex_lock(&pins->mutex);
    size_t dropped = data ? drop_owned(pins, data) : 0;
    (void)pthread_mutex_unlock(&pins->mutex);
    if (!dropped)
        return duet_fail(message, DUET_EINVAL, "ending the page-locking of %p: it was not pinned",
                         data);
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* Requests of handles */

static void tell_refused(struct pins *pins, const struct pin_span *span,
                         const struct failure *failure)
{
    char text[FAILURE_TEXT], line[LINE];
    (void)snprintf(line, sizeof line,
                   "cuda: %.1f MiB of data are not page-locked, and copies of such data are "
                   "slower: %s: %s",
                   mib(span->span_bytes), duet__cuda_text(text, failure), guess(pins, failure));
    tell_once(pins, TOLD_REFUSED, line);
}

static void tell_limit(struct pins *pins)
{
    char line[LINE];
    (void)snprintf(line, sizeof line,
                   "cuda: %.1f MiB are page-locked, which is the limit (DUET_PIN, or --pin) or "
                   "nearly so; copies of more data are slower",
                   mib(pins->bytes));
    tell_once(pins, TOLD_LIMIT, line);
}

/* Page-locks a handle's memory. Returns NULL if something prevents it. */
static struct pin_range *lock_span(struct pins *pins, const struct pin_span *span)
{
    struct failure failure;
    uintptr_t begin, end;
    if (!pins->limit_bytes || span->bytes < SMALLEST || pins->refusals >= REFUSALS ||
        !pages(pins, span->data, span->span_bytes, &begin, &end) || end - begin > pins->piece_bytes)
        return NULL;
    if (span->span_bytes / GAPS > span->bytes || overlaps(pins, begin, end)) {
        tell_once(
            pins, TOLD_SHARED,
            "cuda: data that shares pages with other data, as tiles inside of one matrix do, is "
            "not page-locked, and its copies are slower; duet_pin page-locks all of it at once");
        return NULL;
    }
    if (!within_limit(pins, end - begin)) {
        tell_limit(pins);
        return NULL;
    }
    struct pin_range *range = range_add(pins, begin, end, &failure);
    if (!range) {
        pins->refusals++;
        tell_refused(pins, span, &failure);
        return NULL;
    }
    range->first = (uintptr_t)span->data;
    range->last = range->first + span->span_bytes;
    return range;
}

/* Returns the new value of a handle's mark. The mutex is held. */
static void *decide(struct pins *pins, const struct pin_span *span, _Atomic(void *) *mark)
{
    void *decided = atomic_load_explicit(mark, memory_order_acquire);
    uintptr_t begin = (uintptr_t)span->data, end = begin + span->span_bytes;
    if (decided)
        return decided; /* another device's thread has just decided */
    struct pin_range *range = holder(pins, begin, end);
    /* pinned in pieces: there is nothing to lock, and its copies would span two of them */
    if (!range && !covered(pins, begin, end))
        range = lock_span(pins, span);
    if (range)
        range->users++;
    decided = range ? (void *)range : staged(pins);
    atomic_store_explicit(mark, decided, memory_order_release);
    return decided;
}

/*
 * True if memory without a mark may be copied directly: a part of a pinned range, or of a handle
 * that lasts longer. Memory that only shares a page with a handle could be unlocked at any time.
 */
static bool is_pinned(const struct pins *pins, uintptr_t begin, uintptr_t end)
{
    const struct pin_range *range = holder(pins, begin, end);
    return range && (range->owner || (range->first <= begin && end <= range->last));
}

bool duet__pins_direct(struct pins *pins, const struct pin_span *span, _Atomic(void *) *mark)
{
    uintptr_t begin = (uintptr_t)span->data;
    void *decided = mark ? atomic_load_explicit(mark, memory_order_acquire) : staged(pins);
    bool inside = false;
    if (!mark || !decided) {
        (void)pthread_mutex_lock(&pins->mutex);
        if (mark)
            decided = decide(pins, span, mark);
        else
            inside = is_pinned(pins, begin, begin + span->span_bytes);
        (void)pthread_mutex_unlock(&pins->mutex);
    }
    if (decided == staged(pins))
        return inside;
    const struct pin_range *range = decided;
    return atomic_load_explicit(&range->alive, memory_order_acquire);
}

bool duet__pins_ordinary(struct pins *pins, const struct pin_span *span)
{
    uintptr_t begin = (uintptr_t)span->data;
    (void)pthread_mutex_lock(&pins->mutex);
    bool free_of_all = !overlaps(pins, begin, begin + span->span_bytes);
    (void)pthread_mutex_unlock(&pins->mutex);
    return free_of_all;
}

/* Counts a mark that no longer points to the range. */
static void range_leave(struct pins *pins, struct pin_range *range)
{
    if (--range->users)
        return;
    if (atomic_load_explicit(&range->alive, memory_order_relaxed)) {
        if (!range->owner)
            range_drop(pins, range);
        return;
    }
    struct pin_range **link = &pins->dead;
    while (*link != range)
        link = &(*link)->next;
    *link = range->next;
    free(range);
}

void duet__pins_forget(struct pins *pins, _Atomic(void *) *mark)
{
    struct pin_range *range = atomic_exchange(mark, NULL);
    if (!range || (void *)range == staged(pins))
        return;
    (void)pthread_mutex_lock(&pins->mutex);
    range_leave(pins, range);
    (void)pthread_mutex_unlock(&pins->mutex);
}

/* ------------------------------------------------------------------------------------------- */

int duet__pins_init(struct pins *pins, uint64_t limit_bytes,
                    void (*say)(void *clock, const char *line), void *clock)
{
    long page_bytes = sysconf(_SC_PAGESIZE);
    *pins = (struct pins){.limit_bytes = limit_bytes,
                          .piece_bytes = (uint64_t)PIECE_GIB << 30,
                          .page_bytes = page_bytes > 0 ? (uintptr_t)page_bytes : 4096,
                          .say = say,
                          .clock = clock};
    return pthread_mutex_init(&pins->mutex, NULL) ? DUET_ENOMEM : DUET_OK;
}

void duet__pins_fini(struct pins *pins)
{
    while (pins->count) {
        pins->ranges[pins->count - 1]->users = 0;
        range_drop(pins, pins->ranges[pins->count - 1]);
    }
    while (pins->dead) {
        struct pin_range *next = pins->dead->next;
        free(pins->dead);
        pins->dead = next;
    }
    free(pins->ranges);
    (void)pthread_mutex_destroy(&pins->mutex);
}
