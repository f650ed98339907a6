/* SPDX-License-Identifier: Apache-2.0 */
/* Workers to wake, gathered while locks are held and woken afterwards. */
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
