/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps kernel times of programs' runs in a platform file, one after another or at once. */
#include "runtime/open.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrate/calibrate.h"

struct duet__history {
    char *path;                     /* absolute; the target of a link */
    char *processor;                /* the system's name of the cores; NULL: it has none */
    unsigned gpus;                  /* number that the run uses */
    struct duet__platform platform; /* the whole machine, without kernel times */
};

static const char made_by[] = "runs kept by DUET_CALIBRATE";
static const double SAME_MEMORY = 0.1; /* relative difference of bandwidths that kernels get */

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

/* Describes the whole machine, including the workers that this run does without. */
static int history_look(struct duet__history *history, const struct duet_config *config,
                        struct duet_message *message)
{
    g_autofree char *base = g_path_get_basename(history->path);
    struct duet__request runs = {0};
    struct duet__calibrate_request request = {.runs = &runs, .name = base};
    struct duet__calibrating c = {.request = &request};
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *date = g_date_time_format(now, "%Y-%m-%d");
    duet_config_init(&runs.config);
    runs.config.emulate = config->emulate;
    runs.config.devices = config->devices;
    int error = duet__machine_look(&c, message);
    if (!error) {
        base[strlen(base) - strlen(".json")] = '\0';
        c.model.sharing = c.known;
        duet__describe_machine(&c, &history->platform);
        g_free(history->platform.origin);
        history->platform.origin =
            g_strdup_printf("%s, from %s on; what the runtime's operations take, copies and "
                            "memory's bandwidth are not measured",
                            made_by, date);
        history->processor = g_strdup(duet__processor(&c));
        history->gpus = config->gpus >= 0 ? (unsigned)config->gpus : c.gpus;
    }
    duet__info_fini(&c.info);
    return error;
}

static bool has_arch(const struct duet__platform *platform, const struct duet_arch *arch)
{
    for (unsigned i = 0; i < platform->arch_count; i++)
        if (!strcmp(platform->archs[i].name, arch->name) &&
            !strcmp(platform->archs[i].backend, arch->backend))
            return true;
    return false;
}

/* Returns the part that the file's machine lacks and this one has; NULL: none. Free with g_free. */
static char *difference(const struct duet__history *history, const struct duet__platform *there)
{
    const struct duet__platform *here = &history->platform;
    double memory = (double)here->host_memory_bytes, other = (double)there->host_memory_bytes;
    for (unsigned i = 0; i < here->arch_count; i++)
        if (!has_arch(there, &here->archs[i]) &&
            (history->gpus || strcmp(here->archs[i].backend, "cpu") == 0))
            return g_strdup_printf("which has no %s", here->archs[i].name);
    if (history->processor && !strstr(there->description, history->processor))
        return g_strdup_printf("which is described as '%.100s', but this has %s",
                               there->description, history->processor);
    if (memory > 0 && other > 0 && fabs(memory - other) > SAME_MEMORY * memory)
        return g_strdup_printf("with %.1f GiB of memory, but this has %.1f", other * 0x1p-30,
                               memory * 0x1p-30);
    if (there->cores && here->cores > there->cores)
        return g_strdup_printf("with %u cores, but this has %u", there->cores, here->cores);
    if (history->gpus > there->gpu_count)
        return g_strdup_printf("with %u GPUs, but this has %u", there->gpu_count, history->gpus);
    return NULL;
}

/* Loads the platform of the file, if it is of this machine; *out stays NULL if there is no file. */
static int history_load(const struct duet__history *history, struct duet__platform **out,
                        struct duet_message *message)
{
    if (!g_file_test(history->path, G_FILE_TEST_EXISTS))
        return DUET_OK;
    int error = duet__platform_load(history->path, out, message);
    g_autofree char *why = error ? NULL : difference(history, *out);
    return why ? duet_fail(message, DUET_EINVAL,
                           "%s is of another machine, %s: name another file to keep kernel times",
                           history->path, why)
               : error;
}

int duet__history_open(struct duet__history **out, const struct duet_config *config,
                       struct duet_message *message)
{
    struct duet__history *history = *out = g_new0(struct duet__history, 1);
    struct duet__platform *there = NULL;
    char *resolved = realpath(config->calibrate, NULL);
    history->path = g_canonicalize_filename(resolved ? resolved : config->calibrate, NULL);
    free(resolved);
    /* merging leaves an older file where it is */
    int error = duet__platform_may_write(history->path, DUET_WRITE_MERGE, message);
    if (!error)
        error = history_look(history, config, message);
    if (!error)
        error = history_load(history, &there, message);
    duet__platform_free(there);
    if (error)
        duet__history_free(g_steal_pointer(out));
    return error;
}

void duet__history_free(struct duet__history *history)
{
    if (!history)
        return;
    duet__platform_fini(&history->platform);
    g_free(history->processor);
    g_free(history->path);
    g_free(history);
}

/* ------------------------------------------------------------------------------------------- */
/* The lock                                                                                     */

/* True if the descriptor is still that of the name: who unlocks first removes the file. */
static bool lock_is_current(int descriptor, const char *name)
{
    struct stat own, named;
    return fstat(descriptor, &own) == 0 && stat(name, &named) == 0 && own.st_dev == named.st_dev &&
           own.st_ino == named.st_ino;
}

/* Locks the file `name`, which is created. Returns its descriptor, or -1 with errno. */
static int lock_file(const char *name)
{
    enum { PAUSE_US = 5000 };
    gint64 end_us = g_get_monotonic_time() + G_TIME_SPAN_MINUTE;
    for (;;) {
        int descriptor = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666), why;
        if (descriptor < 0)
            return -1;
        /* Waits not for ever: the owner may have been stopped, and the program has its own
         * result. */
        while ((why = flock(descriptor, LOCK_EX | LOCK_NB) ? errno : 0) == EWOULDBLOCK &&
               g_get_monotonic_time() < end_us)
            g_usleep(PAUSE_US);
        if (!why && lock_is_current(descriptor, name))
            return descriptor;
        close(descriptor);
        errno = why;
        if (why)
            return -1;
    }
}

int duet__history_lock(const char *path, struct duet_message *message)
{
    g_autofree char *name = g_strconcat(path, ".lock", NULL);
    int locked = lock_file(name);
    if (locked < 0)
        return duet_fail(message, DUET_EIO, "cannot lock %s: %s", name,
                         errno == EWOULDBLOCK ? "others have it for a minute" : g_strerror(errno));
    return locked;
}

void duet__history_unlock(const char *path, int locked)
{
    g_autofree char *name = g_strconcat(path, ".lock", NULL);
    (void)unlink(name);
    close(locked);
}

/* ------------------------------------------------------------------------------------------- */
/* A run                                                                                        */

/* Adds the run to the platform, whose figures the fit uses. */
static int history_pool(struct duet__platform *platform, const struct duet__recorded_run *run,
                        struct duet_message *message)
{
    /* Keeps the size of the cache, to which memory's part of the times refers in all runs. */
    const struct duet__model_options options = {.sharing = platform->sharing,
                                                .task_overhead_s = platform->costs.pop_s,
                                                .cores = duet__platform_cores(platform),
                                                .folds = 1,
                                                .keep_size = true};
    struct duet__model model;
    int error = duet__model_fit(run, 1, &options, &model, message);
    if (error)
        return error;
    platform->sharing.bandwidth_Bps = model.sharing.bandwidth_Bps;
    error = duet__platform_pool(platform, &model.calibration, made_by, message);
    duet__model_fini(&model);
    return error;
}

static int replace(const struct duet__history *history, const struct duet__recorded_run *run,
                   struct duet_message *message)
{
    struct duet__platform *there = NULL, fresh = history->platform;
    int error = history_load(history, &there, message);
    if (!error)
        error = history_pool(there ? there : &fresh, run, message);
    if (!error)
        error = duet__platform_write(there ? there : &fresh, history->path, DUET_WRITE_REPLACE,
                                     message);
    duet__platform_free(there);
    duet__calibration_fini(&fresh.calibration);
    return error;
}

/* True if there are kernels to add: some processes of a program may have nothing to do. */
static bool has_kernels(const struct duet__recording *recording)
{
    for (size_t i = 0; i < recording->event_count; i++)
        if (recording->events[i].kind == DUET_EVENT_TASK && !recording->events[i].failed)
            return true;
    return false;
}

int duet__history_add(const struct duet__history *history, const struct duet__recording *recording,
                      const char *context, struct duet_message *message)
{
    const struct duet__recorded_run run = {.recording = *recording, .context = context};
    int locked, error;
    if (!has_kernels(recording))
        return DUET_OK;
    locked = duet__history_lock(history->path, message);
    if (locked < 0)
        return locked;
    error = replace(history, &run, message);
    duet__history_unlock(history->path, locked);
    return error;
}
