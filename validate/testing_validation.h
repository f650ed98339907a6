/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up comparisons for tests of the writers: any number of cases, with accounts, recordings. */
#ifndef DUET_TESTING_VALIDATION_H
#define DUET_TESTING_VALIDATION_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "report/testing_report.h"
#include "validate/validation.h"

enum { TESTING_RUNS = 5, TESTING_WORKERS = 5, TESTING_KERNELS = 6 };

/* Names that a writer has to escape, or to quote. */
#define TESTING_WORKLOAD "lu <b>&\"x\""
#define TESTING_POLICY "a,\"b\"</script>"

/* Runs of each round, of a side made in rounds. */
static const size_t testing_rounds[] = {2, 1, 2};
_Static_assert(TESTING_RUNS == 5, "the rounds have all runs");

/* One case and what it borrows. */
struct testing_case {
    double makespans[2][TESTING_RUNS];
    struct duet__account accounts[2];
    struct duet__account_kernel kernels[2][TESTING_KERNELS];
};

struct testing_validation {
    struct sample sample; /* the recordings */
    struct testing_case *rooms;
    struct duet__case *cases;
    struct duet__validation validation;
};

/* Returns a factor near 1, the same in every run of the test. */
static inline double testing_factor(GRand *random, double spread)
{
    return 1 + spread * g_rand_double_range(random, -1, 1);
}

/* Makes an account: kernels take `busy` of the workers' time, the rest is shared out. */
static inline void testing_account(struct testing_case *room, int side, double makespan_s,
                                   GRand *random)
{
    static const char *const names[] = {"dgemm", "dtrsm", "dpotrf"};
    static const double shares[] = {0.8, 0.15, 0.05};
    struct duet__account *account = &room->accounts[side];
    double whole = TESTING_WORKERS * makespan_s, left = whole;
    *account = (struct duet__account){.workers = TESTING_WORKERS,
                                      .makespan_s = makespan_s,
                                      .kernels = room->kernels[side],
                                      .kernel_count = TESTING_KERNELS};
    for (unsigned i = 0; i < TESTING_KERNELS; i++) {
        struct duet__account_kernel *kernel = &room->kernels[side][i];
        g_strlcpy(kernel->name, names[i % 3], sizeof kernel->name);
        g_strlcpy(kernel->arch, i < 3 ? "x5650" : "c2050", sizeof kernel->arch);
        kernel->count = floor(100 * shares[i % 3] * (i < 3 ? 1 : 4) * testing_factor(random, 0.1));
        kernel->seconds = 0.4 * whole * shares[i % 3] * testing_factor(random, 0.1);
        account->states_s[DUET_STATE_KERNEL] += kernel->seconds;
    }
    left -= account->states_s[DUET_STATE_KERNEL];
    for (int state = DUET_STATE_TO_DEVICE; state < DUET_STATE_ELSEWHERE; state += 2) {
        account->states_s[state] = left * g_rand_double_range(random, 0.05, 0.2);
        left -= account->states_s[state];
    }
    account->states_s[DUET_STATE_ELSEWHERE] = left;
}

static inline void testing_side(struct testing_case *room, int side, double about_s, GRand *random,
                                struct duet__side *out)
{
    double *makespans = room->makespans[side];
    for (int run = 0; run < TESTING_RUNS; run++)
        makespans[run] = about_s * testing_factor(random, 0.01);
    testing_account(room, side, about_s, random);
    *out = (struct duet__side){.makespans_s = makespans,
                               .count = TESTING_RUNS,
                               .account = &room->accounts[side]};
}

static inline void testing_fill(struct testing_validation *the, size_t index, GRand *random)
{
    static const char *const workloads[] = {"cholesky", TESTING_WORKLOAD, "gemm", "qr"};
    static const char *const policies[] = {"ws", "heft", TESTING_POLICY, "locality-aware"};
    struct testing_case *room = &the->rooms[index];
    size_t size = index / 16;
    double about_s = 2e-3 * pow(2.2, (double)(size % 8)) * (1 + 0.3 * (double)(index % 4));
    the->cases[index] = (struct duet__case){.workload = workloads[index / 4 % 4],
                                            .settings = index / 4 % 4 == 1 ? "variant=left" : "",
                                            .platform = "vm",
                                            .policy = policies[index % 4],
                                            .priorities = "workload",
                                            .n = 512 * (size + 1),
                                            .tile = 128,
                                            .precision = 'd',
                                            .cpus = 4,
                                            .gpus = 1,
                                            .speed = 0.98};
    testing_side(room, 0, about_s * testing_factor(random, 0.06), random,
                 &the->cases[index].predicted);
    testing_side(room, 1, about_s, random, &the->cases[index].measured);
    if (index % 2) {
        the->cases[index].measured.rounds = testing_rounds;
        the->cases[index].measured.round_count = G_N_ELEMENTS(testing_rounds);
    }
    the->cases[index].predicted.recording = &the->sample.recordings[index % 3];
    the->cases[index].measured.recording = &the->sample.recordings[(index + 1) % 3];
}

/* Makes `count` cases with `tasks` in each recording. Case 7 has failed. */
static inline void testing_init(struct testing_validation *the, size_t count, unsigned tasks)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    sample_init(&the->sample, 4, 1, tasks);
    the->rooms = g_new0(struct testing_case, count);
    the->cases = g_new0(struct duet__case, count);
    for (size_t i = 0; i < count; i++)
        testing_fill(the, i, random);
    if (count > 7) {
        the->cases[7].predicted = (struct duet__side){0};
        the->cases[7].failure = "cannot be predicted: no times of kernel <dgeqrt> & \"dtpqrt\"";
    }
    the->validation = (struct duet__validation){.command = "duet validate '</script><b>' --n 512",
                                                .title = "cholesky, lu, gemm and qr on vm",
                                                .first_name = "predicted",
                                                .second_name = "measured",
                                                .machine = "vm: 4 cores <of> a & b, 1 GPU",
                                                .calibration = "of 2026-11-20, 4 workloads",
                                                .date = "2026-11-21 20:00 UTC",
                                                .cases = the->cases,
                                                .case_count = count,
                                                .fail_over = 0.1};
}

static inline void testing_fini(struct testing_validation *the)
{
    g_free(the->cases);
    g_free(the->rooms);
    sample_fini(&the->sample);
}

#endif
