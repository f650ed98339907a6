/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of runs: checks the records, adds their parts up, and means of several accounts. */
#include "validate/account.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "validate/account_sweep.h"

static const char *const part_names[DUET_PARTS] = {
    [DUET_PART_KERNEL] = "kernels",
    [DUET_PART_TO_DEVICE] = "copies to devices",
    [DUET_PART_TO_HOST] = "copies to the host",
    [DUET_PART_BETWEEN] = "copies between devices",
    [DUET_PART_OVERHEAD] = "overhead",
    [DUET_PART_IDLE] = "idle",
};

const char *duet_part_name(enum duet_part part)
{
    return (unsigned)part < DUET_PARTS ? part_names[part] : "?";
}

/*
 * Dates of devices and of the host are brought together with less than this between them; kernels
 * that are further outside of the run belong to another one, or have dates of another origin.
 */
static double tolerance_s(double makespan_s)
{
    return 1e-6 + 1e-6 * makespan_s;
}

static int check_task(const struct duet_recording *recording, const struct duet_event *event,
                      struct duet_message *message)
{
    double tolerance = tolerance_s(recording->makespan_s);

    if (event->worker < 0 || (unsigned)event->worker >= recording->machine->worker_count)
        return duet_fail(message, DUET_EINVAL, "task %llu ran on worker %d, which there is not",
                         (unsigned long long)event->id, event->worker);
    /* what was never run because of an error is dated when that was found out */
    if (!event->failed &&
        (event->start_s < -tolerance || event->end_s > recording->makespan_s + tolerance))
        return duet_fail(message, DUET_EINVAL,
                         "task %llu ran from %g to %g s in a run from 0 to %g s",
                         (unsigned long long)event->id, event->start_s, event->end_s,
                         recording->makespan_s);
    return 0;
}

static int check(const struct duet_recording *recording, struct duet_message *message)
{
    const struct duet_machine *machine = recording->machine;

    if (!machine || !machine->worker_count)
        return duet_fail(message, DUET_EINVAL, "a run without workers has no account");
    if (!isfinite(recording->makespan_s) || recording->makespan_s < 0)
        return duet_fail(message, DUET_EINVAL, "a makespan of %g s makes no sense",
                         recording->makespan_s);
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        bool task = event->kind == DUET_EVENT_TASK;
        int error = 0;

        if (!isfinite(event->ready_s) || !isfinite(event->start_s) || !isfinite(event->end_s) ||
            event->end_s < event->start_s - tolerance_s(recording->makespan_s))
            return duet_fail(message, DUET_EINVAL, "%s %llu is dated ready %g, from %g to %g s",
                             task ? "task" : "a copy of handle", (unsigned long long)event->id,
                             event->ready_s, event->start_s, event->end_s);
        if (task)
            error = check_task(recording, event, message);
        else if (event->source >= machine->node_count || event->destination >= machine->node_count)
            error = duet_fail(message, DUET_EINVAL, "a copy goes from memory %u to %u of %u",
                              event->source, event->destination, machine->node_count);
        if (error)
            return error;
    }
    return 0;
}

/*
 * Dates of a simulation count from its beginning, the makespan from the first submission, which
 * costs time of its own. Both end with the last kernel: so much later is the first submission.
 */
static double origin_s(const struct duet_recording *recording)
{
    double last_s = 0;

    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];

        if (event->kind == DUET_EVENT_TASK && !event->failed && isfinite(event->end_s))
            last_s = fmax(last_s, event->end_s);
    }
    return fmax(last_s - recording->makespan_s, 0);
}

/* The recording with dates from the first submission; *events is what it is made of. */
static int dated(const struct duet_recording *recording, struct duet_recording *out,
                 struct duet_event **events)
{
    double first_s = origin_s(recording);

    *out = *recording;
    *events = NULL;
    if (!(first_s > 0))
        return 0;
    *events = malloc(recording->event_count * sizeof(**events));
    if (!*events)
        return DUET_ENOMEM;
    for (size_t i = 0; i < recording->event_count; i++) {
        struct duet_event *event = &(*events)[i];

        *event = recording->events[i];
        event->submit_s -= first_s;
        event->ready_s -= first_s;
        event->start_s -= first_s;
        event->end_s -= first_s;
    }
    out->events = *events;
    return 0;
}

static int by_kernel(const void *left, const void *right)
{
    const struct duet__share *a = left, *b = right;

    if (a->kernel != b->kernel)
        return a->kernel < b->kernel ? -1 : 1;
    if (a->arch != b->arch)
        return a->arch < b->arch ? -1 : 1;
    /* sums do not depend on the order in which the sorting leaves them */
    return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

static void copy_name(char to[DUET_NAME_MAX], const char *from)
{
    size_t length = strlen(from);

    if (length >= DUET_NAME_MAX)
        length = DUET_NAME_MAX - 1;
    memcpy(to, from, length);
    to[length] = 0;
}

/* Executions, one by one, to kernels: sorts them. */
static int add_kernels(const struct duet__sweep *sweep, struct duet_account *out)
{
    const struct duet_recording *recording = sweep->recording;
    size_t kinds = 0;

    qsort(sweep->shares, sweep->share_count, sizeof(*sweep->shares), by_kernel);
    for (size_t i = 0; i < sweep->share_count; i++)
        kinds += !i || sweep->shares[i].kernel != sweep->shares[i - 1].kernel ||
                 sweep->shares[i].arch != sweep->shares[i - 1].arch;
    out->kernels = calloc(kinds + 1, sizeof(*out->kernels));
    if (!out->kernels)
        return DUET_ENOMEM;
    for (size_t i = 0; i < sweep->share_count; i++) {
        const struct duet__share *share = &sweep->shares[i];
        struct duet_account_kernel *kernel = &out->kernels[out->kernel_count];

        kernel->count++;
        kernel->seconds += share->seconds;
        if (i + 1 < sweep->share_count && share[1].kernel == share->kernel &&
            share[1].arch == share->arch)
            continue;
        copy_name(kernel->name, share->kernel < recording->kernel_count
                                    ? recording->kernels[share->kernel]
                                    : "?");
        copy_name(kernel->arch, recording->machine->archs[share->arch].name);
        out->kernel_count++;
    }
    return 0;
}

static void add_bytes(const struct duet_recording *recording, struct duet_account *out)
{
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];

        if (event->kind != DUET_EVENT_COPY || event->failed)
            continue;
        out->bytes[event->source == DUET_HOST        ? 0
                   : event->destination == DUET_HOST ? 1
                                                     : 2] += (double)event->bytes;
    }
}

/* Many small stretches leave a last bit or two over: the largest part takes them. */
static void complete(struct duet_account *account)
{
    double left_s = account->workers * account->makespan_s;
    unsigned largest = 0;

    for (unsigned i = 0; i < DUET_PARTS; i++) {
        left_s -= account->parts_s[i];
        if (account->parts_s[i] > account->parts_s[largest])
            largest = i;
    }
    if (fabs(left_s) <= 1e-9 * account->workers * account->makespan_s)
        account->parts_s[largest] += left_s;
}

/* Everything but the last bits of the sums; the recording is checked. */
static int fill(const struct duet_recording *recording, struct duet_account *out)
{
    size_t most = recording->event_count + 1;
    struct duet__sweep sweep = {.recording = recording,
                                .parts_s = out->parts_s,
                                .shares = calloc(most, sizeof(*sweep.shares)),
                                .gaps = calloc(most, sizeof(*sweep.gaps))};
    int error = sweep.shares && sweep.gaps ? duet__account_kernels(&sweep) : DUET_ENOMEM;

    out->workers = recording->machine->worker_count;
    out->makespan_s = recording->makespan_s;
    if (!error)
        error = duet__account_waits(&sweep);
    if (!error)
        error = add_kernels(&sweep, out);
    if (!error)
        add_bytes(recording, out);
    free(sweep.shares);
    free(sweep.gaps);
    return error;
}

int duet_account_make(const struct duet_recording *recording, struct duet_account *out,
                      struct duet_message *message)
{
    struct duet_recording shifted;
    struct duet_event *events;
    int error;

    *out = (struct duet_account){0};
    error = dated(recording, &shifted, &events);
    if (!error)
        error = check(&shifted, message);
    if (error && error != DUET_ENOMEM)
        goto dated;
    if (!error)
        error = fill(&shifted, out);
    if (error) {
        duet_account_fini(out);
        error = duet_fail(message, error, "out of memory for the account of a run");
        goto dated;
    }
    complete(out);
dated:
    free(events);
    return error;
}

/* The kernel of that name on that architecture, which is added where there was none. */
static struct duet_account_kernel *kernel_of(struct duet_account *account,
                                             const struct duet_account_kernel *like)
{
    struct duet_account_kernel *added;

    for (size_t i = 0; i < account->kernel_count; i++)
        if (!strcmp(account->kernels[i].name, like->name) &&
            !strcmp(account->kernels[i].arch, like->arch))
            return &account->kernels[i];
    added = &account->kernels[account->kernel_count++];
    copy_name(added->name, like->name);
    copy_name(added->arch, like->arch);
    return added;
}

static void add_account(struct duet_account *to, const struct duet_account *from, double share)
{
    to->makespan_s += share * from->makespan_s;
    for (unsigned i = 0; i < DUET_PARTS; i++)
        to->parts_s[i] += share * from->parts_s[i];
    for (unsigned i = 0; i < 3; i++)
        to->bytes[i] += share * from->bytes[i];
    for (size_t i = 0; i < from->kernel_count; i++) {
        struct duet_account_kernel *kernel = kernel_of(to, &from->kernels[i]);

        kernel->count += share * from->kernels[i].count;
        kernel->seconds += share * from->kernels[i].seconds;
    }
}

int duet_account_mean(const struct duet_account *accounts, size_t count, struct duet_account *out,
                      struct duet_message *message)
{
    size_t most = 0;

    *out = (struct duet_account){0};
    if (!count)
        return duet_fail(message, DUET_EINVAL, "no run, so no mean of their accounts");
    for (size_t i = 0; i < count; i++) {
        if (accounts[i].workers != accounts[0].workers)
            return duet_fail(message, DUET_EINVAL,
                             "runs with %u and with %u workers have no mean account",
                             accounts[0].workers, accounts[i].workers);
        most += accounts[i].kernel_count;
    }
    out->kernels = calloc(most + 1, sizeof(*out->kernels));
    if (!out->kernels)
        return duet_fail(message, DUET_ENOMEM, "out of memory for the account of a run");
    out->workers = accounts[0].workers;
    for (size_t i = 0; i < count; i++)
        add_account(out, &accounts[i], 1 / (double)count);
    complete(out);
    return 0;
}

void duet_account_fini(struct duet_account *account)
{
    free(account->kernels);
    *account = (struct duet_account){0};
}
