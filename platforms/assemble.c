/* SPDX-License-Identifier: Apache-2.0 */
/* Machines put together from devices of the catalogue, with estimated kernel times. */
#include <math.h>
#include <string.h>

#include "platforms/catalogue.h"
#include "platforms/internal.h"

/* ------------------------------------------------------------------------------------------- */
/* Kernel times                                                                                 */

double duet__device_peak(const struct duet__device *device, char precision, bool matrix)
{
    bool single = precision == 's';
    double own = single ? device->s_flops : device->d_flops;
    double units = single ? device->s_matrix_flops : device->d_matrix_flops;
    if (device->cores > 0)
        return device->clock_Hz * device->flops_per_cycle * (single ? 2 : 1);
    return matrix && units > 0 ? units : own;
}

/* Seconds of a device with all cores at work for this much work and this many bytes. */
static double device_seconds(const struct duet__catalogue *c, const struct duet__device *device,
                             const struct duet__kernel_shape *shape, char precision, double work,
                             double bytes)
{
    double at_peak = work / duet__device_peak(device, precision, shape->b3 > 0);
    double start = device->cores > 0 ? 0 : c->rules.gpu_start_s;
    double ratio = precision == 's' ? device->s_ratio : device->d_ratio;
    double share = fmin(shape->share * (ratio > 0 && shape->b3 > 0 ? ratio : 1), 1);
    double compute = at_peak / share * (1 + pow(shape->half_s / at_peak, 2.0 / 3));
    if (shape->rounds)
        start *= sqrt(2 * work); /* `work` is that of all pairs */
    return start + fmax(compute, bytes * fmax(device->cores, 1) / device->memory_Bps);
}

/*
 * Returns the uncertainty of an estimated time: errors of times left out of the fit
 * (docs/models.md, fit_catalogue_test.py), as standard deviations of logarithms.
 */
static double estimate_uncertainty(const struct duet__device *device,
                                   const struct duet__kernel_shape *shape, char precision)
{
    const bool rated = (precision == 's' ? device->s_ratio : device->d_ratio) > 0;
    if (g_str_has_prefix(shape->kernel, "potrf") || g_str_has_prefix(shape->kernel, "getrf"))
        return 1.1;
    if (device->cores > 0 || shape->b3 == 0)
        return 0.4;
    if (g_str_has_prefix(shape->kernel, "gemm"))
        return rated ? 0.08 : 0.2;
    return rated ? 0.3 : 0.45;
}

static struct duet__point shape_point(double work, double size, double seconds)
{
    /* estimated times scatter as those of the built-in platforms do */
    return (struct duet__point){.work = work,
                                .size = size,
                                .mean_s = seconds,
                                .deviation_s = seconds / 50,
                                .samples = 1,
                                .basis = DUET__ESTIMATED};
}

static int add_curve(const struct duet__catalogue *c, const struct duet__device *device,
                     const struct duet__kernel_shape *shape, char precision,
                     struct duet__calibration *calibration, struct duet_message *message)
{
    enum { SMALLEST = 64, LARGEST = 16384, LINEAR = 22 };
    struct duet__point points[64];
    struct duet__curve curve = {.points = points};
    double element = precision == 's' ? 4 : 8;
    for (unsigned b = SMALLEST; shape->b3 > 0 && b <= LARGEST; b += b & (b - 1) ? b / 3 : b / 2) {
        double work = ((shape->b3 * b + shape->b2) * b + shape->b1) * b;
        double bytes = shape->tiles * b * b * element;
        points[curve.count++] =
            shape_point(work, b, device_seconds(c, device, shape, precision, work, bytes));
    }
    for (unsigned k = 2; shape->b3 == 0 && k <= LINEAR; k++) {
        double work = pow(4, k), bytes = shape->elements * work * element;
        points[curve.count++] =
            shape_point(work, 0, device_seconds(c, device, shape, precision, work, bytes));
    }
    for (unsigned i = 0; i < curve.count; i++)
        points[i].uncertainty = estimate_uncertainty(device, shape, precision);
    (void)g_snprintf(curve.kernel, sizeof(curve.kernel), "%c%s", precision, shape->kernel);
    g_strlcpy(curve.arch, device->name, sizeof(curve.arch));
    return duet__calibration_add(calibration, &curve, message);
}

/* Adds the curves of all kernels of the catalogue on one kind of device. */
static int add_curves(const struct duet__catalogue *c, const struct duet__device *device,
                      struct duet__calibration *calibration, struct duet_message *message)
{
    int error = DUET_OK;
    for (unsigned i = 0; i < c->shape_count && !error; i++) {
        if (c->shapes[i].on_gpu != (device->cores == 0))
            continue;
        error = add_curve(c, device, &c->shapes[i], 'd', calibration, message);
        if (!error)
            error = add_curve(c, device, &c->shapes[i], 's', calibration, message);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The machine                                                                                  */

struct assembling {
    const struct duet__catalogue *c;
    const struct duet__assembly *a;
    struct duet__platform *p;
    const struct duet__device **devices; /* the CPU, then one for each group of GPUs */
    bool all_copy, some_copy;            /* any two GPUs, or some, copy directly over PCIe */
    unsigned linked;                     /* number of groups with links of their own */
    struct duet_message *message;
};

/* Returns the CPU or GPU of this name, the first one without a name; NULL after a message. */
static const struct duet__device *device_find(const struct assembling *s, const char *name,
                                              bool cpu)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (unsigned i = 0; i < s->c->device_count; i++) {
        const struct duet__device *device = &s->c->devices[i];
        if ((device->cores > 0) != cpu)
            continue;
        if (name == NULL || strcmp(device->name, name) == 0)
            return device;
        g_string_append_printf(known, "%s%s", known->len > 0 ? ", " : "", device->name);
    }
    (void)duet_fail(s->message, DUET_ENOTFOUND,
                    "no %s is named '%.60s', known are: %s (duet list devices)",
                    cpu ? "CPU" : "GPU", name != NULL ? name : "", known->str);
    return NULL;
}

/* Finds the devices that the assembly names, and checks that they can be together. */
static int find_devices(struct assembling *s)
{
    const struct duet__assembly *a = s->a;
    const struct duet__device *cpu = device_find(s, a->cpu, true);
    if (cpu == NULL)
        return DUET_ENOTFOUND;
    if (a->cores > cpu->cores)
        return duet_fail(s->message, DUET_EINVAL, "%s has %u cores, not %u", cpu->name, cpu->cores,
                         a->cores);
    s->devices[0] = cpu;
    for (unsigned i = 1; i <= a->group_count; i++) {
        const struct duet__device *gpu = device_find(s, a->gpus[i - 1].device, false);
        if (gpu == NULL)
            return DUET_ENOTFOUND;
        for (unsigned k = 1; k < i; k++)
            if (gpu == s->devices[k])
                return duet_fail(s->message, DUET_EINVAL, "%s is given twice", gpu->name);
        s->devices[i] = gpu;
        s->p->gpu_count += a->gpus[i - 1].count;
    }
    if (a->switches > s->p->gpu_count)
        return duet_fail(s->message, DUET_EINVAL,
                         "%u PCI Express switches for %u GPUs: some would have none", a->switches,
                         s->p->gpu_count);
    return DUET_OK;
}

/* Bytes a second of a copy from the CPU to a GPU: over 16 lanes of PCI Express (specifications 1.0
 * to 6.0 of PCI-SIG), or over the CPU's own links. */
static double pcie_Bps(const struct assembling *s, const struct duet__device *gpu)
{
    static const double transfers[] = {2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9};
    unsigned generation = MIN(s->devices[0]->pcie, gpu->pcie);
    double coding = generation <= 2 ? 8.0 / 10 : generation <= 5 ? 128.0 / 130 : 242.0 / 256;
    if (s->devices[0]->gpu_link_Bps > 0)
        return s->devices[0]->gpu_link_Bps * s->c->rules.fabric_share;
    return transfers[generation - 1] * coding * 16 / 8 * s->c->rules.pcie_share;
}

static void set_processors(struct assembling *s)
{
    struct duet__platform *p = s->p;
    const struct duet__device *cpu = s->devices[0];
    p->socket_count = s->a->sockets;
    p->sockets = g_new0(struct duet__platform_socket, p->socket_count);
    for (unsigned i = 0; i < p->socket_count; i++)
        p->sockets[i].cores = s->a->cores > 0 ? s->a->cores : cpu->cores;
    p->arch_count = 1 + s->a->group_count;
    p->archs = g_new0(struct duet_arch, p->arch_count);
    for (unsigned i = 0; i < p->arch_count; i++) {
        g_strlcpy(p->archs[i].name, s->devices[i]->name, DUET_NAME_MAX);
        g_strlcpy(p->archs[i].backend, s->devices[i]->backend, DUET_NAME_MAX);
    }
    p->sharing = (struct duet_sharing){cpu->cache_bytes, cpu->memory_Bps};
    p->costs =
        (struct duet_costs){.submit_s = 1e-6, .push_s = 2e-7, .pop_s = 2e-7, .steal_s = 5e-7};
}

/* GPUs behind one switch where no switches are given: the dies of a package share one. */
static unsigned dies_of(const struct assembling *s, unsigned group)
{
    return s->a->switches == 0 && s->devices[group]->die_links > 0 ? 2 : 1;
}

/* Deals GPUs over switches, and these over sockets. A switch is as wide as the fastest link of its
 * GPUs, or as those of the dies of a package together. */
static void set_gpus(struct assembling *s)
{
    struct duet__platform *p = s->p;
    struct duet__platform_gpu *gpu = p->gpus = g_new0(struct duet__platform_gpu, p->gpu_count);
    const unsigned asked = s->a->switches;
    unsigned groups = s->a->group_count;
    p->switches = g_new0(struct duet__platform_switch, MAX(asked, p->gpu_count));
    for (unsigned i = 1, first = 0; i <= groups; i++, first = p->switch_count)
        for (unsigned k = 0; k < s->a->gpus[i - 1].count; k++, gpu++) {
            const struct duet__platform_figure copy = {pcie_Bps(s, s->devices[i]),
                                                       s->c->rules.copy_latency_s};
            uint64_t at = (uint64_t)(gpu - p->gpus) * asked / p->gpu_count;
            double *link;
            at = asked > 0 ? at : first + k / dies_of(s, i);
            *gpu = (struct duet__platform_gpu){.arch = i,
                                               .position = (unsigned)at,
                                               .memory_bytes = s->devices[i]->memory_bytes,
                                               .to_device = copy,
                                               .to_host = copy};
            p->switch_count = (unsigned)at + 1;
            link = &p->switches[at].to_device_Bps;
            *link = asked > 0 ? fmax(*link, copy.bandwidth_Bps) : *link + copy.bandwidth_Bps;
        }
    for (unsigned i = 0; i < p->switch_count; i++) {
        p->switches[i].socket = (unsigned)((uint64_t)i * p->socket_count / p->switch_count);
        p->switches[i].to_host_Bps = p->switches[i].to_device_Bps;
    }
    p->kind_count = 1;
    p->kinds = g_new0(struct duet__platform_link, 1);
    g_strlcpy(p->kinds->name, "pcie", sizeof(p->kinds->name));
    p->kinds->to_device.latency_s = p->kinds->to_host.latency_s = s->c->rules.copy_latency_s;
}

/* Adds direct copies between the GPUs of a group, or between any two (group 0). */
static void add_peers(struct duet__platform *p, unsigned group, bool own_link,
                      const double bandwidths[DUET_REACHES], double latency)
{
    static const char *const names[] = {"switch", "socket", "remote"};
    struct duet__platform_peer *peer = p->peers;
    for (peer += group > 0 ? DUET_REACHES : 0; group > 0 && peer->name[0] != '\0'; peer++)
        ;
    for (unsigned reach = 0; reach < DUET_REACHES; reach++) {
        const struct duet__platform_figure figure = {bandwidths[reach], latency};
        peer[reach] = (struct duet__platform_peer){.own_link = own_link,
                                                   .up = figure,
                                                   .down = figure,
                                                   .reach = reach,
                                                   .arch = group};
        if (group > 0)
            (void)g_snprintf(peer[reach].name, DUET_KIND_MAX, "gpu%u_%s", group, names[reach]);
        else
            (void)g_snprintf(peer[reach].name, DUET_KIND_MAX, "peer_%s", names[reach]);
    }
}

/* Adds the links that the GPUs of a group have for each other. */
static int add_fabric(struct assembling *s, unsigned group)
{
    const struct duet__device *gpu = s->devices[group];
    const unsigned others = MAX(s->a->gpus[group - 1].count, 2) - 1;
    const double one = gpu->link_Bps * s->c->rules.fabric_share;
    unsigned links = gpu->links, near;
    if (s->a->fabric == DUET_FABRIC_SWITCHED && gpu->one_each)
        return duet_fail(s->message, DUET_EINVAL, "there are no switches for %s of %s: --nvlink",
                         gpu->fabric, gpu->name);
    if (s->a->fabric == DUET_FABRIC_DIRECT)
        links = gpu->one_each ? gpu->links >= others || gpu->die_links > 0 : gpu->links / others;
    if (links == 0)
        return duet_fail(s->message, DUET_EINVAL,
                         "%s has %u links, too few for each of %u others%s", gpu->name, gpu->links,
                         others, gpu->one_each ? "" : ": --nvswitch");
    near = dies_of(s, group) > 1 ? gpu->die_links : links;
    add_peers(s->p, s->a->group_count > 1 ? group : 0, true,
              (const double[]){one * near, one * links, one * links}, s->c->rules.copy_latency_s);
    for (unsigned i = 0; i < s->p->gpu_count; i++)
        if (s->p->gpus[i].arch == group)
            s->p->gpus[i].port_in_Bps = s->p->gpus[i].port_out_Bps = one * gpu->links;
    return DUET_OK;
}

static bool is_linked(const struct assembling *s, unsigned group)
{
    return s->a->fabric != DUET_FABRIC_NONE && s->devices[group]->links > 0;
}

/* Adds direct copies over PCI Express: between any two GPUs at the pace of the slowest kind (0),
 * where all of them can, and within the kinds that can and are faster than that. */
static void add_pcie_peers(struct assembling *s)
{
    const double shares[] = {1, s->c->rules.peer_socket_share, s->c->rules.peer_remote_share};
    double slowest = s->all_copy ? HUGE_VAL : 0;
    for (unsigned i = 1; i <= s->a->group_count; i++)
        slowest = fmin(slowest, pcie_Bps(s, s->devices[i]));
    for (unsigned i = 0; i <= s->a->group_count; i++) {
        double bandwidths[DUET_REACHES], pcie = i > 0 ? pcie_Bps(s, s->devices[i]) : slowest;
        if (i > 0 ? s->devices[i]->no_peer || is_linked(s, i) || !(pcie > slowest) : !s->all_copy)
            continue;
        for (unsigned reach = 0; reach < DUET_REACHES; reach++)
            bandwidths[reach] = shares[reach] * pcie;
        add_peers(s->p, i, false, bandwidths, s->c->rules.peer_latency_s);
        s->some_copy = true;
    }
}

/* Adds direct copies: over links of their own between GPUs of a kind that has such, over PCI
 * Express between all others that can. Where some cannot, those of one kind can. */
static int connect(struct assembling *s)
{
    const char *option = s->a->fabric == DUET_FABRIC_DIRECT ? "nvlink" : "nvswitch";
    unsigned groups = s->a->group_count;
    int error = DUET_OK;
    s->all_copy = groups > 0;
    for (unsigned i = 1; i <= groups && !error; i++) {
        const struct duet__device *gpu = s->devices[i];
        s->all_copy =
            s->all_copy && !gpu->no_peer && strcmp(gpu->backend, s->devices[1]->backend) == 0;
        s->linked += is_linked(s, i);
        error = is_linked(s, i) ? add_fabric(s, i) : DUET_OK;
    }
    if (!error && s->a->fabric != DUET_FABRIC_NONE && s->linked == 0)
        return duet_fail(s->message, DUET_EINVAL, "%s has no links for --%s%s",
                         groups > 0 ? s->devices[1]->name : "a machine without --gpus", option,
                         groups > 1 ? ", nor have the others" : "");
    if (!error && (groups > 1 || s->linked < groups))
        add_pcie_peers(s);
    return error;
}

/* Writes the description: the devices, and where all figures come from. */
static void machine_describe(struct assembling *s)
{
    static const char *const fabrics[] = {"", "direct", "through switches"};
    struct duet__platform *p = s->p;
    GString *text = g_string_new(NULL), *origin = g_string_new(NULL);
    g_strlcpy(p->name, s->a->name, sizeof(p->name));
    g_string_printf(text, "%u x %u cores of %s", p->socket_count, p->sockets[0].cores,
                    s->devices[0]->title);
    g_string_printf(origin,
                    "estimated: kernel times from peak rates, memory bandwidth and the shape of "
                    "curves measured on other devices (docs/models.md of duet); costs of the "
                    "runtime are assumed; %s",
                    s->c->rules.origin);
    for (unsigned i = 0; i < p->arch_count; i++) {
        const struct duet__device *device = s->devices[i];
        if (i > 0)
            g_string_append_printf(text, ", %u x %s", s->a->gpus[i - 1].count, device->title);
        if (i > 0 && is_linked(s, i))
            g_string_append_printf(text, " (%s %s)", device->fabric, fabrics[s->a->fabric]);
        g_string_append_printf(origin, "; %s: %s", device->name, device->origin);
        if (device->unconfirmed != NULL)
            g_string_append_printf(origin, "; unconfirmed: %s", device->unconfirmed);
    }
    for (size_t i = 0; i < s->a->link_count; i++)
        g_string_append_printf(origin, "; bandwidth of %s: as asked for", s->a->links[i].name);
    if (p->gpu_count > 1 && (s->linked == 0 || s->a->group_count > 1))
        g_string_append_printf(text, "; %scopies between GPUs go %s", s->linked > 0 ? "other " : "",
                               s->all_copy    ? "over PCI Express"
                               : s->some_copy ? "over PCI Express within a kind that can, else "
                                                "through the host"
                                              : "through the host");
    p->description = g_string_free(g_string_append(text, "; estimated"), FALSE);
    p->origin = g_string_free(origin, FALSE);
}

static int assembly_make(struct assembling *s)
{
    const struct duet__assembly *assembly = s->a;
    struct duet__platform *out = s->p;
    const struct duet__platform_options options = {.cpus = -1,
                                                   .gpus = -1,
                                                   .links = assembly->links,
                                                   .link_count = assembly->link_count};
    int error;
    error = find_devices(s);
    if (error)
        return error;
    set_processors(s);
    if (out->gpu_count > 0)
        set_gpus(s);
    error = connect(s);
    if (!error) {
        machine_describe(s);
        error = duet__check_options(out, &options, s->message);
    }
    if (!error)
        duet__change_links(out, &options);
    if (!error && out->gpu_count > 0) /* a switch of another width says its own */
        out->kinds[0].to_device.bandwidth_Bps = out->kinds[0].to_host.bandwidth_Bps =
            out->switches[0].to_device_Bps;
    for (unsigned i = 0; i < out->arch_count && !error; i++)
        error = add_curves(s->c, s->devices[i], &out->calibration, s->message);
    return error;
}

int duet__platform_assemble(const struct duet__catalogue *catalogue,
                            const struct duet__assembly *assembly, struct duet__platform *out,
                            struct duet_message *message)
{
    GPtrArray *devices = g_ptr_array_new();
    int error;
    memset(out, 0, sizeof(*out));
    g_ptr_array_set_size(devices, (int)assembly->group_count + 2);
    struct assembling s = {.c = catalogue,
                           .a = assembly,
                           .p = out,
                           .devices = (const struct duet__device **)devices->pdata,
                           .message = message};
    error = assembly_make(&s);
    g_ptr_array_unref(devices);
    return error;
}
