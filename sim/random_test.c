/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs in simulated time, in a process each. Their kernels do nothing there; afterwards
 * what the records say is carried out, copies and kernels at their dates, each in the memory it was
 * in, and what that leaves is compared with the same programs carried out in order by one thread.
 * See core/testing_random.h for the environment.
 */
#include "core/testing.h"
#include "core/testing_random.h"
#include "sim/sim.h"
#include "trace/bounds.h"

/* The data of one handle in all memories: the host's is the application's own. */
struct place {
    struct duet_buffer host;
    uint64_t **devices; /* by node, the host's for temporary data; NULL: it was never there */
};

/* Something that begins and ends. */
struct deed {
    const struct duet_event *copy; /* NULL: a task, or what the application does at a date */
    uint64_t *moved;               /* by the copy, or NULL */
    struct step *touched;          /* by the application */
    char args[DUET_ARGS_INLINE];
    bool adds, waits;
    bool counted;                            /* a task that waits has several records */
    enum { SUBMITTED, CLEARS, ADDS_UP } own; /* the reduction's own tasks */
    size_t count;
    uint64_t *handles; /* their numbers */
    uint64_t read;
    unsigned node;
    double start_s, end_s;
};

/* Records of a program, to be carried out. */
struct records {
    GArray *places; /* struct place, by number of the handle */
    GArray *tasks;  /* struct deed, by number of the task */
    GArray *deeds;  /* struct deed: the application's */
};

/* ------------------------------------------------------------------------------------------- */
/* While it runs                                                                                */

static struct records *records_of(const struct run *run)
{
    return run->own;
}

static struct place *place_of(struct records *records, uint64_t handle)
{
    return &g_array_index(records->places, struct place, handle);
}

static uint64_t submitted_last; /* number of the task that the engine was given; 0: none */

static void see_submitted(void *engine, struct duet_task *task)
{
    if (task->klass)
        submitted_last = task->id;
    duet__sim_ops()->submitted(engine, task);
}

/*
 * The task that was submitted last is this one, or, of a child or a task that is held, the one that
 * was created last.
 */
static void note_task(struct run *run, const struct duet_task_desc *desc)
{
    struct records *records = records_of(run);
    bool entered = submitted_last && submitted_last >= records->tasks->len;
    uint64_t number =
        entered && !run->behind ? submitted_last : atomic_load(&run->duet->submitted) - run->behind;
    submitted_last = 0;
    if (number >= records->tasks->len)
        g_array_set_size(records->tasks, (guint)number + 1);
    struct deed *deed = &g_array_index(records->tasks, struct deed, number);
    g_assert_cmpuint(deed->count, ==, 0);
    memcpy(deed->args, desc->args, MIN(desc->args_bytes, sizeof deed->args));
    deed->waits = desc->codelet == run->waits;
    deed->adds = desc->codelet == run->add[0] || desc->codelet == run->add[1];
    deed->count = desc->access_count;
    deed->handles = g_new(uint64_t, deed->count + 1);
    for (size_t i = 0; i < deed->count; i++) {
        const struct duet_handle *handle = desc->accesses[i].handle;
        deed->handles[i] = handle->id;
        if (handle->id >= records->places->len)
            g_array_set_size(records->places, (guint)handle->id + 1);
        struct duet_buffer *host = &place_of(records, handle->id)->host;
        duet__handle_buffer(handle, host);
        for (unsigned h = 0; handle->layout && h < handle_count(&run->setting); h++)
            if (run->handles[h] == handle)
                *host = run->real[h];
    }
}

static void note_touch(struct run *run, struct step *step)
{
    double now = duet_now(run->duet);
    const struct deed deed = {.touched = step, .start_s = now, .end_s = now};
    g_array_append_val(records_of(run)->deeds, deed);
}

/* ------------------------------------------------------------------------------------------- */
/* Afterwards                                                                                   */

struct moment {
    double date;
    enum { ENDS, TOUCHES, BEGINS } what; /* in this order at one date */
    unsigned number;                     /* then in order of appearance */
    struct deed *deed;
};

static int by_date(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    if (a->date != b->date)
        return a->date < b->date ? -1 : 1;
    if (a->what != b->what)
        return a->what < b->what ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* A handle's data in a memory. */
static struct duet_buffer data_at(struct records *records, uint64_t handle, unsigned node)
{
    struct place *place = place_of(records, handle);
    struct duet_buffer buffer = place->host;
    if (node == DUET_HOST && buffer.data)
        return buffer;
    if (!place->devices)
        place->devices = g_new0(uint64_t *, GPUS_MAX + 1);
    if (!place->devices[node])
        place->devices[node] = g_new0(uint64_t, buffer.rows * buffer.cols);
    buffer.data = place->devices[node];
    buffer.ld = buffer.rows;
    return buffer;
}

/* Between a handle's data somewhere and words without gaps. */
static void move(const struct duet_buffer *data, uint64_t *words, bool in)
{
    for (size_t col = 0; col < data->cols; col++) {
        uint64_t *there = word(data, 0, col), *here = words + col * data->rows;
        memcpy(in ? there : here, in ? here : there, data->rows * sizeof *words);
    }
}

static void copy_at(struct records *records, struct deed *deed, bool begins)
{
    const struct duet_event *copy = deed->copy;
    struct duet_buffer data = data_at(records, copy->id, begins ? copy->source : copy->destination);
    if (begins)
        deed->moved = g_new(uint64_t, data.rows * data.cols);
    move(&data, deed->moved, !begins);
}

/* Carries out an initialisation or combination of contributions. */
static void reduction_at(struct run *run, struct deed *deed, bool begins)
{
    struct duet_buffer buffers[2];
    for (size_t i = 0; i < deed->count; i++)
        buffers[i] = data_at(records_of(run), deed->handles[i], deed->node);
    const struct duet_call call = {.buffers = buffers, .buffer_count = deed->count};
    if (!begins)
        (void)(deed->own == CLEARS ? clear_sum : add_up)(&call);
}

/* Checks that a task's data is there when it begins, and still when it ends. */
static void task_at(struct run *run, struct deed *deed, bool begins)
{
    struct duet_buffer buffers[2 * ACCESSES_MAX + 1];
    struct argument argument;
    struct addition addition;
    if (deed->own) {
        reduction_at(run, deed, begins);
        return;
    }
    memcpy(&argument, deed->args, sizeof argument);
    memcpy(&addition, deed->args, sizeof addition);
    size_t count = 0;
    for (size_t i = 0; i < deed->count; i++) {
        const struct duet_buffer data = data_at(records_of(run), deed->handles[i], deed->node);
        bool of_step = !deed->adds && !argument.number && i < argument.step->count;
        buffers[count] = data;
        count += of_step ? show(run, argument.step->handles[i], &data, &buffers[count]) : 1;
    }
    const uint8_t both[] = {DUET_RW}, *modes = deed->adds ? both : modes_of(&argument);
    uint64_t read = read_all(addition.salt, buffers, modes, count);
    if (begins)
        deed->read = read;
    g_assert_cmphex(read, ==, deed->read);
    if (begins && !deed->adds && !argument.number)
        argument.step->seen = look_back(argument.step);
    if (begins)
        return;
    if (!deed->adds)
        atomic_fetch_add(&argument.step->computed, 1);
    if (deed->adds && deed->count)
        add_to(buffers[0].data, addition.salt);
    else if (deed->adds)
        (void)atomic_fetch_add(&run->real_bare, mix(addition.salt));
    else
        argument.step->results[argument.number] = compute(argument.salt, buffers, modes, count);
}

static void happen(struct run *run, const struct moment *moment)
{
    struct deed *deed = moment->deed;
    if (moment->what == TOUCHES)
        deed->touched->results[0] = touch(deed->touched, &run->real[deed->touched->handles[0]]);
    else if (deed->copy)
        copy_at(records_of(run), deed, moment->what == BEGINS);
    else
        task_at(run, deed, moment->what == BEGINS);
}

/*
 * Checks that a task ran once, when it was ready, and on cores of its own as long as it gives
 * itself.
 */
static void check_task(const struct duet_machine *machine, const struct duet_event *event,
                       struct deed *deed)
{
    const char *arch = machine->archs[machine->workers[event->worker].arch].name;
    g_assert_cmpfloat(deed->end_s, ==, 0);
    g_assert_cmpfloat(event->start_s, >=, event->ready_s);
    if (!machine->cores)
        g_assert_cmpfloat_with_epsilon(event->end_s - event->start_s,
                                       deed->own ? 1e-6 : cost(deed->args, arch), 1e-12);
    deed->node = event->source;
    deed->start_s = event->start_s;
    deed->end_s = event->end_s;
}

static void add_moments(GArray *moments, struct deed *deed)
{
    struct moment moment = {.date = deed->start_s,
                            .what = deed->touched ? TOUCHES : BEGINS,
                            .number = moments->len,
                            .deed = deed};
    g_array_append_val(moments, moment);
    moment.date = deed->end_s;
    moment.what = ENDS;
    if (!deed->touched)
        g_array_append_val(moments, moment);
}

static int by_task(const void *left, const void *right)
{
    const struct duet_trace_access *a = left, *b = right;
    return (a->task > b->task) - (a->task < b->task);
}

/* Notes a reduction: only the records know the contributions and their makers. */
static void note_reduction(const struct run *run, const struct duet_event *event,
                           const struct duet_trace_access *accesses, size_t count)
{
    struct records *records = records_of(run);
    struct deed *deed = &g_array_index(records->tasks, struct deed, event->id);
    if (event->kernel == run->clear->index)
        deed->own = CLEARS;
    else if (event->kernel == run->add_up->index)
        deed->own = ADDS_UP;
    const struct duet_trace_access key = {.task = event->id},
                                   *found = bsearch(&key, accesses, count, sizeof key, by_task);
    if (!found || (!deed->adds && !deed->own))
        return;
    while (found > accesses && found[-1].task == event->id)
        found--;
    deed->count = deed->own == ADDS_UP ? 2 : 1;
    g_free(deed->handles);
    deed->handles = g_new(uint64_t, deed->count);
    for (size_t i = 0; i < deed->count; i++) {
        deed->handles[i] = found[i].handle;
        if (found[i].handle >= records->places->len)
            g_array_set_size(records->places, (guint)found[i].handle + 1);
        struct duet_buffer *shape = &place_of(records, found[i].handle)->host;
        if (!shape->rows)
            *shape = (struct duet_buffer){.rows = SUM_WORDS,
                                          .cols = 1,
                                          .ld = SUM_WORDS,
                                          .element_bytes = sizeof(uint64_t)};
    }
}

/* No run is shorter than its bounds, unless tasks were not run. */
static void check_bounds(const struct run *run)
{
    const struct duet__bounds bounds = duet__bounds(run->duet, true);
    const struct setting *setting = &run->setting;
    struct duet_stats stats;
    duet_stats(run->duet, &stats);
    if (setting->cancel_at || setting->cancel_step || setting->loses || setting->breaks)
        return;
    g_assert_cmpfloat(stats.makespan_s, >=, bounds.critical_path_s * (1 - 1e-9));
    g_assert_cmpfloat(stats.makespan_s, >=, bounds.mixed_s * (1 - 1e-9));
    g_assert_cmpfloat(stats.makespan_s, >=, bounds.links_s * (1 - 1e-9));
}

/* Checks that nothing overlaps on a worker, nor on a device's engine for one direction. */
static void check_exclusive(const struct duet_machine *m, const struct records *records,
                            const struct duet_event *events, size_t count)
{
    static const double PRECISION_S = 1e-12; /* of SimGrid */
    g_autofree double *worker = g_new0(double, m->worker_count);
    g_autofree double *in = g_new0(double, m->node_count), *out = g_new0(double, m->node_count);
    for (size_t i = 0; i < count; i++) { /* by start */
        const struct duet_event *event = &events[i];
        bool task = event->kind == DUET_EVENT_TASK;
        /* others run in the middle of a task that waits */
        if (task && g_array_index(records->tasks, struct deed, event->id).waits)
            continue;
        double *busy[] = {task                         ? &worker[event->worker]
                          : event->source != DUET_HOST ? &out[event->source]
                                                       : NULL,
                          !task && event->destination != DUET_HOST ? &in[event->destination]
                                                                   : NULL};
        for (unsigned k = 0; k < 2; k++) {
            if (!busy[k])
                continue;
            g_assert_cmpfloat(event->start_s, >=, *busy[k] - PRECISION_S);
            *busy[k] = event->end_s;
        }
    }
}

/* Checks that the statistics are what the records sum up to. */
static void check_statistics(const struct run *run, const struct duet_event *events, size_t count)
{
    struct duet_stats stats, sum = {0};
    duet_stats(run->duet, &stats);
    for (size_t i = 0; i < count; i++) {
        const struct duet_event *event = &events[i];
        if (event->kind == DUET_EVENT_TASK) {
            struct deed *deed = &g_array_index(records_of(run)->tasks, struct deed, event->id);
            sum.tasks += !deed->counted;
            deed->counted = true;
            sum.busy_s += event->end_s - event->start_s;
            sum.last_end_s = MAX(sum.last_end_s, event->end_s);
        } else if (event->source == DUET_HOST) {
            sum.bytes_to_device += event->bytes;
            sum.copies_to_device++;
        } else if (event->destination == DUET_HOST) {
            sum.bytes_to_host += event->bytes;
            sum.copies_to_host++;
            sum.write_backs += event->write_back;
        } else {
            sum.bytes_between += event->bytes;
            sum.copies_between++;
        }
    }
    g_assert_cmpuint(stats.tasks, ==, sum.tasks);
    g_assert_cmpuint(stats.bytes_to_device, ==, sum.bytes_to_device);
    g_assert_cmpuint(stats.bytes_to_host, ==, sum.bytes_to_host);
    g_assert_cmpuint(stats.bytes_between, ==, sum.bytes_between);
    g_assert_cmpuint(stats.copies_to_device, ==, sum.copies_to_device);
    g_assert_cmpuint(stats.copies_to_host, ==, sum.copies_to_host);
    g_assert_cmpuint(stats.copies_between, ==, sum.copies_between);
    g_assert_cmpuint(stats.write_backs, ==, sum.write_backs);
    /* every read that was no hit has started a copy into its device, as hints do */
    g_assert_cmpuint(stats.reads_on_device - stats.read_hits, <=,
                     sum.copies_to_device + sum.copies_between);
    g_assert_cmpuint(stats.merged, <=, stats.read_hits);
    if (!run->setting.nested && !run->setting.expand) /* tasks that expand have no record */
        g_assert_cmpuint(stats.pops + stats.steals, ==, sum.tasks + stats.revocations);
    g_assert_cmpfloat_with_epsilon(stats.busy_s, sum.busy_s, 1e-9 * sum.busy_s);
    g_assert_cmpfloat(stats.last_end_s, ==, sum.last_end_s);
}

static void carry_out(struct run *run)
{
    check_bounds(run);
    struct duet_trace_access *accesses;
    size_t access_count;
    g_assert_cmpint(duet_trace_accesses(run->duet, &accesses, &access_count), ==, DUET_OK);
    g_array_set_size(records_of(run)->tasks, (guint)atomic_load(&run->duet->submitted) + 1);
    struct records *records = records_of(run);
    GArray *moments = g_array_new(FALSE, FALSE, sizeof(struct moment));
    struct duet_event *events;
    size_t count;
    g_assert_cmpint(duet_trace_events(run->duet, &events, &count), ==, DUET_OK);
    testing_check_released(events, count, 0);
    check_exclusive(duet_runtime_machine(run->duet), records, events, count);
    check_statistics(run, events, count);
    struct deed *copies = g_new0(struct deed, count);
    for (guint i = 0; i < records->deeds->len; i++)
        add_moments(moments, &g_array_index(records->deeds, struct deed, i));
    for (size_t i = 0; i < count; i++) {
        const struct duet_event *event = &events[i];
        struct deed *deed = &copies[i];
        *deed = (struct deed){.copy = event, .start_s = event->start_s, .end_s = event->end_s};
        if (event->kind == DUET_EVENT_TASK) {
            note_reduction(run, event, accesses, access_count);
            deed = &g_array_index(records->tasks, struct deed, event->id);
            if (deed->waits) /* it computes nothing itself, in several pieces */
                continue;
            check_task(duet_runtime_machine(run->duet), event, deed);
        }
        add_moments(moments, deed);
    }
    g_array_sort(moments, by_date);
    for (guint i = 0; i < moments->len; i++)
        happen(run, &g_array_index(moments, struct moment, i));
    for (size_t i = 0; i < count; i++)
        g_free(copies[i].moved);
    g_free(copies);
    free(accesses);
    free(events);
    g_array_free(moments, TRUE);
}

/* ------------------------------------------------------------------------------------------- */
/* Settings                                                                                     */

static void close_sim(struct run *run)
{
    g_autofree struct records *records = records_of(run);
    for (guint i = 0; i < records->places->len; i++) {
        struct place *place = place_of(records, i);
        for (unsigned n = 0; place->devices && n <= GPUS_MAX; n++)
            g_free(place->devices[n]);
        g_free(place->devices);
    }
    for (guint i = 0; i < records->tasks->len; i++)
        g_free(g_array_index(records->tasks, struct deed, i).handles);
    g_array_free(records->places, TRUE);
    g_array_free(records->tasks, TRUE);
    g_array_free(records->deeds, TRUE);
}

static void draw_costs(struct duet_machine *machine, uint64_t *rng)
{
    double *costs[] = {&machine->costs.submit_s,        &machine->costs.push_s,
                       &machine->costs.pop_s,           &machine->costs.steal_s,
                       &machine->costs.kernel_launch_s, &machine->costs.copy_launch_s,
                       &machine->costs.event_s,         &machine->costs.wake_s,
                       &machine->costs.spin_s};
    for (unsigned i = 0; i < G_N_ELEMENTS(costs); i++)
        *costs[i] = one_of(rng, 2) ? 0 : 1e-6 * duet_random_unit(rng);
    machine->cores = one_of(rng, 2) ? 0 : 1 + duet_random_below(rng, 4);
    machine->first_waits = machine->worker_count > machine->node_count - 1 && one_of(rng, 2);
}

static int open_sim(struct run *run, struct duet_message *message)
{
    static const struct duet__calibration empty;
    const struct duet_config *config = &run->setting.config;
    const struct testing_machine make = {.cpus = (unsigned)config->cpus,
                                         .gpus = (unsigned)config->gpus,
                                         .gpu_archs = run->setting.archs,
                                         .capacity_bytes = config->gpu_memory_bytes,
                                         .no_peer = config->no_peer,
                                         .window = config->gpu_window,
                                         .window_short = config->gpu_window_short};
    const struct sim_options options = {.calibration = &empty,
                                        .seed = config->seed,
                                        .effects = DUET__EFFECTS};
    uint64_t rng = duet_random_stream(config->seed, 4);
    struct records *records = g_new(struct records, 1);
    static struct duet__engine_ops ops;
    ops = *duet__sim_ops();
    ops.submitted = see_submitted;
    struct duet_machine machine;
    testing_machine(&machine, &make);
    draw_costs(&machine, &rng);
    struct duet__core_config core = {.machine = &machine,
                                     .policy = duet_policy_find(config->policy),
                                     .model = duet_model_find(config->model),
                                     .perturbation = config->perturbation,
                                     .seed = config->seed,
                                     .window = config->window,
                                     .set_arch = config->set_arch,
                                     .keep_going = config->keep_going,
                                     .nearest_source = config->nearest_source,
                                     .hold = config->hold,
                                     .record_accesses = true,
                                     .ops = &ops};
    *records = (struct records){.places = g_array_new(FALSE, TRUE, sizeof(struct place)),
                                .tasks = g_array_new(FALSE, TRUE, sizeof(struct deed)),
                                .deeds = g_array_new(FALSE, TRUE, sizeof(struct deed))};
    run->own = records;
    int error = duet__priorities_read(config->priorities, &core.priorities, message);
    if (!error)
        error = duet__sim_new(&core.engine, &machine, &options, message);
    if (!error)
        error = duet__core_new(&run->duet, &core, message);
    if (!error)
        duet__sim_attach(core.engine, run->duet);
    if (!error)
        duet__keep_entered(run->duet);
    duet_machine_fini(&machine);
    return error;
}

static void draw(struct setting *setting)
{
    static const struct world world = {.arch = "cuda",
                                       .open = open_sim,
                                       .submitted = note_task,
                                       .touched = note_touch,
                                       .carry_out = carry_out,
                                       .closed = close_sim};
    uint64_t rng = duet_random_stream(setting->config.seed, 1);
    setting->world = &world;
    draw_machine(setting, &rng);
    draw_program(setting, &rng, 200);
    setting->alone = true;
    setting->shared = false;
    setting->submitters = 1;
    setting->fail_kernel = setting->fail_copy = 0;
    setting->graphs = setting->graphs && !setting->config.window; /* note_task counts tasks */
}

static void test_programs(void)
{
    (void)run_programs(33, draw, 1, true);
}

TEST_MAIN(test_programs)
