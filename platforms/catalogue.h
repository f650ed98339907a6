/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that are put together from devices of public data sheets. Kernel times are estimated;
 * docs/models.md says how, and how far off they are on measured devices. */
#ifndef DUET_PLATFORMS_CATALOGUE_H
#define DUET_PLATFORMS_CATALOGUE_H

#include "platforms/platform.h"

/* A CPU, which has cores (memory is that of a socket), or a GPU; 0 or NULL: it has none. */
struct duet__device {
    char name[DUET_NAME_MAX], backend[DUET_NAME_MAX];
    char *title, *origin; /* in full ("AMD EPYC 9654"), and where the figures come from */
    char *unconfirmed;    /* figures for which no page was found; NULL: none */
    unsigned year;        /* year of its release */
    unsigned cores;
    double clock_Hz, flops_per_cycle;                        /* a core's, in double precision */
    double d_flops, s_flops, d_matrix_flops, s_matrix_flops; /* flops a second of a GPU, without and
                                                                with units for matrices */
    double d_ratio, s_ratio; /* published rate of products by the rate that the kernels' shares
                                give; 0: not published, taken to be 1 */
    double memory_Bps;
    uint64_t memory_bytes, cache_bytes; /* a GPU's memory; the cache that a CPU's cores share */
    unsigned pcie;                      /* generation of PCI Express, 16 lanes */
    double gpu_link_Bps;                /* a CPU's own link to each GPU, not PCIe */
    bool no_peer;                       /* direct copies over PCI Express are not possible */
    char *fabric;                       /* name of the links to other GPUs, "NVLink 3" */
    unsigned links;                     /* number of them, with link_Bps in either direction */
    double link_Bps;
    bool one_each;      /* one link to each other GPU, none to switches */
    unsigned die_links; /* links between the two dies of a package; 0: a package has one die */
};

/* Time of a kernel, fitted or assumed by platforms/fit_catalogue.py. */
struct duet__kernel_shape {
    char kernel[DUET_NAME_MAX]; /* name without the letter of a precision: "gemm" */
    unsigned on_gpu;            /* 1: on GPUs, 0: on CPUs */
    double share, half_s;   /* share of the peak that long kernels reach; seconds of work, at the
                               peak, with which a kernel reaches half of that share */
    double b3, b2, b1;      /* flops of a square tile: b3 b^3 + b2 b^2 + b1 b; 0: on vectors */
    double tiles, elements; /* read and written: tiles, or elements for each unit of work */
    bool rounds;            /* the kernel is launched anew for each element of a vector */
};

struct duet__catalogue {
    struct {
        double pcie_share, fabric_share;             /* part of the links' rates that copies get */
        double copy_latency_s, peer_latency_s;       /* latency of direct copies over PCI Express */
        double peer_socket_share, peer_remote_share; /* part of a link of PCIe, by reach */
        double gpu_start_s;                          /* from launching a kernel to its begin */
        char *origin;
    } rules;
    unsigned device_count, shape_count;
    struct duet__device *devices;
    struct duet__kernel_shape *shapes;
    char *path; /* path of the file that was read */
};

/* Links of its own that a kind of GPUs has; other copies go over PCI Express. */
enum duet__fabric {
    DUET_FABRIC_NONE,     /* PCI Express alone */
    DUET_FABRIC_DIRECT,   /* as many links between any two GPUs as there are for all */
    DUET_FABRIC_SWITCHED, /* all links of a GPU go to switches: full speed to any other */
};

/* A number of GPUs of one kind. */
struct duet__gpu_group {
    unsigned count;
    const char *device;
};

/* A machine to be put together; texts are borrowed. */
struct duet__assembly {
    const char *name;
    const char *cpu;         /* NULL: the first of the catalogue */
    unsigned sockets, cores; /* cores of a socket; 0: as many as the CPU has */
    const struct duet__gpu_group *gpus;
    unsigned group_count;
    enum duet__fabric fabric;
    unsigned switches; /* PCIe switches, which GPUs share equally; 0: one a package */
    const struct duet__link_override *links;
    size_t link_count;
};

/*
 * Reads the catalogue that is installed with the built-in platforms. *out is to be freed with
 * duet__catalogue_fini, whatever is returned. DUET_ENOTFOUND, DUET_EIO, DUET_EPARSE with a message.
 */
DUET_MUST_CHECK int duet__catalogue_load(struct duet__catalogue *out, struct duet_message *message);

/* Reads a catalogue from a text; `path` is for messages. Otherwise as duet__catalogue_load. */
DUET_MUST_CHECK int duet__catalogue_read(struct duet__catalogue *out, const char *text,
                                         size_t length, const char *path,
                                         struct duet_message *message);

void duet__catalogue_fini(struct duet__catalogue *catalogue);

/* Peak flops a second of one core of a CPU, or of a GPU, in precision 's' or 'd'; `matrix`: with
 * its units for matrices. */
double duet__device_peak(const struct duet__device *device, char precision, bool matrix);

/*
 * Fills *out (duet__platform_fini, whatever is returned). GPUs are dealt over the switches, and
 * these over the sockets, in blocks as equal as they can be. DUET_ENOTFOUND (no such device: the
 * message lists them), DUET_EINVAL, with a message.
 */
DUET_MUST_CHECK int duet__platform_assemble(const struct duet__catalogue *catalogue,
                                            const struct duet__assembly *assembly,
                                            struct duet__platform *out,
                                            struct duet_message *message);

#endif
