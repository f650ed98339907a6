/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of platform files: which member of which struct each is, and in what range. README.md
 * says what they mean. Ranges are wide enough for any machine and narrow enough to catch a wrong
 * unit.
 */

#include <math.h>
#include <string.h>

#include "platforms/internal.h"

#define LEAST_BPS 1e3
#define MOST_BPS 1e15
#define MOST_SECONDS 1e3 /* the most of a cost or a latency */
#define MOST_BYTES 0x1p50

#define MOST_WORK 1e24
#define MOST_TIME 1e9     /* the most of a kernel's time */
#define MOST_RATIO 1e9    /* the most of a ratio of two measured times */
#define MOST_DEVIATION 10 /* the most of a relative deviation */
#define MOST_SAMPLES 0x1p53

#define AT(type, member) .offset = offsetof(struct type, member)
#define SIZE(type, member) .room = sizeof(((struct type *)NULL)->member)
#define RANGE(from, to) .least = (from), .most = (to)

/* Lines of a table whose keys are the names of the members. */
#define NAME(type, member) #member, DUET__NAME, AT(type, member), SIZE(type, member)
#define NUMBER(type, member, from, to) #member, DUET__NUMBER, AT(type, member), RANGE(from, to)
#define INTEGER(type, member, from, to) #member, DUET__INTEGER, AT(type, member), RANGE(from, to)
#define OBJECT(type, member, table) #member, DUET__OBJECT, AT(type, member), .fields = (table)
#define ORIGIN "origin", DUET__ORIGIN, AT(duet__platform, origin)
#define ELSEWHERE(name) .key = (name), .kind = DUET__CUSTOM, .when = DUET__OPTIONAL

/* An array of a platform; `count` and `array` are members. */
#define LIST(name, count, array, type, least, most, table, call)                                   \
    name, offsetof(struct duet__platform, count), offsetof(struct duet__platform, array),          \
        sizeof(struct type), least, most, .fields = (table), .check = (call)

static int twice(const struct duet__json *at, const char *what, const char *name)
{
    const struct duet__json member = duet__json_member(at, "name");
    return duet__json_fail(&member, DUET_EPARSE, "%s %s is there twice", what, name);
}

static const struct duet__field arch_fields[] = {
    {NAME(duet_arch, name)},
    {NAME(duet_arch, backend)},
    {NULL},
};

static int check_arch(const struct duet__json *at, void *root, unsigned index)
{
    const struct duet_arch *archs = ((struct duet__platform *)root)->archs;
    for (unsigned i = 0; i < index; i++)
        if (strcmp(archs[i].name, archs[index].name) == 0)
            return twice(at, "architecture", archs[index].name);
    return DUET_OK;
}

const struct duet__list duet__archs = {LIST("architecture", arch_count, archs, duet_arch, 1,
                                            DUET__MAX_ARCHS, arch_fields, check_arch)};

/* Checks that an architecture is a CPU's, or that it is not. */
static int check_backend(const struct duet__json *parent, const struct duet_arch *arch, bool cpu)
{
    struct duet__json at = duet__json_member(parent, "architecture");
    if ((strcmp(arch->backend, "cpu") == 0) != cpu)
        return duet__json_fail(&at, DUET_EPARSE, "%s has backend %s, expected %s", arch->name,
                               arch->backend, cpu ? "cpu" : "another than cpu");
    return DUET_OK;
}

#define LIMIT(member) NUMBER(duet__platform_limits, member, LEAST_BPS, MOST_BPS)

static const struct duet__field hub_fields[] = {
    {LIMIT(to_device_Bps), .when = DUET__OPTIONAL},
    {LIMIT(to_host_Bps), .when = DUET__OPTIONAL},
    {ORIGIN},
    {NULL},
};

static const struct duet__field socket_fields[] = {
    {"architecture", DUET__INDEX, AT(duet__platform_socket, arch), .list = &duet__archs},
    {"cores", DUET__UNSIGNED, AT(duet__platform_socket, cores), RANGE(1, DUET__MAX_SOCKET_CORES)},
    {OBJECT(duet__platform_socket, hub, hub_fields), .when = DUET__OPTIONAL},
    {ORIGIN},
    {NULL},
};

static int check_socket(const struct duet__json *at, void *root, unsigned index)
{
    const struct duet__platform *p = root;
    unsigned cores = duet__platform_cores(p);
    if (cores > DUET__MAX_CORES)
        return duet__json_fail(at, DUET_EPARSE, "%u cores up to here, the most is %u", cores,
                               DUET__MAX_CORES);
    return check_backend(at, &p->archs[p->sockets[index].arch], true);
}

static const struct duet__list sockets = {LIST("socket", socket_count, sockets,
                                               duet__platform_socket, 1, DUET__MAX_SOCKETS,
                                               socket_fields, check_socket)};

static const struct duet__field figure[] = {
    {NUMBER(duet__platform_figure, bandwidth_Bps, LEAST_BPS, MOST_BPS)},
    {NUMBER(duet__platform_figure, latency_s, 0, MOST_SECONDS)},
    {NULL},
};

static const struct duet__field link_fields[] = {
    {NAME(duet__platform_link, name)},
    {OBJECT(duet__platform_link, to_device, figure)},
    {OBJECT(duet__platform_link, to_host, figure)},
    {ORIGIN},
    {NULL},
};

/* Checks the name of a kind of link: unlike those of the first `count` kinds and of peers. */
static int check_kind_name(const struct duet__json *at, const struct duet__platform *p,
                           unsigned count, const char *name)
{
    struct duet__json member = duet__json_member(at, "name");
    bool known = false;
    if (strcmp(name, DUET__ALL_LINKS) == 0)
        return duet__json_fail(&member, DUET_EPARSE, "%s means all kinds of links: choose another",
                               name);
    for (unsigned i = 0; i < count; i++)
        known = known || strcmp(p->kinds[i].name, name) == 0;
    for (unsigned i = 0; i < DUET_PEERS; i++)
        known = known || strcmp(p->peers[i].name, name) == 0;
    return known ? twice(at, "link kind", name) : DUET_OK;
}

static int check_kind(const struct duet__json *at, void *root, unsigned index)
{
    return check_kind_name(at, root, index, ((struct duet__platform *)root)->kinds[index].name);
}

static const struct duet__list kinds = {LIST("link kind", kind_count, kinds, duet__platform_link, 0,
                                             DUET__MAX_LINK_KINDS, link_fields, check_kind)};

static const char *const reaches[] = {"switch", "socket", "remote", NULL};

static const struct duet__field peer_fields[] = {
    {"reach", DUET__CHOICE, AT(duet__platform_peer, reach), .choices = reaches},
    {"architecture", DUET__INDEX, DUET__OPTIONAL, AT(duet__platform_peer, arch),
     .list = &duet__archs},
    {NAME(duet__platform_peer, name)},
    {OBJECT(duet__platform_peer, up, figure)},
    {OBJECT(duet__platform_peer, down, figure)},
    {"own_link", DUET__BOOLEAN, DUET__OPTIONAL, AT(duet__platform_peer, own_link)},
    {ORIGIN},
    {NULL},
};

static int read_peers(const struct duet__json *at, void *into, void *root)
{
    struct duet__platform *p = root;
    unsigned count = 0;
    int error = duet__json_array(at, 0, DUET_PEERS - DUET_REACHES, &count);
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json element = duet__json_element(at, i);
        struct duet__platform_peer peer = {.arch = DUET__NOWHERE};
        unsigned place = DUET_REACHES;
        error = duet__part_read(&element, peer_fields, &peer, root);
        if (!error && peer.arch != DUET__NOWHERE)
            error = check_backend(&element, &p->archs[peer.arch], false);
        while (p->peers[place].name[0] != '\0' &&
               (p->peers[place].reach != peer.reach || p->peers[place].arch != peer.arch))
            place++;
        place = peer.arch == DUET__NOWHERE ? peer.reach : place;
        if (!error && p->peers[place].name[0] != '\0')
            error = duet__json_fail(&element, DUET_EPARSE, "a second kind of this reach");
        if (!error)
            error = check_kind_name(&element, p, p->kind_count, peer.name);
        if (!error)
            p->peers[place] = peer;
    }
    return error;
}

static void write_peers(struct duet__json_writer *writer, const void *from, const void *root)
{
    const struct duet__platform *p = root;
    if (p->gpu_count == 0)
        return;
    duet__json_begin(writer, "peers", '[');
    for (unsigned i = 0; i < DUET_PEERS; i++) {
        struct duet__platform_peer peer = p->peers[i];
        if (peer.name[0] == '\0')
            continue;
        peer.reach = i < DUET_REACHES ? i : peer.reach;
        peer.arch = i < DUET_REACHES ? DUET__NOWHERE : peer.arch;
        duet__json_begin(writer, NULL, '{');
        duet__fields_write(writer, peer_fields, &peer, root);
        duet__json_end(writer, '}');
    }
    duet__json_end(writer, ']');
}

/* NAN as a latency stands for that of the switch's kind of link. */
static const struct duet__field gpu_fields[] = {
    {"architecture", DUET__INDEX, AT(duet__platform_gpu, arch), .list = &duet__archs},
    {INTEGER(duet__platform_gpu, memory_bytes, 1, MOST_BYTES)},
    {"to_device_limit_Bps", DUET__NUMBER, DUET__OPTIONAL,
     AT(duet__platform_gpu, to_device.bandwidth_Bps), RANGE(LEAST_BPS, MOST_BPS)},
    {"to_host_limit_Bps", DUET__NUMBER, DUET__OPTIONAL,
     AT(duet__platform_gpu, to_host.bandwidth_Bps), RANGE(LEAST_BPS, MOST_BPS)},
    {"to_device_latency_s", DUET__NUMBER, DUET__OPTIONAL,
     AT(duet__platform_gpu, to_device.latency_s), RANGE(0, MOST_SECONDS), .unsaid = NAN},
    {"to_host_latency_s", DUET__NUMBER, DUET__OPTIONAL, AT(duet__platform_gpu, to_host.latency_s),
     RANGE(0, MOST_SECONDS), .unsaid = NAN},
    {NUMBER(duet__platform_gpu, port_in_Bps, LEAST_BPS, MOST_BPS), .when = DUET__OPTIONAL},
    {NUMBER(duet__platform_gpu, port_out_Bps, LEAST_BPS, MOST_BPS), .when = DUET__OPTIONAL},
    {ORIGIN},
    {NULL},
};

static int check_gpu(const struct duet__json *at, void *root, unsigned index)
{
    struct duet__platform *p = root;
    p->gpus[index].position = DUET__NOWHERE;
    return check_backend(at, &p->archs[p->gpus[index].arch], false);
}

static const struct duet__list gpus = {
    LIST("GPU", gpu_count, gpus, duet__platform_gpu, 0, DUET__MAX_GPUS, gpu_fields, check_gpu)};

/* Reads the GPUs of a switch, each of which must exist and be on no other. */
static int read_switch_gpus(const struct duet__json *at, void *into, void *root)
{
    struct duet__platform *p = root;
    unsigned count = 0, device = 0;
    int error = duet__json_array(at, 1, DUET__MAX_GPUS, &count);
    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json element = duet__json_element(at, i);
        error = duet__json_unsigned(&element, 0, DUET__MAX_GPUS, &device);
        if (!error && device >= p->gpu_count)
            error = duet__json_fail(&element, DUET_EPARSE, "no GPU %u (there are %u, from 0)",
                                    device, p->gpu_count);
        else if (!error && p->gpus[device].position != DUET__NOWHERE)
            error = duet__json_fail(&element, DUET_EPARSE, "GPU %u is behind switch %u already",
                                    device, p->gpus[device].position);
        else if (!error)
            p->gpus[device].position =
                (unsigned)((struct duet__platform_switch *)into - p->switches);
    }
    return error;
}

static void write_switch_gpus(struct duet__json_writer *writer, const void *from, const void *root)
{
    const struct duet__platform *p = root;
    duet__json_begin(writer, "gpus", '[');
    for (unsigned i = 0; i < p->gpu_count; i++)
        if (p->gpus[i].position ==
            (unsigned)((const struct duet__platform_switch *)from - p->switches))
            duet__json_put_integer(writer, NULL, i);
    duet__json_end(writer, ']');
}

/* 0 as a bandwidth stands for that of the switch's kind of link. */
static const struct duet__field switch_fields[] = {
    {"link", DUET__INDEX, AT(duet__platform_switch, kind), .list = &kinds},
    {"socket", DUET__UNSIGNED, AT(duet__platform_switch, socket), RANGE(0, DUET__MAX_SOCKETS)},
    {NUMBER(duet__platform_switch, to_device_Bps, LEAST_BPS, MOST_BPS), .when = DUET__OPTIONAL},
    {NUMBER(duet__platform_switch, to_host_Bps, LEAST_BPS, MOST_BPS), .when = DUET__OPTIONAL},
    {"gpus", DUET__CUSTOM, .read = read_switch_gpus, .write = write_switch_gpus},
    {ORIGIN},
    {NULL},
};

static int check_switch(const struct duet__json *at, void *root, unsigned index)
{
    const struct duet__platform *p = root;
    const struct duet__json member = duet__json_member(at, "socket");
    if (p->switches[index].socket >= p->socket_count)
        return duet__json_fail(&member, DUET_EPARSE, "no socket %u (there are %u, from 0)",
                               p->switches[index].socket, p->socket_count);
    return DUET_OK;
}

static const struct duet__list switches = {LIST("switch", switch_count, switches,
                                                duet__platform_switch, 0, DUET__MAX_GPUS,
                                                switch_fields, check_switch)};

/* Reads the order of use, which has each GPU once. */
static int read_order(const struct duet__json *at, void *into, void *root)
{
    struct duet__platform *p = root;
    bool *seen = g_new0(bool, p->gpu_count + 1);
    unsigned count = 0;
    int error = duet__json_array(at, p->gpu_count, p->gpu_count, &count);
    p->order = g_new0(unsigned, p->gpu_count + 1);
    for (unsigned i = 0; i < count && !error; i++) {
        struct duet__json element = duet__json_element(at, i);
        error = duet__json_unsigned(&element, 0, count - 1, &p->order[i]);
        if (!error && seen[p->order[i]])
            error = duet__json_fail(&element, DUET_EPARSE, "GPU %u is there twice", p->order[i]);
        if (!error)
            seen[p->order[i]] = true;
    }
    g_free(seen);
    return error;
}

static void write_order(struct duet__json_writer *writer, const void *from, const void *root)
{
    const struct duet__platform *p = root;
    if (p->order != NULL)
        DUET__ARRAY_WRITE(writer, "order", DUET__UNSIGNED, p->order, p->gpu_count);
}

#define COST(name) NUMBER(duet_costs, name, 0, MOST_SECONDS)

const struct duet__field duet__cost_fields[] = {
    {COST(submit_s)},
    {COST(push_s)},
    {COST(pop_s)},
    {COST(steal_s)},
    {COST(kernel_launch_s)},
    {COST(copy_launch_s)},
    {COST(event_s), .when = DUET__OPTIONAL},
    {COST(wake_s), .when = DUET__OPTIONAL},
    {COST(spin_s), .when = DUET__OPTIONAL},
    {COST(foreign_s), .when = DUET__OPTIONAL},
    {ORIGIN},
    {NULL},
};

const struct duet__field duet__sharing_fields[] = {
    {INTEGER(duet_sharing, shared_bytes, 0, MOST_BYTES)},
    {NUMBER(duet_sharing, bandwidth_Bps, LEAST_BPS, MOST_BPS), .or_zero = true},
    {ORIGIN},
    {NULL},
};

static const struct duet__field host_fields[] = {
    {"memory_bytes", DUET__INTEGER, AT(duet__platform, host_memory_bytes), RANGE(1, MOST_BYTES)},
    {"to_device_Bps", DUET__NUMBER, DUET__OPTIONAL, AT(duet__platform, host.to_device_Bps),
     RANGE(LEAST_BPS, MOST_BPS)},
    {"to_host_Bps", DUET__NUMBER, DUET__OPTIONAL, AT(duet__platform, host.to_host_Bps),
     RANGE(LEAST_BPS, MOST_BPS)},
    {ORIGIN},
    {NULL},
};

static const struct duet__field probe_fields[] = {
    {"seconds", DUET__NUMBER, AT(duet__platform, probe_s), RANGE(1e-9, MOST_SECONDS)},
    {ORIGIN},
    {NULL},
};

static const struct duet__field states_fields[] = {
    {INTEGER(duet__states, runs, 1, MOST_SAMPLES)},
    {NUMBER(duet__states, drift, 0, MOST_DEVIATION)},
    {NUMBER(duet__states, alone, 1 / MOST_RATIO, MOST_RATIO), .when = DUET__OPTIONAL, .unsaid = 1},
    {NUMBER(duet__states, busy, 1 / MOST_RATIO, MOST_RATIO), .when = DUET__OPTIONAL, .unsaid = 1},
    {ELSEWHERE("factors")},
    {ORIGIN},
    {NULL},
};

static int read_states(const struct duet__json *at, void *into, void *root)
{
    struct duet__states *states = &((struct duet__platform *)into)->calibration.states;
    const struct duet__json factors = duet__json_member(at, "factors");
    unsigned count = 0;
    int error = duet__part_read(at, states_fields, states, root);
    if (!error)
        error = duet__json_array(&factors, DUET__STATES, DUET__STATES, &count);
    for (unsigned i = 0; i < count && !error; i++) {
        const struct duet__json element = duet__json_element(&factors, i);
        error = duet__json_number(&element, i ? states->factor[i - 1] : 1 / MOST_RATIO, MOST_RATIO,
                                  &states->factor[i]);
    }
    return error;
}

static void write_states(struct duet__json_writer *writer, const void *from, const void *root)
{
    const struct duet__states *states = &((const struct duet__platform *)from)->calibration.states;
    if (!states->runs)
        return;
    duet__json_begin(writer, "states", '{');
    duet__fields_write(writer, states_fields, states, root);
    DUET__ARRAY_WRITE(writer, "factors", DUET__NUMBER, states->factor, DUET__STATES);
    duet__json_end(writer, '}');
}

static const char *const network_kinds[] = {"switch", "fat-tree", "dragonfly", "torus", NULL};

static const struct duet__field network_fields[] = {
    {"kind", DUET__CHOICE, AT(duet__network, kind), .choices = network_kinds},
    {NUMBER(duet__network, bandwidth_Bps, LEAST_BPS, MOST_BPS)},
    {NUMBER(duet__network, latency_s, 0, MOST_SECONDS)},
    {NUMBER(duet__network, overhead_s, 0, MOST_SECONDS)},
    {NUMBER(duet__network, rendezvous_s, 0, MOST_SECONDS)},
    {INTEGER(duet__network, eager_bytes, 0, MOST_BYTES)},
    {ELSEWHERE("shape")},
    {ORIGIN},
    {NULL},
};

static int read_network(const struct duet__json *at, void *into, void *root)
{
    struct duet__network *network = &((struct duet__platform *)into)->network;
    const struct duet__json shape = duet__json_member(at, "shape");
    struct duet_message why = {""};
    const char *text = NULL;
    int error = duet__part_read(at, network_fields, network, root);
    if (!error && duet__json_present(&shape)) {
        error = duet__json_string(&shape, &text);
        if (!error && duet__network_read_shape(network, text, &why) != DUET_OK)
            error = duet__json_fail(&shape, DUET_EPARSE, "%s", why.text);
    }
    return error;
}

static void write_network(struct duet__json_writer *writer, const void *from, const void *root)
{
    const struct duet__network *network = &((const struct duet__platform *)from)->network;
    g_autofree char *shape = duet__network_shape_text(network);
    if (network->bandwidth_Bps == 0)
        return;
    duet__json_begin(writer, "network", '{');
    duet__fields_write(writer, network_fields, network, root);
    if (shape != NULL)
        duet__json_put_string(writer, "shape", shape);
    duet__json_end(writer, '}');
}

/* The keys of a platform file, read and written in this order: names before references to them. */
const struct duet__field duet__platform_fields[] = {
    {ELSEWHERE("schema")},
    {NAME(duet__platform, name)},
    {"cores", DUET__UNSIGNED, DUET__OPTIONAL, AT(duet__platform, cores), RANGE(0, DUET__MAX_CORES)},
    {"first_waits", DUET__BOOLEAN, DUET__OPTIONAL, AT(duet__platform, first_waits)},
    {"description", DUET__COPY, AT(duet__platform, description)},
    {"origin", DUET__COPY, DUET__OPTIONAL, AT(duet__platform, origin)},
    {ELSEWHERE("calibration")},
    {"architectures", DUET__LIST, .list = &duet__archs},
    {"host", DUET__OBJECT, DUET__OPTIONAL, .fields = host_fields},
    {"sockets", DUET__LIST, .list = &sockets},
    {"links", DUET__LIST, DUET__OPTIONAL, .list = &kinds},
    {ELSEWHERE("peers"), .read = read_peers, .write = write_peers},
    {"gpus", DUET__LIST, DUET__OPTIONAL, .list = &gpus},
    {"switches", DUET__LIST, DUET__OPTIONAL, .list = &switches},
    {ELSEWHERE("order"), .read = read_order, .write = write_order},
    {OBJECT(duet__platform, costs, duet__cost_fields)},
    {OBJECT(duet__platform, sharing, duet__sharing_fields), .when = DUET__OPTIONAL},
    {ELSEWHERE("network"), .read = read_network, .write = write_network},
    {"probe", DUET__OBJECT, DUET__OPTIONAL, .fields = probe_fields},
    {ELSEWHERE("states"), .read = read_states, .write = write_states},
    {ELSEWHERE("curves")},
    {NULL},
};

/* The keys of a file of kernel times alone. */
const struct duet__field duet__times_fields[] = {
    {ELSEWHERE("schema")},
    {"origin", DUET__COPY, DUET__OPTIONAL, AT(duet__platform, origin)},
    {ELSEWHERE("states"), .read = read_states, .write = write_states},
    {ELSEWHERE("curves")},
    {NULL},
};

const struct duet__field duet__curve_fields[] = {
    {NAME(duet__curve, kernel)},
    {NAME(duet__curve, arch)},
    {NAME(duet__curve, context), .when = DUET__OPTIONAL},
    {"origin", DUET__TEXT, DUET__OPTIONAL, AT(duet__curve, origin)},
    {ELSEWHERE("points")},
    {NULL},
};

#define POINT(member, most) NUMBER(duet__point, member, 0, most)

/* The keys of a point. One of the three units has its work. An optional 0 was not measured. */
const struct duet__field duet__point_fields[] = {
    {ELSEWHERE("flops")},
    {ELSEWHERE("bytes")},
    {ELSEWHERE("work")},
    {POINT(size, MOST_WORK)},
    {NUMBER(duet__point, mean_s, 1e-12, MOST_TIME)},
    {POINT(deviation_s, MOST_TIME)},
    {INTEGER(duet__point, samples, 1, MOST_SAMPLES)},
    {INTEGER(duet__point, rejected, 0, MOST_SAMPLES), .when = DUET__OPTIONAL},
    {POINT(median_s, MOST_TIME), .when = DUET__OPTIONAL},
    {POINT(base_s, MOST_TIME), .when = DUET__OPTIONAL},
    {POINT(memory_s, MOST_TIME), .when = DUET__OPTIONAL},
    {POINT(busy_ratio, MOST_RATIO), .when = DUET__OPTIONAL},
    {POINT(noise, MOST_DEVIATION), .when = DUET__OPTIONAL},
    {POINT(uncertainty, MOST_DEVIATION), .when = DUET__OPTIONAL},
    {ELSEWHERE("conditions")},
    {"origin", DUET__TEXT, DUET__OPTIONAL, AT(duet__point, origin)},
    {NULL},
};

const struct duet__field duet__work_field = {NUMBER(duet__point, work, 1e-9, MOST_WORK)};
