/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of traces: which member of which struct each is. docs/formats.md says what they mean. */
#include "trace/trace.h"

#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include <glib.h>

#include <duet/handles.h>

/* Generous, and small enough that no input can exhaust the memory (routes are pairs of nodes). */
enum {
    MOST_NODES = 1024,
    MOST_WORKERS = 16384,
    MOST_ARCHS = 64,
    MOST_ACCESSES = 1 << 20, /* most accesses of a task */
};

#define WHOLE .most = (double)INT64_MAX
#define SECONDS .most = DUET__MAKESPAN_MOST_S
#define MOST_US 1e15 /* many years: sums and products overflow nowhere */
#define DATE .least = -MOST_US, .most = MOST_US

/* ------------------------------------------------------------------------------------------- */
/* Facts of the run                                                                             */

#define STAT(member) .offset = offsetof(struct duet_stats, member)
#define COUNT(member) #member, DUET__INTEGER, DUET__OPTIONAL, STAT(member), WHOLE
#define AMOUNT(member) #member, DUET__NUMBER, DUET__OPTIONAL, STAT(member), .most = DBL_MAX

static const struct duet__field seconds = {.kind = DUET__NUMBER, SECONDS};
static const struct duet__list busy = {.array = offsetof(struct duet_stats, busy_by_arch_s),
                                       .size = sizeof(double),
                                       .most = DUET_STATS_ARCHS,
                                       .inside = true};

static const struct duet__field stats_fields[] = {
    {COUNT(tasks)},
    {COUNT(accesses)},
    {AMOUNT(first_submit_s)},
    {AMOUNT(last_end_s)},
    {"makespan_s", DUET__NUMBER, DUET__OPTIONAL, STAT(makespan_s), SECONDS},
    {AMOUNT(flops)},
    {COUNT(bytes_to_device)},
    {COUNT(bytes_to_host)},
    {COUNT(bytes_between)},
    {COUNT(copies_to_device)},
    {COUNT(copies_to_host)},
    {COUNT(copies_between)},
    {COUNT(evictions)},
    {COUNT(write_backs)},
    {COUNT(reads_on_device)},
    {COUNT(read_hits)},
    {COUNT(merged)},
    {COUNT(pushes)},
    {COUNT(pops)},
    {COUNT(steals)},
    {COUNT(steal_attempts)},
    {AMOUNT(busy_s)},
    {"busy_by_arch_s", DUET__VALUES, DUET__OPTIONAL, .list = &busy, .fields = &seconds},
    {AMOUNT(critical_path_s)},
    DUET__OTHER_KEYS,
};

#define CHOICE(member)                                                                             \
#member, .when = DUET__OPTIONAL, .offset = offsetof(struct duet_choice, member)

const struct duet__field duet__choice_fields[] = {
    {CHOICE(policy), .kind = DUET__WORDS, .room = sizeof((struct duet_choice *)0)->policy},
    {CHOICE(why), .kind = DUET__WORDS, .room = sizeof((struct duet_choice *)0)->why},
    {CHOICE(tasks), .kind = DUET__INTEGER, .most = (double)INT64_MAX},
    {CHOICE(predicted_s), .kind = DUET__NUMBER, SECONDS},
    {CHOICE(runner_up), .kind = DUET__WORDS, .room = sizeof((struct duet_choice *)0)->runner_up},
    {CHOICE(runner_up_s), .kind = DUET__NUMBER, SECONDS},
    DUET__OTHER_KEYS,
};

#define SPENT(member) .offset = offsetof(struct duet__spent, member)
static const struct duet__field spent_fields[] = {
    {"kernel", DUET__WORDS, SPENT(kernel), .room = DUET_NAME_MAX},
    {"arch", DUET__NAME, SPENT(arch), .room = DUET_NAME_MAX},
    {"work", DUET__NUMBER, SPENT(work), .most = DBL_MAX},
    {"seconds", DUET__NUMBER, SPENT(seconds), .most = DBL_MAX},
    DUET__OTHER_KEYS,
};
static const struct duet__list spent = {.what = "kernel",
                                        .count = offsetof(struct duet__trace, spent_count),
                                        .array = offsetof(struct duet__trace, spent),
                                        .size = sizeof(struct duet__spent),
                                        .most = UINT32_MAX,
                                        .fields = spent_fields};

#define AT(member) .offset = offsetof(struct duet__trace, member)
#define TEXT(member) #member, DUET__COPY, DUET__OPTIONAL, AT(member)

const struct duet__field duet__trace_fields[] = {
    {TEXT(world)},
    {TEXT(workload)},
    {TEXT(settings)},
    {"n", DUET__INTEGER, DUET__OPTIONAL, AT(n), .most = (double)INT64_MAX},
    {"tile", DUET__INTEGER, DUET__OPTIONAL, AT(tile), .most = (double)INT64_MAX},
    {"scale", DUET__NUMBER, DUET__OPTIONAL, AT(scale), .least = DBL_MIN, .most = DBL_MAX},
    {TEXT(estimated)},
    {TEXT(policy)},
    {TEXT(options)},
    {TEXT(platform_file)},
    {TEXT(platform_digest)},
    {"choice", DUET__OBJECT, DUET__OPTIONAL, AT(run.choice), .fields = duet__choice_fields},
    {"barred", DUET__WORDS, DUET__OPTIONAL, AT(run.barred),
     .room = sizeof((struct duet__run *)0)->barred},
    {"expected", DUET__LIST, DUET__OPTIONAL, .list = &spent},
    {"releases", DUET__BOOLEAN, DUET__OPTIONAL, AT(releases)},
    {"seed", DUET__DIGITS, DUET__OPTIONAL, AT(run.seed)},
    {"critical_path_s", DUET__NUMBER, DUET__OPTIONAL, AT(run.bounds.critical_path_s), SECONDS},
    {"area_s", DUET__NUMBER, DUET__OPTIONAL, AT(run.bounds.area_s), SECONDS},
    {"mixed_s", DUET__NUMBER, DUET__OPTIONAL, AT(run.bounds.mixed_s), SECONDS},
    {"links_s", DUET__NUMBER, DUET__OPTIONAL, AT(run.bounds.links_s), SECONDS},
    {"stats", DUET__OBJECT, DUET__OPTIONAL, AT(run.stats), .fields = stats_fields},
    DUET__OTHER_KEYS,
};
#undef AT

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

#define ARRAY(counter, elements)                                                                   \
    .count = offsetof(struct duet_machine, counter),                                               \
    .array = offsetof(struct duet_machine, elements),                                              \
    .size = sizeof(((struct duet_machine *)NULL)->elements[0])
#define NAME(type, member)                                                                         \
    .kind = DUET__NAME, .offset = offsetof(struct type, member), .room = DUET_NAME_MAX

static int check_node(const struct duet__json *at, void *root, unsigned index)
{
    const struct duet_node *nodes = ((struct duet_machine *)root)->nodes;
    for (unsigned i = 0; i < index; i++)
        if (strcmp(nodes[i].name, nodes[index].name) == 0)
            return duet__json_fail(at, DUET_EPARSE, "two memories are called '%s'", nodes[i].name);
    return DUET_OK;
}

static const struct duet__list nodes = {.what = "memory",
                                        ARRAY(node_count, nodes),
                                        .least = 1,
                                        .most = MOST_NODES,
                                        .check = check_node};
/* Older traces have the architectures of workers alone. */
static const struct duet__list archs = {.what = "architecture",
                                        ARRAY(arch_count, archs),
                                        .most = MOST_ARCHS,
                                        .grows = true};

static const struct duet__field worker_fields[] = {
    {"name", NAME(duet_worker, name)},
    {"architecture", DUET__INDEX, .offset = offsetof(struct duet_worker, arch), .list = &archs},
    {"node", DUET__INDEX, .offset = offsetof(struct duet_worker, node), .list = &nodes},
    {"socket", DUET__UNSIGNED, DUET__OPTIONAL, .offset = offsetof(struct duet_worker, socket),
     .most = MOST_WORKERS},
    DUET__OTHER_KEYS,
};

const struct duet__list duet__trace_workers = {.what = "worker",
                                               ARRAY(worker_count, workers),
                                               .least = 1,
                                               .most = MOST_WORKERS,
                                               .lines = true,
                                               .fields = worker_fields};

static const struct duet__field arch_name = {NAME(duet_arch, name)},
                                backend = {NAME(duet_arch, backend)},
                                node_name = {NAME(duet_node, name)},
                                capacity = {.kind = DUET__INTEGER,
                                            WHOLE,
                                            .offset = offsetof(struct duet_node, capacity_bytes)};

#define VALUES(lines, value) DUET__VALUES, DUET__OPTIONAL, .list = (lines), .fields = (value)

const struct duet__field duet__trace_machine_fields[] = {
    {"platform", NAME(duet_machine, name), .when = DUET__OPTIONAL},
    {"architectures", VALUES(&archs, &arch_name)},
    {"backends", VALUES(&archs, &backend)},
    {"nodes", VALUES(&nodes, &node_name)},
    {"memory_bytes", VALUES(&nodes, &capacity)},
    {"workers", DUET__LIST, DUET__OPTIONAL, .list = &duet__trace_workers},
    DUET__OTHER_KEYS,
};

/* ------------------------------------------------------------------------------------------- */
/* Kernels and copies                                                                           */

/* Names of architectures, with commas between them. */
static int read_where(const struct duet__json *at, void *into, void *root)
{
    const struct duet_machine *machine = root;
    uint64_t *where = &((struct duet__trace_record *)into)->event.where;
    const char *text = "";
    int error = duet__json_string(at, &text);
    g_auto(GStrv) names = g_strsplit(text, ",", -1);
    for (char **name = names; *name && !error; name++) {
        unsigned arch = 0;
        while (arch < machine->arch_count && strcmp(machine->archs[arch].name, *name) != 0)
            arch++;
        if (arch == machine->arch_count)
            error = duet__json_fail(at, DUET_EPARSE, "there is no architecture '%.40s'", *name);
        else
            *where |= UINT64_C(1) << arch;
    }
    return error;
}

/* Writes the architectures that a task may run on, unless it may run on all. */
static void write_where(struct duet__json_writer *writer, const void *from, const void *root)
{
    const struct duet_machine *machine = root;
    const uint64_t where = ((const struct duet__trace_record *)from)->event.where;
    const uint64_t all = (UINT64_C(2) << (machine->arch_count - 1)) - 1;
    g_autoptr(GString) names = NULL;
    if (!where || (where & all) == all)
        return;
    names = g_string_new(NULL);
    for (unsigned arch = 0; arch < machine->arch_count; arch++)
        if (where >> arch & 1)
            g_string_append_printf(names, "%s%s", names->len ? "," : "", machine->archs[arch].name);
    duet__json_put_string(writer, "where", names->str);
}

/* Reads [handle, bytes, mode], of a part also its whole, which was there before, and its cut. */
static int read_access(const struct duet__json *at, struct duet_trace_access *access)
{
    static const char letters[] = DUET__TRACE_LETTERS;
    unsigned count = 0, bits = 0;
    int error = duet__json_array(at, 3, 5, &count);
    uint64_t *const numbers[] = {&access->handle, &access->bytes, NULL, &access->whole,
                                 &access->cut};
    const char *mode = "";
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json part = duet__json_element(at, i);
        const uint64_t most = i == 3 && access->handle ? access->handle - 1 : INT64_MAX;
        error = numbers[i] ? duet__json_integer(&part, 0, most, numbers[i])
                           : duet__json_string(&part, &mode);
    }
    for (unsigned i = 0; letters[i]; i++)
        bits |= (unsigned)(strchr(mode, letters[i]) != NULL) << i;
    access->reads = bits & DUET_R;
    access->writes = bits & DUET_W;
    access->temporary = bits & 32;
    access->mode = bits & 8    ? DUET_REDUCE
                   : bits & 16 ? DUET_SCRATCH
                   : bits & 4  ? DUET_COMMUTE
                               : bits & DUET_RW;
    return error;
}

/* Reads the data that a task has used, or, under "after", the tasks that it came after. */
static int read_accesses(const struct duet__json *at, void *into, void *root)
{
    struct duet__trace_record *record = into;
    unsigned count = 0;
    int error = duet__json_array(at, 0, MOST_ACCESSES, &count);
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json one = duet__json_element(at, i);
        struct duet_trace_access access = {.task = record->event.id,
                                           .index = record->accesses->len - record->first};
        error = strcmp(at->key, "after") == 0
                    ? duet__json_integer(&one, 1, INT64_MAX, &access.after)
                    : read_access(&one, &access);
        g_array_append_val(record->accesses, access);
    }
    return error;
}

static const char *say_mode(const struct duet_trace_access *access,
                            char text[sizeof DUET__TRACE_LETTERS])
{
    const unsigned bits = access->mode | (access->reads ? DUET_R : 0) |
                          (access->writes ? DUET_W : 0) | (access->temporary ? 32 : 0);
    unsigned length = 0;
    for (unsigned i = 0; i < strlen(DUET__TRACE_LETTERS); i++)
        if (bits >> i & 1)
            text[length++] = DUET__TRACE_LETTERS[i];
    text[length] = 0;
    return text;
}

/* The data that a task has used: handle, bytes, "rw", of parts their whole and cut; then the tasks
   that it came after explicitly. */
static void write_accesses(struct duet__json_writer *json, const void *from, const void *root)
{
    const struct duet__trace_record *record = from;
    const struct duet__recording *recording = record->recording;
    const size_t first = duet__recording_accesses(recording, record->event.id),
                 end = record->event.paused ? first : recording->access_count;
    const char *open = NULL;
    for (size_t i = first; i < end && recording->accesses[i].task == record->event.id; i++) {
        const struct duet_trace_access *access = &recording->accesses[i];
        const char *key = access->after ? "after" : "accesses";
        char mode[sizeof DUET__TRACE_LETTERS];
        if (i > first && access->index == access[-1].index)
            continue; /* the task was run again */
        if (open && strcmp(open, key) != 0)
            duet__json_end(json, ']');
        if (!open || strcmp(open, key) != 0)
            duet__json_begin(json, key, '[');
        open = key;
        if (access->after)
            duet__json_put_integer(json, NULL, access->after);
        else
            duet__json_print(json, "[%" PRIu64 ", %" PRIu64 ", %s", access->handle, access->bytes,
                             say_mode(access, mode));
        if (access->whole)
            duet__json_print(json, "%" PRIu64 ", %" PRIu64, access->whole, access->cut);
        if (!access->after)
            duet__json_end(json, ']');
    }
    if (open)
        duet__json_end(json, ']');
}

#define AT(member) .offset = offsetof(struct duet__trace_record, member)
#define RELEASE                                                                                    \
    {"release", DUET__CHOICE, DUET__OPTIONAL, AT(release), .choices = duet__release_names},        \
        {"by", DUET__UNSIGNED, DUET__OPTIONAL, AT(event.released_by), .most = UINT32_MAX},         \
    {                                                                                              \
        "used", DUET__INTEGER, DUET__OPTIONAL, AT(event.used_bytes), WHOLE                         \
    }
#define FLAG(member) #member, DUET__BOOLEAN, DUET__OPTIONAL, AT(event.member)
#define EVENT(name_room, table)                                                                    \
    {"ph", DUET__TEXT, AT(phase)}, {"pid", DUET__UNSIGNED, AT(process), .most = UINT32_MAX},       \
        {"tid", DUET__UNSIGNED, AT(thread), .most = UINT32_MAX},                                   \
        {"ts", DUET__MICROS, AT(event.start_s), DATE},                                             \
        {"dur", DUET__MICROS, AT(event.end_s), .most = MOST_US},                                   \
        {"cat", DUET__TEXT, AT(category)}, {"name", DUET__TEXT, AT(name), .room = (name_room)},    \
        {"args", DUET__OBJECT, .fields = (table)}, DUET__OTHER_KEYS

static const struct duet__field kernel_args[] = {
    {"task", DUET__INTEGER, AT(event.id), WHOLE},
    {"bytes", DUET__INTEGER, AT(event.bytes), WHOLE},
    {"work", DUET__NUMBER, DUET__OPTIONAL, AT(event.work), .most = DBL_MAX},
    {"accesses", DUET__CUSTOM, DUET__OPTIONAL, .read = read_accesses, .write = write_accesses},
    {"after", DUET__CUSTOM, DUET__OPTIONAL, .read = read_accesses},
    {"priority", DUET__NUMBER, DUET__OPTIONAL, AT(priority), .least = INT32_MIN, .most = INT32_MAX},
    {"where", DUET__CUSTOM, DUET__OPTIONAL, .read = read_where, .write = write_where},
    {FLAG(own)},
    {FLAG(child)},
    {"name", DUET__TEXT, DUET__OPTIONAL, AT(own)},
    {"iteration", DUET__UNSIGNED, DUET__OPTIONAL, AT(event.iteration), .most = UINT32_MAX},
    {"submitted_us", DUET__MICROS, AT(event.submit_s), DATE},
    {"ready_us", DUET__MICROS, AT(event.ready_s), DATE},
    RELEASE,
    {FLAG(paused)},
    {FLAG(failed)},
    DUET__OTHER_KEYS,
};

static const struct duet__field copy_args[] = {
    {"handle", DUET__INTEGER, AT(event.id), WHOLE},
    {"bytes", DUET__INTEGER, AT(event.bytes), WHOLE},
    {"source", DUET__INDEX, AT(source), .list = &nodes},
    {"destination", DUET__INDEX, AT(destination), .list = &nodes},
    {"ready_us", DUET__MICROS, AT(event.ready_s), DATE},
    RELEASE,
    {FLAG(write_back)},
    {FLAG(failed)},
    DUET__OTHER_KEYS,
};

const struct duet__field duet__trace_kernel_fields[] = {EVENT(DUET_NAME_MAX, kernel_args)},
                         duet__trace_copy_fields[] = {EVENT(0, copy_args)};
