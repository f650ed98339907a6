/* SPDX-License-Identifier: Apache-2.0 */
/* State of the fake, begin and end of a call, and the functions for tests. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake_cuda/internal.h"

static struct fake state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pid_t process; /* first process that has called; 0: none has; -1: never mind */

/* State of each thread. */
static _Thread_local struct {
    unsigned epoch; /* number of the reset that the device belongs to */
    unsigned device;
    cudaError_t last;
    bool inside; /* the thread is inside a host function */
} own;

static const char *const names[] = {
#define X(name) #name,
    FAKE_FUNCTIONS(X)
#undef X
};

struct fake *fake_state(void)
{
    return &state;
}

void fake_lock(void)
{
    (void)pthread_once(&once, fake_read_environment);
    (void)pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
    (void)pthread_mutex_unlock(&lock);
}

void fake_wait(void)
{
    (void)pthread_cond_wait(&changed, &lock);
}

void fake_changed(void)
{
    (void)pthread_cond_broadcast(&changed);
}

void fake_set_inside(bool inside)
{
    own.inside = inside;
}

unsigned fake_device(void)
{
    if (own.epoch != state.epoch) {
        own.epoch = state.epoch;
        own.device = 0;
        own.last = cudaSuccess;
    }
    return own.device;
}

cudaError_t fake_error_of(unsigned device)
{
    return state.devices[device].broken;
}

void fake_break(unsigned device, cudaError_t by)
{
    if (!state.devices[device].broken)
        state.devices[device].broken = by;
    fake_changed();
}

bool fake_is_sticky(cudaError_t error)
{
    switch ((int)error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
        return true;
    default:
        return false;
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Calls                                                                                        */

/* Returns the error that a test wants for this call, or 0. */
static cudaError_t injected(enum fake_function function)
{
    for (unsigned i = 0; i < state.fault_count; i++) {
        const struct fault *fault = &state.faults[i];
        if (fault->function != function || fault->at != state.calls[function])
            continue;
        if (fake_is_sticky(fault->error) && state.config.devices)
            fake_break(fake_device(), fault->error);
        return fault->error;
    }
    return cudaSuccess;
}

cudaError_t fake_enter(enum fake_function function, bool context)
{
    fake_lock();
    state.calls[function]++;
    (void)fake_device();
    process = process ? process : getpid();
    if (process > 0 && process != getpid())
        return cudaErrorInitializationError;
    if (own.inside)
        return cudaErrorNotPermitted;
    cudaError_t error = injected(function);
    if (!error)
        error = fake_look_captured(function);
    if (error)
        return error;
    if (state.config.no_driver)
        return cudaErrorInsufficientDriver;
    if (context && !state.config.devices)
        return cudaErrorNoDevice;
    if (context)
        state.devices[fake_device()].has_context = true;
    return context ? fake_error_of(fake_device()) : cudaSuccess;
}

cudaError_t fake_leave(cudaError_t error)
{
    fake_unlock();
    if (error)
        own.last = error;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    fake_lock();
    unsigned device = fake_device();
    cudaError_t broken = state.config.devices ? fake_error_of(device) : cudaSuccess;
    fake_unlock();
    return broken ? broken : own.last;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = cudaPeekAtLastError();
    own.last = cudaSuccess;
    return error;
}

cudaError_t cudaSetDevice(int device)
{
    cudaError_t error = fake_enter(FAKE_cudaSetDevice, false);
    if (!error && !state.config.devices)
        error = cudaErrorNoDevice;
    else if (!error && (device < 0 || (unsigned)device >= state.config.devices))
        error = cudaErrorInvalidDevice;
    if (!error) {
        own.device = (unsigned)device;
        error = fake_error_of(own.device);
    }
    return fake_leave(error);
}

cudaError_t cudaGetDevice(int *device)
{
    cudaError_t error = fake_enter(FAKE_cudaGetDevice, false);
    if (!error && !state.config.devices)
        error = cudaErrorNoDevice;
    if (!error)
        *device = (int)fake_device();
    return fake_leave(error);
}

/* ------------------------------------------------------------------------------------------- */
/* Handles                                                                                      */

enum { HANDLE_FIRST = 0x10000, HANDLE_STEP = 16 };

static void **place(const struct fake_table *table, const void *handle)
{
    uintptr_t number = (uintptr_t)handle;
    if (number < HANDLE_FIRST || number % HANDLE_STEP)
        return NULL;
    size_t index = (number - HANDLE_FIRST) / HANDLE_STEP;
    return index < table->count ? &table->items[index] : NULL;
}

void *fake_put(struct fake_table *table, void *item)
{
    table->items = realloc(table->items, (table->count + 1) * sizeof *table->items);
    if (!table->items)
        abort();
    table->items[table->count] = item;
    return (void *)(uintptr_t)(HANDLE_FIRST + table->count++ * HANDLE_STEP);
}

void *fake_get(const struct fake_table *table, const void *handle)
{
    void **item = place(table, handle);
    return item ? *item : NULL;
}

void *fake_take(struct fake_table *table, const void *handle)
{
    void **at = place(table, handle), *item = at ? *at : NULL;
    if (at)
        *at = NULL;
    return item;
}

void fake_table_clear(struct fake_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->items[i]);
    free(table->items);
    *table = (struct fake_table){NULL, 0};
}

/* ------------------------------------------------------------------------------------------- */
/* Tests                                                                                        */

bool fake_cuda_present(void)
{
    return true;
}

void fake_violation(const char *format, ...)
{
    va_list arguments;
    state.stats.violations++;
    if (state.tolerate)
        return;
    (void)fputs("fake CUDA: ", stderr);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    abort();
}

static unsigned count(const struct fake_table *table)
{
    unsigned items = 0;
    for (size_t i = 0; i < table->count; i++)
        items += table->items[i] != NULL;
    return items;
}

static unsigned leaks(bool say)
{
    unsigned streams = count(&state.streams), events = count(&state.events);
    unsigned graphs = count(&state.graphs) + count(&state.execs);
    if (say && streams + events)
        (void)fprintf(stderr, "fake CUDA: %u stream(s) and %u event(s) not destroyed\n", streams,
                      events);
    if (say && graphs)
        (void)fprintf(stderr, "fake CUDA: %u graph(s) not destroyed\n", graphs);
    return streams + events + graphs + fake_memory_leaks(say);
}

unsigned fake_cuda_leaks(bool say)
{
    fake_lock();
    unsigned result = leaks(say);
    fake_unlock();
    return result;
}

void fake_cuda_reset(const struct fake_cuda_config *config)
{
    fake_lock();
    if (leaks(true))
        abort();
    fake_memory_clear();
    fake_table_clear(&state.streams);
    fake_table_clear(&state.events);
    fake_table_clear(&state.graphs);
    fake_table_clear(&state.execs);
    unsigned epoch = state.epoch + 1;
    memset(&state, 0, sizeof state);
    state.epoch = epoch;
    process = -1;
    state.config = *config;
    if (state.config.devices > FAKE_CUDA_DEVICES_MAX)
        abort();
    if (!state.config.memory_bytes)
        state.config.memory_bytes = FAKE_CUDA_MEMORY_BYTES;
    fake_unlock();
}

static enum fake_function find(const char *function)
{
    for (unsigned i = 0; i < FAKE_FUNCTION_COUNT; i++)
        if (!strcmp(names[i], function))
            return (enum fake_function)i;
    (void)fprintf(stderr, "fake CUDA: there is no function %s\n", function);
    abort();
}

void fake_fault(const char *function, uint64_t nth, cudaError_t error)
{
    enum fake_function which = find(function);
    if (state.fault_count == FAKE_FAULTS)
        abort();
    state.faults[state.fault_count++] = (struct fault){which, state.calls[which] + nth, error};
}

void fake_cuda_fail(const char *function, unsigned nth, int error)
{
    fake_lock();
    fake_fault(function, nth, (cudaError_t)error);
    fake_unlock();
}

void fake_cuda_break(unsigned device, int error, unsigned operations)
{
    fake_lock();
    if (device >= state.config.devices)
        abort();
    state.devices[device].fuse = operations;
    state.devices[device].fuse_error = (cudaError_t)error;
    if (!operations)
        fake_break(device, (cudaError_t)error);
    fake_unlock();
}

void fake_cuda_stats(struct fake_cuda_stats *stats)
{
    fake_lock();
    *stats = state.stats;
    fake_unlock();
}

uint64_t fake_cuda_calls(const char *function)
{
    enum fake_function which = find(function);
    fake_lock();
    uint64_t calls = state.calls[which];
    fake_unlock();
    return calls;
}

uint64_t fake_cuda_used(unsigned device)
{
    fake_lock();
    uint64_t used = state.devices[device].used;
    fake_unlock();
    return used;
}

void fake_cuda_tolerate(bool tolerate)
{
    fake_lock();
    state.tolerate = tolerate;
    fake_unlock();
}
