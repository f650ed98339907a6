/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: their implementations by architecture and their performance models. */
#include <stdio.h>

#include "core/internal.h"

/* Returns the architecture of this name, or all of this backend. */
static uint64_t archs_named(const struct duet_runtime *core, const char *name, size_t length)
{
    uint64_t archs = 0;
    for (unsigned a = 0; a < core->machine.arch_count; a++) {
        const struct duet_arch *arch = &core->machine.archs[a];
        if ((strlen(arch->name) == length && !memcmp(arch->name, name, length)) ||
            (strlen(arch->backend) == length && !memcmp(arch->backend, name, length)))
            archs |= UINT64_C(1) << a;
    }
    return archs;
}

uint64_t duet_where(const struct duet_runtime *runtime, const char *name)
{
    uint64_t archs = 0;
    while (name && *name) {
        const char *comma = strchr(name, ',');
        size_t length = comma ? (size_t)(comma - name) : strlen(name);
        archs |= archs_named(runtime, name, length);
        name += length + (comma != NULL);
    }
    return archs;
}

static void codelet_free(struct duet_runtime *core, struct duet_codelet *codelet)
{
    if (!codelet)
        return;
    for (unsigned a = 0; codelet->models && a < core->machine.arch_count; a++) {
        if (codelet->models[a] && core->model)
            core->model->fini(codelet->models[a]);
        free(codelet->models[a]);
    }
    free(codelet->models);
    free(codelet->run);
    free(codelet->belief_factor);
    free(codelet);
}

/* Feeds the models with measurements of this kernel from before it was registered. */
static int add_primes(struct duet_runtime *core, struct duet_codelet *codelet)
{
    for (const struct prime *p = core->primes; p; p = p->next) {
        if (strcmp(p->kernel, codelet->name) != 0)
            continue;
        int error = core->model->add(codelet->models[p->arch], p->work, 0, p->mean_s, p->samples);
        if (error < 0)
            return error;
        codelet->primed |= UINT64_C(1) << p->arch;
    }
    return DUET_OK;
}

/*
 * Returns a random state for the errors put into expectations: depends on the seed and the kernel's
 * name only.
 */
static uint64_t belief_stream(uint64_t seed, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return duet_random_stream(seed, hash);
}

/* Returns the function that emulated devices call. */
static duet_kernel_fn emulation(const struct duet_codelet_desc *desc)
{
    duet_kernel_fn cpu = NULL;
    for (size_t i = 0; i < desc->implementation_count; i++) {
        const struct duet_implementation *one = &desc->implementations[i];
        if (!strcmp(one->arch, "emulated") && one->run)
            return one->run;
        if (!strcmp(one->arch, "cpu") && !cpu)
            cpu = one->run;
    }
    return cpu;
}

static int codelet_fill(struct duet_runtime *core, struct duet_codelet *codelet,
                        const struct duet_codelet_desc *desc)
{
    unsigned archs = core->machine.arch_count;
    codelet->core = core;
    codelet->flops = desc->flops;
    codelet->cost = desc->cost;
    codelet->tells_apart = desc->cost || core->perturbation > 0;
    codelet->asked = desc->flops || codelet->tells_apart;
    memcpy(codelet->name, desc->name, strlen(desc->name) + 1);
    codelet->run = calloc(archs, sizeof *codelet->run);
    codelet->models = calloc(archs, sizeof *codelet->models);
    codelet->belief_factor = calloc(archs, sizeof *codelet->belief_factor);
    if (!codelet->run || !codelet->models || !codelet->belief_factor)
        return DUET_ENOMEM;
    uint64_t stream = belief_stream(core->seed, codelet->name);
    for (unsigned a = 0; a < archs; a++) {
        codelet->belief_factor[a] = 1 + core->model_error * (2 * duet_random_unit(&stream) - 1);
        codelet->models[a] = calloc(1, core->model ? core->model->state_size : 1);
        if (!codelet->models[a])
            return DUET_ENOMEM;
    }
    for (size_t i = 0; i < desc->implementation_count; i++) {
        const struct duet_implementation *one = &desc->implementations[i];
        uint64_t set = archs_named(core, one->arch, strlen(one->arch));
        codelet->archs |= set;
        for (unsigned a = 0; a < archs; a++)
            if (set >> a & 1)
                codelet->run[a] = one->run;
    }
    codelet->emulation = emulation(desc);
    codelet->expand = desc->expand;
    codelet->waits = desc->waits;
    codelet->capturable = desc->capturable;
    for (unsigned w = 0; desc->waits && w < core->machine.worker_count; w++)
        if (core->machine.workers[w].node == DUET_HOST)
            codelet->archs |= UINT64_C(1) << core->machine.workers[w].arch;
    return core->model ? add_primes(core, codelet) : DUET_OK;
}

/* Returns the kernel of this name, or NULL. registry_lock is held. */
static struct duet_codelet *codelet_find(const struct duet_runtime *core, const char *name)
{
    for (struct duet_codelet *c = core->codelets; c && name; c = c->next)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

struct duet_codelet *duet_codelet_find(struct duet_runtime *runtime, const char *name)
{
    spin_lock(&runtime->registry_lock);
    struct duet_codelet *codelet = codelet_find(runtime, name);
    spin_unlock(&runtime->registry_lock);
    return codelet;
}

static int codelet_check(struct duet_runtime *core, const struct duet_codelet_desc *desc)
{
    if (!desc || !desc->name || !*desc->name || strlen(desc->name) >= DUET_NAME_MAX)
        return duet__refuse(core, DUET_EINVAL, "a kernel needs a name of 1 to %d bytes",
                            DUET_NAME_MAX - 1);
    if (desc->waits && !desc->expand)
        return duet__refuse(core, DUET_EINVAL,
                            "kernel %s waits and does not expand: a function that waits for "
                            "children is given as `expand`",
                            desc->name);
    if (desc->waits && !core->ops->await)
        return duet__refuse(core, DUET_EINVAL, "kernel %s waits, which this engine does not",
                            desc->name);
    if (desc->expand) {
        if (desc->implementation_count)
            return duet__refuse(core, DUET_EINVAL,
                                "kernel %s has implementations and expands: one or the other",
                                desc->name);
        return DUET_OK;
    }
    if (desc->implementation_count == 0 || !desc->implementations)
        return duet__refuse(core, DUET_EINVAL, "kernel %s has no implementation", desc->name);
    for (size_t i = 0; i < desc->implementation_count; i++)
        if (!desc->implementations[i].arch)
            return duet__refuse(core, DUET_EINVAL,
                                "implementation %zu of kernel %s names no architecture", i,
                                desc->name);
    return DUET_OK;
}

int duet_register_codelet(struct duet_runtime *runtime, const struct duet_codelet_desc *desc,
                          struct duet_codelet **out)
{
    *out = NULL;
    int error = codelet_check(runtime, desc);
    if (error)
        return error;
    struct duet_codelet *codelet = zeroed(sizeof *codelet);
    error = codelet ? codelet_fill(runtime, codelet, desc) : DUET_ENOMEM;
    if (error) {
        codelet_free(runtime, codelet);
        return duet__refuse(runtime, error, "kernel %s: %s", desc->name, duet_strerror(error));
    }
    spin_lock(&runtime->registry_lock);
    bool duplicate = codelet_find(runtime, desc->name) != NULL;
    if (!duplicate) {
        codelet->index = runtime->codelet_count++;
        if (runtime->last_codelet)
            runtime->last_codelet->next = codelet;
        else
            runtime->codelets = codelet;
        runtime->last_codelet = codelet;
    }
    spin_unlock(&runtime->registry_lock);
    if (duplicate) {
        codelet_free(runtime, codelet);
        return duet__refuse(runtime, DUET_EINVAL, "kernel %s is registered already", desc->name);
    }
    *out = codelet;
    return DUET_OK;
}

struct duet_codelet *duet__codelet_like(struct duet_runtime *core, const struct duet_codelet *like)
{
    struct duet_codelet *made = duet_codelet_find(core, like->name);
    struct duet_implementation implementations[64 + 1] = {
        {.arch = ""}}; /* the last one for "none" */
    struct duet_codelet_desc desc = {.name = like->name,
                                     .implementations = implementations,
                                     .implementation_count = !like->expand,
                                     .flops = like->flops,
                                     .cost = like->cost,
                                     .expand = like->expand,
                                     .waits = like->waits};
    for (unsigned a = 0; a < like->core->machine.arch_count && !like->expand && !made; a++)
        if (like->archs >> a & 1)
            implementations[desc.implementation_count++] =
                (struct duet_implementation){like->core->machine.archs[a].name, like->run[a]};
    if (!made && !duet_register_codelet(core, &desc, &made) && made)
        made->emulation = like->emulation;
    return made;
}

void duet__codelets_fini(struct duet_runtime *core)
{
    while (core->codelets) {
        struct duet_codelet *next = core->codelets->next;
        codelet_free(core, core->codelets);
        core->codelets = next;
    }
    while (core->primes) {
        struct prime *next = core->primes->next;
        free(core->primes);
        core->primes = next;
    }
}

int duet__prime(struct duet_runtime *core, const char *kernel, unsigned arch, double work,
                double mean_s, uint64_t samples)
{
    struct prime *prime = calloc(1, sizeof *prime);
    if (!prime)
        return DUET_ENOMEM;
    size_t length = strlen(kernel);
    if (length >= sizeof prime->kernel || arch >= core->machine.arch_count) {
        free(prime);
        return DUET_EINVAL;
    }
    memcpy(prime->kernel, kernel, length + 1);
    prime->arch = arch;
    prime->work = work;
    prime->mean_s = mean_s;
    prime->samples = samples;
    prime->next = core->primes;
    core->primes = prime;
    return DUET_OK;
}

size_t duet_kernel_count(const struct duet_runtime *runtime)
{
    return runtime->codelet_count;
}

const char *duet_kernel_name(const struct duet_runtime *runtime, size_t kernel)
{
    for (const struct duet_codelet *c = runtime->codelets; c; c = c->next)
        if (c->index == kernel)
            return c->name;
    return NULL;
}

void duet__codelet_rename(struct duet_codelet *codelet, const char *name)
{
    (void)snprintf(codelet->name, sizeof codelet->name, "%s", name);
}
