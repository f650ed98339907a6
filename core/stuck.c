/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in which nothing can happen any more: their explanation, and their end. */
#include <stdio.h>

#include "core/internal.h"

enum { EXAMPLES = 3 }; /* examples of one reason */

/* A message with reasons, which are added as long as there is room. */
struct reasons {
    struct duet_message *message;
    unsigned count;
};

DUET_PRINTF(2, 3) static void add_reason(struct reasons *reasons, const char *format, ...)
{
    char *text = reasons->message->text;
    size_t used = strlen(text);
    int length =
        snprintf(text + used, DUET_MESSAGE_MAX - used, "%s ", reasons->count++ ? ";" : ":");
    va_list arguments;
    used += (size_t)length;
    va_start(arguments, format);
    if (used < DUET_MESSAGE_MAX)
        (void)vsnprintf(text + used, DUET_MESSAGE_MAX - used, format, arguments);
    va_end(arguments);
}

/* Returns the task that waits for a handle which the application has acquired, or NULL. Handle lock
   held. */
static const struct duet_task *waits_for_release(const struct duet_handle *handle)
{
    const struct duet_task *acquired = handle->acquired;
    struct access *access = handle->head;
    if (!acquired || acquired->over ||
        atomic_load_explicit(&acquired->pending, memory_order_relaxed))
        return NULL;
    while (access && !access_task(access)->klass)
        access = access->next;
    return access ? access_task(access) : NULL;
}

static void add_acquired(struct duet_runtime *core, struct reasons *reasons)
{
    unsigned found = 0;
    spin_lock(&core->registry_lock);
    for (struct duet_handle *h = core->handles; h && found < EXAMPLES; h = h->next) {
        struct task_says says;
        spin_lock(&h->lock);
        const struct duet_task *task = waits_for_release(h);
        if (task) {
            found++;
            add_reason(
                reasons,
                "%s waits for handle %llu, which the application has acquired and not released",
                duet__task_says(core, task, &says), (unsigned long long)h->id);
        }
        spin_unlock(&h->lock);
    }
    spin_unlock(&core->registry_lock);
}

/* Adds a child that comes after others. */
static void add_child(struct duet_runtime *core, struct reasons *reasons)
{
    struct task_says says[EXAMPLES];
    bool waits = false;
    unsigned count = duet__refs_example(core, says, EXAMPLES, &waits);
    if (count)
        add_reason(reasons, "%s comes after %s%s%s%s", says[0].text, says[1].text,
                   count > 2 ? ", which comes after " : "", count > 2 ? says[2].text : "",
                   waits ? ", which waits for its children, or below another task that waits" : "");
}

static void add_awaited(const struct duet_runtime *core, struct reasons *reasons)
{
    unsigned awaited = atomic_load(&core->awaited);
    if (awaited)
        add_reason(reasons,
                   "%u %s lent to another part of the library, which neither comes nor goes",
                   awaited, awaited == 1 ? "piece of data is" : "pieces of data are");
}

/* Adds the number of tasks that are ready or taken. */
static void add_workers(struct duet_runtime *core, struct reasons *reasons)
{
    size_t ready = duet_list_length(&core->shared);
    for (const struct duet_list *list = core->own_lists; list; list = list->next)
        ready += duet_list_length(list);
    unsigned holding = 0, stalled = 0;
    const char *example = "";
    for (unsigned w = 0; w < core->machine.worker_count; w++) {
        const struct worker *worker = &core->workers[w];
        holding += worker->taken;
        for (unsigned i = 0; i < worker->taken; i++)
            stalled += worker->slots[i]->state == TASK_TAKEN;
        ready += duet_list_length(&worker->list);
        if (!*example && duet_list_length(&worker->list))
            example = core->machine.workers[w].name;
    }
    if (ready)
        add_reason(reasons, "%zu %s ready, and nobody takes %s%s%s", ready,
                   ready == 1 ? "is" : "are", ready == 1 ? "it" : "them",
                   *example ? ": look at the list of " : "", example);
    if (holding)
        add_reason(reasons, "%u %s held by workers (%u of them wait for device memory)", holding,
                   holding == 1 ? "is" : "are", stalled);
}

/* Adds the task that the policy says it waits for. */
static void add_policy(struct duet_runtime *core, struct reasons *reasons)
{
    const struct duet_policy *policy = policy_of(core);
    struct duet_message message = {""};
    struct duet__ops ops = {0};
    struct duet_view view;
    if (!policy || !policy->explain)
        return;
    view_begin(&view, core, 0, DUET_SUBMITTER, &ops);
    policy->explain(core->policy_state, &view, &message);
    if (*message.text)
        add_reason(reasons, "%s", message.text);
}

/*
 * states of tasks are read without their locks: nothing has happened for seconds, and only a
 * message results
 */
void duet__explain(struct duet_runtime *core, struct duet_message *message)
{
    unsigned long long left = unfinished(core);
    struct reasons reasons = {.message = message};
    const int error = atomic_load(&core->error);
    const char *why = error && error != DUET_ECANCELED ? core->run_message.text : "";
    (void)duet_fail(message, DUET_ESTUCK, "%s%s%llu task%s cannot go on", why, *why ? "; " : "",
                    left, left == 1 ? "" : "s");
    add_acquired(core, &reasons);
    add_awaited(core, &reasons);
    add_child(core, &reasons);
    add_policy(core, &reasons);
    add_workers(core, &reasons);
    if (!reasons.count)
        add_reason(&reasons, "no worker has what would come next, nor has a list: the policy "
                             "has to push each task that it gets, and to return it from `pop`");
}

/* Sets the message of a wait that has failed, unless an error of the run has led to it. */
void duet__tell_stuck(struct duet_runtime *core)
{
    struct duet_message message = {""};
    int error = duet__run_error(core);
    if (error && error != DUET_ECANCELED) /* the message was set with that error */
        return;
    duet__explain(core, &message);
    duet__tell(core, &message);
}

void duet__give_up(struct duet_runtime *core, unsigned worker, double now)
{
    struct duet__ops ops = {0};
    struct duet_message message = {""};
    struct duet_view view;
    duet__explain(core, &message);
    duet__fail_run(core, DUET_ESTUCK, "%s", message.text);
    view_begin(&view, core, now, (int)worker, &ops);
    view.wake_all = true; /* for tasks that are cancelled now */
    duet__refs_release(&view);
    duet__view_flush(&view);
}
