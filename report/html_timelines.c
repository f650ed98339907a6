/* SPDX-License-Identifier: Apache-2.0 */
/* The timelines of the HTML page, as compact JSON that its script draws. */
#include "report/html_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <glib.h>

#include "report/gantt.h"
#include "report/output.h"

/* A date in ticks. */
static int64_t ticks(double seconds, double tick)
{
    return (int64_t)llround(seconds / tick);
}

/* Names of all recordings, and of each the place of its own names among them. */
struct names {
    GPtrArray *all; /* borrowed */
    unsigned **maps;
};

/* The place of a name: where the first recording has it, else behind it. */
static unsigned find_name(GPtrArray *all, size_t index, const char *name)
{
    if (index < all->len && strcmp(g_ptr_array_index(all, index), name) == 0)
        return (unsigned)index;
    for (unsigned i = 0; i < all->len; i++)
        if (strcmp(g_ptr_array_index(all, i), name) == 0)
            return i;
    g_ptr_array_add(all, (gpointer)(uintptr_t)name);
    return all->len - 1;
}

static const char *kernel_name(const struct duet_recording *recording, size_t index)
{
    return recording->kernels[index];
}

static size_t kernel_count(const struct duet_recording *recording)
{
    return recording->kernel_count;
}

static const char *node_name(const struct duet_recording *recording, size_t index)
{
    return recording->machine->nodes[index].name;
}

static size_t node_count(const struct duet_recording *recording)
{
    return recording->machine->node_count;
}

static void names_init(struct names *names, const struct duet_recording *const *recordings,
                       size_t count, size_t (*count_of)(const struct duet_recording *),
                       const char *(*name_of)(const struct duet_recording *, size_t))
{
    names->all = g_ptr_array_new();
    names->maps = g_new0(unsigned *, count + 1);
    for (size_t i = 0; i < count; i++) {
        size_t own = count_of(recordings[i]);

        names->maps[i] = g_new0(unsigned, own + 1);
        for (size_t k = 0; k < own; k++) {
            const char *name = name_of(recordings[i], k);

            /* the first one's are taken as they are, also where two have the same name */
            if (i == 0)
                g_ptr_array_add(names->all, (gpointer)(uintptr_t)name);
            names->maps[i][k] = i == 0 ? (unsigned)k : find_name(names->all, k, name);
        }
    }
}

static void names_fini(struct names *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        g_free(names->maps[i]);
    g_free(names->maps);
    g_ptr_array_free(names->all, TRUE);
}

static void put_names(FILE *stream, const struct names *names)
{
    for (unsigned i = 0; i < names->all->len; i++) {
        if (i)
            putc(',', stream);
        duet_write_json_string(stream, g_ptr_array_index(names->all, i));
    }
}

/* One timeline on its way into the page. */
struct timeline {
    const struct duet_gantt *gantt;
    const unsigned *kernels, *nodes; /* places of its names */
    double tick;
};

/*
 * Flat list of a row's bars: gap since the end of the one before, length (both in ticks), colour,
 * events, number of the first; for copies also bytes and the memory node at the other end.
 */
static void put_bars(FILE *stream, const struct timeline *timeline,
                     const struct duet_gantt_row *row)
{
    size_t kernels = timeline->gantt->recording->kernel_count;
    int64_t at = 0;

    for (size_t i = row->first; i < row->first + row->count; i++) {
        const struct duet_gantt_bar *bar = &timeline->gantt->bars[i];
        int64_t start = ticks(bar->start_s, timeline->tick);
        int64_t end = ticks(bar->end_s, timeline->tick);
        uint32_t colour = bar->colour;

        if (row->lane == DUET_GANTT_KERNELS && colour < kernels)
            colour = timeline->kernels[colour];
        fprintf(stream, "%s%" PRId64 ",%" PRId64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64,
                i > row->first ? "," : "", start - at, end - start, colour, bar->count, bar->id);
        if (row->lane != DUET_GANTT_KERNELS)
            fprintf(stream, ",%" PRIu64 ",%u", bar->bytes,
                    timeline->nodes[row->lane == DUET_GANTT_IN ? bar->source : bar->destination]);
        at = end;
    }
}

static void put_rows(FILE *stream, const struct timeline *timeline)
{
    const struct duet_gantt *gantt = timeline->gantt;
    const struct duet_machine *machine = gantt->recording->machine;

    fputs("{\"rows\":[", stream);
    for (size_t i = 0; i < gantt->row_count; i++) {
        const struct duet_gantt_row *row = &gantt->rows[i];
        unsigned node =
            row->lane == DUET_GANTT_KERNELS ? machine->workers[row->index].node : row->index;

        fputs(i ? ",\n{\"name\":" : "\n{\"name\":", stream);
        duet_write_json_string(stream, row->name);
        fprintf(stream, ",\"lane\":%d,\"node\":%u,\"bars\":[", (int)row->lane, node);
        put_bars(stream, timeline, row);
        fputs("]}", stream);
    }
    fputs("]}", stream);
}

static void put_colours(FILE *stream, size_t kernels)
{
    fputs(",\"colours\":[", stream);
    for (size_t i = 0; i < (kernels ? kernels : 1); i++)
        fprintf(stream, "%s\"%s\"", i ? "," : "", duet_gantt_kernel_colour(i));
    fputs("],\"copyColours\":[", stream);
    for (int i = 0; i < DUET_GANTT_COPIES; i++)
        fprintf(stream, "%s\"%s\"", i ? "," : "", duet_gantt_copy_colour((enum duet_gantt_copy)i));
    fputs("]", stream);
}

/* What all timelines have in common. */
static void put_common(FILE *stream, const struct names *kernels, const struct names *nodes,
                       double end_s, double tick)
{
    fputs("{\"end\":", stream);
    duet_write_json_number(stream, end_s);
    fputs(",\"tick\":", stream);
    duet_write_json_number(stream, tick);
    fputs(",\"kernels\":[", stream);
    put_names(stream, kernels);
    fputs("],\"nodes\":[", stream);
    put_names(stream, nodes);
    fputs("]", stream);
    put_colours(stream, kernels->all->len);
    fputs(",\"policies\":[", stream);
}

/* The end of the last event of all, or the longest makespan. */
static double common_end(const struct duet_recording *const *recordings, size_t count)
{
    double end = 0;

    for (size_t i = 0; i < count; i++) {
        end = fmax(end, recordings[i]->makespan_s);
        for (size_t k = 0; k < recordings[i]->event_count; k++)
            end = fmax(end, recordings[i]->events[k].end_s);
    }
    return end > 0 ? end : 1;
}

int duet__html_timelines(FILE *stream, const struct duet_recording *const *recordings, size_t count,
                         size_t max_bars, int digits, struct duet_message *message)
{
    double end = common_end(recordings, count), tick = pow(10, floor(log10(end)) - digits);
    struct names kernels, nodes;
    int result = 0;

    if (!count)
        return 0;
    names_init(&kernels, recordings, count, kernel_count, kernel_name);
    names_init(&nodes, recordings, count, node_count, node_name);
    put_common(stream, &kernels, &nodes, end, tick);
    for (size_t i = 0; i < count && !result; i++) {
        struct duet_gantt gantt;

        result = duet_gantt_build(&gantt, recordings[i], max_bars, message);
        if (result)
            break;
        if (i)
            fputs(",\n", stream);
        put_rows(stream, &(struct timeline){&gantt, kernels.maps[i], nodes.maps[i], tick});
        duet_gantt_fini(&gantt);
    }
    fputs("]}\n", stream);
    names_fini(&kernels, count);
    names_fini(&nodes, count);
    return result;
}
