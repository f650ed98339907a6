/* SPDX-License-Identifier: Apache-2.0 */
/* Acquisitions that a thread ends which is none of the engine's, as one that waits for messages. */
#include "real/testing.h"

enum { STEPS = 300, CELLS = 8 };

static const double WATCHDOG_S = 0.05;

/* What was granted and is to be ended; and by whom. */
struct progress {
    struct duet_runtime *core;
    pthread_t id;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct message *first; /* mutex, as the next two */
    bool closes;
    unsigned errors;
    double late_s; /* by which each is ended late */
};

/* Comes into a cell and brings a number, or takes one from there. */
struct message {
    struct message *next;
    struct progress *progress;
    struct duet__acquisition *acquisition;
    uint64_t *cell, number;
    bool arrives;
    int status;
};

static void granted(void *arg, struct duet__acquisition *acquisition, int status)
{
    struct message *message = arg;
    struct progress *progress = message->progress;
    message->acquisition = acquisition;
    message->status = status;
    (void)pthread_mutex_lock(&progress->mutex);
    message->next = progress->first;
    progress->first = message;
    (void)pthread_cond_signal(&progress->changed);
    (void)pthread_mutex_unlock(&progress->mutex);
}

static void *carry(void *argument)
{
    struct progress *progress = argument;
    (void)pthread_mutex_lock(&progress->mutex);
    while (!progress->closes || progress->first) {
        struct message *message = progress->first;
        if (!message) {
            (void)pthread_cond_wait(&progress->changed, &progress->mutex);
            continue;
        }
        progress->first = message->next;
        progress->errors += message->status != 0;
        (void)pthread_mutex_unlock(&progress->mutex);
        if (progress->late_s > 0)
            testing_sleep(progress->late_s);
        if (message->arrives && !message->status)
            *message->cell = message->number;
        else if (!message->status)
            message->number = *message->cell;
        duet__acquisition_end(message->acquisition, duet_now(progress->core), message->status);
        (void)pthread_mutex_lock(&progress->mutex);
    }
    (void)pthread_mutex_unlock(&progress->mutex);
    return NULL;
}

static void begin(struct progress *progress, struct testing *t)
{
    *progress = (struct progress){.core = testing_open(t)};
    g_assert_cmpint(pthread_mutex_init(&progress->mutex, NULL), ==, 0);
    g_assert_cmpint(pthread_cond_init(&progress->changed, NULL), ==, 0);
    g_assert_cmpint(pthread_create(&progress->id, NULL, carry, progress), ==, 0);
}

static void end(struct progress *progress)
{
    (void)pthread_mutex_lock(&progress->mutex);
    progress->closes = true;
    (void)pthread_cond_signal(&progress->changed);
    (void)pthread_mutex_unlock(&progress->mutex);
    g_assert_cmpint(pthread_join(progress->id, NULL), ==, 0);
    duet__core_free(progress->core);
    (void)pthread_cond_destroy(&progress->changed);
    (void)pthread_mutex_destroy(&progress->mutex);
}

static void send(struct progress *progress, struct message *message, struct duet_handle *handle,
                 uint64_t *cell, bool arrives)
{
    message->progress = progress;
    message->cell = cell;
    message->arrives = arrives;
    testing_must(progress->core,
                 duet__acquire_submit(progress->core, handle, arrives ? DUET_W : DUET_R, 0, granted,
                                      message));
}

static int add_one(const struct duet_call *call)
{
    ++*(uint64_t *)call->buffers[0].data;
    return DUET_OK;
}

static int fail(const struct duet_call *call)
{
    return DUET_EINVAL;
}

/* Numbers arrive, are counted up on CPUs and devices, and leave. */
static void run(unsigned cpus, unsigned gpus, size_t window)
{
    static struct message in[STEPS], out[STEPS];
    struct testing t = {.cpus = cpus, .gpus = gpus, .window = window, .watchdog_s = WATCHDOG_S};
    struct progress progress;
    begin(&progress, &t);
    const struct duet_codelet *codelet = testing_codelet(progress.core, "add", add_one, NULL);
    uint64_t cells[CELLS] = {0};
    struct duet_access access[CELLS];
    for (unsigned c = 0; c < CELLS; c++) {
        access[c].mode = DUET_RW;
        testing_must(progress.core,
                     duet_vector(progress.core, &cells[c], 1, sizeof *cells, &access[c].handle));
        duet__handle_elsewhere(progress.core, access[c].handle);
    }
    for (unsigned i = 0; i < STEPS; i++) {
        const unsigned c = i % CELLS;
        in[i].number = 10 * i;
        send(&progress, &in[i], access[c].handle, &cells[c], true);
        testing_submit(progress.core, codelet, &access[c], 1, NULL, 0);
        testing_submit(progress.core, codelet, &access[c], 1, NULL, 0);
        send(&progress, &out[i], access[c].handle, &cells[c], false);
    }
    testing_must(progress.core, duet_wait(progress.core));
    for (unsigned i = 0; i < STEPS; i++)
        g_assert_cmpuint(out[i].number, ==, 10 * i + 2);
    end(&progress);
    g_assert_cmpuint(progress.errors, ==, 0);
}

static void test_threads(void)
{
    run(1, 0, 0);
    run(2, 0, 5);
    run(1, 1, 9);
    run(0, 1, 0);
}

/* Waiting for what another process does is no sign of being stuck; it is spoken of. */
static void be_patient(void)
{
    struct testing t = {.cpus = 1, .watchdog_s = WATCHDOG_S};
    struct progress progress;
    struct message in = {.number = 7};
    uint64_t cell = 0;
    struct duet_access access = {.mode = DUET_RW};
    begin(&progress, &t);
    progress.late_s = 6 * WATCHDOG_S;
    const struct duet_codelet *codelet = testing_codelet(progress.core, "add", add_one, NULL);
    testing_must(progress.core, duet_vector(progress.core, &cell, 1, sizeof cell, &access.handle));
    send(&progress, &in, access.handle, &cell, true);
    testing_submit(progress.core, codelet, &access, 1, NULL, 0);
    testing_must(progress.core, duet_wait(progress.core));
    g_assert_cmpuint(cell, ==, 8);
    end(&progress);
}

static void test_patience(void)
{
    g_test_trap_subprocess("/acquire/patience/subprocess", 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*what is left is waiting for other nodes\n*");
}

/* All are granted in a run that fails, and it ends. */
static void test_failure(void)
{
    static struct message messages[STEPS];
    struct testing t = {.cpus = 2, .watchdog_s = WATCHDOG_S};
    struct progress progress;
    uint64_t cell = 0;
    struct duet_access access = {.mode = DUET_RW};
    begin(&progress, &t);
    const struct duet_codelet *codelet = testing_codelet(progress.core, "fail", fail, NULL);
    testing_must(progress.core, duet_vector(progress.core, &cell, 1, sizeof cell, &access.handle));
    testing_submit(progress.core, codelet, &access, 1, NULL, 0);
    for (unsigned i = 0; i < STEPS; i++)
        send(&progress, &messages[i], access.handle, &cell, i % 2);
    g_assert_cmpint(duet_wait(progress.core), ==, DUET_EINVAL);
    end(&progress);
    g_assert_cmpuint(progress.errors, ==, STEPS);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/acquire/threads", test_threads);
    g_test_add_func("/acquire/patience", test_patience);
    g_test_add_func("/acquire/patience/subprocess", be_patient);
    g_test_add_func("/acquire/failure", test_failure);
    return g_test_run();
}
