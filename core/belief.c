/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expected times of a class by architecture: the performance model's predictions, with the errors
 * that are put into them on purpose. Models are asked when a class is made and when one of its
 * executions was measured; policies read the stored results.
 */
#include <math.h>

#include "core/internal.h"

static const double TOLD_S = 100e-6;        /* kernel time after which models are told */
static const double BELIEVED_MOST_S = 1e6;  /* longest execution: many can be added */
static const double SAME_SHARE = 1.0 / 256; /* relative difference of equal times of short tasks */

/*
 * Returns `seconds`, or 0 (not known) if it is more than some days, or no number: many of them can
 * be added up.
 */
static double believable(double seconds)
{
    return seconds > 0 && seconds < BELIEVED_MOST_S ? seconds : 0;
}

/*
 * Returns a footprint for one of 32 kinds of tasks that are alike but for errors put into their
 * expected times, so that each kind has errors of its own.
 */
uint64_t duet__belief_varied(struct duet_codelet *codelet, uint64_t footprint)
{
    enum { KINDS = 32 };
    uint64_t mix =
        footprint + atomic_fetch_add_explicit(&codelet->varied, 1, memory_order_relaxed) % KINDS;
    return duet_random_next(&mix);
}

/*
 * Applies StarPU's perturbation (Augonnet et al., CCPE 2011): the logarithm of the microseconds is
 * multiplied by a factor of the class.
 */
RARE static double perturbed(const struct task_class *klass, unsigned arch, double seconds)
{
    const struct duet_codelet *codelet = klass->codelet;
    uint64_t stream =
        duet_random_stream(codelet->core->seed, klass->footprint + codelet->index * 64 + arch);
    double unit = 2 * duet_random_unit(&stream) - 1;
    seconds = seconds > 0 ? 1e-6 * pow(1e6 * seconds, 1 + codelet->core->perturbation * unit) : 0;
    return fmin(seconds, BELIEVED_MOST_S);
}

/* Applies the errors that were asked for: a factor of the kernel, and a perturbation. */
static inline double with_errors(const struct task_class *klass, unsigned arch, double seconds)
{
    const struct duet_codelet *codelet = klass->codelet;
    seconds *= codelet->belief_factor[arch];
    return codelet->core->perturbation > 0 ? perturbed(klass, arch, seconds) : seconds;
}

/*
 * Returns the expected seconds before any execution of the class has been measured: the model's
 * prediction if a calibration has primed the kernel or the codelet has no cost function; else the
 * codelet's cost. Measurements of other executions do not count.
 */
double duet__belief(const struct task_class *klass, const struct duet__class *described,
                    unsigned arch)
{
    struct duet_codelet *codelet = klass->codelet;
    double cost = believable(duet__class_cost(described, arch)), seconds = 0;
    if (!(cost > 0) || codelet->primed >> arch & 1) {
        spin_lock(&codelet->model_lock);
        seconds = believable(
            codelet->core->model->predict(codelet->models[arch], klass->work, klass->footprint));
        spin_unlock(&codelet->model_lock);
    }
    return with_errors(klass, arch, seconds > 0 ? seconds : cost);
}

/*
 * Asks the model, whose lock is held, and stores a prediction that differs by more than this share.
 */
static HOT void ask_model(struct task_class *klass, unsigned arch, double share)
{
    struct duet_codelet *codelet = klass->codelet;
    double expected =
        with_errors(klass, arch,
                    believable(codelet->core->model->predict(codelet->models[arch], klass->work,
                                                             klass->footprint)));
    double old = atomic_load_explicit(&klass->expected[arch], memory_order_relaxed);
    if (expected > 0 && fabs(expected - old) > share * old)
        atomic_store_explicit(&klass->expected[arch], expected, memory_order_relaxed);
}

/*
 * Asks the model again for all classes of a kernel, as predictions for all sizes have changed.
 * Costs given by codelets stay.
 */
static void ask_model_for_all(struct duet_codelet *codelet, unsigned arch)
{
    struct duet_runtime *core = codelet->core;
    if (codelet->cost && !(codelet->primed >> arch & 1))
        return;
    spin_lock(&core->registry_lock);
    spin_lock(&codelet->model_lock);
    for (size_t i = 0; i < core->class_count; i++)
        if (core->classes[i]->codelet == codelet)
            ask_model(core->classes[i], arch, 0);
    spin_unlock(&codelet->model_lock);
    spin_unlock(&core->registry_lock);
}

/*
 * Feeds the model, if there is one, with measured executions and refreshes the class's expectation.
 * Returns false if they are short, and another worker uses the model.
 */
static bool tell_model(struct task_class *klass, unsigned arch, double mean_s, uint64_t samples)
{
    struct duet_codelet *codelet = klass->codelet;
    const struct duet_model *model = codelet->core->model;
    if (!model)
        return true;
    if (mean_s >= TOLD_S)
        spin_lock(&codelet->model_lock);
    else if (!spin_try_lock(&codelet->model_lock))
        return false;
    int news = model->add(codelet->models[arch], klass->work, klass->footprint, mean_s, samples);
    /* a value that others read for each of many short tasks changes only where it matters */
    ask_model(klass, arch, mean_s < TOLD_S ? SAME_SHARE : 0);
    spin_unlock(&codelet->model_lock);
    if (news > 0)
        ask_model_for_all(codelet, arch);
    return true;
}

/*
 * Adds a measured execution to the model. A worker keeps the sums of a class to itself, and tells
 * them after one, two, four and so on executions, or after TOLD_S: telling the model costs a good
 * part of a microsecond when several workers do it. Only with a long kernel it waits for the
 * others.
 */
HOT void duet__class_measured(struct task_class *klass, const struct worker *worker, double seconds)
{
    enum { BUNDLE = 64 };
    struct executions *own = &klass->executions[worker->index];
    own->seconds += seconds;
    /* one step towards each sample: in the end half of them lie on either side */
    own->usual_s =
        own->usual_s > 0 ? own->usual_s * (seconds > own->usual_s ? 1.1 : 1 / 1.1) : seconds;
    bool enough = ++own->samples >= own->enough || own->seconds >= TOLD_S;
    if (!enough || !tell_model(klass, worker->arch, own->seconds / own->samples, own->samples))
        return;
    own->enough = own->samples < BUNDLE ? 2 * own->samples : BUNDLE;
    own->seconds = 0;
    own->samples = 0;
}
