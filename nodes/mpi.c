/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that moves messages over MPI. Each end of a message is posted as soon as it is ready
 * there and, at the sender, the outbox lets it go. A send is synchronous (MPI_Issend): it has ended
 * when the receiver has matched it, so that unexpected messages are bounded by the outbox's limit
 * of those in flight.
 *
 * After a failure every node receives and discards the messages that still come, so that all sends
 * end. A process that closes and has no request left enters meetings, which are non-blocking, until
 * all do so (Hoefler et al., PPoPP 2010, end an exchange by such a collective).
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "nodes/mpi_internal.h"

static const double IDLE_S = 0.02; /* sleep of the thread if only a failure may come */
static const double ANSWER_S = 5;  /* time after which a node that does not answer is reported */

static const uint64_t CLOSED = UINT64_MAX; /* bytes, in a meeting, of a process that has closed */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ------------------------------------------------------------------------------------------- */
/* Requests                                                                                     */

/* Makes room for one more request, beside those for other nodes that must always be possible. */
static bool reserve_request(struct duet__mpi *mpi)
{
    const unsigned spare = 3 * mpi->count + 2; /* notices, questions, parts, a meeting, listening */
    if (mpi->request_count + spare >= mpi->request_capacity) {
        unsigned capacity = 2 * mpi->request_capacity + spare + 64;
        void *requests = realloc(mpi->requests, capacity * sizeof *mpi->requests);
        mpi->requests = requests ? requests : mpi->requests;
        void *statuses = realloc(mpi->statuses, capacity * sizeof *mpi->statuses);
        mpi->statuses = statuses ? statuses : mpi->statuses;
        void *ended = realloc(mpi->ended, capacity * sizeof *mpi->ended);
        mpi->ended = ended ? ended : mpi->ended;
        void *under_way = realloc(mpi->under_way, capacity * sizeof *mpi->under_way);
        mpi->under_way = under_way ? under_way : mpi->under_way;
        if (!requests || !statuses || !ended || !under_way)
            return false;
        mpi->request_capacity = capacity;
    }
    return true;
}

/* Returns the place of the next request. */
static MPI_Request *request(struct duet__mpi *mpi)
{
    return &mpi->requests[mpi->request_count];
}

/* Counts the request that was put where `request` said as active. */
static void add_request(struct duet__mpi *mpi,
                        void (*ended)(struct duet__mpi *mpi, void *what, const MPI_Status *status),
                        void *what)
{
    mpi->under_way[mpi->request_count++] = (struct under_way){.ended = ended, .what = what};
}

static void notice_received(struct duet__mpi *mpi, void *what, const MPI_Status *status);

/* Handles the requests that MPI has ended: failures first, which the end of a meeting needs to
   know. Returns true if there was any. */
static bool test_requests(struct duet__mpi *mpi)
{
    int count = 0, result = MPI_Testsome((int)mpi->request_count, mpi->requests, &count, mpi->ended,
                                         mpi->statuses);
    if (count == MPI_UNDEFINED || count <= 0)
        return false;
    for (int i = 0; i < 2 * count; i++) {
        /* copies: the functions called here may begin other requests */
        struct under_way what = mpi->under_way[mpi->ended[i % count]];
        MPI_Status status = mpi->statuses[i % count];
        if (result != MPI_ERR_IN_STATUS)
            status.MPI_ERROR = result;
        if ((what.ended == notice_received) == (i < count))
            what.ended(mpi, what.what, &status);
    }
    unsigned kept = 0;
    for (unsigned i = 0; i < mpi->request_count; i++) {
        if (mpi->requests[i] == MPI_REQUEST_NULL)
            continue;
        mpi->requests[kept] = mpi->requests[i];
        mpi->under_way[kept++] = mpi->under_way[i];
    }
    mpi->request_count = kept;
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* Messages                                                                                     */

static void keep_failure(struct duet__mpi *mpi, unsigned node, const struct notice *notice);

/* Fails the run: a message could not be sent or received. */
static int fail_here(struct duet__mpi *mpi, int error, const char *format, unsigned number)
{
    struct notice notice = {.error = error};
    int used = snprintf(notice.why, sizeof notice.why, "node %u: ", mpi->node);
    (void)snprintf(notice.why + used, sizeof notice.why - (size_t)used, format, number);
    keep_failure(mpi, mpi->node, &notice);
    mpi->calls->failed(mpi->nodes, error, notice.why);
    return error;
}

static void message_done(struct duet__mpi *mpi, struct duet__message *message, int status)
{
    message->end_s = mpi->calls->now(mpi->core);
    mpi->calls->done(message, status);
}

static void message_sent(struct duet__mpi *mpi, void *what, const MPI_Status *status)
{
    struct duet__message *message = what;
    duet__outbox_gone(mpi->outbox, message);
    message_done(mpi, message, status->MPI_ERROR ? DUET_EIO : DUET_OK);
}

static void message_received(struct duet__mpi *mpi, void *what, const MPI_Status *status)
{
    struct duet__message *message = what;
    MPI_Count bytes;
    int cancelled, error = DUET_OK;
    MPI_Test_cancelled(status, &cancelled);
    MPI_Get_elements_x(status, MPI_BYTE, &bytes);
    if (cancelled) {
        error = DUET_ECANCELED;
    } else if (status->MPI_ERROR || bytes != (MPI_Count)message->bytes) {
        error = fail_here(mpi, DUET_EIO,
                          "what has come from node %u is not what was expected: all processes have "
                          "to submit the same tasks",
                          message->from);
    }
    message_done(mpi, message, error);
}

/* Gives a message to MPI. */
static int post_message(struct duet__mpi *mpi, struct duet__message *message)
{
    struct layout layout;
    int tag = (int)message->tag, error;
    if (!reserve_request(mpi))
        return DUET_ENOMEM;
    if (message->tag > (uint64_t)mpi->most_tag)
        return fail_here(mpi, DUET_EINVAL,
                         "this MPI has tags up to %u, and each duet_own and each sum over nodes "
                         "takes one for ever: own less data, and that again instead of other",
                         (unsigned)mpi->most_tag);
    error = duet__mpi_layout(mpi->calls, message->handle, message->bytes, &layout);
    if (error)
        return error;
    message->start_s = mpi->calls->now(mpi->core);
    if (message->arrives)
        error = MPI_Irecv(layout.address, layout.count, layout.type, (int)message->from, tag,
                          mpi->data, request(mpi));
    else
        error = MPI_Issend(layout.address, layout.count, layout.type, (int)message->to, tag,
                           mpi->data, request(mpi));
    duet__mpi_layout_end(&layout);
    if (error)
        return DUET_EIO;
    add_request(mpi, message->arrives ? message_received : message_sent, message);
    return DUET_OK;
}

static void begin_message(struct duet__mpi *mpi, struct duet__message *message)
{
    int error = mpi->failing ? DUET_ECANCELED : post_message(mpi, message);
    if (!error)
        return;
    if (!message->arrives)
        duet__outbox_gone(mpi->outbox, message);
    message_done(mpi, message, error);
}

/* Takes ready messages, and sends what the outbox lets go. Returns true if any was ready. */
static bool take_messages(struct duet__mpi *mpi, struct duet__message *ready)
{
    bool some = ready != NULL;
    for (struct duet__message *next; ready; ready = next) {
        next = ready->next;
        if (ready->arrives)
            begin_message(mpi, ready);
        else
            duet__outbox_put(mpi->outbox, ready);
    }
    while ((ready = duet__outbox_take(mpi->outbox)))
        begin_message(mpi, ready);
    return some;
}

/* ------------------------------------------------------------------------------------------- */
/* Failures                                                                                     */

/* Wakes the thread, under the lock. */
static void wake_thread(struct duet__mpi *mpi)
{
    mpi->poked = true;
    if (mpi->sleeps)
        pthread_cond_signal(&mpi->wake);
}

/* Keeps the first failure, for the thread to act on. Any thread. */
static void keep_failure(struct duet__mpi *mpi, unsigned node, const struct notice *notice)
{
    pthread_mutex_lock(&mpi->lock);
    if (!mpi->error) {
        mpi->error = notice->error;
        mpi->failed_node = node;
        mpi->notice = *notice;
        wake_thread(mpi);
    }
    pthread_mutex_unlock(&mpi->lock);
}

static void note_answer(struct duet__mpi *mpi, void *asked, const MPI_Status *status)
{
    *(char *)asked = ANSWERED;
}

static void send_notice(struct duet__mpi *mpi, unsigned node, const struct notice *notice)
{
    MPI_Issend(notice, sizeof *notice, MPI_BYTE, (int)node, NOTICE_TAG, mpi->control, request(mpi));
    add_request(mpi, note_answer, &mpi->asked[node]);
}

static void receive_notice(struct duet__mpi *mpi);

static void notice_received(struct duet__mpi *mpi, void *what, const MPI_Status *status)
{
    int cancelled;
    MPI_Test_cancelled(status, &cancelled);
    mpi->listens = false;
    if (cancelled)
        return;
    if (mpi->news.error) /* otherwise it was a question, which is answered by being received */
        keep_failure(mpi, (unsigned)status->MPI_SOURCE, &mpi->news);
    receive_notice(mpi);
}

/* Receives the failure of another node, which may come at any time. */
static void receive_notice(struct duet__mpi *mpi)
{
    MPI_Irecv(&mpi->news, sizeof mpi->news, MPI_BYTE, MPI_ANY_SOURCE, NOTICE_TAG, mpi->control,
              request(mpi));
    add_request(mpi, notice_received, NULL);
    mpi->listens = true;
}

/* Acts on the run's failure: tells the other nodes or the model, and begins to end all messages. */
static void give_up(struct duet__mpi *mpi)
{
    mpi->failing = true;
    if (mpi->failed_node != mpi->node)
        mpi->calls->failed(mpi->nodes, mpi->error, mpi->notice.why);
    pthread_mutex_lock(&mpi->lock);
    mpi->known = true;
    pthread_cond_broadcast(&mpi->changed);
    pthread_mutex_unlock(&mpi->lock);
    bool tells = mpi->failed_node == mpi->node && !mpi->closed; /* else it concerns nobody */
    for (unsigned node = 0; node < mpi->count && tells; node++)
        if (node != mpi->node)
            send_notice(mpi, node, &mpi->notice);
    for (unsigned i = 0; i < mpi->request_count; i++)
        if (mpi->under_way[i].ended == message_received)
            MPI_Cancel(&mpi->requests[i]);
}

/* Receives and discards a message that is no longer expected. Returns true if there was any. */
static bool discard_message(struct duet__mpi *mpi)
{
    MPI_Status status;
    MPI_Count bytes;
    struct layout layout = {0};
    int there = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, mpi->data, &there, &status) || !there)
        return false;
    MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    void *nowhere = malloc(bytes ? (size_t)bytes : 1);
    if (!nowhere || duet__mpi_layout_bytes(nowhere, (size_t)bytes, &layout))
        MPI_Abort(mpi->control, EXIT_FAILURE); /* the senders would wait for ever */
    MPI_Recv(layout.address, layout.count, layout.type, status.MPI_SOURCE, status.MPI_TAG,
             mpi->data, MPI_STATUS_IGNORE);
    duet__mpi_layout_end(&layout);
    free(nowhere);
    return true;
}

/* ------------------------------------------------------------------------------------------- */
/* Meetings                                                                                     */

/* Handles the end of one part of a gathering, sent or received. */
static void part_moved(struct duet__mpi *mpi, void *what, const MPI_Status *status)
{
    pthread_mutex_lock(&mpi->lock);
    if (status->MPI_ERROR && !mpi->meeting.error)
        mpi->meeting.error = DUET_EIO;
    if (!--mpi->meeting.parts)
        mpi->meeting.stage = MET;
    pthread_cond_broadcast(&mpi->changed);
    pthread_mutex_unlock(&mpi->lock);
}

/* Sends or receives one part of a gathering. Aborts without memory: others wait for it. */
static void move_part(struct duet__mpi *mpi, void *bytes, size_t count, unsigned node, bool arrives)
{
    struct layout layout = {0};
    if (duet__mpi_layout_bytes(bytes, count, &layout))
        MPI_Abort(mpi->control, EXIT_FAILURE);
    if (arrives)
        MPI_Irecv(layout.address, layout.count, layout.type, (int)node, GATHER_TAG, mpi->control,
                  request(mpi));
    else
        MPI_Issend(layout.address, layout.count, layout.type, (int)node, GATHER_TAG, mpi->control,
                   request(mpi));
    duet__mpi_layout_end(&layout);
    add_request(mpi, part_moved, NULL);
    mpi->meeting.parts++;
}

/* Ends a meeting: the gathered data goes to node 0, which knows its sizes. There is none if a
   process has closed: because of a failure, which it has told before, or having given up. */
static void end_meeting(struct duet__mpi *mpi, void *what, const MPI_Status *status)
{
    struct meeting *meeting = &mpi->meeting;
    size_t total = 0, at = 0;
    unsigned closed = 0;
    mpi->meets = false;
    for (unsigned node = 0; node < mpi->count; node++)
        closed += meeting->sizes[node] == CLOSED;
    mpi->over = closed == mpi->count;
    pthread_mutex_lock(&mpi->lock);
    meeting->error = status->MPI_ERROR ? DUET_EIO : closed ? DUET_ECANCELED : DUET_OK;
    if (closed && mpi->error)
        meeting->error = mpi->error;
    for (unsigned node = 0; node < mpi->count && !mpi->node && !meeting->error; node++)
        total += meeting->sizes[node];
    free(meeting->all); /* left by a gathering that a failure has ended */
    meeting->all = NULL;
    if (total && !(meeting->all = malloc(total)))
        MPI_Abort(mpi->control, EXIT_FAILURE);
    if (meeting->all && meeting->bytes)
        memcpy(meeting->all, meeting->mine, meeting->bytes);
    for (unsigned node = 1; node < mpi->count && total; node++) {
        at += meeting->sizes[node - 1];
        if (meeting->sizes[node])
            move_part(mpi, meeting->all + at, meeting->sizes[node], node, true);
    }
    if (mpi->node && meeting->bytes && !meeting->error)
        move_part(mpi, meeting->mine, meeting->bytes, 0, false);
    if (!meeting->parts)
        meeting->stage = MET;
    pthread_cond_broadcast(&mpi->changed);
    pthread_mutex_unlock(&mpi->lock);
}

static void begin_meeting(struct duet__mpi *mpi)
{
    struct meeting *meeting = &mpi->meeting;
    if (MPI_Iallgather(&meeting->bytes, 1, MPI_UINT64_T, meeting->sizes, 1, MPI_UINT64_T,
                       mpi->control, request(mpi)))
        MPI_Abort(mpi->control, EXIT_FAILURE);
    add_request(mpi, end_meeting, NULL);
    mpi->meets = true;
}

/* Meets all others, and gathers `bytes` of this node and those of the others at node 0. Blocks the
   application's thread. DUET_ECANCELED: one of them has closed. */
static int meet_others(struct duet__mpi *mpi, const void *mine, size_t bytes)
{
    struct meeting *meeting = &mpi->meeting;
    void *copy = bytes ? malloc(bytes) : NULL;
    if (bytes && !copy)
        return fail_here(mpi, DUET_ENOMEM, "no memory left for %u MiB that it has recorded",
                         (unsigned)(bytes >> 20));
    if (bytes)
        memcpy(copy, mine, bytes);
    pthread_mutex_lock(&mpi->lock);
    const bool enters = !mpi->error;
    if (!enters) {
        free(copy);
    } else {
        free(meeting->mine);
        *meeting = (struct meeting){.stage = WANTED,
                                    .bytes = bytes,
                                    .mine = copy,
                                    .sizes = meeting->sizes};
        wake_thread(mpi);
    }
    while (!mpi->known && !(enters && meeting->stage == MET))
        pthread_cond_wait(&mpi->changed, &mpi->lock);
    /* a later failure is not the result of a meeting, which is the same for all */
    int error = enters && meeting->stage == MET ? meeting->error : mpi->error;
    pthread_mutex_unlock(&mpi->lock);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* The thread                                                                                   */

/* Ends the work after the application has closed: tells so in meetings as soon as no request is
   left here, until all do, also in those that others began and a failure kept this one from. */
static void end_work(struct duet__mpi *mpi)
{
    if (mpi->request_count > (mpi->listens ? 1U : 0U))
        return;
    if (!mpi->over) {
        mpi->closed = true;
        mpi->meeting.bytes = CLOSED;
        begin_meeting(mpi);
    } else if (mpi->listens) {
        MPI_Cancel(&mpi->requests[0]);
    }
}

/* Does one round of work. Returns true if anything moved. */
static bool do_round(struct duet__mpi *mpi)
{
    pthread_mutex_lock(&mpi->lock);
    struct duet__message *ready = mpi->ready;
    bool failed = mpi->error && !mpi->failing, wanted = mpi->meeting.stage == WANTED;
    bool closing = mpi->closing;
    mpi->ready = NULL;
    mpi->ready_end = &mpi->ready;
    mpi->poked = false;
    if (wanted)
        mpi->meeting.stage = BEGUN;
    pthread_mutex_unlock(&mpi->lock);
    if (failed)
        give_up(mpi);
    if (wanted)
        begin_meeting(mpi);
    bool moved = take_messages(mpi, ready);
    moved |= test_requests(mpi);
    if (mpi->failing || closing)
        moved |= discard_message(mpi);
    if (closing)
        end_work(mpi);
    return moved || failed || wanted;
}

/* Asks every ANSWER_S seconds whether nodes are there: node 0 asks the others, and node 1 asks node
   0. A node that has not answered by the next question is named on standard error. */
static void ask_nodes(struct duet__mpi *mpi, double now)
{
    static const struct notice question;
    if (mpi->node > 1 || mpi->closed || now - mpi->asked_s < ANSWER_S || !reserve_request(mpi))
        return;
    mpi->asked_s = now;
    for (unsigned node = !mpi->node; node < (mpi->node ? 1 : mpi->count); node++) {
        if (mpi->asked[node] == ANSWERED)
            send_notice(mpi, node, &question);
        else if (mpi->asked[node] == ASKED)
            (void)dprintf(STDERR_FILENO,
                          "duet: node %u has not answered for %g s: its process is stopped or kept "
                          "from running, or its machine is not there\n",
                          node, ANSWER_S);
        mpi->asked[node] = mpi->asked[node] == ANSWERED ? ASKED : MISSED;
    }
}

/* Pauses between rounds in which nothing moves. */
static void rest_thread(struct duet__mpi *mpi)
{
    bool active = mpi->request_count > mpi->listens || mpi->failing;
    double now = seconds();
    ask_nodes(mpi, now);
    double sleep = active ? duet__rest_s(now - mpi->moved_s) : IDLE_S;
    if (sleep <= 0) {
        sched_yield();
        return;
    }
    double until = now + sleep;
    const struct timespec date = {.tv_sec = (time_t)until,
                                  .tv_nsec = (long)((until - (double)(time_t)until) * 1e9)};
    pthread_mutex_lock(&mpi->lock);
    mpi->sleeps = true;
    if (!mpi->poked)
        pthread_cond_timedwait(&mpi->wake, &mpi->lock, &date);
    mpi->sleeps = false;
    pthread_mutex_unlock(&mpi->lock);
}

static void *run_thread(void *arg)
{
    struct duet__mpi *mpi = arg;
    (void)prctl(PR_SET_NAME, "duet-mpi");
    (void)prctl(PR_SET_TIMERSLACK, 1000UL); /* nanoseconds: short sleeps are intended */
    receive_notice(mpi);
    mpi->moved_s = mpi->asked_s = seconds();
    while (!mpi->over || mpi->request_count)
        if (do_round(mpi))
            mpi->moved_s = seconds();
        else
            rest_thread(mpi);
    return NULL;
}

void duet__mpi_start(struct duet__mpi *mpi, struct duet_runtime *core, struct duet__nodes *nodes,
                     const struct duet__mpi_calls *calls)
{
    sigset_t all, before;
    mpi->core = core;
    mpi->nodes = nodes;
    mpi->calls = calls;
    duet__mpi_compare_clocks(mpi);
    sigfillset(&all); /* signals belong to the application */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    mpi->started = reserve_request(mpi) && !pthread_create(&mpi->thread, NULL, run_thread, mpi);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!mpi->started)
        MPI_Abort(mpi->control, EXIT_FAILURE);
}

/* ------------------------------------------------------------------------------------------- */
/* Functions of the transport */

static void message_ready(void *transport, struct duet__message *message)
{
    struct duet__mpi *mpi = transport;
    message->next = NULL;
    pthread_mutex_lock(&mpi->lock);
    *mpi->ready_end = message;
    mpi->ready_end = &message->next;
    wake_thread(mpi);
    pthread_mutex_unlock(&mpi->lock);
}

static void report_failure(void *transport, unsigned node, int error, const char *why)
{
    struct duet__mpi *mpi = transport;
    struct notice notice = {.error = error};
    (void)snprintf(notice.why, sizeof notice.why, "%s", why);
    keep_failure(mpi, node, &notice);
}

static int meet_empty(void *transport)
{
    return meet_others(transport, NULL, 0);
}

static int gather_all(void *transport, const void *mine, size_t bytes, void **all, size_t *sizes)
{
    struct duet__mpi *mpi = transport;
    int error = meet_others(mpi, mine, bytes);
    *all = NULL;
    if (error)
        return error;
    for (unsigned node = 0; node < mpi->count; node++)
        sizes[node] = mpi->meeting.sizes[node];
    *all = mpi->meeting.all;
    mpi->meeting.all = NULL;
    return DUET_OK;
}

static double clock_lead(void *transport)
{
    const struct duet__mpi *mpi = transport;
    return mpi->ahead_s;
}

static void close_all(void *transport)
{
    struct duet__mpi *mpi = transport;
    if (mpi->started) {
        pthread_mutex_lock(&mpi->lock);
        mpi->closing = true;
        wake_thread(mpi);
        pthread_mutex_unlock(&mpi->lock);
        pthread_join(mpi->thread, NULL);
    }
    duet__mpi_leave(mpi);
}

const struct duet__transport *duet__mpi_transport(void)
{
    static const struct duet__transport slots = {
        .ready = message_ready,
        .fail = report_failure,
        .barrier = meet_empty,
        .gather = gather_all,
        .ahead = clock_lead,
        .close = close_all,
    };
    return &slots;
}
