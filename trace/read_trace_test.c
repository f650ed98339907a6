/* SPDX-License-Identifier: Apache-2.0 */
/* Traces are read back as they were written, and whatever else is read is refused with a line. */
#include "trace/trace.h"

#include <math.h>

#include "trace/account.h"
#include "trace/testing_account.h"
#include "platforms/testing_fields.h"

static char *written_trace(const struct duet__trace *trace, size_t *length)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, length);
    duet__trace_write(stream, trace);
    fclose(stream);
    return text;
}

static char *written(const struct duet__recording *recording, size_t *length)
{
    const struct duet__trace trace = {.run = {.recording = *recording}};
    return written_trace(&trace, length);
}

static void same_accounts(const struct duet__recording *first, const struct duet__recording *second)
{
    struct duet__account a, b;
    WORKS(duet__account_make(first, &a, hear()));
    WORKS(duet__account_make(second, &b, hear()));
    g_assert_cmpuint(a.workers, ==, b.workers);
    g_assert_cmpuint(a.kernel_count, ==, b.kernel_count);
    /* every date of thousands is rounded to a nanosecond, by half of one at most */
    for (unsigned i = 0; i < DUET_STATES; i++)
        g_assert_cmpfloat_with_epsilon(a.states_s[i], b.states_s[i], 1e-9 * first->event_count);
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpfloat(a.bytes[i], ==, b.bytes[i]);
    duet__account_fini(&a);
    duet__account_fini(&b);
}

/* The sample has all kinds of events; one GPU more than it uses stays known, too. */
static void test_round_trip(void)
{
    OWNED(sample_fini) struct sample sample;
    struct duet__trace file;
    const struct duet__recording *recording;
    size_t length = 0;
    char *text;
    sample_init(&sample, 3, 4, 800);
    recording = &sample.recordings[1];
    text = written(recording, &length);
    WORKS(duet__read_trace(text, length, "t.json", &file, hear()));
    g_assert_cmpuint(file.run.recording.event_count, ==, recording->event_count);
    g_assert_cmpuint(file.run.recording.machine->worker_count, ==, 7);
    g_assert_cmpuint(file.run.recording.machine->arch_count, ==, 2);
    g_assert_cmpstr(file.run.recording.machine->name, ==, "sample");
    g_assert_cmpfloat_with_epsilon(file.run.recording.makespan_s, recording->makespan_s, 2e-9);
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *a = &recording->events[i], *b = &file.run.recording.events[i];
        g_assert_cmpint(a->kind, ==, b->kind);
        g_assert_cmpuint(a->id, ==, b->id);
        g_assert_cmpuint(a->bytes, ==, b->bytes);
        g_assert_cmpuint(a->used_bytes, ==, b->used_bytes);
        g_assert_cmpuint(a->source, ==, b->source);
        g_assert_cmpuint(a->destination, ==, b->destination);
        g_assert_cmpint(a->write_back, ==, b->write_back);
        g_assert_cmpfloat_with_epsilon(a->start_s, b->start_s, 1e-9);
        g_assert_cmpfloat_with_epsilon(a->end_s, b->end_s, 2e-9);
        g_assert_cmpfloat_with_epsilon(a->ready_s, b->ready_s, 1e-9);
        if (a->kind == DUET_EVENT_TASK) {
            g_assert_cmpint(a->worker, ==, b->worker);
            g_assert_cmpstr(duet__recording_kernel(recording, a), ==,
                            duet__recording_kernel(&file.run.recording, b));
        }
    }
    same_accounts(recording, &file.run.recording);
    duet__trace_fini(&file);
    duet__trace_fini(&file);
    free(text);
}

static void same_accesses(const struct duet__recording *recording,
                          const struct duet_trace_access *accesses)
{
    for (size_t i = 0; i < recording->access_count; i++) {
        const struct duet_trace_access *access = &recording->accesses[i], *wanted = &accesses[i];
        g_assert_cmpuint(access->task, ==, wanted->task);
        g_assert_cmpuint(access->index, ==, wanted->index);
        g_assert_cmpuint(access->handle, ==, wanted->handle);
        g_assert_cmpuint(access->bytes, ==, wanted->bytes);
        g_assert_cmpuint(access->whole, ==, wanted->whole);
        g_assert_cmpuint(access->cut, ==, wanted->cut);
        g_assert_cmpuint(access->mode, ==, wanted->mode);
        g_assert_cmpuint(access->after, ==, wanted->after);
        g_assert_true(access->reads == wanted->reads && access->writes == wanted->writes &&
                      access->temporary == wanted->temporary);
    }
}

/* Names and marks of the application, and the data of tasks, are read back. */
static void test_all(void)
{
    const char *names[] = {"block", "solve", "converged", NULL};
    struct duet_trace_mark marks[] = {{.name = 2, .phase = true, .start_s = 0.5, .end_s = 3},
                                      {.name = 3, .start_s = 2, .end_s = 2},
                                      {.name = 4, .start_s = 2, .end_s = 2, .lost = 2}};
    /* a task run twice, modes, parts, temporary data, what comes after a task */
    struct duet_trace_access accesses[] = {{1, 0, 7, 800, 0, 0, true, false, false, DUET_R, 0},
                                           {1, 1, 9, 16, 7, 9, true, true, false, DUET_RW, 0},
                                           {2, 0, 9, 16, 7, 9, false, true, true, DUET_W, 0},
                                           {2, 0, 9, 16, 7, 9, false, true, true, DUET_W, 0},
                                           {2, 1, 10, 16, 0, 0, true, true, false, DUET_COMMUTE, 0},
                                           {2, 2, 11, 16, 8, 0, true, true, false, DUET_REDUCE, 0},
                                           {2, 3, 12, 16, 0, 0, false, true, false, DUET_SCRATCH,
                                            0},
                                           {2, 4, 10, 16, 0, 0, false, false, false, 0, 0},
                                           {2, 5, 0, 0, 0, 0, false, false, false, 0, 1}};
    OWNED(testing_fini) struct testing_recording testing;
    struct duet__trace trace = {0}, file;
    struct duet_stats *stats = &trace.run.stats;
    size_t length = 0;
    char *text;
    testing_init(&testing, 8);
    testing_task(&testing, 0, 1, 0.5, 1, 2)->work = 1e9;
    testing_task(&testing, 1, 1, 1, 2, 3)->work = NAN;
    testing.events[0].name = 1;
    testing.events[0].iteration = 4;
    testing.events[0].priority = -7;
    testing.events[0].where = 2;
    testing.events[0].own = testing.events[1].child = true;
    testing.events[0].submit_s = testing.events[1].submit_s = 0.5;
    testing.machine.workers[0].socket = 1;
    names[3] = testing.machine.workers[1].name;
    trace.run.recording = testing.recording;
    trace.run.recording.accesses = accesses;
    trace.run.recording.access_count = G_N_ELEMENTS(accesses);
    trace.run.recording.names = names;
    trace.run.recording.name_count = G_N_ELEMENTS(names);
    trace.run.recording.marks = marks;
    trace.run.recording.mark_count = G_N_ELEMENTS(marks);
    trace.run.seed = UINT64_MAX;
    *stats = (struct duet_stats){.tasks = 2, .makespan_s = 1. / 3, .flops = NAN, .steals = 5};
    stats->busy_by_arch_s[1] = 2. / 3;
    text = written_trace(&trace, &length);
    WORKS(duet__read_trace(text, length, "t.json", &file, hear()));
    g_assert_cmpuint(file.run.seed, ==, UINT64_MAX);
    stats->flops = 0;
    g_assert_cmpmem(&file.run.stats, sizeof *stats, stats, sizeof *stats);
    g_assert_cmpuint(file.run.recording.machine->workers[0].socket, ==, 1);
    g_assert_cmpfloat(file.run.recording.events[0].work, ==, 1e9);
    g_assert_cmpfloat(file.run.recording.events[1].work, ==, 0);
    g_assert_cmpuint(file.run.recording.events[0].iteration, ==, 4);
    g_assert_cmpstr(duet__recording_name(&file.run.recording, file.run.recording.events[0].name),
                    ==, "block");
    g_assert_cmpint(file.run.recording.events[0].priority, ==, -7);
    g_assert_cmpuint(file.run.recording.events[0].where, ==, 2);
    g_assert_cmpuint(file.run.recording.events[1].where, ==, 3);
    g_assert_true(file.run.recording.events[0].own && file.run.recording.events[1].child);
    g_assert_false(file.run.recording.events[1].own || file.run.recording.events[0].child);
    g_assert_cmpstr(file.run.recording.machine->archs[1].backend, ==, "cuda");
    g_assert_cmpuint(file.run.recording.access_count, ==, G_N_ELEMENTS(accesses) - 1);
    memmove(&accesses[2], &accesses[3], sizeof accesses - 3 * sizeof *accesses);
    same_accesses(&file.run.recording, accesses);
    g_assert_cmpuint(file.run.recording.mark_count, ==, 3);
    g_assert_cmpuint(file.run.recording.marks[1].lost, ==, 0);
    g_assert_cmpuint(file.run.recording.marks[2].lost, ==, 2);
    testing_near(file.run.recording.marks[0].end_s, 2.5);
    g_assert_cmpstr(duet__recording_name(&file.run.recording, file.run.recording.marks[1].name), ==,
                    "converged");
    duet__trace_fini(&file);
    free(text);
}

/* Random facts of a run, and names of any letters, are read back. */
static void test_random(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(32);
    for (unsigned round = 0; round < 200; round++) {
        g_autofree char *kernel = testing_text(random, 1, DUET_NAME_MAX - 1),
                        *task = testing_text(random, 0, 300),
                        *moment = testing_text(random, 0, 300);
        const char *kernels[] = {kernel}, *names[] = {task, moment};
        struct duet_trace_mark mark = {.name = 2};
        OWNED(testing_fini) struct testing_recording testing;
        struct duet__trace trace = {0}, file;
        size_t length = 0;
        char *text;
        testing_init(&testing, 8);
        testing_task(&testing, 0, 0, 0.5, 1, 2)->name = 1;
        trace.run.recording = testing.recording;
        trace.run.recording.kernels = kernels;
        trace.run.recording.names = names;
        trace.run.recording.name_count = 2;
        trace.run.recording.marks = &mark;
        trace.run.recording.mark_count = 1;
        testing_fill(duet__trace_fields, &trace, random);
        if (trace.spent_count)
            g_strlcpy(trace.spent->kernel, kernel, sizeof trace.spent->kernel);
        text = written_trace(&trace, &length);
        WORKS(duet__read_trace(text, length, "t.json", &file, hear()));
        testing_same(duet__trace_fields, &trace, &file);
        g_assert_cmpstr(duet__recording_kernel(&file.run.recording, file.run.recording.events), ==,
                        kernel);
        g_assert_cmpstr(duet__recording_name(&file.run.recording, file.run.recording.events->name),
                        ==, task);
        g_assert_cmpstr(duet__recording_name(&file.run.recording, file.run.recording.marks->name),
                        ==, moment);
        duet__trace_fini(&file);
        trace.run.recording = (struct duet__recording){0};
        duet__trace_fini(&trace);
        free(text);
    }
}

/* Overlapping kernels, a failed one, a worker without any, dates from the runtime's opening. */
static void test_odd(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    struct duet__trace file;
    size_t length = 0;
    char *text;
    testing_init(&testing, 8);
    for (unsigned i = 0; i < 10; i++) /* more than have threads of their own */
        testing_task(&testing, 1, i % 2, 3, 3, 8);
    testing_task(&testing, 0, 0, 3, 9, 9)->failed = true;
    testing_copy(&testing, 1, 1, 2, 4, 4, 5)->failed = true;
    for (size_t i = 0; i < testing.recording.event_count; i++)
        testing.events[i].submit_s = 2;
    text = written(&testing.recording, &length);
    WORKS(duet__read_trace(text, length, "t.json", &file, hear()));
    testing_near(file.run.recording.makespan_s, 6);
    g_assert_cmpuint(file.run.recording.machine->worker_count, ==, 3);
    g_assert_cmpuint(file.run.recording.event_count, ==, 12);
    g_assert_true(file.run.recording.events[11].failed);
    testing_near(file.run.recording.events[0].start_s, 1);
    testing_near(file.run.recording.events[0].end_s, 6);
    for (size_t i = 0; i < 12; i++)
        g_assert_cmpint(file.run.recording.events[i].failed, ==,
                        file.run.recording.events[i].kind == DUET_EVENT_COPY ||
                            file.run.recording.events[i].worker == 0);
    duet__trace_fini(&file);
    free(text);
}

#define HEAD                                                                                       \
    "{\"otherData\":{\"producer\":\"duet\",\"platform\":\"p\",\"nodes\":[\"host\",\"gpu0\"],"      \
    "\"workers\":[{\"name\":\"cpu0\",\"architecture\":\"x\",\"node\":\"host\"}]},\n"
#define THREAD                                                                                     \
    "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"worker\":\"cpu0\"}}"
#define TASK                                                                                       \
    "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2,\"cat\":\"kernel\",\"name\":\"k\","      \
    "\"args\":{\"task\":1,\"bytes\":8,\"submitted_us\":0,\"ready_us\":0}}"

#define KERNEL "{\"ph\":\"X\",\"cat\":\"kernel\""
#define COPY "{\"ph\":\"X\",\"cat\":\"copy\""
#define PLACE ",\"pid\":1,\"tid\":1"
#define NAME ",\"name\":\"k\""
#define DATES ",\"ts\":1,\"dur\":2"
#define ARGS ",\"args\":{\"handle\":1,\"bytes\":8,\"ready_us\":0,"

static void test_refused(void)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "t.json:1: expected an object, but the text ends"},
        {"{}", "no trace of duet's"},
        {"{\"a\":\"b", "premature end"},
        {"{\"a\":\"\\q\"}", "invalid escape"},
        {"{\"traceEvents\":[]}", "no trace of duet's"},
        {"{\"otherData\":{\"producer\":\"chrome\"},\"traceEvents\":[]}", "no trace of duet's"},
        {"{\"otherData\":{\"nodes\":[\"a\",\"a\"]}}", "two memories are called 'a'"},
        {"{\"otherData\":{\"nodes\":[\"\"]}}", "is no name"},
        {"{\"otherData\":{\"workers\":[{\"name\":\"w\"}]}}", "architecture: missing"},
        {HEAD "\"traceEvents\":[]}", "there is no kernel"},
        {HEAD "\"traceEvents\":[1]}", "expected an object"},
        {HEAD "\"traceEvents\":[\n" TASK "]}", "t.json:3: a kernel in a thread of no worker"},
        {HEAD "\"traceEvents\":[" THREAD "," KERNEL "}]}", "pid: missing"},
        {HEAD "\"traceEvents\":[" THREAD "," KERNEL PLACE "}]}", "ts: missing"},
        {HEAD "\"traceEvents\":[" THREAD "," KERNEL PLACE DATES "}]}", "name: missing"},
        {HEAD "\"traceEvents\":[" THREAD "," KERNEL PLACE NAME DATES "}]}", "args: missing"},
        {HEAD "\"traceEvents\":[" THREAD "," KERNEL PLACE NAME DATES ",\"args\":{}}]}",
         "args.task: missing"},
        {HEAD "\"traceEvents\":[" THREAD "," KERNEL PLACE NAME DATES ",\"args\":{\"task\":1}}]}",
         "args.bytes: missing"},
        {HEAD "\"traceEvents\":[" THREAD "," KERNEL PLACE NAME DATES
              ",\"args\":{\"task\":1,\"bytes\":8,\"submitted_us\":0,\"ready_us\":0,"
              "\"accesses\":[[1,8]]}}]}",
         "accesses[0]"},
        {"{\"otherData\":[{\"nodes\":[\"a\",\"b\"]},{\"nodes\":[\"a\"]}]}", "no trace of duet's"},
        {"{\"otherData\":{\"seed\":\"-1\"}}", "seed: '-1' is no whole number"},
        {"{\"otherData\":{\"stats\":{\"tasks\":-1}}}", "stats.tasks"},
        {HEAD "\"traceEvents\":[" COPY "}]}", "pid: missing"},
        {HEAD "\"traceEvents\":[" COPY PLACE ",\"ts\":0,\"dur\":-1}]}", "dur: -1 is out of range"},
        {HEAD "\"traceEvents\":[" COPY PLACE ",\"ts\":\"1\"}]}", "ts: expected a number"},
        {HEAD "\"traceEvents\":[" KERNEL ",\"pid\":-1}]}", "pid: -1 is out of range"},
        {HEAD "\"traceEvents\":[" COPY PLACE NAME DATES ARGS
              "\"source\":\"gpu9\",\"destination\":\"host\"}}]}",
         "no memory is named gpu9"},
        {HEAD "\"traceEvents\":[" COPY PLACE NAME DATES ARGS
              "\"source\":\"host\",\"destination\":\"host\"}}]}",
         "from a memory to itself"},
        {HEAD "\"traceEvents\":[{\"ph\":\"M\",\"name\":\"thread_name\"" PLACE
              ",\"args\":{\"worker\":"
              "\"gpu9\"}}]}",
         "no worker is named gpu9"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct duet__trace file;
        int error = duet__read_trace(cases[i].text, strlen(cases[i].text), "t.json", &file, hear());
        g_assert_cmpint(error, ==, DUET_EPARSE);
        SAYS("t.json");
        SAYS(cases[i].says);
        g_assert_null(file.run.recording.events);
    }
}

/* Unknown keys and events, escapes, and deep values up to a limit may be there. */
static void test_tolerated(void)
{
    static const char text[] =
        HEAD "\"more\":[[],{},{\"a\":[1.5e-3,true,false,null,\"\\ud83d\\ude00\\n\"]}],"
             "\"traceEvents\":[" THREAD ",{\"ph\":\"i\",\"s\":\"g\"},"
             "{\"ph\":\"X\",\"cat\":\"else\"}," TASK "]}";
    struct duet__trace file;
    GString *deep = g_string_new("{\"a\":");
    WORKS(duet__read_trace(text, strlen(text), "t.json", &file, hear()));
    testing_near(file.run.recording.makespan_s, 3e-6);
    duet__trace_fini(&file);
    for (unsigned i = 0; i < 100000; i++)
        g_string_append_c(deep, '[');
    FAILS(duet__read_trace(deep->str, deep->len, "t.json", &file, hear()), DUET_EPARSE, "depth");
    g_string_free(deep, TRUE);
}

enum { SECONDS = 1, MOST_ROUNDS = 20000 };

/* A trace that is read has an account whose sum holds, or none if its dates make no sense. */
static void try_account(const struct duet__recording *recording)
{
    struct duet__account account;
    double sum_s = 0, whole_s;
    if (duet__account_make(recording, &account, hear())) {
        g_assert_cmpstr(heard(), !=, "");
        return;
    }
    whole_s = account.workers * account.makespan_s;
    for (unsigned i = 0; i < DUET_STATES; i++)
        sum_s += account.states_s[i];
    g_assert_cmpfloat_with_epsilon(sum_s, whole_s, 1e-9 * (1 + whole_s));
    duet__account_fini(&account);
}

static void test_fuzz(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(20261121);
    gint64 end = g_get_monotonic_time() + SECONDS * G_USEC_PER_SEC;
    struct duet_trace_access accesses[] =
        {{.task = 1, .handle = 7, .bytes = 800, .reads = true},
         {.task = 1, .index = 1, .handle = 9, .bytes = 16, .whole = 7, .writes = true},
         {.task = 1, .index = 2, .after = 1}};
    struct duet__trace trace = {.policy = (char *)(uintptr_t) "ws"};
    OWNED(sample_fini) struct sample sample;
    size_t length = 0;
    char *seed;
    unsigned rounds = 0, good = 0;
    sample_init(&sample, 1, 2, 12);
    trace.run = sample.runs[0][0];
    trace.run.recording.accesses = accesses;
    trace.run.recording.access_count = G_N_ELEMENTS(accesses);
    seed = written_trace(&trace, &length);
    for (; rounds < MOST_ROUNDS && g_get_monotonic_time() < end; rounds++) {
        GString *text = g_string_new_len(seed, (gssize)length);
        struct duet__trace file;
        char *exact;
        testing_mutate(text, random);
        exact = g_malloc(text->len + 1); /* exactly this long, so that sanitizers see an overrun */
        memcpy(exact, text->str, text->len + 1);
        if (duet__read_trace(exact, text->len, "fuzz", &file, hear())) {
            g_assert_cmpstr(heard(), !=, "");
            g_assert_null(strchr(heard(), '\n'));
        } else {
            try_account(&file.run.recording);
            good++;
        }
        duet__trace_fini(&file);
        g_free(exact);
        g_string_free(text, TRUE);
    }
    g_test_message("%u mutated traces, %u of them read", rounds, good);
    g_assert_cmpuint(good, >, 0);
    free(seed);
}

TEST_MAIN(test_round_trip, test_all, test_odd, test_refused, test_tolerated, test_fuzz, test_random)
