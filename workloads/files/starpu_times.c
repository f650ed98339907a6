/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads StarPU's performance models of versions 44 and 45, lines of numbers between comments:
 * combinations of devices (kind, number, cores), for each its implementations, for each a
 * regression, which is skipped, and a table by footprint. Times are in microseconds.
 */
#include "workloads/files/starpu.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { NUMBERS = 8, ENTRY = 7 };

struct cursor {
    const char *at, *path;
    unsigned line, version;
    double numbers[NUMBERS]; /* of the current line */
    unsigned count;
    uint32_t footprint; /* the first word as a hexadecimal number */
    struct duet_message *message;
};

static int fail_at_line(const struct cursor *c, const char *what)
{
    return duet_fail(c->message, DUET_EPARSE,
                     "%.300s:%u: no performance model of StarPU's: there should be %s", c->path,
                     c->line, what);
}

/* Reads the next line that is not empty or a comment: at least `least` numbers. */
static int next(struct cursor *c, unsigned least, const char *what)
{
    size_t length = 0;

    while (!length && *c->at) {
        const char *word = c->at += strspn(c->at, " \t\r");

        length = strcspn(word, "#\n");
        c->line++;
        c->footprint = (uint32_t)g_ascii_strtoull(word, NULL, 16);
        for (c->count = 0; c->count < NUMBERS && word < c->at + length; c->count++) {
            char *end;

            c->numbers[c->count] = g_ascii_strtod(word, &end);
            /* a footprint is a hexadecimal number */
            if (end == word && !(c->count == 0 && least == ENTRY))
                return fail_at_line(c, what);
            word += c->count == 0 ? strcspn(word, " \t\r\n#") : (size_t)(end - word);
            word += strspn(word, " \t\r");
        }
        c->at += strcspn(c->at, "\n");
        c->at += *c->at == '\n';
    }
    return c->count < least || !length ? fail_at_line(c, what) : 0;
}

/* Reads a count on a line of its own. */
static int count(struct cursor *c, unsigned most, const char *what, unsigned *out)
{
    int error = next(c, 1, what);

    if (!error && !(c->numbers[0] >= 0 && c->numbers[0] <= most))
        return fail_at_line(c, what);
    *out = error ? 0 : (unsigned)c->numbers[0];
    return error;
}

static int read_table(struct cursor *c, GArray *times, const char *device)
{
    unsigned entries = 0;
    int error = count(c, 1 << 24, "a number of entries", &entries);

    error = error ? error : next(c, 8, "nine numbers of a regression");
    error = error ? error : next(c, 3, "three numbers of a regression");
    if (!error && c->version >= 45)
        error = next(c, 1, "the number of coefficients");
    for (unsigned i = 0; i < entries && !error; i++) {
        struct duet__starpu_time time;
        unsigned mean;

        error = next(c, ENTRY, "footprint, size, flops, mean, deviation, sums, samples");
        if (error)
            return error;
        mean = c->count > ENTRY ? 3 : 2; /* the flops may be missing */
        time = (struct duet__starpu_time){.footprint = c->footprint,
                                          .mean_s = 1e-6 * c->numbers[mean],
                                          .samples = c->numbers[mean + 4]};
        g_strlcpy(time.device, device, sizeof time.device);
        if (*device && time.mean_s > 0 && time.mean_s < 1e9 && time.samples >= 1)
            g_array_append_val(times, time);
    }
    return error;
}

/* Reads a combination. Those of several devices or cores are skipped: duet has no such tasks. */
static int read_combination(struct cursor *c, GArray *times)
{
    static const char *const kinds[] = {"cpu", "cuda", "opencl"}; /* by StarPU's number */
    unsigned devices = 0, kind = 0, number = 0, cores = 0, implementations = 0;
    char device[16] = "";
    int error = count(c, 1024, "a number of devices", &devices);

    for (unsigned i = 0; i < devices && !error; i++) {
        error = count(c, 1000, "the kind of a device", &kind);
        error = error ? error : count(c, 9999, "the number of a device", &number);
        error = error ? error : count(c, 1 << 20, "a number of cores", &cores);
    }
    if (devices == 1 && cores <= 1 && kind < G_N_ELEMENTS(kinds))
        g_snprintf(device, sizeof device, kind ? "%s%u" : "%s", kinds[kind], number);
    error = error ? error : count(c, 1024, "a number of implementations", &implementations);
    for (unsigned i = 0; i < implementations && !error; i++)
        error = read_table(c, times, device);
    return error;
}

static gint by_footprint(gconstpointer a, gconstpointer b)
{
    const struct duet__starpu_time *x = a, *y = b;

    return (x->footprint > y->footprint) - (x->footprint < y->footprint);
}

/* Sorts implementations on a device, the fastest first. */
static gint by_time(gconstpointer a, gconstpointer b)
{
    const struct duet__starpu_time *x = a, *y = b;
    const int order = by_footprint(a, b), devices = strcmp(x->device, y->device);

    return order ? order : devices ? devices : (x->mean_s > y->mean_s) - (x->mean_s < y->mean_s);
}

int duet__starpu_times_parse(const char *text, const char *path, GArray *times,
                             struct duet_message *message)
{
    struct cursor c = {.at = text, .path = path, .message = message};
    unsigned combinations = 0;
    int error = count(&c, 1000, "a version", &c.version);

    if (!error && c.version != 44 && c.version != 45)
        error = fail_at_line(&c, "version 44 or 45");
    error = error ? error : count(&c, 4096, "a number of combinations", &combinations);
    for (unsigned i = 0; i < combinations && !error; i++)
        error = read_combination(&c, times);
    g_array_sort(times, by_time);
    return error;
}

double duet__starpu_seconds(const GArray *times, const char *device, uint32_t footprint)
{
    const struct duet__starpu_time wanted = {.footprint = footprint}, *all, *last = &wanted;
    const size_t length = strlen(device);
    double sum = 0, samples = 0;
    guint i = 0;

    all = (const struct duet__starpu_time *)(const void *)times->data;
    if (!g_array_binary_search((GArray *)(uintptr_t)times, &wanted, by_footprint, &i))
        return NAN;
    while (i > 0 && all[i - 1].footprint == footprint)
        i--;
    for (; i < times->len && all[i].footprint == footprint; last = &all[i++]) {
        /* "cuda" matches each of its devices, "cuda1" does not match "cuda12" */
        if (strcmp(all[i].device, last->device) == 0 ||
            strncmp(all[i].device, device, length) != 0 ||
            (all[i].device[length] && g_ascii_isdigit(device[length - 1])))
            continue;
        sum += all[i].mean_s * all[i].samples;
        samples += all[i].samples;
    }
    return samples > 0 ? sum / samples : NAN;
}
