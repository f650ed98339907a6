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

#include <duet/error.h>
#include <duet/machine.h>

#include "platforms/model/curves.h"
#include "platforms/model/network.h"

/* One direction of a link, for a copy that is alone. */
struct duet__platform_figure {
    double bandwidth_Bps, latency_s;
};

/* What all copies of a direction get together where they meet; 0: as much as the links beneath. */
struct duet__platform_limits {
    double to_device_Bps, to_host_Bps;
};

struct duet__platform_socket {
    unsigned arch;  /* index into archs */
    unsigned cores; /* one for each CPU worker, and one for each GPU on its switches */
    struct duet__platform_limits hub; /* between its switches and the rest of the machine */
};

enum { DUET_KIND_MAX = 13 }; /* bytes of the name of a kind of link, final zero included */

/* A kind of link between the host and switches; what a switch does not say itself. */
struct duet__platform_link {
    char name[DUET_KIND_MAX];
    struct duet__platform_figure to_device, to_host;
};

/* How far apart two GPUs are. */
enum duet__reach {
    DUET_REACH_SWITCH, /* behind one switch */
    DUET_REACH_SOCKET, /* on one socket, behind two switches */
    DUET_REACH_REMOTE, /* on two sockets */
    DUET_REACHES,
};

enum { DUET_PEERS = DUET_REACHES * 17 }; /* kinds of direct copies: any GPUs', 16 architectures' */

/* Direct copies between GPUs of one reach; `up` goes to the higher device number. */
struct duet__platform_peer {
    char name[DUET_KIND_MAX]; /* of the kind of link; "": there are none */
    bool own_link;            /* copies cross nothing else, not the links of switches to the host */
    struct duet__platform_figure up, down;
    unsigned reach, arch; /* of those between two GPUs of one architecture, index into archs */
};

struct duet__platform_switch {
    unsigned socket, kind;             /* indices */
    double to_device_Bps, to_host_Bps; /* of its link to the host */
};

struct duet__platform_gpu {
    unsigned arch;
    unsigned position; /* the switch that it is behind */
    uint64_t memory_bytes;
    struct duet__platform_figure to_device, to_host; /* bandwidth: the most that it gets alone; 0,
                                                       or as its switch: no limit of its own */
    double port_in_Bps, port_out_Bps; /* of all copies together between it and GPUs at reaches with
                                         own_link; 0: each copy's limit alone counts */
};

/*
 * A machine as described, and what kernels take on it: what a file says. Made by
 * duet__platform_load, or filled by who measures: zero-initialise, all arrays, texts and the
 * calibration are then owned and freed by duet__platform_fini (g_malloc).
 */
struct duet__platform {
    char name[DUET_NAME_MAX];
    char *description;  /* one line */
    char *origin;       /* of figures that do not say where they come from; NULL: all do */
    const char *file;   /* its absolute path, interned; NULL: it is built in, or of no file */
    const char *digest; /* of a file, interned: SHA-256 of it and of the one with kernel times */
    unsigned arch_count, socket_count, kind_count, switch_count, gpu_count;
    struct duet_arch *archs;
    struct duet__platform_socket *sockets;
    struct duet__platform_link *kinds;
    struct duet__platform_peer peers[DUET_PEERS]; /* by reach those between any two GPUs; then, up
                                                     to one without a name, those of one
                                                     architecture, which have none of the others */
    struct duet__platform_switch *switches;
    struct duet__platform_gpu *gpus; /* by device number */
    unsigned *order;            /* device numbers in the order they are taken into use; NULL: as
                                   they are */
    uint64_t host_memory_bytes; /* 0: not known */
    struct duet__platform_limits host; /* of its memory, all devices together */
    struct duet_costs costs;
    struct duet_sharing sharing;
    unsigned cores;               /* as in struct duet_machine */
    bool first_waits;             /* likewise */
    struct duet__network network; /* between machines like this; bandwidth_Bps 0: not known */
    double probe_s; /* time of the reference kernel when this was measured; 0: not known */
    struct duet__calibration calibration;
    struct duet_machine fixed; /* read from XML: the machine itself, and nothing else is there
                                  but name, description and calibration */
};

/* How far apart two GPUs of a description are. */
enum duet__reach duet__reach_between(const struct duet__platform *platform, unsigned a, unsigned b);

/*
 * `--link NAME=BANDWIDTH` or `--link NAME=FACTORx`: every link of the kind `name` ("all": of every
 * kind) gets this bandwidth, or so many times what it has, in both directions. Several of one kind
 * apply one after another.
 */
struct duet__link_override {
    const char *name;
    double bandwidth_Bps; /* 0: the factor counts */
    double factor;
};

/* How to derive a machine from a description. Zero-initialise, then set counts to -1 for "default".
 */
struct duet__platform_options {
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
    const struct duet__link_override *links;
    size_t link_count;
};

/*
 * Loads the platform `name`: a built-in one ("idgraf"), or a path to a file if it contains a '/' or
 * ends in .json or .xml. Built-in files are looked for in ../share/duet/platforms of the library or
 * program that holds this code, then in the source tree's and the configured platforms directory.
 * *out is owned by the caller (duet__platform_free). Errors: DUET_ENOTFOUND (message lists the
 * known names), DUET_EIO, DUET_EPARSE, DUET_EINVAL, DUET_ENOMEM; the message names file, and line
 * or key.
 */
DUET_MUST_CHECK int duet__platform_load(const char *name, struct duet__platform **out,
                                        struct duet_message *message);

void duet__platform_free(struct duet__platform *platform); /* NULL is fine */

/*
 * read_starpu.c: the machine `name` that StarPU has measured, from DIRECTORY/bus/HOST.*: without
 * kernel times. DUET_EIO, DUET_EPARSE with a message. To be freed with duet__platform_fini, always.
 */
DUET_MUST_CHECK int duet__platform_read_starpu(const char *directory, const char *host,
                                               const char *name, struct duet__platform *out,
                                               struct duet_message *message);

/* Frees what it holds, for who has filled one. Safe on a zeroed one, and twice. */
void duet__platform_fini(struct duet__platform *platform);

/* Cores and GPUs the description has (before any option). */
unsigned duet__platform_cores(const struct duet__platform *platform);
unsigned duet__platform_gpus(const struct duet__platform *platform);

/*
 * Where the points of a curve come from ("measured on mirage (same chip) ..."); "" if unknown. Free
 * with g_free.
 */
char *duet__platform_origin(const struct duet__platform *platform, const char *kernel,
                            const char *arch);

/*
 * Builds the machine. The caller owns it (duet_machine_fini); it does not point into the platform.
 * Errors: DUET_EINVAL with a message (more CPUs than there are, no worker at all, unknown link
 * name: the known ones are listed, ...), DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__platform_build(const struct duet__platform *platform,
                                         const struct duet__platform_options *options,
                                         struct duet_machine *machine,
                                         struct duet_message *message);

/*
 * The kinds of links that keep their figures although options change others', for a remark
 * ("peer_switch, peer_remote"); NULL: none does, or no figure changes. Free with g_free.
 */
char *duet__platform_kept_links(const struct duet__platform *platform,
                                const struct duet__platform_options *options);

/*
 * Kernels that an architecture in use has no times of although another has: "dgemm on c2050, dgem
 * on x5650"; NULL: none. Of these kernels (NULL-ended), or of all that there are where `kernels` is
 * NULL. Free with g_free.
 */
char *duet__platform_holes(const struct duet__calibration *calibration,
                           const struct duet_machine *machine, const char *const *kernels);

/*
 * What can be read and is hardly meant, a line each: latencies and costs of seconds, kernels faster
 * than the machine's products of matrices, times far off the neighbouring sizes, holes. NULL-ended,
 * free with g_strfreev.
 */
char **duet__platform_suspicions(const struct duet__platform *platform);

/* The cost of this name in options ("kernel-launch"), NULL: there is none; and all their names. */
double *duet__cost_find(struct duet_costs *costs, const char *name);
char *duet__cost_names(void); /* "submit, push, ..."; free with g_free */

/*
 * network.c: reads a network, "KIND:BANDWIDTH,LATENCY[,SHAPE]" or "file:NAME.xml", then any of
 * ",eager=SIZE", ",overhead=TIME" and ",rendezvous=TIME". A kind alone has the bandwidth and
 * latency of `usual`, the platform's, and what is not said is as there. Where that is not known
 * either (bandwidth_Bps 0, or NULL), an overhead is 0.5 us, messages up to 64 KiB are eager, and a
 * rendezvous takes two latencies: there and back. `option` is for messages. DUET_EINVAL with a
 * message, and *out is as it was.
 */
DUET_MUST_CHECK int duet__network_parse(const char *option, const char *text,
                                        const struct duet__network *usual,
                                        struct duet__network *out, struct duet_message *message);

/* Places for nodes and cables between switches of a shape, added up; 0: there is no shape. */
double duet__network_parts(const struct duet__network *network);

/*
 * Gives a network that has no shape yet one with room for so many nodes, as small as it gets. Fat
 * tree: of three levels of equal switches with full bisection bandwidth (Al-Fares et al., SIGCOMM
 * 2008); dragonfly: balanced, routers having p nodes, groups 2p routers and two groups p cables
 * (Kim et al., ISCA 2008, but no more groups than routers of a group, as SimGrid's has one router
 * for each other group); torus: the three most even factors of the number, as MPI_Dims_create has
 * them. DUET_EINVAL with a message where the shape that there is has no room.
 */
DUET_MUST_CHECK int duet__network_shape(struct duet__network *network, unsigned nodes,
                                        struct duet_message *message);

enum duet__write {
    DUET_WRITE_NEW,     /* DUET_EINVAL if the file exists, with the options that help */
    DUET_WRITE_REPLACE, /* whatever was there is gone */
    DUET_WRITE_MERGE,   /* kernel times of the old file stay where there are no new ones:
                           points by kernel, architecture, context and work. The machine is new;
                           an architecture that it no longer has stays as a name, for its times.
                           Where other sizes of caches were found, old points keep their means and
                           lose base_s, memory_s and noise, which are of the old ones.
                           As DUET_WRITE_NEW if there is nothing yet */
};

/*
 * Writes `path` ("NAME.json"), from which duet__platform_load makes this platform again. The file
 * is replaced in one step: whatever happens, the old or the new one is whole. With
 * DUET_WRITE_MERGE, `platform` has afterwards what was kept of the old one, too. Errors: DUET_EIO,
 * DUET_EINVAL (path without .json; something in the platform that the format does not allow; a file
 * to be merged with that is not one of these), DUET_EPARSE, DUET_ENOMEM; with a message, and
 * nothing is changed on the disk.
 */
DUET_MUST_CHECK int duet__platform_write(struct duet__platform *platform, const char *path,
                                         enum duet__write how, struct duet_message *message);

/*
 * Joins the kernel times of `run` with those that `platform` has, as those of one sample where both
 * have a point of the same kernel, architecture, context and work. Counts, means and deviations are
 * then what all executions together give (Chan, Golub, LeVeque, The American Statistician 37(3),
 * 1983), and noise likewise, of times by what base_s + memory_s, or else mean_s, has become.
 * base_s, memory_s and busy_ratio are means of both, weighted by samples; of what only one of them
 * has, that one's. There is no median: it does not follow from two. Points of `run` come from
 * `origin`, others that it adds to from there, too. DUET_EINVAL, DUET_ENOMEM with a message, upon
 * which nothing has changed.
 */
DUET_MUST_CHECK int duet__platform_pool(struct duet__platform *platform,
                                        const struct duet__calibration *run, const char *origin,
                                        struct duet_message *message);

/*
 * The text of such a file; free with free. What cannot be written (a number that is not finite, an
 * index of nothing) is null. NULL: the machine was read from XML, and is not described like this.
 */
char *duet__platform_text(const struct duet__platform *platform);

/*
 * The checks that duet__platform_write makes of `path` and of what is there already, before minutes
 * of measuring: the same errors, and DUET_EIO where its folder is missing or cannot be written.
 */
DUET_MUST_CHECK int duet__platform_may_write(const char *path, enum duet__write how,
                                             struct duet_message *message);

/* Names of the built-in platforms, sorted, NULL-ended; free with g_strfreev. */
char **duet__platform_names(void);

/*
 * Writes `machine` as a SimGrid platform file that stock SimGrid tools load: hosts for memory
 * nodes, links, routes, and properties from which duet__platform_load of that file builds an equal
 * machine. Kernel times, where `from` (NULL: none) has any, go into a second file that it names:
 * `path` with ".kernels.json" added. Each is replaced in one step: on error the old one stays
 * whole. Errors: DUET_EIO with a message, DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__platform_write_xml(const struct duet_machine *machine,
                                             const struct duet__platform *from, const char *path,
                                             struct duet_message *message);

#endif
