/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of executions: kernel, work, data sizes, and costs by the codelet's cost function.
 * Everything that depends on these alone (which workers can run it, expected times) is computed
 * once a class, so that submitting a task hashes only a few numbers, and mostly not even these.
 *
 * The first CLASSES_MAX sizes of a kernel have a class each. Later ones share a class with others
 * that can run on the same workers: first with those whose work and costs are in the same of eight
 * bands of an octave, again in up to CLASSES_MAX classes; then with those whose work is in the same
 * octave. So neither classes nor models, which are told the middle of the band, grow with the
 * number of sizes, and nothing that was learned is forgotten.
 */
#include <math.h>

#include "core/internal.h"

enum { CLASSES_MAX = 1024 }; /* per kernel and grain; concurrent threads may make some more */

struct key {
    double work;
    bool counts_flops;
    uint64_t footprint, bytes;
};

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Returns the middle of the band that contains `value`, of 2^order bands in an octave. */
static double band_of(double value, unsigned order)
{
    uint64_t half = UINT64_C(1) << (51 - order), bits = (bits_of(value) & -(2 * half)) | half;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t mixed(uint64_t hash, uint64_t more)
{
    uint64_t state = hash ^ more;
    return duet_random_next(&state);
}

/* Mixes in the results of the cost function on the architectures that implement the kernel. */
static uint64_t mixed_costs(uint64_t hash, const struct duet__class *klass, bool bands)
{
    const struct duet_codelet *codelet = klass->codelet;
    for (unsigned a = 0; codelet->cost && a < codelet->core->machine.arch_count; a++) {
        double cost = codelet->archs >> a & 1 ? duet__class_cost(klass, a) : 0;
        hash = mixed(hash, bits_of(bands && cost > 0 ? band_of(cost, 3) : cost));
    }
    return hash;
}

/* Returns a footprint that differs for tasks of the same sizes with other costs. */
static __attribute__((noinline)) uint64_t costs_footprint(struct duet_codelet *codelet,
                                                          const void *args, uint64_t footprint)
{
    const struct duet__class asked = {.codelet = codelet, .args = args};
    if (codelet->cost)
        footprint = mixed_costs(footprint, &asked, false);
    if (codelet->core->perturbation > 0)
        footprint = duet__belief_varied(codelet, footprint);
    return footprint;
}

static struct key key_of(struct duet_codelet *codelet, const void *args,
                         const struct access *accesses, unsigned count)
{
    struct key key = {.footprint = UINT64_C(0xcbf29ce484222325)};
    for (unsigned i = 0; i < count; i++) {
        if (!accesses[i].mode)
            continue;
        key.footprint = (key.footprint ^ accesses[i].handle->bytes) * UINT64_C(0x100000001b3);
        key.bytes += accesses[i].handle->bytes;
    }
    double flops = 0;
    if (codelet->asked) {
        flops = codelet->flops ? codelet->flops(args) : 0;
        if (codelet->tells_apart)
            key.footprint = costs_footprint(codelet, args, key.footprint);
    }
    key.counts_flops = flops > 0 && isfinite(flops);
    key.work = key.counts_flops ? flops : (double)key.bytes;
    if (!(key.work > 0))
        key.work = 1; /* neither flops nor data: all executions are alike */
    return key;
}

static bool is_class_of(const struct task_class *klass, const struct duet_codelet *codelet,
                        double work, uint64_t footprint, uint64_t bytes)
{
    return klass->codelet == codelet && klass->work == work && klass->footprint == footprint &&
           klass->bytes == bytes;
}

static size_t class_bucket(const struct duet_runtime *core, const struct duet_codelet *codelet,
                           double work, uint64_t footprint)
{
    uint64_t mix =
        bits_of(work) ^ footprint ^ (uint64_t)codelet->index * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(duet_random_next(&mix) & (core->class_buckets - 1));
}

/* Finds a class. registry_lock is held. */
static struct task_class *class_lookup(const struct duet_codelet *codelet, double work,
                                       uint64_t footprint, uint64_t bytes)
{
    struct duet_runtime *core = codelet->core;
    if (!core->class_buckets)
        return NULL;
    struct task_class *klass = core->class_table[class_bucket(core, codelet, work, footprint)];
    while (klass && !is_class_of(klass, codelet, work, footprint, bytes))
        klass = klass->next;
    return klass;
}

static struct task_class *class_find(const struct duet_codelet *codelet, double work,
                                     uint64_t footprint, uint64_t bytes)
{
    spin_lock(&codelet->core->registry_lock);
    struct task_class *klass = class_lookup(codelet, work, footprint, bytes);
    spin_unlock(&codelet->core->registry_lock);
    return klass;
}

/* ------------------------------------------------------------------------------------------- */
/* Workers that can run a class, and its times */

/*
 * Sets the kinds of workers that can run a class, out of the architectures that have code and
 * times.
 */
static void choose_kinds(const struct duet_runtime *core, struct task_class *klass,
                         uint64_t slab_bytes, uint64_t archs)
{
    uint64_t kinds = duet__kinds_of_archs(core, archs), devices = 0;
    for (unsigned k = 0; k < core->kind_count; k++) {
        uint64_t bit = UINT64_C(1) << k;
        if (!(kinds & bit))
            continue;
        if (core->kinds[k].device)
            devices |= bit;
        if (slab_bytes > core->kinds[k].capacity_bytes) {
            kinds &= ~bit;
            klass->too_big |= bit;
        }
    }
    klass->able = kinds;
    /* the papers' SetArch: kernels that accelerators can run use accelerators only */
    if (core->set_arch && devices)
        kinds &= devices;
    klass->kinds = kinds;
}

/* Returns the kinds of workers of the host's memory, where tasks expand. */
static uint64_t host_kinds(const struct duet_runtime *core)
{
    uint64_t kinds = 0;
    for (unsigned k = 0; k < core->kind_count; k++)
        if (!core->kinds[k].device)
            kinds |= UINT64_C(1) << k;
    return kinds;
}

/*
 * Returns the seconds of an execution for the bounds on the makespan: the engine's mean, else the
 * expected time.
 */
double duet__class_seconds(const struct task_class *klass, unsigned arch)
{
    double mean = atomic_load_explicit(&klass->mean[arch], memory_order_relaxed);
    return mean > 0 ? mean : atomic_load_explicit(&klass->expected[arch], memory_order_relaxed);
}

/* Returns the shortest time of the class on workers of these kinds; 0: not known. */
static double shortest_s(const struct task_class *klass, uint64_t kinds)
{
    const struct duet_runtime *core = klass->codelet->core;
    double best_s = 0;
    for (unsigned a = 0; a < core->machine.arch_count; a++) {
        double seconds = duet__class_seconds(klass, a);
        bool usable = kinds & duet__kinds_of_archs(core, UINT64_C(1) << a);
        if (usable && seconds > 0 && (best_s == 0 || seconds < best_s))
            best_s = seconds;
    }
    return best_s;
}

/* Updates best_s, the class' shortest time on the kinds of workers that may run its tasks. */
void duet__class_best(struct task_class *klass)
{
    uint64_t kinds = atomic_load_explicit(&klass->possible, memory_order_relaxed);
    atomic_store_explicit(&klass->best_s, shortest_s(klass, kinds), memory_order_relaxed);
}

/*
 * Asks the engine for the mean of one execution of the class, and keeps the shortest: bounds hold
 * for it.
 */
static void ask_engine(struct task_class *klass, const struct duet__class *described)
{
    const struct duet_runtime *core = klass->codelet->core;
    bool news = false;
    for (unsigned a = 0; core->ops->mean && a < core->machine.arch_count; a++) {
        bool implemented = klass->codelet->archs >> a & 1;
        double mean = implemented ? core->ops->mean(core->engine, described, a) : 0;
        double least = atomic_load_explicit(&klass->mean[a], memory_order_relaxed);
        while (mean > 0 && (mean < least || least == 0))
            if (atomic_compare_exchange_weak(&klass->mean[a], &least, mean)) {
                news = true;
                break;
            }
    }
    if (news)
        duet__class_best(klass);
}

/* ------------------------------------------------------------------------------------------- */
/* Making classes */

/* Returns a class like `like`, its arrays empty, or NULL if there is no memory. */
static struct task_class *class_alloc(const struct duet_runtime *core,
                                      const struct task_class *like)
{
    size_t head = whole_lines(sizeof *like);
    size_t own = core->machine.worker_count * sizeof *like->executions;
    size_t times = whole_lines(core->machine.arch_count * sizeof *like->mean);
    char *memory = zeroed(head + own + 2 * times);
    if (!memory)
        return NULL;
    struct task_class *klass = memcpy(memory, like, sizeof *like);
    klass->executions = (struct executions *)(void *)(memory + head);
    klass->expected = (_Atomic(double) *)(void *)(memory + head + own);
    klass->mean = (_Atomic(double) *)(void *)(memory + head + own + times);
    return klass;
}

/* Returns a class as described by all fields but its arrays, or NULL if there is no memory. */
static struct task_class *class_new(const struct task_class *like,
                                    const struct duet__class *described)
{
    const struct duet_runtime *core = like->codelet->core;
    struct task_class *klass = class_alloc(core, like);
    if (!klass)
        return NULL;
    for (unsigned a = 0; a < core->machine.arch_count; a++)
        if (klass->codelet->archs >> a & 1)
            atomic_init(&klass->expected[a], duet__belief(klass, described, a));
    ask_engine(klass, described);
    duet__class_best(klass);
    return klass;
}

/* Makes room for one more class. registry_lock is held. */
static bool reserve_class(struct duet_runtime *core)
{
    if (core->class_count < core->class_capacity)
        return true;
    size_t capacity = core->class_capacity ? 2 * core->class_capacity : 64;
    struct task_class **classes = realloc(core->classes, capacity * sizeof(struct task_class *));
    if (!classes)
        return false;
    core->classes = classes;
    struct task_class **table = calloc(capacity, sizeof(struct task_class *));
    if (!table)
        return false;
    free(core->class_table);
    core->class_table = table;
    core->class_buckets = core->class_capacity = capacity;
    for (size_t i = 0; i < core->class_count; i++) {
        struct task_class *klass = core->classes[i];
        size_t bucket = class_bucket(core, klass->codelet, klass->work, klass->footprint);
        klass->next = table[bucket];
        table[bucket] = klass;
    }
    return true;
}

/*
 * Enters a class, or returns the one that another thread has entered before. NULL: no memory.
 * registry_lock is held.
 */
static struct task_class *class_enter(struct task_class *klass, enum grain grain)
{
    struct duet_codelet *codelet = klass->codelet;
    struct duet_runtime *core = codelet->core;
    struct task_class *other = class_lookup(codelet, klass->work, klass->footprint, klass->bytes);
    if (other)
        return other;
    if (!reserve_class(core))
        return NULL;
    if (grain == GRAIN_SIZE)
        klass->number = (unsigned)core->class_count;
    atomic_fetch_add(&codelet->class_counts[grain], 1);
    klass->index = (unsigned)core->class_count;
    core->classes[core->class_count++] = klass;
    size_t bucket = class_bucket(core, codelet, klass->work, klass->footprint);
    klass->next = core->class_table[bucket];
    core->class_table[bucket] = klass;
    return klass;
}

/* Makes and enters a class like `like`. NULL: no memory left. */
static struct task_class *class_make(const struct task_class *like,
                                     const struct duet__class *described, enum grain grain)
{
    struct duet_runtime *core = like->codelet->core;
    struct task_class *fresh = class_new(like, described);
    if (!fresh)
        return NULL;
    spin_lock(&core->registry_lock);
    struct task_class *klass = class_enter(fresh, grain);
    spin_unlock(&core->registry_lock);
    if (klass != fresh)
        free(fresh);
    return klass;
}

/* Copies a class into another core of the same machine, for `codelet`. NULL: no memory left. */
struct task_class *duet__class_twin(const struct task_class *klass, struct duet_codelet *codelet)
{
    struct duet_runtime *core = codelet->core;
    struct task_class *twin = class_alloc(core, klass);
    if (!twin)
        return NULL;
    twin->codelet = codelet;
    for (unsigned a = 0; a < core->machine.arch_count; a++)
        atomic_init(&twin->expected[a], atomic_load(&klass->expected[a]));
    spin_lock(&core->registry_lock);
    bool entered = class_enter(twin, GRAIN_SIZE) == twin;
    spin_unlock(&core->registry_lock);
    if (!entered)
        free(twin);
    return entered ? twin : NULL;
}

/* Reduces `like` to the properties that all executions of a grain share. */
static void coarsen(struct task_class *like, const struct duet__class *described, enum grain grain)
{
    uint64_t hash = mixed(mixed(grain, like->able), like->kinds ^ like->too_big);
    like->work = band_of(described->work, grain == GRAIN_BAND ? 3 : 0);
    like->bytes = 0;
    like->footprint = mixed(hash, like->counts_flops);
    if (grain == GRAIN_BAND)
        like->footprint = mixed_costs(like->footprint, described, true);
}

static bool is_full(const struct duet_codelet *codelet, enum grain grain)
{
    return grain != GRAIN_OCTAVE &&
           atomic_load_explicit(&codelet->class_counts[grain], memory_order_relaxed) >= CLASSES_MAX;
}

/* Finds or makes a class for an execution that has none: its own, or a shared one. */
static int class_settle(struct task_class *like, const struct duet__class *described,
                        struct task_class **out)
{
    enum grain grain = GRAIN_SIZE;
    struct task_class *klass = NULL;
    while (!klass && is_full(like->codelet, grain)) {
        coarsen(like, described, ++grain);
        klass = class_find(like->codelet, like->work, like->footprint, 0);
    }
    *out = klass ? klass : class_make(like, described, grain);
    if (klass)
        ask_engine(klass, described);
    return *out ? DUET_OK : DUET_ENOMEM;
}

/* Finds the class of a key, or makes it. */
static int find_or_make(struct duet_codelet *codelet, const void *args, const struct key *key,
                        uint64_t slab_bytes, struct task_class **out, struct duet_message *message)
{
    struct duet_runtime *core = codelet->core;
    struct task_class *klass = class_find(codelet, key->work, key->footprint, key->bytes);
    if (!klass) {
        const struct duet__class described = {codelet, args, key->work, key->counts_flops,
                                              DUET_UNNUMBERED};
        struct task_class like = {.codelet = codelet,
                                  .number = DUET_UNNUMBERED,
                                  .work = key->work,
                                  .counts_flops = key->counts_flops,
                                  .footprint = key->footprint,
                                  .bytes = key->bytes};
        uint64_t timed = codelet->archs;
        int error =
            timed ? core->ops->classify(core->engine, &described, &timed, message) : DUET_OK;
        if (error)
            return error;
        choose_kinds(core, &like, slab_bytes, timed & codelet->archs);
        if (codelet->expand)
            like.able = like.kinds = host_kinds(core) & (codelet->waits ? like.able : UINT64_MAX);
        error = class_settle(&like, &described, &klass);
        if (error)
            return error;
    }
    if (klass->number != DUET_UNNUMBERED)
        atomic_store_explicit(&codelet->last, klass, memory_order_release);
    if (klass->number != DUET_UNNUMBERED && !codelet->asked && key->bytes == 0)
        atomic_store_explicit(&codelet->alone, klass, memory_order_release);
    *out = klass;
    return DUET_OK;
}

/*
 * Finds the class and the work of a task with these arguments and accesses. Errors of the engine's
 * classify, DUET_ENOMODEL among them; DUET_ENOMEM.
 */
HOT int duet__class_find(struct duet_codelet *codelet, const void *args,
                         const struct access *accesses, unsigned count, struct task_class **out,
                         double *work, struct duet_message *message)
{
    struct task_class *klass =
        count ? NULL : atomic_load_explicit(&codelet->alone, memory_order_acquire);
    if (klass) {
        *work = klass->work;
        *out = klass;
        return DUET_OK;
    }
    struct key key = key_of(codelet, args, accesses, count);
    *work = key.work;
    klass = atomic_load_explicit(&codelet->last, memory_order_acquire);
    if (!klass || !is_class_of(klass, codelet, key.work, key.footprint, key.bytes))
        return find_or_make(codelet, args, &key, duet__slab_bytes(accesses, count), out, message);
    *out = klass;
    return DUET_OK;
}

RARE double duet__shortest_s(const struct duet_task_desc *task)
{
    struct duet_codelet *codelet = (struct duet_codelet *)(uintptr_t)task->codelet;
    const unsigned count = (unsigned)task->access_count;
    struct access few[8], *accesses = count <= 8 ? few : malloc(count * sizeof *accesses);
    struct task_class *klass;
    struct duet_message message;
    double seconds = 0, work;
    /* perturbations differ from task to task, in the order in which classes are asked for */
    if (accesses && !(codelet->core->perturbation > 0)) {
        for (unsigned i = 0; i < count; i++)
            accesses[i] = (struct access){.handle = task->accesses[i].handle,
                                          .index = (uint16_t)i,
                                          .order = (uint16_t)i,
                                          .mode = (uint8_t)task->accesses[i].mode};
        duet__sort_accesses(accesses, count);
        if (!duet__class_find(codelet, task->args_bytes ? task->args : NULL, accesses, count,
                              &klass, &work, &message))
            seconds =
                shortest_s(klass, task->where ? klass->able &
                                                    duet__kinds_of_archs(codelet->core, task->where)
                                              : klass->kinds);
    }
    if (accesses != few)
        free(accesses);
    return isfinite(seconds) ? seconds : 0;
}

void duet__classes_fini(struct duet_runtime *core)
{
    for (size_t i = 0; i < core->class_count; i++)
        free(core->classes[i]);
    free(core->classes);
    free(core->class_table);
}

/* ------------------------------------------------------------------------------------------- */
/* Questions of engines */

const char *duet__class_kernel(const struct duet__class *klass)
{
    return klass->codelet->name;
}

const struct duet_machine *duet__class_machine(const struct duet__class *klass)
{
    return &klass->codelet->core->machine;
}

double duet__class_cost(const struct duet__class *klass, unsigned arch)
{
    const struct duet_codelet *codelet = klass->codelet;
    const char *name = codelet->core->machine.archs[arch].name;
    double cost = codelet->cost ? codelet->cost(klass->args, name) : 0;
    return cost > 0 && isfinite(cost) ? cost : 0;
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

/* ------------------------------------------------------------------------------------------- */
/* Sets of workers that tasks are restricted to, numbered so that lists can sort tasks by them. */

uint64_t duet__kinds_of_archs(const struct duet_runtime *core, uint64_t archs)
{
    uint64_t kinds = 0;
    for (unsigned k = 0; k < core->kind_count; k++)
        if (archs >> core->kinds[k].arch & 1)
            kinds |= UINT64_C(1) << k;
    return kinds;
}

/* Appends a mask. mask_lock is held. */
static int mask_add(struct duet_runtime *core, uint64_t kinds, uint8_t *out)
{
    unsigned count = atomic_load_explicit(&core->mask_count, memory_order_relaxed);
    if (count == MASKS_MAX)
        return DUET_ENOMEM;
    struct mask *mask = &core->masks[count];
    /* read for each task: in cache lines that nobody writes */
    mask->workers = zeroed(whole_lines(core->worker_words * sizeof *mask->workers));
    if (!mask->workers)
        return DUET_ENOMEM;
    mask->kinds = kinds;
    for (unsigned w = 0; w < core->machine.worker_count; w++)
        if (kinds >> core->workers[w].kind & 1)
            mask->workers[w / 64] |= UINT64_C(1) << (w % 64);
    *out = (uint8_t)count;
    atomic_store_explicit(&core->mask_count, count + 1, memory_order_release);
    return DUET_OK;
}

static bool mask_find(const struct duet_runtime *core, uint64_t kinds, uint8_t *out)
{
    unsigned count = atomic_load_explicit(&core->mask_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        if (core->masks[i].kinds == kinds) {
            *out = (uint8_t)i;
            return true;
        }
    }
    return false;
}

/*
 * Returns the number of a set of kinds in *out. DUET_ENOMEM if there are too many different ones.
 */
int duet__mask_find(struct duet_runtime *core, uint64_t kinds, uint8_t *out)
{
    if (mask_find(core, kinds, out))
        return DUET_OK;
    spin_lock(&core->mask_lock);
    int error = mask_find(core, kinds, out) ? DUET_OK : mask_add(core, kinds, out);
    spin_unlock(&core->mask_lock);
    return error;
}

void duet__masks_fini(struct duet_runtime *core)
{
    unsigned count = atomic_load_explicit(&core->mask_count, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++)
        free(core->masks[i].workers);
}
