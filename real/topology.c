/* SPDX-License-Identifier: Apache-2.0 */
/* The cores that this process may use, by hwloc. */
#include "real/topology.h"

#include <stdbool.h>
#include <stdlib.h>

#include <hwloc.h>

#include "real/real.h"

struct place {
    unsigned processor; /* the operating system's number of the hardware thread */
    unsigned socket;
};

struct places {
    hwloc_topology_t topology;
    bool loaded;
    unsigned cores, count;
    struct place *all;
};

/* What the process is bound to, within what it is allowed. NULL: out of memory. */
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

/* Adds the round-th hardware thread of every core that has so many. How many were added. */
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

static int fill(struct places *places)
{
    hwloc_bitmap_t set = allowed(places->topology);
    if (!set)
        return DUET_ENOMEM;
    int weight = hwloc_bitmap_weight(set);
    /* some virtual machines show no cores */
    hwloc_obj_type_t type = hwloc_get_nbobjs_by_type(places->topology, HWLOC_OBJ_CORE) > 0
                                ? HWLOC_OBJ_CORE
                                : HWLOC_OBJ_PU;
    places->all = calloc(weight > 0 ? (size_t)weight : 1, sizeof *places->all);
    if (places->all) {
        places->cores = add_round(places, set, type, 0);
        for (unsigned round = 1; add_round(places, set, type, round); round++)
            ;
    }
    hwloc_bitmap_free(set);
    if (!places->all)
        return DUET_ENOMEM;
    if (places->count == 0)
        places->cores = places->count = 1;
    unsigned quota = duet__quota("/sys/fs/cgroup", "/proc/self/cgroup");
    places->cores = quota < places->cores ? quota : places->cores;
    return DUET_OK;
}

/* Packages and cores only, from the operating system: quick, and this thread stays on its core. */
static void look_at_little(hwloc_topology_t topology)
{
    (void)hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    (void)hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    (void)hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    (void)hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
}

int duet__places_new(struct places **out)
{
    *out = NULL;
    struct places *places = calloc(1, sizeof *places);
    if (!places)
        return DUET_ENOMEM;
    places->loaded = !hwloc_topology_init(&places->topology);
    int error = DUET_ENOMEM;
    if (places->loaded)
        look_at_little(places->topology);
    if (places->loaded && !hwloc_topology_load(places->topology))
        error = fill(places);
    if (error) {
        duet__places_free(places);
        return error;
    }
    *out = places;
    return DUET_OK;
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

void duet__places_bind(const struct places *places, unsigned place)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set)
        return;
    hwloc_bitmap_only(set, places->all[place].processor);
    (void)hwloc_set_cpubind(places->topology, set, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(set);
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
