/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calibration of `duet validate --calibrate`: what duet calibrate does, in slices between the
 * rounds of the cases. A machine is then measured as it is in the same minutes.
 */
#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "cli/calibrate.h"
#include "cli/command.h"
#include "cli/signals.h"
#include "cli/validate.h"
#include "world/units.h"

/* The least that is worth its name, where as much time as that of the cases' runs is less. */
static const double least_s = 20;

struct duet__calibrating {
    struct duet__wish wish;
    struct duet__found found;
    struct duet__measuring measuring;
    double time_s; /* 0: as much as the runs of the cases take */
    bool keep;     /* what is written is asked for */
    char *folder;  /* else it is in this one; NULL: not yet */
    GTimer *timer; /* from the beginning on */
    double wall_s;
    sigset_t before; /* mask, if signals are held */
    bool held;
};

/* ------------------------------------------------------------------------------------------- */
/* Files                                                                                        */

/* Removes the folder with what was written there. */
static void clean(struct duet__calibrating *calibrating)
{
    if (calibrating->folder) {
        char *path = g_strdup_printf("%s/%s.json", calibrating->folder, calibrating->wish.name);

        g_unlink(path);
        g_free(path);
        g_rmdir(calibrating->folder);
    }
    g_clear_pointer(&calibrating->folder, g_free);
}

/*
 * Signals wait while there are files, so that these are whole and none is left behind, until
 * duet__calibrating_end: the simulations take what comes from among the waiting ones.
 */
static void hold_signals(struct duet__calibrating *calibrating)
{
    duet__signals_hold(&calibrating->before);
    calibrating->held = true;
}

/* Writes what was found, in the file that was asked for or in a new folder. */
static int write_platform(struct duet__calibrating *calibrating, bool keep, char **path,
                          struct duet_message *message)
{
    const struct duet__found *found = &calibrating->found;
    struct duet_platform platform;
    GError *problem = NULL;
    int error;

    if (keep) {
        *path = g_path_is_absolute(calibrating->wish.out)
                    ? g_strdup(calibrating->wish.out)
                    : g_strconcat("./", calibrating->wish.out, NULL);
    } else {
        calibrating->folder = g_dir_make_tmp("duet-XXXXXX", &problem);
        if (!calibrating->folder) {
            error = duet_fail(message, DUET_EIO, "%s", problem->message);
            g_error_free(problem);
            return error;
        }
        *path = g_strdup_printf("%s/%s.json", calibrating->folder, calibrating->wish.name);
    }
    duet__describe_machine(&calibrating->wish, found, &platform);
    error = duet_platform_write(&platform, *path, DUET_WRITE_REPLACE, message);
    duet_platform_fini(&platform);
    return error;
}

/* Takes what was found as the platform to predict from. */
static int use_platform(struct duet__validate *validate, bool keep, struct duet_message *message)
{
    char *path = NULL;
    int error = write_platform(validate->calibrating, keep, &path, message);

    g_free(validate->platform_name);
    validate->platform_name = path;
    duet_platform_free(validate->platform);
    validate->platform = NULL;
    return error ? error : duet_platform_load(path, NULL, &validate->platform, message);
}

/* ------------------------------------------------------------------------------------------- */
/* Before anything is measured                                                                  */

/* The most GPUs of any spec; NULL: none says how many. Owned by a spec. */
static const char *most_gpus(const struct duet__validate *validate)
{
    const char *most = NULL;

    for (guint i = 0; i < validate->specs->len; i++) {
        const struct duet__spec *spec = validate->specs->pdata[i];

        for (size_t k = 0; spec->gpus[k]; k++)
            if (!most ||
                g_ascii_strtoull(spec->gpus[k], NULL, 10) > g_ascii_strtoull(most, NULL, 10))
                most = spec->gpus[k];
    }
    return most;
}

/* What is to be measured, but for the subjects. */
static int read_wish(struct duet__validate *validate, const struct duet__texts *texts,
                     struct duet_message *message)
{
    struct duet__calibrating *calibrating = validate->calibrating;
    struct duet__wish *wish = &calibrating->wish;
    struct duet__texts machine = {.emulate = texts->emulate};
    char *gpus = g_strdup(most_gpus(validate));
    int error;

    duet__job_init(&wish->job, "validate", 0, NULL);
    wish->job.request.seed = wish->job.request.config.seed = validate->job.request.seed;
    wish->sizes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    wish->tiles = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    wish->subjects = g_array_new(FALSE, FALSE, sizeof(struct duet__subject));
    wish->out = g_strdup(texts->out);
    /* all GPUs that there are, or as many emulated ones as any case has */
    if (texts->emulate)
        machine.gpus = gpus;
    error = duet__wish_name(wish, NULL, message);
    if (!error && texts->calibrate_time)
        error = duet__parse_seconds("--calibrate-time", texts->calibrate_time, &calibrating->time_s,
                                    message);
    if (!error && texts->calibrate_time && !(calibrating->time_s >= 0.1))
        error = duet_fail(message, DUET_EINVAL, "--calibrate-time takes 0.1s or more, not '%s'",
                          texts->calibrate_time);
    if (!error && calibrating->keep)
        error = duet_platform_may_write(wish->out, DUET_WRITE_REPLACE, message);
    if (!error)
        error = duet__job_read_emulation(&wish->job, &machine, message);
    if (!error)
        error = duet__job_read_machine(&wish->job, &machine, message);
    g_free(gpus);
    return error;
}

int duet__calibrating_begin(struct duet__validate *validate, const struct duet__texts *texts,
                            struct duet_message *message)
{
    struct duet__calibrating *calibrating = g_new0(struct duet__calibrating, 1);
    int error;

    validate->calibrating = calibrating;
    calibrating->keep = texts->out != NULL;
    calibrating->timer = g_timer_new();
    error = read_wish(validate, texts, message);
    if (!error)
        error = duet__measure_look(&calibrating->wish, &calibrating->found, message);
    if (error)
        return error;
    hold_signals(calibrating);
    error = use_platform(validate, false, message);
    /* it has been read */
    duet__calibrating_end(calibrating);
    return error;
}

static void add_subject(GArray *subjects, const struct duet__case_pair *pair)
{
    const struct duet_request *request = &pair->real;
    const struct duet__subject subject = {request->workload, request->problem.tile,
                                          request->problem.precision};

    for (guint i = 0; i < subjects->len; i++) {
        const struct duet__subject *other = &g_array_index(subjects, struct duet__subject, i);

        if (other->workload == subject.workload && other->tile == subject.tile &&
            other->precision == subject.precision)
            return;
    }
    g_array_append_val(subjects, subject);
}

int duet__calibrating_plan(struct duet__validate *validate, struct duet_message *message)
{
    struct duet__calibrating *calibrating = validate->calibrating;
    struct duet__wish *wish = &calibrating->wish;

    for (size_t i = 0; i < validate->pair_count; i++)
        if (!validate->pairs[i].failure)
            add_subject(wish->subjects, &validate->pairs[i]);
    wish->budget_s = calibrating->time_s > 0 ? calibrating->time_s : least_s;
    calibrating->measuring = (struct duet__measuring){.wish = wish, .found = &calibrating->found};
    return duet__plan_make(wish, &calibrating->found, message);
}

/* ------------------------------------------------------------------------------------------- */
/* While the cases are measured                                                                 */

/* Time for the slices up to this one, in all. */
static double due(const struct duet__validate *validate, size_t round, double runs_s)
{
    const struct duet__calibrating *calibrating = validate->calibrating;
    double part = (double)(round + 1) / (double)(validate->rounds + 1);

    return calibrating->time_s > 0 ? part * calibrating->time_s : fmax(part * least_s, runs_s);
}

/*
 * What a round over all that is to be measured may take, so that it fits between two of the cases:
 * sizes of problems are chosen by that.
 */
static double round_time(const struct duet__validate *validate)
{
    double time_s = validate->calibrating->time_s;

    if (!(time_s > 0))
        time_s = fmax(least_s, validate->until > 0
                                   ? validate->case_time_s * (double)validate->pair_count / 2
                                   : 0);
    return time_s / (double)(validate->rounds + 1);
}

int duet__calibrating_slice(struct duet__validate *validate, size_t round, double runs_s,
                            struct duet_monitor *monitor)
{
    struct duet__calibrating *calibrating = validate->calibrating;
    struct duet__measuring *measuring = &calibrating->measuring;
    double all_s = due(validate, round, runs_s);
    int error = 0;

    measuring->monitor = monitor;
    duet__measuring_go_on(measuring);
    if (!round)
        error = duet__measure_once(measuring);
    if (!error && !duet_monitor_signal(monitor))
        error = duet__measure_slice(measuring, all_s - measuring->paused_s, round_time(validate));
    duet__measuring_pause(measuring);
    if (error)
        return duet__job_complain(measuring->what, error, measuring->message.text);
    return DUET__DONE;
}

/* ------------------------------------------------------------------------------------------- */
/* After that                                                                                   */

void duet__calibrating_end(struct duet__calibrating *calibrating)
{
    clean(calibrating);
    if (calibrating->held)
        duet__signals_release(&calibrating->before);
    calibrating->held = false;
}

int duet__calibrating_finish(struct duet__validate *validate)
{
    struct duet__calibrating *calibrating = validate->calibrating;
    struct duet_message message = {""};
    int error;

    calibrating->wall_s = g_timer_elapsed(calibrating->timer, NULL);
    /* nobody attends to signals any more */
    calibrating->measuring.monitor = NULL;
    error = duet__measure_fit(&calibrating->measuring);
    if (error)
        return duet__job_complain("fitting", error, calibrating->measuring.message.text);
    hold_signals(calibrating);
    if (use_platform(validate, calibrating->keep, &message))
        return duet__complain(DUET__FAILED, "%s", message.text);
    for (size_t i = 0; i < validate->pair_count; i++) {
        struct duet__case_pair *pair = &validate->pairs[i];

        error = pair->failure ? 0 : duet__pair_rebuild(validate, pair, &message);
        if (error)
            duet__pair_fail(pair, "simulated", error, &message);
    }
    return DUET__DONE;
}

char *duet__calibrating_text(const struct duet__validate *validate)
{
    const struct duet__calibrating *calibrating = validate->calibrating;
    bool minutes = calibrating->wall_s >= 120;

    return g_strdup_printf("calibrated in the same %.0f %s: %u runs",
                           calibrating->wall_s / (minutes ? 60 : 1),
                           minutes ? "minutes" : "seconds", calibrating->found.taken->len);
}

void duet__calibrating_free(struct duet__calibrating *calibrating)
{
    if (!calibrating)
        return;
    duet__calibrating_end(calibrating);
    duet__found_fini(&calibrating->found);
    duet__wish_fini(&calibrating->wish);
    g_timer_destroy(calibrating->timer);
    g_free(calibrating);
}
