/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of how many tasks a worker has in preparation or in flight. A device does a tenth of the
 * time that tasks say, so that 0.1 are 10 us; what they take here is nothing, so that beliefs stay.
 */
#include "core/testing_script.h"

enum { GPU = 0 };

#define ONE "gpus=1 window=2 short=6"

static const struct script scripts[] = {
    {"nothing is taken beyond the window while a long task is there among short ones", ONE,
     "us 0; 2 gpu=0.1; gpu=10; 7 gpu=0.1; gpu0 run 1; gpu0 run 2; gpu0 run 3; gpu0 idle; done 1;"
     "done 2; gpu0 run 4; gpu0 idle; done 3; gpu0 run 5; gpu0 run 6; gpu0 run 7; gpu0 run 8;"
     "gpu0 run 9; gpu0 idle; done 4; done 5; done 6; done 7; done 8; done 9; gpu0 work 1"},
    {"slots are given back when a device is lost", "gpus=2 window=1 short=4",
     "us 0; 10 gpu=0.01; gpu0 run 1; gpu0 run 2; gpu0 run 3; gpu0 run 4; gpu0 idle; lose gpu0;"
     "lost 1; lost 2; lost 3; lost 4; go 10"},
    {"slots are given back when a run fails", ONE,
     "us 0; 10 gpu=0.01; gpu0 run 1; gpu0 run 2; gpu0 run 3; gpu0 run 4; gpu0 run 5; gpu0 run 6;"
     "gpu0 idle; done 1; done 2; done 3 EIO; done 4; done 5; done 6; gpu0 work 0;"
     "end EIO task 3 (for_gpus) failed on gpu0"},
    {"none is taken beyond the window while one waits for data; data that is there is no reason",
     ONE,
     "us 0; data a b; 4 gpu=0.1 a:r; gpu=0.1 b:r; 5 gpu=0.1 a:r; gpu0 copy a host>gpu0; gpu0 idle;"
     "gpu0 takes 2; done a; gpu0 run 1; gpu0 run 2; gpu0 run 3; gpu0 run 4; gpu0 copy b host>gpu0;"
     "gpu0 idle; gpu0 takes 5; done b; gpu0 run 5; gpu0 run 6; gpu0 idle; done 1; done 2; done 3;"
     "done 4; done 5; done 6; gpu0 work 4"},
    {"beyond its window a worker leaves others what is theirs, and is not called for it",
     "gpus=2 window=2 short=6 ws",
     "us 0; 10 gpu=0.01; gpu0 lists 10; gpu1 run 1; gpu1 run 2; gpu1 idle; gpu0 run 10; gpu0 run 9;"
     "gpu0 run 8; gpu0 run 7; gpu0 run 6; gpu0 run 5; gpu0 idle; gpu0 lists 2; gpu=0.01;"
     "unwoken gpu1; done 1; done 2; gpu1 work 3; done 5; done 6; done 7; done 8; done 9; done 10;"
     "gpu0 work 0"},
    /* the long one fills a window of one when the short one before it ends: what that one made
     * ready is for a worker that has nothing to do, since its own takes nothing */
    {"what a short task made ready is for others if a long one fills the window",
     "gpus=2 window=1 short=4 ws",
     "us 0; data a; gpu=0.1 a:r; gpu0 copy a host>gpu0; done a; gpu0 run 1; gpu a:rw; gpu=10;"
     "gpu0 run 3; gpu0 idle; gpu1 idle; done 1; gpu0 idle; woken gpu1; go 1; done 3; go 0"},
};

static const struct testing_machine one_device = {.gpus = 1, .window = 2, .window_short = 6};

/* A task of so many microseconds on the device, which its cost function says; 0: says nothing. */
static void submit_us(struct testing *t, const struct duet_codelet *codelet, double microseconds)
{
    double flops = microseconds * 1e4;
    const struct duet_task_desc desc = {.codelet = codelet,
                                        .args = &flops,
                                        .args_bytes = sizeof flops};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
}

/* Asks for kernels until there is none. How many. */
static unsigned launch(struct testing *t, struct duet__engine_command *commands)
{
    unsigned count = 0;
    for (;;) {
        struct duet__engine_command command = testing_next(t, GPU);
        if (command.kind == DUET_IDLE)
            return count;
        g_assert_cmpint(command.kind, ==, DUET_RUN);
        commands[count++] = command;
    }
}

/* Ends what is in flight, and what follows; the models' beliefs do not change. */
static void end(struct testing *t, const struct duet__engine_command *commands, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        testing_done(t, &commands[i], 0, 0);
    (void)testing_work(t, GPU, NULL);
    lost_end(t, DUET_OK, "");
}

/* `count` tasks, each of so many microseconds, are submitted; `expected` are started. */
static void check(const struct testing_machine *machine, double microseconds, unsigned expected)
{
    struct duet__engine_command commands[20];
    struct testing *t = lost_start(machine, "eager");
    for (unsigned i = 0; i < 10; i++)
        submit_us(t, t->gpu, microseconds);
    unsigned count = launch(t, commands);
    g_assert_cmpuint(count, ==, expected);
    g_assert_cmpuint(t->core->workers[GPU].taken, ==, expected);
    end(t, commands, count);
}

/* A window of tasks that take less than 100 us together, and one more; at least the window, at most
   the other. */
static void test_short(void)
{
    static const struct testing_machine plain = {.gpus = 1, .window = 2};
    static const struct testing_machine equal = {.gpus = 1, .window = 3, .window_short = 3};
    check(&one_device, 1, 6);
    check(&one_device, 16, 6);
    check(&one_device, 24, 5);
    check(&one_device, 25, 4);
    check(&one_device, 40, 3);
    check(&one_device, 60, 2);
    check(&one_device, 5000, 2);
    check(&plain, 1, 2);
    check(&equal, 1, 3);
}

static const struct duet_implementation cuda = {.arch = "cuda"};

/* A task without a known time counts as long, alone and among short ones. */
static void test_unknown(void)
{
    struct duet__engine_command commands[20];
    struct duet_codelet *unknown = NULL;
    const struct duet_codelet_desc desc = {.name = "unknown",
                                           .implementations = &cuda,
                                           .implementation_count = 1};
    struct testing *t = lost_start(&one_device, "eager");
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &unknown), ==, DUET_OK);
    for (unsigned i = 0; i < 3; i++)
        submit_us(t, unknown, 0);
    unsigned count = launch(t, commands);
    g_assert_cmpuint(count, ==, 2);
    submit_us(t, t->gpu, 1);
    submit_us(t, t->gpu, 1);
    testing_done(t, &commands[0], 0, 0);
    testing_done(t, &commands[1], 0, 0);
    count = launch(t, commands);
    g_assert_cmpuint(count, ==, 2); /* the last unknown one, and one that is short */
    testing_done(t, &commands[0], 0, 0);
    testing_done(t, &commands[1], 0, 0);
    end(t, commands, launch(t, commands));
}

SCRIPTS_MAIN(test_scripts, test_short, test_unknown)
