/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is on the machine at hand, whether a run uses it or not: for people. Looks once, opens
 * nothing.
 */
#ifndef DUET_REAL_SURVEY_H
#define DUET_REAL_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/error.h>
#include <duet/machine.h>

/* What the devices of a backend are. */
enum survey_kind {
    SURVEY_CORES,    /* cores of the host */
    SURVEY_DEVICES,  /* devices of their own */
    SURVEY_EMULATED, /* as many as are asked for */
};

struct survey_backend {
    const char *name, *description; /* constants */
    enum survey_kind kind;
    unsigned count;          /* devices; of emulated ones how many there may be */
    struct duet_message why; /* there are none */
};

/* One device. Of cores and of emulated devices, which are all alike, one stands for all. */
struct survey_device {
    unsigned backend, index; /* which backend, and the device's number there */
    int error;               /* 0, or why nothing is known of it, with `why` */
    struct duet_message why;
    char arch[DUET_NAME_MAX], description[128];
    char pci[16];                       /* "0000:3b:00.0"; "": not known, or none */
    uint64_t memory_bytes, total_bytes; /* usable, of what is free; in all. 0: the host's */
    double bandwidth_Bps, latency_s;    /* assumed of copies from and to the host; 0: not known */
};

struct duet__survey {
    unsigned backend_count, device_count;
    struct survey_backend *backends;
    struct survey_device *devices; /* in order of backends and numbers */
    unsigned threads;              /* hardware threads of the machine that are online */
    unsigned usable_threads;       /* of these, within the affinity of this process */
    unsigned usable_cores;         /* that these are of */
    unsigned cores;                /* that may be used: no more than the quota */
    unsigned sockets;              /* that usable_threads are on */
    unsigned quota_cores;          /* cores' time that a control group leaves; 0: any */
    uint64_t memory_bytes;         /* of the host; 0: not known */
    uint64_t free_bytes;           /* of these, what programs could take now; 0: not known */
    uint64_t lock_bytes;           /* RLIMIT_MEMLOCK; UINT64_MAX: none */
};

/*
 * Looks. `devices`: the one backend whose devices are looked for, since others may take long to
 * begin and catch signals (OpenCL's, when they load a compiler); NULL: all are. A backend without
 * devices and a device that cannot be described are no errors. The caller ends *survey with
 * duet__survey_fini. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__survey(struct duet__survey *survey, const char *devices);

void duet__survey_fini(struct duet__survey *survey);

/*
 * Which hardware threads, by the operating system's numbers, the workers of `machine` would be
 * bound to: processors[worker], -1 where it stays unbound. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__survey_places(const struct duet_machine *machine, int *processors);

#endif
