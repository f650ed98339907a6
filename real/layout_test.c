/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that is not a matrix on CPUs and emulated GPUs: kernels find it where it belongs, and
 * nothing else is touched. Each round of a test passes it between all of them, in memory that is
 * too small for two.
 */
#include <duet/layout.h>

#include "real/testing_steps.h"

enum { TASKS = 60, ROWS = 5, COLS = 4, PLANES = 3, COPIES = 3 };

/* ------------------------------------------------------------------------------------------- */
/* Blocks                                                                                       */

/* Adds 1 to each element, whose value says where it is. */
static int add_to_block(const struct duet_call *call)
{
    const struct duet_buffer *block = call->buffers;
    bool dense = block->ld == ROWS && block->plane == (size_t)ROWS * COLS;
    if (block->planes != PLANES || (call->stream && !dense))
        return DUET_EINVAL;
    int64_t *data = block->data;
    for (size_t k = 0; k < block->planes; k++)
        for (size_t j = 0; j < block->cols; j++)
            for (size_t i = 0; i < block->rows; i++) {
                int64_t *at = &data[i + j * block->ld + k * block->plane];
                if (*at % 1000 != (int64_t)(i + 10 * j + 100 * k))
                    return DUET_ETASK;
                *at += 1000;
            }
    return DUET_OK;
}

/* Tasks by turns on CPUs and GPUs. */
static void submit_both(struct duet_runtime *core, duet_kernel_fn run,
                        struct duet_handle *const *handles, unsigned count)
{
    struct duet_codelet *codelets[] = {testing_codelet(core, "on_cpu", run, "cpu"),
                                       testing_codelet(core, "on_gpu", run, "cuda")};
    for (unsigned i = 0; i < TASKS; i++) {
        const struct duet_access access = {handles[i % count], DUET_RW};
        testing_submit(core, codelets[(i / count) % 3 != 0], &access, 1, NULL, 0);
    }
}

static void test_blocks(void)
{
    static const struct {
        size_t ld, plane;
    } shapes[] = {{ROWS, ROWS * COLS}, {ROWS, 30}, {7, 28}, {7, 31}};
    for (unsigned s = 0; s < G_N_ELEMENTS(shapes); s++) {
        struct testing t = {.cpus = 1, .gpus = 2, .gpu_memory_bytes = 512};
        OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
        static int64_t data[COPIES][31 * PLANES];
        struct duet_handle *handles[COPIES];
        memset(data, 0, sizeof data);
        for (unsigned c = 0; c < COPIES; c++) {
            for (size_t at = 0; at < 31 * PLANES; at++) {
                size_t k = at / shapes[s].plane, j = at % shapes[s].plane / shapes[s].ld,
                       i = at % shapes[s].plane % shapes[s].ld;
                bool inside = i < ROWS && j < COLS && k < PLANES;
                data[c][at] = inside ? (int64_t)(i + 10 * j + 100 * k) : -1;
            }
            testing_must(core, duet_register_block(core, data[c], ROWS, COLS, PLANES, shapes[s].ld,
                                                   shapes[s].plane, sizeof(int64_t), &handles[c]));
        }
        submit_both(core, add_to_block, handles, COPIES);
        for (unsigned c = 0; c < COPIES; c++) {
            testing_must(core, duet_unregister(core, handles[c]));
            for (size_t at = 0; at < 31 * PLANES; at++)
                g_assert_true(data[c][at] == -1 || data[c][at] / 1000 == TASKS / COPIES);
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Arrays                                                                                       */

/* Adds 1 to each number in arrays of bytes, of floats, and of a matrix with gaps. */
static int add_to_arrays(const struct duet_call *call)
{
    const struct duet_buffer *buffers = call->buffers;
    if (call->buffer_count != 4 || buffers[2].element_bytes != sizeof(double) ||
        (call->stream && buffers[2].ld != ROWS))
        return DUET_EINVAL;
    for (size_t i = 0; i < buffers[0].rows; i++)
        ((char *)buffers[0].data)[i]++;
    for (size_t i = 0; i < buffers[1].rows; i++)
        ((float *)buffers[1].data)[i]++;
    for (size_t j = 0; j < buffers[2].cols; j++)
        for (size_t i = 0; i < buffers[2].rows; i++)
            ((double *)buffers[2].data)[i + j * buffers[2].ld]++;
    ++*(int *)buffers[3].data;
    return DUET_OK;
}

static void test_arrays(void)
{
    struct testing t = {.cpus = 1, .gpus = 2, .gpu_memory_bytes = 2048};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    static char bytes[COPIES][300];
    static float floats[COPIES][7];
    static double matrix[COPIES][9 * COLS];
    static int last;
    const int each = TASKS / COPIES;
    struct duet_handle *handles[COPIES], *counter;
    testing_must(core, duet_register_vector(core, &last, 1, sizeof last, &counter));
    struct duet_codelet *codelets[] = {testing_codelet(core, "on_cpu", add_to_arrays, "cpu"),
                                       testing_codelet(core, "on_gpu", add_to_arrays, "cuda")};
    for (unsigned c = 0; c < COPIES; c++) {
        const struct duet_array arrays[] = {{bytes[c], 300, 1, 300, 1},
                                            {floats[c], 7, 1, 7, sizeof(float)},
                                            {matrix[c], ROWS, COLS, 9, sizeof(double)}};
        testing_must(core, duet_register_arrays(core, arrays, 3, &handles[c]));
    }
    for (unsigned i = 0; i < TASKS; i++) {
        const struct duet_access accesses[] = {{handles[i % COPIES], DUET_RW}, {counter, DUET_RW}};
        testing_submit(core, codelets[i / COPIES % 3 != 0], accesses, 2, NULL, 0);
    }
    testing_must(core, duet_acquire(core, counter, DUET_R));
    g_assert_cmpint(last, ==, TASKS);
    testing_must(core, duet_release(core, counter));
    for (unsigned c = 0; c < COPIES; c++) {
        testing_must(core, duet_unregister(core, handles[c]));
        for (unsigned i = 0; i < 300; i++)
            g_assert_cmpint(bytes[c][i], ==, each);
        for (unsigned i = 0; i < 7; i++)
            g_assert_cmpfloat(floats[c][i], ==, each);
        for (unsigned i = 0; i < 9 * COLS; i++)
            g_assert_cmpfloat(matrix[c][i], ==, i % 9 < ROWS ? each : 0);
    }
}

/* More buffers than a kernel's slot has room for, from one access. */
static int count_buffers(const struct duet_call *call)
{
    uint64_t sum = 0;
    for (size_t i = 0; i + 1 < call->buffer_count; i++)
        sum += *(const uint64_t *)call->buffers[i].data;
    *(uint64_t *)call->buffers[call->buffer_count - 1].data += sum;
    return DUET_OK;
}

static void test_many(void)
{
    enum { MANY = 100 };
    struct testing t = {.cpus = 1, .gpus = 1, .gpu_memory_bytes = 1 << 20};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    static uint64_t numbers[MANY], sum;
    struct duet_array arrays[MANY];
    struct duet_access accesses[2] = {{.mode = DUET_R}, {.mode = DUET_RW}};
    for (unsigned i = 0; i < MANY; i++) {
        numbers[i] = i;
        arrays[i] = (struct duet_array){&numbers[i], 1, 1, 1, sizeof(uint64_t)};
    }
    testing_must(core, duet_register_arrays(core, arrays, MANY, &accesses[0].handle));
    accesses[1].handle = testing_cells(core, &sum, 1);
    testing_submit(core, testing_codelet(core, "cpu", count_buffers, "cpu"), accesses, 2, NULL, 0);
    testing_submit(core, testing_codelet(core, "gpu", count_buffers, "cuda"), accesses, 2, NULL, 0);
    testing_must(core, duet_unregister(core, accesses[1].handle));
    g_assert_cmpuint(sum, ==, MANY * (MANY - 1));
}

/* ------------------------------------------------------------------------------------------- */
/* A type                                                                                       */

enum { ROOM = 100 };

/* Numbers that were appended, with a letter each. */
struct list {
    size_t count;
    int *numbers;
    char *letters;
};

static size_t list_bytes(const void *object)
{
    return ROOM * (sizeof(int) + 1);
}

static void list_place(void *object, void *memory)
{
    struct list *list = object;
    list->numbers = memory;
    list->letters = (char *)(list->numbers + ROOM);
}

static bool names_too_much;

static void list_copy(const void *from, void *to, struct duet_pieces *pieces)
{
    const struct list *source = from;
    struct list *list = to;
    list->count = source->count;
    duet_add_piece(pieces, list->numbers, source->numbers, source->count * sizeof(int));
    duet_add_piece(pieces, list->letters, source->letters, source->count);
    if (names_too_much)
        duet_add_piece(pieces, list->letters + ROOM, source->letters, 1);
}

static const struct duet_type list_type = {.name = "list",
                                           .object_bytes = sizeof(struct list),
                                           .bytes = list_bytes,
                                           .place = list_place,
                                           .copy = list_copy};

static int append(const struct duet_call *call)
{
    struct list *list = call->buffers[0].data;
    if (call->buffers[0].element_bytes != sizeof *list)
        return DUET_EINVAL;
    for (size_t i = 0; i < list->count; i++)
        if (list->numbers[i] != (int)(3 * i) || list->letters[i] != (char)('a' + i % 26))
            return DUET_ETASK;
    list->numbers[list->count] = (int)(3 * list->count);
    list->letters[list->count] = (char)('a' + list->count % 26);
    list->count++;
    return DUET_OK;
}

/* Forgets what is there: of an object on a device, with no copy before, the room is known. */
static int clear_list(const struct duet_call *call)
{
    ((struct list *)call->buffers[0].data)->count = 0;
    return DUET_OK;
}

static int run_lists(struct testing *t, bool checks)
{
    struct duet_runtime *core = testing_open(t);
    static int numbers[COPIES][ROOM];
    static char letters[COPIES][ROOM];
    struct list lists[COPIES];
    struct duet_handle *handles[COPIES];
    for (unsigned c = 0; c < COPIES; c++) {
        lists[c] = (struct list){50, numbers[c], letters[c]};
        testing_must(core, duet_register_object(core, &list_type, &lists[c], &handles[c]));
        g_assert_true(duet_address(handles[c]) == &lists[c]);
        const struct duet_access access = {handles[c], DUET_W};
        testing_submit(core,
                       c ? testing_codelet(core, c == 1 ? "clear_gpu" : "clear", clear_list,
                                           c == 1 ? "cuda" : NULL)
                         : testing_codelet(core, "clear_cpu", clear_list, "cpu"),
                       &access, 1, NULL, 0);
    }
    submit_both(core, append, handles, COPIES);
    int error = duet_wait(core);
    for (unsigned c = 0; c < COPIES; c++) {
        int end = duet_unregister(core, handles[c]);
        error = error ? error : end;
        g_assert_true(lists[c].numbers == numbers[c] && lists[c].letters == letters[c]);
        if (error || !checks)
            continue;
        g_assert_cmpuint(lists[c].count, ==, TASKS / COPIES);
        for (unsigned i = 0; i < TASKS / COPIES; i++)
            g_assert_cmpint(numbers[c][i], ==, 3 * i);
    }
    if (error)
        g_test_message("%s", duet_last_message(core));
    duet__core_free(core);
    return error;
}

static void test_type(void)
{
    for (unsigned no_peer = 0; no_peer < 2; no_peer++) {
        struct testing t = {.cpus = 1, .gpus = 2, .gpu_memory_bytes = 512, .no_peer = no_peer};
        g_assert_cmpint(run_lists(&t, true), ==, DUET_OK);
    }
}

/* Whichever command it is, between the pieces of a copy too: it ends well, or says what was lost.
 */
static void test_lost(void)
{
    for (unsigned at = 1; at < 40; at++) {
        char lose[16];
        g_snprintf(lose, sizeof lose, "gpu0@%u", at);
        struct testing t = {.cpus = 1, .gpus = 2, .gpu_memory_bytes = 1024, .lose = lose};
        int error = run_lists(&t, true);
        g_assert_true(!error || error == DUET_ELOST);
    }
}

/* A type that names what is not its own fails the run, whatever it has named before. */
static void test_bad_type(void)
{
    struct duet_runtime *core = testing_open(&(struct testing){.cpus = 1, .gpus = 1});
    static int numbers[ROOM];
    static char letters[ROOM];
    struct list list = {5, numbers, letters};
    struct duet_access access = {.mode = DUET_R};
    testing_must(core, duet_register_object(core, &list_type, &list, &access.handle));
    names_too_much = true;
    testing_submit(core, testing_codelet(core, "clear", clear_list, "cuda"), &access, 1, NULL, 0);
    REFUSED(core, duet_wait(core), DUET_EINVAL, "copy of handle 1");
    TOLD(core, "a piece is not within the bytes");
    duet__core_free(core);
    names_too_much = false;
}

/* At a calibration's pace there is one piece, and one latency. */
static void test_paced(void)
{
    struct testing t = {.gpus = 1, .scale = 1e-3, .seconds = 1e-3, .record = true};
    OWNED(testing_close) struct duet_runtime *core = testing_open(&t);
    static int numbers[ROOM];
    static char letters[ROOM];
    struct list list = {5, numbers, letters};
    struct duet_access access = {.mode = DUET_RW};
    struct duet_stats stats;
    testing_must(core, duet_register_object(core, &list_type, &list, &access.handle));
    testing_submit(core, testing_codelet(core, "append", append, "cuda"), &access, 1, NULL, 0);
    testing_must(core, duet_unregister(core, access.handle));
    duet_stats(core, &stats);
    g_assert_cmpuint(stats.bytes_to_device, ==, list_bytes(NULL));
    g_assert_cmpuint(list.count, ==, 5);
}

TEST_MAIN(test_blocks, test_arrays, test_many, test_type, test_lost, test_bad_type, test_paced)
