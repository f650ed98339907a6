/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of this machine: found by duet__real_machine, or given by tests. */
#ifndef DUET_REAL_MACHINE_H
#define DUET_REAL_MACHINE_H

#include <duet/machine.h>
#include <duet/error.h>

#include "backends/backend.h"
#include "real/links.h"
#include "real/real.h"
#include "real/topology.h"

#include <stdbool.h>
#include <stdint.h>

/* A device that will be used. */
struct found {
    const struct duet__backend *backend;
    unsigned index; /* number of the device at its backend */
    struct backend_info info;
    unsigned arch; /* number in the machine: set by duet__machine_make */
};

struct parts {
    const struct duet_config *config;
    const struct duet__part *part; /* NULL: all of this machine */
    bool told;                     /* a remark has said why GPUs are left out */
    struct places *places;
    unsigned cores; /* usable ones, of this part */
    unsigned cpus;  /* CPU workers */
    struct found *devices;
    struct link_end *ends;        /* by device */
    struct backend_link *between; /* [source * device_count + destination] */
    unsigned device_count, device_capacity;
};

/*
 * Makes the machine of these parts, of which only devices[].arch changes. The caller owns *machine.
 * DUET_EINVAL (more memory wanted than a device has, windows that do not fit together), DUET_ENOMEM
 * with a message.
 */
DUET_MUST_CHECK int duet__machine_make(struct duet_machine *machine, struct parts *parts,
                                       struct duet_message *message);

/* ------------------------------------------------------------------------------------------- */
/*
 * The resources of this machine, used or not, for display. Looks once, opens nothing.
 */

/* Kind of a backend's devices. */
enum survey_kind {
    SURVEY_CORES,    /* cores of the host */
    SURVEY_DEVICES,  /* devices of their own */
    SURVEY_EMULATED, /* as many as requested */
};

struct survey_backend {
    const char *name, *description; /* constants */
    enum survey_kind kind;
    unsigned count;          /* devices; of emulated ones the most possible */
    struct duet_message why; /* reason why there are none */
};

/* One device. Cores are all alike, as are emulated devices: one entry stands for all. */
struct survey_device {
    unsigned backend, index; /* number of the backend, and of the device there */
    int error;               /* 0, or the error of its description, with the reason in `why` */
    struct duet_message why;
    char arch[DUET_NAME_MAX], description[128];
    char pci[16];                       /* "0000:3b:00.0"; "": not known, or none */
    uint64_t memory_bytes, total_bytes; /* usable part of the free memory; total. 0: the host's */
    double bandwidth_Bps, latency_s;    /* assumed for copies from and to the host; 0: not known */
};

struct duet__survey {
    unsigned backend_count, device_count;
    struct survey_backend *backends;
    struct survey_device *devices; /* in order of backends and numbers */
    unsigned threads;              /* hardware threads of the machine that are online */
    unsigned usable_threads;       /* hardware threads within the affinity of this process */
    unsigned usable_cores;         /* cores of usable_threads */
    unsigned cores;                /* cores that may be used: no more than the quota */
    unsigned sockets;              /* sockets of usable_threads */
    unsigned quota_cores;          /* cores' time that a control group leaves; 0: unlimited */
    uint64_t memory_bytes;         /* host memory; 0: not known */
    uint64_t free_bytes;           /* memory available to programs now; 0: not known */
    uint64_t lock_bytes;           /* RLIMIT_MEMLOCK; UINT64_MAX: none */
};

/*
 * Surveys the machine. `devices`: the only backend whose devices are looked for, since others may
 * take long to begin and catch signals (OpenCL's, when they load a compiler); NULL: all are. A
 * backend without devices and a device that cannot be described are no errors. The caller ends
 * *survey with duet__survey_fini. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__survey(struct duet__survey *survey, const char *devices);

void duet__survey_fini(struct duet__survey *survey);

/*
 * Gives the hardware threads, by the operating system's numbers, to which the workers of `machine`
 * would be bound: processors[worker], -1: unbound. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__survey_places(const struct duet_machine *machine, int *processors);

#endif
