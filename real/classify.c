/* SPDX-License-Identifier: Apache-2.0 */
/* Classes that can run here: kernels that have code or, in a paced emulation, a time. */
#include "real/internal.h"

static bool can_run(const struct real *real, const struct duet__class *klass, unsigned arch)
{
    const struct real_options *options = &real->options;
    if (options->scale > 0)
        return options->seconds(options->pace, klass, arch) > 0;
    return real->emulated[arch] ? duet__class_emulation(klass) != NULL
                                : duet__class_function(klass, arch) != NULL;
}

int duet__real_classify(void *engine, const struct duet__class *klass, uint64_t *archs,
                        struct duet_message *message)
{
    const struct real *real = engine;
    const struct real_options *options = &real->options;
    if (duet__class_expands(klass))
        return DUET_OK;
    if (options->scale > 0 && options->classify)
        return options->classify(options->pace, klass, archs, message);
    for (unsigned a = 0; a < real->machine.arch_count; a++)
        if ((*archs >> a & 1) && !can_run(real, klass, a))
            *archs &= ~(UINT64_C(1) << a);
    if (*archs)
        return DUET_OK;
    const char *kernel = duet__class_kernel(klass);
    if (options->scale > 0)
        return duet_fail(message, DUET_ENOMODEL,
                         "no time is known for kernel %s on any architecture of machine %s", kernel,
                         real->machine.name);
    return duet_fail(message, DUET_ENOWORKER,
                     "kernel %s has no code that can run here: its implementations for the "
                     "architectures of machine %s are for simulation only",
                     kernel, real->machine.name);
}

double duet__real_mean(void *engine, const struct duet__class *klass, unsigned arch)
{
    const struct real_options *options = &((const struct real *)engine)->options;
    double seconds = options->scale > 0 ? options->seconds(options->pace, klass, arch) : 0;
    return seconds > 0 ? seconds * options->scale : 0;
}
