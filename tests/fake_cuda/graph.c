/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: commands that a stream captures and does not execute, until they are launched. */
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/internal.h"

/* A graph, or one that can be launched: commands in their order. */
struct fake_graph {
    unsigned device;
    size_t count;
    struct fake_command *first, *last;
};

/* The stream that this thread captures; NULL: none. Needs the lock. */
static _Thread_local struct fake_stream *capturing;

static void append(struct fake_graph *graph, struct fake_command *command)
{
    if (graph->first)
        graph->last->next = command;
    else
        graph->first = command;
    graph->last = command;
    graph->count++;
}

static void clear(struct fake_graph *graph)
{
    while (graph->first) {
        struct fake_command *next = graph->first->next;
        free(graph->first);
        graph->first = next;
    }
    graph->count = 0;
}

static struct fake_graph *graph_new(unsigned device)
{
    struct fake_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        abort();
    graph->device = device;
    return graph;
}

static struct fake_command *copy_of(const struct fake_command *command)
{
    struct fake_command *copy = fake_command(command->run, command->argument, command->bytes);
    copy->host = command->host;
    memcpy(copy->used, command->used, sizeof copy->used);
    return copy;
}

static void copy_all(struct fake_graph *to, const struct fake_graph *from)
{
    for (const struct fake_command *command = from->first; command; command = command->next)
        append(to, copy_of(command));
}

/* ------------------------------------------------------------------------------------------- */
/* Capturing                                                                                    */

void fake_capture(struct fake_stream *stream, struct fake_command *command)
{
    append(stream->capture, command);
}

cudaError_t fake_spoil(struct fake_stream *stream)
{
    stream->spoiled = true;
    return cudaErrorStreamCaptureUnsupported;
}

cudaError_t fake_look_captured(enum fake_function function)
{
    switch (function) {
    case FAKE_cudaGetDevice:
    case FAKE_cudaSetDevice:
    case FAKE_cudaGetDeviceProperties:
    case FAKE_cudaDeviceGetAttribute:
    case FAKE_cudaStreamGetId:
    case FAKE_cudaStreamBeginCapture:
    case FAKE_cudaStreamEndCapture:
    case FAKE_cudaLaunchHostFunc:
    case FAKE_cudaMemcpyAsync:
    case FAKE_cudaMemcpy2DAsync:
    case FAKE_cudaMemsetAsync:
        return cudaSuccess;
    default:
        return capturing ? fake_spoil(capturing) : cudaSuccess;
    }
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    struct fake_stream *stream;
    cudaError_t error = fake_enter(FAKE_cudaStreamBeginCapture, false);
    if (!error)
        error = fake_stream_of(handle, &stream);
    if (!error && (mode != cudaStreamCaptureModeThreadLocal || capturing || stream->capture))
        error = cudaErrorInvalidValue;
    if (error)
        return fake_leave(error);
    stream->capture = graph_new(stream->device);
    stream->spoiled = false;
    capturing = stream;
    return fake_leave(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out)
{
    struct fake_stream *stream;
    cudaError_t error = fake_enter(FAKE_cudaStreamEndCapture, false);
    cudaError_t broken = fake_stream_of(handle, &stream);
    *out = NULL;
    if (!stream || !stream->capture)
        return fake_leave(stream ? cudaErrorIllegalState : broken);
    if (capturing != stream)
        return fake_leave(cudaErrorStreamCaptureWrongThread);
    struct fake_graph *graph = stream->capture;
    capturing = NULL;
    stream->capture = NULL;
    error = error ? error : broken;
    if (!error && stream->spoiled)
        error = cudaErrorStreamCaptureInvalidated;
    if (!error) {
        *out = fake_put(&fake_state()->graphs, graph);
        return fake_leave(cudaSuccess);
    }
    clear(graph);
    free(graph);
    return fake_leave(error);
}

/* ------------------------------------------------------------------------------------------- */
/* Launching                                                                                    */

static cudaError_t graph_of(const struct fake_table *table, const void *handle,
                            struct fake_graph **out)
{
    *out = fake_get(table, handle);
    return *out ? fake_error_of((*out)->device) : cudaErrorInvalidValue;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t handle, unsigned long long flags)
{
    struct fake_graph *graph;
    cudaError_t error = fake_enter(FAKE_cudaGraphInstantiate, false);
    if (!error)
        error = graph_of(&fake_state()->graphs, handle, &graph);
    if (!error && flags)
        error = cudaErrorInvalidValue;
    if (error)
        return fake_leave(error);
    struct fake_graph *made = graph_new(graph->device);
    copy_all(made, graph);
    *out = fake_put(&fake_state()->execs, made);
    return fake_leave(cudaSuccess);
}

/* True if one graph differs from the other only in what its commands are given. */
static bool alike(const struct fake_graph *a, const struct fake_graph *b)
{
    const struct fake_command *one = a->first, *other = b->first;
    for (; one && other; one = one->next, other = other->next)
        if (one->run != other->run || one->bytes != other->bytes)
            return false;
    return !one && !other && a->device == b->device;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t handle, cudaGraph_t with,
                                cudaGraphExecUpdateResultInfo *info)
{
    struct fake_graph *exec, *graph;
    cudaError_t error = fake_enter(FAKE_cudaGraphExecUpdate, false);
    if (!error)
        error = graph_of(&fake_state()->execs, handle, &exec);
    if (!error)
        error = graph_of(&fake_state()->graphs, with, &graph);
    if (!error && !alike(exec, graph))
        error = cudaErrorGraphExecUpdateFailure;
    *info = (cudaGraphExecUpdateResultInfo){.result = error ? cudaGraphExecUpdateError
                                                            : cudaGraphExecUpdateSuccess};
    if (error)
        return fake_leave(error);
    clear(exec);
    copy_all(exec, graph);
    return fake_leave(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle)
{
    struct fake_graph *exec;
    struct fake_stream *stream;
    cudaError_t error = fake_enter(FAKE_cudaGraphLaunch, false);
    if (!error)
        error = graph_of(&fake_state()->execs, handle, &exec);
    if (!error)
        error = fake_stream_of(stream_handle, &stream);
    if (!error && (stream->device != exec->device || stream->device != fake_device()))
        error = cudaErrorInvalidValue;
    for (const struct fake_command *command = error ? NULL : exec->first; command;
         command = command->next)
        fake_give(stream, copy_of(command));
    return fake_leave(error);
}

static cudaError_t destroy(struct fake_table *table, const void *handle)
{
    struct fake_graph *graph = fake_take(table, handle);
    if (!graph)
        return cudaErrorInvalidValue;
    cudaError_t error = fake_error_of(graph->device);
    clear(graph);
    free(graph);
    return error;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    cudaError_t error = fake_enter(FAKE_cudaGraphDestroy, false);
    return fake_leave(error ? error : destroy(&fake_state()->graphs, graph));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    cudaError_t error = fake_enter(FAKE_cudaGraphExecDestroy, false);
    return fake_leave(error ? error : destroy(&fake_state()->execs, exec));
}
