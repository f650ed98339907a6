/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between nodes, in simulated time. Each node has a progress thread, which does one thing
 * after another: first it receives messages that have arrived, then it sends messages from its
 * outbox. Sending and receiving cost it the overhead of a message each. When there is nothing to do
 * it sleeps, as in reality, until it is woken by an end of a message that becomes ready, or polls
 * MPI. A message of few bytes (eager) is sent at once; one of more (rendezvous) when its receiver
 * is ready, too, and they have found each other. Then its latency passes, and its bytes flow from
 * card to card.
 *
 * The two ends of a message meet in a packet, by nodes, tag and turn.
 */
#include <stdlib.h>

#include "nodes/nodes.h"
#include "sim/internal.h"

struct packet {
    struct flow flow;    /* to its receiver */
    struct packet *next; /* next in its bucket, or in the pool */
    struct packet *then; /* next in the order of arrival */
    unsigned from, to;
    uint64_t tag, turn, bytes;
    struct duet__message *out, *in; /* its ends; NULL: not ready yet, or done */
    double start_s;
    bool sent;    /* the sender has spent its overhead */
    bool goes;    /* nothing delays it any more */
    bool arrived; /* all of its bytes have arrived */
    bool over;    /* one of its ends is done */
};

/* A progress thread. */
struct progress {
    struct duet__outbox *outbox;
    struct packet *first, *last; /* packets to be received */
    struct packet *at_work;
    bool sends;
    double moved_s; /* the last date at which it had something to do */
    double looks_s; /* date of the first pending event to poll; INFINITY: there is none */
};

struct messages {
    struct duet__network network;
    struct progress *progress; /* by node */
    struct packet **buckets;
    size_t bucket_count, packet_count; /* a power of two */
    struct packet *pool;
    struct duet__message *lost; /* messages for whose packets there was no memory */
    /* the run's failure, of which all nodes are told by an event */
    bool failed, told, dated;
    int error;
    struct duet_message why;
};

/* ------------------------------------------------------------------------------------------- */
/* Packets                                                                                      */

static struct packet **bucket_of(const struct messages *messages, unsigned from, unsigned to,
                                 uint64_t turn)
{
    uint64_t key = (turn * 0x9e3779b97f4a7c15 ^ from) * 0xff51afd7ed558ccd ^ to;
    key *= 0xc4ceb9fe1a85ec53;
    return &messages->buckets[key >> 32 & (messages->bucket_count - 1)];
}

static void grow_buckets(struct messages *messages)
{
    struct packet **before = messages->buckets;
    size_t count = messages->bucket_count;
    struct packet **buckets = calloc(4 * count, sizeof(struct packet *));
    if (!buckets)
        return; /* searches take longer */
    messages->buckets = buckets;
    messages->bucket_count = 4 * count;
    for (size_t i = 0; i < count; i++) {
        while (before[i]) {
            struct packet *packet = before[i];
            struct packet **bucket = bucket_of(messages, packet->from, packet->to, packet->turn);
            before[i] = packet->next;
            packet->next = *bucket;
            *bucket = packet;
        }
    }
    free(before);
}

/* Returns the packet of an end of a message. NULL: no memory. */
static struct packet *packet_of(struct messages *messages, const struct duet__message *message)
{
    struct packet **bucket = bucket_of(messages, message->from, message->to, message->turn);
    struct packet *packet = *bucket;
    while (packet && (packet->from != message->from || packet->to != message->to ||
                      packet->tag != message->tag || packet->turn != message->turn))
        packet = packet->next;
    if (packet)
        return packet;
    packet = messages->pool;
    if (packet)
        messages->pool = packet->next;
    else
        packet = malloc(sizeof *packet);
    if (!packet)
        return NULL;
    *packet = (struct packet){.from = message->from,
                              .to = message->to,
                              .tag = message->tag,
                              .turn = message->turn,
                              .bytes = message->bytes,
                              .next = *bucket};
    *bucket = packet;
    if (++messages->packet_count > 2 * messages->bucket_count)
        grow_buckets(messages);
    return packet;
}

/* Notes that one of the packet's ends is done; puts the packet into the pool when both are. */
static void leave_packet(struct messages *messages, struct packet *packet)
{
    if (!packet->over) {
        packet->over = true;
        return;
    }
    struct packet **at = bucket_of(messages, packet->from, packet->to, packet->turn);
    while (*at != packet)
        at = &(*at)->next;
    *at = packet->next;
    packet->next = messages->pool;
    messages->pool = packet;
    messages->packet_count--;
}

/* ------------------------------------------------------------------------------------------- */
/* Messages in transit */

static struct progress *progress_of(const struct sim *sim)
{
    return &sim->cluster->messages->progress[sim->number];
}

/* Returns the date when the progress thread is awake if it is woken now. */
static double wakes_s(const struct sim *sim)
{
    const struct progress *self = progress_of(sim);
    double now = sim->cluster->now;
    bool sleeps = !self->at_work && now - self->moved_s > DUET__REST_AFTER_S;
    return sleeps ? now + sim->wake_s : now;
}

/* Returns the date when the progress thread sees a message that MPI has at `date`. Each of its
   sleeps takes longer by the time of waking. */
static double sees_s(const struct sim *sim, double date)
{
    const struct progress *self = progress_of(sim);
    const double round_s = DUET__REST_MOST_S + sim->wake_s;
    double waited_s = date - self->moved_s, looks_s = DUET__REST_AFTER_S;
    if (self->at_work || !(sim->wake_s > 0) || waited_s <= looks_s)
        return date;
    while (looks_s < waited_s && duet__rest_s(looks_s) < DUET__REST_MOST_S)
        looks_s += duet__rest_s(looks_s) + sim->wake_s;
    if (looks_s < waited_s)
        looks_s += ceil((waited_s - looks_s) / round_s) * round_s;
    return self->moved_s + looks_s;
}

/* Starts the progress thread's next operation, if it is awake and there is any. */
static void start_work(struct sim *sim)
{
    struct messages *messages = sim->cluster->messages;
    struct progress *self = progress_of(sim);
    if (self->at_work || messages->failed)
        return;
    struct packet *packet = self->first;
    self->sends = !packet;
    if (packet) {
        self->first = packet->then;
    } else {
        struct duet__message *message = duet__outbox_take(self->outbox);
        if (!message)
            return;
        packet = message->transport;
        packet->start_s = sim->cluster->now;
    }
    self->at_work = packet;
    duet__sim_event(sim, sim->cluster->now + messages->network.overhead_s, EVENT_PROGRESS, 0,
                    packet);
}

/* Lets the progress thread poll at this date, if it does not before. */
static void poll_at(struct sim *sim, double date)
{
    struct progress *self = progress_of(sim);
    if (date <= sim->cluster->now) {
        start_work(sim);
    } else if (date < self->looks_s) {
        self->looks_s = date;
        duet__sim_event(sim, date, EVENT_PROGRESS, 0, NULL);
    }
}

/* Sends the packet, if nothing delays it. A receiver that was ready before has to notice the
   message first; one that becomes ready now does when it is awake. */
static void try_go(struct cluster *cluster, struct packet *packet, bool ready_now)
{
    const struct duet__network *network = &cluster->messages->network;
    struct sim *receiver = cluster->nodes[packet->to];
    bool eager = packet->bytes <= network->eager_bytes;
    if (packet->goes || !packet->sent || !(eager || packet->in))
        return;
    packet->goes = true;
    double date = cluster->now + network->latency_s +
                  cluster->engine->latency(cluster->network, packet->from, packet->to);
    if (!eager) {
        double seen_s = ready_now ? wakes_s(receiver) : sees_s(receiver, date);
        date = fmax(date, seen_s) + network->rendezvous_s;
    }
    duet__sim_event(cluster->nodes[packet->from], date, EVENT_MESSAGE_FLOW, 0, packet);
}

/*
 * Ends the sender's part and lets the receiver take the packet, once all of it has arrived and the
 * receiver is ready.
 */
static void try_meet(struct cluster *cluster, struct packet *packet, double seen_s)
{
    struct sim *sender = cluster->nodes[packet->from];
    struct progress *receiver = &cluster->messages->progress[packet->to];
    if (!packet->arrived || !packet->in)
        return;
    packet->then = NULL;
    if (receiver->first)
        receiver->last->then = packet;
    else
        receiver->first = packet;
    receiver->last = packet;
    poll_at(cluster->nodes[packet->to], seen_s);
    duet__sim_event(sender, sees_s(sender, cluster->now), EVENT_MESSAGE_SENT, 0, packet);
}

static void message_done(struct sim *sim, const struct packet *packet,
                         struct duet__message *message, int status)
{
    message->start_s = packet->start_s;
    message->end_s = sim->cluster->now;
    sim->asked = DUET_SUBMITTER;
    duet__message_done(message, status);
    sim->asked = DUET_OUTSIDE;
}

/* ------------------------------------------------------------------------------------------- */
/* Failures */

/* Adds the event by which all messages are ended. */
static void end_all_messages(struct cluster *cluster)
{
    struct messages *messages = cluster->messages;
    if (!messages->dated)
        duet__sim_event(cluster->nodes[0], cluster->now, EVENT_FAILED, 0, NULL);
    messages->dated = true;
}

static void fail_all(void *engine, unsigned node, int error, const char *why)
{
    struct cluster *cluster = ((struct sim *)engine)->cluster;
    struct messages *messages = cluster->messages;
    if (messages->failed)
        return;
    messages->failed = true;
    messages->error = duet_fail(&messages->why, error, "%s", why);
    end_all_messages(cluster);
}

/*
 * Ends all messages, and tells the nodes of the failure once. Packets in flight stay where they
 * are.
 */
static void fail_now(struct cluster *cluster)
{
    struct messages *messages = cluster->messages;
    messages->dated = false;
    if (!messages->told)
        duet__nodes_failed(duet__nodes_of(cluster->nodes[0]->core), messages->error,
                           messages->why.text);
    messages->told = true;
    while (messages->lost) {
        struct duet__message *message = messages->lost;
        const struct packet none = {.start_s = cluster->now};
        messages->lost = message->next;
        message_done(cluster->nodes[message->arrives ? message->to : message->from], &none, message,
                     DUET_ECANCELED);
    }
    for (size_t i = 0; i < messages->bucket_count; i++) {
        for (struct packet *packet = messages->buckets[i]; packet; packet = packet->next) {
            struct duet__message *out = packet->out, *in = packet->in;
            packet->out = packet->in = NULL;
            if (out)
                message_done(cluster->nodes[packet->from], packet, out, DUET_ECANCELED);
            if (in)
                message_done(cluster->nodes[packet->to], packet, in, DUET_ECANCELED);
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Events                                                                                       */

/* Handles the end of a message's overhead on the progress thread; without a packet it polls. */
static void progress_event(struct sim *sim, struct packet *packet)
{
    struct messages *messages = sim->cluster->messages;
    struct progress *self = progress_of(sim);
    if (!packet) {
        if (self->looks_s > sim->cluster->now)
            return; /* the node has polled before */
        self->looks_s = INFINITY;
        start_work(sim);
        return;
    }
    self->at_work = NULL;
    self->moved_s = sim->cluster->now;
    if (self->sends) {
        packet->sent = true;
        try_go(sim->cluster, packet, false);
    } else {
        struct duet__message *message = packet->in;
        packet->in = NULL;
        message_done(sim, packet, message, DUET_OK);
        leave_packet(messages, packet);
    }
    start_work(sim);
}

static void start_flow(struct sim *sim, struct packet *packet)
{
    struct cluster *cluster = sim->cluster;
    struct sim *receiver = cluster->nodes[packet->to];
    const struct duet__network *network = &cluster->messages->network;
    struct progress *self = progress_of(receiver);
    if (packet->bytes > network->eager_bytes) /* it has noticed the message */
        self->moved_s = fmax(self->moved_s, cluster->now - network->rendezvous_s);
    if (!packet->bytes) { /* an engine's flows have bytes */
        duet__sim_event(receiver, cluster->now, EVENT_MESSAGE_ARRIVED, 0, packet);
        return;
    }
    packet->flow = (struct flow){.sim = receiver, .end = EVENT_MESSAGE_ARRIVED};
    duet__sim_flows(&packet->flow, cluster->engine->send(cluster->network, packet->from, packet->to,
                                                         packet->bytes, packet));
}

static void message_sent(struct sim *sim, struct packet *packet)
{
    struct progress *self = progress_of(sim);
    struct duet__message *message = packet->out;
    packet->out = NULL;
    self->moved_s = sim->cluster->now;
    duet__outbox_gone(self->outbox, message);
    message_done(sim, packet, message, DUET_OK);
    leave_packet(sim->cluster->messages, packet);
    start_work(sim);
}

void duet__messages_event(struct sim *sim, enum event_kind kind, void *what)
{
    struct packet *packet = what;
    if (kind == EVENT_FAILED)
        fail_now(sim->cluster);
    else if (sim->cluster->messages->failed)
        return;
    else if (kind == EVENT_PROGRESS)
        progress_event(sim, packet);
    else if (kind == EVENT_MESSAGE_FLOW)
        start_flow(sim, packet);
    else if (kind == EVENT_MESSAGE_SENT)
        message_sent(sim, packet);
    else {
        packet->arrived = true;
        try_meet(sim->cluster, packet, sees_s(sim, sim->cluster->now));
    }
}

/* ------------------------------------------------------------------------------------------- */
/* The transport                                                                                */

static void message_ready(void *engine, struct duet__message *message)
{
    struct cluster *cluster = ((struct sim *)engine)->cluster;
    struct messages *messages = cluster->messages;
    struct packet *packet = packet_of(messages, message);
    if (!packet) {
        message->next = messages->lost;
        messages->lost = message;
        duet__fail_run(message->core, DUET_ENOMEM, "no memory left for another message");
        end_all_messages(cluster);
        return;
    }
    message->transport = packet;
    struct progress *receiver = &messages->progress[message->to];
    if (message->arrives)
        packet->in = message;
    else
        packet->out = message;
    if (messages->failed) {
        end_all_messages(cluster);
    } else if (message->arrives) {
        try_go(cluster, packet, true);
        try_meet(cluster, packet, wakes_s(cluster->nodes[message->to]));
        receiver->moved_s = fmax(receiver->moved_s, cluster->now);
    } else {
        duet__outbox_put(messages->progress[message->from].outbox, message);
        poll_at(cluster->nodes[message->from], wakes_s(cluster->nodes[message->from]));
    }
}

static void charge_passed(void *engine, unsigned node, uint64_t tasks)
{
    struct sim *sim = ((struct sim *)engine)->cluster->nodes[node];
    sim->submit_s += (double)tasks * sim->machine.costs.foreign_s;
}

/* Meeting of all nodes: their applications' threads have waited until now. */
static int meet_all(void *engine)
{
    const struct cluster *cluster = ((struct sim *)engine)->cluster;
    for (unsigned n = 0; n < cluster->count; n++)
        if (cluster->nodes[n]->submit_s < cluster->now)
            cluster->nodes[n]->submit_s = cluster->now;
    return cluster->messages->failed ? cluster->messages->error : DUET_OK;
}

const struct duet__transport *duet__sim_transport(void)
{
    /* it ends with the engines */
    static const struct duet__transport transport = {.ready = message_ready,
                                                     .passed = charge_passed,
                                                     .fail = fail_all,
                                                     .barrier = meet_all};
    return &transport;
}

/* ------------------------------------------------------------------------------------------- */
/* Making and freeing                                                                           */

int duet__messages_new(struct cluster *cluster, const struct duet__network *network)
{
    struct messages *messages = cluster->messages = calloc(1, sizeof *messages);
    if (!messages)
        return DUET_ENOMEM;
    messages->network = *network;
    messages->bucket_count = 64;
    messages->buckets = calloc(messages->bucket_count, sizeof(struct packet *));
    messages->progress = calloc(cluster->count, sizeof *messages->progress);
    int error = messages->buckets && messages->progress ? DUET_OK : DUET_ENOMEM;
    for (unsigned n = 0; n < cluster->count && !error; n++) {
        messages->progress[n].looks_s = INFINITY;
        error = duet__outbox_new(&messages->progress[n].outbox, cluster->count);
    }
    return error;
}

static void free_packets(struct packet *packet)
{
    while (packet) {
        struct packet *next = packet->next;
        free(packet);
        packet = next;
    }
}

void duet__messages_free(struct cluster *cluster)
{
    struct messages *messages = cluster->messages;
    if (!messages)
        return;
    for (unsigned n = 0; messages->progress && n < cluster->count; n++)
        duet__outbox_free(messages->progress[n].outbox);
    for (size_t i = 0; messages->buckets && i < messages->bucket_count; i++)
        free_packets(messages->buckets[i]);
    free_packets(messages->pool);
    free(messages->progress);
    free(messages->buckets);
    free(messages);
}
