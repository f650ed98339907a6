/* SPDX-License-Identifier: Apache-2.0 */
/* Private deques: see real/private.h. */
#include "real/private.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

static struct private_task *at(const struct private_deque *deque, size_t position)
{
    return &deque->ring[position & (deque->capacity - 1)];
}

static bool grow(struct private_deque *deque)
{
    size_t capacity = deque->capacity ? 2 * deque->capacity : FIRST_ROOM;
    struct private_task *ring = malloc(capacity * sizeof *ring);
    if (!ring)
        return false;
    for (size_t i = deque->oldest; i != deque->newest; i++)
        ring[i & (capacity - 1)] = *at(deque, i);
    free(deque->ring);
    deque->ring = ring;
    deque->capacity = capacity;
    return true;
}

bool duet__private_keep(struct duet_runtime *core, unsigned worker, struct private_deque *deque,
                        const struct duet_task_desc *desc)
{
    if (deque->closed || duet__private_wanted(core) || duet__failed(core))
        return false;
    if (deque->newest - deque->oldest == deque->capacity && !grow(deque))
        return false;
    struct private_task *task = at(deque, deque->newest);
    task->run = duet__private_function(desc, worker, &task->klass);
    if (!task->run)
        return false;
    task->codelet = desc->codelet;
    task->priority = desc->priority;
    task->complexity = desc->complexity;
    task->args_bytes = (uint32_t)desc->args_bytes;
    if (desc->args_bytes)
        memcpy(task->args, desc->args, desc->args_bytes);
    if (!deque->open)
        duet__private_begin(core);
    deque->open = true;
    deque->newest++;
    return true;
}

/* Gives the oldest to the core. A task that was good when it was kept is refused only for memory.
 */
static void give(struct duet_runtime *core, struct private_deque *deque)
{
    const struct private_task *task = at(deque, deque->oldest++);
    const struct duet_task_desc desc = {
        .codelet = task->codelet,
        .args = task->args,
        .args_bytes = task->args_bytes,
        .priority = task->priority,
        .complexity = task->complexity,
    };
    deque->closed = true;
    int error = duet_submit(core, &desc);
    deque->closed = false;
    if (error)
        duet__fail_run(core, error, "a nested task cannot be given to another worker: %s",
                       duet_strerror(error));
}

void duet__private_give_all(struct duet_runtime *core, struct private_deque *deque)
{
    while (deque->oldest != deque->newest)
        give(core, deque);
}

bool duet__private_run(struct duet_runtime *core, unsigned worker, struct private_deque *deque)
{
    if (duet__failed(core))
        deque->oldest = deque->newest;
    else if (deque->newest - deque->oldest > 1 && duet__private_wanted(core))
        give(core, deque);
    if (deque->oldest == deque->newest)
        return false;
    /* a copy: what it submits may take its place */
    struct private_task task = *at(deque, --deque->newest);
    struct duet_message message;
    message.text[0] = '\0';
    const struct duet_call call = {.runtime = core, .args = task.args, .message = &message};
    int status = task.run(&call);
    if (status)
        duet__fail_run(core, status, "a nested task (%s) failed on %s: %s",
                       duet__class_kernel(task.klass),
                       duet_runtime_machine(core)->workers[worker].name,
                       *message.text ? message.text : duet_strerror(status));
    else
        duet__private_ran(core, worker, task.klass);
    return true;
}

void duet__private_fini(struct private_deque *deque)
{
    free(deque->ring);
    *deque = (struct private_deque){0};
}
