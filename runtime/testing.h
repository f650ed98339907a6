/* SPDX-License-Identifier: Apache-2.0 */
/* Tests through the public interface, in C or C++: runtimes that open, calls that succeed. */
#ifndef DUET_RUNTIME_TESTING_H
#define DUET_RUNTIME_TESTING_H

#include <duet/duet.h>

#include <glib.h>

static inline void must(const struct duet_runtime *duet, int error)
{
    if (error)
        g_error("%s (%s)", duet_strerror(error), duet_last_message(duet));
}

/* Returns a quiet configuration, simulated on a platform, or (NULL) on this machine. */
static inline struct duet_config testing_config(const char *simulate, int cpus, int gpus)
{
    struct duet_config config;
    duet_config_init(&config);
    config.simulate = simulate;
    config.cpus = cpus;
    config.gpus = gpus;
    config.quiet = true;
    return config;
}

/* Opens a runtime. */
static inline struct duet_runtime *testing_open(const struct duet_config *config)
{
    struct duet_runtime *duet = NULL;
    WORKS(duet_open(&duet, config, hear()));
    return duet;
}

#ifndef __cplusplus
/* Registers a codelet of that name, and else like `like`, with this code (NULL: none, where it
 * expands) for CPUs and emulated GPUs. Simulated, it runs on GPUs as well. */
static inline struct duet_codelet *testing_codelet(struct duet_runtime *duet, const char *name,
                                                   duet_kernel_fn run,
                                                   struct duet_codelet_desc like)
{
    const struct duet_implementation where[] = {{"cpu", run}, {"cuda", NULL}};
    struct duet_codelet *made = NULL;
    like.name = name;
    like.implementations = like.expand ? NULL : where;
    like.implementation_count = like.expand ? 0 : G_N_ELEMENTS(where);
    must(duet, duet_register_codelet(duet, &like, &made));
    return made;
}

/* Returns a task of the codelet of that name, with one access or (NULL) none. */
static inline struct duet_task_desc testing_task(struct duet_runtime *duet, const char *name,
                                                 const struct duet_access *access, const void *args,
                                                 size_t bytes)
{
    return (struct duet_task_desc){.codelet = duet_codelet_find(duet, name),
                                   .accesses = access,
                                   .access_count = access != NULL,
                                   .args = args,
                                   .args_bytes = bytes};
}
#endif

#endif
