/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the files that the subcommands write, and whether they are different ones. */
#include "cli/job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <duet/policy.h>

/* A file that is written or read. */
struct claim {
    char *what;      /* "--trace" */
    char *path;      /* as it was given */
    char *canonical; /* the same for every name of a file */
    bool output;
};

/* "out/run.json" for the policy "./mine.so" becomes "out/run-mine.json"; caller frees. */
static char *path_for(const char *path, const char *policy)
{
    char *name = g_path_get_basename(policy), *result;
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');

    if (strchr(policy, '/') && strrchr(name, '.') && strrchr(name, '.') > name)
        *strrchr(name, '.') = 0;
    if (!dot || (slash && dot < slash) || dot == path || dot[-1] == '/')
        dot = path + strlen(path);
    result = g_strdup_printf("%.*s-%s%s", (int)(dot - path), path, name, dot);
    g_free(name);
    return result;
}

char **duet__files_paths(const struct duet__job *job, const char *path, bool each)
{
    GPtrArray *paths = g_ptr_array_new();

    if (path && (!each || job->request.policy_count == 1))
        g_ptr_array_add(paths, g_strdup(path));
    else if (path)
        for (size_t i = 0; i < job->request.policy_count; i++)
            g_ptr_array_add(paths, path_for(path, job->request.policies[i]));
    g_ptr_array_add(paths, NULL);
    return (char **)g_ptr_array_free(paths, FALSE);
}

/* Where a symbolic link points, seen from here; NULL: `path` is none. Caller frees. */
static char *link_target(const char *path)
{
    char *target = g_file_read_link(path, NULL), *folder, *result;

    if (!target || g_path_is_absolute(target))
        return target;
    folder = g_path_get_dirname(path);
    result = g_build_filename(folder, target, NULL);
    g_free(folder);
    g_free(target);
    return result;
}

/* An existing path without links, "." and ".."; NULL: there is none. Caller frees. */
static char *resolve(const char *path)
{
    char *real = realpath(path, NULL), *result = g_strdup(real);

    free(real);
    return result;
}

/* The same for a file that need not exist: what exists of its path is resolved. Caller frees. */
static char *canonical(const char *path)
{
    enum { HOPS = 40 }; /* links that point to nothing, as many as the system follows */
    char *at = g_strdup(path), *folder, *name, *real = resolve(path), *next;

    for (int i = 0; !real && i < HOPS && (next = link_target(at)); i++) {
        g_free(at);
        at = next;
        real = resolve(at);
    }
    if (!real) {
        folder = g_path_get_dirname(at);
        name = g_path_get_basename(at);
        real = resolve(folder);
        next = g_build_filename(real ? real : folder, name, NULL);
        g_free(real);
        g_free(name);
        g_free(folder);
        real = next;
    }
    g_free(at);
    return real;
}

/* Whether it can be written by several: one that is there and not ordinary, as /dev/null. */
static bool is_special(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

bool duet__files_same(const char *first, const char *second)
{
    char *names[2];
    bool same;

    if (is_special(first) || is_special(second))
        return false;
    names[0] = canonical(first);
    names[1] = canonical(second);
    same = strcmp(names[0], names[1]) == 0;
    g_free(names[0]);
    g_free(names[1]);
    return same;
}

/* Takes `what`. */
static void add(GArray *claims, char *what, const char *path, bool output)
{
    struct claim claim = {.what = what, .output = output};

    if (is_special(path)) {
        g_free(what);
        return;
    }
    claim.path = g_strdup(path);
    claim.canonical = canonical(path);
    g_array_append_val(claims, claim);
}

static void add_outputs(GArray *claims, const struct duet__job *job, const char *option,
                        const char *path, bool each)
{
    char **paths = duet__files_paths(job, path, each);

    for (size_t i = 0; paths[i]; i++)
        add(claims,
            paths[1] ? g_strdup_printf("%s of %s", option, job->request.policies[i])
                     : g_strdup(option),
            paths[i], true);
    g_strfreev(paths);
}

/* The machine's file, and its kernel times where they lie beside it under a usual name. */
static void add_platform(GArray *claims, const char *option, const char *path)
{
    const char *dot = strrchr(path, '.');
    char *times;

    if (!strchr(path, '/') && !g_str_has_suffix(path, ".json") && !g_str_has_suffix(path, ".xml"))
        return;
    add(claims, g_strdup(option), path, false);
    times = g_strconcat(path, ".kernels.json", NULL);
    if (g_file_test(times, G_FILE_TEST_EXISTS))
        add(claims, g_strdup_printf("the kernel times of %s", option), times, false);
    g_free(times);
    times = g_strdup_printf("%.*s.kernels.json", dot ? (int)(dot - path) : (int)strlen(path), path);
    if (g_file_test(times, G_FILE_TEST_EXISTS))
        add(claims, g_strdup_printf("the kernel times of %s", option), times, false);
    g_free(times);
}

static GArray *collect(const struct duet__job *job)
{
    GArray *claims = g_array_new(FALSE, FALSE, sizeof(struct claim));

    if (duet_request_platform(&job->request))
        add_platform(claims, job->platform_option, duet_request_platform(&job->request));
    for (size_t i = 0; i < job->request.policy_count; i++)
        if (!duet_policy_find(job->request.policies[i]))
            add(claims, g_strdup_printf("--policy %s", job->request.policies[i]),
                job->request.policies[i], false);
    if (job->values.cases)
        add(claims, g_strdup("--cases"), job->values.cases, false);
    add_outputs(claims, job, "--trace", job->values.trace, true);
    add_outputs(claims, job, "--gantt", job->values.gantt, true);
    add_outputs(claims, job, "--html", job->values.html, false);
    add_outputs(claims, job, "--out", job->values.out, false);
    add_outputs(claims, job, "--machine-xml", job->values.machine_xml, false);
    if (job->values.machine_xml) {
        char *times = g_strconcat(job->values.machine_xml, ".kernels.json", NULL);

        add(claims, g_strdup("the kernel times of --machine-xml"), times, true);
        g_free(times);
    }
    return claims;
}

/* Finds two claims to one file of which one writes. */
static int compare(const GArray *claims, struct duet_message *message)
{
    for (size_t i = 0; i < claims->len; i++) {
        const struct claim *second = &g_array_index(claims, struct claim, i);

        for (size_t k = 0; k < i; k++) {
            const struct claim *first = &g_array_index(claims, struct claim, k);

            if ((first->output || second->output) &&
                strcmp(first->canonical, second->canonical) == 0)
                return duet_fail(message, DUET_EINVAL, "%s and %s are one file, %s", first->what,
                                 second->what, second->path);
        }
    }
    return 0;
}

int duet__files_distinct(const struct duet__job *job, struct duet_message *message)
{
    const struct {
        const char *option, *path;
    } outputs[] = {{"--trace", job->values.trace},
                   {"--gantt", job->values.gantt},
                   {"--html", job->values.html},
                   {"--machine-xml", job->values.machine_xml}};
    GArray *claims;
    int result;

    for (size_t i = 0; i < G_N_ELEMENTS(outputs); i++)
        if (outputs[i].path && !*outputs[i].path)
            return duet_fail(message, DUET_EINVAL, "%s takes the name of a file, not ''",
                             outputs[i].option);
    claims = collect(job);
    result = compare(claims, message);
    for (size_t i = 0; i < claims->len; i++) {
        struct claim *claim = &g_array_index(claims, struct claim, i);

        g_free(claim->what);
        g_free(claim->path);
        g_free(claim->canonical);
    }
    g_array_free(claims, TRUE);
    return result;
}
