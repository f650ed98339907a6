/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam between the real engine and a kind of device: one folder, one external `const struct
 * duet__backend` and one line in list.h each.
 *
 * A backend is either synchronous (it has `execute`: CPUs), or asynchronous: kernels and copies are
 * given to a device's streams and reported by `poll` when they have ended. A device has three
 * streams, each a FIFO: copies in, kernels, copies out. The engine orders nothing across streams
 * but by waiting for a completion. With several kernel_streams, kernels end in any order.
 *
 * Threads: everything that takes an asynchronous device is called on the thread of its worker,
 * `open` first and `close` last; a synchronous one is used by one thread at a time. Devices are
 * used at the same time by different threads. Errors are negative enum duet_error. Dates are in
 * seconds on the clock that the engine passes.
 */
#ifndef DUET_BACKEND_H
#define DUET_BACKEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <duet/duet.h>
#include <duet/machine.h>

/* What all devices of one backend in one engine have in common. Outlives them. */
struct backend_setup {
    const struct duet_machine *machine;
    /*
     * > 0: paced. A kernel takes the seconds it is launched with and computes nothing; a copy takes
     * latency + bytes at its fair share of the links of its route (as in the simulation), times
     * this scale, and moves nothing. 0: free: everything is done, as fast as it goes.
     */
    double scale;
    double (*now)(void *clock); /* seconds since the run began; any thread */
    void *clock;
    uint64_t pin_bytes; /* of the host's memory that may be page-locked; 0: none */
    /* Computes pin_bytes anew when it is reached: a virtual machine's memory may grow. Any thread.
       NULL: pin_bytes stays. */
    uint64_t (*pin_more)(void *clock);
    /*
     * Seconds for which a device may end nothing, after an error or while it is closed, before it
     * is given up (`abandon`). 0: it is waited for without limit.
     */
    double patience_s;
    /* Says something to the user, once in a run: one line without newline. Any thread. NULL: no. */
    void (*say)(void *clock, const char *line);
    /* To be called on a thread of the backend that runs kernels, before the first. NULL: no. */
    void (*computes)(void *clock);
};

/* One device to open. */
struct backend_config {
    unsigned index;          /* from 0, less than count() */
    unsigned node;           /* its memory node in the machine */
    uint64_t capacity_bytes; /* of the slab to allocate */
    unsigned kernel_streams; /* kernels that may run at the same time, on as many streams; 0: 1 */
    unsigned kernels;        /* in flight at most, for which room is made; 0: not known */
    bool untimed;            /* dates may be those at which the host launched and saw an end */
    uint64_t lose_at;        /* emulated: lost when it is given its lose_at-th kernel or copy, with
                                that one and all in flight; 0: never */
    /* Something has ended, poll again. Called on any thread, any time after open. */
    void (*notify)(void *owner);
    void *owner;
};

struct backend_kernel {
    void *tag; /* comes back in the completion */
    duet_kernel_fn run;
    struct duet_call *call; /* the engine's, unchanged until the completion, but for the stream
                               and the status, which the backend sets */
    double seconds;         /* paced: how long, already scaled */
};

enum backend_stream { BACKEND_IN, BACKEND_KERNEL, BACKEND_OUT, BACKEND_STREAMS };

/* A 2-D copy: `cols` columns of column_bytes each. At least one end is on the device at hand. */
struct backend_copy {
    void *tag;
    enum backend_stream stream; /* BACKEND_IN or BACKEND_OUT */
    void *destination;
    const void *source;
    size_t column_bytes, cols;
    /*
     * Of a triangle: column number j is its bytes from first + j * first_step to below
     * end + j * end_step, and nothing else is to be written, at least in the host's memory.
     * end and end_step 0: whole columns.
     */
    size_t first, first_step, end, end_step;
    size_t destination_pitch, source_pitch; /* bytes from one column to the next */
    unsigned source_node, destination_node;
    /*
     * The source of a copy between devices, which the destination's stream IN makes; else NULL. It
     * is closed after the copy has ended. If it is lost, the copy ends with DUET_ELOST.
     */
    struct backend_device *peer;
    /*
     * Of a copy from or to the host: where the backend may note whether the handle's memory is
     * page-locked, so that it is decided once a handle; NULL at first. The same for all copies of a
     * handle, on all devices, until `forget`. NULL: of something that does not last; it is not to
     * be page-locked for this copy alone.
     */
    _Atomic(void *) *mark;
};

/* true if it is of a triangle. */
static inline bool backend_slanted(const struct backend_copy *copy)
{
    return copy->end || copy->end_step;
}

/* Which bytes of a column are to be copied, from *first on. */
static inline size_t backend_column(const struct backend_copy *copy, size_t col, size_t *first)
{
    *first = copy->first + col * copy->first_step;
    return backend_slanted(copy) ? copy->end + col * copy->end_step - *first : copy->column_bytes;
}

struct backend_completion {
    void *tag;
    double start_s, end_s; /* of the kernel or the copy itself, on the engine's clock */
    int status;            /* 0; what the kernel returned; DUET_ELOST: the device is gone */
    const char *why;       /* more about a status that is not 0, with the name of the call that
                              failed; NULL: nothing. Valid until the device is used again */
};

/* What a device is, for `duet info` and for the machine that is made from it. */
struct backend_info {
    char arch[DUET_NAME_MAX];        /* architecture: "cpu", "h200", "emulated" */
    char description[128];           /* for people */
    char pci[16];                    /* "0000:3b:00.0", lower case; "": not known, or none */
    uint64_t memory_bytes;           /* usable, of what is free; 0 for the host's */
    uint64_t total_bytes;            /* 0 for the host's */
    double bandwidth_Bps, latency_s; /* of copies from and to the host, as far as known: what
                                        schedulers believe until it was measured */
};

/* How two devices of one backend are connected, for the machine that is made from it. */
struct backend_link {
    bool direct;   /* a copy goes from one to the other without passing the host's memory */
    char kind[16]; /* "nvlink": links between these two; "nvswitch": each device's links to switches
                      that join it with all devices so connected; "pcie"; "": not known */
    double bandwidth_Bps; /* one direction, of those links together; 0: as PCIe */
};

struct backend_device; /* each backend's own */

struct duet__backend {
    const char *name; /* "cpu", "emulated", "cuda", "opencl" */
    const char *description;

    /* How many devices there are (cores for the CPUs). 0 with the reason in *why if none. */
    unsigned (*count)(struct duet_message *why);
    /*
     * true: there are no devices although there seem to be some (a driver that cannot be used), so
     * that whoever wants all there are should hear why. NULL: never.
     */
    bool (*impaired)(void);
    int (*describe)(unsigned index, struct backend_info *info, struct duet_message *message);

    /*
     * How data goes between the first `count` devices: links[source * count + destination], for
     * source != destination; zeroed by the caller. All at once, since whoever knows is costly to
     * ask. May be NULL: direct, over the links that each has to the host.
     */
    int (*links)(unsigned count, struct backend_link *links, struct duet_message *message);

    /* Begins and ends the use of the backend by one engine. *shared is its own, and may be NULL. */
    int (*attach)(void **shared, const struct backend_setup *setup, struct duet_message *message);
    void (*detach)(void *shared);

    /*
     * Page-locking of the host's memory, which lets devices copy from and to it beside everything
     * else. All three may be NULL together, and may be called on any thread.
     * pin: page-locks a range until `unpin` (or detach). The whole of it lasts that long. What is
     * in a range that is page-locked already is DUET_OK. DUET_ENOMEM (refused by the system, or
     * beyond pin_bytes), DUET_EINVAL (overlaps another one in part) with a message: copies then go
     * another way, slower. unpin: ends that, `data` as given to pin; no copy of it may be in
     * flight. DUET_EINVAL if it was not pinned. forget: the handle whose copies carried this mark
     * will be gone, and its memory may be; nothing of it is in flight. Sets it to NULL.
     */
    int (*pin)(void *shared, void *data, uint64_t bytes, struct duet_message *message);
    int (*unpin)(void *shared, void *data, struct duet_message *message);
    void (*forget)(void *shared, _Atomic(void *) *mark);

    /*
     * Opens a device and allocates its slab. Threads that it starts may run where the calling
     * thread may. DUET_ENOMEM, DUET_EABSENT ... with a message.
     */
    int (*open)(struct backend_device **out, void *shared, const struct backend_config *config,
                struct duet_message *message);
    /*
     * Waits for what is in flight (paced: drops it), then frees the device and its slab. Notifies
     * nobody afterwards. NULL is fine.
     */
    void (*close)(struct backend_device *device);

    /* Synchronous backends only: runs a kernel to its end. Returns its status. */
    int (*execute)(struct backend_device *device, const struct backend_kernel *kernel);

    /* Asynchronous backends only, all of them. */

    /* Where the slab begins, aligned to 256 bytes at least. Constant from open to close. */
    void *(*base)(const struct backend_device *device);
    /* Gives a command to its stream. An error: it was not given and has no completion. */
    int (*launch)(struct backend_device *device, const struct backend_kernel *kernel);
    int (*copy)(struct backend_device *device, const struct backend_copy *copy);
    /* More about the last error of launch or copy: NULL, or as completion.why. May be NULL. */
    const char *(*why)(const struct backend_device *device);
    /*
     * Writes up to `max` completions, in order within a stream, and returns how many. Once the
     * device is lost everything not polled yet, and everything given later, ends with DUET_ELOST.
     */
    size_t (*poll)(struct backend_device *device, struct backend_completion *out, size_t max);
    /* true once the device itself is lost: a copy ends with DUET_ELOST when its peer is, too. */
    bool (*lost)(const struct backend_device *device);
    /*
     * Gives up a device on which nothing ends any more: it is lost, and `close` leaves to the end
     * of the process what could be freed only after what is in flight. NULL: that is not possible.
     */
    void (*abandon)(struct backend_device *device);
    /*
     * When to poll again, as far as that is known: a date, and config.notify tells if it becomes
     * earlier; INFINITY: config.notify tells; 0: it must be asked again and again. At a date poll
     * may have nothing yet: then ask for the next. Only of interest while something is in flight.
     */
    double (*next_s)(const struct backend_device *device);
};

/* The backend of this name, or NULL. The index-th one, NULL beyond the last. */
const struct duet__backend *duet__backend_find(const char *name);
const struct duet__backend *duet__backend_at(size_t index);

#endif
