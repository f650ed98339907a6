/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every workload computed on GPUs with CUDA of little memory, beside CPUs: where each kernel runs,
 * and that results pass their checks; a kernel that fails ends the run with its name. Nothing here
 * knows whether the GPUs are real ones: without any, all of it is skipped.
 */
#include <string.h>

#include <cuda_runtime_api.h>
#include <glib.h>

#include <duet/trace.h>

#include "workloads/kernels_cuda.h"
#include "workloads/test_run.h"

static int devices(void)
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/* True if the setting `name` leaves the diagonal tiles to the CPUs. */
static bool kept_on_cpus(const struct duet__problem *problem, const char *name)
{
    for (size_t i = 0; i < problem->setting_count; i++) {
        if (!strcmp(problem->settings[i].name, name))
            return !strcmp(problem->settings[i].value, "cpu");
    }
    return true;
}

/* True if the kernel runs on GPUs only: with set_arch, if GPUs have code for it and it is not
 * placed elsewhere. */
static bool is_for_gpus(const struct duet__problem *problem, const char *base)
{
    if (!strcmp(base, "potrf"))
        return !kept_on_cpus(problem, "potrf");
    if (!strcmp(base, "getrf_nopiv"))
        return !kept_on_cpus(problem, "getrf");
    return duet__cuda_kernel(base) != NULL;
}

/* True if the class is one for GPUs. */
static bool look_at_class(const struct duet_class_stats *class, const struct duet_machine *machine,
                          const struct duet__problem *problem)
{
    uint64_t on_cpus = 0, on_gpus = 0;
    for (unsigned w = 0; w < machine->worker_count; w++)
        *(machine->workers[w].node == DUET_HOST ? &on_cpus : &on_gpus) += class->ran[w];
    if (is_for_gpus(problem, class->kernel + 1))
        g_assert_cmpuint(on_cpus, ==, 0);
    else
        g_assert_cmpuint(on_gpus, ==, 0);
    return is_for_gpus(problem, class->kernel + 1);
}

/* Checks where each kernel ran. A task that expands runs nowhere; its children are where cholesky.c
 * says. */
static void look(struct duet_runtime *runtime, const struct duet__problem *problem)
{
    struct duet_stats stats;
    bool any = false;
    for (size_t i = 0; i < problem->setting_count; i++) {
        if (!strcmp(problem->settings[i].name, "block"))
            return;
    }
    for (size_t i = 0; i < duet_class_count(runtime); i++) {
        struct duet_class_stats class;
        g_assert_cmpint(duet_class_stats(runtime, i, &class), ==, 0);
        any |= look_at_class(&class, duet_runtime_machine(runtime), problem);
    }
    duet_stats(runtime, &stats);
    g_assert_true(!any || stats.bytes_to_device > 0);
}

static void test_one(void)
{
    run_all(&(struct place){.cpus = 2, .gpus = 1});
}

static void test_one_set_arch(void)
{
    run_all(&(struct place){.cpus = 1, .gpus = 1, .set_arch = true, .look = look});
}

static void test_two(void)
{
    if (devices() < 2)
        g_test_skip("there is one GPU only");
    else
        run_all(&(struct place){.cpus = 1, .gpus = 2, .set_arch = true, .look = look});
}

/* A tile that is not positive definite, as cuSOLVER finds on a GPU, is the run's error. */
static void test_failing_kernel(void)
{
    static const struct run run = {"cholesky", 200, 64, {{"potrf", "any"}}};
    const struct duet__workload *workload = duet__workload_find("cholesky");
    const struct place place = {.cpus = 1, .gpus = 1, .set_arch = true};
    if (!can_run(workload)) {
        g_test_skip("built without BLAS");
        return;
    }
    struct duet__problem problem = make_indefinite(&run);
    struct duet_runtime *runtime = open_runtime(&place);
    g_assert_cmpint(once(workload, runtime, &problem), ==, DUET_ETASK);
    g_test_message("%s", duet_last_message(runtime));
    TOLD(runtime, "dpotrf");
    TOLD(runtime, "info = 23"); /* 151 - 2 x 64 */
    g_assert_cmpint(duet_close(runtime), ==, DUET_ETASK);
    workload->discard(problem.data);
}

TEST_MAIN_IF(devices() > 0, test_one, test_one_set_arch, test_two, test_failing_kernel)
