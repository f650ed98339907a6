/* SPDX-License-Identifier: Apache-2.0 */
/* A SimGrid platform file as read, before it becomes a machine; and what reader and writer share.
 */
#ifndef DUET_PLATFORMS_XML_H
#define DUET_PLATFORMS_XML_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include <duet/error.h>
#include <duet/machine.h>

struct duet__xml_host {
    char name[DUET_NAME_MAX];
    enum { DUET__XML_UNSAID, DUET__XML_HOST, DUET__XML_DEVICE } kind;
    uint64_t capacity_bytes;
    unsigned cores;
    long line;
};

struct duet__xml_link {
    struct duet_link link;
    double latency_s;
    bool latency_only; /* written by duet to carry a route's latency: no link of the machine */
    unsigned index;    /* in the machine */
};

struct duet__xml_route {
    unsigned source, destination; /* indices of hosts */
    unsigned count;
    unsigned links[DUET_ROUTE_LINKS + 1]; /* indices of xml links; one more for the latency */
};

/* The whole file. Names and values live in `strings`. */
struct duet__xml {
    const char *path;
    struct duet_message *message;
    GStringChunk *strings;
    char *name;             /* of the zone */
    GHashTable *props;      /* of the zone: duet.* only; char * -> char * */
    GArray *hosts;          /* struct duet__xml_host */
    GHashTable *host_index; /* char * -> index */
    GArray *links;          /* struct duet__xml_link */
    GHashTable *link_index; /* char * -> index + 1 */
    GHashTable *duplex;     /* names of SPLITDUPLEX links: char * -> index + 1 of NAME_UP */
    GArray *routes;         /* struct duet__xml_route */
};

/* xml_file.c */
void duet__xml_init(struct duet__xml *xml, const char *path, struct duet_message *message);
void duet__xml_fini(struct duet__xml *xml);
DUET_MUST_CHECK int duet__xml_parse(struct duet__xml *xml, const char *text, size_t length);

/* xml_file.c: a number followed by a unit of SimGrid's ("125MBps", "10us"); false if malformed. */
bool duet__xml_bandwidth(const char *text, double *value);
bool duet__xml_time(const char *text, double *value);

#endif
