/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history: the mean of executions measured for the same work and footprint (StarPU's history-based
 * model: Augonnet, Thibault, Namyst, HPPC 2009). Sizes never measured are taken from the power law
 * through the two nearest measured ones, between them and beyond.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <duet/model.h>

struct entry {
    double work, mean_s;
    uint64_t footprint, samples;
};

struct state {
    struct entry *entries; /* ascending in work, then footprint */
    size_t count, capacity;
    struct entry *last;      /* entry that the last measurement was added to; NULL: not known */
    uint64_t last_footprint; /* footprint of that measurement */
};

/* Returns the position of the first entry that is not below the key. */
static size_t lower_bound(const struct state *state, double work, uint64_t footprint)
{
    size_t low = 0, high = state->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct entry *e = &state->entries[middle];
        if (e->work < work || (e->work == work && e->footprint < footprint))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int history_insert(struct state *state, size_t at, const struct entry *entry)
{
    state->last = NULL;
    if (state->count == state->capacity) {
        size_t capacity = state->capacity ? 2 * state->capacity : 8;
        struct entry *entries = realloc(state->entries, capacity * sizeof *entries);
        if (!entries)
            return DUET_ENOMEM;
        state->entries = entries;
        state->capacity = capacity;
    }
    memmove(&state->entries[at + 1], &state->entries[at],
            (state->count - at) * sizeof state->entries[0]);
    state->entries[at] = *entry;
    state->count++;
    return DUET_OK;
}

/*
 * Returns the entry of a measurement: of its work and footprint, or of its work and footprint 0,
 * which stands for any (a calibration knows no data sizes).
 */
static struct entry *entry_of(const struct state *state, double work, uint64_t footprint)
{
    uint64_t tried[] = {footprint, 0};
    if (state->last && state->last->work == work && state->last_footprint == footprint)
        return state->last;
    for (unsigned i = 0; i < 2; i++) {
        size_t at = lower_bound(state, work, tried[i]);
        struct entry *e = at < state->count ? &state->entries[at] : NULL;
        if (e && e->work == work && e->footprint == tried[i])
            return e;
    }
    return NULL;
}

static int history_add(void *self, double work, uint64_t footprint, double mean_s, uint64_t samples)
{
    struct state *state = self;
    struct entry *found = entry_of(state, work, footprint);
    if (found) {
        state->last = found;
        state->last_footprint = footprint;
        found->samples += samples;
        found->mean_s += (mean_s - found->mean_s) * (double)samples / (double)found->samples;
        return DUET_OK;
    }
    return history_insert(state, lower_bound(state, work, footprint),
                          &(struct entry){work, mean_s, footprint, samples});
}

/* Returns the mean over all footprints measured with exactly this work; 0 if there is none. */
static double same_work(const struct state *state, double work)
{
    double sum = 0, samples = 0;
    for (size_t i = lower_bound(state, work, 0); i < state->count; i++) {
        const struct entry *e = &state->entries[i];
        if (e->work != work)
            break;
        sum += e->mean_s * (double)e->samples;
        samples += (double)e->samples;
    }
    return samples > 0 ? sum / samples : 0;
}

/* Returns t = a * work^b through two entries. */
static double power_law(const struct entry *a, const struct entry *b, double work)
{
    double slope = log(b->mean_s / a->mean_s) / log(b->work / a->work);
    return a->mean_s * pow(work / a->work, slope);
}

static double history_predict(const void *self, double work, uint64_t footprint)
{
    const struct state *state = self;
    if (state->count == 0)
        return 0;
    const struct entry *entries = state->entries, *exact = entry_of(state, work, footprint);
    if (exact)
        return exact->mean_s;
    size_t at = lower_bound(state, work, footprint);
    double mean = same_work(state, work);
    if (mean > 0)
        return mean;
    /* two entries of different work around the key, or nearest to it */
    size_t right = at < state->count ? at : state->count - 1;
    size_t left = right;
    while (left > 0 && entries[left].work == entries[right].work)
        left--;
    if (left == right)
        while (right + 1 < state->count && entries[left].work == entries[right].work)
            right++;
    if (entries[left].work == entries[right].work)
        return entries[left].mean_s * work / entries[left].work; /* one size: same rate */
    return power_law(&entries[left], &entries[right], work);
}

static void history_fini(void *self)
{
    struct state *state = self;
    free(state->entries);
    memset(state, 0, sizeof *state);
}

const struct duet_model duet__model_history = {
    .name = "history",
    .description = "mean of past executions of the same size; power law between and beyond",
    .state_size = sizeof(struct state),
    .add = history_add,
    .predict = history_predict,
    .fini = history_fini,
};
