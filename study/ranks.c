/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of rank 0 with the other ranks. */
#include "study/study.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

enum { ADDRESSES = 16, TOKEN = DUET__TOKEN };

/* The place where rank 0 listens, and the token by which it knows its own ranks. */
struct meeting {
    struct in_addr addresses[ADDRESSES]; /* this machine's own are last */
    unsigned count;
    in_port_t port;
    char token[TOKEN];
};

/* The first message of a rank. Rank 0 answers with the token. */
struct hello {
    char token[TOKEN];
    unsigned rank;
    struct duet_message trouble; /* why the rank can do nothing; "": it can */
};

/*
 * Sets up a connection: small messages are sent at once, and another side that is gone is noticed
 * in a minute or two. A side that is silent for `patience_s` in the midst of a message is as good
 * as gone (0: it is not).
 */
static void set_up(int file, int patience_s)
{
    static const int options[][3] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                                     {SOL_SOCKET, SO_KEEPALIVE, 1},
                                     {IPPROTO_TCP, TCP_KEEPIDLE, 30},
                                     {IPPROTO_TCP, TCP_KEEPINTVL, 10},
                                     {IPPROTO_TCP, TCP_USER_TIMEOUT, 60000}};
    const struct timeval patience = {.tv_sec = patience_s};
    for (size_t i = 0; i < G_N_ELEMENTS(options); i++)
        (void)setsockopt(file, options[i][0], options[i][1], &options[i][2], sizeof(int));
    (void)setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
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

int duet__ranks_meet(struct duet__ranks *ranks, struct duet_message *message)
{
    struct meeting where = {.count = 0};
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t size = sizeof any;
    g_autofree char *token = g_uuid_string_random();
    struct rlimit files;
    bool good;
    int error;
    signal(SIGPIPE, SIG_IGN); /* a rank that is gone is found where its answer is waited for */
    ranks->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    good = !bind(ranks->listening, (struct sockaddr *)&any, size) &&
           !listen(ranks->listening, SOMAXCONN) &&
           !getsockname(ranks->listening, (struct sockaddr *)&any, &size);
    if (!getrlimit(RLIMIT_NOFILE, &files)) { /* a connection for each worker */
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    find_addresses(&where);
    where.port = any.sin_port;
    memcpy(where.token, token, TOKEN);
    memcpy(ranks->token, token, TOKEN);
    error = duet__mpi_share(ranks->count, &where, sizeof where, &ranks->near, message);
    return error || good ? error : duet_fail(message, DUET_EIO, "cannot listen for other ranks");
}

void duet__ranks_admit(struct duet__ranks *ranks, struct duet__executor *executor)
{
    struct hello hello;
    for (int file; (file = accept(ranks->listening, NULL, NULL)) >= 0;) {
        (void)fcntl(file, F_SETFD, FD_CLOEXEC);
        set_up(file, 30);
        if (duet__receive(file, &hello, sizeof hello) &&
            !memcmp(hello.token, ranks->token, TOKEN) && duet__send(file, hello.token, TOKEN)) {
            if (!*hello.trouble.text) {
                duet__executor_add(executor, file);
                continue;
            }
            duet_fail(&ranks->trouble, DUET_ECANCELED, "rank %u: %.400s", hello.rank,
                      hello.trouble.text);
        }
        close(file);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* The other ranks                                                                              */

/* Connects by the first address at which rank 0 answers. Returns -1 if it is nowhere any more. */
static int connect_with(const struct meeting *where, const struct hello *hello)
{
    enum { PATIENCE_S = 300 }; /* covers the time in which rank 0 checks things itself */
    for (unsigned i = 0; i < where->count; i++) {
        const struct sockaddr_in address = {.sin_family = AF_INET,
                                            .sin_port = where->port,
                                            .sin_addr = where->addresses[i]};
        int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char token[TOKEN];
        set_up(file, PATIENCE_S);
        if (!connect(file, (const void *)&address, sizeof address) &&
            duet__send(file, hello, sizeof *hello) && duet__receive(file, token, TOKEN) &&
            !memcmp(token, where->token, TOKEN)) {
            set_up(file, 0);
            return file;
        }
        close(file);
    }
    return -1;
}

void duet__ranks_serve(const struct duet__plan *plan, const struct duet_message *trouble)
{
    struct duet__ranks *ranks = plan->ranks;
    struct hello hello = {.rank = ranks->rank, .trouble = *trouble};
    struct meeting where = {.count = 0};
    const pid_t own = getpid();
    pid_t ended;
    unsigned missing;
    int status;
    if (duet__mpi_share(ranks->count, &where, sizeof where, &ranks->near, NULL))
        return; /* rank 0 prints the trouble */
    memcpy(hello.token, where.token, TOKEN);
    missing = *trouble->text ? 1 : duet__plan_jobs(plan);
    do {
        for (; missing; missing--)
            if (!fork()) {
                int file = connect_with(&where, &hello);
                if (file >= 0 && !*trouble->text)
                    duet__executor_serve(file, own, plan->execute, plan->data, NULL);
                _exit(EXIT_SUCCESS); /* rank 0 has ended */
            }
        ended = wait(&status);
        missing = ended > 0 && status != 0; /* the worker has died */
    } while (ended > 0);
}
