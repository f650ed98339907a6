/* SPDX-License-Identifier: Apache-2.0 */
/* What platforms/ shares inside itself: a description as read, and the functions around it. */
#ifndef DUET_PLATFORMS_DESCRIPTION_H
#define DUET_PLATFORMS_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include "platforms/platform.h"

/* Limits of what is read: generous, and small enough that no input can exhaust the memory. */
enum {
    DUET__MAX_SCHEMA = 1,
    DUET__MAX_FILE_MIB = 64,
    DUET__MAX_ARCHS = 256,
    DUET__MAX_SOCKETS = 4096,
    DUET__MAX_SOCKET_CORES = 4096,
    DUET__MAX_CORES = 65536, /* cores of all sockets together */
    DUET__MAX_GPUS = 4096,
    DUET__MAX_LINK_KINDS = 64,
    DUET__MAX_CURVES = 4096,
    DUET__MAX_POINTS = 65536, /* points of one curve */
    DUET__KIND_MAX = 13,      /* bytes of a link kind's name, final zero included */
};

/* One direction of a link, for a copy that is alone. */
struct duet__figure {
    double bandwidth_Bps;
    double latency_s;
};

struct duet__socket {
    unsigned arch; /* index into archs */
    unsigned cores;
};

/* A kind of link between the host and switches; what a switch does not say itself. */
struct duet__link_kind {
    char name[DUET__KIND_MAX];
    struct duet__figure to_device, to_host;
};

/* How far apart two GPUs are. */
enum duet__reach {
    DUET__REACH_SWITCH, /* behind one switch */
    DUET__REACH_SOCKET, /* on one socket, behind two switches */
    DUET__REACH_REMOTE, /* on two sockets */
    DUET__REACHES,
};

/* Direct copies between two GPUs; `up` goes to the higher device number. */
struct duet__peer_kind {
    bool present;
    char name[DUET__KIND_MAX];
    struct duet__figure up, down;
};

struct duet__switch {
    unsigned socket;
    unsigned kind;        /* index into kinds */
    double to_device_Bps; /* its own figures; a copy of the kind's where the file has none */
    double to_host_Bps;
    unsigned gpu_count;
    unsigned *gpus; /* device numbers, ascending as listed */
};

struct duet__gpu {
    unsigned arch;
    unsigned position; /* switch it is behind: index into switches */
    uint64_t memory_bytes;
    struct duet__figure to_device, to_host; /* bandwidth 0: no limit of its own */
};

/* A machine as described: what the JSON file says, checked. Made by hand or by the reader. */
struct duet__description {
    unsigned arch_count, socket_count, kind_count, switch_count, gpu_count;
    struct duet_arch *archs;
    struct duet__socket *sockets;
    struct duet__link_kind *kinds;
    struct duet__peer_kind peers[DUET__REACHES];
    struct duet__switch *switches;
    struct duet__gpu *gpus; /* by device number */
    unsigned *order;        /* device numbers in the order they are taken into use */
    uint64_t host_memory_bytes;
    struct duet_costs costs;
};

struct duet_platform {
    char name[DUET_NAME_MAX];
    char *description;
    struct duet__description machine; /* a description, or (when fixed is set) nothing */
    bool fixed;                       /* read from XML: `xml` is the machine */
    struct duet_machine xml;
    struct duet_calibration calibration;
    GPtrArray *origins; /* of char *, one for each curve, in the order of the calibration */
};

/* description.c: frees what it holds; safe on a zeroed one. */
void duet__description_fini(struct duet__description *description);

/* read_json.c: fills `platform` (zeroed) from the text of a description. `path` is for messages. */
DUET_MUST_CHECK int duet__read_description(struct duet_platform *platform, const char *text,
                                           size_t length, const char *path, char **calibration,
                                           struct duet_message *message);

/* read_xml.c: the same from a SimGrid platform. *calibration is NULL where the file names none. */
DUET_MUST_CHECK int duet__read_xml(struct duet_platform *platform, const char *text, size_t length,
                                   const char *path, char **calibration,
                                   struct duet_message *message);

/*
 * calibration_file.c: adds the curves of a calibration file's text. Each must be of an architecture
 * that `platform`, whose machine is read already, has: a misspelt one would lose a kernel silently.
 */
DUET_MUST_CHECK int duet__read_calibration(struct duet_platform *platform, const char *text,
                                           size_t length, const char *path,
                                           struct duet_message *message);
/* The text of a calibration file; free with g_free. */
char *duet__format_calibration(const struct duet_calibration *calibration);

/* options.c: the bandwidth that options give the kind `name`, 0 where they leave it alone. */
double duet__override(const struct duet_platform_options *options, const char *name);

/* options.c: the memory that options leave of a GPU's `bytes`: at least 1. */
uint64_t duet__gpu_memory(const struct duet_platform_options *options, uint64_t bytes);

/* options.c: sets the two windows of a GPU's worker, where options say nothing to the default. */
void duet__set_windows(const struct duet_platform_options *options, struct duet_worker *worker);

/*
 * options.c: checks what can be checked without a machine, and that each link override names one
 * of `names` (`count` of them; the message lists them).
 */
DUET_MUST_CHECK int duet__check_options(const struct duet_platform_options *options,
                                        const char *const *names, unsigned count,
                                        struct duet_message *message);

/* derive.c: the machine a description gives under options. */
DUET_MUST_CHECK int duet__derive(const struct duet_platform *platform,
                                 const struct duet_platform_options *options,
                                 struct duet_machine *machine, struct duet_message *message);

/* subset.c: the part of a machine read from XML that options leave. */
DUET_MUST_CHECK int duet__subset(const struct duet_platform *platform,
                                 const struct duet_platform_options *options,
                                 struct duet_machine *machine, struct duet_message *message);

/*
 * directories.c: where built-in platforms are looked for, in this order: `search` (may be NULL),
 * share/duet/platforms under the prefix that the running code is installed in, where there is one,
 * and the directories known when it was compiled. Free with g_strfreev.
 */
char **duet__platform_directories(const char *const *search);

/*
 * platform.c: completes a platform whose description or XML is in memory: reads `calibration`
 * (a file name beside `path`, may be NULL) and checks that the machine can be built.
 */
DUET_MUST_CHECK int duet__platform_parse(const char *text, size_t length, const char *path,
                                         bool xml, struct duet_platform **out,
                                         struct duet_message *message);

/* files.c: the whole of a regular file of at most DUET__MAX_FILE_MIB; free with g_free. */
DUET_MUST_CHECK int duet__read_file(const char *path, char **text, size_t *length,
                                    struct duet_message *message);
/* Replaces a file in one step. */
DUET_MUST_CHECK int duet__write_file(const char *path, const char *text, size_t length,
                                     struct duet_message *message);

/* files.c: true if `name` has 1 to size - 1 bytes, all of them letters, digits or one of _-.:+ */
bool duet__good_name(const char *name, size_t size);

#endif
