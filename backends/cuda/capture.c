/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of a graph in one command: launched one by one the first time, in which libraries make
 * what they keep; captured the second time; then launched as one CUDA graph.
 *
 * A capture has the addresses of buffers and of statuses baked in. One command at a time has it, so
 * that no other one writes these statuses, and a CUDA graph is updated while it does not run. If
 * all captures of a graph are in flight, one more is made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/internal.h"
#include "core/repeat.h"

struct capture {
    struct capture *next; /* of the device */
    struct duet__repeat *repeat;
    bool busy;            /* a command in flight has it */
    uint64_t version;     /* of what was captured */
    cudaGraphExec_t exec; /* NULL: nothing was captured yet */
    int *statuses;        /* one a kernel; page-locked */
    const void *data[];   /* addresses of the buffers when it was captured */
};

static void capture_free(const struct backend_device *device, struct capture *capture)
{
    if (capture->exec && !device->abandoned)
        duet__cuda_ignore(cudaGraphExecDestroy(capture->exec));
    if (capture->statuses && !duet__cuda_hung())
        duet__cuda_ignore(cudaFreeHost(capture->statuses));
    duet__repeat_drop(capture->repeat);
    free(capture);
}

void duet__captures_free(struct backend_device *device, bool all)
{
    for (struct capture **at = &device->captures, *capture; (capture = *at);) {
        if (!all && (capture->busy || atomic_load(&capture->repeat->submitters))) {
            at = &capture->next;
            continue;
        }
        *at = capture->next;
        capture_free(device, capture);
    }
}

/* Makes another capture, which may wait for the device. NULL: *failure says why. */
static struct capture *capture_new(struct backend_device *device, struct duet__repeat *repeat,
                                   struct failure *failure)
{
    struct capture *capture =
        calloc(1, sizeof *capture + repeat->accesses * sizeof capture->data[0]);
    void *statuses = NULL;
    duet__captures_free(device, false); /* those of graphs that were freed */
    *failure = (struct failure){.call = "calloc", .error = cudaErrorMemoryAllocation};
    if (!capture || duet__cuda_failed(failure, "cudaHostAlloc",
                                      cudaHostAlloc(&statuses, repeat->kernels * sizeof(int),
                                                    cudaHostAllocPortable))) {
        free(capture);
        return NULL;
    }
    atomic_fetch_add(&repeat->users, 1);
    capture->statuses = statuses;
    capture->repeat = repeat;
    capture->next = device->captures;
    device->captures = capture;
    return capture;
}

/* True if what was captured is what the kernels would enqueue. */
static bool is_current(const struct capture *capture, const struct backend_kernel *kernel)
{
    bool current = capture->exec && capture->version == kernel->version;
    for (size_t i = 0; current && i < kernel->call->buffer_count; i++)
        current = capture->data[i] == kernel->call->buffers[i].data;
    return current;
}

/* Returns a capture that no command has, a current one if there is; NULL: *failure says why. */
static struct capture *capture_take(struct backend_device *device,
                                    const struct backend_kernel *kernel, struct failure *failure)
{
    struct capture *found = NULL;
    for (struct capture *capture = device->captures; capture; capture = capture->next)
        if (capture->repeat == kernel->repeat && !capture->busy &&
            (!found || is_current(capture, kernel)))
            found = capture;
    return found ? found : capture_new(device, kernel->repeat, failure);
}

/* Lets a capture launch this graph: by an update of what it has launched before if CUDA can do
   that. Returns false with the reason in *failure. */
static bool take_graph(struct capture *capture, cudaGraph_t graph, struct failure *failure)
{
    cudaGraphExecUpdateResultInfo info;
    if (capture->exec && duet__cuda_failed(failure, "cudaGraphExecUpdate",
                                           cudaGraphExecUpdate(capture->exec, graph, &info))) {
        duet__cuda_ignore(cudaGraphExecDestroy(capture->exec));
        capture->exec = NULL;
    }
    if (capture->exec)
        return true;
    if (!duet__cuda_failed(failure, "cudaGraphInstantiate",
                           cudaGraphInstantiate(&capture->exec, graph, 0)))
        return true;
    capture->exec = NULL;
    return false;
}

/* Captures what the kernels enqueue. Returns false with the reason in *failure or their message. */
static bool capture_kernels(struct capture *capture, cudaStream_t stream,
                            const struct backend_kernel *kernel, struct failure *failure)
{
    const struct duet_call *call = kernel->call;
    cudaGraph_t graph = NULL;
    /* ThreadLocal: other threads may call CUDA as before */
    if (duet__cuda_failed(failure, "cudaStreamBeginCapture",
                          cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)))
        return false;
    int status = kernel->run(call);
    /* the error of a refused launch, which the graph lacks then; calls below may clear it */
    cudaError_t unsaid = cudaGetLastError();
    bool whole = !status && (unsaid == cudaErrorNotReady ||
                             !duet__cuda_failed(failure, "cudaGetLastError", unsaid));
    bool ended =
        !duet__cuda_failed(failure, "cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph));
    bool taken = whole && ended && take_graph(capture, graph, failure);
    if (graph)
        duet__cuda_ignore(cudaGraphDestroy(graph));
    capture->version = kernel->version;
    for (size_t i = 0; taken && i < call->buffer_count; i++)
        capture->data[i] = call->buffers[i].data;
    return taken;
}

/* Gives up capturing these kernels, and says why. */
static void refuse_repeat(const struct backend_device *device, const struct backend_kernel *kernel,
                          const struct failure *failure)
{
    const struct backend_setup *setup = &device->cuda->setup;
    struct duet_message *message = kernel->call->message;
    char text[FAILURE_TEXT], line[LABEL + sizeof message->text + 128];
    kernel->repeat->refused = true;
    (void)snprintf(line, sizeof line,
                   "%s: %zu kernels of a graph are launched one by one, not as a CUDA graph: %s",
                   device->label, kernel->repeat->kernels,
                   *message->text ? message->text : duet__cuda_text(text, failure));
    message->text[0] = '\0';
    if (setup->say)
        setup->say(setup->clock, line);
}

int duet__cuda_repeat(struct backend_device *device, struct stream *stream, struct command *command,
                      const struct backend_kernel *kernel)
{
    struct duet__repeat *repeat = kernel->repeat;
    struct failure failure = {.call = NULL};
    struct capture *capture = capture_take(device, kernel, &failure);
    if (!capture) {
        if (duet__cuda_broken(device, &failure))
            return command->status;
        command->reason.failure = failure;
        return duet__cuda_status(failure.error, DUET_ETASK);
    }
    capture->busy = true;
    command->capture = capture;
    memset(capture->statuses, 0, repeat->kernels * sizeof *capture->statuses);
    kernel->call->status = capture->statuses;
    if (repeat->begun && !repeat->refused) {
        bool current = is_current(capture, kernel);
        command->prepared = !current;
        if (!current)
            current = capture_kernels(capture, stream->handle, kernel, &failure);
        if (current && !duet__cuda_failed(&failure, "cudaGraphLaunch",
                                          cudaGraphLaunch(capture->exec, stream->handle)))
            return DUET_OK;
        if (duet__cuda_broken(device, &failure))
            return command->status;
        refuse_repeat(device, kernel, &failure);
    }
    repeat->begun = true;
    return kernel->run(kernel->call);
}

int duet__capture_status(const struct capture *capture, size_t *part)
{
    const volatile int *statuses = capture->statuses;
    for (size_t i = 0; i < capture->repeat->kernels; i++) {
        *part = i + 1;
        if (statuses[i])
            return statuses[i];
    }
    *part = 0;
    return 0;
}

void duet__capture_give(struct capture *capture)
{
    capture->busy = false;
}
