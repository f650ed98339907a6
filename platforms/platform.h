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

#include <glib.h>

#include <duet/machine.h>

#include "platforms/model/curves.h"
#include "platforms/model/network.h"

struct duet__hold;

/* Bandwidth and latency of one direction of a link, for a copy alone. */
struct duet__platform_figure {
    double bandwidth_Bps, latency_s;
};

/* Bandwidth that all copies of a direction share; 0: only the links beneath limit them. */
struct duet__platform_limits {
    double to_device_Bps, to_host_Bps;
};

struct duet__platform_socket {
    unsigned arch;  /* index into archs */
    unsigned cores; /* one for each CPU worker, and one for each GPU on the socket's switches */
    struct duet__platform_limits hub; /* between its switches and the rest of the machine */
};

enum { DUET_KIND_MAX = 13 }; /* bytes of the name of a kind of link, final zero included */

/* A kind of link between the host and switches; defaults for switches and GPUs. */
struct duet__platform_link {
    char name[DUET_KIND_MAX];
    struct duet__platform_figure to_device, to_host;
};

/* Distance of two GPUs. */
enum duet__reach {
    DUET_REACH_SWITCH, /* behind one switch */
    DUET_REACH_SOCKET, /* on one socket, behind two switches */
    DUET_REACH_REMOTE, /* on two sockets */
    DUET_REACHES,
};

enum {
    DUET_PEERS = DUET_REACHES * 17
}; /* kinds of direct copies: between any GPUs, and in 16
      architectures */

/* Direct copies between GPUs of one reach; `up`: to the higher device number. */
struct duet__platform_peer {
    char name[DUET_KIND_MAX]; /* kind of link; "": there are no such copies */
    bool own_link;            /* copies do not cross the links of switches to the host */
    struct duet__platform_figure up, down;
    unsigned reach, arch; /* arch: index into archs, for copies between two GPUs of it */
};

struct duet__platform_switch {
    unsigned socket, kind;             /* indices of its socket and kind of link */
    double to_device_Bps, to_host_Bps; /* bandwidth of its link to the host */
};

struct duet__platform_gpu {
    unsigned arch;
    unsigned position; /* index of its switch */
    uint64_t memory_bytes;
    struct duet__platform_figure to_device, to_host; /* bandwidth of a copy alone; 0, or the
                                                        switch's: no limit of its own */
    double port_in_Bps, port_out_Bps; /* shared by all its direct copies over links with own_link;
                                         0: each copy's own limit alone counts */
};

/*
 * A machine as described in a file, with the times of kernels. Made by duet__platform_load, or
 * filled by a program that measures: zero-initialise it. It owns its arrays, texts (g_malloc) and
 * calibration, which duet__platform_fini frees.
 */
struct duet__platform {
    char name[DUET_NAME_MAX];
    char *description;  /* one line */
    char *origin;       /* source of figures that have no source of their own; NULL: all have one */
    const char *file;   /* absolute path, interned; NULL: built in, or no file */
    const char *digest; /* SHA-256 of it and of the file with kernel times, interned */
    unsigned arch_count, socket_count, kind_count, switch_count, gpu_count;
    struct duet_arch *archs;
    struct duet__platform_socket *sockets;
    struct duet__platform_link *kinds;
    struct duet__platform_peer peers[DUET_PEERS]; /* by reach: any two GPUs, then the GPUs of one
                                                     architecture, up to an entry without a name; an
                                                     architecture with entries uses only these */
    struct duet__platform_switch *switches;
    struct duet__platform_gpu *gpus;   /* by device number */
    unsigned *order;                   /* device numbers in the order of use; NULL: ascending */
    uint64_t host_memory_bytes;        /* 0: not known */
    struct duet__platform_limits host; /* limits of the host's memory, for all devices together */
    struct duet_costs costs;
    struct duet_sharing sharing;
    unsigned cores;               /* as in struct duet_machine */
    bool first_waits;             /* as in struct duet_machine */
    struct duet__network network; /* between machines of this kind; bandwidth_Bps 0: not known */
    double probe_s; /* seconds of the reference kernel when this was measured; 0: not known */
    struct duet__calibration calibration;
    const struct duet__hold *hold; /* figure that is not drawn (model/draws.h), borrowed; of no
                                      file; NULL: none */
    struct duet_machine fixed; /* the machine, if it was read from XML; then only name, description
                                  and calibration are set beside it */
};

/* Returns the distance of two GPUs of a description. */
enum duet__reach duet__reach_between(const struct duet__platform *platform, unsigned a, unsigned b);

/*
 * `--link NAME=BANDWIDTH` or `--link NAME=FACTORx`: sets or multiplies the bandwidth of every link
 * of the kind `name` ("all": of every kind), in both directions. Several of one kind apply in
 * order.
 */
struct duet__link_override {
    const char *name;
    double bandwidth_Bps; /* 0: the factor is used */
    double factor;
};

/* Options by which a machine is derived from a description. Zero-initialise, then set counts to -1
 * for "default". */
struct duet__platform_options {
    int cpus; /* computing cores; -1: all cores not taken by a GPU */
    int gpus; /* GPUs in use; -1: all of the description. More than that adds switches like its own
                 (and, if needed, sockets and cores: a hypothetical machine) */
    uint64_t gpu_memory_bytes; /* usable memory of every GPU; 0: the description's */
    double gpu_memory_share;   /* part of the description's memory that is usable, above 0 and at
                                  most 1; 0: all. Not with gpu_memory_bytes */
    unsigned gpu_window;       /* tasks in preparation or in flight per GPU; 0: 2 */
    unsigned gpu_window_short; /* gpu_window while the tasks in it are short; 0: 8, or gpu_window if
                                  that is given */
    bool no_peer;              /* no direct copies between GPUs */
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
 * read_starpu.c: reads the machine `name` from StarPU's measurements in DIRECTORY/bus/HOST.*, which
 * have no kernel times. DUET_EIO, DUET_EPARSE with a message. Always to be freed with
 * duet__platform_fini.
 */
DUET_MUST_CHECK int duet__platform_read_starpu(const char *directory, const char *host,
                                               const char *name, struct duet__platform *out,
                                               struct duet_message *message);

/* Frees what a platform holds, but not the struct. Safe on a zeroed one, and twice. */
void duet__platform_fini(struct duet__platform *platform);

/* Number of cores, or GPUs, of the description (before any option). */
unsigned duet__platform_cores(const struct duet__platform *platform);
unsigned duet__platform_gpus(const struct duet__platform *platform);

/* Returns the source of a curve's points ("measured on mirage (same chip) ..."); "" if unknown.
 * Free with g_free. */
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

/* Returns the kinds of links that keep their figures while options change others', for a remark
 * ("peer_switch, peer_remote"); NULL: none does, or no figure changes. Free with g_free. */
char *duet__platform_kept_links(const struct duet__platform *platform,
                                const struct duet__platform_options *options);

/*
 * Returns the kernels for which an architecture in use has no times although another has: "dgemm on
 * c2050, dgem on x5650"; NULL: none. Considers `kernels` (NULL-ended), or all kernels if that is
 * NULL. Free with g_free.
 */
char *duet__platform_holes(const struct duet__calibration *calibration,
                           const struct duet_machine *machine, const char *const *kernels);

/*
 * Returns a line for each value that is valid and hardly meant: latencies and costs of seconds,
 * kernels faster than the device's data sheet or the machine's products of matrices, times far off
 * the neighbouring sizes, holes. NULL-ended, free with g_strfreev.
 */
char **duet__platform_suspicions(const struct duet__platform *platform);

/* Returns the cost with this name in options ("kernel-launch"); NULL: there is none. */
double *duet__cost_find(struct duet_costs *costs, const char *name);
char *duet__cost_names(void); /* "submit, push, ...": the names of all costs; free with g_free */

/*
 * network.c: reads a network, "KIND:BANDWIDTH,LATENCY[,SHAPE]" or "file:NAME.xml", then any of
 * ",eager=SIZE", ",overhead=TIME" and ",rendezvous=TIME". A kind alone takes bandwidth and latency
 * from `usual`, the platform's, as does any figure left out. If that is not known (bandwidth_Bps 0,
 * or NULL), an overhead is 0.5 us, messages up to 64 KiB are eager, and a rendezvous takes two
 * latencies: there and back. `option` is for messages. DUET_EINVAL with a message; *out is then
 * unchanged.
 */
DUET_MUST_CHECK int duet__network_parse(const char *option, const char *text,
                                        const struct duet__network *usual,
                                        struct duet__network *out, struct duet_message *message);

/* Number of places for nodes and of cables between switches, added up; 0: there is no shape. */
double duet__network_parts(const struct duet__network *network);

/*
 * Gives a network without a shape the smallest one with room for this many nodes. Fat tree: three
 * levels of equal switches with full bisection bandwidth (Al-Fares et al., SIGCOMM 2008);
 * dragonfly: balanced, with p nodes a router, 2p routers a group and p cables between two groups
 * (Kim et al., ISCA 2008, but no more groups than routers of a group, as SimGrid's has one router
 * for each other group); torus: the three most even factors of the number, as MPI_Dims_create has
 * them. DUET_EINVAL with a message if the existing shape has no room.
 */
DUET_MUST_CHECK int duet__network_shape(struct duet__network *network, unsigned nodes,
                                        struct duet_message *message);

enum duet__write {
    DUET_WRITE_NEW,     /* DUET_EINVAL if the file exists, with the options that help */
    DUET_WRITE_REPLACE, /* replaces any file */
    DUET_WRITE_MERGE,   /* keeps kernel times of the old file where there are no new ones: points by
                           kernel, architecture, context and work. The machine is new; an
                           architecture that it no longer has stays as a name, for its times. If the
                           sizes of caches have changed, old points keep their means and lose
                           base_s, memory_s and noise, which depend on them. As DUET_WRITE_NEW if
                           there is no file */
};

/*
 * Writes `path` ("NAME.json"), which duet__platform_load reads back as this platform. The file is
 * replaced in one step: the old or the new one is whole, whatever happens. DUET_WRITE_MERGE adds to
 * `platform` what is kept of the old file. Errors, with a message, and nothing changed on the disk:
 * DUET_EIO, DUET_EINVAL (path without .json; a value that the format does not allow; a file to be
 * merged that is no platform), DUET_EPARSE, DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__platform_write(struct duet__platform *platform, const char *path,
                                         enum duet__write how, struct duet_message *message);

/*
 * Joins the kernel times of `run` with those of `platform`; points of the same kernel,
 * architecture, context and work become one sample. Counts, means and deviations are those of all
 * executions together (Chan, Golub, LeVeque, The American Statistician 37(3), 1983); so is noise,
 * relative to the new base_s + memory_s, or else mean_s. base_s, memory_s and busy_ratio are means
 * of both, weighted by samples, or those of the one that has them. The median is dropped: it does
 * not follow from two medians. Points of `run` come from `origin`, others that it adds to from
 * there, too. DUET_EINVAL, DUET_ENOMEM with a message; nothing has then changed.
 */
DUET_MUST_CHECK int duet__platform_pool(struct duet__platform *platform,
                                        const struct duet__calibration *run, const char *origin,
                                        struct duet_message *message);

/* Returns the text of a platform file; free with free. Values that cannot be written (not finite,
 * an index of nothing) are null. NULL: the machine was read from XML and has no such text. */
char *duet__platform_text(const struct duet__platform *platform);

/* Makes the checks of duet__platform_write of `path` and of an existing file, before minutes of
 * measuring: its errors, and DUET_EIO if the folder is missing or cannot be written. */
DUET_MUST_CHECK int duet__platform_may_write(const char *path, enum duet__write how,
                                             struct duet_message *message);

/* Returns the names of the built-in platforms, sorted, NULL-ended; free with g_strfreev. */
char **duet__platform_names(void);

/*
 * Writes `machine` as a SimGrid platform file that stock SimGrid tools load: hosts for memory
 * nodes, links, routes, and properties from which duet__platform_load builds an equal machine.
 * Kernel times, if `from` (may be NULL) has any, go into a second file that it names: `path` with
 * ".kernels.json" added. Each is replaced in one step: on error the old one stays whole. Errors:
 * DUET_EIO with a message, DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__platform_write_xml(const struct duet_machine *machine,
                                             const struct duet__platform *from, const char *path,
                                             struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* Folders of files that are installed beside the running code. */

/* Appends to `list` (strings of g_malloc) the existing folders among `ways` (NULL-ended, relative):
 * first from the folder of the library or program that holds this code, then from the program's. */
void duet__beside_code(GPtrArray *list, const char *const *ways);

#endif
