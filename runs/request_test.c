/* SPDX-License-Identifier: Apache-2.0 */
/* Tests requests and their copies; records that are moved, scaled and freed. */
#include <string.h>

#include <glib.h>

#include "runs/request.h"
#include "trace/run.h"

/* A copy is there when its original is gone. */
static void test_copy(void)
{
    struct duet__request first, second;
    const char *names[] = {"ws", "heft", NULL};
    const char *params[] = {"variant=left", "potrf=any", NULL};
    duet__request_init(&first);
    g_assert_cmpint(duet__request_set_params(&first, (char **)(void *)params, NULL), ==, 0);
    first.policies = g_strdupv((char **)(void *)names);
    first.policy_count = 2;
    first.config.emulate = duet__request_keep(&first, g_strdup("idgraf"));
    duet__request_copy(&second, &first);
    duet__request_fini(&first);
    duet__request_fini(&first);
    g_assert_true(duet__request_paced(&second));
    g_assert_cmpstr(duet__request_platform(&second), ==, "idgraf");
    g_assert_cmpstr(second.policies[1], ==, "heft");
    g_assert_cmpuint(second.problem.setting_count, ==, 2);
    g_assert_cmpstr(second.problem.settings[0].name, ==, "variant");
    g_assert_cmpstr(second.problem.settings[1].value, ==, "any");
    second.config.emulate = "free";
    g_assert_false(duet__request_paced(&second));
    g_assert_null(duet__request_platform(&second));
    duet__request_fini(&second);
}

static void test_recording(void)
{
    const char *kernels[] = {"dgemm", "", "dpotrf", NULL};
    struct duet__recording recording = {
        .events = g_new0(struct duet_event, 1),
        .event_count = 1,
        .kernels = (const char **)(void *)g_strdupv((char **)(void *)kernels),
        .kernel_count = 3,
        .makespan_s = 4,
    };
    recording.events[0] =
        (struct duet_event){.kernel = 2, .submit_s = 1, .ready_s = 2, .start_s = 3, .end_s = 5};
    duet__recording_shift(&recording, -1);
    duet__recording_scale(&recording, 2);
    g_assert_cmpfloat(recording.events[0].submit_s, ==, 0);
    g_assert_cmpfloat(recording.events[0].ready_s, ==, 2);
    g_assert_cmpfloat(recording.events[0].start_s, ==, 4);
    g_assert_cmpfloat(recording.events[0].end_s, ==, 8);
    g_assert_cmpfloat(recording.makespan_s, ==, 8);
    g_assert_cmpstr(duet__recording_kernel(&recording, recording.events), ==, "dpotrf");
    recording.events[0].kernel = 3;
    g_assert_cmpstr(duet__recording_kernel(&recording, recording.events), ==, "?");
    duet__recording_fini(&recording);
    duet__recording_fini(&recording);
}

TEST_MAIN(test_copy, test_recording)
