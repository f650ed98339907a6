/* SPDX-License-Identifier: Apache-2.0 */
/* The cores that this process may use, by hwloc. */
#include "real/machine.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hwloc.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct place {
    unsigned processor; /* the operating system's number of the hardware thread */
    unsigned socket;
};

struct places {
    hwloc_topology_t topology;
    bool loaded;
    unsigned cores;          /* cores that may be used at a time */
    unsigned distinct;       /* number of the first places, which are on different cores: no fewer
                                than cores */
    unsigned count, sockets; /* sockets: more than any place's number */
    struct place *all;
};

/*
 * Returns the processors to which the process is bound and which it is allowed. NULL: out of
 * memory.
 */
static hwloc_bitmap_t allowed(hwloc_topology_t topology)
{
    hwloc_const_bitmap_t most = hwloc_topology_get_allowed_cpuset(topology);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set)
        return NULL;
    if (hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS) ||
        !hwloc_bitmap_intersects(set, most))
        (void)hwloc_bitmap_copy(set, most);
    (void)hwloc_bitmap_and(set, set, most);
    return set;
}

static unsigned socket_of(const struct places *places, hwloc_obj_t object)
{
    hwloc_obj_t package =
        hwloc_get_ancestor_obj_by_type(places->topology, HWLOC_OBJ_PACKAGE, object);
    return package ? package->logical_index : 0;
}

/* Adds the round-th hardware thread of every core that has so many. Returns the number added. */
static unsigned add_round(struct places *places, hwloc_const_bitmap_t set, hwloc_obj_type_t type,
                          unsigned round)
{
    unsigned added = 0;
    hwloc_obj_t core = NULL;
    while ((core = hwloc_get_next_obj_by_type(places->topology, type, core))) {
        unsigned nth = 0;
        int processor = -1;
        while ((processor = hwloc_bitmap_next(core->cpuset, processor)) >= 0)
            if (hwloc_bitmap_isset(set, (unsigned)processor) && nth++ == round)
                break;
        if (processor < 0)
            continue;
        places->all[places->count++] =
            (struct place){.processor = (unsigned)processor, .socket = socket_of(places, core)};
        added++;
    }
    return added;
}

/* Returns the type of a core: some virtual machines show hardware threads only. */
static hwloc_obj_type_t type_of_core(hwloc_topology_t topology)
{
    return hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

static int fill_places(struct places *places)
{
    hwloc_bitmap_t set = allowed(places->topology);
    if (!set)
        return DUET_ENOMEM;
    int weight = hwloc_bitmap_weight(set);
    hwloc_obj_type_t type = type_of_core(places->topology);
    places->all = calloc(weight > 0 ? (size_t)weight : 1, sizeof *places->all);
    if (places->all) {
        places->distinct = add_round(places, set, type, 0);
        for (unsigned round = 1; add_round(places, set, type, round); round++)
            ;
    }
    hwloc_bitmap_free(set);
    if (!places->all)
        return DUET_ENOMEM;
    if (places->count == 0)
        places->distinct = places->count = 1;
    for (unsigned i = 0; i < places->count; i++)
        if (places->all[i].socket >= places->sockets)
            places->sockets = places->all[i].socket + 1;
    places->cores = places->distinct;
    return DUET_OK;
}

/*
 * Restricts the topology to packages and cores, from the operating system: quick, and this thread
 * stays on its core.
 */
static void look_at_little(hwloc_topology_t topology)
{
    (void)hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    (void)hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    (void)hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    (void)hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
}

/* Makes the places of this machine, or of a description. */
static int make_places(struct places **out, const char *description)
{
    *out = NULL;
    struct places *places = calloc(1, sizeof *places);
    if (!places)
        return DUET_ENOMEM;
    places->loaded = !hwloc_topology_init(&places->topology);
    int error = DUET_ENOMEM;
    if (places->loaded)
        look_at_little(places->topology);
    if (places->loaded && description &&
        hwloc_topology_set_synthetic(places->topology, description))
        error = DUET_EINVAL;
    else if (places->loaded && !hwloc_topology_load(places->topology))
        error = fill_places(places);
    if (error) {
        duet__places_free(places);
        return error;
    }
    *out = places;
    return DUET_OK;
}

int duet__places_new(struct places **out)
{
    int error = make_places(out, NULL);
    if (error)
        return error;
    unsigned quota = duet__quota("/sys/fs/cgroup", "/proc/self/cgroup");
    (*out)->cores = quota < (*out)->cores ? quota : (*out)->cores;
    return DUET_OK;
}

int duet__places_synthetic(struct places **out, const char *description)
{
    return make_places(out, description);
}

void duet__places_free(struct places *places)
{
    if (!places)
        return;
    if (places->loaded)
        hwloc_topology_destroy(places->topology);
    free(places->all);
    free(places);
}

unsigned duet__places_cores(const struct places *places)
{
    return places->cores;
}

unsigned duet__places_count(const struct places *places)
{
    return places->count;
}

unsigned duet__places_socket(const struct places *places, unsigned place)
{
    return places->all[place].socket;
}

unsigned duet__places_processor(const struct places *places, unsigned place)
{
    return places->all[place].processor;
}

int duet__places_near(const struct places *places, const char *processors)
{
    int near = -1;
    for (unsigned i = 0; i < places->count; i++) {
        if (!duet__is_listed(processors, places->all[i].processor))
            continue;
        if (near >= 0 && places->all[i].socket != (unsigned)near)
            return -1;
        near = (int)places->all[i].socket;
    }
    return near;
}

/* ------------------------------------------------------------------------------------------- */
/* Distribution of places */

/* Returns the first free place on this socket from `from` on; `to` if there is none before. */
static unsigned next_free(const struct places *places, const bool *taken, unsigned socket,
                          unsigned from, unsigned to)
{
    while (from < to && (taken[from] || places->all[from].socket != socket))
        from++;
    return from;
}

/* Returns the socket with most free cores, the first among equals. */
static unsigned roomiest(const struct places *places, const bool *taken)
{
    unsigned best = 0, most = 0;
    for (unsigned s = 0; s < places->sockets; s++) {
        unsigned room = 0;
        for (unsigned i = 0; i < places->distinct; i++)
            room += !taken[i] && places->all[i].socket == s;
        if (room > most) {
            most = room;
            best = s;
        }
    }
    return best;
}

/* Takes a core for a device's thread: the last free one, since systems keep their own work on the
   first. */
static int take_core(const struct places *places, bool *taken, int near)
{
    unsigned cores = places->distinct;
    unsigned socket = near < 0 ? 0 : (unsigned)near;
    if (near < 0 || next_free(places, taken, socket, 0, cores) == cores)
        socket = roomiest(places, taken);
    for (unsigned i = cores; i-- > 0;) {
        if (!taken[i] && places->all[i].socket == socket) {
            taken[i] = true;
            return (int)i;
        }
    }
    return -1;
}

/* Chooses places for up to `wanted` CPU workers among the first `limit`. Returns their number. */
static unsigned choose_places(const struct places *places, bool *taken, bool *chosen,
                              unsigned limit, unsigned wanted)
{
    unsigned count = 0, before;
    do {
        before = count;
        for (unsigned s = 0; s < places->sockets && count < wanted; s++) {
            unsigned i = next_free(places, taken, s, 0, limit);
            if (i == limit)
                continue;
            taken[i] = chosen[i] = true;
            count++;
        }
    } while (count > before);
    return count;
}

int duet__places_deal(const struct places *places, unsigned cpus, unsigned devices, const int *near,
                      int *place)
{
    bool *taken = calloc(2 * (size_t)places->count, sizeof *taken), *chosen;
    unsigned next = 0;
    if (!taken)
        return DUET_ENOMEM;
    chosen = taken + places->count;
    for (unsigned d = 0; d < devices; d++)
        place[cpus + d] = cpus < places->cores && d < places->cores - cpus
                              ? take_core(places, taken, near[d])
                              : -1;
    if (cpus <= places->count) {
        unsigned dealt = choose_places(places, taken, chosen, places->distinct, cpus);
        (void)choose_places(places, taken, chosen, places->count, cpus - dealt);
    }
    for (unsigned s = 0; s < places->sockets; s++)
        for (unsigned i = 0; i < places->count; i++)
            if (chosen[i] && places->all[i].socket == s)
                place[next++] = (int)i;
    while (next < cpus)
        place[next++] = -1;
    free(taken);
    return DUET_OK;
}

int duet__places_of(const struct places *places, const struct duet_machine *machine, int *place)
{
    unsigned cpus = 0, workers = machine->worker_count;
    int *near = calloc(workers, sizeof *near);
    if (!near)
        return DUET_ENOMEM;
    for (unsigned w = 0; w < workers; w++) {
        const struct duet_worker *worker = &machine->workers[w];
        if (worker->node == DUET_HOST)
            cpus++;
        else
            near[w - cpus] = worker->socket < places->sockets ? (int)worker->socket : -1;
    }
    int error = duet__places_deal(places, cpus, workers - cpus, near, place);
    free(near);
    return error;
}

/* ------------------------------------------------------------------------------------------- */

void duet__places_bind(const struct places *places, unsigned place)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set)
        return;
    hwloc_bitmap_only(set, places->all[place].processor);
    (void)hwloc_set_cpubind(places->topology, set, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(set);
}

void duet__places_move(const struct places *places, unsigned place)
{
    unsigned processor = places->all[place].processor;
    if (sched_getcpu() == (int)processor)
        return;
    hwloc_bitmap_t set = hwloc_bitmap_alloc(), before = hwloc_bitmap_alloc();
    if (set && before && hwloc_get_cpubind(places->topology, before, HWLOC_CPUBIND_THREAD) == 0 &&
        hwloc_bitmap_isset(before, processor)) {
        hwloc_bitmap_only(set, processor);
        if (hwloc_set_cpubind(places->topology, set, HWLOC_CPUBIND_THREAD) == 0)
            (void)hwloc_set_cpubind(places->topology, before, HWLOC_CPUBIND_THREAD);
    }
    hwloc_bitmap_free(set);
    hwloc_bitmap_free(before);
}

/* Binds the process to its cores number `first` to `end` - 1. */
static void bind_to(struct places *places, hwloc_obj_type_t type, unsigned first, unsigned end)
{
    hwloc_bitmap_t mine = hwloc_bitmap_alloc(), all = allowed(places->topology);
    hwloc_obj_t core = NULL;
    unsigned number = 0;
    while (mine && all && (core = hwloc_get_next_obj_by_type(places->topology, type, core))) {
        if (!hwloc_bitmap_intersects(core->cpuset, all))
            continue;
        if (number >= first && number < end)
            (void)hwloc_bitmap_or(mine, mine, core->cpuset);
        number++;
    }
    if (mine && all && hwloc_bitmap_and(mine, mine, all) == 0 && !hwloc_bitmap_iszero(mine))
        (void)hwloc_set_cpubind(places->topology, mine, HWLOC_CPUBIND_PROCESS);
    hwloc_bitmap_free(mine);
    hwloc_bitmap_free(all);
}

unsigned duet__real_take_cores(unsigned part, unsigned parts, bool bind)
{
    struct places *places;
    if (duet__places_new(&places))
        return 1;
    unsigned cores = places->distinct, first = part * cores / parts;
    unsigned mine = (part + 1) * cores / parts - first, most = places->cores / parts; /* a quota */
    if (bind && most)
        bind_to(places, type_of_core(places->topology), first, first + mine);
    duet__places_free(places);
    return mine < most ? mine : most;
}

unsigned duet__real_cores(void)
{
    struct places *places;
    if (duet__places_new(&places))
        return 1;
    unsigned cores = places->cores;
    duet__places_free(places);
    return cores;
}

/* ------------------------------------------------------------------------------------------- */
/*
 * Processor time and memory that containers leave to a process: more threads than the first are
 * only slowed down, more memory than the second ends it.
 */

enum { LINE = 4096 };

enum { FIELD = 64 };

/* Returns the cores of one group: "200000 100000" is two, "max 100000" unlimited. */
static uint64_t cores_of(const char *path)
{
    char line[FIELD], *end = NULL;
    (void)duet__read_line(path, line, sizeof line);
    double quota = strtod(line, &end), period = strtod(end, NULL);
    if (end == line || !(quota > 0) || !(period > 0) || quota / period > INT_MAX)
        return UINT64_MAX;
    unsigned cores = (unsigned)(quota / period);
    return cores < quota / period ? cores + 1 : cores;
}

/*
 * Returns the memory of one group: "1073741824" bytes; "max" or a number beyond all memory is
 * unlimited.
 */
static uint64_t bytes_of(const char *path)
{
    char line[FIELD], *end = NULL;
    (void)duet__read_line(path, line, sizeof line);
    unsigned long long bytes = strtoull(line, &end, 10);
    return end == line || *line == '-' ? UINT64_MAX : bytes;
}

/* True if the list "cpu,memory" of a hierarchy names the controller; cgroup v2 names none: "". */
static bool names_controller(const char *list, const char *controller)
{
    size_t length = strlen(controller);
    for (;;) {
        size_t name = strcspn(list, ",");
        if (name == length && !strncmp(list, controller, length))
            return true;
        if (!list[name])
            return false;
        list += name + 1;
    }
}

/* Finds the group of the process, "" for the root: the line "0::/a/b", in v1 "4:memory:/a/b". */
static void find_group(const char *membership, const char *controller, char *group, size_t size)
{
    char line[LINE];
    FILE *file = fopen(membership, "r");
    *group = '\0';
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *list = strchr(line, ':');
        char *path = list ? strchr(list + 1, ':') : NULL;
        if (!path || path[1] != '/')
            continue;
        *path = '\0';
        if (names_controller(list + 1, controller))
            (void)snprintf(group, size, "%s", path + 2);
    }
    if (file)
        (void)fclose(file);
}

/* A file that every group of a hierarchy has, and its reader. */
struct kind {
    const char *controller, *folder, *file;
    uint64_t (*read)(const char *path);
};

/* Returns the least value on the way from the process's group to the root. */
static uint64_t least_of(const struct kind *kind, const char *root, const char *membership)
{
    char group[LINE], path[2 * LINE];
    uint64_t least = UINT64_MAX;
    find_group(membership, kind->controller, group, sizeof group);
    for (;;) {
        (void)snprintf(path, sizeof path, "%s%s/%s/%s", root, kind->folder, group, kind->file);
        uint64_t value = kind->read(path);
        least = value < least ? value : least;
        char *last = strrchr(group, '/');
        if (!last && !*group)
            return least;
        *(last ? last : group) = '\0';
    }
}

unsigned duet__quota(const char *root, const char *membership)
{
    const struct kind cpu = {"", "", "cpu.max", cores_of};
    uint64_t cores = least_of(&cpu, root, membership);
    return cores < UINT_MAX ? (unsigned)cores : UINT_MAX;
}

uint64_t duet__memory_limit(const char *root, const char *membership)
{
    const struct kind kinds[] = {
        {"", "", "memory.max", bytes_of},
        {"memory", "/memory", "memory.limit_in_bytes", bytes_of},
    };
    uint64_t newer = least_of(&kinds[0], root, membership);
    uint64_t older = least_of(&kinds[1], root, membership);
    return newer < older ? newer : older;
}

uint64_t duet__real_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
    uint64_t limit = duet__memory_limit("/sys/fs/cgroup", "/proc/self/cgroup");
    return limit < bytes ? limit : bytes;
}
