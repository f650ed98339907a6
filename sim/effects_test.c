/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of the machine on kernels beside their size, each cause alone, with it and without it:
 * dates against sums worked out by hand. The machine is that of sim/testing.h, with one socket
 * unless a test says otherwise.
 */
#include "sim/testing_effects.h"
#include "sim/testing_scene.h"

static const uint64_t KB = 1000, MB = 1000000;

static double seconds_of(const struct lab *lab, uint64_t task)
{
    const struct duet_event *event = lab_find(lab, DUET_EVENT_TASK, task, 1);
    g_assert_nonnull(event);
    return event->end_s - event->start_s;
}

/* ------------------------------------------------------------------------------------------- */
/* Caches and bandwidth                                                                         */

/*
 * 1 ms, and 0.5 ms more if its operand is in none of the 10 MB of cache that its socket has: cpu0
 * and cpu2 are on one, cpu1 is on another. 110 MB are registered, so that what was never touched is
 * in memory.
 */
static void test_caches(const void *without)
{
    static const struct {
        const char *where;
        bool large;
        enum duet_mode mode;
        double seconds;
    } steps[] = {
        {"cpu0", false, DUET_R, 1.5e-3},  /* from memory */
        {"cpu0", false, DUET_R, 1.0e-3},  /* still there */
        {"cpu0", true, DUET_R, 1.5e-3},   /* 9.9 MB of something else */
        {"cpu0", false, DUET_R, 1.25e-3}, /* 10 MB ago: a half is */
        {"cpu2", false, DUET_R, 1.0e-3},  /* its first touch, but the socket has it */
        {"cpu1", false, DUET_R, 1.5e-3},  /* another socket */
        {"cpu1", false, DUET_RW, 1.0e-3},
        {"cpu2", false, DUET_R, 1.5e-3}, /* the other one has written it */
    };
    const struct duet__point point = {.mean_s = 3e-3, .base_s = 1e-3, .memory_s = 0.5e-3};
    OWNED(duet__calibration_fini)
    struct duet__calibration calibration = lab_calibrate(&point, 3, 0);
    OWNED(lab_close)
    struct lab lab = lab_open(&(struct lab_options){.cpus = 3,
                                                    .sockets = 2,
                                                    .sharing = {.shared_bytes = 10 * MB},
                                                    .calibration = &calibration,
                                                    .without = GPOINTER_TO_UINT(without)});
    struct duet_handle *small = lab_data(&lab, 100 * KB), *large = lab_data(&lab, 9900 * KB);
    (void)lab_data(&lab, 100 * MB);
    for (unsigned i = 0; i < G_N_ELEMENTS(steps); i++) {
        lab_k(&lab, steps[i].where, steps[i].large ? large : small, steps[i].mode);
        lab_finish(&lab);
        assert_seconds(seconds_of(&lab, i + 1), without ? 1e-3 : steps[i].seconds);
    }
}

/*
 * Two kernels of 2 ms that fetch 10 MB each, 5 GB/s alone, from a memory that gives 7.5 GB/s. The
 * second one begins when the first has 1 ms left: with x = 5/3 of the 1 ms in which each waits for
 * memory, 20 MB pass in 8/3 ms, so that both go at 3/4. The first ends at 1 + 4/3 ms; the second
 * has done 1 ms then, and goes on alone.
 */
static void test_bandwidth(const void *without)
{
    const struct duet__point point = {.mean_s = 5e-3, .base_s = 1e-3, .memory_s = 1e-3};
    OWNED(duet__calibration_fini)
    struct duet__calibration calibration = lab_calibrate(&point, 2, 0);
    OWNED(lab_close)
    struct lab lab =
        lab_open(&(struct lab_options){.cpus = 2,
                                       .sharing = {.shared_bytes = MB, .bandwidth_Bps = 7.5e9},
                                       .calibration = &calibration,
                                       .without = GPOINTER_TO_UINT(without)});
    struct duet_handle *a = lab_data(&lab, 10 * MB), *b = lab_data(&lab, 10 * MB);
    lab_k(&lab, "cpu0", a, DUET_R);
    lab_task(&lab, "cpu1", 1e-3, 0);
    lab_k(&lab, "cpu1", b, DUET_R);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "cpu0", 0, without ? 2e-3 : 7e-3 / 3);
    assert_kernel(&lab, 3, "cpu1", 1e-3, without ? 3e-3 : 10e-3 / 3);
}

/* ------------------------------------------------------------------------------------------- */
/* Neighbours and cores                                                                         */

/*
 * 1 ms, half as long again beside two others. With one beside it for 0.5 ms it goes at 1/1.25,
 * which leaves 0.6 ms. The other kernel does not mind.
 */
static void test_neighbours(const void *without)
{
    const struct duet__point point = {.mean_s = 1e-3, .busy_ratio = 1.5};
    OWNED(duet__calibration_fini)
    struct duet__calibration calibration = lab_calibrate(&point, 3, 0);
    OWNED(lab_close)
    struct lab lab = lab_open(&(struct lab_options){.cpus = 3,
                                                    .calibration = &calibration,
                                                    .without = GPOINTER_TO_UINT(without)});
    lab_k(&lab, "cpu0", NULL, DUET_R);
    lab_task(&lab, "cpu1", 0.5e-3, 0);
    lab_finish(&lab);
    assert_kernel(&lab, 1, "cpu0", 0, without ? 1e-3 : 1.1e-3);
    assert_kernel(&lab, 2, "cpu1", 0, 0.5e-3);
}

/* ------------------------------------------------------------------------------------------- */
/* Cores and wake-ups                                                                           */

static const struct scene scenes[] = {
    /*
     * 1, 1 and 2 ms on two cores: all at 2/3 until 1.5 ms, then the third, of which 1 ms is left,
     * alone. A fourth begins at 1.5 ms, and with two on two cores nobody waits.
     */
    {"cores",
     {.cpus = 3, .cores = 2, .without = DUET__EFFECT_CORES},
     "cpu0 1; cpu1 1; cpu2 2; cpu1 1",
     "1 cpu0 0 {1.5|1}; 2 cpu1 0 {1.5|1}; 3 cpu2 0 {2.5|2}; 4 cpu1 {1.5|1} {2.5|2}"},
    /*
     * Emulated devices compute on cores: two of them beside a CPU worker, on two cores. Each has
     * two kernels, one behind the other. In ms: 1, 1+1, 1+1 at 2/3 until 1.5; from then on two run.
     */
    {"emulated",
     {.cpus = 1,
      .gpus = 2,
      .cores = 2,
      .emulated = true,
      .gpu_window = 1,
      .without = DUET__EFFECT_CORES},
     "cpu0 1; emulated 1; emulated 1; emulated 1; emulated 1",
     "1 cpu0 0 {1.5|1}; 2 gpu1 0 {1.5|1}; 3 gpu0 0 {1.5|1}; 4 gpu0 {1.5|1} {2.5|2};"
     "5 gpu1 {1.5|1} {2.5|2}"},
    /*
     * cpu1 is idle from the beginning and called at 5 ms; it sleeps after 2 ms, and takes 1 ms to
     * wake up. It is idle again from 7 ms on, and called at 8 ms, when it does not sleep yet.
     */
    {"wake",
     {.cpus = 2, .costs = {.wake_s = 1e-3, .spin_s = 2e-3}, .without = DUET__EFFECT_WAKE_UPS},
     "a 1; b 1; cpu0 5 a:w; cpu0 3 b:w; cpu1 1 a:r; cpu1 1 b:r",
     "2 cpu0 5 8; 3 cpu1 {6|5} {7|6}; 4 cpu1 8 9"},
    /*
     * A GPU's thread notices ends 1 ms late. What it has launched goes on meanwhile: kernel 2
     * behind kernel 1, the copy of b behind that of a. But kernel 1 begins when the copy of b (6 to
     * 12 ms) is noticed, at 13 ms; c, which kernel 2 writes until 18 ms, leaves at 19 ms, is there
     * at 21 ms (1 MB in 1 ms, and 1 ms of latency), and cpu0 knows at 22 ms.
     */
    {"event",
     {.cpus = 1, .gpus = 1, .costs = {.event_s = 1e-3}, .without = DUET__EFFECT_WAKE_UPS},
     "a 5; b 5; c 1; gpu0 3 a:r b:r; gpu0 2 b:r c:w; cpu0 1 c:r",
     "a host>gpu0 0 6; b host>gpu0 6 12; 1 gpu0 {13|12} {16|15}; 2 gpu0 {16|15} {18|17};"
     "c gpu0>host {19|17} {21|19}; 3 cpu0 {22|19} {23|20}"},
    /*
     * The application waits for a, which is there at 10 ms. Its own thread has a kernel in hand by
     * then, and finishes it; a second one is left for later.
     */
    {"busy_seat",
     {.cpus = 2, .first_waits = true, .without = DUET__EFFECT_START},
     "a 1; cpu1 10 a:w; cpu0 30; cpu0 30; acquire a:r; now {30|10}; release a",
     "3 cpu0 30 60"},
};

/* A run that ends before the thread has noticed a copy, which nobody waits for. */
static void test_unnoticed(void)
{
    struct lab lab =
        lab_open(&(struct lab_options){.cpus = 1, .gpus = 1, .costs = {.event_s = 5e-3}});
    struct duet_handle *a = lab_data(&lab, MB), *b = lab_data(&lab, MB);
    lab_task(&lab, "gpu0", 1e-3, 1, a, DUET_R);
    lab_task(&lab, "cpu0", 3e-3, 1, b, DUET_RW);
    g_assert_cmpint(duet_acquire(lab.duet, b, DUET_R), ==, DUET_OK);
    assert_seconds(duet_now(lab.duet), 3e-3);
    g_assert_cmpint(duet_release(lab.duet, b), ==, DUET_OK);
    duet__core_free(lab.duet);
    duet_machine_fini(&lab.machine);
}

/* ------------------------------------------------------------------------------------------- */
/* The application's thread                                                                     */

/*
 * Five tasks of 15 ms, submitted every 10 ms. The first worker submits until 50 ms, waits from then
 * on, and works. At 70 ms the wait is over, and another task is submitted for it at 80 ms.
 */
static void test_start(const void *without)
{
    static const struct {
        const char *worker;
        double start_s;
    } with[] = {{"cpu1", 0.010},
                {"cpu1", 0.025},
                {"cpu1", 0.040},
                {"cpu0", 0.050},
                {"cpu1", 0.055}};
    OWNED(lab_close)
    struct lab lab = lab_open(&(struct lab_options){.cpus = 2,
                                                    .first_waits = true,
                                                    .costs = {.submit_s = 0.010},
                                                    .without = GPOINTER_TO_UINT(without)});
    for (unsigned i = 0; i < G_N_ELEMENTS(with); i++)
        lab_task(&lab, NULL, 0.015, 0);
    lab_finish(&lab);
    for (unsigned i = 0; i < G_N_ELEMENTS(with); i++) {
        const char *worker = i % 2 ? "cpu1" : "cpu0"; /* whoever it is, without */
        double start_s = without ? 0.010 * (i + 1) : with[i].start_s;
        if (without)
            worker = lab.machine.workers[lab_find(&lab, DUET_EVENT_TASK, i + 1, 1)->worker].name;
        assert_kernel(&lab, i + 1, without ? worker : with[i].worker, start_s, start_s + 0.015);
    }
    double now = without ? 0.065 : 0.070;
    assert_seconds(duet_now(lab.duet), now);
    lab_task(&lab, "cpu0", 0.015, 0);
    lab_task(&lab, "cpu1", 0.015, 0);
    lab_finish(&lab);
    assert_kernel(&lab, 6, "cpu0", now + (without ? 0.010 : 0.020),
                  now + (without ? 0.025 : 0.035));
    assert_kernel(&lab, 7, "cpu1", now + 0.020, now + 0.035);
}

/* A window of four: in the midst of submitting the application waits again and again, and works. */
static void test_window(void)
{
    enum { TASKS = 16 };
    OWNED(lab_close)
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1,
                                                    .first_waits = true,
                                                    .window = 4,
                                                    .costs = {.submit_s = 0.010}});
    for (unsigned i = 0; i < TASKS; i++)
        lab_task(&lab, NULL, 0.001, 0);
    lab_finish(&lab);
    double end_s = 0;
    for (unsigned i = 1; i <= TASKS; i++) {
        const struct duet_event *event = lab_find(&lab, DUET_EVENT_TASK, i, 1);
        g_assert_cmpfloat(event->start_s, >=, end_s);
        end_s = event->end_s;
    }
    /* one thread does it all, one thing after another */
    assert_seconds(end_s, TASKS * 0.011);
}

/* A case, and the same without its cause. */
static void add(const char *name, unsigned effect, void (*test)(const void *without))
{
    g_autofree char *with = g_strdup_printf("/effects/%s", name);
    g_autofree char *without = g_strdup_printf("/effects/without/%s", name);
    lab_add_on(with, NULL, test);
    lab_add_on(without, GUINT_TO_POINTER(effect), test);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("caches", DUET__EFFECT_CACHES, test_caches);
    add("bandwidth", DUET__EFFECT_BANDWIDTH, test_bandwidth);
    add("neighbours", DUET__EFFECT_NEIGHBOURS, test_neighbours);
    add_scenes(scenes, G_N_ELEMENTS(scenes));
    add("start", DUET__EFFECT_START, test_start);
    lab_add("/effects/unnoticed", test_unnoticed);
    lab_add("/effects/window", test_window);
    return g_test_run();
}
