/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of OpenMP programs (OMP_*), and the functions that ask for it and change it. */
#include "openmp/gomp/gomp.h"

#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <duet/duet.h>

static const double ACTIVE_S = 10e-3, USUAL_S = 1e-3; /* spinning of threads that wait */

static const char *const schedules[] = {[OMP_STATIC] = "static",
                                        [OMP_DYNAMIC] = "dynamic",
                                        [OMP_GUIDED] = "guided",
                                        [OMP_AUTO] = "auto"};
static const char *const binds[] = {"false", "true", "primary", "close", "spread", "master"};
enum { MONOTONIC_BIT = 31, MASTER = 5 };

/* ------------------------------------------------------------------------------------------- */
/* Reading                                                                                      */

__attribute__((noreturn)) static void refuse(const char *name, const char *wanted)
{
    duet__omp_die("%s is '%s', and can be %s", name, getenv(name), wanted);
}

/* Reads a number from `least` up. Returns false if the variable is not set. */
static bool read_number(const char *name, long least, long most, long *number)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return false;
    long value = strtol(text, &end, 10);
    while (isspace((unsigned char)*end))
        end++;
    if (*end || end == text || value < least || value > most) {
        char wanted[64];
        (void)snprintf(wanted, sizeof wanted, "a number from %ld to %ld", least, most);
        refuse(name, wanted);
    }
    *number = value;
    return true;
}

static bool read_unsigned(const char *name, long least, unsigned *number)
{
    long value;
    if (!read_number(name, least, INT_MAX, &value))
        return false;
    *number = (unsigned)value;
    return true;
}

/* Reads "8,2": the numbers of threads of regions, and of those inside. */
static void read_threads(struct omp_settings *settings)
{
    const char *name = "OMP_NUM_THREADS", *text = getenv(name);
    char *end = NULL;
    for (; text && *text; text = *end == ',' ? end + 1 : end) {
        long value = strtol(text, &end, 10);
        if (end == text || value < 1 || value > INT_MAX || (*end && (*end != ',' || !end[1])))
            refuse(name, "numbers from 1: 8, or 8,2");
        if (settings->depth < OMP_LEVELS)
            settings->threads[settings->depth++] = (unsigned)value;
    }
    if (settings->depth)
        settings->icv.threads = settings->threads[0];
}

static bool read_bool(const char *name, bool *value)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return false;
    if (strcasecmp(text, "true") != 0 && strcasecmp(text, "false") != 0)
        refuse(name, "true or false");
    *value = !strcasecmp(text, "true");
    return true;
}

/* Returns the number of the word that begins the text; -1: none of them. */
static int word_at(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = words[i] ? strlen(words[i]) : 0;
        if (length && !strncasecmp(text, words[i], length) && !isalpha((unsigned char)text[length]))
            return (int)i;
    }
    return -1;
}

/* Reads "monotonic:dynamic,4". */
static void read_schedule(struct omp_icv *icv)
{
    const char *name = "OMP_SCHEDULE", *text = getenv(name), *comma;
    char *end;
    if (!text || !*text)
        return;
    bool monotonic = !strncasecmp(text, "monotonic:", 10);
    text += monotonic ? 10 : strncasecmp(text, "nonmonotonic:", 13) ? 0 : 13;
    int kind = word_at(text, schedules, sizeof schedules / sizeof *schedules);
    comma = strchr(text, ',');
    long chunk = comma ? strtol(comma + 1, &end, 10) : 0;
    if (kind < 0 || (comma && (*end || chunk < 1 || chunk > INT_MAX)))
        refuse(name, "static, dynamic, guided or auto, and a chunk: dynamic,4");
    icv->schedule = (unsigned)kind | (unsigned)monotonic << MONOTONIC_BIT;
    icv->chunk = comma ? (int)chunk : kind != OMP_STATIC;
}

static void read_places(struct omp_settings *settings)
{
    const char *text = getenv("OMP_PROC_BIND"), *places = getenv("OMP_PLACES");
    settings->bind = places && *places;
    if (text && *text) {
        int bind = word_at(text, binds, sizeof binds / sizeof *binds);
        if (bind < 0)
            refuse("OMP_PROC_BIND", "true, false, primary, close or spread");
        settings->bind = bind == MASTER ? 2 : (unsigned)bind;
    }
    settings->binds = settings->bind != 0;
}

/* Reads "512", "16M": kilobytes unless it says B, M or G. */
static void read_stack(struct omp_settings *settings)
{
    const char *name = "OMP_STACKSIZE", *text = getenv(name), *units = "bkmg", *unit;
    char *end;
    if (!text || !*text)
        return;
    unsigned long long size = strtoull(text, &end, 10);
    while (isspace((unsigned char)*end))
        end++;
    unit = *end ? strchr(units, tolower((unsigned char)*end)) : units + 1;
    if (!unit || (*end && end[1]) || !size || size > SIZE_MAX >> 30)
        refuse(name, "a size: 512k, 16M");
    settings->stack_bytes = (size_t)size << 10 * (unit - units);
}

static void read_wait_policy(struct omp_settings *settings)
{
    const char *text = getenv("OMP_WAIT_POLICY");
    settings->spin_s = USUAL_S;
    if (text && !strcasecmp(text, "active"))
        settings->spin_s = ACTIVE_S;
    else if (text && !strcasecmp(text, "passive"))
        settings->spin_s = 0;
    else if (text && *text)
        refuse("OMP_WAIT_POLICY", "active or passive");
}

static struct omp_settings all;

static void read_all(void)
{
    cpu_set_t own;
    long number;
    bool nested = false;
    all.cores = sched_getaffinity(0, sizeof own, &own) ? 1 : (unsigned)CPU_COUNT(&own);
    all.icv =
        (struct omp_icv){.threads = all.cores, .schedule = OMP_DYNAMIC, .levels = 1, .league = 1};
    all.icv.chunk = 1;
    all.icv.limit = INT_MAX;
    const char *version = "OMP_5.0.1"; /* of these symbols in libgomp; libomp has others */
    *(void **)&all.allocator = dlvsym(RTLD_DEFAULT, "omp_get_default_allocator", version);
    *(void **)&all.set_allocator = dlvsym(RTLD_DEFAULT, "omp_set_default_allocator", version);
    read_threads(&all);
    (void)read_bool("OMP_DYNAMIC", &all.icv.dynamic);
    if (read_bool("OMP_NESTED", &nested) && nested)
        all.icv.levels = INT_MAX;
    if (all.depth > 1)
        all.icv.levels = INT_MAX;
    (void)read_unsigned("OMP_MAX_ACTIVE_LEVELS", 0, &all.icv.levels);
    (void)read_unsigned("OMP_THREAD_LIMIT", 1, &all.icv.limit);
    (void)read_unsigned("OMP_NUM_TEAMS", 1, &all.icv.teams);
    (void)read_unsigned("OMP_TEAMS_THREAD_LIMIT", 1, &all.icv.team_limit);
    (void)read_bool("OMP_CANCELLATION", &all.cancellation);
    if (read_number("OMP_MAX_TASK_PRIORITY", 0, INT_MAX, &number))
        all.priority = (int)number;
    read_schedule(&all.icv);
    read_places(&all);
    read_stack(&all);
    read_wait_policy(&all);
}

const struct omp_settings *duet__omp_settings(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, read_all);
    return &all;
}

/* Shows the variables, as OMP_DISPLAY_ENV=true does at the start. */
static void show(bool verbose)
{
    const struct omp_settings *settings = duet__omp_settings();
    const struct omp_icv *icv = &settings->icv;
    (void)fprintf(stderr,
                  "\nOPENMP DISPLAY ENVIRONMENT BEGIN\n  _OPENMP = '201511'\n"
                  "  OMP_DYNAMIC = '%s'\n  OMP_NUM_THREADS = '%u'\n  OMP_SCHEDULE = '%s",
                  icv->dynamic ? "TRUE" : "FALSE", icv->threads,
                  schedules[icv->schedule & OMP_KINDS]);
    if (icv->chunk > 1)
        (void)fprintf(stderr, ",%d", icv->chunk);
    (void)fprintf(stderr,
                  "'\n  OMP_PROC_BIND = '%s'\n  OMP_STACKSIZE = '%zu'\n  OMP_WAIT_POLICY = '%s'\n"
                  "  OMP_THREAD_LIMIT = '%u'\n  OMP_MAX_ACTIVE_LEVELS = '%u'\n"
                  "  OMP_CANCELLATION = '%s'\n  OMP_MAX_TASK_PRIORITY = '%d'\n",
                  binds[settings->bind], settings->stack_bytes,
                  settings->spin_s > USUAL_S ? "ACTIVE" : "PASSIVE", icv->limit, icv->levels,
                  settings->cancellation ? "TRUE" : "FALSE", settings->priority);
    if (verbose)
        (void)fprintf(stderr, "  DUET = '%s'\n", duet_version());
    (void)fprintf(stderr, "OPENMP DISPLAY ENVIRONMENT END\n");
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("OMP_DISPLAY_ENV");
    if (text && *text && strcasecmp(text, "false") != 0)
        show(!strcasecmp(text, "verbose"));
    if (duet__omp_settings()->stack_bytes) { /* of threads that are made from now on */
        pthread_attr_t attributes;
        size_t bytes = duet__omp_settings()->stack_bytes;
        (void)pthread_attr_init(&attributes);
        if (pthread_attr_setstacksize(&attributes, bytes) ||
            pthread_setattr_default_np(&attributes))
            refuse("OMP_STACKSIZE", "a size of at least 16k");
        (void)pthread_attr_destroy(&attributes);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Functions of programs: each in C, and in Fortran, whose arguments are addresses              */

#define GET(type, name, value)                                                                     \
    DUET_EXPORT type name##_(void) __attribute__((alias(#name)));                                  \
    GIVE(type, name, (type)(value), void)
#define SET(name, argument)                                                                        \
    DUET_EXPORT void name(int argument);                                                           \
    CALL(name##_, name(*argument), const int32_t *argument)                                        \
    CALL(name##_8_, name((int)*argument), const int64_t *argument)                                 \
    void name(int argument)
#define ASK(name, argument)                                                                        \
    DUET_EXPORT int name(int argument);                                                            \
    GIVE(int32_t, name##_, name(*argument), const int32_t *argument)                               \
    GIVE(int32_t, name##_8_, name((int)*argument), const int64_t *argument)                        \
    int name(int argument)

GET(int, omp_get_thread_num, omp_now()->thread)
GET(int, omp_get_num_threads, omp_now()->team->size)
GET(int, omp_get_max_threads,
    omp_now()->icv->threads < omp_now()->icv->limit ? omp_now()->icv->threads
                                                    : omp_now()->icv->limit)
GET(int, omp_get_num_procs, duet__omp_settings()->cores)
GET(int, omp_in_parallel, omp_now()->team->active_level > 0)
GET(int, omp_in_final, omp_now()->final)
GET(int, omp_get_dynamic, omp_now()->icv->dynamic)
GET(int, omp_get_nested, omp_now()->icv->levels > 1)
GET(int, omp_get_thread_limit, omp_now()->icv->limit)
GET(int, omp_get_max_active_levels, omp_now()->icv->levels)
GET(int, omp_get_supported_active_levels, INT_MAX)
GET(int, omp_get_level, omp_now()->team->level)
GET(int, omp_get_active_level, omp_now()->team->active_level)
GET(int, omp_get_cancellation, duet__omp_settings()->cancellation)
GET(int, omp_get_max_task_priority, duet__omp_settings()->priority)
GET(int, omp_get_proc_bind, duet__omp_settings()->bind)
GET(int, omp_get_num_places, 0)
GET(int, omp_get_place_num, -1)
GET(int, omp_get_partition_num_places, 0)
GET(int, omp_get_max_teams, omp_now()->icv->teams)
GET(int, omp_get_teams_thread_limit, omp_now()->icv->team_limit)

SET(omp_set_num_threads, threads)
{
    duet__omp_own_icv(omp_now())->threads = threads > 0 ? (unsigned)threads : 1;
}

SET(omp_set_dynamic, wanted)
{
    duet__omp_own_icv(omp_now())->dynamic = wanted != 0;
}

SET(omp_set_nested, wanted)
{
    duet__omp_own_icv(omp_now())->levels = wanted ? INT_MAX : 1;
}

SET(omp_set_max_active_levels, levels)
{
    if (levels >= 0)
        duet__omp_own_icv(omp_now())->levels = (unsigned)levels;
}

SET(omp_set_num_teams, teams)
{
    duet__omp_own_icv(omp_now())->teams = teams > 0 ? (unsigned)teams : 0;
}

SET(omp_set_teams_thread_limit, limit)
{
    duet__omp_own_icv(omp_now())->team_limit = limit > 0 ? (unsigned)limit : 0;
}

DUET__ABI(void, omp_set_schedule, unsigned kind, int chunk)
{
    struct omp_icv *icv = duet__omp_own_icv(omp_now());
    if ((kind & OMP_KINDS) < OMP_STATIC || (kind & OMP_KINDS) > OMP_AUTO)
        return;
    icv->schedule = kind;
    icv->chunk = chunk > 0 ? chunk : (kind & OMP_KINDS) == OMP_STATIC ? 0 : 1;
}

CALL(omp_set_schedule_, omp_set_schedule(*kind, *chunk), const uint32_t *kind, const int32_t *chunk)
CALL(omp_set_schedule_8_, omp_set_schedule(*kind, (int)*chunk), const uint32_t *kind,
     const int64_t *chunk)

DUET__ABI(void, omp_get_schedule, unsigned *kind, int *chunk)
{
    const struct omp_icv *icv = omp_now()->icv;
    *kind = icv->schedule;
    *chunk = icv->chunk;
}

CALL(omp_get_schedule_, omp_get_schedule(kind, chunk), unsigned *kind, int32_t *chunk)

DUET__ABI(void, omp_get_schedule_8_, unsigned *kind, int64_t *chunk)
{
    int value;
    omp_get_schedule(kind, &value);
    *chunk = value;
}

/* Returns the task of the region `level` around the current one; NULL: there is none. */
static const struct omp_task *ancestor(int level)
{
    const struct omp_task *task = omp_now();
    while (task && (!task->member || task->team->level > (unsigned)level))
        task = task->member ? task->team->up : task->up;
    return task && level >= 0 && task->team->level == (unsigned)level ? task : NULL;
}

ASK(omp_get_ancestor_thread_num, level)
{
    const struct omp_task *task = omp_now();
    if (level == (int)task->team->level)
        return (int)task->thread;
    task = ancestor(level);
    return task ? (int)task->thread : -1;
}

ASK(omp_get_team_size, level)
{
    const struct omp_task *task = omp_now();
    if (level != (int)task->team->level)
        task = ancestor(level);
    return task ? (int)task->team->size : -1;
}

ASK(omp_get_place_num_procs, place)
{
    (void)place;
    return 0;
}

/* There are no places, in C and in Fortran. */
CALL(omp_get_place_proc_ids, , int place, int *ids)
CALL(omp_get_place_proc_ids_, , void *place, void *ids)
CALL(omp_get_place_proc_ids_8_, , void *place, void *ids)
CALL(omp_get_partition_place_nums, , void *nums)
CALL(omp_get_partition_place_nums_, , void *nums)
CALL(omp_get_partition_place_nums_8_, , void *nums)

/* Threads are kept until the program ends, which OpenMP allows. */
GIVE(int, omp_pause_resource_all, (kind == 1 || kind == 2) && omp_now()->team->level == 0 ? 0 : -1,
     int kind)
GIVE(int, omp_pause_resource, device == 0 || device == -1 ? omp_pause_resource_all(kind) : -1,
     int kind, int device)
GIVE(int32_t, omp_pause_resource_all_, omp_pause_resource_all(*kind), const int32_t *kind)
GIVE(int32_t, omp_pause_resource_, omp_pause_resource(*kind, *device), const int32_t *kind,
     const int32_t *device)

SET(omp_display_env, verbose)
{
    show(verbose != 0);
}

/* ------------------------------------------------------------------------------------------- */
/* Teams, and target regions, which run on the host as where there is no device                 */

GET(int, omp_get_num_teams, omp_now()->icv->league)
GET(int, omp_get_team_num, omp_now()->icv->place)

DUET__ABI(void, GOMP_teams_reg, void (*run)(void *), void *data, unsigned count, unsigned limit,
          unsigned flags)
{
    const struct omp_icv *icv = omp_now()->icv;
    const unsigned teams = count ? count : icv->teams ? icv->teams : 1;
    for (unsigned team = 0; team < teams; team++) {
        struct omp_icv own = *icv;
        own.league = teams;
        own.place = team;
        duet__omp_apart(run, data, &own, limit ? limit : icv->team_limit);
    }
}

DUET__ABI(bool, GOMP_teams4, unsigned least, unsigned most, unsigned limit, bool first)
{
    struct omp_icv *icv = duet__omp_own_icv(omp_now());
    if (first && limit)
        icv->limit = limit;
    if (first)
        icv->league = least ? least : 1;
    icv->place = first ? 0 : icv->place + 1;
    if (icv->place < icv->league)
        return true;
    icv->league = 1;
    icv->place = 0;
    return false;
}

CALL(GOMP_teams, , unsigned count, unsigned limit)

DUET_EXPORT void GOMP_taskwait_depend(void **depend);

static void wait_for(void **depend)
{
    if (depend)
        GOMP_taskwait_depend(depend);
}

enum { FIRSTPRIVATE = 12, KIND = 0xff, ALIGN_SHIFT = 8 };
enum { ARGUMENT = 0x7f00, THREAD_LIMIT = 0x200, VALUE_FOLLOWS = 0x80, VALUE_SHIFT = 16 };

/* Returns the thread limit among a target region's arguments; 0: none. */
static unsigned limit_of(void **arguments)
{
    unsigned limit = 0;
    while (arguments && *arguments) {
        intptr_t word = (intptr_t)*arguments++;
        intptr_t value = word & VALUE_FOLLOWS ? (intptr_t)*arguments++ : word >> VALUE_SHIFT;
        if ((word & ARGUMENT) == THREAD_LIMIT && value > 0)
            limit = (unsigned)value;
    }
    return limit;
}

/* Executes a target region with copies of its firstprivate variables. */
DUET__ABI(void, GOMP_target_ext, int device, void (*run)(void *), size_t count, void **addresses,
          size_t *sizes, const unsigned short *kinds, unsigned flags, void **depend,
          void **arguments)
{
    void **own = calloc(count + 1, 2 * sizeof *own);
    wait_for(depend);
    if (!own)
        duet__omp_die("there is no memory left for a target region");
    void **copies = own + count;
    for (size_t i = 0; i < count; i++) {
        own[i] = addresses[i];
        if ((kinds[i] & KIND) != FIRSTPRIVATE)
            continue;
        size_t align = (size_t)1 << (kinds[i] >> ALIGN_SHIFT);
        if (posix_memalign(&copies[i], align < sizeof(void *) ? sizeof(void *) : align,
                           sizes[i] ? sizes[i] : 1))
            duet__omp_die("there is no memory left for a target region");
        own[i] = memcpy(copies[i], addresses[i], sizes[i]);
    }
    duet__omp_apart((void (*)(void *))run, own, &duet__omp_settings()->icv, limit_of(arguments));
    for (size_t i = 0; i < count; i++)
        free(copies[i]);
    free(own);
}

#define MAPS int device, size_t count, void **addresses, size_t *sizes, unsigned short *kinds
CALL(GOMP_target_data_ext, , MAPS)
CALL(GOMP_target_end_data, , void)
CALL(GOMP_target_update_ext, wait_for(depend), MAPS, unsigned flags, void **depend)
CALL(GOMP_target_enter_exit_data, wait_for(depend), MAPS, unsigned flags, void **depend)

REFUSED(GOMP_target)
REFUSED(GOMP_target_data)
REFUSED(GOMP_target_update)
REFUSED(GOMP_parallel_loop_static_start)
REFUSED(GOMP_parallel_loop_dynamic_start)
REFUSED(GOMP_parallel_loop_guided_start)
REFUSED(GOMP_parallel_loop_runtime_start)
REFUSED(GOMP_parallel_sections_start)
