/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of platform files: which member of which struct each is, and in what range. README.md
 * says what they mean. Ranges are wide enough for any machine and narrow enough to catch a wrong
 * unit.
 */
#include "platforms/tables.h"

#include <limits.h>
#include <math.h>

#include "platforms/description.h"

#define LEAST_BPS 1e3
#define MOST_BPS 1e15
#define MOST_SECONDS 1e3 /* of a cost or a latency */
#define MOST_BYTES 0x1p50

#define MOST_WORK 1e24
#define MOST_TIME 1e9     /* seconds of a kernel */
#define MOST_RATIO 1e9    /* of two times, both measured */
#define MOST_DEVIATION 10 /* relative */
#define MOST_SAMPLES 0x1p53

#define AT(type, member) .offset = offsetof(struct type, member)
#define SIZE(type, member) .room = sizeof(((struct type *)NULL)->member)
#define COUNT(type, member)                                                                        \
    .room = sizeof(((struct type *)NULL)->member) / sizeof(((struct type *)NULL)->member[0])
#define RANGE(from, to) .least = (from), .most = (to)
#define ELSEWHERE(name)                                                                            \
    {                                                                                              \
        .key = (name), .kind = DUET__ELSEWHERE                                                     \
    }
#define ORIGIN ELSEWHERE("origin")

const struct duet__field duet__arch_fields[] = {
    {"name", DUET__NAME, AT(duet_arch, name), SIZE(duet_arch, name)},
    {"backend", DUET__NAME, AT(duet_arch, backend), SIZE(duet_arch, backend)},
    {NULL},
};

static const struct duet__field figure[] = {
    {"bandwidth_Bps", DUET__NUMBER, AT(duet_platform_figure, bandwidth_Bps),
     RANGE(LEAST_BPS, MOST_BPS)},
    {"latency_s", DUET__NUMBER, AT(duet_platform_figure, latency_s), RANGE(0, MOST_SECONDS)},
    {NULL},
};

const struct duet__field duet__socket_fields[] = {
    ELSEWHERE("architecture"),
    {"cores", DUET__UNSIGNED, AT(duet_platform_socket, cores), RANGE(1, DUET__MAX_SOCKET_CORES)},
    ORIGIN,
    {NULL},
};

const struct duet__field duet__link_fields[] = {
    {"name", DUET__NAME, AT(duet_platform_link, name), SIZE(duet_platform_link, name)},
    {"to_device", DUET__OBJECT, AT(duet_platform_link, to_device), .fields = figure},
    {"to_host", DUET__OBJECT, AT(duet_platform_link, to_host), .fields = figure},
    ORIGIN,
    {NULL},
};

const struct duet__field duet__peer_fields[] = {
    {"name", DUET__NAME, AT(duet_platform_peer, name), SIZE(duet_platform_peer, name)},
    ELSEWHERE("reach"),
    {"up", DUET__OBJECT, AT(duet_platform_peer, up), .fields = figure},
    {"down", DUET__OBJECT, AT(duet_platform_peer, down), .fields = figure},
    {"own_link", DUET__BOOLEAN, DUET__OPTIONAL, AT(duet_platform_peer, own_link)},
    ORIGIN,
    {NULL},
};

/* Bandwidths of 0 are those of the switch's kind of link. */
const struct duet__field duet__switch_fields[] = {
    {"socket", DUET__UNSIGNED, AT(duet_platform_switch, socket), RANGE(0, DUET__MAX_SOCKETS)},
    ELSEWHERE("link"),
    ELSEWHERE("gpus"),
    {"to_device_Bps", DUET__NUMBER, DUET__OPTIONAL, AT(duet_platform_switch, to_device_Bps),
     RANGE(LEAST_BPS, MOST_BPS)},
    {"to_host_Bps", DUET__NUMBER, DUET__OPTIONAL, AT(duet_platform_switch, to_host_Bps),
     RANGE(LEAST_BPS, MOST_BPS)},
    ORIGIN,
    {NULL},
};

/* Latencies that are no numbers are those of the switch's kind of link. */
const struct duet__field duet__gpu_fields[] = {
    ELSEWHERE("architecture"),
    {"memory_bytes", DUET__INTEGER, AT(duet_platform_gpu, memory_bytes), RANGE(1, MOST_BYTES)},
    {"to_device_limit_Bps", DUET__NUMBER, DUET__OPTIONAL,
     AT(duet_platform_gpu, to_device.bandwidth_Bps), RANGE(LEAST_BPS, MOST_BPS)},
    {"to_host_limit_Bps", DUET__NUMBER, DUET__OPTIONAL,
     AT(duet_platform_gpu, to_host.bandwidth_Bps), RANGE(LEAST_BPS, MOST_BPS)},
    {"to_device_latency_s", DUET__NUMBER, DUET__OPTIONAL,
     AT(duet_platform_gpu, to_device.latency_s), RANGE(0, MOST_SECONDS), .unsaid = NAN},
    {"to_host_latency_s", DUET__NUMBER, DUET__OPTIONAL, AT(duet_platform_gpu, to_host.latency_s),
     RANGE(0, MOST_SECONDS), .unsaid = NAN},
    ORIGIN,
    {NULL},
};

#define COST(name, when)                                                                           \
    {                                                                                              \
#name, DUET__NUMBER, when, AT(duet_costs, name), RANGE(0, MOST_SECONDS)                    \
    }

const struct duet__field duet__cost_fields[] = {
    COST(submit_s, DUET__NEEDED),
    COST(push_s, DUET__NEEDED),
    COST(pop_s, DUET__NEEDED),
    COST(steal_s, DUET__NEEDED),
    COST(kernel_launch_s, DUET__NEEDED),
    COST(copy_launch_s, DUET__NEEDED),
    COST(event_s, DUET__OPTIONAL),
    COST(wake_s, DUET__OPTIONAL),
    COST(spin_s, DUET__OPTIONAL),
    ORIGIN,
    {NULL},
};

const struct duet__field duet__sharing_fields[] = {
    {"private_bytes", DUET__INTEGER, AT(duet_sharing, private_bytes), RANGE(0, MOST_BYTES)},
    {"shared_bytes", DUET__INTEGER, AT(duet_sharing, shared_bytes), RANGE(0, MOST_BYTES)},
    {"bandwidth_Bps", DUET__NUMBER, AT(duet_sharing, bandwidth_Bps), RANGE(LEAST_BPS, MOST_BPS),
     .or_zero = true},
    ORIGIN,
    {NULL},
};

const struct duet__field duet__host_fields[] = {
    {"memory_bytes", DUET__INTEGER, AT(duet_platform, host_memory_bytes), RANGE(1, MOST_BYTES)},
    ORIGIN,
    {NULL},
};

const struct duet__field duet__probe_fields[] = {
    {"seconds", DUET__NUMBER, AT(duet_platform, probe_s), RANGE(1e-9, MOST_SECONDS)},
    ORIGIN,
    {NULL},
};

/* In the order in which they are written: what has a place of its own is in between. */
const struct duet__field duet__root_fields[] = {
    ELSEWHERE("schema"),
    {"name", DUET__NAME, AT(duet_platform, name), SIZE(duet_platform, name)},
    ELSEWHERE("description"),
    ELSEWHERE("calibration"),
    ORIGIN,
    ELSEWHERE("architectures"),
    ELSEWHERE("host"),
    ELSEWHERE("sockets"),
    {"cores", DUET__UNSIGNED, DUET__OPTIONAL, AT(duet_platform, cores), RANGE(0, DUET__MAX_CORES)},
    {"first_waits", DUET__BOOLEAN, DUET__OPTIONAL, AT(duet_platform, first_waits)},
    ELSEWHERE("links"),
    ELSEWHERE("peers"),
    ELSEWHERE("switches"),
    ELSEWHERE("gpus"),
    ELSEWHERE("order"),
    ELSEWHERE("costs"),
    ELSEWHERE("sharing"),
    ELSEWHERE("probe"),
    ELSEWHERE("curves"),
    {NULL},
};

const struct duet__field duet__times_fields[] = {ELSEWHERE("schema"),
                                                 ORIGIN,
                                                 ELSEWHERE("curves"),
                                                 {NULL}};

const struct duet__field duet__curve_fields[] = {
    {"kernel", DUET__NAME, AT(duet_curve, kernel), SIZE(duet_curve, kernel)},
    {"arch", DUET__NAME, AT(duet_curve, arch), SIZE(duet_curve, arch)},
    {"context", DUET__NAME, DUET__OPTIONAL, AT(duet_curve, context), SIZE(duet_curve, context)},
    ORIGIN,
    ELSEWHERE("points"),
    {NULL},
};

/* One of the three units has the point's work. What is 0 and optional was not measured. */
const struct duet__field duet__point_fields[] = {
    ELSEWHERE("flops"),
    ELSEWHERE("bytes"),
    ELSEWHERE("work"),
    {"size", DUET__NUMBER, AT(duet_point, size), RANGE(0, MOST_WORK)},
    {"mean_s", DUET__NUMBER, AT(duet_point, mean_s), RANGE(1e-12, MOST_TIME)},
    {"deviation_s", DUET__NUMBER, AT(duet_point, deviation_s), RANGE(0, MOST_TIME)},
    {"samples", DUET__INTEGER, AT(duet_point, samples), RANGE(1, MOST_SAMPLES)},
    {"rejected", DUET__INTEGER, DUET__OPTIONAL, AT(duet_point, rejected), RANGE(0, MOST_SAMPLES)},
    {"median_s", DUET__NUMBER, DUET__OPTIONAL, AT(duet_point, median_s), RANGE(0, MOST_TIME)},
    {"base_s", DUET__NUMBER, DUET__OPTIONAL, AT(duet_point, base_s), RANGE(0, MOST_TIME)},
    {"near_s", DUET__NUMBERS, DUET__OPTIONAL, AT(duet_point, near_s), COUNT(duet_point, near_s),
     RANGE(0, MOST_TIME)},
    {"far_s", DUET__NUMBERS, DUET__OPTIONAL, AT(duet_point, far_s), COUNT(duet_point, far_s),
     RANGE(0, MOST_TIME)},
    {"busy_ratio", DUET__NUMBER, DUET__OPTIONAL, AT(duet_point, busy_ratio), RANGE(0, MOST_RATIO)},
    {"quantiles", DUET__ALL, DUET__OPTIONAL, AT(duet_point, quantiles),
     COUNT(duet_point, quantiles), RANGE(0, MOST_RATIO)},
    {"run_deviation", DUET__NUMBER, DUET__OPTIONAL, AT(duet_point, run_deviation),
     RANGE(0, MOST_DEVIATION)},
    ELSEWHERE("conditions"),
    ORIGIN,
    {NULL},
};

const struct duet__field duet__work_field = {"work", DUET__NUMBER, AT(duet_point, work),
                                             RANGE(1e-9, MOST_WORK)};
