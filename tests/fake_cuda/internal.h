/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the fake: everything that is declared here needs the lock of
   fake_enter. */
#ifndef DUET_TESTS_FAKE_CUDA_INTERNAL_H
#define DUET_TESTS_FAKE_CUDA_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "tests/fake_cuda/fake.h"

/* X(name): every function of the runtime that exists here. */
#define FAKE_FUNCTIONS(X)                                                                          \
    X(cudaGetDeviceCount)                                                                          \
    X(cudaSetDevice)                                                                               \
    X(cudaGetDevice)                                                                               \
    X(cudaGetDeviceProperties)                                                                     \
    X(cudaDeviceGetAttribute)                                                                      \
    X(cudaDeviceGetPCIBusId)                                                                       \
    X(cudaDeviceCanAccessPeer)                                                                     \
    X(cudaDeviceEnablePeerAccess)                                                                  \
    X(cudaDeviceDisablePeerAccess)                                                                 \
    X(cudaDeviceSynchronize)                                                                       \
    X(cudaDriverGetVersion)                                                                        \
    X(cudaRuntimeGetVersion)                                                                       \
    X(cudaMemGetInfo)                                                                              \
    X(cudaMalloc)                                                                                  \
    X(cudaFree)                                                                                    \
    X(cudaMallocAsync)                                                                             \
    X(cudaFreeAsync)                                                                               \
    X(cudaHostAlloc)                                                                               \
    X(cudaMallocHost)                                                                              \
    X(cudaFreeHost)                                                                                \
    X(cudaHostRegister)                                                                            \
    X(cudaHostUnregister)                                                                          \
    X(cudaStreamCreateWithFlags)                                                                   \
    X(cudaStreamDestroy)                                                                           \
    X(cudaStreamSynchronize)                                                                       \
    X(cudaStreamQuery)                                                                             \
    X(cudaStreamGetId)                                                                             \
    X(cudaStreamWaitEvent)                                                                         \
    X(cudaStreamBeginCapture)                                                                      \
    X(cudaStreamEndCapture)                                                                        \
    X(cudaGraphInstantiate)                                                                        \
    X(cudaGraphExecUpdate)                                                                         \
    X(cudaGraphLaunch)                                                                             \
    X(cudaGraphDestroy)                                                                            \
    X(cudaGraphExecDestroy)                                                                        \
    X(cudaLaunchHostFunc)                                                                          \
    X(cudaEventCreate)                                                                             \
    X(cudaEventCreateWithFlags)                                                                    \
    X(cudaEventRecord)                                                                             \
    X(cudaEventQuery)                                                                              \
    X(cudaEventSynchronize)                                                                        \
    X(cudaEventElapsedTime)                                                                        \
    X(cudaEventDestroy)                                                                            \
    X(cudaMemcpy)                                                                                  \
    X(cudaMemcpyAsync)                                                                             \
    X(cudaMemcpy2DAsync)                                                                           \
    X(cudaMemcpyPeerAsync)                                                                         \
    X(cudaMemset)                                                                                  \
    X(cudaMemsetAsync)

enum fake_function {
#define X(name) FAKE_##name,
    FAKE_FUNCTIONS(X)
#undef X
        FAKE_FUNCTION_COUNT
};

/* A range of addresses. */
struct span {
    uintptr_t begin;
    size_t bytes;
};

struct fake_event {
    unsigned device, flags;
    uint64_t recorded, completed; /* number of records asked for, and of those that have happened */
    double date_s;                /* date of the last record, seconds on the device's clock */
    unsigned uses;                /* commands that use the event */
    bool destroyed;
};

/* A command that a stream executes. */
struct fake_command {
    struct fake_command *next;
    void (*run)(void *argument); /* NULL: does nothing */
    bool host;                   /* `run` is a function of the host */
    struct fake_event *record, *wait;
    uint64_t number;     /* number of the record */
    size_t bytes;        /* size of the argument */
    struct span used[2]; /* ranges of the host's memory */
    _Alignas(max_align_t) unsigned char argument[];
};

struct fake_stream {
    unsigned device, flags;
    pthread_t thread;
    struct fake_command *first, *last;
    uint64_t given, done;
    unsigned waiters; /* number of threads in fake_drain */
    uint64_t random;  /* state of the delays' generator */
    uint64_t id;      /* differs from that of all other streams of the process */
    bool closing;
    struct fake_graph *capture; /* its commands go there; NULL: they are executed */
    bool spoiled;               /* what it captures has met a call that cannot be captured */
};

struct fake_device {
    uint64_t used;
    cudaError_t broken;
    bool has_context; /* some call has used it */
    unsigned fuse;    /* operations until the device breaks; 0: it does not */
    cudaError_t fuse_error;
    bool peer[FAKE_CUDA_DEVICES_MAX]; /* access to that device is enabled */
};

struct fault {
    enum fake_function function;
    uint64_t at; /* number of the call that fails */
    cudaError_t error;
};

enum { FAKE_FAULTS = 16, FAKE_CUDA_MEMORY_BYTES = 128 << 20 };

/* A table of handles, which are numbers of places in it; each is used once. */
struct fake_table {
    void **items;
    size_t count;
};

struct fake {
    struct fake_cuda_config config;
    struct fake_device devices[FAKE_CUDA_DEVICES_MAX];
    struct fake_table streams, events, graphs, execs;
    struct fake_cuda_stats stats;
    uint64_t calls[FAKE_FUNCTION_COUNT];
    struct fault faults[FAKE_FAULTS];
    unsigned fault_count;
    unsigned epoch; /* number of the reset */
    bool tolerate;
};

/* Returns the fake's only state. */
struct fake *fake_state(void);

/*
 * Begins a function of the runtime, which ends with fake_leave whatever this returns: counts the
 * call, and returns the error with which it ends at once. With `context` the call uses the current
 * device, which must be sound.
 */
cudaError_t fake_enter(enum fake_function function, bool context);
cudaError_t fake_leave(cudaError_t error);
/* Locks, for functions that are not the runtime's; fake_unlock unlocks. */
void fake_lock(void);
void fake_unlock(void);
/* Waits until fake_changed is called; the lock is free meanwhile. */
void fake_wait(void);
void fake_changed(void);

unsigned fake_device(void);                       /* returns the current device of this thread */
cudaError_t fake_error_of(unsigned device);       /* returns 0, or why the device is broken */
void fake_break(unsigned device, cudaError_t by); /* breaks the device if it is not yet broken */
void fake_set_inside(bool inside);                /* notes if this thread runs a host function */
bool fake_is_sticky(cudaError_t error);

/* Reports a violation: something that CUDA promises nothing for. */
void fake_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Puts an item into a table. Returns its handle, never NULL; fake_get and fake_take return NULL for
   a handle that is none, or no longer one. */
void *fake_put(struct fake_table *table, void *item);
void *fake_get(const struct fake_table *table, const void *handle);
void *fake_take(struct fake_table *table, const void *handle);
void fake_table_clear(struct fake_table *table);

/* Finds the stream of a handle, whose device is sound, in *out; else returns the error. */
cudaError_t fake_stream_of(cudaStream_t handle, struct fake_stream **out);
cudaError_t fake_event_of(cudaEvent_t handle, struct fake_event **out);

/* Returns a command for fake_give, with a copy of the argument; never NULL. */
struct fake_command *fake_command(void (*run)(void *argument), const void *argument, size_t bytes);
void fake_give(struct fake_stream *stream, struct fake_command *command);
/* Keeps a command that is given to a stream which captures. */
void fake_capture(struct fake_stream *stream, struct fake_command *command);
/* Spoils what the stream captures. Returns the error of the call that did. */
cudaError_t fake_spoil(struct fake_stream *stream);
/* Returns the error of a function that this thread may not call while it captures, and spoils
   that. */
cudaError_t fake_look_captured(enum fake_function function);
/* Waits until the stream has done all that it was given until now. Returns the device's error, or
   0. */
cudaError_t fake_drain(struct fake_stream *stream);
/* Waits for all streams of a device. */
cudaError_t fake_drain_device(unsigned device);
void fake_drain_all(void);
/* True if a command that is queued or runs uses some of this range of the host's. */
bool fake_host_in_use(struct span span);

/* Kinds of memory that a range of addresses can be. */
enum fake_kind {
    FAKE_MIXED,    /* more than one of the others */
    FAKE_PAGEABLE, /* the host's */
    FAKE_LOCKED,   /* the host's, page-locked as a whole */
    FAKE_DEVICE,
};

struct fake_place {
    enum fake_kind kind;
    unsigned device;
};

struct fake_place fake_find(struct span span);
/* Returns the host's address of a device's range; NULL if it is not in one allocation of this
   device. */
void *fake_shadow(unsigned device, struct span span);
/* Releases every allocation that is left; fake_memory_leaks counts them, and prints each if
   `say`. */
void fake_memory_clear(void);
unsigned fake_memory_leaks(bool say);
/* Lets a call fail, as fake_cuda_fail does. */
void fake_fault(const char *function, uint64_t nth, cudaError_t error);

/* Sets what the environment says. Text that is not understood ends the process. */
void fake_read_environment(void);

#endif
