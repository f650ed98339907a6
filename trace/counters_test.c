/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of runs against their records looked at one by one, and uses of memories by hand. */
#include "trace/counters.h"

#include "trace/testing_account.h"

static double value_at(const struct duet__counter *counter, double date_s)
{
    double value = 0;
    for (guint i = 0; counter->points && i < counter->points->len; i++) {
        const struct duet__moment *point = &g_array_index(counter->points, struct duet__moment, i);
        if (point->date_s <= date_s)
            value = point->value;
    }
    return value;
}

/* Returns the counter's value at a date, from the records. */
static double expected(const struct duet__recording *recording, const struct duet__counter *counter,
                       double date_s)
{
    double value = 0, last_s = 0;
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct duet_event *event = &recording->events[i];
        const bool copy = event->kind == DUET_EVENT_COPY;
        const double since_s = copy ? event->start_s : event->ready_s,
                     until_s = copy ? event->end_s : event->start_s;
        const struct duet_route *route =
            duet_machine_route(recording->machine, event->source, event->destination);
        bool counts = !copy && counter->what == DUET_COUNTED_READY;
        if (counter->what == DUET_COUNTED_USED && event->used_bytes && event->end_s <= date_s &&
            event->destination == counter->index && event->end_s >= last_s) {
            value = (double)event->used_bytes;
            last_s = event->end_s;
        }
        if (copy && counter->what == DUET_COUNTED_IN)
            counts = event->destination == counter->index;
        if (copy && counter->what == DUET_COUNTED_OUT)
            counts = event->source == counter->index;
        for (unsigned k = 0; copy && counter->what == DUET_COUNTED_LINK && k < route->count; k++)
            counts = counts || route->links[k] == counter->index;
        if (counts && since_s <= date_s && date_s < until_s)
            value += copy ? (double)event->bytes : 1;
    }
    return value;
}

/* Two links, which all copies to devices and from devices share. */
static void link_up(struct duet_machine *machine)
{
    const unsigned nodes = machine->node_count;
    machine->link_count = 2;
    free(machine->links);
    machine->links = calloc(2, sizeof *machine->links);
    for (unsigned i = 0; i < nodes * nodes; i++) {
        struct duet_route *route = &machine->routes[i];
        if (i / nodes)
            route->links[route->count++] = 1;
        if (i % nodes)
            route->links[route->count++] = 0;
    }
}

static double area_of(const struct duet__counter *counter)
{
    double area = 0;
    for (guint i = 0; counter->points && i + 1 < counter->points->len; i++) {
        const struct duet__moment *point = &g_array_index(counter->points, struct duet__moment, i);
        area += point->value * (point[1].date_s - point->date_s);
    }
    return area;
}

/* A simulation's counters are right at all dates; thinned out, their sums are the same. */
static void test_simulated(void)
{
    enum { LEAST = 7 };
    OWNED(sample_fini) struct sample sample;
    struct duet__counters counters, few;
    const struct duet__recording *recording;
    unsigned known = 0;
    sample_init(&sample, 2, 3, 60);
    recording = &sample.recordings[0];
    link_up(recording->machine);
    duet__counters_make(recording, UINT_MAX, &counters);
    duet__counters_make(recording, LEAST, &few);
    g_assert_cmpuint(counters.count, ==, 1 + 3 * 4 + recording->machine->link_count);
    for (unsigned i = 0; i < counters.count; i++) {
        const struct duet__counter *counter = &counters.all[i], *thin = &few.all[i];
        double most = 0;
        g_assert_true(duet__counter(&counters, counter->what, counter->index) == counter);
        known += counter->points != NULL;
        for (size_t k = 0; k < recording->event_count; k++) {
            const struct duet_event *event = &recording->events[k];
            const double dates[] = {event->ready_s, event->start_s, event->end_s};
            for (unsigned d = 0; d < 3; d++) {
                const double value = value_at(counter, dates[d]);
                g_assert_cmpfloat(value, ==, expected(recording, counter, dates[d]));
                most = MAX(most, value);
            }
        }
        for (guint k = 1; counter->points && k < counter->points->len; k++) {
            const struct duet__moment *point =
                &g_array_index(counter->points, struct duet__moment, k);
            g_assert_cmpfloat(point[-1].date_s, <, point->date_s);
            g_assert_cmpfloat(point[-1].value, !=, point->value);
        }
        g_assert_cmpfloat(counter->most, ==, most);
        g_assert_true(!counter->points == !thin->points);
        g_assert_true(!thin->points || thin->points->len <= LEAST);
        g_assert_cmpfloat_with_epsilon(area_of(thin), area_of(counter),
                                       1e-9 * (1 + area_of(counter)));
        g_assert_cmpfloat(thin->most, ==, counter->most);
    }
    g_assert_cmpuint(known, ==, 1 + 4 + 4 + 3 + 2);
    duet__counters_fini(&few);
    duet__counters_fini(&counters);
    duet__counters_fini(&counters);
}

/* Data comes again that had been there, or that was written elsewhere meanwhile. */
static void test_use(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    struct duet_trace_access accesses[] = {
        {.task = 3, .handle = 1, .bytes = 1000, .reads = true},
        {.task = 5, .handle = 2, .bytes = 1000, .reads = true, .writes = true},
    };
    struct duet__node_use *uses;
    testing_init(&testing, 20);
    testing_copy(&testing, 1, 0, 1, 0, 0, 2)->used_bytes = 1024;
    testing_copy(&testing, 2, 0, 1, 1, 1, 3)->used_bytes = 2048;
    testing_task(&testing, 1, 0, 2, 3, 4)->id = 3;
    testing_copy(&testing, 1, 0, 1, 5, 5, 6)->used_bytes = 1024; /* comes again */
    testing_task(&testing, 0, 0, 2, 6, 8)->id = 5;
    testing_copy(&testing, 2, 0, 1, 8, 8, 9); /* comes as written since */
    testing_copy(&testing, 2, 1, 0, 10, 10, 12)->failed = true;
    for (unsigned i = 0; i < 3; i++) /* one after another */
        testing_copy(&testing, 3, 1, 2, 10, 10 + i, 11 + i);
    testing.recording.accesses = accesses;
    testing.recording.access_count = G_N_ELEMENTS(accesses);
    uses = duet__use_make(&testing.recording);
    g_assert_cmpuint(uses[1].in_bytes, ==, 4000);
    g_assert_cmpuint(uses[1].again_bytes, ==, 1000);
    g_assert_cmpuint(uses[1].peak_bytes, ==, 2048);
    g_assert_cmpuint(uses[2].peak_bytes, ==, 0);
    g_assert_cmpuint(uses[DUET_HOST].in_bytes, ==, 0);
    g_assert_cmpuint(uses[DUET_HOST].out_bytes, ==, 4000);
    testing_near(uses[1].in_s, 5);
    testing_near(uses[DUET_HOST].out_s, 5);
    testing_near(uses[2].in_s, 3);
    g_free(uses);
}

TEST_MAIN(test_simulated, test_use)
