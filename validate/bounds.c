/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds on the makespan of a run. */
#include "validate/bounds.h"

#include <stdlib.h>
#include <string.h>

#include <duet/machine.h>
#include <duet/trace.h>

/* Copies the runtime's classes: its arrays last only until the next call. */
static int copy_classes(const struct duet_runtime *runtime, size_t arch_count, size_t class_count,
                        struct duet_area_class *classes, double *seconds)
{
    for (size_t c = 0; c < class_count; c++) {
        struct duet_class_stats stats;
        int error = duet_class_stats(runtime, c, &stats);
        if (error)
            return error;
        double *expected_s = seconds + c * arch_count;
        memcpy(expected_s, stats.expected_s, arch_count * sizeof *expected_s);
        classes[c] = (struct duet_area_class){stats.kernel, stats.tasks, expected_s};
    }
    return 0;
}

int duet_bounds(const struct duet_runtime *runtime, struct duet_bounds *out,
                struct duet_message *message)
{
    const struct duet_machine *machine = duet_runtime_machine(runtime);
    size_t class_count = duet_class_count(runtime), arch_count = machine->arch_count;
    struct duet_area_class *classes = calloc(class_count + 1, sizeof *classes);
    double *seconds = calloc(class_count * arch_count + 1, sizeof *seconds), area_s = 0;
    unsigned *workers = calloc(arch_count + 1, sizeof *workers);
    int error;
    if (!classes || !seconds || !workers) {
        error = duet_fail(message, DUET_ENOMEM, "bounds: no memory for %zu classes of tasks",
                          class_count);
        goto out;
    }
    for (unsigned w = 0; w < machine->worker_count; w++)
        workers[machine->workers[w].arch]++;
    error = copy_classes(runtime, arch_count, class_count, classes, seconds);
    if (!error)
        error = duet_area_bound(classes, class_count, workers, arch_count, &area_s, message);
    if (error == DUET_ESTUCK) /* and area_s is 0: not known */
        error = DUET_OK;
    if (!error) {
        struct duet_stats stats;
        duet_stats(runtime, &stats);
        *out = (struct duet_bounds){.critical_path_s = stats.critical_path_s, .area_s = area_s};
    }
out:
    free(workers);
    free(seconds);
    free(classes);
    return error;
}
