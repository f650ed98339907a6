/* SPDX-License-Identifier: Apache-2.0 */
/* The thread beside runs: progress, signals. */
#define _GNU_SOURCE /* sigdescr_np, on_exit */
#include "runs/monitor.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <duet/trace.h>

#include "base/clock.h"

enum {
    TOLD_LOOKS = 5,
    POLICY_LOOKS = 10,
    KERNEL_LOOKS = 30,
    IDLE_LOOKS = 60,
    SLOW_LOOKS = 100
}; /* a tenth of a second apart */

/* Signals that end a process, then that of the end of a child. */
static const int held[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};

/* The first signal taken, 0: none; the process that sent it, 0: unknown; whether its echo came. */
static atomic_int first, sender;
static atomic_bool echoed;

/* Returns whether a signal is the first one's echo: timeout(1) sends its signal to its child and
 * then to its group, so that it comes twice. */
static bool is_echo(int number, const siginfo_t *info)
{
    return info->si_pid && number == atomic_load(&first) && info->si_pid == atomic_load(&sender) &&
           !atomic_exchange(&echoed, true);
}

/* Ends a process that reports after its first signal. */
static void end_late(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (is_echo(number, info))
        return;
    signal(number, SIG_DFL);
    raise(number);
}

/*
 * A signal for the process goes to any thread that does not block it, and libraries have threads
 * that were there before us. There it is handed on, and blocked from then on.
 */
static void hand_on(int number, siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;
    int error = errno;
    sigaddset(&interrupted->uc_sigmask, number);
    info->si_code = SI_QUEUE; /* Linux lets only a process's first thread send others */
    if (syscall(SYS_rt_sigqueueinfo, getpid(), number, info)) /* kill() would be another sender */
        kill(getpid(), number);
    errno = error;
}

void duet__signals_hold(struct duet__signals *signals, bool children)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
    action.sa_sigaction = hand_on;
    sigemptyset(&action.sa_mask);
    sigemptyset(&signals->watched);
    for (size_t i = 0; i < G_N_ELEMENTS(held); i++) {
        bool child = held[i] == SIGCHLD;
        if (sigaction(held[i], NULL, &signals->actions[i]) == 0 &&
            (child ? children : signals->actions[i].sa_handler != SIG_IGN))
            sigaddset(&signals->watched, held[i]);
    }
    pthread_sigmask(SIG_BLOCK, &signals->watched, &signals->mask);
    for (size_t i = 0; i < G_N_ELEMENTS(held); i++)
        if (sigismember(&signals->watched, held[i]))
            sigaction(held[i], &action, NULL);
}

int duet__signals_take(const struct duet__signals *signals, double seconds)
{
    const struct timespec pause = {.tv_nsec = (long)(seconds * 1e9)};
    siginfo_t info;
    int number = sigtimedwait(&signals->watched, &info, &pause);
    if (number <= 0 || number == SIGCHLD || is_echo(number, &info))
        return 0;
    if (!atomic_load(&first)) {
        atomic_store(&sender, info.si_pid);
        atomic_store(&first, number);
    }
    return number;
}

void duet__signals_release(struct duet__signals *signals)
{
    const struct sigaction late = {.sa_sigaction = end_late,
                                   .sa_flags = (int)(SA_SIGINFO | SA_RESTART)};
    const bool taken = atomic_load(&first) != 0;
    for (size_t i = 0; i < G_N_ELEMENTS(held); i++)
        if (sigismember(&signals->watched, held[i]))
            sigaction(held[i], taken && held[i] != SIGCHLD ? &late : &signals->actions[i], NULL);
    pthread_sigmask(SIG_SETMASK, &signals->mask, NULL);
}

/* Takes the runtime out, or gives NULL where it is not there. */
static struct duet_runtime *borrow(struct duet__monitor *monitor)
{
    return atomic_exchange(&monitor->runtime, NULL);
}

static void draw(struct duet__monitor *monitor)
{
    uint64_t runs = atomic_load(&monitor->finished_runs), done = 0;
    struct duet_runtime *runtime = borrow(monitor);
    if (runtime) {
        uint64_t before = atomic_load(&monitor->before); /* first, as it follows what is done */
        done = duet_tasks_done(runtime);
        done = done > before ? done - before : 0; /* a count made meanwhile may be missing */
        atomic_store(&monitor->runtime, runtime);
    }
    /* tasks that others submit while they run are not counted among those of the run */
    done = runs * monitor->tasks + MIN(done, monitor->tasks);
    duet__progress_draw(&monitor->progress, done, runs);
}

/* Ends the process by the signal, as if nobody had attended to it. */
static void die(struct duet__monitor *monitor, int number)
{
    sigset_t one;
    duet__progress_clear(&monitor->progress);
    signal(number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(number);
}

static void give_up(struct duet__monitor *monitor, int number)
{
    struct duet_runtime *runtime;
    if (monitor->signalled)
        die(monitor, number);
    monitor->signalled = true;
    atomic_store(&monitor->number, number);
    runtime = borrow(monitor);
    if (runtime) {
        duet_cancel(runtime);
        atomic_store(&monitor->runtime, runtime);
    }
}

/*
 * After a signal the run ends when its kernels have ended, which a policy, a kernel or a library
 * that does not return would prevent. The process ends therefore when nothing has begun or ended
 * for three seconds while a worker is busy, or for one second where a worker is in the policy. Of
 * several processes, one whose workers are idle waits six seconds for the others. A process of
 * several says after half a second that it waits, as mpirun may end it before.
 */
static void end_if_stuck(struct duet__monitor *monitor)
{
    struct duet_runtime *runtime = borrow(monitor);
    uint64_t steps = 0;
    int worker = runtime ? duet_worker_scheduling(runtime, &steps) : DUET_NO_WORKER;
    const bool in_policy = worker != DUET_NO_WORKER, opening = atomic_load(&monitor->opening) != 0;
    const unsigned node = atomic_load(&monitor->node);
    char who[24] = "";
    /* if all workers are idle, the application fills data, or other processes compute */
    const bool idle = !steps && !opening;
    if ((idle && !node) || worker != monitor->stuck_worker || steps != monitor->stuck_steps)
        monitor->stuck_looks = 0;
    monitor->stuck_worker = worker;
    monitor->stuck_steps = steps;
    if (++monitor->stuck_looks > (in_policy ? POLICY_LOOKS : idle ? IDLE_LOOKS : KERNEL_LOOKS)) {
        duet__progress_clear(&monitor->progress);
        if (node)
            (void)g_snprintf(who, sizeof who, "node %u: ", node - 1);
        /* a process whose lines are not shown prints this, too */
        dprintf(STDERR_FILENO, "duet: %s%s%s: the run ends without a report of what was finished\n",
                who,
                in_policy ? "the scheduling policy does not return on "
                : opening ? "the runtime has not opened for 3 s (it calls the scheduling policy)"
                : idle    ? "other processes have ended nothing for 6 s"
                          : "nothing has begun or ended for 3 s",
                in_policy ? duet_runtime_machine(runtime)->workers[worker].name : "");
        die(monitor, atomic_load(&monitor->number));
    }
    if (node && !monitor->told && monitor->stuck_looks == TOLD_LOOKS) {
        fprintf(stderr, "duet: node %u: interrupted, waits for what runs to end\n", node - 1);
        monitor->told = true;
    }
    if (runtime)
        atomic_store(&monitor->runtime, runtime);
}

static void *attend(void *argument)
{
    double pause_s = 1e-3; /* short runs do not wait for this thread */
    struct duet__monitor *monitor = argument;
    while (!atomic_load(&monitor->over)) {
        int number = duet__signals_take(&monitor->signals, pause_s);
        unsigned opening = atomic_load(&monitor->opening);
        pause_s = fmin(2 * pause_s, 0.1);
        if (number)
            give_up(monitor, number);
        else
            draw(monitor);
        if (atomic_load(&monitor->number))
            end_if_stuck(monitor);
        else if (opening &&
                 atomic_compare_exchange_strong(&monitor->opening, &opening, opening + 1) &&
                 opening == SLOW_LOOKS)
            fprintf(stderr, "duet: the runtime has not opened for 10 s: does the scheduling policy "
                            "return from its first calls?\n");
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------- */
/* Crashes: a policy or a library can end the process, which is said in a line                  */

/* The policy at work, while a monitor runs; NULL: none. */
static _Atomic(const char *) at_work;

static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

/* Allocates nothing, as printf may: a crash inside of malloc() holds its lock. */
static void tell_crash(int number)
{
    const char *policy = atomic_exchange(&at_work, NULL);
    const char digits[] = {number < 10 ? ' ' : (char)('0' + number / 10), (char)('0' + number % 10),
                           '\0'};
    const char *const parts[] =
        {"duet: the run of ", policy, " failed: killed by signal ", digits + (number < 10), " (",
         sigdescr_np(number), ")\n"};
    char line[PATH_MAX + 100];
    size_t length = 0;
    for (size_t i = 0; policy && i < G_N_ELEMENTS(parts); i++)
        length += g_strlcpy(line + length, parts[i], sizeof line - length);
    if (length < sizeof line)
        (void)!write(STDERR_FILENO, line, length);
    raise(number); /* as if nobody had attended to it: SA_RESETHAND */
}

static void tell_exit(int status, void *unused)
{
    const char *policy = atomic_exchange(&at_work, NULL);
    (void)unused;
    if (!policy)
        return;
    dprintf(STDERR_FILENO, "duet: the run of %s failed: something in it called exit(%d)\n", policy,
            status);
    _exit(EXIT_FAILURE);
}

/* Attends to crashes, but for those that others attend to. */
static void expect_crashes(void)
{
    const struct sigaction action = {.sa_handler = tell_crash, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;
    for (size_t i = 0; i < G_N_ELEMENTS(fatal); i++)
        if (!sigaction(fatal[i], NULL, &before) && before.sa_handler == SIG_DFL)
            sigaction(fatal[i], &action, NULL);
    (void)on_exit(tell_exit, NULL);
}

/* ------------------------------------------------------------------------------------------- */

void duet__monitor_start(struct duet__monitor *monitor, bool bar, uint64_t tasks, uint64_t runs)
{
    duet__progress_init(&monitor->progress, bar, tasks * runs, runs);
    monitor->tasks = tasks;
    duet__signals_hold(&monitor->signals, false);
    expect_crashes();
    monitor->thread = g_thread_new("monitor", attend, monitor);
}

void duet__monitor_stop(struct duet__monitor *monitor)
{
    atomic_store(&at_work, NULL);
    atomic_store(&monitor->over, true);
    g_thread_join(monitor->thread);
    duet__progress_clear(&monitor->progress);
    if (!atomic_load(&monitor->number) || monitor->signalled)
        duet__signals_release(&monitor->signals);
}

void duet__monitor_open(struct duet__monitor *monitor, const char *policy)
{
    atomic_store(&at_work, policy);
    atomic_store(&monitor->opening, policy != NULL);
}

void duet__monitor_watch(struct duet__monitor *monitor, struct duet_runtime *runtime)
{
    atomic_store(&monitor->before, 0);
    atomic_store(&monitor->node, duet_node_count(runtime) > 1 ? duet_node(runtime) + 1 : 0);
    atomic_store(&monitor->runtime, runtime);
    atomic_store(&monitor->opening, 0);
    /* a signal that came before had no runtime to cancel */
    if (atomic_load(&monitor->number))
        duet_cancel(runtime);
}

void duet__monitor_leave(struct duet__monitor *monitor)
{
    while (!borrow(monitor))
        g_usleep(100); /* the monitor has it for a moment */
}

void duet__monitor_count(struct duet__monitor *monitor, const struct duet_runtime *runtime)
{
    if (runtime)
        atomic_store(&monitor->before, duet_tasks_done(runtime));
    atomic_fetch_add(&monitor->finished_runs, 1);
}

void duet__monitor_adopt(struct duet__monitor *monitor, int number)
{
    atomic_store(&monitor->number, number);
}

int duet__monitor_signal(struct duet__monitor *monitor)
{
    return atomic_load(&monitor->number);
}

/* ------------------------------------------------------------------------------------------- */
/* The progress bar on standard error                                                            */

void duet__progress_init(struct duet__progress *progress, bool wanted, uint64_t total,
                         uint64_t run_count)
{
    *progress = (struct duet__progress){
        .shown = wanted && isatty(STDERR_FILENO),
        .total = total ? total : 1,
        .run_count = run_count,
        .start_s = duet__clock_s(),
    };
}

static void put_bar(struct duet__progress *progress, double share)
{
    static const char full[] = "##############################";
    static const char empty[] = "..............................";
    const int width = sizeof full - 1;
    int done;
    share = share > 1 ? 1 : share;
    done = (int)(share * width);
    fprintf(stderr, "\r[%.*s%.*s] %3.0f %%  ", done, full, width - done, empty, share * 100);
    progress->drawn = true;
}

void duet__progress_draw(struct duet__progress *progress, uint64_t done, uint64_t runs)
{
    double elapsed = duet__clock_s() - progress->start_s;
    done += progress->before_tasks;
    runs += progress->before_runs;
    /* runs that are over at once need no bar */
    if (!progress->shown || elapsed < 0.3)
        return;
    put_bar(progress, (double)done / (double)progress->total);
    fprintf(stderr, "run %" PRIu64 "/%" PRIu64 "  %.0f tasks/s\033[K",
            runs < progress->run_count ? runs + 1 : runs, progress->run_count,
            (double)done / elapsed);
    fflush(stderr);
}

void duet__progress_say(struct duet__progress *progress, double share, const char *what)
{
    if (!progress->shown)
        return;
    put_bar(progress, share);
    fprintf(stderr, "%s\033[K", what);
    fflush(stderr);
}

void duet__progress_clear(struct duet__progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}
