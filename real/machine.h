/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of this machine: found by duet__real_machine, or given by tests. */
#ifndef DUET_REAL_MACHINE_H
#define DUET_REAL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/machine.h>

#include "backends/backend.h"
#include "real/real.h"

/* ------------------------------------------------------------------------------------------- */
/* The cores that this process may use, in the order in which threads are bound to them. */

struct places;

/*
 * Finds the places: hardware threads within the process's affinity and control group, first one of
 * each core in order, then the cores' second ones, and so on. At least one. The caller frees *out.
 * DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__places_new(struct places **out);
/*
 * Makes the places of a described machine, for tests: hwloc's synthetic description, "pack:2 core:6
 * pu:2". DUET_EINVAL if it is none; otherwise as duet__places_new.
 */
DUET_MUST_CHECK int duet__places_synthetic(struct places **out, const char *description);
/* Frees the places. NULL is fine. */
void duet__places_free(struct places *places);

/* Returns the number of usable cores: places on different cores, or fewer by a quota. */
unsigned duet__places_cores(const struct places *places);
/* Returns the number of places; the first duet__places_cores of them are on different cores. */
unsigned duet__places_count(const struct places *places);
/* Returns the number of a place's processor package, from 0. */
unsigned duet__places_socket(const struct places *places, unsigned place);
/* Returns the operating system's number of the hardware thread at a place. */
unsigned duet__places_processor(const struct places *places, unsigned place);
/*
 * Returns the package near a device whose local processors Linux lists ("0-5,12-17"), or -1: it is
 * near several, near none that may be used, or the list is empty.
 */
int duet__places_near(const struct places *places, const char *processors);

/*
 * Assigns places to workers, CPU workers first: place[w], or -1, unbound. A device's thread gets a
 * core to itself, on the package near[device] while there is one (-1, or a package that is not
 * there: on the one with most cores left), as long as there are cores for all CPU workers and the
 * devices up to it. The CPU workers take one of each package in turn, cores first, then the second
 * hardware threads of cores, and are numbered package by package; all stay unbound if they are more
 * than places. The same arguments give the same places. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__places_deal(const struct places *places, unsigned cpus, unsigned devices,
                                      const int *near, int *place);

/*
 * Assigns places to the workers of a machine; `socket` of a device's worker is the package nearby.
 * DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__places_of(const struct places *places, const struct duet_machine *machine,
                                    int *place);

/* Binds the calling thread. If the system refuses, the thread stays unbound. */
void duet__places_bind(const struct places *places, unsigned place);

/*
 * Moves the calling thread, which is bound elsewhere or not at all, to this place's processor if it
 * runs on another one and may run there. Its binding is unchanged afterwards, and so it stays there
 * for as long as the system has no reason to move it.
 */
void duet__places_move(const struct places *places, unsigned place);

/*
 * Returns the cores' time that a process in a control group may use, rounded up; UINT_MAX:
 * unlimited. Linux's cgroup v2: `root` is where it is mounted, `membership` the file that names the
 * process's group (/proc/self/cgroup).
 */
unsigned duet__quota(const char *root, const char *membership);
/*
 * Returns the bytes of memory that the process may use; UINT64_MAX: unlimited. Arguments as
 * duet__quota; cgroup v1, too.
 */
uint64_t duet__memory_limit(const char *root, const char *membership);

/* ------------------------------------------------------------------------------------------- */
/*
 * The links of this machine, and the routes over them. A device has a link of its own each way
 * ("pcie0-to-device", "pcie0-to-host"); devices below the same switch share its link to the
 * processor ("switch0-to-device", "switch0-to-host"), in as many levels as there are switches.
 * Links of a switch with one device in use are part of that device's own. Nothing is known to be
 * shared between processors: the system does not say how fast they are joined.
 */

/* ------------------------------------------------------------------------------------------- */
/*
 * Places of devices on PCI Express: the bridges between them and the processor, the speeds of the
 * links, the processors nearby. From Linux's sysfs, read once for each device.
 *
 * hwloc would find the same bridges in the same files, but only by looking at all devices of the
 * machine (7 ms on one with six), and it gives the current speed of a link: idle GPUs slow theirs
 * down to that of the first generation. sysfs also gives the possible speed. hwloc gives the cores
 * and packages of the near processors (above).
 */

enum {
    PCI_PORTS = 16,   /* ports of one path; deeper paths count as not known */
    PCI_ADDRESS = 20, /* bytes of "0000:3b:00.0"; domains may have more digits */
    PCI_LIST = 4096,  /* bytes of a list of processors */
};

/* One PCI function: a bridge's port, or the device itself. 0: not known. */
struct pci_port {
    char address[PCI_ADDRESS];
    double speed_GTps, speed_now_GTps; /* possible and current speed of a lane, in transfers */
    unsigned lanes, lanes_now;
};

/* The ports from the processor's to the device's, which is the last. No port: nothing is known. */
struct pci_path {
    unsigned count;
    struct pci_port ports[PCI_PORTS];
    char processors[PCI_LIST]; /* near processors, as Linux lists them; "": not known */
};

/* Reads the path of a device ("0000:3b:00.0"). `root` is where sysfs is mounted: "/sys". */
void duet__pci_read(const char *root, const char *address, struct pci_path *path);

/*
 * Returns the bytes per second, one way, that copies reach on the link between ports[port] and the
 * one before it; 0: not known.
 */
double duet__pci_Bps(const struct pci_path *path, unsigned port);

/*
 * Moves *port to the next port towards the processor whose link to the one before it is a physical
 * one, and not the inside of a switch; begins with the device, path->count - 1. Returns false if
 * there is none.
 */
bool duet__pci_up(const struct pci_path *path, unsigned *port);

/* ------------------------------------------------------------------------------------------- */

/* A device's end of its links. */
struct link_end {
    double bandwidth_Bps, latency_s; /* by its backend, 0: not known; data of the path takes
                                        precedence */
    struct pci_path path;
};

struct links;

/*
 * Plans the links of `count` devices. between[source * count + destination] describes the
 * connection of two devices. The caller frees *out. DUET_ENOMEM, DUET_EINVAL (more links than a
 * machine may have).
 */
DUET_MUST_CHECK int duet__links_new(struct links **out, const struct link_end *ends, unsigned count,
                                    const struct backend_link *between);
/* Frees the plan. NULL is fine. */
void duet__links_free(struct links *links);

unsigned duet__links_count(const struct links *links);

/* Writes links and routes of a machine that has room for them and whose node 1 + i is device i. */
void duet__links_fill(const struct links *links, struct duet_machine *machine);

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

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
