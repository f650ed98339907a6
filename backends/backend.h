/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between the real engine and a kind of device: one folder, one external `const
 * struct duet__backend` and one line in list.h each.
 *
 * A backend is either synchronous (it has `execute`: CPUs), or asynchronous: kernels and copies are
 * given to a device's streams and reported by `poll` when they have ended. A device has three
 * streams, each a FIFO: copies in, kernels, copies out. The engine orders commands of different
 * streams only by waiting for completions. With several kernel_streams, kernels end in any order.
 *
 * Threads: all functions that take an asynchronous device are called on the thread of its worker,
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

/* Setup shared by all devices of one backend in one engine. Outlives them. */
struct backend_setup {
    const struct duet_machine *machine;
    /*
     * Pace. > 0: a kernel takes the seconds it is launched with and computes nothing; a copy takes
     * latency + bytes at its fair share of the links of its route (as in the simulation), times
     * this scale, and moves nothing. 0: free; everything is done, as fast as possible.
     */
    double scale;
    double (*now)(void *clock); /* seconds since the run began; any thread */
    void *clock;
    uint64_t pin_bytes; /* limit of page-locked host memory; 0: none */
    /* Returns pin_bytes as it is now, when it is reached: a virtual machine's memory may grow. Any
       thread. NULL: pin_bytes stays. */
    uint64_t (*pin_more)(void *clock);
    /*
     * Seconds for which a device may end nothing, after an error or while it is closed, before it
     * is given up (`abandon`). 0: no limit.
     */
    double patience_s;
    /*
     * Tells the user something, once in a run: one line without newline. Any thread. NULL: silent.
     */
    void (*say)(void *clock, const char *line);
    /* Called on a thread of the backend that runs kernels, before its first kernel. NULL: not. */
    void (*computes)(void *clock);
};

/* One device to open. */
struct backend_config {
    unsigned index;          /* number of the device, below count() */
    unsigned node;           /* memory node of the device in the machine */
    uint64_t capacity_bytes; /* size of the slab to allocate */
    unsigned kernel_streams; /* kernels that may run at the same time, on as many streams; 0: 1 */
    unsigned kernels;        /* most kernels in flight, for which room is made; 0: not known */
    bool untimed;            /* dates may be those at which the host launched a command and saw its
                                end */
    uint64_t lose_at;        /* emulated: number of the kernel or copy with which the device is
                                lost, and all in flight; 0: never */
    /*
     * Tells the engine to poll, because something has ended. Called on any thread, any time after
     * open.
     */
    void (*notify)(void *owner);
    void *owner;
};

struct duet__repeat; /* core/repeat.h */

struct backend_kernel {
    void *tag; /* returned in the completion */
    duet_kernel_fn run;
    struct duet_call *call; /* the engine's, unchanged until the completion, except stream and
                               status, which the backend sets */
    double seconds;         /* paced: duration, already scaled */
    /*
     * For backends that repeat: `run` enqueues several kernels, call->status has a word for each,
     * and call->message is there. What it enqueues is the same for the same version and addresses
     * of buffers, and may then be done again without calling it. NULL: one kernel, which is always
     * called.
     */
    struct duet__repeat *repeat;
    uint64_t version;
};

enum backend_stream { BACKEND_IN, BACKEND_KERNEL, BACKEND_OUT, BACKEND_STREAMS };

/*
 * A 2-D copy: `cols` columns of column_bytes each. At least one end is on the device that makes it.
 */
struct backend_copy {
    void *tag;
    enum backend_stream stream; /* BACKEND_IN or BACKEND_OUT */
    void *destination;
    const void *source;
    size_t column_bytes, cols;
    /*
     * Triangle: column number j consists of the bytes from first + j * first_step to below end + j
     * * end_step; others may not be written, at least in the host's memory. end and end_step 0:
     * whole columns.
     */
    size_t first, first_step, end, end_step;
    size_t destination_pitch, source_pitch; /* bytes from one column to the next */
    unsigned source_node, destination_node;
    /*
     * Source device of a copy between devices, which the destination's stream IN makes; else NULL.
     * It is closed after the copy has ended. If it is lost, the copy ends with DUET_ELOST.
     */
    struct backend_device *peer;
    /*
     * Place where the backend may note if the handle's memory is page-locked, for a copy from or to
     * the host, so that it decides once a handle; NULL at first. The same for all copies of a
     * handle, on all devices, until `forget`. NULL: the data is short-lived, and not to be
     * page-locked for this copy alone.
     */
    _Atomic(void *) *mark;
};

/* True for a copy of a triangle. */
static inline bool backend_slanted(const struct backend_copy *copy)
{
    return copy->end || copy->end_step;
}

/* Returns the number of bytes of a column to copy, from *first on. */
static inline size_t backend_column(const struct backend_copy *copy, size_t col, size_t *first)
{
    *first = copy->first + col * copy->first_step;
    return backend_slanted(copy) ? copy->end + col * copy->end_step - *first : copy->column_bytes;
}

struct backend_completion {
    void *tag;
    double start_s, end_s; /* when the kernel or copy ran, on the engine's clock */
    int status;            /* 0; the kernel's status; DUET_ELOST: the device is lost */
    const char *why;       /* reason of a status that is not 0, with the name of the call that
                              failed; NULL: none. Valid until the device is used again */
    size_t part;           /* 1 + number of the kernel, of several, that has left the status; 0: not
                              known, or one kernel */
};

/* Properties of a device, for `duet info` and for the machine that is made from it. */
struct backend_info {
    char arch[DUET_NAME_MAX];        /* architecture: "cpu", "h200", "emulated" */
    char description[128];           /* for people */
    char pci[16];                    /* "0000:3b:00.0", lower case; "": not known, or none */
    uint64_t memory_bytes;           /* usable part of the free memory; 0 for the host's */
    uint64_t total_bytes;            /* 0 for the host's */
    double bandwidth_Bps, latency_s; /* copies from and to the host, as far as known: expected by
                                        schedulers until they are measured */
};

/* Connection of two devices of one backend, for the machine that is made from it. */
struct backend_link {
    bool direct;   /* copies between them do not pass the host's memory */
    char kind[16]; /* "nvlink": links between these two; "nvswitch": each device's links to switches
                      that join it with all devices so connected; "pcie"; "": not known */
    double bandwidth_Bps; /* one direction, of these links together; 0: as PCIe */
};

struct backend_device; /* defined by each backend */

/* First member of the devices of asynchronous backends. */
struct backend_head {
    unsigned char *base; /* beginning of the slab, aligned to 256 bytes at least; constant from open
                            to close */
    const char *why;     /* more about the last error of launch or copy, as completion.why; NULL:
                            there is no more */
    _Atomic(bool) lost;  /* the device itself is lost; a copy ends with DUET_ELOST also when its
                            peer is lost */
};

static inline void *backend_base(const struct backend_device *device)
{
    return ((const struct backend_head *)(const void *)device)->base;
}

static inline const char *backend_why(const struct backend_device *device)
{
    return ((const struct backend_head *)(const void *)device)->why;
}

static inline bool backend_lost(const struct backend_device *device)
{
    const struct backend_head *head = (const void *)device;
    return atomic_load_explicit(&head->lost, memory_order_acquire);
}

struct duet__backend {
    const char *name; /* "cpu", "emulated", "cuda", "opencl" */
    const char *description;

    /*
     * Returns the number of devices (cores for the CPUs); 0, with the reason in *why, if there are
     * none. A backend that is not in this build has no slot but this one.
     */
    unsigned (*count)(struct duet_message *why);
    /*
     * True if there are no devices although there seem to be some (a driver that cannot be used),
     * so that a user who wants all devices should be told. NULL: never.
     */
    bool (*impaired)(void);
    int (*describe)(unsigned index, struct backend_info *info, struct duet_message *message);

    /*
     * Describes the connections between the first `count` devices: links[source * count +
     * destination], for source != destination; zeroed by the caller. All at once, since the query
     * is expensive. May be NULL: direct copies, over the links that each has to the host.
     */
    int (*links)(unsigned count, struct backend_link *links, struct duet_message *message);

    /*
     * Begin and end the use of the backend by one engine. *shared belongs to the backend, and may
     * be NULL.
     */
    int (*attach)(void **shared, const struct backend_setup *setup, struct duet_message *message);
    void (*detach)(void *shared);

    /*
     * Page-locking of the host's memory, which lets devices copy from and to it asynchronously. All
     * three may be NULL together, and may be called on any thread.
     *
     * pin: page-locks a range until `unpin` (or detach); the memory lasts that long. DUET_OK for a
     * range inside of one that is page-locked already. DUET_ENOMEM (refused by the system, or
     * beyond pin_bytes), DUET_EINVAL (overlaps another one in part) with a message: copies are then
     * slower.
     *
     * unpin: ends that, with `data` as given to pin; no copy of it may be in flight. DUET_EINVAL if
     * it was not pinned.
     *
     * forget: frees the data of a mark and sets it to NULL. The handle will be freed, and its
     * memory may be; nothing of it is in flight.
     */
    int (*pin)(void *shared, void *data, uint64_t bytes, struct duet_message *message);
    int (*unpin)(void *shared, void *data, struct duet_message *message);
    void (*forget)(void *shared, _Atomic(void *) *mark);

    /*
     * Opens a device and allocates its slab. Threads that it starts may run on the cores of the
     * calling thread. DUET_ENOMEM, DUET_EABSENT ... with a message.
     */
    int (*open)(struct backend_device **out, void *shared, const struct backend_config *config,
                struct duet_message *message);
    /*
     * Waits for commands in flight (paced: drops them), then frees the device and its slab.
     * Notifies nobody afterwards. NULL is fine.
     */
    void (*close)(struct backend_device *device);

    /* Synchronous backends only: runs a kernel to its end. Returns its status. */
    int (*execute)(struct backend_device *device, const struct backend_kernel *kernel);

    /* The following slots are for asynchronous backends, which have all but the last two. */

    /*
     * Launch and copy give a command to its stream. After an error it was not given and has no
     * completion.
     */
    int (*launch)(struct backend_device *device, const struct backend_kernel *kernel);
    bool repeats; /* kernels may have `repeat` */
    int (*copy)(struct backend_device *device, const struct backend_copy *copy);
    /*
     * Writes up to `max` completions, in order within a stream, and returns their number. Once the
     * device is lost, all commands not polled yet, and all given later, end with DUET_ELOST.
     */
    size_t (*poll)(struct backend_device *device, struct backend_completion *out, size_t max);
    /*
     * Gives up a device on which nothing ends any more: it is lost, and `close` does not free what
     * could be freed only after its commands have ended. NULL: not possible.
     */
    void (*abandon)(struct backend_device *device);
    /*
     * Returns when to poll again: a date, which may become earlier (config.notify tells); INFINITY:
     * when config.notify tells; 0: again and again. At a date poll may still find nothing: then ask
     * for the next. Only while commands are in flight. NULL: always 0.
     */
    double (*next_s)(const struct backend_device *device);
};

/* Return the backend of a name, or NULL; and the index-th one, NULL beyond the last. */
const struct duet__backend *duet__backend_find(const char *name);
const struct duet__backend *duet__backend_at(size_t index);

/* ------------------------------------------------------------------------------------------- */
/* common.c: files of Linux                                                                     */

/*
 * Reads the first line of a file, without its end. Returns false, and "", if it is not there or
 * longer than `size`.
 */
bool duet__read_line(const char *path, char *line, size_t size);

/* True if a list of Linux ("0-5,12") contains this number. */
bool duet__is_listed(const char *list, unsigned number);

#endif
