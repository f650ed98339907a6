/* SPDX-License-Identifier: Apache-2.0 */
/* Workers to wake and errors of the run, gathered while locks are held and acted upon after. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/internal.h"

void duet__view_wake(struct duet_view *view, unsigned worker)
{
    if (view->wake_all)
        return;
    for (unsigned i = 0; i < view->wake_count; i++)
        if (view->wakes[i] == worker)
            return;
    if (view->wake_count == WAKES_MAX)
        view->wake_all = true;
    else
        view->wakes[view->wake_count++] = worker;
}

void duet__view_act(struct duet_view *view)
{
    struct duet_runtime *core = view->core;
    bool over = view->over;
    while (view->over) {
        struct duet_task *task = view->over;
        view->over = task->next;
        duet__task_over(view, task);
    }
    if (over && view->by >= 0)
        duet__look_idle(view, &core->workers[view->by]);
    else if (view->ended && unfinished(core) == 0)
        view->notify = true;
    if (view->wake_all) {
        for (unsigned w = 0; w < core->machine.worker_count; w++)
            core->ops->wake(core->engine, w);
    } else {
        for (unsigned i = 0; i < view->wake_count; i++)
            core->ops->wake(core->engine, view->wakes[i]);
    }
    if (view->notify)
        core->ops->notify(core->engine);
    view->wake_count = 0;
    view->wake_all = view->notify = view->ended = false;
}

void duet__fail_run(struct duet_runtime *core, int error, const char *format, ...)
{
    spin_lock(&core->message_lock);
    if (!atomic_load_explicit(&core->error, memory_order_relaxed)) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(core->run_message.text, sizeof core->run_message.text, format, arguments);
        va_end(arguments);
        atomic_store_explicit(&core->error, error, memory_order_release);
    }
    spin_unlock(&core->message_lock);
    core->ops->notify(core->engine);
}

bool duet__failed(const struct duet_runtime *core)
{
    return atomic_load_explicit(&core->error, memory_order_acquire) != 0;
}

void duet_cancel(struct duet_runtime *runtime)
{
    duet__fail_run(runtime, DUET_ECANCELED, "the run was cancelled");
    for (unsigned w = 0; w < runtime->machine.worker_count; w++)
        runtime->ops->wake(runtime->engine, w);
}
