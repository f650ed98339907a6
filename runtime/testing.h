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

#endif
