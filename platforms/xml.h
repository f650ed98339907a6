/* SPDX-License-Identifier: Apache-2.0 */
/* A SimGrid platform while it is read, and how its properties are read and written. */
#ifndef DUET_PLATFORMS_XML_H
#define DUET_PLATFORMS_XML_H

#include <stdbool.h>

#include <glib.h>

#include "platforms/description.h"

struct duet__field;

struct duet__xml_host {
    struct duet_node node;
    bool is_host; /* marked as such */
    unsigned cores;
    long line;
};

/* What the name of a link stands for in routes. */
struct duet__xml_crossing {
    unsigned link;     /* in the machine; of two, NAME_UP and then NAME_DOWN, where it is duplex */
    bool duplex;       /* SPLITDUPLEX */
    bool latency_only; /* written by duet to carry a route's latency: no link of the machine */
    double latency_s;
};

struct duet__xml_route {
    unsigned source, destination; /* indices of hosts */
    bool back;                    /* the way back of a symmetrical one */
    struct duet_route route;
};

/*
 * The file while it is read; values of attributes live in `strings`. What reads a part of it
 * returns false, and sets `error` and the message, where that cannot be.
 */
struct duet__xml {
    const char *path;
    struct duet_message *message;
    int error;
    GStringChunk *strings;
    const char *name;               /* of the zone */
    GHashTable *props;              /* of the zone: duet.* that are not used yet */
    GHashTable *host_index;         /* name -> index */
    GHashTable *crossings;          /* name -> struct duet__xml_crossing * */
    GArray *hosts, *links, *routes; /* duet__xml_host, duet_link, duet__xml_route */
    GArray *archs, *workers;        /* as in the machine */
    struct duet_platform rest;      /* costs, sharing, cores, first_waits */
    unsigned host;                  /* whose memory is node 0 */
};

/*
 * xml_file.c: reads the elements of a file into `xml`, whose tables and arrays are there; false, as
 * duet__xml_fail, which begins with the file's name, where it cannot be.
 */
bool duet__xml_parse(struct duet__xml *xml, const char *text, size_t length);
bool duet__xml_fail(struct duet__xml *xml, int error, const char *format, ...) DUET_PRINTF(3, 4);

/* xml_props.c: a number followed by a unit of SimGrid's ("125MBps", "10us"); false if malformed. */
bool duet__xml_bandwidth(const char *text, double *value);
bool duet__xml_time(const char *text, double *value);
bool duet__xml_unsigned(const char *text, unsigned least, unsigned most, unsigned *value);

/*
 * xml_props.c: the properties PREFIX.KEY of the members of a struct; members that are names are
 * told in another way. Reading takes them out of `props` (texts by name) and returns what is wrong
 * with one ("... expected a duration", free with g_free), else NULL. Written are those that are not
 * 0, and those that a file must have if `needed`.
 */
char *duet__props_read(GHashTable *props, const char *prefix, const struct duet__field *fields,
                       void *into);
void duet__props_write(GString *text, const char *prefix, const struct duet__field *fields,
                       const void *from, bool needed);
void duet__prop_write(GString *text, const char *indent, const char *name, const char *value);

#endif
