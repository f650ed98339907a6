/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files of platforms/. */
#ifndef DUET_PLATFORMS_INTERNAL_H
#define DUET_PLATFORMS_INTERNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fields.h"
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

/* Switch of a GPU that no switch names yet. */
#define DUET__NOWHERE UINT_MAX

/* Name in options that stands for every kind of link. */
#define DUET__ALL_LINKS "all"

/* True if the platform was read from XML, to which nothing can be added. */
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
/* read_xml.c: fills `platform` from a SimGrid platform; otherwise as duet__read_description. */
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

/* write.c: the text of a file of kernel times alone, as duet__platform_text. */
char *duet__format_times(const struct duet__platform *from);

/*
 * network.c: the shape of a network of its kind, in either notation ("16x4", "2;16,4;1,8;1,1"), and
 * in SimGrid's (NULL: it has none); free with g_free. DUET_EINVAL with a message.
 */
DUET_MUST_CHECK int duet__network_read_shape(struct duet__network *network, const char *text,
                                             struct duet_message *message);
char *duet__network_shape_text(const struct duet__network *network);

/* options.c: applies options to the bandwidth of a link of the kind `name`. */
void duet__change_bandwidth(const struct duet__platform_options *options, const char *name,
                            double *bandwidth);

/* derive.c: applies options to all links of a platform that is not fixed. */
void duet__change_links(struct duet__platform *d, const struct duet__platform_options *options);

/* options.c: bytes of memory of a GPU with `bytes` under options; at least 1. */
uint64_t duet__gpu_memory(const struct duet__platform_options *options, uint64_t bytes);

/* options.c: sets the two windows of a GPU's worker. Without an option they keep their value, or
 * get the default if they have none yet. */
void duet__set_windows(const struct duet__platform_options *options, struct duet_worker *worker);

/* check.c: the highest rate (work a second) in the curves of a kernel (NULL: any) on this
 * architecture; 0 without such a curve. `calibration` may be NULL. */
double duet__best_rate(const struct duet__calibration *calibration, const char *kernel,
                       const char *arch);

/* options.c: checks what can be checked without a machine, and the names of links. */
DUET_MUST_CHECK int duet__check_options(const struct duet__platform *platform,
                                        const struct duet__platform_options *options,
                                        struct duet_message *message);

/* derive.c: builds the machine of a description under options, which have been checked. */
DUET_MUST_CHECK int duet__derive(const struct duet__platform *platform,
                                 const struct duet__platform_options *options,
                                 struct duet_machine *machine, struct duet_message *message);

/* options.c: builds the part of a machine read from XML that options, already checked, leave. */
DUET_MUST_CHECK int duet__subset(const struct duet__platform *platform,
                                 const struct duet__platform_options *options,
                                 struct duet_machine *machine, struct duet_message *message);
/*
 * platform.c: folders of built-in platforms, in order of search: share/duet/platforms under the
 * prefix of the running code, if it is installed, then the directories known at compile time. Free
 * with g_strfreev.
 */
char **duet__platform_directories(void);

/* platform.c: reads a platform from a text, whose kernel times may be in a file beside `path`, and
 * checks that its machine can be built. */
DUET_MUST_CHECK int duet__platform_parse(const char *text, size_t length, const char *path,
                                         bool xml, struct duet__platform **out,
                                         struct duet_message *message);

/* write.c: reads a regular file of at most DUET__MAX_FILE_MIB; free with g_free. */
DUET_MUST_CHECK int duet__read_file(const char *path, char **text, size_t *length,
                                    struct duet_message *message);
/* write.c: writes a text with duet__file_write. Fails if duet__read_file could not read it. */
DUET_MUST_CHECK int duet__write_file(const char *path, const char *text,
                                     struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/* The tables of keys.c: the keys of platform files. */

extern const struct duet__list duet__archs;
extern const struct duet__field duet__platform_fields[], duet__times_fields[];
extern const struct duet__field duet__cost_fields[], duet__sharing_fields[];
extern const struct duet__field duet__curve_fields[], duet__point_fields[];
extern const struct duet__field duet__work_field;

/* ------------------------------------------------------------------------------------------- */
/* Reads XML as a document of json.h, so that tables of fields read it, too. */

/*
 * xml_document.c: makes each element an object of its attributes, which are texts, of arrays of the
 * elements inside it, by their names, and of its properties that begin with "duet.":
 * duet.cost.pop_s is the member pop_s of the member cost of the member duet. Properties that end in
 * numbers, from 0 in order, are elements of an array. Anything else is refused with its line, as is
 * a root element not called `name`. No DTD, entity or network is ever loaded. *root, on success
 * only, is to be closed.
 */
DUET_MUST_CHECK int duet__xml_parse(const char *text, size_t length, const char *path,
                                    const char *name, struct duet_message *message,
                                    struct duet__json *root);

/* xml_document.c: returns true and the value, bytes a second or seconds, if a text is a number
 * followed by one of SimGrid's units ("125MBps", "1Gbps", "10us"). It may be infinite. */
bool duet__xml_quantity(const char *text, bool bandwidth, double *out);

#endif
