/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segmented: time over work by segments, each with a power law t = a * work^b of its own, for
 * kernels that behave differently from some size on: caches, launches, algorithms. Break points are
 * found while the program runs, and the forecast is made anew after a miss (the model of UnMP's
 * scheduler, HeteroPar 2012).
 *
 * Our choice, where the paper is silent: executions are gathered in at most SIZES intervals of
 * work; if there would be more, the nearest two are joined. A forecast is the least squares on
 * their logarithmic means. A segment that misses an interval is cut at the interval that leaves the
 * least squares, which belongs to both sides, until none is missed. The forecast then stays until
 * an interval's mean is missed: by more than MISS, and by more than twice its standard error.
 */
#include <math.h>
#include <string.h>

#include <duet/model.h>

enum { SIZES = 32 };

static const double MISS = 0.02;    /* difference of logarithms that counts as a miss: about 2 % */
static const double UNKNOWN = 0.05; /* as if each interval had one more execution with this
                                       difference */
static const double ENOUGH = 10;    /* executions from which more hardly add weight */
static const double WIDE = 2;       /* ratio of works whose times show how time grows with work */
static const double FAR = 4;        /* beyond this ratio of works there is no forecast, unless the
                                       slope is known */
static const double SAME = 1e-9;    /* difference of logarithms below which works are equal */

/* Executions whose works lie in an interval: x = log work, y = log time. */
struct size {
    double low, high;
    double x, y;    /* means */
    double squares; /* sum of the squared differences from y */
    double count;
};

/* A straight line in logarithms, between two works. */
struct segment {
    double from, until, x, y, slope;
};

struct state {
    struct size sizes[SIZES + 1]; /* ascending; one more while two are being joined */
    struct segment segments[SIZES];
    unsigned size_count, segment_count;
};

/* Returns the logarithm of the work; tasks without data count as work 1. */
static double log_work(double work)
{
    return work > 0 ? log(work) : 0;
}

static double segmented_segment_at(const struct segment *segment, double x)
{
    return segment->y + segment->slope * (x - segment->x);
}

/*
 * Returns the forecast. Beyond the measured works a segment goes on if it spans a factor of WIDE,
 * and never falls; a narrower one is taken for proportional.
 */
static double forecast(const struct state *state, double x)
{
    const struct segment *segment = state->segments;
    const double least = state->sizes[0].x, most = state->sizes[state->size_count - 1].x;
    const double inside = fmin(fmax(x, least), most);
    while (segment < &state->segments[state->segment_count - 1] && inside > segment->until)
        segment++;
    bool wide = segment->until - segment->from >= log(WIDE);
    return segmented_segment_at(segment, inside) +
           (x - inside) * (wide ? fmax(segment->slope, 0) : 1);
}

/* Returns false if all measurements are of about one size, and this is quite another. */
static bool can_tell(const struct state *state, double x)
{
    if (!state->segment_count)
        return false;
    const double least = state->sizes[0].x, most = state->sizes[state->size_count - 1].x;
    bool far = x < least - log(FAR) || x > most + log(FAR);
    return most - least >= log(WIDE) || !far;
}

static bool misses(const struct size *size, double y)
{
    double variance = (size->squares + UNKNOWN * UNKNOWN) / size->count;
    return fabs(size->y - y) > fmax(MISS, 2 * sqrt(variance / size->count));
}

/* Fits a line to sizes first to last, and returns the weighted squares of its errors. */
static double segmented_fit(const struct size *sizes, unsigned first, unsigned last,
                            struct segment *out)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, left = 0;
    for (unsigned i = first; i <= last; i++) {
        double weight = sizes[i].count / (sizes[i].count + ENOUGH);
        n += weight;
        x += weight * sizes[i].x;
        y += weight * sizes[i].y;
    }
    *out = (struct segment){.from = sizes[first].x, .until = sizes[last].x, .x = x / n, .y = y / n};
    for (unsigned i = first; i <= last; i++) {
        double weight = sizes[i].count / (sizes[i].count + ENOUGH), dx = sizes[i].x - out->x;
        xx += weight * dx * dx;
        xy += weight * dx * (sizes[i].y - out->y);
    }
    out->slope = first < last ? xy / xx : 1; /* one size only: time in proportion to work */
    for (unsigned i = first; i <= last; i++) {
        double miss = sizes[i].y - segmented_segment_at(out, sizes[i].x);
        left += sizes[i].count / (sizes[i].count + ENOUGH) * miss * miss;
    }
    return left;
}

/* Returns the size at which sizes first to last, more than two, are best cut. */
static unsigned best_cut(const struct size *sizes, unsigned first, unsigned last)
{
    struct segment unused;
    double least = INFINITY;
    unsigned best = first + 1;
    for (unsigned cut = first + 1; cut < last; cut++) {
        double left =
            segmented_fit(sizes, first, cut, &unused) + segmented_fit(sizes, cut, last, &unused);
        if (left < least) {
            least = left;
            best = cut;
        }
    }
    return best;
}

/* Makes the forecast anew. */
static void fit_all(struct state *state)
{
    unsigned ends[SIZES], open = 1, first = 0; /* ends of segments to the right, the nearest last */
    ends[0] = state->size_count - 1;
    state->segment_count = 0;
    while (open) {
        unsigned last = ends[open - 1];
        struct segment *segment = &state->segments[state->segment_count];
        bool good = true;
        (void)segmented_fit(state->sizes, first, last, segment);
        for (unsigned i = first; i <= last && good; i++)
            good = !misses(&state->sizes[i], segmented_segment_at(segment, state->sizes[i].x));
        if (!good && last - first > 1) {
            ends[open++] = best_cut(state->sizes, first, last);
            continue;
        }
        state->segment_count++;
        first = last;
        open--;
    }
}

/* Adds executions to an interval. */
static void gather(struct size *size, const struct size *more)
{
    double count = size->count + more->count, dy = more->y - size->y;
    size->squares += more->squares + dy * dy * size->count * more->count / count;
    size->x += (more->x - size->x) * more->count / count;
    size->y += dy * more->count / count;
    size->low = fmin(size->low, more->low);
    size->high = fmax(size->high, more->high);
    size->count = count;
}

static void segmented_take_out(struct state *state, unsigned index)
{
    state->size_count--;
    memmove(&state->sizes[index], &state->sizes[index + 1],
            (state->size_count - index) * sizeof state->sizes[0]);
}

/* Joins the two neighbours that are nearest to each other. Returns the joined one. */
static unsigned join_nearest(struct state *state)
{
    unsigned nearest = 0;
    for (unsigned i = 1; i + 1 < state->size_count; i++)
        if (state->sizes[i + 1].x - state->sizes[i].x <
            state->sizes[nearest + 1].x - state->sizes[nearest].x)
            nearest = i;
    gather(&state->sizes[nearest], &state->sizes[nearest + 1]);
    segmented_take_out(state, nearest + 1);
    return nearest;
}

/* Enters executions into an interval, *out. Returns true if two intervals were joined for it. */
static bool segmented_enter(struct state *state, const struct size *more, unsigned *out)
{
    unsigned i = 0;
    while (i < state->size_count && state->sizes[i].high < more->x - SAME)
        i++;
    *out = i;
    if (i < state->size_count && state->sizes[i].low <= more->x + SAME) {
        gather(&state->sizes[i], more);
        return false;
    }
    memmove(&state->sizes[i + 1], &state->sizes[i],
            (state->size_count - i) * sizeof state->sizes[0]);
    state->sizes[i] = *more;
    if (++state->size_count <= SIZES)
        return false;
    *out = join_nearest(state);
    return true;
}

static int segmented_add(void *self, double work, uint64_t footprint, double mean_s,
                         uint64_t samples)
{
    struct state *state = self;
    double x = log_work(work), y = log(mean_s);
    if (!isfinite(y) || !samples) /* a time of 0 */
        return DUET_OK;
    const struct size more = {.low = x, .high = x, .x = x, .y = y, .count = (double)samples};
    unsigned i;
    bool joined = segmented_enter(state, &more, &i);
    if (state->segment_count && !misses(&state->sizes[i], forecast(state, state->sizes[i].x)) &&
        !joined)
        return DUET_OK;
    fit_all(state);
    return 1;
}

static double segmented_predict(const void *self, double work, uint64_t footprint)
{
    const struct state *state = self;
    return can_tell(state, log_work(work)) ? exp(forecast(state, log_work(work))) : 0;
}

static void segmented_fini(void *self)
{
    memset(self, 0, sizeof(struct state));
}

const struct duet_model duet__model_segmented = {
    .name = "segmented",
    .description = "power laws over segments of sizes, whose ends are found on the way",
    .state_size = sizeof(struct state),
    .add = segmented_add,
    .predict = segmented_predict,
    .fini = segmented_fini,
};
