/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bus of paced devices: copies pay their latency and then flow at their fair share of the
 * links. A flow's remaining bytes are updated only when its share changes, so that dates depend on
 * the events before them alone, however late they are read.
 */
#include <math.h>
#include <stdlib.h>

#include "backends/emulated/paced.h"

int duet__bus_init(struct bus *bus, const struct duet_machine *machine)
{
    if (duet__shares_init(&bus->shares, machine) || pthread_mutex_init(&bus->mutex, NULL)) {
        duet__shares_fini(&bus->shares);
        return DUET_ENOMEM;
    }
    if (pthread_cond_init(&bus->told, NULL)) {
        (void)pthread_mutex_destroy(&bus->mutex);
        duet__shares_fini(&bus->shares);
        return DUET_ENOMEM;
    }
    return DUET_OK;
}

void duet__bus_fini(struct bus *bus)
{
    (void)pthread_cond_destroy(&bus->told);
    (void)pthread_mutex_destroy(&bus->mutex);
    duet__shares_fini(&bus->shares);
    free(bus->devices);
}

int duet__bus_join(struct bus *bus, struct paced *device)
{
    if (bus->count == bus->capacity) {
        unsigned capacity = bus->capacity ? 2 * bus->capacity : 8;
        struct paced **devices = realloc(bus->devices, capacity * sizeof(struct paced *));
        if (!devices)
            return DUET_ENOMEM;
        bus->devices = devices;
        bus->capacity = capacity;
    }
    if (duet__shares_reserve(&bus->shares, 2 * (size_t)bus->capacity))
        return DUET_ENOMEM;
    bus->devices[bus->count++] = device;
    return DUET_OK;
}

void duet__bus_part(struct bus *bus, struct paced *device)
{
    for (unsigned i = 0; i < bus->count; i++) {
        if (bus->devices[i] == device) {
            for (bus->count--; i < bus->count; i++)
                bus->devices[i] = bus->devices[i + 1];
            return;
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* One direction of a device (lane) */

static double scale_of(const struct lane *lane)
{
    return lane->device->common.emulated->setup.scale;
}

/* Returns the device from whose memory a lane's copy comes; NULL: the host's. */
static struct paced *source_of(const struct lane *lane, const struct command *command)
{
    return lane == &lane->device->out ? lane->device : peer_of(command);
}

/* Ends the oldest copy, whatever its state. The next one may begin. */
static void end_head(struct lane *lane, double date, int status)
{
    struct command *command = queue_head(&lane->queue);
    if (lane->phase == PHASE_WAITS)
        command->report.start_s = date;
    command->report.end_s = date;
    command->report.status = status;
    lane->queue.done++;
    lane->phase = PHASE_WAITS;
    lane->device->bus->stirred = true;
}

static bool first_to_leave(const struct lane *lane, const struct command *command)
{
    const struct paced *source = source_of(lane, command);
    return !source || *(struct lane **)ring_at(&source->leaving, 0) == lane;
}

/* Begins the oldest copy, with its latency, if no other is before it. */
static void lane_begin(struct lane *lane, double date)
{
    struct command *command;
    while (lane->phase == PHASE_WAITS && (command = queue_head(&lane->queue))) {
        struct paced *peer = peer_of(command);
        if (peer && peer->common.lost) {
            end_head(lane, date, DUET_ELOST);
            continue;
        }
        if (!first_to_leave(lane, command))
            return;
        lane->flow.route =
            duet_machine_route(lane->device->bus->shares.machine, command->copy.source_node,
                               command->copy.destination_node);
        command->report.start_s = date;
        lane->phase = PHASE_LATENCY;
        lane->next_s = date + lane->flow.route->latency_s * scale_of(lane);
        lane->device->bus->stirred = true;
    }
}

static void lane_flow(struct lane *lane, double date)
{
    const struct backend_copy *copy = &queue_head(&lane->queue)->copy;
    lane->phase = PHASE_FLOWS;
    lane->left = 0;
    for (size_t col = 0; col < copy->cols && backend_slanted(copy); col++)
        lane->left += (double)backend_column(copy, col, &(size_t){0});
    if (!backend_slanted(copy))
        lane->left = (double)copy->column_bytes * (double)copy->cols;
    lane->rate = 0;
    lane->since_s = date;
    lane->next_s = INFINITY; /* until the shares are known */
    lane->device->bus->stirred = lane->device->bus->unshared = true;
}

static void lane_arrive(struct lane *lane, double date)
{
    struct paced *source = source_of(lane, queue_head(&lane->queue));
    end_head(lane, date, DUET_OK);
    lane->device->bus->unshared = true;
    if (source) {
        duet__ring_drop(&source->leaving);
        if (source->leaving.count)
            lane_begin(*(struct lane **)ring_at(&source->leaving, 0), date);
    }
    lane_begin(lane, date);
}

static void lane_happen(struct lane *lane, double date)
{
    if (lane->phase == PHASE_WAITS || lane->next_s > date)
        return;
    if (lane->phase == PHASE_LATENCY)
        lane_flow(lane, date);
    else
        lane_arrive(lane, date);
}

/* ------------------------------------------------------------------------------------------- */
/* All lanes */

static void list_flow(struct bus *bus, struct lane *lane)
{
    if (lane->phase == PHASE_FLOWS)
        bus->shares.flows[bus->shares.count++] = &lane->flow;
}

/* Continues the lane's flow with its new share from `date` on. */
static void redate(struct lane *lane, double date)
{
    double rate = lane->flow.share_Bps / scale_of(lane);
    if (lane->phase != PHASE_FLOWS || lane->rate == rate)
        return;
    lane->left = fmax(0, lane->left - lane->rate * (date - lane->since_s));
    lane->since_s = date;
    lane->rate = rate;
    lane->next_s = date + lane->left / rate;
}

static void bus_share(struct bus *bus, double date)
{
    bus->unshared = false;
    bus->shares.count = 0;
    for (unsigned i = 0; i < bus->count; i++) {
        list_flow(bus, &bus->devices[i]->in);
        list_flow(bus, &bus->devices[i]->out);
    }
    duet__shares_find(&bus->shares);
    for (unsigned i = 0; i < bus->count; i++) {
        redate(&bus->devices[i]->in, date);
        redate(&bus->devices[i]->out, date);
    }
}

static double lane_due(const struct lane *lane)
{
    return lane->phase == PHASE_WAITS ? INFINITY : lane->next_s;
}

static double next_event(const struct bus *bus)
{
    double next = INFINITY;
    for (unsigned i = 0; i < bus->count; i++)
        next = fmin(next, fmin(lane_due(&bus->devices[i]->in), lane_due(&bus->devices[i]->out)));
    return next;
}

void duet__bus_advance(struct bus *bus, double now)
{
    if (bus->unshared)
        bus_share(bus, bus->now_s);
    double date;
    while ((date = next_event(bus)) <= now) {
        for (unsigned i = 0; i < bus->count; i++) {
            lane_happen(&bus->devices[i]->in, date);
            lane_happen(&bus->devices[i]->out, date);
        }
        if (bus->unshared)
            bus_share(bus, date);
    }
    bus->now_s = fmax(bus->now_s, now);
}

void duet__bus_given(struct bus *bus, struct lane *lane)
{
    lane_begin(lane, bus->now_s);
    duet__bus_advance(bus, bus->now_s); /* without latency it flows at once */
}

/* ------------------------------------------------------------------------------------------- */
/* Loss                                                                                         */

static void leaving_forget(struct ring *leaving, const struct lane *lane)
{
    size_t count = leaving->count;
    for (size_t i = 0; i < count; i++) {
        struct lane *other = *(struct lane **)ring_at(leaving, 0);
        duet__ring_drop(leaving);
        if (other != lane)
            (void)duet__ring_add(leaving, &other);
    }
}

static void lose_kernels(struct paced *device, double date)
{
    struct queue *kernels = &device->kernels;
    for (; kernels->done < kernels->commands.count; kernels->done++) {
        struct backend_completion *report = &queue_head(kernels)->report;
        report->start_s = fmin(report->start_s, date);
        report->end_s = fmin(report->end_s, date);
    }
    device->free_s = fmin(device->free_s, date);
}

void duet__bus_lose(struct bus *bus, struct paced *device)
{
    double date = bus->now_s;
    device->common.lost = true;
    bus->unshared = true;
    lose_kernels(device, date);
    while (queue_head(&device->in.queue))
        end_head(&device->in, date, DUET_ELOST);
    while (queue_head(&device->out.queue))
        end_head(&device->out, date, DUET_ELOST);
    device->leaving.count = 0;
    for (unsigned i = 0; i < bus->count; i++) {
        struct paced *other = bus->devices[i];
        if (other->in.phase != PHASE_WAITS && peer_of(queue_head(&other->in.queue)) == device)
            end_head(&other->in, date, DUET_ELOST);
        leaving_forget(&other->leaving, &device->in);
    }
    for (unsigned i = 0; i < bus->count; i++) {
        lane_begin(&bus->devices[i]->in, date);
        lane_begin(&bus->devices[i]->out, date);
    }
    duet__bus_advance(bus, date);
}

/* ------------------------------------------------------------------------------------------- */
/* Notification of devices */

/*
 * Returns the date at which a lane changes next. The end of a latency completes nothing, but the
 * flow that begins then changes the shares of others, and may even end some sooner (it slows a
 * second one, which leaves more of another link to a third): their devices have to be told in time.
 */
static double next_of(const struct lane *lane)
{
    if (lane->queue.done)
        return ((struct command *)ring_at(&lane->queue.commands, 0))->report.end_s;
    return lane_due(lane);
}

double duet__bus_next(const struct paced *device)
{
    double next = fmin(next_of(&device->in), next_of(&device->out));
    if (!device->kernels.commands.count)
        return next;
    return fmin(next, ((struct command *)ring_at(&device->kernels.commands, 0))->report.end_s);
}

void duet__bus_tell(struct bus *bus, const struct paced *but)
{
    if (!bus->stirred)
        return;
    bus->stirred = false;
    for (unsigned i = 0; i < bus->count; i++) {
        struct paced *device = bus->devices[i];
        double next = duet__bus_next(device);
        if (device == but || next >= device->known_s)
            continue;
        device->known_s = next;
        device->telling++;
        (void)pthread_mutex_unlock(&bus->mutex);
        device->common.config.notify(device->common.config.owner);
        (void)pthread_mutex_lock(&bus->mutex);
        if (--device->telling == 0)
            (void)pthread_cond_broadcast(&bus->told);
    }
}
