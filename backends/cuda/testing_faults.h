/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of CUDA fails once, wherever it is made: what was given ends once, with the call's
 * name where it failed; everything else is right; nothing is left behind.
 */
#ifndef DUET_CUDA_TESTING_FAULTS_H
#define DUET_CUDA_TESTING_FAULTS_H

#include "backends/cuda/testing.h"

enum {
    KIB = 1 << 10,
    MIB = 1 << 20,
    SLAB = 3 * MIB,
    SMALL_SLAB = 512 * KIB,
    KERNELS = 40, /* at once: more than the first timings are */
    COMMANDS = 256,
    MATRIX_COLS = 100,
    MATRIX_PITCH = 1200, /* bytes between columns of 1000 bytes */
};

/* The calls that may fail, and whether something has to end with an error then. */
static const struct function {
    const char *name;
    bool counts;
} functions[] = {
    {"cudaSetDevice", false},
    {"cudaGetDeviceProperties", true},
    {"cudaDeviceGetAttribute", true},
    {"cudaMalloc", true},
    {"cudaHostAlloc", false},
    {"cudaHostRegister", false},
    {"cudaStreamCreateWithFlags", true},
    {"cudaStreamSynchronize", true},
    {"cudaEventCreateWithFlags", false},
    {"cudaEventRecord", true},
    {"cudaEventQuery", false},
    {"cudaEventElapsedTime", true},
    {"cudaMemcpyAsync", true},
    {"cudaMemcpy2DAsync", true},
    {"cudaMemcpyPeerAsync", true},
    {"cudaDeviceCanAccessPeer", false},
    {"cudaDeviceEnablePeerAccess", false},
};

/* Data of the copies: each once in the slab, at `offset`. */
static const struct data {
    size_t offset, bytes, cols, pitch;
    bool pinned, marked;
} kinds[] = {
    {0, 512 * KIB, 1, 512 * KIB, false, true},                /* a handle */
    {512 * KIB, 10 * KIB, 1, 10 * KIB, false, true},          /* a small one */
    {MIB, 1000, MATRIX_COLS, MATRIX_PITCH, true, true},       /* columns with gaps */
    {MIB + 512 * KIB, 300 * KIB, 1, 300 * KIB, false, false}, /* in several pieces */
    {2 * MIB, 1000, MATRIX_COLS, MATRIX_PITCH, false, false}, /* gaps and pieces */
};
enum { KINDS = G_N_ELEMENTS(kinds) };

/* Commands given to one device. */
struct side {
    struct backend_device *device;
    unsigned used, given, ended;
    bool back[COMMANDS];
};

struct run {
    struct user user;
    const char *call; /* that fails, or NULL */
    cudaError_t error;
    struct side sides[2];
    unsigned char *host[KINDS], *back[KINDS];
    _Atomic(void *) marks[2 * KINDS];
    struct duet_call calls[KERNELS];
    struct duet_message messages[KERNELS];
    unsigned bad; /* that ended with an error */
};

static inline bool sticky(const struct run *r)
{
    return duet__cuda_fate(r->error) != FATE_REFUSED;
}

/* Checks that a reason names the call or, once a device is broken, at least the error. */
static inline void check_why(struct run *r, int status, const char *why)
{
    r->bad++;
    g_assert_cmpint(status, <, 0);
    if (!r->call || !why)
        g_error("%s: error %d without a reason", r->call ? r->call : "nothing", status);
    const char *expected = sticky(r) ? cudaGetErrorName(r->error) : r->call;
    if (!strstr(why, expected) && !(sticky(r) && strstr(why, "lost")))
        g_error("%s: \"%s\"", r->call, why);
}

static inline void note(struct run *r, struct side *side, int error)
{
    if (error)
        check_why(r, error, backend_why(side->device));
    else
        side->given++;
}

static inline void *new_tag(struct side *side)
{
    g_assert_cmpuint(side->used, <, COMMANDS);
    return &side->back[side->used++];
}

static inline void give_copy(struct run *r, struct side *side, struct backend_copy copy)
{
    copy.tag = new_tag(side);
    note(r, side, duet__backend_cuda.copy(side->device, &copy));
}

static inline void collect(struct run *r, struct side *side)
{
    struct backend_completion done;
    double begun_s = testing_now(NULL);
    while (side->ended < side->given) {
        if (!duet__backend_cuda.poll(side->device, &done, 1)) {
            g_assert_cmpfloat(testing_now(NULL) - begun_s, <, TESTING_WATCHDOG_S);
            (void)sched_yield();
            continue;
        }
        bool *back = done.tag;
        g_assert_true(back >= side->back && back < side->back + side->used);
        g_assert_false(*back);
        *back = true;
        side->ended++;
        g_assert_true(done.start_s <= done.end_s);
        if (done.status)
            check_why(r, done.status, done.why);
    }
    g_assert_cmpuint(duet__backend_cuda.poll(side->device, &done, 1), ==, 0);
}

static inline void nothing(void *argument)
{
}

static inline int enqueue(const struct duet_call *call)
{
    int error = fake_cuda_launch(call->stream, nothing, NULL, 0);
    (void)cudaGetLastError();
    return error ? duet_fail(call->message, DUET_ETASK, "%s", cudaGetErrorName((cudaError_t)error))
                 : DUET_OK;
}

static inline void give_kernels(struct run *r, struct side *side, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        *r->messages[i].text = '\0';
        r->calls[i] = (struct duet_call){.message = &r->messages[i]};
        struct backend_kernel kernel = {.tag = new_tag(side), .run = enqueue, .call = &r->calls[i]};
        note(r, side, duet__backend_cuda.launch(side->device, &kernel));
    }
}

static inline void give_copies(struct run *r, struct side *side, bool in)
{
    for (unsigned k = 0; k < KINDS; k++) {
        unsigned char *host = in ? r->host[k] : r->back[k];
        struct backend_copy copy = user_copy(side->device, in, kinds[k].offset, host,
                                             kinds[k].bytes, kinds[k].cols, kinds[k].pitch);
        if (kinds[k].marked)
            copy.mark = &r->marks[in ? k : KINDS + k];
        give_copy(r, side, copy);
    }
}

/* The fake breaks the current device: it is to be the one at hand. */
static inline struct side *turn_to(struct run *r, unsigned index)
{
    if (cudaSetDevice((int)index) != cudaSuccess) /* the one that was to fail */
        duet__cuda_ignore(cudaSetDevice((int)index));
    (void)cudaGetLastError();
    return &r->sides[index];
}

static inline void work(struct run *r)
{
    struct side *first = turn_to(r, 0);
    give_copies(r, first, true);
    give_kernels(r, first, 3);
    collect(r, first);
    struct side *second = turn_to(r, 1);
    struct backend_copy copy = user_copy(second->device, true, 0, NULL, SMALL_SLAB, 1, SMALL_SLAB);
    copy.source = backend_base(first->device);
    copy.peer = first->device;
    give_copy(r, second, copy);
    give_kernels(r, second, 1);
    collect(r, second);
    (void)turn_to(r, 0);
    give_kernels(r, first, KERNELS);
    give_copies(r, first, false);
    collect(r, first);
}

static inline bool open_both(struct run *r)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct backend_config config = user_config(i, i ? SMALL_SLAB : SLAB);
        int error = duet__backend_cuda.open(&r->sides[i].device, r->user.shared, &config, hear());
        if (error) {
            check_why(r, error, heard());
            return false;
        }
    }
    return true;
}

static inline void make_memory(struct run *r)
{
    for (unsigned k = 0; k < KINDS; k++) {
        size_t bytes = kinds[k].pitch * kinds[k].cols;
        r->host[k] = user_pages(bytes);
        r->back[k] = user_pages(bytes);
        memset(r->host[k], (int)k + 1, bytes);
        for (size_t i = 0; i < bytes; i += 509)
            r->host[k][i] = (unsigned char)(i / 509 + i / 40000);
        memset(r->back[k], 0, bytes);
    }
}

static inline void pin_all(struct run *r)
{
    for (unsigned k = 0; k < KINDS; k++) {
        size_t bytes = kinds[k].pitch * kinds[k].cols;
        if (!kinds[k].pinned)
            continue;
        int error = duet__backend_cuda.pin(r->user.shared, r->host[k], bytes, hear());
        if (!error)
            error = duet__backend_cuda.pin(r->user.shared, r->back[k], bytes, hear());
        if (error)
            check_why(r, error, heard());
    }
}

static inline void compare(const struct run *r)
{
    for (unsigned k = 0; k < KINDS; k++)
        for (size_t c = 0; c < kinds[k].cols; c++)
            g_assert_true(!memcmp(r->host[k] + c * kinds[k].pitch, r->back[k] + c * kinds[k].pitch,
                                  kinds[k].bytes));
}

/* All of it, with a call that fails, or none. How many commands and calls had errors. */
static inline unsigned run(const char *call, unsigned nth, cudaError_t error, uint64_t *calls)
{
    const struct fake_cuda_config config = {.devices = 2};
    struct run *r = g_new0(struct run, 1);
    struct fake_cuda_stats stats;
    user_begin(&r->user, &config, 64 * MIB);
    r->call = call;
    r->error = error;
    make_memory(r);
    if (call)
        fake_cuda_fail(call, nth, error);
    pin_all(r);
    if (open_both(r))
        work(r);
    fake_cuda_stats(&stats);
    g_assert_cmpuint(stats.violations, ==, 0);
    cudaError_t pending = cudaGetLastError();
    g_assert_true(pending == cudaSuccess || pending == cudaErrorNotReady || sticky(r));
    if (!r->bad)
        compare(r);
    for (unsigned i = 0; i < G_N_ELEMENTS(functions) && calls; i++)
        calls[i] = fake_cuda_calls(functions[i].name);
    for (unsigned i = 0; i < 2; i++)
        duet__backend_cuda.close(r->sides[i].device);
    for (unsigned i = 0; i < G_N_ELEMENTS(r->marks); i++)
        duet__backend_cuda.forget(r->user.shared, &r->marks[i]);
    user_end(&r->user);
    for (unsigned k = 0; k < KINDS; k++) {
        free(r->host[k]);
        free(r->back[k]);
    }
    unsigned bad = r->bad;
    g_free(r);
    return bad;
}

/*
 * Each call in turn, of each function the first `first` ones and then every (calls / later)-th,
 * which are much alike.
 */
static inline void fail_all(cudaError_t error, unsigned first, unsigned later)
{
    uint64_t calls[G_N_ELEMENTS(functions)];
    g_assert_cmpuint(run(NULL, 0, cudaSuccess, calls), ==, 0);
    for (unsigned f = 0; f < G_N_ELEMENTS(functions); f++) {
        unsigned step = 1;
        g_assert_cmpuint(calls[f], >, 0);
        for (unsigned n = 1; n <= calls[f]; n += step) {
            unsigned bad = run(functions[f].name, n, error, NULL);
            if (functions[f].counts)
                g_assert_cmpuint(bad, >, 0);
            if (n >= first)
                step = MAX((unsigned)calls[f] / later, 1);
        }
    }
}

#endif
