/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and their copies; records that are moved, scaled and freed; runs that failed. */
#include <string.h>

#include <glib.h>

#include "runs/request.h"
#include "runs/run.h"

/* A copy is there when its original is gone. */
static void test_copy(void)
{
    struct duet_request first, second;
    const char *names[] = {"ws", "heft", NULL};
    const char *params[] = {"variant=left", "potrf=any", NULL};
    duet_request_init(&first);
    g_assert_cmpint(duet_request_set_params(&first, (char **)(void *)params, NULL), ==, 0);
    first.policies = g_strdupv((char **)(void *)names);
    first.policy_count = 2;
    first.config.emulate = duet_request_keep(&first, g_strdup("idgraf"));
    duet_request_copy(&second, &first);
    duet_request_fini(&first);
    duet_request_fini(&first);
    g_assert_true(duet_request_paced(&second));
    g_assert_cmpstr(duet_request_platform(&second), ==, "idgraf");
    g_assert_cmpstr(second.policies[1], ==, "heft");
    g_assert_cmpuint(second.settings->len, ==, 2);
    g_assert_cmpstr(g_array_index(second.settings, struct duet_setting, 0).name, ==, "variant");
    g_assert_cmpstr(g_array_index(second.settings, struct duet_setting, 1).value, ==, "any");
    second.config.emulate = "free";
    g_assert_false(duet_request_paced(&second));
    g_assert_null(duet_request_platform(&second));
    duet_request_fini(&second);
}

static void test_recording(void)
{
    const char *kernels[] = {"dgemm", "", "dpotrf"};
    struct duet_recording recording = {
        .events = g_new0(struct duet_event, 1),
        .event_count = 1,
        .kernels = duet_recording_names(kernels, G_N_ELEMENTS(kernels)),
        .kernel_count = G_N_ELEMENTS(kernels),
        .makespan_s = 4,
    };
    recording.events[0] =
        (struct duet_event){.kernel = 2, .submit_s = 1, .ready_s = 2, .start_s = 3, .end_s = 5};
    g_assert_cmpstr(recording.kernels[0], ==, "dgemm");
    g_assert_cmpstr(recording.kernels[1], ==, "");
    g_assert_null(recording.kernels[3]);
    duet_recording_shift(&recording, -1);
    duet_recording_scale(&recording, 2);
    g_assert_cmpfloat(recording.events[0].submit_s, ==, 0);
    g_assert_cmpfloat(recording.events[0].ready_s, ==, 2);
    g_assert_cmpfloat(recording.events[0].start_s, ==, 4);
    g_assert_cmpfloat(recording.events[0].end_s, ==, 8);
    g_assert_cmpfloat(recording.makespan_s, ==, 8);
    g_assert_cmpstr(duet_recording_kernel(&recording, recording.events), ==, "dpotrf");
    recording.events[0].kernel = 3;
    g_assert_cmpstr(duet_recording_kernel(&recording, recording.events), ==, "?");
    duet_recording_fini(&recording);
    duet_recording_fini(&recording);
}

/* Runs are not made until they are; the first failure is the one that is told. */
static void test_failure(void)
{
    struct duet_run *runs = duet_runs_new(2);
    g_assert_cmpint(runs[1].error, ==, DUET_ECANCELED);
    g_assert_null(runs[1].message);
    g_assert_null(duet_run_recording(runs));
    g_assert_cmpint(duet_run_fail(runs, DUET_EIO, &(struct duet_message){""}), ==, DUET_EIO);
    (void)duet_run_fail(runs, DUET_ETASK, &(struct duet_message){"later"});
    g_assert_cmpstr(runs[0].message, ==, duet_strerror(DUET_EIO));
    duet_runs_free(runs, 2);
    duet_runs_free(NULL, 7);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/request/copy", test_copy);
    g_test_add_func("/request/recording", test_recording);
    g_test_add_func("/request/failure", test_failure);
    return g_test_run();
}
