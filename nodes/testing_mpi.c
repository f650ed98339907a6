/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over MPI alone: messages of all sizes and shapes, in any order, arrive as they are;
 * after a failure of one process nothing hangs. Started by mpirun, see mpi_test.py.
 */
#include "nodes/mpi.h"

#include <assert.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int duet__testing_random(unsigned first, unsigned count); /* testing_mpi_random.c */

enum { NODES = 3, MESSAGES = 200, ROUNDS = 2, GUARD = 0x55 };

/* Data that is no handle of a core: a matrix, or a lower triangle of one. */
struct data {
    size_t column_bytes, cols, pitch;
    bool triangle;
    unsigned char *bytes;
};

static struct process {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned done, failed;
    char why[DUET_MESSAGE_MAX];
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void done(struct duet__message *message, int status)
{
    pthread_mutex_lock(&process.lock);
    process.done++;
    *(int *)(void *)message->nodes = status;
    pthread_cond_signal(&process.changed);
    pthread_mutex_unlock(&process.lock);
}

static void failed(struct duet__nodes *nodes, int error, const char *why)
{
    pthread_mutex_lock(&process.lock);
    assert(error == DUET_ETASK && !process.failed++);
    (void)snprintf(process.why, sizeof process.why, "%s", why);
    pthread_cond_signal(&process.changed);
    pthread_mutex_unlock(&process.lock);
}

/* In two pieces, if it is a matrix of more than two columns. */
static int pieces(const struct duet_handle *handle, duet__piece_fn give, void *arg)
{
    const struct data *data = (const void *)handle;
    size_t first = data->triangle || data->cols < 3 ? data->cols : data->cols / 2;
    struct duet__piece piece = {.to = data->bytes,
                                .from = data->bytes,
                                .column_bytes = data->column_bytes,
                                .cols = first,
                                .to_pitch = data->pitch,
                                .from_pitch = data->pitch};
    if (data->triangle) {
        piece.first_step = 1;
        piece.end = data->column_bytes;
    }
    int error = give(arg, &piece);
    piece.to = data->bytes + first * data->pitch;
    piece.from = piece.to;
    piece.cols = data->cols - first;
    return error || !piece.cols ? error : give(arg, &piece);
}

static double now(const struct duet_runtime *core)
{
    return 1;
}

static const struct duet__mpi_calls calls = {done, failed, pieces, now};

static struct duet__mpi *open_one(unsigned *node)
{
    struct duet__mpi_place place;
    struct duet_message message = {""};
    struct duet__mpi *mpi;
    assert(!duet__mpi_meet(&mpi, NODES, &place, &message));
    assert(place.beside == NODES && place.position == place.node && place.sharers >= 1);
    assert(place.share < place.sharers && place.sharers <= NODES);
    assert(!duet__mpi_agree(0, &message) && !*message.text);
    process.done = process.failed = 0;
    duet__mpi_start(mpi, NULL, NULL, &calls);
    *node = place.node;
    return mpi;
}

static unsigned random_below(uint64_t *state, unsigned most)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)(*state >> 33) % most;
}

/* ------------------------------------------------------------------------------------------- */
/* Messages                                                                                     */

static bool inside(const struct data *data, size_t at)
{
    size_t row = at % data->pitch, col = at / data->pitch;
    return row < data->column_bytes && (!data->triangle || row >= col);
}

/* Number `i` of a round, the same in all processes; its ends have different gaps. Whether this
   process is one of them. */
static bool make(struct duet__message *message, struct data *data, unsigned i, unsigned node)
{
    static const unsigned sizes[] = {1, 7, 64, 1000, 4096, 5000, 20000};
    uint64_t state = i + 1;
    unsigned kind = random_below(&state, 8);
    data->column_bytes = sizes[random_below(&state, 7)];
    data->cols = 1 + random_below(&state, 20);
    if (i % 67 == 0)
        data->cols = 1 + 2000000 / data->column_bytes;
    data->triangle = kind == 0 && data->cols <= data->column_bytes;
    *message = (struct duet__message){.tag = i % 50,
                                      .turn = i + 1,
                                      .priority = (int)random_below(&state, 3),
                                      .from = random_below(&state, NODES),
                                      .handle = (void *)data};
    message->to = (message->from + 1 + random_below(&state, NODES - 1)) % NODES;
    message->arrives = message->to == node;
    data->pitch = data->column_bytes + (kind < 4 ? message->arrives * 24 : kind < 6 ? 16 : 0);
    for (size_t col = 0; col < data->cols; col++)
        message->bytes += data->column_bytes - (data->triangle ? col : 0);
    data->bytes = NULL;
    if (message->from != node && !message->arrives)
        return false;
    data->bytes = malloc(data->pitch * data->cols);
    assert(data->bytes);
    for (size_t at = 0; at < data->pitch * data->cols; at++)
        data->bytes[at] = message->arrives || !inside(data, at)
                              ? GUARD
                              : (unsigned char)(at / data->pitch * 31 + at % data->pitch + i);
    return true;
}

static void check(const struct data *data, unsigned i)
{
    for (size_t at = 0; at < data->pitch * data->cols; at++)
        assert(data->bytes[at] ==
               (inside(data, at) ? (unsigned char)(at / data->pitch * 31 + at % data->pitch + i)
                                 : GUARD));
}

/* Messages of one tag follow each other, as those of one datum do; all others are ready in an order
   that each process has for itself. */
static void exchange(struct duet__mpi *mpi, unsigned node, unsigned round)
{
    static struct duet__message messages[MESSAGES];
    static struct data data[MESSAGES];
    static int statuses[MESSAGES];
    const struct duet__transport *transport = duet__mpi_transport();
    uint64_t state = node + NODES * round;
    unsigned before = process.done, mine = 0;
    for (unsigned first = 0; first < MESSAGES; first += 50) {
        unsigned order[50];
        for (unsigned k = 0; k < 50; k++) {
            unsigned other = random_below(&state, k + 1);
            order[k] = order[other];
            order[other] = first + k;
        }
        for (unsigned k = 0; k < 50; k++) {
            unsigned i = order[k];
            if (!make(&messages[i], &data[i], i, node))
                continue;
            messages[i].nodes = (void *)&statuses[i];
            mine++;
            transport->ready(mpi, &messages[i]);
            if (random_below(&state, 40) == 0)
                sched_yield();
        }
        pthread_mutex_lock(&process.lock);
        while (process.done < before + mine)
            pthread_cond_wait(&process.changed, &process.lock);
        pthread_mutex_unlock(&process.lock);
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        if (messages[i].from == node || messages[i].arrives) {
            assert(!statuses[i] && messages[i].start_s == 1 && messages[i].end_s == 1);
            check(&data[i], i);
        }
        free(data[i].bytes);
    }
}

/* Node 0 has what all have, which is nothing at node 1. */
static void gather(struct duet__mpi *mpi, unsigned node)
{
    const struct duet__transport *transport = duet__mpi_transport();
    char mine[100], *all;
    size_t sizes[NODES], bytes = node == 1 ? 0 : 40 + node;
    memset(mine, (int)(node + 1), sizeof mine);
    assert(!transport->gather(mpi, mine, bytes, (void **)&all, sizes));
    assert(sizes[0] == 40 && sizes[1] == 0 && sizes[2] == 42 && !all == (node != 0));
    for (unsigned i = 0; i < 82 && !node; i++)
        assert(all[i] == (i < 40 ? 1 : 3));
    free(all);
}

static void test_messages(void)
{
    const struct duet__transport *transport = duet__mpi_transport();
    unsigned node;
    struct duet__mpi *mpi = open_one(&node);
    for (unsigned round = 0; round < ROUNDS; round++) {
        exchange(mpi, node, round);
        assert(!transport->barrier(mpi));
        gather(mpi, node);
    }
    transport->close(mpi);
    assert(!process.failed);
}

/* ------------------------------------------------------------------------------------------- */
/* Failures                                                                                     */

/* Messages that nobody expects and that never come, and one process fails: all hear of it. */
static void test_failure(unsigned at_fault, bool meets)
{
    enum { COUNT = 60, BYTES = 300000 };
    static struct duet__message messages[COUNT];
    static struct data data[COUNT];
    static int statuses[COUNT];
    const struct duet__transport *transport = duet__mpi_transport();
    unsigned node;
    struct duet__mpi *mpi = open_one(&node);
    for (unsigned i = 0; i < COUNT; i++) {
        data[i] = (struct data){BYTES, 1, BYTES, false, calloc(1, BYTES)};
        messages[i] = (struct duet__message){.tag = i,
                                             .turn = i + 1,
                                             .from = node,
                                             .to = (node + 1) % NODES,
                                             .bytes = BYTES,
                                             .handle = (void *)&data[i],
                                             .nodes = (void *)&statuses[i]};
        if (i % 2) {
            messages[i].from = messages[i].to;
            messages[i].to = node;
            messages[i].arrives = true;
        }
        transport->ready(mpi, &messages[i]);
    }
    if (node == at_fault)
        transport->fail(mpi, node, DUET_ETASK, "node 1: a kernel has failed");
    else if (meets)
        assert(transport->barrier(mpi) == DUET_ETASK);
    pthread_mutex_lock(&process.lock);
    while (process.done < COUNT || (node != at_fault && !process.failed))
        pthread_cond_wait(&process.changed, &process.lock);
    pthread_mutex_unlock(&process.lock);
    assert(transport->barrier(mpi) == DUET_ETASK);
    transport->close(mpi);
    assert(process.done == COUNT && process.failed == (node != at_fault));
    if (node != at_fault)
        assert(!strcmp(process.why, "node 1: a kernel has failed"));
    for (unsigned i = 0; i < COUNT; i++) {
        assert(!statuses[i] || statuses[i] == DUET_ECANCELED);
        free(data[i].bytes);
    }
}

static void test_agreement(void)
{
    struct duet__mpi_place place;
    struct duet_message message = {""};
    struct duet__mpi *mpi;
    assert(duet__mpi_meet(&mpi, NODES + 1, &place, &message) == DUET_EINVAL && !mpi);
    assert(strstr(message.text, "4 nodes are wanted, and there are 3 processes"));
    assert(!duet__mpi_meet(&mpi, NODES, &place, &message));
    message = (struct duet_message){""};
    int error = place.node ? duet_fail(&message, DUET_ENOTFOUND, "no GPU %u", place.node) : 0;
    assert(duet__mpi_agree(error, &message) == DUET_ENOTFOUND);
    assert(!strcmp(message.text, "node 1: no GPU 1"));
    duet__mpi_transport()->close(mpi);
}

/* ------------------------------------------------------------------------------------------- */

/* Kernel of a program: a chain of tasks from node to node, of which that of the last one fails,
   exits or aborts, or that one gives up. */
static int kernel(const struct duet_call *call)
{
    const char *role = *(char *const *)call->args;
    if (*role == 'k')
        return duet_fail(call->message, DUET_ETASK, "this kernel %s", "fails");
    if (*role == 'e')
        exit(0);
    if (*role == 'a')
        abort();
    ++*(int *)call->buffers[0].data;
    return 0;
}

static int run_program(const char *role)
{
    enum { STEPS = 50 };
    const struct duet_implementation implementation = {.arch = "cpu", .run = kernel};
    const struct duet_codelet_desc desc = {.name = "step",
                                           .implementations = &implementation,
                                           .implementation_count = 1};
    struct duet_message message = {""};
    struct duet_codelet *codelet;
    struct duet_runtime *duet;
    struct duet_handle *handle;
    int count = 0;
    if (duet_open(&duet, NULL, &message)) {
        (void)fprintf(stderr, "%s\n", message.text);
        return EXIT_FAILURE;
    }
    const unsigned last = duet_node_count(duet) - 1;
    assert(!duet_register_codelet(duet, &desc, &codelet));
    assert(!duet_register_vector(duet, &count, 1, sizeof count, &handle) &&
           !duet_own(duet, handle, 0));
    for (unsigned i = 0; i < STEPS; i++) {
        const unsigned node = i % (last + 1);
        if (*role == 'c' && i > STEPS / 2 && duet_node(duet) == last) {
            duet_cancel(duet);
            assert(duet_close(duet) == DUET_ECANCELED);
            return EXIT_FAILURE;
        }
        const char *what = node == last && i > STEPS / 2 ? role : "";
        const struct duet_access access = {handle, DUET_RW};
        const struct duet_task_extra extra = {.node = &node};
        const struct duet_task_desc task = {.codelet = codelet,
                                            .accesses = &access,
                                            .access_count = 1,
                                            .args = &what,
                                            .args_bytes = sizeof what,
                                            .extra = &extra};
        int error = duet_submit(duet, &task);
        assert(!error || *role != 'r'); /* a run that has failed refuses it */
    }
    if (duet_wait(duet)) {
        (void)printf("%s\n", duet_last_message(duet));
        assert(duet_close(duet) == (*role == 'c' ? DUET_ECANCELED : DUET_ETASK));
        return EXIT_FAILURE;
    }
    assert(!duet_unregister(duet, handle) && !duet_close(duet));
    return EXIT_SUCCESS;
}

/* A program that uses MPI itself, and has opened it for that. */
static int run_program_of_mpi(int threads)
{
    int provided, sum = 1, all, status;
    assert(!MPI_Init_thread(NULL, NULL, threads, &provided) && provided == threads);
    status = run_program("right");
    assert(!MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) && all == NODES);
    return MPI_Finalize() ? EXIT_FAILURE : status;
}

/* Two runtimes have a thread each that calls MPI, which was opened for one at a time. */
static void open_two(void)
{
    struct duet_message message = {""};
    struct duet_runtime *first, *second;
    int provided;
    assert(!MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided));
    assert(provided == MPI_THREAD_SERIALIZED && !duet_open(&first, NULL, &message));
    assert(duet_open(&second, NULL, &message) == DUET_EINVAL && !second);
    assert(strstr(message.text, "two runtimes at once") && !duet_close(first));
    assert(!MPI_Finalize());
}

/*
 * Function of the address sanitizer, if it is there: called now, as MPI forgets its memory at its
 * end.
 */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static int without_leaks(int status)
{
    if (__lsan_do_recoverable_leak_check)
        assert(!__lsan_do_recoverable_leak_check());
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "random"))
        return without_leaks(duet__testing_random((unsigned)strtoul(argv[2], NULL, 10),
                                                  (unsigned)strtoul(argv[3], NULL, 10)));
    if (argc == 3 && !strcmp(argv[1], "program"))
        return without_leaks(run_program(argv[2]));
    if (argc > 1 && !strcmp(argv[1], "multiple"))
        return run_program_of_mpi(MPI_THREAD_MULTIPLE);
    if (argc > 1 && !strcmp(argv[1], "single"))
        return run_program_of_mpi(MPI_THREAD_SINGLE);
    if (argc > 1 && !strcmp(argv[1], "two")) {
        open_two();
        return EXIT_SUCCESS;
    }
    test_messages();
    test_agreement();
    test_failure(1, false);
    test_failure(0, true);
    test_messages();
    return without_leaks(0);
}
