/* SPDX-License-Identifier: Apache-2.0 */
/* Finds how much of the times of a task graph is guessed on the machine that it is simulated on. */
#include <string.h>

#include "cli/job.h"

/*
 * Adds the seconds of a kernel's tasks on an architecture to *all_s, and the guessed ones among
 * them to from_s: under the column of the graph that they are from, or, behind all columns, under
 * the platform, which only estimates them.
 */
static void add_kernel(const struct duet__job *job, const char *kernel,
                       const struct duet_arch *arch, const double *seconds, double *from_s,
                       double *all_s)
{
    const struct duet__calibration *calibration = &job->platform->calibration;
    const GPtrArray *columns = job->graph->archs;
    const bool measured = duet__calibration_find(calibration, kernel, arch->name) != NULL;
    g_autofree char *origin = duet__platform_origin(job->platform, kernel, arch->name);

    for (guint c = 0; c < columns->len; c++) {
        /* machines without kernel times are there for the times of graphs */
        const bool own = !strcmp(columns->pdata[c], arch->name) ||
                         (!calibration->count && !strcmp(columns->pdata[c], arch->backend));

        *all_s += seconds[c];
        if (strstr(origin, "estimated"))
            from_s[columns->len] += seconds[c];
        if (measured || own || !(seconds[c] > 0))
            continue;
        from_s[c] += seconds[c];
        g_hash_table_add(job->guesses, g_strdup_printf("%s on %s", kernel, arch->name));
    }
}

void duet__job_guess(struct duet__job *job)
{
    const struct duet_machine *machine = &job->request.machine;
    const GPtrArray *columns = job->graph->archs;
    g_autofree double *sources = duet__graph_sources(&job->request.problem, machine);
    g_autoptr(GString) text = g_string_new(NULL);
    const double *seconds = sources;

    job->guesses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (unsigned a = 0; a < machine->arch_count; a++) {
        double *from_s = g_new0(double, columns->len + 1);
        double all_s = 0;

        for (guint k = 0; k < job->graph->kernels->len; k++, seconds += columns->len)
            add_kernel(job, duet__graph_kernel_name(job->graph, k), &machine->archs[a], seconds,
                       from_s, &all_s);
        for (guint c = 0; c <= columns->len; c++)
            if (from_s[c] > 0)
                g_string_append_printf(text, "%s%s %.0f %% as for %s", text->len ? ", " : "",
                                       machine->archs[a].name, 100 * from_s[c] / all_s,
                                       c < columns->len ? (char *)columns->pdata[c]
                                                        : "it, estimated");
        g_free(from_s);
    }
    g_free(job->request.estimated);
    job->request.estimated =
        text->len ? g_strdup_printf("tasks (share of the time: %s)", text->str) : NULL;
}
