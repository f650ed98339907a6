/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of executions: kernel, work and data sizes. Everything that depends on no more than that
 * (who can run it, expected times) is worked out once a class, so that submitting a task hashes
 * nothing but a few numbers, and mostly not even these.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

struct key {
    double work;
    bool counts_flops;
    uint64_t footprint, bytes, slab_bytes;
};

static struct key key_of(const struct duet_codelet *codelet, const void *args,
                         const struct access *accesses, unsigned count)
{
    struct key key = {.footprint = UINT64_C(0xcbf29ce484222325)};
    for (unsigned i = 0; i < count; i++) {
        if (!accesses[i].mode)
            continue;
        key.footprint = (key.footprint ^ accesses[i].handle->bytes) * UINT64_C(0x100000001b3);
        key.bytes += accesses[i].handle->bytes;
        key.slab_bytes += accesses[i].handle->slab_bytes;
    }
    double flops = codelet->flops ? codelet->flops(args) : 0;
    key.counts_flops = flops > 0 && isfinite(flops);
    key.work = key.counts_flops ? flops : (double)key.bytes;
    if (!(key.work > 0))
        key.work = 1; /* neither flops nor data: every execution is alike */
    return key;
}

static bool same(const struct duet__class *klass, const struct duet_codelet *codelet,
                 const struct key *key)
{
    return klass->codelet == codelet && klass->work == key->work &&
           klass->footprint == key->footprint && klass->bytes == key->bytes;
}

static size_t bucket_of(const struct duet_runtime *core, const struct duet_codelet *codelet,
                        double work, uint64_t footprint)
{
    uint64_t bits;
    memcpy(&bits, &work, sizeof bits);
    uint64_t mix = bits ^ footprint ^ (uint64_t)codelet->index * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(duet_random_next(&mix) & (core->class_buckets - 1));
}

static struct duet__class *lookup(struct duet_runtime *core, const struct duet_codelet *codelet,
                                  const struct key *key)
{
    if (!core->class_buckets)
        return NULL;
    size_t bucket = bucket_of(core, codelet, key->work, key->footprint);
    struct duet__class *klass = core->class_table[bucket];
    while (klass && !same(klass, codelet, key))
        klass = klass->next;
    return klass;
}

static void class_free(struct duet__class *klass)
{
    if (!klass)
        return;
    free(klass->cost);
    free(klass->mean);
    free(klass->expected);
    free(klass->snapshot);
    free(klass->ran);
    free(klass->executions);
    free(klass);
}

/* Seconds that can be added up: what takes more than some days, or is no number, is not known. */
static double believable(double seconds)
{
    return seconds > 0 && seconds < 1e6 ? seconds : 0;
}

/* The model's word, or the codelet's own. model_lock is not held. */
static double predict(const struct duet__class *klass, unsigned arch)
{
    struct duet_codelet *codelet = klass->codelet;
    spin_lock(&codelet->model_lock);
    double seconds = believable(
        codelet->core->model->predict(codelet->models[arch], klass->work, klass->footprint));
    spin_unlock(&codelet->model_lock);
    if (!(seconds > 0))
        seconds = believable(klass->cost[arch]);
    return seconds * codelet->belief_factor[arch];
}

/* Which kinds of workers can run it, out of the architectures that have code and times. */
static void choose_kinds(struct duet_runtime *core, struct duet__class *klass, uint64_t archs)
{
    uint64_t kinds = duet__kinds_of_archs(core, archs), devices = 0;
    for (unsigned k = 0; k < core->kind_count; k++) {
        uint64_t bit = UINT64_C(1) << k;
        if (!(kinds & bit))
            continue;
        if (core->kinds[k].device)
            devices |= bit;
        if (klass->slab_bytes > core->kinds[k].capacity_bytes) {
            kinds &= ~bit;
            klass->too_big = true;
        }
    }
    klass->able = kinds;
    /* the papers' SetArch: kernels that accelerators can run are for accelerators only */
    if (core->set_arch && devices)
        kinds &= devices;
    klass->kinds = kinds;
    atomic_init(&klass->possible, kinds);
}

/* Kinds of workers of the host's memory: where tasks expand. */
static uint64_t host_kinds(const struct duet_runtime *core)
{
    uint64_t kinds = 0;
    for (unsigned k = 0; k < core->kind_count; k++)
        if (!core->kinds[k].device)
            kinds |= UINT64_C(1) << k;
    return kinds;
}

/* What an execution takes for the bounds on the makespan: what is known, else what is believed. */
double duet__class_seconds(const struct duet__class *klass, unsigned arch)
{
    double mean = klass->mean[arch];
    return mean > 0 ? mean : atomic_load_explicit(&klass->expected[arch], memory_order_relaxed);
}

/* The shortest time that is known of the class now, on the kinds of workers that may run it. */
void duet__class_best(struct duet__class *klass)
{
    const struct duet_runtime *core = klass->codelet->core;
    uint64_t kinds = atomic_load_explicit(&klass->possible, memory_order_relaxed);
    double best_s = 0;
    for (unsigned a = 0; a < core->machine.arch_count; a++) {
        double seconds = duet__class_seconds(klass, a);
        bool usable = kinds & duet__kinds_of_archs(core, UINT64_C(1) << a);
        if (usable && seconds > 0 && (best_s == 0 || seconds < best_s))
            best_s = seconds;
    }
    atomic_store_explicit(&klass->best_s, best_s, memory_order_relaxed);
}

/* The first word of model and engine on the class. */
static void expect(struct duet_runtime *core, struct duet__class *klass)
{
    for (unsigned a = 0; a < core->machine.arch_count; a++) {
        bool implemented = klass->codelet->archs >> a & 1;
        atomic_init(&klass->expected[a], implemented ? predict(klass, a) : 0);
        if (implemented && core->ops->mean)
            klass->mean[a] = core->ops->mean(core->engine, klass, a);
    }
    duet__class_best(klass);
}

static int class_new(struct duet_codelet *codelet, const void *args, const struct key *key,
                     struct duet__class **out, struct duet_message *message)
{
    struct duet_runtime *core = codelet->core;
    unsigned archs = core->machine.arch_count;
    struct duet__class *klass = calloc(1, sizeof *klass);
    if (!klass)
        return DUET_ENOMEM;
    klass->codelet = codelet;
    klass->work = key->work;
    klass->counts_flops = key->counts_flops;
    klass->footprint = key->footprint;
    klass->bytes = key->bytes;
    klass->slab_bytes = key->slab_bytes;
    klass->cost = calloc(archs, sizeof *klass->cost);
    klass->mean = calloc(archs, sizeof *klass->mean);
    klass->expected = calloc(archs, sizeof *klass->expected);
    klass->snapshot = calloc(archs, sizeof *klass->snapshot);
    klass->ran = calloc(core->machine.worker_count, sizeof *klass->ran);
    klass->executions = zeroed(core->machine.worker_count * sizeof *klass->executions);
    if (!klass->cost || !klass->mean || !klass->expected || !klass->snapshot || !klass->ran ||
        !klass->executions) {
        class_free(klass);
        return DUET_ENOMEM;
    }
    for (unsigned a = 0; codelet->cost && a < archs; a++) {
        double cost = codelet->cost(args, core->machine.archs[a].name);
        klass->cost[a] = cost > 0 && isfinite(cost) ? cost : 0;
    }
    uint64_t timed = codelet->archs;
    int error = timed ? core->ops->classify(core->engine, klass, &timed, message) : DUET_OK;
    if (error) {
        class_free(klass);
        return error;
    }
    choose_kinds(core, klass, timed & codelet->archs);
    if (codelet->expand)
        klass->able = klass->kinds = host_kinds(core);
    expect(core, klass);
    *out = klass;
    return DUET_OK;
}

/* Makes room for one more class; registry_lock is held. */
static bool reserve(struct duet_runtime *core)
{
    if (core->class_count < core->class_capacity)
        return true;
    size_t capacity = core->class_capacity ? 2 * core->class_capacity : 64;
    struct duet__class **classes = realloc(core->classes, capacity * sizeof(struct duet__class *));
    if (!classes)
        return false;
    core->classes = classes;
    struct duet__class **table = calloc(capacity, sizeof(struct duet__class *));
    if (!table)
        return false;
    free(core->class_table);
    core->class_table = table;
    core->class_buckets = core->class_capacity = capacity;
    for (size_t i = 0; i < core->class_count; i++) {
        struct duet__class *klass = core->classes[i];
        size_t bucket = bucket_of(core, klass->codelet, klass->work, klass->footprint);
        klass->next = table[bucket];
        table[bucket] = klass;
    }
    return true;
}

/* Enters a class unless another thread was faster; registry_lock is held. */
static struct duet__class *enter(struct duet_runtime *core, struct duet__class *klass,
                                 const struct key *key)
{
    struct duet__class *other = lookup(core, klass->codelet, key);
    if (other)
        return other;
    if (!reserve(core))
        return NULL;
    klass->index = (unsigned)core->class_count;
    core->classes[core->class_count++] = klass;
    size_t bucket = bucket_of(core, klass->codelet, klass->work, klass->footprint);
    klass->next = core->class_table[bucket];
    core->class_table[bucket] = klass;
    return klass;
}

/* The class by its key, made if there is none. */
static int find_or_make(struct duet_codelet *codelet, const void *args, const struct key *key,
                        struct duet__class **out, struct duet_message *message)
{
    struct duet_runtime *core = codelet->core;
    spin_lock(&core->registry_lock);
    struct duet__class *klass = lookup(core, codelet, key);
    spin_unlock(&core->registry_lock);
    if (!klass) {
        struct duet__class *fresh = NULL;
        int error = class_new(codelet, args, key, &fresh, message);
        if (error)
            return error;
        spin_lock(&core->registry_lock);
        klass = enter(core, fresh, key);
        spin_unlock(&core->registry_lock);
        if (klass != fresh)
            class_free(fresh);
        if (!klass)
            return DUET_ENOMEM;
    }
    atomic_store_explicit(&codelet->last, klass, memory_order_release);
    *out = klass;
    return DUET_OK;
}

/*
 * The class of a task with these arguments and accesses. DUET_ENOMODEL and others as the engine's
 * classify says, DUET_ENOMEM.
 */
int duet__class_find(struct duet_codelet *codelet, const void *args, const struct access *accesses,
                     unsigned count, struct duet__class **out, struct duet_message *message)
{
    struct key key = key_of(codelet, args, accesses, count);
    struct duet__class *klass = atomic_load_explicit(&codelet->last, memory_order_acquire);
    if (!klass || !same(klass, codelet, &key))
        return find_or_make(codelet, args, &key, out, message);
    *out = klass;
    return DUET_OK;
}

/* Feeds the model with measured executions and refreshes the class's expectation. */
static void tell_model(struct duet__class *klass, unsigned arch, double mean_s, uint64_t samples)
{
    struct duet_codelet *codelet = klass->codelet;
    const struct duet_model *model = codelet->core->model;
    spin_lock(&codelet->model_lock);
    (void)model->add(codelet->models[arch], klass->work, klass->footprint, mean_s, samples);
    double expected =
        believable(model->predict(codelet->models[arch], klass->work, klass->footprint));
    spin_unlock(&codelet->model_lock);
    if (expected > 0)
        atomic_store_explicit(&klass->expected[arch], expected * codelet->belief_factor[arch],
                              memory_order_relaxed);
}

/*
 * A measured execution for the model. Short executions are told in bundles, of one,
 * two, four and so on, since telling the model costs a good part of a microsecond when several
 * workers do it.
 */
void duet__class_measured(struct duet__class *klass, const struct worker *worker, double seconds)
{
    enum { BUNDLE = 64 };
    struct executions *own = &klass->executions[worker->index];
    own->seconds += seconds;
    /* a step towards each: half of them lie on either side in the end */
    own->usual_s =
        own->usual_s > 0 ? own->usual_s * (seconds > own->usual_s ? 1.1 : 1 / 1.1) : seconds;
    if (++own->samples < own->enough && seconds < SHORT_S)
        return;
    tell_model(klass, worker->arch, own->seconds / own->samples, own->samples);
    own->enough = own->samples < BUNDLE ? 2 * own->samples : BUNDLE;
    own->seconds = 0;
    own->samples = 0;
}

void duet__classes_fini(struct duet_runtime *core)
{
    for (size_t i = 0; i < core->class_count; i++)
        class_free(core->classes[i]);
    free(core->classes);
    free(core->class_table);
}

unsigned duet__class_index(const struct duet__class *klass)
{
    return klass->index;
}

const char *duet__class_kernel(const struct duet__class *klass)
{
    return klass->codelet->name;
}

const struct duet_machine *duet__class_machine(const struct duet__class *klass)
{
    return &klass->codelet->core->machine;
}

double duet__class_work(const struct duet__class *klass)
{
    return klass->work;
}

bool duet__class_counts_flops(const struct duet__class *klass)
{
    return klass->counts_flops;
}

double duet__class_cost(const struct duet__class *klass, unsigned arch)
{
    return klass->cost[arch];
}

duet_kernel_fn duet__class_function(const struct duet__class *klass, unsigned arch)
{
    return klass->codelet->run[arch];
}

duet_kernel_fn duet__class_emulation(const struct duet__class *klass)
{
    return klass->codelet->emulation;
}

bool duet__class_expands(const struct duet__class *klass)
{
    return klass->codelet->expand != NULL;
}
