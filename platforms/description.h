/* SPDX-License-Identifier: Apache-2.0 */
/* What platforms/ shares inside itself: a description as read, and the functions around it. */
#ifndef DUET_PLATFORMS_DESCRIPTION_H
#define DUET_PLATFORMS_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include "platforms/platform.h"

struct duet__json;

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
    DUET__COST_KINDS = 9,     /* members of struct duet_costs ... */
    DUET__COSTS_ALWAYS = 6,   /* ... of which the first ones are in every file */
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
    bool own_link; /* copies cross nothing else, not the links of switches to the host */
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
    struct duet_sharing sharing;
    unsigned cores;
    bool first_waits;
};

/* Where the points of a curve come from. */
struct duet__origin {
    char *curve;
    GArray *points; /* struct duet__point_origin, of those that say something else */
    char *all;      /* of the curve and its points, for readers */
};

struct duet__point_origin {
    double work;
    char *text;
};

struct duet_platform {
    char name[DUET_NAME_MAX];
    char *description;
    struct duet__description machine; /* a description, or (when fixed is set) nothing */
    bool fixed;                       /* read from XML: `xml` is the machine */
    struct duet_machine xml;
    struct duet_calibration calibration;
    GPtrArray *origins; /* of struct duet__origin *, by curve: duet__origins_new */
    double probe_s;     /* 0: not known */
};

/* description.c: frees what it holds; safe on a zeroed one. */
void duet__description_fini(struct duet__description *description);

/* read_json.c: fills `platform` (zeroed) from the text of a description. `path` is for messages. */
DUET_MUST_CHECK int duet__read_description(struct duet_platform *platform, const char *text,
                                           size_t length, const char *path, char **calibration,
                                           struct duet_message *message);

/* read_json.c: fails where the object `at` does not say where its figures come from. */
DUET_MUST_CHECK int duet__check_origin(const struct duet__json *at);

/* read_measured.c: `value` from the member `key`, if it is there. */
DUET_MUST_CHECK int duet__read_flag(const struct duet__json *at, const char *key, bool *value);

/*
 * read_measured.c: what `duet calibrate` measures beside kernel times and copies: costs, what cores
 * share, how many there are, the time of the reference kernel.
 */
DUET_MUST_CHECK int duet__read_measured(const struct duet__json *root,
                                        struct duet_platform *platform);

/* read_measured.c: names of the costs in files, and where each is. */
extern const char *const duet__cost_names[DUET__COST_KINDS];
double *duet__cost(struct duet_costs *costs, unsigned index);

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

/*
 * origins.c: of a curve; of one of its points, where it says something else (NULL: it does not);
 * the text of all, with the unit of work. `data` is a struct duet__origin, NULL is fine.
 */
struct duet__origin *duet__origin_new(const char *curve);
void duet__origin_add(struct duet__origin *origin, double work, const char *text);
const char *duet__origin_own(const struct duet__origin *origin, double work);
void duet__origin_join(struct duet__origin *origin, const char *unit);
void duet__origin_free(void *data);

/* origins.c: an empty array for struct duet_platform; free with g_ptr_array_unref. */
GPtrArray *duet__origins_new(void);

/* point_file.c: reads a point; `unit` is that of the points before, NULL for the first. */
DUET_MUST_CHECK int duet__read_point(const struct duet__json *at, const char **unit,
                                     struct duet_point *point);

/*
 * write_calibration.c: the text of a calibration file, free with g_free. `origins` as in struct
 * duet_platform, NULL: copied from another platform.
 */
char *duet__format_calibration(const struct duet_calibration *calibration,
                               const GPtrArray *origins);

/*
 * write_description.c: the text of a description whose calibration is the file `times`, free with
 * g_free. `archs` are those of the draft, then others that kernel times are of (as many as
 * arch_count says). DUET_EINVAL where the draft does not hold together; what else is wrong with it
 * is found by reading the text.
 */
DUET_MUST_CHECK int duet__format_description(const struct duet_draft *draft, const char *times,
                                             const struct duet_arch *archs, unsigned arch_count,
                                             char **text, struct duet_message *message);

/*
 * merge.c: adds to `out`, and to `origins`, the curves of `new`, whose points come from `origin`,
 * and the points of `old` (NULL: nothing) that `new` has not. DUET_ENOMEM, DUET_EINVAL.
 */
DUET_MUST_CHECK int duet__merge(const struct duet_calibration *new, const char *origin,
                                const struct duet_platform *old, struct duet_calibration *out,
                                GPtrArray *origins, struct duet_message *message);

/* files.c: appends `text` with its quotes, and what must be, escaped. */
void duet__append_string(GString *out, const char *text);

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

/*
 * platform.c: can a description and the calibration that it names, both in memory, be read, and be
 * built as they are? `path` and `times_path` are for messages.
 */
DUET_MUST_CHECK int duet__platform_check(const char *text, const char *path, const char *times,
                                         const char *times_path, struct duet_message *message);

/* files.c: the whole of a regular file of at most DUET__MAX_FILE_MIB; free with g_free. */
DUET_MUST_CHECK int duet__read_file(const char *path, char **text, size_t *length,
                                    struct duet_message *message);
/* Replaces a file in one step. */
DUET_MUST_CHECK int duet__write_file(const char *path, const char *text, size_t length,
                                     struct duet_message *message);

/*
 * replace.c: replaces two files of one folder, each in one step, `first` before `second`. On error
 * both are as they were, and there is no other file. DUET_EIO.
 */
struct duet__file {
    const char *path, *text;
};
DUET_MUST_CHECK int duet__replace_files(const struct duet__file *first,
                                        const struct duet__file *second,
                                        struct duet_message *message);

/* files.c: true if `name` has 1 to size - 1 bytes, all of them letters, digits or one of _-.:+ */
bool duet__good_name(const char *name, size_t size);

#endif
