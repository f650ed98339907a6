/* SPDX-License-Identifier: Apache-2.0 */
/* What platforms/ shares inside itself. */
#ifndef DUET_PLATFORMS_INTERNAL_H
#define DUET_PLATFORMS_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include "platforms/platform.h"

/* Limits of what is read: generous, and small enough that no input can exhaust the memory. */
enum {
    DUET__MAX_SCHEMA = 2,
    DUET__MAX_FILE_MIB = 64,
    DUET__MAX_ARCHS = 256,
    DUET__MAX_SOCKETS = 4096,
    DUET__MAX_SOCKET_CORES = 4096,
    DUET__MAX_CORES = 65536, /* cores of all sockets together */
    DUET__MAX_GPUS = 4096,
    DUET__MAX_LINK_KINDS = 64,
    DUET__MAX_CURVES = 4096,
    DUET__MAX_POINTS = 65536, /* points of one curve */
};

/* The switch of a GPU that is behind none yet. */
#define DUET__NOWHERE UINT_MAX

/* The name that stands for every kind of link in options. */
#define DUET__ALL_LINKS "all"

/* Whether the platform is a machine read from XML, to which nothing can be added. */
static inline bool duet__is_fixed(const struct duet__platform *platform)
{
    return platform->fixed.node_count > 0;
}

/*
 * read_json.c: fills `platform` (zeroed) from the text of a file. `path` is for messages.
 * *calibration is the name of a file beside it that has the kernel times, NULL where they are in
 * the text; free with g_free.
 */
DUET_MUST_CHECK int duet__read_description(struct duet__platform *platform, const char *text,
                                           size_t length, const char *path, char **calibration,
                                           struct duet_message *message);
/* read_xml.c: the same from a SimGrid platform. */
DUET_MUST_CHECK int duet__read_xml(struct duet__platform *platform, const char *text, size_t length,
                                   const char *path, char **calibration,
                                   struct duet_message *message);

/*
 * read_json.c: adds the curves of a file that has kernel times alone. Each must be of an
 * architecture that `platform`, whose machine is read already, has.
 */
DUET_MUST_CHECK int duet__read_calibration(struct duet__platform *platform, const char *text,
                                           size_t length, const char *path,
                                           struct duet_message *message);

/* write_json.c: the text of a file of kernel times alone, as duet__platform_text. */
char *duet__format_times(const struct duet__platform *from);

/*
 * network.c: the shape of a network of its kind, in either notation ("16x4", "2;16,4;1,8;1,1"), and
 * in SimGrid's (NULL: it has none); free with g_free. DUET_EINVAL with a message.
 */
DUET_MUST_CHECK int duet__network_read_shape(struct duet__network *network, const char *text,
                                             struct duet_message *message);
char *duet__network_shape_text(const struct duet__network *network);

/* options.c: what options make of the bandwidth of a link of the kind `name`. */
void duet__change_bandwidth(const struct duet__platform_options *options, const char *name,
                            double *bandwidth);

/* derive.c: what options make of all links of a platform that is not fixed. */
void duet__change_links(struct duet__platform *d, const struct duet__platform_options *options);

/* options.c: the memory that options leave of a GPU's `bytes`: at least 1. */
uint64_t duet__gpu_memory(const struct duet__platform_options *options, uint64_t bytes);

/*
 * options.c: sets the two windows of a GPU's worker; where options say nothing they stay as they
 * are, or become the usual ones where there are none yet.
 */
void duet__set_windows(const struct duet__platform_options *options, struct duet_worker *worker);

/*
 * check.c: the most work a second that a curve of the kernel (NULL: any) has on this architecture;
 * 0 where there is none. NULL is fine for no calibration.
 */
double duet__best_rate(const struct duet__calibration *calibration, const char *kernel,
                       const char *arch);

/* options.c: checks what can be checked without a machine, and the names of links. */
DUET_MUST_CHECK int duet__check_options(const struct duet__platform *platform,
                                        const struct duet__platform_options *options,
                                        struct duet_message *message);

/* derive.c: the machine a description gives under options, which have been checked. */
DUET_MUST_CHECK int duet__derive(const struct duet__platform *platform,
                                 const struct duet__platform_options *options,
                                 struct duet_machine *machine, struct duet_message *message);

/* subset.c: the part of a machine read from XML that options, which have been checked, leave. */
DUET_MUST_CHECK int duet__subset(const struct duet__platform *platform,
                                 const struct duet__platform_options *options,
                                 struct duet_machine *machine, struct duet_message *message);
/*
 * subset.c: the kind of a link, from its name: "pcie" for "pcie0-to-host", "peer_switch" for
 * "peer_switch-up"; a name of another form is its own kind. Free with g_free.
 */
char *duet__kind_of(const char *link);

/*
 * directories.c: where built-in platforms are looked for, in this order: share/duet/platforms under
 * the prefix that the running code is installed in, where there is one, and the directories known
 * when it was compiled. Free with g_strfreev.
 */
char **duet__platform_directories(void);

/*
 * platform.c: the platform of a text, whose kernel times may be in a file beside `path`; checked
 * that its machine can be built.
 */
DUET_MUST_CHECK int duet__platform_parse(const char *text, size_t length, const char *path,
                                         bool xml, struct duet__platform **out,
                                         struct duet_message *message);

/* write.c: the whole of a regular file of at most DUET__MAX_FILE_MIB; free with g_free. */
DUET_MUST_CHECK int duet__read_file(const char *path, char **text, size_t *length,
                                    struct duet_message *message);
/* write.c: duet__file_write of a text that duet__read_file can read. */
DUET_MUST_CHECK int duet__write_file(const char *path, const char *text,
                                     struct duet_message *message);

#endif
