/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An own CUDA without GPU, for tests only: the runtime functions that duet calls, and cuBLAS and
 * cuSOLVER on the CPU's BLAS and LAPACK. A program that is linked with these objects runs all that
 * duet does for GPUs; the linker then takes nothing from NVIDIA's libraries. It is stricter than
 * CUDA where that finds mistakes:
 *
 * - Device memory is addresses alone: the host that touches it gets a fault. It holds 0xff bytes
 *   (NaNs) at first. Every range that a command is given must lie in one allocation of its device.
 * - A range of the host's is page-locked as a whole by one registration or cudaHostAlloc, or not at
 *   all; one that is in part gives cudaErrorInvalidValue. Copies from and to pageable memory are
 *   made as CUDA may make them at the worst: the host waits (from the device), or its data is taken
 *   at once (to the device). They are counted.
 * - Handles are never used again, and a destroyed one gives cudaErrorInvalidResourceHandle, where
 *   CUDA may do anything.
 * - Host memory whose page lock ends while a command that uses it has not ended, cudaMemcpy kinds
 *   that do not fit the pointers, and leaks are told. There is no default stream: naming it gives
 *   cudaErrorInvalidResourceHandle.
 * - cudaMalloc and cudaHostAlloc wait for all that the device has, as CUDA may: what lets a kernel
 * or a host function go on must not come after them.
 * - A host function that calls CUDA gets cudaErrorNotPermitted, and a process that was forked after
 *   a call cudaErrorInitializationError (not after fake_cuda_reset).
 * - A thread that captures a stream may give it kernels, host functions, fillings and copies of
 *   page-locked memory; any other call that could wait, allocate or record spoils what it captures.
 * - With a broken device current, cudaHostUnregister does nothing while another device has been
 * used that is sound.
 *
 * Streams are threads which execute their commands in order, beside each other. Events have dates
 * of a clock that runs a little faster or slower than the host's, and are compared in float
 * milliseconds. A device that is broken gives its error forever, as after an illegal address.
 *
 * Not imitated: how long things take, how little of a GPU is left beside a kernel, races between
 * the host's threads (every call takes one lock, so ThreadSanitizer sees fewer of them than there
 * may be), managed memory, events in graphs, contexts that are reset, NVML. What real
 * drivers do in cases that NVIDIA's documentation leaves open is not known to this code either.
 *
 * Without further ado there is no device. The environment, read once: FAKE_CUDA_DEVICES (number),
 * FAKE_CUDA_MEMORY (bytes of each), FAKE_CUDA_REGISTERED (bytes that may be page-locked),
 * FAKE_CUDA_DELAY (microseconds, see delay_us), FAKE_CUDA_PEERS=0 (no peer access),
 * FAKE_CUDA_FAIL="cudaHostRegister@3=2,cudaMalloc@1=2" (call 3 gives error 2 ...),
 * FAKE_CUDA_BREAK="1@200=700" (device 1 breaks with error 700 at its operation 200),
 * FAKE_CUDA_REPORT=FILE (at the end of the process, lines "name number" go there: calls, what the
 * statistics below hold, leaks).
 */
#ifndef DUET_TESTS_FAKE_CUDA_FAKE_H
#define DUET_TESTS_FAKE_CUDA_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_CUDA_DEVICES_MAX = 16 };

/* Settings of the fake; zeroed: no device, and defaults. */
struct fake_cuda_config {
    unsigned devices;
    uint64_t memory_bytes;     /* memory of each device; 0: 128 MiB */
    uint64_t registered_bytes; /* most that cudaHostRegister may page-lock at a time; 0: no limit */
    bool whole_pages;          /* registrations that share a page are refused, too */
    bool no_peers;             /* no device has access to another */
    bool no_driver;            /* every call says that there is no driver */
    unsigned compute;  /* ten times the compute capability of device 0; 0: 90, as for others */
    unsigned delay_us; /* longest random wait of each operation before it begins */
};

/* True unless the real CUDA is linked (backends/cuda/testing_no_fake.c). */
bool fake_cuda_present(void);

/*
 * Starts anew with these devices: counters, faults and errors are forgotten. Anything left from
 * before is a leak, and ends the process.
 */
void fake_cuda_reset(const struct fake_cuda_config *config);

/*
 * Makes the nth next call of this function (1: the next one) do nothing and return this
 * cudaError_t. If the error is one after which a device is of no use any more, the current one is
 * broken. Up to 16 faults can wait at a time.
 */
void fake_cuda_fail(const char *function, unsigned nth, int error);

/*
 * Breaks a device: at once if `operations` is 0, else when its streams are to execute the operation
 * of this number from now on, which does not happen then. Queued operations do not happen any more.
 */
void fake_cuda_break(unsigned device, int error, unsigned operations);

/* Counters since the last reset. */
struct fake_cuda_stats {
    uint64_t in, out, in_bytes, out_bytes; /* copies between page-locked memory and devices */
    uint64_t pageable_in, pageable_out, pageable_bytes; /* copies from and to other memory */
    uint64_t within;                                    /* copies inside one device */
    uint64_t direct, staged, peer_bytes; /* between devices: with peer access, and without */
    uint64_t kernels, host_functions;    /* number of each that was given to streams */
    uint64_t violations;                 /* broken rules, beyond which CUDA promises nothing */
};

void fake_cuda_stats(struct fake_cuda_stats *stats);

/* Returns the number of calls of a function, failed ones included. An unknown name ends the
   process. */
uint64_t fake_cuda_calls(const char *function);

/* Returns the bytes allocated on a device now; fake_cuda_registered, those page-locked by now. */
uint64_t fake_cuda_used(unsigned device);
uint64_t fake_cuda_registered(void);

/*
 * Returns the number of streams, events, graphs, allocations, page-locked blocks and registrations
 * that exist, and prints each on standard error if `say`. Memory of cudaMallocAsync does not count:
 * libraries keep it.
 */
unsigned fake_cuda_leaks(bool say);

/* Lets violations only count, if `tolerate`; else one ends the process. For tests of this code. */
void fake_cuda_tolerate(bool tolerate);

/*
 * Returns the host's address of the bytes of device memory: for tests, and for stand-ins for
 * kernels. NULL if the range is not in one allocation of this device.
 */
void *fake_cuda_memory(unsigned device, const void *pointer, size_t bytes);

/*
 * Gives a "kernel" to a stream (a cudaStream_t) whose device must be the current one: it calls
 * run(copy of the `bytes` at argument). Returns a cudaError_t.
 */
int fake_cuda_launch(void *stream, void (*run)(void *argument), const void *argument, size_t bytes);

#endif
