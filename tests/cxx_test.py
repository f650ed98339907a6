# SPDX-License-Identifier: Apache-2.0
"""What compiles with duet/duet.hpp without a warning, by this compiler and Clang in C++17 and
C++20, and what does not compile at all."""

import concurrent.futures
import os
import re
import shutil
import subprocess

import repository

FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror",
         "-I", "core/include", "-x", "c++", "-"]
PROGRAM = """
#include <functional>
#include <duet/duet.hpp>
using namespace duet;
constexpr auto axpy = task<R<vector<double>>, RW<vector<double>>, double>("axpy")
                          .cpu([](span<const double> x, span<double> y, double a) {
                              for (std::size_t i = 0; i < y.size; i++)
                                  y[i] += a * x[i];
                          })
                          .cuda()
                          .flops([](double) { return 2.; });
constexpr auto sum = reduction<vector<float>>("zero", "plus", std::plus<float>());
void try_it(runtime &rt, vector<double> &x, const vector<double> &fixed, vector<float> &single);
void try_it(runtime &rt, vector<double> &x, const vector<double> &fixed, vector<float> &single)
{
    rt.set_reduction(single, sum);
    rt.spawn(axpy, fixed, x, 2);
    rt.spawn(axpy, {}, fixed, x, 2);
    int local = 1;
    (void)local, (void)single;
    %s;
}
"""
# a statement, and what the compiler has to say of it
REFUSED = [
    ("rt.spawn(axpy, x, fixed, 2.)", "fixed|const"),  # a RW parameter, and const data
    ("rt.spawn(axpy, x, vector<double>(rt, 3), 2.)", "rvalue|temporary|no matching|lvalue"),
    ("rt.spawn(axpy, x, single, 2.)", "float"),
    ("rt.spawn(axpy, x, x)", "no matching|candidate"),
    ("rt.spawn(axpy, x, x, 2., 3.)", "no matching|candidate"),
    ("rt.spawn(axpy, x, x, &local)", "int"),
    ("(void)fixed.write()", "const|discards|qualif"),
    ("(void)fixed.update()", "const|discards|qualif"),
    ("fixed.read()[0] = 1", "read-only|const"),
    ("rt.set_reduction(single, reduction<vector<double>>(\"a\", \"b\", [](double, double b) "
     "{ return b; })); vector<double> copy = x", "deleted"),
    ("runtime copy = rt; auto end = task<std::vector<int>>(\"a\"); rt.spawn(end, {})",
     "trivially copyable"),
    ("rt.spawn(task<vector<double>>(\"a\"), x)", r"of data, its access: R<vector<T>>"),
    ("rt.spawn(task<R<std::vector<int>>>(\"a\"), {})", "an access is to duet's"),
    *[(statement, "parameters are not those of the task's signature") for statement in (
        "rt.spawn(task<R<vector<double>>>(\"b\").cpu([](span<double>) {}), x)",
        "rt.spawn(task<W<vector<double>>, int>(\"b\").cpu([](span<double>) {}), x, 1)",
        "rt.spawn(task<R<matrix<double>>>(\"b\").cpu([](span<const double>) {}), {rt, 2, 2})",
        "rt.spawn_cpu<W<vector<double>>>(\"b\", [] {}, x)")],
    *[(f"rt.spawn(task<int>(\"b\").{function}, 1)", "takes the task's values, in order")
      for function in ("flops([](int, int) { return 1.; })", "flops([] { return 1.; })",
                       "cost([](int) { return 1.; })")],
    ("rt.spawn(task<W<vector<double>>>(\"c\").cpu([=](auto) { (void)local; }), x)",
     "capture nothing"),
    ("rt.spawn(task<W<vector<double>>>(\"d\").cpu([](auto) { return 1.; }), x)",
     "returns nothing, or an int"),
    ("(void)task<int>(\"a name of more than thirty-one bytes\")", "at most 31 bytes"),
    ("matrix<std::vector<int>>(rt, 2, 2)", "copied as bytes between memories"),
    ("rt.try_wait()", "unused-result|nodiscard"),
]
FINE = ["rt.spawn(axpy, options{3}, fixed, x, 2.)", "config own; runtime(own).close()",
        "double y = fixed.read()[0]; x.write()[0] = y"]
IN_20 = ["rt.spawn(axpy, {.priority = 3, .name = \"axpy(3)\"}, fixed, x, 2.)"]


def check(compiler, standard, statement, expected=""):
    """What is wrong; nothing if the statement compiles, or is refused with the text expected."""
    result = subprocess.run([compiler, f"-std=c++{standard}", *FLAGS], cwd=repository.ROOT,
                            input=PROGRAM % statement, capture_output=True, text=True, check=False)
    if bool(expected) == bool(result.returncode) and re.search(expected, result.stderr):
        return []
    return [f"{compiler}, C++{standard}: {statement}\n  expected: {expected or 'no error'}\n"
            f"{result.stderr[:2000]}"]


own = os.environ.get("DUET_CXX", "c++")
cases = [(compiler, standard, ";\n    ".join(FINE + IN_20 * (standard == "20")))
         for compiler in {own, "clang++"} if shutil.which(compiler) for standard in ("17", "20")]
cases += [(own, "17", *case) for case in REFUSED]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    found = pool.map(lambda case: check(*case), cases)
    repository.finish([problem for problems in found for problem in problems],
                      f"{len(REFUSED)} wrong statements are refused")
