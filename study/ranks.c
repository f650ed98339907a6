/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of rank 0 with the other ranks. */
#include "study/ranks.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <glib.h>

enum { ADDRESSES = 16, TOKEN = 37 /* of a UUID */ };

/* Where rank 0 is, and by what it knows its own. */
struct meeting {
    struct in_addr addresses[ADDRESSES]; /* those of this machine alone are last */
    unsigned count;
    in_port_t port;
    char token[TOKEN];
};

/* The first that a rank says. Rank 0 answers with the token. */
struct hello {
    char token[TOKEN];
    unsigned rank, jobs;
    struct duet_message trouble; /* why it can do nothing; "": it can */
};

/*
 * Small messages are sent at once, an other side that is gone is noticed in a minute, and one that
 * does not go on within a message is as good as gone.
 */
static void set_up(int file, int send_s, int receive_s)
{
    const struct timeval sending = {.tv_sec = send_s}, receiving = {.tv_sec = receive_s};
    const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 30}, {IPPROTO_TCP, TCP_KEEPINTVL, 10},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},   {IPPROTO_TCP, TCP_USER_TIMEOUT, 60000},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(options); i++)
        (void)setsockopt(file, options[i].level, options[i].name, &options[i].value,
                         sizeof options[i].value);
    (void)setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &sending, sizeof sending);
    (void)setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &receiving, sizeof receiving);
}

/* ------------------------------------------------------------------------------------------- */
/* Rank 0                                                                                       */

static void find_addresses(struct meeting *where)
{
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all))
        return;
    for (unsigned local = 0; local < 2; local++)
        for (const struct ifaddrs *at = all; at && where->count < ADDRESSES; at = at->ifa_next) {
            const struct sockaddr_in *address = (const void *)at->ifa_addr;

            if (address && address->sin_family == AF_INET && at->ifa_flags & IFF_UP &&
                !(at->ifa_flags & IFF_LOOPBACK) == !local)
                where->addresses[where->count++] = address->sin_addr;
        }
    freeifaddrs(all);
}

/* -1: it cannot. */
static int listen_for(struct duet__ranks *ranks, struct meeting *where)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t size = sizeof any;
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct rlimit files;

    if (file < 0 || bind(file, (struct sockaddr *)&any, size) || listen(file, (int)ranks->count) ||
        getsockname(file, (struct sockaddr *)&any, &size)) {
        if (file >= 0)
            close(file);
        return -1;
    }
    find_addresses(where);
    where->port = any.sin_port;
    ranks->token = g_uuid_string_random();
    memcpy(where->token, ranks->token, TOKEN);
    if (!getrlimit(RLIMIT_NOFILE, &files)) { /* a connection for each */
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    return file;
}

int duet__ranks_meet(struct duet__ranks *ranks, struct duet_message *message)
{
    struct meeting where = {.count = 0};
    int error;

    ranks->listening = listen_for(ranks, &where);
    error = duet__mpi_share(ranks->count, &where, sizeof where, &ranks->near, message);
    if (!error && ranks->listening < 0)
        error = duet_fail(message, DUET_EIO, "cannot listen for other ranks");
    return error;
}

void duet__ranks_admit(struct duet__ranks *ranks, struct duet__pool *pool)
{
    int file = accept(ranks->listening, NULL, NULL);
    struct hello hello;

    if (file < 0)
        return;
    (void)fcntl(file, F_SETFD, FD_CLOEXEC);
    set_up(file, 30, 30);
    if (!duet__receive(file, &hello, sizeof hello) ||
        memcmp(hello.token, ranks->token, TOKEN) != 0 || !duet__send(file, hello.token, TOKEN)) {
        close(file); /* somebody else */
    } else if (*hello.trouble.text) {
        ranks->lost++;
        duet_fail(&ranks->trouble, DUET_ECANCELED, "rank %u: %.400s", hello.rank,
                  hello.trouble.text);
        close(file);
    } else {
        duet__pool_add(pool, file, hello.jobs);
    }
}

void duet__ranks_leave(struct duet__ranks *ranks)
{
    if (ranks->listening > 0)
        close(ranks->listening);
    ranks->listening = 0;
    g_clear_pointer(&ranks->token, g_free);
}

/* ------------------------------------------------------------------------------------------- */
/* The others                                                                                   */

/* By the first address at which rank 0 answers. -1: it is nowhere any more. */
static int connect_with(const struct meeting *where, const struct hello *hello)
{
    enum { CONNECT_S = 10, ANSWER_S = 300 /* its own checks come first */ };

    for (unsigned i = 0; i < where->count; i++) {
        const struct sockaddr_in address = {.sin_family = AF_INET,
                                            .sin_port = where->port,
                                            .sin_addr = where->addresses[i]};
        int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char token[TOKEN];

        if (file < 0)
            break;
        set_up(file, CONNECT_S, ANSWER_S);
        if (!connect(file, (const void *)&address, sizeof address) &&
            duet__send(file, hello, sizeof *hello) && duet__receive(file, token, TOKEN) &&
            !memcmp(token, where->token, TOKEN))
            return file;
        close(file);
    }
    return -1;
}

/* Until rank 0 has ended, which is what it ends with. */
static void attend(struct duet__pool *pool, int file)
{
    struct pollfd rank_0 = {.fd = file, .events = POLLIN};
    struct duet__work work;
    bool on = true;

    duet__pool_watch(pool, file);
    while (on) {
        struct duet__done done = {.rows = NULL};
        int got = duet__pool_take(pool, -1, &done, NULL);

        on = got >= 0;
        if (got > 0)
            on = duet__answer(file, &done.work, done.rows);
        g_free(done.rows);
        if (on && poll(&rank_0, 1, 0) > 0) {
            on = duet__receive(file, &work, sizeof work) && duet__pool_idle(pool);
            if (on)
                duet__pool_give(pool, &work);
        }
    }
}

void duet__ranks_serve(const struct duet__plan *plan, const struct duet_message *trouble)
{
    struct duet__ranks *ranks = plan->ranks;
    struct hello hello = {.rank = ranks->rank, .trouble = *trouble};
    struct meeting where = {.count = 0};
    struct duet__pool *pool = NULL;
    int file;

    if (duet__mpi_share(ranks->count, &where, sizeof where, &ranks->near, NULL))
        return; /* rank 0 says so */
    hello.jobs = duet__plan_jobs(plan);
    memcpy(hello.token, where.token, TOKEN);
    if (!*trouble->text)
        pool = duet__pool_new(hello.jobs, plan->work, plan->data, &hello.trouble);
    file = connect_with(&where, &hello);
    if (file >= 0 && pool)
        attend(pool, file);
    duet__pool_free(pool);
    if (file >= 0)
        close(file);
}
