/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine descriptions: read from JSON (or from SimGrid's XML), changed by options, resolved into
 * the plain `struct duet_machine` that the core and the simulated engine use.
 */
#ifndef DUET_PLATFORM_H
#define DUET_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/calibration.h>
#include <duet/error.h>
#include <duet/machine.h>

/* A description and its kernel times. Opaque. */
struct duet_platform;

/* `--link NAME=BANDWIDTH`: every link of the kind `name` gets this bandwidth, both directions. */
struct duet_link_override {
    const char *name;
    double bandwidth_Bps;
};

/* How to derive a machine from a description. Zero-initialise, then set counts to -1 for "default".
 */
struct duet_platform_options {
    int cpus; /* computing cores; -1: all cores that feed no GPU */
    int gpus; /* GPUs in use; -1: all the description has. More than that adds switches of the same
                 kind (and, if needed, sockets and cores: hypothetical machine) */
    uint64_t gpu_memory_bytes; /* usable memory of every GPU; 0: the description's */
    double gpu_memory_share;   /* the same as a part of the description's, above 0 and at most 1; 0:
                                  all of it. Not with gpu_memory_bytes */
    unsigned gpu_window;       /* tasks in preparation or in flight per GPU; 0: 2 */
    unsigned gpu_window_short; /* the same while those in it are short; 0: 8, or gpu_window if that
                                  is given */
    bool no_peer;              /* true: no direct copies between GPUs */
    const struct duet_link_override *links;
    size_t link_count;
};

/*
 * Loads the platform `name`: a built-in one ("idgraf"), or a path to a file if it contains a '/' or
 * ends in .json or .xml. Built-in files are looked for in the directories of `search` (NULL-ended,
 * may be NULL), then in ../share/duet/platforms of the library or program that holds this code,
 * then in the source tree's and the configured platforms directory. *out is owned by
 * the caller (duet_platform_free). Errors: DUET_ENOTFOUND (message lists the known names),
 * DUET_EIO, DUET_EPARSE, DUET_EINVAL, DUET_ENOMEM; the message names file, and line or key.
 */
DUET_MUST_CHECK int duet_platform_load(const char *name, const char *const *search,
                                       struct duet_platform **out, struct duet_message *message);

void duet_platform_free(struct duet_platform *platform); /* NULL is fine */

/* Name, one-line description, and where the figures come from. Owned by the platform. */
const char *duet_platform_name(const struct duet_platform *platform);
const char *duet_platform_description(const struct duet_platform *platform);

/* Cores and GPUs the description has (before any option). */
unsigned duet_platform_cores(const struct duet_platform *platform);
unsigned duet_platform_gpus(const struct duet_platform *platform);

/* Bytes of the host's memory, 0 where the description does not say. */
uint64_t duet_platform_host_memory(const struct duet_platform *platform);

/* Kernel times. Owned by the platform. */
const struct duet_calibration *duet_platform_calibration(const struct duet_platform *platform);

/* Where the points of a curve come from ("measured on mirage (same chip) ..."); "" if unknown. */
const char *duet_platform_origin(const struct duet_platform *platform, const char *kernel,
                                 const char *arch);

/*
 * Builds the machine. The caller owns it (duet_machine_fini); it does not point into the platform.
 * Errors: DUET_EINVAL with a message (more CPUs than there are, no worker at all, unknown link
 * name: the known ones are listed, ...), DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet_platform_build(const struct duet_platform *platform,
                                        const struct duet_platform_options *options,
                                        struct duet_machine *machine, struct duet_message *message);

/*
 * Names of the built-in platforms found in `search` and the default directories, sorted,
 * NULL-ended; free with g_strfreev.
 */
char **duet_platform_names(const char *const *search);

/*
 * Writes `machine` as a SimGrid platform file that stock SimGrid tools load: hosts for memory
 * nodes, links, routes, and properties from which duet_platform_load of that file builds an equal
 * machine. Kernel times, where `calibration` has any, go into a second file that it names:
 * `path` with ".kernels.json" added. Each is replaced in one step: on error the old one stays
 * whole. Errors: DUET_EIO with a message, DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet_platform_write_xml(const struct duet_machine *machine,
                                            const struct duet_calibration *calibration,
                                            const char *path, struct duet_message *message);

#endif
