/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator of a study: gives jobs, and stores their results. */
#include "study/study.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "platforms/platform.h"
#include "base/clock.h"
#include "runtime/open.h"
#include "runtime/schedule.h"

static const double COMMIT_S = 0.3; /* between commits; none with ranks, as mpirun kills at once */

struct coordinator {
    const struct duet__plan *plan;
    struct duet__store *store;
    struct duet__outcome *outcome;
    const uint32_t *order;
    uint64_t position;  /* in order x reps */
    GArray *again;      /* uint64_t: jobs that were lost with their workers, to be given again */
    GHashTable *lost;   /* jobs that were given again */
    GHashTable *hashes; /* hashes by name of their input */
    char *program;      /* the program of all cells, with places of lists; NULL: none */
};

/* ------------------------------------------------------------------------------------------- */
/* The inputs of a run                                                                          */

static char *hash_file(const char *path)
{
    enum { MOST_MIB = 8192 }; /* as much as task graphs may have */
    g_autofree char *text = NULL;
    gsize length = 0;
    if (!g_file_test(path, G_FILE_TEST_IS_REGULAR) ||
        duet__read_all(path, MOST_MIB, &text, &length, NULL))
        return g_strdup("");
    return g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, length);
}

static gint compare_texts(gconstpointer first, gconstpointer second)
{
    return strcmp(*(const char *const *)first, *(const char *const *)second);
}

/* Hashes all that StarPU has measured of kernels, in DIR[:HOST]. */
static char *hash_models(const char *value)
{
    static const char *const versions[] = {"44", "45"};
    const char *colon = strrchr(value, ':');
    g_autofree char *folder = g_strndup(value, colon ? (size_t)(colon - value) : strlen(value));
    g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *whole = NULL;
    g_ptr_array_add(parts, g_strdup(colon ? colon : ""));
    for (size_t i = 0; i < G_N_ELEMENTS(versions); i++) {
        g_autofree char *path = g_build_filename(folder, "codelets", versions[i], NULL);
        GDir *files = g_dir_open(path, 0, NULL);
        for (const char *name; files && (name = g_dir_read_name(files));) {
            g_autofree char *file = g_build_filename(path, name, NULL), *hash = hash_file(file);
            g_ptr_array_add(parts, g_strconcat(versions[i], "/", name, " ", hash, NULL));
        }
        g_clear_pointer(&files, g_dir_close);
    }
    g_ptr_array_sort(parts, compare_texts);
    g_ptr_array_add(parts, NULL);
    whole = g_strjoinv("\n", (char **)parts->pdata);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, whole, -1);
}

/* Hashes a platform as it was loaded; one from XML, which has no other text, by its file. */
static int hash_platform(const char *name, char **out, struct duet_message *message)
{
    struct duet__platform *platform = NULL;
    char *text;
    int error = duet__platform_load(name, &platform, message);
    if (error)
        return error;
    text = duet__platform_text(platform);
    *out = text ? g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1) : hash_file(name);
    free(text);
    duet__platform_free(platform);
    return 0;
}

/* Kinds of hashed inputs: a file ("" if there is none), a platform, models of StarPU. */
enum kind { OF_FILE, OF_PLATFORM, OF_MODELS };

static int find_hash(struct coordinator *at, const char *name, enum kind kind, const char **out,
                     struct duet_message *message)
{
    static const char *const kinds[] = {"", "platform ", "models "};
    g_autofree char *key = g_strconcat(kinds[kind], name, NULL);
    char *made = NULL;
    int error = 0;
    *out = g_hash_table_lookup(at->hashes, key);
    if (*out)
        return 0;
    if (kind == OF_PLATFORM)
        error = hash_platform(name, &made, message);
    else
        made = kind == OF_MODELS ? hash_models(name) : hash_file(name);
    if (!error)
        g_hash_table_insert(at->hashes, g_steal_pointer(&key), made);
    *out = made;
    return error;
}

static int add_hash(struct coordinator *at, const char *name, enum kind kind, GString *inputs,
                    struct duet_message *message)
{
    const char *hash = "";
    int error = find_hash(at, name, kind, &hash, message);
    g_string_append(inputs, hash);
    return error;
}

static uint64_t cell_of(const struct coordinator *at, uint64_t job)
{
    return job % at->plan->study->count;
}

static uint64_t rep_of(const struct coordinator *at, uint64_t job)
{
    return job / at->plan->study->count;
}

/* Makes the key of a job's run; its texts are in `inputs`, *command and the coordinator. */
static int make_key(struct coordinator *at, uint64_t job, GString *inputs, char **command,
                    struct duet__run_key *key, struct duet_message *message)
{
    const struct duet__plan *plan = at->plan;
    const uint64_t cell = cell_of(at, job);
    const struct duet__product *product = duet__study_product(plan->study, cell);
    g_auto(GStrv) program = duet__cell_program(plan->study, cell);
    const char *models = plan->models;
    bool file = false;
    int error = 0;
    *key =
        (struct duet__run_key){.version = plan->version, .build = plan->build, .platform_hash = ""};
    key->program = at->program;
    for (guint f = 0; f < product->factors->len && !error; f++) {
        const struct duet__factor *factor = product->factors->pdata[f];
        const char *value = duet__study_value(product, cell, f);
        bool policy = !strcmp(factor->name, "policy");
        if (!strcmp(factor->name, "platform") || !strcmp(factor->name, "emulate")) {
            if (strcmp(value, "free") != 0)
                error = find_hash(at, value, OF_PLATFORM, &key->platform_hash, message);
        } else if (!strcmp(factor->name, "starpu-models")) {
            models = value;
        } else if (g_str_has_prefix(factor->name, "arg ")) {
            g_string_append(inputs, value); /* a run with the file has its column */
        } else if (!factor->option || policy) {
            g_autofree char *path = policy ? duet__policy_base(value) : g_strdup(value);
            if (!policy || g_str_has_suffix(path, ".so") || duet__schedule_is(path))
                error = add_hash(at, path, OF_FILE, inputs, message);
            file |= !policy && inputs->len;
        }
    }
    if (file && models && !error) /* a record of StarPU may have its kernel times from the models */
        error = add_hash(at, models, OF_MODELS, inputs, message);
    for (char **word = program; word && *word && !error; word++) {
        g_autofree char *found = word == program ? g_find_program_in_path(*word) : NULL;
        error = add_hash(at, found ? found : *word, OF_FILE, inputs, message);
    }
    *command = duet__cell_command(plan->study, plan->command, cell, plan->seed + rep_of(at, job));
    key->command = *command;
    key->inputs_hash = inputs->str;
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The next job                                                                                 */

static uint64_t cells_of(const struct duet__plan *plan)
{
    return plan->chosen ? plan->chosen_count
                        : (plan->study->count * plan->part + plan->parts - 1) / plan->parts;
}

uint64_t duet__plan_runs(const struct duet__plan *plan)
{
    return (cells_of(plan) * plan->reps + plan->shards - 1 - plan->shard) / plan->shards;
}

unsigned duet__plan_jobs(const struct duet__plan *plan)
{
    if (plan->jobs)
        return plan->jobs;
    return plan->ranks && plan->ranks->near > 1 ? 1 : g_get_num_processors();
}

const struct duet__figures *duet__plan_result(const struct duet__plan *plan, uint64_t cell,
                                              uint64_t rep)
{
    const uint64_t job = rep * plan->study->count + cell;
    const struct duet__figures *figures = g_hash_table_lookup(plan->results, GSIZE_TO_POINTER(job));
    return figures && isfinite(figures->makespan_s) ? figures : NULL;
}

/* Keeps the figures of a job's run, if the plan wants them. Returns false if it had them. */
static bool keep(const struct coordinator *at, uint64_t job, const struct duet__figures *figures)
{
    return !at->plan->results || g_hash_table_insert(at->plan->results, GSIZE_TO_POINTER(job),
                                                     g_memdup2(figures, sizeof *figures));
}

/* Counts a run without a result, made or found, whose error may become the example. */
static void count_failure(struct duet__outcome *outcome, uint64_t cell, double status,
                          const char *error, const char *command)
{
    const bool refused = (int)status == DUET__ROW_REFUSED;
    /* this error is to be told instead of the earlier one */
    const bool more = refused == outcome->wrong ? !refused : cell < outcome->cell;
    outcome->failed += !refused;
    outcome->refused += refused;
    if (!error || (outcome->example && !more))
        return;
    g_free(outcome->example);
    outcome->example = g_strdup_printf("%s (%s)", error, command);
    outcome->wrong = !refused;
    outcome->cell = cell;
}

/* Finds the next job whose run is not in the store. Returns 1 if there is one, 0 if there is none,
   or a negative error. */
static int find_next(struct coordinator *at, uint64_t *job, struct duet_message *message)
{
    const struct duet__plan *plan = at->plan;
    const uint64_t cells = cells_of(plan);
    for (; at->position < cells * plan->reps; at->position++) {
        g_autoptr(GString) inputs = g_string_new(NULL);
        g_autofree char *command = NULL, *why = NULL;
        struct duet__run_key key;
        struct duet__figures figures;
        int error;
        if (at->position % plan->shards != plan->shard)
            continue;
        *job = at->position / cells * plan->study->count + at->order[at->position % cells];
        error = make_key(at, *job, inputs, &command, &key, message);
        if (error)
            return error;
        if (!duet__store_has(at->store, &key, plan->retry, &figures, &why)) {
            at->position++;
            return 1;
        }
        if (keep(at, *job, &figures) && figures.status > 0)
            count_failure(at->outcome, cell_of(at, *job), figures.status, why, command);
        at->outcome->there++;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Results                                                                                      */

/* The error of the command, and the figures of its run. */
struct verdict {
    char *error;
    struct duet__figures figures;
};

static int read_verdict(const struct duet__json *at, const char *key, void *data)
{
    struct verdict *verdict = data;
    double *number = duet__figure(&verdict->figures, key);
    const char *text = NULL;
    int error = 0;
    if (number && !duet__json_is_null(at))
        error = duet__json_number(at, -DBL_MAX, DBL_MAX, number);
    verdict->figures.estimated |= !strcmp(key, "estimated") && !duet__json_is_null(at);

    if (!strcmp(key, "error") && !(error = duet__json_string(at, &text)))
        verdict->error = g_strdup(text);
    return error;
}

static int put_row(struct coordinator *at, uint64_t job, uint64_t rep, const char *row,
                   struct duet_message *message)
{
    const uint64_t cell = cell_of(at, job);
    const struct duet__product *product = duet__study_product(at->plan->study, cell);
    g_autoptr(GString) inputs = g_string_new(NULL);
    g_autofree char *command = NULL;
    struct duet__run_key key;
    struct verdict verdict = {.figures.makespan_s = INFINITY};
    int error = make_key(at, job, inputs, &command, &key, message);
    key.rep = rep;
    if (!error)
        error = duet__json_each(row, strlen(row), "a row", NULL, read_verdict, &verdict, message);
    if (!error && verdict.figures.status < DUET__ROW_SYSTEM) {
        keep(at, job, &verdict.figures);
        error = duet__store_put(at->store, &key, product, cell, row, message);
    }
    if (verdict.figures.status > 0)
        count_failure(at->outcome, cell, verdict.figures.status, verdict.error, command);
    g_free(verdict.error);
    return error;
}

/*
 * Stores the rows of a job that has ended, or one that says how its process died. A job that was
 * lost with a server here, or with another machine, is noted, to be given again.
 */
static int put_rows(struct coordinator *at, const struct duet__ended *ended,
                    struct duet_message *message)
{
    g_autofree char *dead =
        g_strdup_printf("{\"status\": 1, \"error\": \"its process has died: %s\"}",
                        ended->message.text);
    g_auto(GStrv) rows = g_strsplit(ended->result ? ended->result : dead, "\n", -1);
    uint64_t rep = 0;
    int error = 0;
    if (ended->lost) {
        at->outcome->lost++;
        g_array_append_val(at->again, ended->job);
        return 0;
    }
    for (char **row = rows; *row && !error; row++)
        if (**row)
            error = put_row(at, ended->job, rep++, *row, message);
    at->outcome->made++;
    return error;
}

static void draw(const struct coordinator *at, struct duet__progress *progress)
{
    const struct duet__outcome *outcome = at->outcome;
    const uint64_t done = outcome->there + outcome->made;
    const double elapsed_s = duet__clock_s() - progress->start_s;
    const double each_s = outcome->made ? elapsed_s / (double)outcome->made : 0;
    const double left_s = each_s * (double)(outcome->total - done);
    g_autofree char *text = NULL;
    if (elapsed_s < 0.3)
        return;
    text = g_strdup_printf("run %" PRIu64 "/%" PRIu64 "  %.3g/s  %.0f %s left", done,
                           outcome->total, each_s > 0 ? 1 / each_s : 0,
                           left_s < 100    ? left_s
                           : left_s < 6000 ? left_s / 60
                                           : left_s / 3600,
                           left_s < 100    ? "s"
                           : left_s < 6000 ? "min"
                                           : "h");
    duet__progress_say(progress, (double)done / (double)MAX(outcome->total, 1), text);
}

/* ------------------------------------------------------------------------------------------- */

/* Gives a job. If no process can be started while others are at work, waits for these. */
static int give(struct coordinator *at, struct duet__executor *executor, uint64_t job, bool here,
                struct duet_message *message)
{
    int error = duet__executor_give(executor, job, here, message);
    if (!error || !duet__executor_busy(executor))
        return error;
    g_array_append_val(at->again, job);
    return 0;
}

/*
 * Gives jobs that were lost with their workers, or could not be sent, to workers again: each once
 * to any worker, then to one of this process, which sees how a run that kills its worker ends.
 */
static int give_again(struct coordinator *at, struct duet__executor *executor,
                      struct duet_message *message)
{
    int error = 0;
    for (guint i = at->again->len; i > 0 && !error; i--) {
        const uint64_t job = g_array_index(at->again, uint64_t, i - 1);
        const bool here = g_hash_table_contains(at->lost, GSIZE_TO_POINTER(job));
        if (!duet__executor_idle(executor, here))
            continue;
        g_hash_table_add(at->lost, GSIZE_TO_POINTER(job));
        g_array_remove_index(at->again, i - 1);
        error = give(at, executor, job, here, message);
    }
    return error;
}

/* Gives and takes jobs until all are done, something fails, or a signal comes. */
static int attend(struct coordinator *at, struct duet__executor *executor,
                  const struct duet__signals *signals, struct duet__progress *progress,
                  struct duet_message *message)
{
    double committed_s = 0; /* date of the last commit; 0: the first result is committed at once */
    int next = 1, error = 0;
    while (!error && !at->outcome->number &&
           (!(at->plan->until_s > 0) || duet__clock_s() < at->plan->until_s)) {
        struct duet__ended ended;
        uint64_t job;
        error = give_again(at, executor, message);
        for (guint held = at->again->len; !error && next > 0 && at->again->len == held &&
                                          duet__executor_idle(executor, false) &&
                                          (next = find_next(at, &job, message)) > 0;)
            error = give(at, executor, job, false, message);
        if (error || next < 0)
            return error ? error : next;
        if (!duet__executor_busy(executor))
            break;
        if (duet__executor_take(executor, 0.1, &ended)) {
            error = put_rows(at, &ended, message);
            free(ended.result);
        }
        if (at->plan->ranks)
            duet__ranks_admit(at->plan->ranks, executor);
        if (!error && (at->plan->ranks || duet__clock_s() - committed_s > COMMIT_S)) {
            error = duet__store_commit(at->store, message);
            committed_s = duet__clock_s();
        }
        draw(at, progress);
        at->outcome->number = duet__signals_take(signals, 0);
    }
    return error ? error : duet__store_commit(at->store, message);
}

int duet__study_make(const struct duet__plan *plan, struct duet__store *store,
                     struct duet__progress *progress, struct duet__outcome *outcome,
                     struct duet_message *message)
{
    struct coordinator at = {.plan = plan, .store = store, .outcome = outcome};
    const uint64_t runs = duet__plan_runs(plan);
    struct duet__signals signals;
    struct duet__executor *executor;
    g_autofree uint32_t *order = NULL;
    int error;
    *outcome = (struct duet__outcome){.total = runs};
    if (!runs)
        return 0;
    order = plan->chosen ? NULL : duet__study_order(plan->study);
    at.order = plan->chosen ? plan->chosen : order;
    at.program =
        plan->study->program ? duet__shell_text((const char *const *)plan->study->program) : NULL;
    at.again = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    at.lost = g_hash_table_new(NULL, NULL);
    at.hashes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    duet__signals_hold(&signals, false);
    executor =
        duet__executor_new((unsigned)MIN(runs, duet__plan_jobs(plan)), plan->execute, plan->data);
    duet__executor_settle(executor, plan->fresh);
    error = attend(&at, executor, &signals, progress, message);
    duet__executor_free(executor);
    duet__progress_clear(progress);
    duet__signals_release(&signals);
    g_hash_table_unref(at.hashes);
    g_free(at.program);
    g_hash_table_unref(at.lost);
    g_array_unref(at.again);
    return error;
}
