/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `duet validate`: completed, printed, written into a page; and whether it passes. */
#include <math.h>
#include <string.h>

#include "cli/command.h"
#include "cli/validate.h"
#include "cli/validation_page.h"
#include "world/here.h"
#include "validate/validation.h"

/* Texts of the head of a report. */
struct head {
    char *title, *machine, *calibration, *date;
};

/* Whether the workload of this pair is that of one before it. */
static bool named_before(const struct duet__validate *validate, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (validate->pairs[i].real.workload == validate->pairs[index].real.workload)
            return true;
    return false;
}

/* "cholesky, gemm and lu on vm" */
static char *title_of(const struct duet__validate *validate)
{
    const char **names = g_new0(const char *, validate->pair_count);
    GString *text = g_string_new(NULL);
    size_t count = 0;

    for (size_t i = 0; i < validate->pair_count; i++)
        if (!named_before(validate, i))
            names[count++] = validate->pairs[i].real.workload->name;
    for (size_t i = 0; i < count; i++)
        g_string_append_printf(text, "%s%s", !i ? "" : i + 1 == count ? " and " : ", ", names[i]);
    g_free(names);
    g_string_append_printf(text, " on %s", validate->platform->name);
    return g_string_free(text, FALSE);
}

static char *machine_of(const struct duet__validate *validate)
{
    const char *emulate = validate->pairs[0].real.config.emulate;
    unsigned cores = duet__here_cores();
    char *here = g_strdup_printf("%s, %u core%s", g_get_host_name(), cores, cores == 1 ? "" : "s");
    char *text;

    if (validate->paced)
        text = g_strdup_printf("%s emulated on %s (times x %g, nothing computed)", emulate, here,
                               validate->scale);
    else
        text = g_strdup_printf("%s%s", here, emulate ? ", GPUs emulated" : "");
    g_free(here);
    return text;
}

static char *calibration_of(const struct duet__validate *validate)
{
    const char *description = validate->platform->description;
    const char *without = validate->job.request.config.without;
    GString *text = g_string_new(validate->platform->name);

    if (!validate->calibrating && strcmp(validate->platform->name, validate->platform_name) != 0)
        g_string_append_printf(text, " (%s)", validate->platform_name);
    if (*description)
        g_string_append_printf(text, ": %s", description);
    if (validate->calibrating) {
        char *when = duet__calibrating_text(validate);

        g_string_append_printf(text, "; %s", when);
        g_free(when);
    }
    if (validate->wake_s > 0)
        g_string_append_printf(text, "; threads as here: %.3g us to wake", validate->wake_s * 1e6);
    if (validate->event_s > 0)
        g_string_append_printf(text, "%s %.3g us to notice a device's end",
                               validate->wake_s > 0 ? "," : "; threads as here:",
                               validate->event_s * 1e6);
    if (without)
        g_string_append_printf(text, "; simulated without %s", without);
    if (!validate->noise && !validate->paced)
        g_string_append(text, "; simulated without noise");
    if (validate->follow_speed)
        g_string_append(text, "; predictions divided by the speed of the machine");
    return g_string_free(text, FALSE);
}

static struct head head_of(const struct duet__validate *validate)
{
    GDateTime *now = g_date_time_new_now_utc();
    struct head head = {.title = title_of(validate),
                        .machine = machine_of(validate),
                        .calibration = calibration_of(validate),
                        .date = g_date_time_format(now, "%Y-%m-%d %H:%M UTC")};

    g_date_time_unref(now);
    return head;
}

static void head_fini(struct head *head)
{
    g_free(head->title);
    g_free(head->machine);
    g_free(head->calibration);
    g_free(head->date);
}

static struct duet_side side_of(const struct duet__side *side)
{
    return (struct duet_side){.makespans_s = side->makespans_s,
                              .count = side->count,
                              .rounds = side->rounds ? (size_t *)(void *)side->rounds->data : NULL,
                              .round_count = side->rounds ? side->rounds->len : 0,
                              .account = side->accounted ? &side->mean : NULL,
                              .recording = side->middle};
}

static struct duet_case case_of(const struct duet__validate *validate,
                                const struct duet__case_pair *pair)
{
    const struct duet_request *request = &pair->real;

    return (struct duet_case){.workload = request->workload->name,
                              .settings = pair->settings,
                              .platform = validate->platform->name,
                              .policy = request->policies[0],
                              .n = request->problem.n,
                              .tile = request->problem.tile,
                              .precision = request->problem.precision,
                              .cpus = pair->cpus,
                              .gpus = pair->gpus,
                              .set_arch = request->config.set_arch,
                              .predicted = side_of(&pair->predicted),
                              .measured = side_of(&pair->measured),
                              .speed = duet__pair_speed(validate, pair),
                              .failure = pair->failure};
}

/* Brings both sides of a pair to the same unit of time, and makes what is said of all runs. */
static void conclude(const struct duet__validate *validate, struct duet__case_pair *pair)
{
    double speed = duet__pair_speed(validate, pair), factor = validate->scale;
    struct duet_message message = {""};
    int error;

    if (validate->follow_speed && speed > 0)
        factor /= speed;
    error = duet__side_conclude(&pair->predicted, factor, &message);
    if (!error)
        error = duet__side_conclude(&pair->measured, 1, &message);
    if (error)
        duet__pair_fail(pair, "accounted", error, &message);
}

/* The cases that there is something to say of. */
static size_t collect(struct duet__validate *validate, struct duet_case *cases)
{
    size_t count = 0;

    for (size_t i = 0; i < validate->pair_count; i++) {
        struct duet__case_pair *pair = &validate->pairs[i];

        if (!pair->failure && (!pair->measured.count || !pair->predicted.count))
            continue; /* interrupted before */
        if (!pair->failure)
            conclude(validate, pair);
        cases[count++] = case_of(validate, pair);
    }
    return count;
}

static int print(const struct duet__validate *validate, const struct duet_validation *validation,
                 const struct duet_validation_figures *figures)
{
    if (validate->job.json)
        duet_validation_write_json(stdout, validation, figures);
    else if (validate->job.csv)
        duet_validation_write_csv(stdout, validation, figures);
    else
        duet_validation_write_text(stdout, validation, figures, validate->verbose);
    return duet__finish_output();
}

/* One line for cases that could not be made, though nothing was wrong with them. Exit status. */
static int check_failures(const struct duet__validate *validate)
{
    const char *first = NULL;
    size_t failures = 0;

    for (size_t i = 0; i < validate->pair_count; i++) {
        const struct duet__case_pair *pair = &validate->pairs[i];

        if (!pair->failure || pair->refused)
            continue;
        failures++;
        first = first ? first : pair->failure;
    }
    if (!failures)
        return DUET__DONE;
    return duet__complain(DUET__FAILED, "%zu of %zu cases failed, the first %s", failures,
                          validate->pair_count, first);
}

/* One line if errors are larger than is allowed. Exit status. */
static int check_errors(const struct duet_validation *validation,
                        const struct duet_validation_figures *figures)
{
    size_t over = 0;

    for (size_t i = 0; i < validation->case_count; i++)
        over += fabs(figures->cases[i].error) > validation->fail_over;
    if (!over || !(validation->fail_over > 0))
        return DUET__DONE;
    return duet__complain(DUET__FAILED,
                          "the prediction of %zu of %zu cases is off by more than %g %%, the worst "
                          "by %.3g %%",
                          over, validation->case_count, validation->fail_over * 100,
                          figures->worst * 100);
}

static int report(const struct duet__validate *validate, const struct duet_validation *validation)
{
    struct duet_validation_figures figures = {0};
    struct duet_message message = {""};
    int status, page = DUET__DONE;

    if (duet_validation_judge(validation, &figures, &message))
        return duet__complain(DUET__FAILED, "%s", message.text);
    /* the table first: a long run is not lost because a disk is full */
    status = print(validate, validation, &figures);
    if (validate->job.html)
        page = duet__validation_page(validate->job.html, validation, &figures);
    if (status == DUET__DONE)
        status = page;
    if (status == DUET__DONE)
        status = check_failures(validate);
    if (status == DUET__DONE)
        status = check_errors(validation, &figures);
    duet_validation_figures_fini(&figures, validation->case_count);
    return status;
}

int duet__validate_report(struct duet__validate *validate)
{
    struct duet_case *cases = g_new0(struct duet_case, validate->pair_count);
    struct head head = head_of(validate);
    size_t count = collect(validate, cases);
    const struct duet_validation validation = {.command = validate->job.command,
                                               .title = head.title,
                                               .first_name = "predicted",
                                               .second_name = "measured",
                                               .machine = head.machine,
                                               .calibration = head.calibration,
                                               .date = head.date,
                                               .cases = cases,
                                               .case_count = count,
                                               .fail_over = validate->fail_over};
    int status = count ? report(validate, &validation) : DUET__DONE;

    head_fini(&head);
    g_free(cases);
    return status;
}
