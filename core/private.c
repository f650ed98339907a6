/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core knows of tasks that a worker keeps to itself: whether they can, how many there
 * were, and that the run is not over before them.
 */
#include "core/internal.h"

void duet__private_begin(struct duet_runtime *core)
{
    atomic_fetch_add(&core->submitted, 1);
}

/* Nobody can take what is kept while a kernel runs, so kernels are to be known as short. */
static bool known_short(const struct duet_class *klass, unsigned worker)
{
    static const double short_s = 20e-6;
    double usual_s = klass->executions[worker].usual_s;
    return usual_s > 0 && usual_s < short_s;
}

bool duet__private_may(const struct duet_task *running, unsigned worker)
{
    return known_short(running->klass, worker);
}

bool duet__private_wanted(const struct duet_runtime *core)
{
    for (unsigned i = 0; i < core->worker_words; i++)
        if (atomic_load_explicit(&core->hungry[i], memory_order_relaxed) & core->hosts[i])
            return true;
    return false;
}

duet_kernel_fn duet__private_function(const struct duet_task_desc *desc, unsigned worker,
                                      struct duet_class **klass)
{
    struct duet_codelet *codelet = (struct duet_codelet *)(uintptr_t)desc->codelet;
    const struct worker *self = &codelet->core->workers[worker];
    if (duet__class_find(codelet, desc->args, NULL, 0, klass, NULL))
        return NULL;
    bool able = ((*klass)->kinds >> self->kind & 1) && known_short(*klass, worker);
    return able ? codelet->run[self->arch] : NULL;
}

void duet__private_ran(struct duet_runtime *core, unsigned worker, struct duet_class *klass)
{
    struct worker *self = &core->workers[worker];
    self->tasks++;
    klass->executions[worker].ran++;
    if (klass->counts_flops)
        self->flops += klass->work;
}

void duet__private_end(struct duet_runtime *core, unsigned worker, double start_s, double end_s)
{
    struct worker *self = &core->workers[worker];
    struct duet_ops ops = {0};
    struct duet_view context;
    self->busy_s += end_s - start_s;
    if (end_s > self->last_end_s)
        self->last_end_s = end_s;
    view_begin(&context, core, end_s, (int)worker, &ops);
    duet__count_finished(&context);
    duet__context_flush(&context);
}

bool duet__failed(const struct duet_runtime *core)
{
    return atomic_load_explicit(&core->error, memory_order_acquire) != 0;
}
