/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks as lists of arguments, from C++, in both worlds. */
#include <vector>

/* in C, a function and a struct may share a name */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include <duet/duet.h>
#pragma GCC diagnostic pop

#include "runtime/testing.h"

/* y = alpha * x + y, with everything that the list may say. */
static int axpy(const struct duet_call *call)
{
    size_t n;
    double alpha;
    int error = duet_values(call, &n, sizeof n, &alpha, sizeof alpha, nullptr);
    if (error)
        return error;
    const double *x = static_cast<const double *>(call->buffers[0].data);
    double *y = static_cast<double *>(call->buffers[1].data);
    for (size_t i = 0; i < n; i++)
        y[i] += alpha * x[i];
    return DUET_OK;
}

/* 1 us a thousand elements: values can be asked for where there is no call. */
static double axpy_cost(const void *args, const char *arch)
{
    const void *n = duet_value(args, 0, sizeof(size_t));
    return n ? 1e-9 * static_cast<double>(*static_cast<const size_t *>(n)) : 1e-6;
}

static void count(struct duet_runtime *duet, void *ended, int status)
{
    g_assert_cmpint(status, ==, DUET_OK);
    ++*static_cast<int *>(ended);
}

static struct duet_runtime *open(const char *platform)
{
    const struct duet_config config = testing_config(platform, 1, 0);
    return testing_open(&config);
}

static struct duet_codelet *make_axpy(struct duet_runtime *duet)
{
    struct duet_codelet *codelet = nullptr;
    const struct duet_implementation where = {"cpu", axpy};
    struct duet_codelet_desc desc = {};
    desc.name = "axpy";
    desc.implementations = &where;
    desc.implementation_count = 1;
    desc.cost = axpy_cost;
    must(duet, duet_register_codelet(duet, &desc, &codelet));
    return codelet;
}

/* Three tasks, one after the other by a reference; seconds that they took together. */
static double run(struct duet_runtime *duet, std::vector<double> &x, std::vector<double> &y)
{
    const struct duet_codelet *codelet = make_axpy(duet);
    struct duet_handle *hx, *hy;
    struct duet_ref *first = nullptr;
    size_t n = x.size();
    double alpha = 2, start_s = duet_now(duet);
    int ended = 0;
    must(duet, duet_register_vector(duet, x.data(), n, sizeof x[0], &hx));
    must(duet, duet_register_vector(duet, y.data(), n, sizeof y[0], &hy));
    must(duet, duet_insert(duet, codelet, DUET_R, hx, DUET_RW, hy, DUET_VALUE, &n, sizeof n,
                           DUET_VALUE, &alpha, sizeof alpha, DUET_PRIORITY, 3, DUET_REF, &first,
                           DUET_DONE, count, &ended, 0));
    must(duet, duet_insert(duet, codelet, DUET_R, hy, DUET_RW, hx, DUET_VALUE, &n, sizeof n,
                           DUET_VALUE, &alpha, sizeof alpha, DUET_AFTER, first, DUET_WHERE,
                           duet_where(duet, "cpu"), DUET_DONE, count, &ended, 0));
    must(duet, duet_insert(duet, codelet, DUET_R, hx, DUET_RW, hy, DUET_VALUE, &n, sizeof n,
                           DUET_VALUE, &alpha, sizeof alpha, 0));
    must(duet, duet_wait(duet));
    double seconds = duet_now(duet) - start_s;
    g_assert_cmpint(ended, ==, 2);
    duet_ref_free(first);
    must(duet, duet_unregister(duet, hx));
    must(duet, duet_unregister(duet, hy));
    must(duet, duet_close(duet));
    return seconds;
}

static void test_real(void)
{
    std::vector<double> x(1000, 1), y(1000, 1);
    (void)run(open(nullptr), x, y);
    for (double value : x)
        g_assert_cmpfloat(value, ==, 7);
    for (double value : y)
        g_assert_cmpfloat(value, ==, 17);
}

static void test_simulated(void)
{
    std::vector<double> x(1000000, 1), y(1000000, 1);
    struct duet_runtime *duet = open("idgraf");
    double seconds = run(duet, x, y);
    g_assert_cmpfloat(seconds, >, 3e-3);
    g_assert_cmpfloat(seconds, <, 3.1e-3);
    g_assert_cmpfloat(y[0], ==, 1); /* nothing is computed */
}

TEST_MAIN(test_real, test_simulated)
