/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a progress bar on standard error. */
#include "runs/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

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
