/* SPDX-License-Identifier: Apache-2.0 */
/* The C++ interface, on this machine and simulated: what it computes, what it tells, what ends. */
#include <duet/duet.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/testing.h"

using duet::R, duet::RW, duet::W, duet::span, duet::view;
using matrix = duet::matrix<double>;
using vector = duet::vector<double>;

namespace
{

duet::runtime open(const char *platform = nullptr, int cpus = 2)
{
    const duet_config config = testing_config(platform, cpus, 0);
    return duet::runtime(&config);
}

/* Calls a function that has to throw; returns the message. */
template <typename F> std::string thrown(int code, const F &f)
{
    try {
        f();
    } catch (const duet::error &e) {
        g_assert_cmpint(e.code, ==, code);
        return e.what();
    }
    g_error("nothing was thrown");
}

void assert_in(const std::string &text, const char *part)
{
    if (text.find(part) == std::string::npos)
        g_error("'%s' is not in: %s", part, text.c_str());
}

struct shift {
    char letter;
    double by;
};

void scale(view<double> a, float factor)
{
    for (std::size_t j = 0; j < a.cols; j++)
        for (double &x : a.column(j))
            x *= static_cast<double>(factor);
}

/* Values of several alignments, before and between the accesses. */
int add_all(char c, view<const double> a, const shift &s, view<double> b, bool yes)
{
    for (std::size_t j = 0; j < b.cols; j++)
        for (std::size_t i = 0; i < b.rows; i++)
            b(i, j) += a(i, j) + (yes && c == s.letter ? s.by : 1e9);
    return 0;
}
double add_cost(char, const shift &s, bool, const char *arch)
{
    return std::strcmp(arch, "x5650") ? 1 : s.by;
}

constexpr auto add = duet::task<char, R<matrix>, shift, RW<matrix>, bool>("add")
                         .cpu(duet::function<add_all>)
                         .cost(duet::function<add_cost>);
constexpr auto times = duet::task<RW<matrix>, float>("times").cpu(duet::function<scale>).cuda();
constexpr auto microsecond = [](const char *) { return 1e-6; };
constexpr auto highest =
    duet::task<R<vector>, duet::reduce<matrix>>("highest")
        .cpu([](auto x, view<double> m) { m(1, 1) = std::max(m(1, 1), x[x.size - 1]); })
        .cost(microsecond);
constexpr auto sum =
    duet::task<R<vector>, duet::reduce<vector>>("sum")
        .cpu([](auto x, auto to) { to[1] += std::accumulate(x.begin(), x.end(), 0.); })
        .cost(microsecond);
constexpr auto fail =
    duet::task<int, W<vector>>("fail").cpu([](const duet_call &call, int how, span<double>) {
        g_assert_cmpuint(call.buffer_count, ==, 1);
        if (how == 0)
            throw std::runtime_error("no luck");
        if (how == 1)
            throw duet::error(DUET_EIO, "the disk is full");
        if (how == 2)
            throw 7;
        return how == 3 ? static_cast<int>(DUET_EPARSE) : 0;
    });

void test_views()
{
    duet::runtime rt = open();
    std::vector<double> from(4 * 3, 1), to(5 * 3, 2), all(3 * 4, 1);
    {
        const matrix a(rt, from.data(), 2, 3, 4);
        matrix b(rt, to.data(), 2, 3, 5);
        rt.spawn(add, 'x', a, shift{'x', 0.5}, b, true);
        rt.spawn(times, b, 2.F);
        g_assert_cmpfloat(b.read()(1, 2), ==, 7);
        b.update()(0, 0) = 1;
        rt.spawn(times, b, 2.F);
        /* blocks of 2 + 1 rows and 2 + 2 columns */
        matrix whole(rt, all.data(), 3, 4);
        auto blocks = whole.cut(2, 2), kept = std::move(blocks);
        g_assert_cmpuint(kept.size(), ==, 4);
        rt.spawn(times, kept[3], 3.F);
        g_assert_cmpuint(kept[1].read().rows, ==, 1);
        g_assert_cmpfloat(kept[3].read()(0, 1), ==, 3);
    }
    g_assert_cmpfloat(to[0], ==, 2); /* brought back by the end of b */
    g_assert_cmpfloat(to[1], ==, 14);
    g_assert_cmpfloat(to[2], ==, 2); /* below the matrix */
    g_assert_cmpfloat(all[11], ==, 3);
    g_assert_cmpfloat(std::accumulate(all.begin(), all.end(), 0.), ==, 10 + 2 * 3);
}

/* A sum, a maximum and a task of 3 s, on both engines, of which one computes nothing. */
void run_reductions(const char *platform)
{
    constexpr auto most = duet::reduction<matrix>(
        "low", "max", [](double a, double b) { return std::max(a, b); }, [] { return -1e9; });
    constexpr auto total = duet::reduction<vector>("zero", "plus", std::plus<>());
    duet::runtime rt = open(platform);
    const bool computes = duet_computes(rt.get());
    std::vector<double> x(1000), s = {5, 5}, m = {-1e9, -1e9, -1e9, -1e9};
    std::iota(x.begin(), x.end(), 1);
    vector dx(rt, x.data(), x.size()), ds(rt, s.data(), 2);
    matrix dm(rt, m.data(), 2, 2);
    rt.set_reduction(ds, total);
    rt.set_reduction(dm, most);
    const auto pieces = dx.cut(20);
    for (const auto &piece : pieces) {
        rt.spawn(sum, piece, ds);
        rt.spawn(highest, piece, dm);
    }
    g_assert_cmpfloat(ds.read()[0], ==, 5);
    g_assert_cmpfloat(ds.read()[1], ==, computes ? 5 + 1000 * 1001 / 2 : 5);
    g_assert_cmpfloat(dm.read()(1, 1), ==, computes ? 1000 : -1e9);
    g_assert_cmpfloat(dm.read()(0, 1), ==, -1e9);
    const double before_s = duet_now(rt.get());
    matrix a(rt, 2, 2);
    (void)a.write();
    rt.spawn(add, 'x', a, shift{'x', 3}, dm, true);
    rt.wait();
    if (!computes) { /* its time is what `cost` makes of its values */
        g_assert_cmpfloat(duet_now(rt.get()), >, before_s + 3);
        g_assert_cmpfloat(duet_now(rt.get()), <, before_s + 3.01);
    }
}

void test_reductions()
{
    run_reductions(nullptr);
    run_reductions("idgraf");
}

void test_exceptions()
{
    duet::runtime rt = open();
    const struct {
        int code;
        const char *text;
    } cases[] = {{DUET_ETASK, "no luck"},
                 {DUET_EIO, "the disk is full"},
                 {DUET_ETASK, "no std::exception"},
                 {DUET_EPARSE, "fail"}};
    std::vector<double> x = {1};
    vector data(rt, x.data(), 1);
    for (int how = 0; how < 4; how++) {
        rt.spawn(fail, how, data);
        const std::string text = thrown(cases[how].code, [&] { rt.wait(); });
        assert_in(text, cases[how].text);
        assert_in(text, "(fail)");
        /* the second time as the first: a failed acquisition leaves nothing behind */
        (void)thrown(cases[how].code, [&] { (void)data.read(); });
        (void)thrown(cases[how].code, [&] { (void)data.read(); });
        g_assert_cmpint(rt.try_wait(), ==, cases[how].code);
        rt.check(duet_recover(rt.get()));
        data.write()[0] = 1;
    }
    assert_in(thrown(DUET_EINVAL, [&] { (void)data.cut(SIZE_MAX); }), "some would be empty");
    assert_in(thrown(DUET_EINVAL, [&] { (void)vector(rt, x.data() + 1, SIZE_MAX); }), "negative");
    rt.spawn(fail, 4, data);
    rt.wait();
    const auto held = data.update();
    assert_in(thrown(DUET_EINVAL, [&] { (void)data.read(); }), "acquired already");
    held[0] = 3; /* and is still acquired */
    g_assert_cmpint(duet_release(rt.get(), data.get()), ==, DUET_OK);
    assert_in(thrown(DUET_ENOTFOUND, [] { open("nowhere"); }), "nowhere");
    int argc = 2;
    char name[] = "program", wrong[] = "--duet-cpus=many", *argv[] = {name, wrong, nullptr};
    assert_in(thrown(DUET_EINVAL, [&] { (void)duet::config(argc, argv); }), "--duet-cpus");
}

/* An exception that nobody waits for is printed by the end of the data. */
void test_untold()
{
    if (g_test_subprocess()) {
        duet::runtime rt = open();
        double x = 1;
        vector data(rt, &x, 1);
        rt.spawn(fail, 0, data);
        return;
    }
    g_test_trap_subprocess(nullptr, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("*duet: *(fail)*no luck*");
}

void test_moved()
{
    std::vector<double> x(6, 1), y(6, 2);
    duet::runtime first = open(), second = std::move(first);
    g_assert_null(first.get());
    {
        matrix a(second, x.data(), 2, 3), b = std::move(a);
        g_assert_null(a.get());
        assert_in(thrown(DUET_EINVAL, [&] { second.spawn(times, a, 2.F); }), "handle");
        second.spawn(times, b, 2.F);
        matrix c(second, y.data(), 2, 3);
        c = std::move(b); /* y is unregistered */
        second.spawn(times, c, 2.F);
        a = std::move(c);
        a.unregister();
        g_assert_null(a.get());
        g_assert_cmpfloat(x[5], ==, 4);
    }
    matrix last(second, y.data(), 2, 3);
    second.spawn(times, last, 2.F);
    first = std::move(second);
    const auto seen = last.read();
    g_assert_cmpfloat(seen(0, 0), ==, 4);
    first.close(); /* and the ends of the data and of its view do nothing */
    matrix unregistered(second = open(), x.data(), 2, 3);
    unregistered.unregister();
    assert_in(thrown(DUET_EINVAL, [&] { (void)unregistered.read(); }), "a handle");
    const std::function<void()> late_calls[] =
        {[&] { first.wait(); },
         [&] { first.spawn(times, last, 2.F); },
         [&] { (void)last.read(); },
         [&] { last.unregister(); },
         [&] { (void)matrix(first, x.data(), 2, 3); },
         [&] {
             first.set_reduction(last, duet::reduction<matrix>("zeros", "sums", std::plus<>()));
         },
         [&] {
             duet::runtime &from = second; /* a use after a move is what is meant */
             duet::runtime moved = std::move(second);
             from.wait();
         }};
    for (const auto &call : late_calls)
        assert_in(thrown(DUET_EINVAL, call), "the runtime is closed, or the object was moved from");
    std::vector<matrix> late;
    {
        duet::runtime rt = open();
        late.emplace_back(rt, x.data(), 2, 3);
        rt.spawn(times, late[0], 2.F);
    }
    late.clear(); /* closes it */
    g_assert_cmpfloat(x[0], ==, 8);
}

void test_options()
{
    duet::runtime rt = open();
    std::vector<double> x(4, 1);
    matrix a(rt, x.data(), 2, 2), b(rt, 2, 2);
    std::atomic<int> ended = 0;
    duet::ref first;
    duet::options options;
    options.priority = 3;
    options.where = duet_where(rt.get(), "cpu");
    options.reference = &first;
    options.name = "first";
    options.done = [](duet_runtime *, void *arg, int status) {
        *static_cast<std::atomic<int> *>(arg) += status ? 100 : 1;
    };
    options.done_arg = &ended;
    rt.spawn(times, options, a, 2.F);
    duet::options later;
    later.after = {first.get()};
    rt.spawn_cpu<W<matrix>>(
        "after", [&ended](auto m) { m(1, 1) = ended; }, b);
    rt.check(duet_ref_wait(rt.get(), first.get()));
    g_assert_true(duet_ref_ended(first.get()));
    rt.spawn(times, later, b, 1.F);
    rt.wait();
    g_assert_cmpint(ended, ==, 1);
    options.where = UINT64_C(1) << 63;
    g_assert_cmpint(rt.try_spawn(times, options, a, 2.F), ==, DUET_ENOWORKER);
    g_assert_null(first.get());
    constexpr auto same = duet::task<RW<matrix>>("times").cpu([](auto) {});
    assert_in(thrown(DUET_EINVAL, [&] { rt.spawn(same, a); }), "times");
    g_assert_cmpfloat(a.read()(1, 1), ==, 2);
}

/* Lambdas with captures, nested tasks, scratch, commute, several arrays; from two threads. */
void test_more()
{
    duet::runtime rt = open();
    std::vector<double> x(3, 1), y(3, 0), value = {2, 3, 4};
    std::vector<std::uint32_t> row = {0, 1, 3, 3}, column = {2, 0, 1};
    vector dx(rt, x.data(), 3), dy(rt, y.data(), 3);
    duet::arrays<std::uint32_t, double> csr(rt, {row.data(), 4}, {value.data(), 3});
    constexpr auto multiply =
        duet::task<R<duet::arrays<std::uint32_t, double>>, R<vector>, RW<vector>>("multiply")
            .cpu([](auto a, auto in, span<double> out) {
                const auto &[rows, values] = a;
                for (std::size_t i = 0; i < out.size; i++)
                    for (std::size_t k = rows[i]; k < rows[i + 1]; k++)
                        out[i] += values[k] * in[i];
            });
    static constexpr auto plus =
        duet::task<duet::commute<vector>, duet::scratch<vector>>("plus").cpu(
            [](span<double> v, span<double> room) {
                room[0] = v[0] + 1;
                v[0] = room[0];
            });
    constexpr auto outer = duet::task<duet::runtime *, vector *>("outer").cpu(
        [](duet::runtime *in, vector *v) { in->spawn(plus, *v, *v); });
    rt.spawn(multiply, csr, dx, dy);
    const auto submit = [&] {
        for (int i = 0; i < 50; i++) {
            rt.spawn(plus, dx, dx);
            rt.spawn(outer, &rt, &dx);
        }
    };
    std::thread other(submit);
    submit();
    other.join();
    rt.wait();
    const double factor = 2, offset = 1;
    rt.spawn_cpu<RW<vector>>(
        "line", [=](span<double> v) { v[0] = factor * v[0] + offset; }, dx);
    g_assert_cmpfloat(dx.read()[0], ==, 2 * 201 + 1);
    g_assert_cmpfloat(dy.read()[1], ==, 7);
    g_assert_cmpfloat(dy.read()[2], ==, 0);
}

/* What a graph has recorded is submitted again, on other data, and on that which was recorded. */
void test_graphs()
{
    std::vector<double> a = {1, 2}, b = {3, 4};
    duet::runtime rt = open();
    vector da(rt, a.data(), 2), db(rt, b.data(), 2);
    constexpr auto twice = duet::task<RW<vector>>("twice").cpu([](span<double> v) {
        for (std::size_t i = 0; i < v.size; i++)
            v[i] *= 2;
    });
    duet::graph graph = rt.record([&] {
        rt.spawn(twice, da);
        rt.spawn(twice, da);
    });
    graph.submit();
    graph.replace(da, db);
    graph.submit();
    g_assert_cmpfloat(da.read()[0], ==, 16);
    g_assert_cmpfloat(db.read()[1], ==, 16);
    assert_in(thrown(DUET_EINVAL, [&] { graph.replace(db, da); }), "no task of the graph");
    assert_in(thrown(DUET_EINVAL, [&] { (void)rt.record([&] { (void)da.read(); }); }),
              "cannot call duet_acquire again");
    assert_in(thrown(DUET_EIO, [&] { (void)rt.record([] { throw duet::error(DUET_EIO, ""); }); }),
              "");
    duet::graph moved = std::move(graph);
    moved.submit();
    g_assert_cmpfloat(db.read()[1], ==, 64);
    assert_in(thrown(DUET_EINVAL, [&] { (void)rt.record([&] { rt.close(); }); }), "is closed");
    assert_in(thrown(DUET_EINVAL, [&] { (void)rt.record([] {}); }), "is closed");
    rt = open();
    assert_in(thrown(DUET_EIO,
                     [&] {
                         (void)rt.record([&] {
                             rt.close();
                             throw duet::error(DUET_EIO, "");
                         });
                     }),
              "");
}

} // namespace

TEST_MAIN(test_graphs, test_views, test_reductions, test_exceptions, test_untold, test_moved,
          test_options, test_more)
