/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine as the scheduler core and the simulated engine see it: architectures, memory nodes,
 * workers, directed links and the routes between memory nodes. Plain data, made by platforms/
 * (from a description and options such as --cpus and --gpus) or filled by hand in tests.
 *
 * Units: seconds, bytes, bytes per second. Indices are positions in the arrays.
 */
#ifndef DUET_MACHINE_H
#define DUET_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/error.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* C has no other */
#endif

enum {
    DUET_NAME_MAX = 32,   /* bytes of a name, final zero included */
    DUET_ROUTE_LINKS = 8, /* links one route may cross */
    DUET_HOST = 0,        /* memory node 0 is always the host's memory */
};

/*
 * A kind of processor. Architectures are an open set that the platform names. `backend` names the
 * interface by which it is programmed ("cpu", "cuda", ...). A codelet's implementation is found by
 * architecture name or by backend, kernel times by architecture name.
 */
struct duet_arch {
    char name[DUET_NAME_MAX];    /* e.g. "x5650", "c2050" */
    char backend[DUET_NAME_MAX]; /* e.g. "cpu", "cuda" */
};

/* A memory: the host's (node 0, no slab) or a device's (one slab that the core sub-allocates). */
struct duet_node {
    char name[DUET_NAME_MAX]; /* "host", "gpu0", ...: numbered as the machine's devices */
    uint64_t capacity_bytes;  /* usable size; 0 = unlimited, allowed for the host only */
};

enum { DUET_WINDOW_MAX = 1024 }; /* limit of a worker's window, whose tasks are searched linearly */

/* One worker: a computing CPU core, or a GPU together with the core that feeds it. */
struct duet_worker {
    char name[DUET_NAME_MAX]; /* "cpu0", "gpu3" */
    unsigned arch;            /* index into archs */
    unsigned node;            /* memory node its kernels work in */
    unsigned socket;          /* CPU socket it belongs to (display, binding) */
    unsigned window;          /* tasks in preparation or in flight: 1 for a CPU, 2 for a GPU */
    unsigned window_short;    /* window while its tasks are short (together less than 100 us by the
                                 model) and none waits for copies; 0: as `window`, else at least
                                 that. Nothing is stolen for more than `window`. Both at most
                                 DUET_WINDOW_MAX */
};

/* One direction of a physical link. A duplex link is two of these. */
struct duet_link {
    char name[DUET_NAME_MAX];
    double bandwidth_Bps; /* bytes per second, > 0 */
    /* true: each copy may use the whole bandwidth (SimGrid's FATPIPE); false: copies share it,
       max-min fairly */
    bool per_copy;
};

/* Way of bytes from one memory node to another when the machine can copy directly. */
struct duet_route {
    bool direct;   /* false: no direct copy; data goes through the host */
    uint8_t count; /* links crossed; at least 1 when direct */
    uint16_t links[DUET_ROUTE_LINKS];
    double latency_s;     /* paid once a copy, before its first byte */
    double bandwidth_Bps; /* bandwidth of a lone copy: the smallest of its links */
};

/*
 * Resources that the cores of a socket share on the way to the host's memory; all sockets are
 * alike. The simulation's cache model uses it (platforms/model/effects.h). 0: not known, without
 * effect.
 */
struct duet_sharing {
    uint64_t shared_bytes; /* part of the cache shared by the cores of a socket that one program
                              gets */
    double bandwidth_Bps;  /* bandwidth of the memory behind it, for all cores of the socket
                              together */
};

/*
 * Costs of the runtime's own operations on this machine, in seconds. The simulated engine charges
 * them.
 */
struct duet_costs {
    double submit_s;        /* one task submission, on the submitting thread */
    double push_s;          /* one task made ready and placed on a list */
    double pop_s;           /* one task taken from the worker's own or shared list */
    double steal_s;         /* one attempt to steal */
    double kernel_launch_s; /* starting a kernel on a device, on the thread that feeds it */
    double copy_launch_s;   /* starting a copy on a device, on the thread that feeds it */
    double event_s; /* from the end of a device's kernel or copy until its thread has noticed it */
    double wake_s;  /* from waking a worker whose thread sleeps until it asks for work; several
                       workers are woken one after another */
    double spin_s;  /* idle time after which a worker's thread sleeps */
    double foreign_s; /* submission of a task that does not concern this node of a cluster */
};

struct duet_machine {
    char name[DUET_NAME_MAX];
    unsigned arch_count, node_count, worker_count, link_count;
    struct duet_arch *archs;
    struct duet_node *nodes;
    struct duet_worker *workers; /* CPU workers first, then GPU workers */
    struct duet_link *links;
    struct duet_route *routes; /* node_count * node_count, [source * node_count + destination] */
    struct duet_costs costs;
    struct duet_sharing sharing;
    unsigned cores;   /* cores that run kernels of the host's memory, those of emulated devices, and
                         threads that feed devices; 0: enough for all. Threads share them in time if
                         there are more */
    bool first_waits; /* the first CPU worker is the application's thread: it runs tasks while that
                         waits (as in XKaapi), and not while it submits */
};

/* Returns the most tasks that a worker has in preparation or in flight. */
static inline unsigned duet_worker_slots(const struct duet_worker *worker)
{
    return worker->window_short > worker->window ? worker->window_short : worker->window;
}

/* Returns the route from node `source` to node `destination`. Both must exist. */
static inline const struct duet_route *duet_machine_route(const struct duet_machine *machine,
                                                          unsigned source, unsigned destination)
{
    return &machine->routes[(size_t)source * machine->node_count + destination];
}

/*
 * Allocates the arrays of `machine`, all zero, for the given counts (each at least 1 but
 * link_count, which may be 0). The caller owns them and frees them with duet_machine_fini.
 * Errors: DUET_EINVAL, DUET_ENOMEM (machine is then empty and safe to fini).
 */
DUET_EXPORT DUET_MUST_CHECK int duet_machine_init(struct duet_machine *machine, unsigned arch_count,
                                                  unsigned node_count, unsigned worker_count,
                                                  unsigned link_count);

/*
 * Makes *to an independent copy of `from`, owned by the caller. Errors: DUET_EINVAL, DUET_ENOMEM
 * (*to is then empty).
 */
DUET_EXPORT DUET_MUST_CHECK int duet_machine_copy(struct duet_machine *to,
                                                  const struct duet_machine *from);

/* Frees the arrays. Safe on a zeroed or half-built machine, and twice. */
DUET_EXPORT void duet_machine_fini(struct duet_machine *machine);

/*
 * Checks every sentence of this header: indices in range, names terminated and unique, bandwidths,
 * latencies and costs finite and not negative, every node reachable from and to the host, node 0
 * without slab, windows from 1 to DUET_WINDOW_MAX, those of short tasks not less. Error:
 * DUET_EINVAL with a message that names the offending part.
 */
DUET_EXPORT DUET_MUST_CHECK int duet_machine_check(const struct duet_machine *machine,
                                                   struct duet_message *message);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif
#endif
