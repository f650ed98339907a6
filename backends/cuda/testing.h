/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for tests of the CUDA backend on the fake one: an attached backend that records its lines
 * for the user, and kernels that work on the fake's memory.
 */
#ifndef DUET_CUDA_TESTING_H
#define DUET_CUDA_TESTING_H

#include "backends/cuda/internal.h"
#include "backends/testing.h"
#include "tests/fake_cuda/fake.h"

extern const struct duet__backend duet__backend_cuda;

enum {
    SAID = 8,
    TESTING_PAGE = 4096,
    TESTING_STAGING = 64 << 10, /* bytes of a staging buffer: many pieces of little data */
};

/* Lines for the user. Any thread. */
struct hearing {
    pthread_mutex_t mutex;
    unsigned count;
    char lines[SAID][512];
};

static inline void hearing_add(void *clock, const char *line)
{
    struct hearing *hearing = clock;
    (void)pthread_mutex_lock(&hearing->mutex);
    g_assert_null(strchr(line, '\n'));
    g_assert_cmpuint(strlen(line), <, 500); /* nothing is cut */
    if (hearing->count < SAID)
        (void)g_strlcpy(hearing->lines[hearing->count], line, sizeof hearing->lines[0]);
    hearing->count++;
    (void)pthread_mutex_unlock(&hearing->mutex);
}

/* Returns the number of lines that contain `text`. */
static inline unsigned hearing_count(struct hearing *hearing, const char *text)
{
    unsigned count = 0;
    (void)pthread_mutex_lock(&hearing->mutex);
    for (unsigned i = 0; i < MIN(hearing->count, SAID); i++)
        count += strstr(hearing->lines[i], text) != NULL;
    (void)pthread_mutex_unlock(&hearing->mutex);
    return count;
}

static inline void hearing_init(struct hearing *hearing)
{
    memset(hearing, 0, sizeof *hearing);
    (void)pthread_mutex_init(&hearing->mutex, NULL);
}

/* The backend in use. */
struct user {
    struct hearing hearing;
    void *shared;
};

/* On a fake that begins anew. */
static inline void user_begin(struct user *user, const struct fake_cuda_config *config,
                              uint64_t pin_bytes)
{
    fake_cuda_reset(config);
    hearing_init(&user->hearing);
    struct backend_setup setup = {.now = testing_now,
                                  .clock = &user->hearing,
                                  .pin_bytes = pin_bytes,
                                  .say = hearing_add};
    WORKS(duet__backend_cuda.attach(&user->shared, &setup, hear()));
    ((struct cuda *)user->shared)->staging_bytes = TESTING_STAGING;
}

/* Closes the devices that are open, too. */
static inline void user_end(struct user *user)
{
    const struct cuda *cuda = user->shared;
    while (cuda->devices)
        duet__backend_cuda.close(cuda->devices);
    duet__backend_cuda.detach(user->shared);
    (void)pthread_mutex_destroy(&user->hearing.mutex);
    g_assert_cmpuint(fake_cuda_leaks(true), ==, 0);
}

static inline void ignore_notice(void *owner)
{
}

static inline struct backend_config user_config(unsigned index, uint64_t bytes)
{
    return (struct backend_config){.index = index,
                                   .node = index + 1,
                                   .capacity_bytes = bytes,
                                   .notify = ignore_notice};
}

static inline struct backend_device *user_open(struct user *user, struct backend_config config)
{
    struct backend_device *device = NULL;
    int error = duet__backend_cuda.open(&device, user->shared, &config, hear());
    g_assert_cmpstr(heard(), ==, "");
    g_assert_cmpint(error, ==, DUET_OK);
    return device;
}

/* Polls until there are `count` completions. The reasons of several polls do not all stay. */
static inline void user_collect(struct backend_device *device, struct backend_completion *out,
                                size_t count)
{
    double begun_s = testing_now(NULL);
    for (size_t got = 0; got < count;) {
        size_t now = duet__backend_cuda.poll(device, out + got, count - got);
        got += now;
        if (!now && testing_now(NULL) - begun_s > TESTING_WATCHDOG_S)
            g_error("%zu of %zu completions", got, count);
        if (!now)
            (void)sched_yield();
    }
}

static inline struct backend_completion user_finish(struct backend_device *device)
{
    struct backend_completion done;
    user_collect(device, &done, 1);
    return done;
}

/* A copy of columns from the host into the slab, or back. */
static inline struct backend_copy user_copy(struct backend_device *device, bool in, size_t offset,
                                            void *host, size_t bytes, size_t cols, size_t pitch)
{
    unsigned char *slab = backend_base(device);
    return (struct backend_copy){.tag = host,
                                 .stream = in ? BACKEND_IN : BACKEND_OUT,
                                 .destination = in ? slab + offset : host,
                                 .source = in ? host : slab + offset,
                                 .column_bytes = bytes,
                                 .cols = cols,
                                 .destination_pitch = in ? bytes : pitch,
                                 .source_pitch = in ? pitch : bytes};
}

static inline void *user_pages(size_t bytes)
{
    void *memory = NULL;
    g_assert_cmpint(posix_memalign(&memory, TESTING_PAGE, bytes), ==, 0);
    return memory;
}

#endif
