/* SPDX-License-Identifier: Apache-2.0 */
/* Files of Linux, names of architectures, statuses, and the usage of threads. */
#include "backends/common.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

bool duet__read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");
    bool whole = file && fgets(line, (int)size, file) && (strchr(line, '\n') || feof(file));
    if (file)
        (void)fclose(file);
    line[whole ? strcspn(line, "\n") : 0] = '\0';
    return whole;
}

bool duet__is_listed(const char *list, unsigned number)
{
    while (*list >= '0' && *list <= '9') {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (first <= number && number <= last)
            return true;
        list = *end == ',' ? end + 1 : end;
    }
    return false;
}

void duet__arch_name(char arch[DUET_NAME_MAX], const char *name)
{
    static const char *const brands[] = {"NVIDIA ", "Tesla "};
    size_t length = 0;
    for (size_t i = 0; i < sizeof brands / sizeof *brands; i++)
        if (!strncmp(name, brands[i], strlen(brands[i])))
            name += strlen(brands[i]);
    for (; *name && length + 1 < DUET_NAME_MAX; name++) {
        if (isalnum((unsigned char)*name))
            arch[length++] = (char)tolower((unsigned char)*name);
        else if (length && arch[length - 1] != '-')
            arch[length++] = '-';
    }
    while (length && arch[length - 1] == '-')
        length--;
    arch[length] = '\0';
    if (!length)
        (void)snprintf(arch, DUET_NAME_MAX, "gpu");
}

int duet__late_status(int late, int *info)
{
    switch (late) {
    case DUET_OK:
#define X(name, value, text) case name:
        DUET_ERRORS(X)
#undef X
        return late;
    default:
        *info = late;
        return DUET_ETASK;
    }
}

int duet__config_check(const struct backend_config *config, struct duet_message *message)
{
    if (!config->capacity_bytes || config->capacity_bytes > SIZE_MAX)
        return duet_fail(message, DUET_EINVAL, "GPU %u: a slab needs a size, not %llu bytes",
                         config->index, (unsigned long long)config->capacity_bytes);
    if (config->kernel_streams > KERNEL_STREAMS)
        return duet_fail(message, DUET_EINVAL, "GPU %u: %u kernels at once: %d are possible",
                         config->index, config->kernel_streams, KERNEL_STREAMS);
    return DUET_OK;
}

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

void duet__thread_usage(struct duet__usage *usage)
{
    struct rusage now;
    *usage = (struct duet__usage){0};
    if (getrusage(RUSAGE_THREAD, &now))
        return;
    usage->computed_s = seconds_of(&now.ru_utime) + seconds_of(&now.ru_stime);
    usage->sleeps = now.ru_nvcsw;
}

bool duet__has_prepared(double wall_s, const struct duet__usage *before)
{
    struct duet__usage now;
    if (wall_s <= DUET__PREPARING_S)
        return false;
    duet__thread_usage(&now);
    return now.sleeps > before->sleeps ||
           now.computed_s - before->computed_s > DUET__PREPARING_S / 2;
}

/* ------------------------------------------------------------------------------------------- */
/* Growing ring buffers. */

enum { FIRST_CAPACITY = 16 };

bool duet__ring_reserve(struct ring *ring)
{
    if (ring->count < ring->capacity)
        return true;
    size_t capacity = ring->capacity ? 2 * ring->capacity : FIRST_CAPACITY;
    if (capacity > SIZE_MAX / ring->slot_bytes)
        return false;
    unsigned char *slots = malloc(capacity * ring->slot_bytes);
    if (!slots)
        return false;
    for (size_t i = 0; i < ring->count; i++)
        memcpy(slots + i * ring->slot_bytes, ring_at(ring, i), ring->slot_bytes);
    free(ring->slots);
    ring->slots = slots;
    ring->first = 0;
    ring->capacity = capacity;
    return true;
}

void *duet__ring_add(struct ring *ring, const void *value)
{
    return memcpy(ring_at(ring, ring->count++), value, ring->slot_bytes);
}

void duet__ring_fini(struct ring *ring)
{
    free(ring->slots);
    *ring = (struct ring){.slot_bytes = ring->slot_bytes};
}

/* ------------------------------------------------------------------------------------------- */
/* Reasons of failures */

/* Gives the text of a reason; NULL: there is none. Returns false if all texts are used. */
static bool say_reason(struct reasons *reasons, const struct reason *reason,
                       const char *(*text)(char *, const struct failure *), const char **why)
{
    *why = reason->why;
    if (*why)
        return true;
    if (!reason->failure.call && !reason->info) {
        if (reason->message && *reason->message->text)
            *why = reason->message->text;
        return true;
    }
    if (reasons->used == TEXTS)
        return false;
    char *room = reasons->texts[reasons->used++];
    if (reason->info)
        (void)snprintf(room, FAILURE_TEXT, "%s = %d", reason->info > 0 ? "info" : "status",
                       reason->info);
    else
        (void)text(room, &reason->failure);
    *why = room;
    return true;
}

bool duet__complete(struct backend_completion *out, double *end_s, struct reasons *reasons,
                    const struct reason *reason,
                    const char *(*text)(char *, const struct failure *))
{
    if (out->status && !say_reason(reasons, reason, text, &out->why))
        return false;
    out->start_s = fmax(out->start_s, *end_s);
    *end_s = out->end_s = fmax(out->end_s, out->start_s);
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* Conversion from a device's time to the engine's. */

/*
 * Seconds per second by which the two clocks may drift apart. Quartz is within 100 ppm of true time
 * over all temperatures, and there are two of them.
 */
static const double drift = 2e-4;

static double at_least(double value, double bound)
{
    return value < bound ? bound : value;
}

static double at_most(double value, double bound)
{
    return value > bound ? bound : value;
}

void duet__dates_init(struct dates *dates, double launched_s, double seen_s)
{
    *dates = (struct dates){.low_s = launched_s,
                            .high_s = at_least(seen_s, launched_s),
                            .offset_s = launched_s + 0.5 * at_least(seen_s - launched_s, 0),
                            .at_s = seen_s};
}

/* Widens the bounds by the drift since they were set. */
static void widen(struct dates *dates, const struct measured *measured)
{
    double age_s = at_least(measured->seen_s - dates->at_s, 0);
    double slack_s = drift * age_s + measured->unsure_s;
    dates->low_s -= slack_s;
    dates->high_s += slack_s;
    dates->at_s = at_least(dates->at_s, measured->seen_s);
}

/*
 * Narrows the bounds by one command. Its length may differ on the two clocks, so that the bound at
 * its start is one at its end only within that. If nothing fits, its end is taken as the moment at
 * which it was seen.
 */
static void narrow(struct dates *dates, const struct measured *measured)
{
    double length_s = measured->end_s - measured->start_s;
    double high_s = measured->seen_s - measured->end_s + measured->unsure_s;
    double low_s = measured->launched_s - measured->start_s - drift * length_s - measured->unsure_s;
    low_s = at_least(low_s, measured->asked_s - measured->end_s - measured->unsure_s);
    low_s = at_most(low_s, high_s);
    dates->low_s = at_least(dates->low_s, low_s);
    dates->high_s = at_most(dates->high_s, high_s);
    if (dates->low_s > dates->high_s) { /* a clock was set, or drifts more: the new bounds are
                                           right */
        dates->low_s = low_s;
        dates->high_s = high_s;
    }
    dates->offset_s = at_most(at_least(dates->offset_s, dates->low_s), dates->high_s);
}

void duet__dates_place(struct dates *dates, const struct measured *measured, double *start_s,
                       double *end_s)
{
    widen(dates, measured);
    narrow(dates, measured);
    double first_s = at_least(measured->launched_s, measured->stream_s);
    *start_s = at_least(measured->start_s + dates->offset_s, first_s);
    *start_s = at_most(*start_s, measured->seen_s);
    *end_s = at_most(measured->end_s + dates->offset_s, measured->seen_s);
    *end_s = at_least(at_least(*end_s, measured->asked_s), *start_s);
}

/* ------------------------------------------------------------------------------------------- */
/* Copies in pieces. */

bool duet__piece_cut(const struct backend_copy *copy, struct cut *cut, size_t room,
                     struct piece *piece)
{
    size_t bytes = copy->column_bytes, left = copy->cols - cut->column;
    if (!left || !bytes)
        return false;
    *piece = (struct piece){.column = cut->column, .offset = cut->offset};
    if (cut->offset || bytes > room) {
        piece->cols = 1;
        piece->width = bytes - cut->offset < room ? bytes - cut->offset : room;
        cut->offset += piece->width;
        if (cut->offset < bytes)
            return true;
        cut->offset = 0;
        cut->column++;
        return true;
    }
    piece->width = bytes;
    piece->cols = room / bytes < left ? room / bytes : left;
    cut->column += piece->cols;
    return true;
}

void duet__piece_pack(unsigned char *buffer, const struct backend_copy *copy,
                      const struct piece *piece)
{
    const unsigned char *from = copy->source;
    from += piece->column * copy->source_pitch + piece->offset;
    if (piece->width == copy->source_pitch) {
        memcpy(buffer, from, piece->width * piece->cols);
        return;
    }
    for (size_t i = 0; i < piece->cols; i++)
        memcpy(buffer + i * piece->width, from + i * copy->source_pitch, piece->width);
}

/*
 * Copies whole columns of a piece out of a buffer, of which only the triangle's elements are
 * written.
 */
static void unpack_slanted(const unsigned char *buffer, const struct backend_copy *copy,
                           const struct piece *piece)
{
    unsigned char *to = copy->destination;
    for (size_t i = 0; i < piece->cols; i++) {
        size_t col = piece->column + i, from, end;
        end = backend_column(copy, col, &from) + from;
        from = from > piece->offset ? from : piece->offset;
        end = end < piece->offset + piece->width ? end : piece->offset + piece->width;
        if (from < end)
            memcpy(to + col * copy->destination_pitch + from,
                   buffer + i * piece->width + (from - piece->offset), end - from);
    }
}

void duet__piece_unpack(const unsigned char *buffer, const struct backend_copy *copy,
                        const struct piece *piece)
{
    unsigned char *to = copy->destination;
    to += piece->column * copy->destination_pitch + piece->offset;
    if (backend_slanted(copy)) {
        unpack_slanted(buffer, copy, piece);
        return;
    }
    if (piece->width == copy->destination_pitch) {
        memcpy(to, buffer, piece->width * piece->cols);
        return;
    }
    for (size_t i = 0; i < piece->cols; i++)
        memcpy(to + i * copy->destination_pitch, buffer + i * piece->width, piece->width);
}

/* True if the columns of a copy, from `data` on with this pitch, are inside of a slab. */
static bool is_inside(const struct backend_copy *copy, const void *data, size_t pitch,
                      const void *slab, uint64_t slab_bytes)
{
    uintptr_t base = (uintptr_t)slab, first = (uintptr_t)data;
    if (!copy->cols || !copy->column_bytes)
        return true;
    if (first < base || first - base > slab_bytes ||
        copy->column_bytes > slab_bytes - (first - base))
        return false;
    uint64_t left = slab_bytes - (first - base) - copy->column_bytes;
    return copy->cols == 1 || (pitch >= copy->column_bytes && left / pitch >= copy->cols - 1);
}

bool duet__copy_placed(const struct backend_copy *copy, const void *slab, uint64_t slab_bytes,
                       const void *peer_slab, uint64_t peer_bytes)
{
    if (copy->stream != BACKEND_IN)
        return copy->stream == BACKEND_OUT && !copy->peer &&
               is_inside(copy, copy->source, copy->source_pitch, slab, slab_bytes);
    return is_inside(copy, copy->destination, copy->destination_pitch, slab, slab_bytes) &&
           (!copy->peer ||
            is_inside(copy, copy->source, copy->source_pitch, peer_slab, peer_bytes));
}
