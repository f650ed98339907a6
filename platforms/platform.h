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
 * Keeps of the kernel times those of this context where there are several (a workload;
 * duet_calibration_select). Origins stay with their curves.
 */
void duet_platform_select(struct duet_platform *platform, const char *context);

/* How fast copies of one direction are when alone. */
struct duet_draft_link {
    double bandwidth_Bps, latency_s; /* bandwidth > 0 */
};

/*
 * A measured machine, to be written as a description. Everything is borrowed. Numbers of sockets,
 * switches and GPUs are positions.
 */
struct duet_draft {
    const char *name, *description; /* as in the file */
    const char *origin;             /* of all figures: "measured by duet calibrate on 2026-11-21" */
    const struct duet_arch *archs;
    unsigned arch_count;
    const struct duet_draft_socket {
        unsigned arch;
        unsigned cores; /* one for each CPU worker, and one for each GPU on its switches */
    } * sockets;
    unsigned socket_count;
    uint64_t host_memory_bytes; /* 0: not known */
    const struct duet_draft_switch {
        unsigned socket;
        double to_device_Bps, to_host_Bps; /* of its link to the host, the most that even a copy
                                              alone gets; 0: the best of its GPUs' */
    } * switches;
    unsigned switch_count;
    const struct duet_draft_gpu {
        unsigned arch, position; /* the switch it is behind */
        uint64_t memory_bytes;
        struct duet_draft_link to_device, to_host; /* each copy alone */
    } * gpus;
    unsigned gpu_count;
    /* direct copies between GPUs, by reach: behind one switch, on one socket, on two sockets; to
       the higher device number and down. bandwidth 0 (of both): there are none. Those more than a
       tenth faster than the links of two switches to the host have links of their own */
    struct duet_draft_link peers_up[3], peers_down[3];
    struct duet_costs costs;
    struct duet_sharing sharing;
    unsigned cores;   /* as in struct duet_machine */
    bool first_waits; /* likewise */
    double probe_s;   /* time of the reference kernel when this was measured; 0: none */
};

enum duet_write {
    DUET_WRITE_NEW,     /* DUET_EINVAL if the file exists, with the options that help */
    DUET_WRITE_REPLACE, /* whatever was there is gone */
    DUET_WRITE_MERGE,   /* kernel times of the old calibration stay where there are no new ones:
                           points by kernel, architecture, context and work. The machine is new;
                           an architecture that it no longer has stays as a name, for its times.
                           Where other sizes of caches were found, old points keep their means and
                           lose base_s, near_s and far_s, which are of the old sizes.
                           As DUET_WRITE_NEW if there is nothing yet */
};

/*
 * Writes `path` ("NAME.json") and, beside it, its calibration ("NAME.kernels.json"), so that
 * duet_platform_load(path) gives the machine and the times. Each file is replaced in one step, the
 * calibration first: whatever happens, old or new files are whole. Errors: DUET_EIO, DUET_EINVAL
 * (path without .json; something in the draft that the format does not allow; a file to be merged
 * with that is not one of these), DUET_EPARSE, DUET_ENOMEM; with a message, and nothing is changed.
 */
DUET_MUST_CHECK int duet_platform_write(const struct duet_draft *draft,
                                        const struct duet_calibration *calibration,
                                        const char *path, enum duet_write how,
                                        struct duet_message *message);

/*
 * The checks that duet_platform_write makes of `path` and of what is there already, before minutes
 * of measuring: the same errors, and DUET_EIO where its folder is missing or cannot be written.
 */
DUET_MUST_CHECK int duet_platform_may_write(const char *path, enum duet_write how,
                                            struct duet_message *message);

/* Seconds of the reference kernel when the platform was calibrated; 0: not known. */
double duet_platform_probe(const struct duet_platform *platform);

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
