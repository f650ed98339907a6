/* SPDX-License-Identifier: Apache-2.0 */
/* `duet info`: the machine as `duet run` would use it, and why something is not used. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "base/json.h"
#include "base/table.h"
#include "cli/job.h"
#include "report/report.h"
#include "runtime/open.h"
#include "workloads/kernels.h"
#include "workloads/kernels_cuda.h"

/* All facts that are shown: found once, printed for people and for programs. */
struct facts {
    const struct duet_config *config;
    struct duet__info info;
    char host[256];
    bool has_blas;
    struct duet__blas blas;
    int cuda_error; /* 0: cuBLAS and cuSOLVER can be used; else why not */
    struct duet_message cuda_why;
    int opencl_error; /* 0: CLBlast can be used; else why not */
    struct duet_message opencl_why;
    GPtrArray *unused;  /* char *: each part that a run leaves alone, "2 cores", then why */
    GPtrArray *kernels; /* names of the kernels that tasks of workloads call */
};

/* Returns how GPUs are emulated: "free" or "paced"; NULL if they are not. */
static const char *emulation(const struct facts *facts)
{
    const char *emulate = facts->config->emulate;
    if (!emulate)
        return NULL;
    return strcmp(emulate, "free") != 0 ? "paced" : "free";
}

/* Returns why a device cannot be used, without the device's name in front; "" if it can. */
static const char *why_not(const struct survey_device *device)
{
    char name[32];
    int length = g_snprintf(name, sizeof name, "GPU %u: ", device->index);
    const char *why = device->why.text;
    return g_str_has_prefix(why, name) ? why + length : why;
}

/* ------------------------------------------------------------------------------------------- */
/* Unused parts of the machine                                                                  */

/* Notes that `what` is not used, and why. Takes both over. */
static void leave(struct facts *facts, char *what, char *why)
{
    g_ptr_array_add(facts->unused, what);
    g_ptr_array_add(facts->unused, why);
}

/* Notes that `all` - `used` pieces of `what` are not used, if there are any. Takes `why` over. */
static void leave_rest(struct facts *facts, unsigned all, unsigned used, const char *what,
                       char *why)
{
    if (all > used)
        leave(facts, g_strdup_printf("%u %s%s", all - used, what, all - used == 1 ? "" : "s"), why);
    else
        g_free(why);
}

static void leave_processors(struct facts *facts)
{
    const struct duet__survey *survey = &facts->info.survey;
    unsigned workers = facts->info.machine.worker_count;
    leave_rest(facts, survey->threads, survey->usable_threads, "hardware thread",
               g_strdup("this process is not to run there (its affinity, by taskset or a "
                        "container)"));
    leave_rest(facts, survey->usable_threads, MAX(workers, survey->usable_cores), "hardware thread",
               g_strdup("beside another one in its core; --cpus takes more than one a core"));
    leave_rest(facts, survey->usable_cores, survey->cores, "core",
               g_strdup_printf("a control group leaves this process the time of %u",
                               survey->quota_cores));
    leave_rest(facts, survey->cores, workers, "core",
               facts->config->emulate
                   ? g_strdup("no worker's; the threads of emulated GPUs, and everything else, may "
                              "run there")
                   : g_strdup_printf("--cpus %d", facts->config->cpus));
}

static bool has_worker(const struct duet__info *info, unsigned device)
{
    for (unsigned w = 0; w < info->machine.worker_count; w++)
        if (info->devices[w] == (int)device)
            return true;
    return false;
}

static void leave_devices(struct facts *facts)
{
    const struct duet__survey *survey = &facts->info.survey;
    const char *emulate = facts->config->emulate;
    const char *kind = facts->config->devices ? facts->config->devices : "cuda";
    for (unsigned d = 0; d < survey->device_count; d++) {
        const struct survey_device *device = &survey->devices[d];
        const struct survey_backend *backend = &survey->backends[device->backend];
        if (backend->kind != SURVEY_DEVICES || has_worker(&facts->info, d))
            continue;
        leave(facts,
              g_strdup_printf("%s device %u%s%s", backend->name, device->index,
                              *device->pci ? ", " : "", device->pci),
              device->error ? g_strdup(why_not(device))
              : emulate     ? g_strdup_printf("--emulate %s", emulate)
              : strcmp(backend->name, kind) != 0
                  ? g_strdup_printf("--devices %s takes others", kind)
                  : g_strdup_printf("--gpus %d", facts->config->gpus));
    }
}

static void find_unused(struct facts *facts)
{
    if (facts->info.error)
        return;
    if (g_strcmp0(emulation(facts), "paced") == 0)
        leave(facts, g_strdup("the cores of this machine"),
              g_strdup_printf("at the pace of %s nothing is computed; workers are threads that "
                              "sleep meanwhile",
                              facts->config->emulate));
    else
        leave_processors(facts);
    leave_devices(facts);
    if (facts->config->no_peer)
        leave(facts, g_strdup("direct copies between GPUs"), g_strdup("--no-peer"));
}

/* Finds all facts for a configuration, which is borrowed. Returns errors of duet__info_open. */
static int find_facts(struct facts *facts, const struct duet_config *config,
                      struct duet_message *message)
{
    int error = duet__info_open(&facts->info, config, true, message);
    *facts = (struct facts){.config = config,
                            .info = facts->info,
                            .unused = g_ptr_array_new_with_free_func(g_free),
                            .kernels = g_ptr_array_new_with_free_func(g_free)};
    if (error)
        return error;
    if (gethostname(facts->host, sizeof facts->host - 1) || !*facts->host)
        g_strlcpy(facts->host, "this machine", sizeof facts->host);
    facts->has_blas = duet__blas_about(&facts->blas);
    facts->cuda_error = duet__cuda_about(&facts->cuda_why);
    facts->opencl_error = duet__opencl_about(&facts->opencl_why);
    find_unused(facts);
    for (size_t i = 0; duet__workload_at(i); i++)
        for (const char *const *name = duet__workload_at(i)->kernels; *name; name++)
            if (!g_ptr_array_find_with_equal_func(facts->kernels, *name, g_str_equal, NULL))
                g_ptr_array_add(facts->kernels, g_strdup(*name));
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Text for people: duet, this machine, the machine of a run, what is left                      */

enum {
    AT = 16,   /* column of texts */
    FEW = 4,   /* most GPUs for which every pair has a line of its own */
    MANY = 16, /* most GPUs for which a table of all pairs is narrow enough */
};

static const char *plural(unsigned number)
{
    return number == 1 ? "" : "s";
}

/* ------------------------------------------------------------------------------------------- */
/* duet itself                                                                                  */

/* Returns the length of "OpenBLAS 0.3.21" at the beginning of a text that goes on with options. */
static int two_words(const char *text)
{
    size_t length = strcspn(text, " ");
    if (text[length])
        length += 1 + strcspn(text + length + 1, " ");
    return (int)length;
}

static void put_build(const struct facts *facts, FILE *stream)
{
    fprintf(stream, "duet %s%s%s\n", duet_version(), *DUET_BUILD_COMMIT ? ", commit " : "",
            DUET_BUILD_COMMIT);
    duet__put_field(stream, "compiled", AT, "by %s, %s%s%s%s", DUET_BUILD_COMPILER, DUET_BUILD_TYPE,
                    DUET_BUILD_LTO ? ", optimised when linked" : "",
                    *DUET_BUILD_SANITIZERS ? ", under sanitizers: " : "", DUET_BUILD_SANITIZERS);
    duet__put_field(stream, "simulation", AT, "fluid%s%s",
                    *DUET_BUILD_SIMGRID ? ", SimGrid " : "; this build is without SimGrid",
                    DUET_BUILD_SIMGRID);
    if (facts->has_blas)
        duet__put_field(stream, "CPU kernels", AT, "%.*s, code for %s",
                        two_words(facts->blas.build), facts->blas.build, facts->blas.core);
    else
        duet__put_field(stream, "CPU kernels", AT, "none of BLAS in this build");
    if (!*DUET_BUILD_CUDA)
        duet__put_field(stream, "GPU kernels", AT, "none in this build, which is without CUDA");
    else
        duet__put_field(stream, "GPU kernels", AT, "CUDA %s%s%s", DUET_BUILD_CUDA,
                        facts->cuda_error ? ", but those of cuBLAS and cuSOLVER cannot be used: "
                                          : "; cuBLAS and cuSOLVER are found",
                        facts->cuda_why.text);
    duet__put_field(stream, "OpenCL", AT, "%s",
                    facts->opencl_error ? facts->opencl_why.text : "CLBlast is found");
}

/* ------------------------------------------------------------------------------------------- */
/* The host                                                                                     */

/* Prints the host's memory and, where there are GPUs, how much of it may be page-locked. */
static void put_memory(const struct facts *facts, FILE *stream)
{
    const struct duet__survey *survey = &facts->info.survey;
    const uint64_t all = survey->memory_bytes, left = survey->free_bytes;
    const uint64_t pinned = facts->info.pin_bytes;
    g_autofree char *all_text = duet__size_text(all), *left_text = duet__size_text(left);
    g_autofree char *pinned_text = duet__size_text(pinned);
    bool gpus = false;
    for (unsigned b = 0; b < survey->backend_count; b++)
        gpus |= survey->backends[b].kind == SURVEY_DEVICES && survey->backends[b].count &&
                strcmp(survey->backends[b].name, "opencl") != 0; /* OpenCL page-locks nothing */
    if (all)
        duet__put_field(stream, "memory", AT, "%s%s%s%s", all_text, left ? ", " : "",
                        left ? left_text : "", left ? " of it free" : "");
    if (gpus && pinned)
        duet__put_field(stream, "page-locking", AT,
                        "up to %s of the memory, for copies from and to GPUs (--pin)%s",
                        pinned_text, all && pinned > all ? "; that is more than there is" : "");
    else if (gpus)
        duet__put_field(stream, "page-locking", AT,
                        "nothing of the application's (--pin none): copies from and to GPUs go "
                        "through small buffers");
}

static void put_host(const struct facts *facts, FILE *stream)
{
    const struct duet__survey *survey = &facts->info.survey;
    fprintf(stream, "\n%s\n", facts->host);
    duet__put_field(stream, "processors", AT, "%u core%s on %u socket%s, %u hardware thread%s",
                    survey->cores, plural(survey->cores), survey->sockets, plural(survey->sockets),
                    survey->usable_threads, plural(survey->usable_threads));
    if (survey->threads > survey->usable_threads)
        duet__put_field(stream, "", AT, "(of %u hardware threads that the machine has)",
                        survey->threads);
    if (survey->quota_cores)
        duet__put_field(stream, "", AT, "(a control group leaves the time of %u core%s)",
                        survey->quota_cores, plural(survey->quota_cores));
    put_memory(facts, stream);
}

/* ------------------------------------------------------------------------------------------- */
/* Devices                                                                                      */

static void put_device(const struct survey_device *device, FILE *stream)
{
    g_autofree char *usable = duet__size_text(device->memory_bytes);
    g_autofree char *all = duet__size_text(device->total_bytes);
    if (device->error)
        duet__put_field(stream, "", AT, "%u: cannot be used: %s", device->index, why_not(device));
    else
        duet__put_field(stream, "", AT, "%u: %s (%s)%s%s; %s usable of %s", device->index,
                        device->description, device->arch, *device->pci ? ", PCI " : "",
                        device->pci, usable, all);
}

static void put_backend(const struct duet__survey *survey, unsigned number, FILE *stream)
{
    const struct survey_backend *backend = &survey->backends[number];
    const struct survey_device *first = survey->devices;
    const char *what;
    while (first < survey->devices + survey->device_count && first->backend != number)
        first++;
    if (!backend->count) {
        duet__put_field(stream, backend->name, AT, "no devices: %s",
                        *backend->why.text ? backend->why.text : "there are none");
        return;
    }
    what = backend->kind == SURVEY_DEVICES ? backend->description
           : first->error                  ? first->why.text
                                           : first->description;
    if (backend->kind == SURVEY_EMULATED)
        duet__put_field(stream, backend->name, AT, "up to %u: %s (--emulate free)", backend->count,
                        what);
    else
        duet__put_field(stream, backend->name, AT, "%u %s%s: %s", backend->count,
                        backend->kind == SURVEY_CORES ? "core" : "device", plural(backend->count),
                        what);
    for (unsigned d = 0; d < survey->device_count && backend->kind == SURVEY_DEVICES; d++)
        if (survey->devices[d].backend == number)
            put_device(&survey->devices[d], stream);
}

/* ------------------------------------------------------------------------------------------- */
/* The machine that a run is made on: workers, memories, links, routes                          */

static void put_table(struct duet__table *table, FILE *stream)
{
    putc('\n', stream);
    duet__table_put(table, stream, 2);
}

/* True if two CPU workers differ in nothing but their number: they share a line. */
static bool alike(const struct duet_worker *a, const struct duet_worker *b)
{
    return a->node == DUET_HOST && b->node == DUET_HOST && a->arch == b->arch &&
           a->socket == b->socket && a->window == b->window;
}

/* Returns "0-3,7", or "any" where workers are not bound. */
static char *ranges(const int *numbers, unsigned count)
{
    GString *text = g_string_new(NULL);
    for (unsigned i = 0; i < count; i++) {
        unsigned last = i;
        if (numbers[i] < 0)
            continue;
        while (last + 1 < count && numbers[last + 1] == numbers[last] + 1)
            last++;
        g_string_append_printf(text, "%s%d", text->len ? "," : "", numbers[i]);
        if (last > i)
            g_string_append_printf(text, "-%d", numbers[last]);
        i = last;
    }
    if (!text->len)
        g_string_append(text, "any");
    return g_string_free(text, FALSE);
}

static void add_workers(const struct duet__info *info, struct duet__table *table, unsigned first,
                        unsigned count)
{
    const struct duet_machine *machine = &info->machine;
    const struct duet_worker *worker = &machine->workers[first];
    duet__table_print(table, "%s%s%s\t%s\t%s\t%u", worker->name, count > 1 ? " ... " : "",
                      count > 1 ? machine->workers[first + count - 1].name : "",
                      machine->archs[worker->arch].name, machine->nodes[worker->node].name,
                      worker->socket);
    duet__table_add(table, ranges(info->processors + first, count));
    duet__table_print(table, worker->window_short > worker->window ? "%u (short tasks: %u)" : "%u",
                      worker->window, worker->window_short);
}

static void put_workers(const struct duet__info *info, FILE *stream)
{
    const struct duet_machine *machine = &info->machine;
    struct duet__table table;
    duet__table_init(&table, "lllrll");
    duet__table_print(&table, "worker\tarchitecture\tmemory\tsocket\tbound to\twindow");
    for (unsigned w = 0, next; w < machine->worker_count; w = next) {
        for (next = w + 1; next < machine->worker_count; next++)
            if (!alike(&machine->workers[w], &machine->workers[next]))
                break;
        add_workers(info, &table, w, next - w);
    }
    duet__table_put(&table, stream, 2);
}

static void put_nodes(const struct duet_machine *machine, FILE *stream)
{
    struct duet__table table;
    duet__table_init(&table, "lr");
    duet__table_print(&table, "memory\tfor data");
    for (unsigned n = 0; n < machine->node_count; n++) {
        uint64_t bytes = machine->nodes[n].capacity_bytes;
        duet__table_say(&table, machine->nodes[n].name);
        duet__table_add(&table, bytes ? duet__size_text(bytes) : g_strdup("all there is"));
    }
    put_table(&table, stream);
}

static bool crosses(const struct duet_route *route, unsigned link)
{
    for (unsigned i = 0; i < route->count; i++)
        if (route->links[i] == link)
            return true;
    return false;
}

/* Returns where a link leads from the host, "to gpu0 gpu1", else to it, "from gpu0", else the
   rest. */
static char *carries(const struct duet_machine *machine, unsigned link)
{
    for (int out = 1; out >= 0; out--) {
        g_autoptr(GString) list = g_string_new(out ? "to" : "from");
        const size_t empty = list->len;
        for (unsigned n = 1; n < machine->node_count; n++)
            if (crosses(duet_machine_route(machine, out ? DUET_HOST : n, out ? n : DUET_HOST),
                        link))
                g_string_append_printf(list, " %s", machine->nodes[n].name);
        if (list->len > empty)
            return g_strdup(list->str);
    }
    return g_strdup("between GPUs");
}

static void put_links(const struct duet_machine *machine, FILE *stream)
{
    struct duet__table table;
    duet__table_init(&table, "lrll");
    duet__table_print(&table, "link\tGB/s\t\tcopies");
    for (unsigned l = 0; l < machine->link_count; l++) {
        const struct duet_link *link = &machine->links[l];
        duet__table_print(&table, "%s\t%.3g\t%s", link->name, link->bandwidth_Bps / 1e9,
                          link->per_copy ? "for each" : "shared");
        duet__table_add(&table, carries(machine, l));
    }
    put_table(&table, stream);
}

static void add_route(const struct duet_machine *machine, struct duet__table *table,
                      unsigned source, unsigned destination)
{
    const struct duet_route *route = duet_machine_route(machine, source, destination);
    g_autoptr(GString) links = g_string_new(NULL);
    duet__table_print(table, "%s to %s", machine->nodes[source].name,
                      machine->nodes[destination].name);
    if (!route->direct) {
        duet__table_print(table, "\t\tthrough the host's memory");
    } else {
        for (unsigned i = 0; i < route->count; i++)
            g_string_append_printf(links, "%s%s", i ? ", " : "",
                                   machine->links[route->links[i]].name);
        duet__table_print(table, "%.3g\t%.3g\t%s", route->bandwidth_Bps / 1e9,
                          route->latency_s * 1e6, links->str);
    }
}

static void put_routes(const struct duet_machine *machine, FILE *stream)
{
    unsigned nodes = machine->node_count;
    struct duet__table table;
    duet__table_init(&table, "lrrl");
    duet__table_print(&table, "route\tGB/s\tus\tover");
    for (unsigned s = 0; s < nodes; s++)
        for (unsigned d = 0; d < nodes; d++)
            if (s != d && (s == DUET_HOST || d == DUET_HOST || nodes <= 1 + FEW))
                add_route(machine, &table, s, d);
    put_table(&table, stream);
}

/* Prints the bandwidths between GPUs, if there are several. */
static void put_matrix(const struct duet_machine *machine, FILE *stream)
{
    g_autofree char *sides = g_strnfill(machine->node_count, 'r');
    struct duet__table table;
    sides[0] = 'l';
    duet__table_init(&table, sides);
    duet__table_say(&table, "GB/s from, to");
    for (unsigned d = 1; d < machine->node_count; d++)
        duet__table_say(&table, machine->nodes[d].name);
    for (unsigned s = 1; s < machine->node_count; s++) {
        duet__table_say(&table, machine->nodes[s].name);
        for (unsigned d = 1; d < machine->node_count; d++) {
            const struct duet_route *route = duet_machine_route(machine, s, d);
            if (route->direct)
                duet__table_print(&table, "%.3g", route->bandwidth_Bps / 1e9);
            else
                duet__table_say(&table, s == d ? "-" : "host");
        }
    }
    put_table(&table, stream);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Prints how many pairs of GPUs have direct routes of each bandwidth, and how many none. */
static void put_summary(const struct duet_machine *machine, FILE *stream)
{
    g_autoptr(GPtrArray) kinds = g_ptr_array_new_with_free_func(g_free); /* one a pair */
    struct duet__table table;
    for (unsigned s = 1; s < machine->node_count; s++)
        for (unsigned d = 1; d < machine->node_count; d++) {
            const struct duet_route *route = duet_machine_route(machine, s, d);
            if (s != d)
                g_ptr_array_add(kinds, route->direct ? g_strdup_printf("%.3g GB/s",
                                                                       route->bandwidth_Bps / 1e9)
                                                     : g_strdup("through the host's memory"));
        }
    g_ptr_array_sort(kinds, by_text);
    duet__table_init(&table, "lr");
    duet__table_print(&table, "GPU to GPU\tpairs");
    for (guint i = 0, next; i < kinds->len; i = next) {
        for (next = i + 1; next < kinds->len && !by_text(&kinds->pdata[i], &kinds->pdata[next]);)
            next++;
        duet__table_print(&table, "%s\t%u", (const char *)kinds->pdata[i], next - i);
    }
    put_table(&table, stream);
}

/* Prints the options that are no part of the machine. */
static void put_conditions(const struct duet_config *config, FILE *stream)
{
    if (config->scale > 0)
        duet__put_field(stream, "times", AT,
                        "%g times those of %s (--scale); the table's are the platform's",
                        config->scale, config->emulate);
    if (config->gpu_streams > 1)
        duet__put_field(stream, "kernels", AT, "up to %u at once on a GPU (--gpu-streams)",
                        config->gpu_streams);
    if (config->lose)
        duet__put_field(stream, "to be lost", AT, "%s", config->lose);
    if (config->scale > 0 || config->gpu_streams > 1 || config->lose)
        putc('\n', stream);
}

static void put_machine(const struct facts *facts, FILE *stream)
{
    const struct duet_machine *machine = &facts->info.machine;
    g_autofree char *resources = NULL;
    if (facts->info.error) {
        fputs("\nno machine for a run\n", stream);
        duet__put_field(stream, "", 2, "%s", facts->info.why.text);
        return;
    }
    resources = duet__report_resources(machine);
    fprintf(stream, "\nmachine of a run%s%s: %s\n\n",
            facts->config->emulate ? " with --emulate " : "",
            facts->config->emulate ? facts->config->emulate : "", resources);
    put_conditions(facts->config, stream);
    put_workers(&facts->info, stream);
    put_nodes(machine, stream);
    if (machine->node_count > 1) {
        put_links(machine, stream);
        put_routes(machine, stream);
        if (machine->node_count > 1 + MANY)
            put_summary(machine, stream);
        else if (machine->node_count > 1 + FEW)
            put_matrix(machine, stream);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* The rest                                                                                     */

/* Prints the kernels that have code for a kind of device. */
static void put_kernels(const struct facts *facts, const char *kind,
                        duet_kernel_fn (*find)(const char *base), FILE *stream)
{
    g_autoptr(GString) list = g_string_new(NULL);
    for (guint i = 0; i < facts->kernels->len; i++) {
        const char *name = facts->kernels->pdata[i];
        if (find(name))
            g_string_append_printf(list, "%s%s", list->len ? ", " : "", name);
    }
    duet__put_field(stream, kind, AT, "%s", list->len ? list->str : "none");
}

static void put_text(const struct facts *facts, FILE *stream)
{
    put_build(facts, stream);
    put_host(facts, stream);
    fputs("\ndevices\n", stream);
    for (unsigned b = 0; b < facts->info.survey.backend_count; b++)
        put_backend(&facts->info.survey, b, stream);
    put_machine(facts, stream);
    if (facts->unused->len)
        fputs("\nnot used\n", stream);
    for (guint i = 0; i < facts->unused->len; i += 2)
        duet__put_field(stream, "", 2, "%s: %s", (const char *)facts->unused->pdata[i],
                        (const char *)facts->unused->pdata[i + 1]);
    fputs("\nkernels, in single and double precision\n", stream);
    put_kernels(facts, "cpu", duet__kernel, stream);
    put_kernels(facts, "cuda", duet__cuda_kernel, stream);
    put_kernels(facts, "opencl", duet__opencl_kernel, stream);
}

/* ------------------------------------------------------------------------------------------- */
/* JSON for programs: docs/formats.md describes it                                              */

/* Returns the text; NULL for "". */
static const char *some(const char *text)
{
    return *text ? text : NULL;
}

/* Writes a whole number, or null where it is not known. */
static void known(struct duet__json_writer *json, const char *key, bool is_known, uint64_t value)
{
    if (is_known)
        duet__json_put_integer(json, key, value);
    else
        duet__json_put_string(json, key, NULL);
}

static void write_build(const struct facts *facts, struct duet__json_writer *json)
{
    g_auto(GStrv) sanitizers = g_strsplit(DUET_BUILD_SANITIZERS, " ", -1);
    duet__json_print(
        json,
        "build: {version: %s, commit: %s, compiler: %s, type: %s, link_time_optimisation: %d, "
        "sanitizers: [",
        duet_version(), some(DUET_BUILD_COMMIT), DUET_BUILD_COMPILER, DUET_BUILD_TYPE,
        DUET_BUILD_LTO);
    for (char **name = sanitizers; *name; name++)
        if (**name)
            duet__json_put_string(json, NULL, *name);
    duet__json_print(json, "], simgrid: %s", some(DUET_BUILD_SIMGRID));
    if (facts->has_blas)
        duet__json_print(json, "blas: {version: %s, config: %s, core: %s, threading: %s}",
                         DUET_BUILD_BLAS, facts->blas.build, facts->blas.core,
                         facts->blas.threading);
    else
        duet__json_print(json, "blas: null");
    if (*DUET_BUILD_CUDA)
        duet__json_print(json,
                         "cuda: {toolkit: %s, compiled_for: %s, libraries: %d, libraries_why: %s}",
                         DUET_BUILD_CUDA, DUET_BUILD_CUDA_ARCHITECTURES, !facts->cuda_error,
                         some(facts->cuda_why.text));
    else
        duet__json_print(json, "cuda: null");
    duet__json_print(json, "opencl: {libraries: %d, libraries_why: %s}}", !facts->opencl_error,
                     some(facts->opencl_why.text));
}

static void write_host(const struct facts *facts, struct duet__json_writer *json)
{
    const struct duet__survey *survey = &facts->info.survey;
    duet__json_print(json, "host: {name: %s, threads: %u, usable_threads: %u, usable_cores: %u",
                     facts->host, survey->threads, survey->usable_threads, survey->usable_cores);
    known(json, "quota_cores", survey->quota_cores, survey->quota_cores);
    duet__json_print(json, "cores: %u, sockets: %u", survey->cores, survey->sockets);
    known(json, "memory_bytes", survey->memory_bytes, survey->memory_bytes);
    known(json, "free_bytes", survey->free_bytes, survey->free_bytes);
    known(json, "lock_limit_bytes", survey->lock_bytes != UINT64_MAX, survey->lock_bytes);
    duet__json_print(json, "pin_bytes: %" PRIu64 "}", facts->info.pin_bytes);
}

static void write_device(const struct survey_device *device, struct duet__json_writer *json)
{
    duet__json_print(json, "{index: %u, why: %s, architecture: %s, description: %s, pci: %s",
                     device->index, device->error ? device->why.text : NULL, some(device->arch),
                     some(device->description), some(device->pci));
    known(json, "usable_bytes", device->memory_bytes, device->memory_bytes);
    known(json, "total_bytes", device->total_bytes, device->total_bytes);
    duet__json_print(json, "}");
}

static void write_backends(const struct duet__survey *survey, struct duet__json_writer *json)
{
    static const char *const kinds[] = {"cores", "devices", "emulated"};
    duet__json_print(json, "backends: [");
    for (unsigned b = 0; b < survey->backend_count; b++) {
        const struct survey_backend *backend = &survey->backends[b];
        duet__json_print(json,
                         "{name: %s, description: %s, kind: %s, count: %u, why: %s, devices: [",
                         backend->name, backend->description, kinds[backend->kind], backend->count,
                         backend->count ? NULL : some(backend->why.text));
        for (unsigned d = 0; d < survey->device_count; d++)
            if (survey->devices[d].backend == b)
                write_device(&survey->devices[d], json);
        duet__json_print(json, "]}");
    }
    duet__json_print(json, "]");
}

/* ------------------------------------------------------------------------------------------- */
/* The machine of a run                                                                         */

static void write_worker(const struct duet__info *info, struct duet__json_writer *json, unsigned w)
{
    const struct duet_machine *machine = &info->machine;
    const struct duet_worker *worker = &machine->workers[w];
    const struct duet_arch *arch = &machine->archs[worker->arch];
    const struct survey_device *device =
        info->devices[w] < 0 ? NULL : &info->survey.devices[info->devices[w]];
    duet__json_print(json, "{name: %s, architecture: %s, programmed_by: %s", worker->name,
                     arch->name, arch->backend);
    duet__json_put_string(json, "backend",
                          device ? info->survey.backends[device->backend].name : NULL);
    known(json, "device", device && worker->node != DUET_HOST, device ? device->index : 0);
    duet__json_print(json, "node: %s, socket: %u", machine->nodes[worker->node].name,
                     worker->socket);
    known(json, "thread", info->processors[w] >= 0, (uint64_t)info->processors[w]);
    duet__json_print(json, "window: %u, window_short: %u}", worker->window,
                     MAX(worker->window, worker->window_short));
}

static void write_route(const struct duet_machine *machine, struct duet__json_writer *json,
                        unsigned source, unsigned destination)
{
    const struct duet_route *route = duet_machine_route(machine, source, destination);
    duet__json_print(
        json,
        "{source: %s, destination: %s, direct: %d, bandwidth_Bps: %g, latency_s: %g, links: [",
        machine->nodes[source].name, machine->nodes[destination].name, route->direct,
        route->direct ? route->bandwidth_Bps : NAN, route->direct ? route->latency_s : NAN);
    for (unsigned i = 0; route->direct && i < route->count; i++)
        duet__json_put_string(json, NULL, machine->links[route->links[i]].name);
    duet__json_print(json, "]}");
}

static void write_machine(const struct facts *facts, struct duet__json_writer *json)
{
    const struct duet_machine *machine = &facts->info.machine;
    const struct duet_config *config = facts->config;
    duet__json_print(json,
                     "machine: {name: %s, emulation: %s, scale: %g, gpu_streams: %u, lose: %s, "
                     "workers: [",
                     machine->name, emulation(facts), config->scale > 0 ? config->scale : NAN,
                     MAX(config->gpu_streams, 1), config->lose);
    for (unsigned w = 0; w < machine->worker_count; w++)
        write_worker(&facts->info, json, w);
    duet__json_print(json, "], nodes: [");
    for (unsigned n = 0; n < machine->node_count; n++) {
        uint64_t bytes = machine->nodes[n].capacity_bytes;
        duet__json_print(json, "{name: %s", machine->nodes[n].name);
        known(json, "capacity_bytes", bytes, bytes);
        duet__json_print(json, "}");
    }
    duet__json_print(json, "], links: [");
    for (unsigned l = 0; l < machine->link_count; l++)
        duet__json_print(json, "{name: %s, bandwidth_Bps: %g, shared: %d}", machine->links[l].name,
                         machine->links[l].bandwidth_Bps, !machine->links[l].per_copy);
    duet__json_print(json, "], routes: [");
    for (unsigned s = 0; s < machine->node_count; s++)
        for (unsigned d = 0; d < machine->node_count; d++)
            if (s != d)
                write_route(machine, json, s, d);
    duet__json_print(json, "]}");
}

static void write_json(const struct facts *facts, FILE *stream)
{
    struct duet__json_writer json = {.stream = stream, .indented = true};
    duet__json_print(&json, "{schema: 1, command: %s", "info");
    write_build(facts, &json);
    write_host(facts, &json);
    write_backends(&facts->info.survey, &json);
    if (facts->info.error)
        duet__json_print(&json, "machine: null");
    else
        write_machine(facts, &json);
    duet__json_print(&json, "machine_why: %s, unused: [", some(facts->info.why.text));
    for (guint i = 0; i < facts->unused->len; i += 2)
        duet__json_print(&json, "{what: %s, why: %s}", (const char *)facts->unused->pdata[i],
                         (const char *)facts->unused->pdata[i + 1]);
    duet__json_print(&json, "], kernels: [");
    for (guint i = 0; i < facts->kernels->len; i++) {
        const char *name = facts->kernels->pdata[i];
        duet__json_print(&json, "{name: %s, cpu: %d, cuda: %d, opencl: %d}", name,
                         duet__kernel(name) != NULL, duet__cuda_kernel(name) != NULL,
                         duet__opencl_kernel(name) != NULL);
    }
    duet__json_print(&json, "]}");
}

/* ------------------------------------------------------------------------------------------- */
/* The command                                                                                  */

static int write_platform(const struct facts *facts, const char *path, struct duet_message *message)
{
    if (!path)
        return 0;
    if (facts->info.error)
        return duet_fail(message, facts->info.error, "%s", facts->info.why.text);
    return duet__platform_write_xml(&facts->info.machine, NULL, path, message);
}

static int show(const struct facts *facts, const struct duet__job *job)
{
    struct duet_message message = {""};
    int status;
    (job->values.json ? write_json : put_text)(facts, stdout);
    status = duet__finish_output();
    if (write_platform(facts, job->values.machine_xml, &message) && status == DUET__DONE)
        status = duet__complain(DUET__FAILED, "%s", message.text);
    return status;
}

static int work(struct duet__job *job, int argc, char **argv)
{
    struct duet_message message = {""};
    struct facts facts = {0};
    int status, error;
    if (argc > 1)
        return duet__complain(DUET__MISUSED, "duet info takes options only, not '%s'", argv[1]);
    error = duet__job_check_emulation(job, &message);
    if (!error)
        error = duet__job_check_machine(job, &message);
    if (!error)
        error = duet__files_distinct(job, &message);
    status = error ? duet__job_refuse(error, &message) : duet__files_check(job);
    if (status != DUET__DONE)
        return status;
    error = find_facts(&facts, &job->request.config, &message);
    status = error ? duet__job_refuse(error, &message) : show(&facts, job);
    g_ptr_array_unref(facts.unused);
    g_ptr_array_unref(facts.kernels);
    duet__info_fini(&facts.info);
    return status;
}

const struct duet__command duet__info_command = {
    .name = "info",
    .description = "this duet, this machine, and what a run would use of it",
    .where = DUET__IN_INFO,
    .summary = "Shows this duet, this machine, and the machine that duet run would make of it with "
               "the same options:\nworkers, memories, links and routes, and what is not used and "
               "why.",
    .notes = "Bandwidths and latencies are what schedulers assume before anything was measured. A "
             "machine without GPUs\nis no error: the reason is shown. Options of duet run that are "
             "not here change nothing of the machine.\n\n"
             "Examples:\n"
             "  duet info\n"
             "  duet info --gpus 1 --gpu-memory 8GiB --json\n"
             "  duet info --emulate idgraf --gpus 4",
    .work = work,
};
