# SPDX-License-Identifier: Apache-2.0
"""Scheduling policies in shared objects, as `duet simulate --policy` loads them: good ones, and
every way in which one can be bad."""

import csv
import os
import pathlib
import subprocess
import tempfile

DUET = os.path.abspath(os.environ.get("DUET") or "build/duet")
BUILD = pathlib.Path(os.environ.get("DUET_BUILD_DIR") or "build").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[1]
CC = os.environ.get("DUET_CC") or "cc"
EXAMPLE = BUILD / "examples" / "policies" / "random_worker.so"
RUN = "cholesky --platform idgraf --n 3840 --tile 960 --cpus 2 --gpus 2 --quiet --csv".split()

START = """
#include <duet/policy.h>
static void push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                 int by, double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_tail(view, duet_view_shared(view), batch[i]);
}
static struct duet_task *pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    return duet_pop_head(view, duet_view_shared(view), worker);
}
"""
POLICY = """const struct duet_policy %s = {
    .name = "mine", .description = "a queue", .source = "this test", .push = push, .pop = %s};
"""


def simulate(policy, folder=None):
    return subprocess.run([DUET, "simulate", *RUN, "--policy", str(policy)], cwd=folder,
                          capture_output=True, text=True, check=False)


def compile_policy(folder, name, text):
    source = folder / f"{name}.c"
    source.write_text(text, encoding="utf-8")
    subprocess.run([CC, "-std=c11", "-shared", "-fPIC", "-w", f"-I{ROOT}/core/include",
                    "-o", folder / f"{name}.so", source], check=True)
    return folder / f"{name}.so"


def accepted(policy, name, folder=None):
    result = simulate(policy, folder)
    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert len(rows) == 1, result.stdout
    assert float(rows[0]["makespan_s"]) > 0, result.stdout
    assert name in rows[0]["policy"], result.stdout


def refused(policy, *fragments):
    result = simulate(policy)
    assert result.returncode == 2, f"{policy}: status {result.returncode}: {result.stderr}"
    assert not result.stdout, result.stdout
    for fragment in fragments:
        assert fragment in result.stderr, f"{policy}: {result.stderr}"


def main():
    accepted(EXAMPLE, "random_worker")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        compile_policy(folder, "mine", START + POLICY % ("duet_policy", "pop"))
        accepted("mine.so", "mine", folder)
        accepted(folder / "mine.so", "mine")

        refused(folder / "missing.so", "missing.so", "cannot load")
        (folder / "text.so").write_text("no shared object at all\n", encoding="utf-8")
        refused(folder / "text.so", "text.so", "cannot load")
        (folder / "empty.so").touch()
        refused(folder / "empty.so", "empty.so", "cannot load")
        refused(folder, "cannot load")
        other = compile_policy(folder, "other", START + POLICY % ("my_policy", "pop"))
        refused(other, "other.so", "exports no symbol 'duet_policy'")
        refused(compile_policy(folder, "half", START + POLICY % ("duet_policy", "0")),
                "policy mine lacks its pop slot")
        tuned = POLICY % ("duet_policy", "pop, .init = init, .parameters = parameters")
        tuned = compile_policy(folder, "tuned", START + """
static const struct duet_policy_parameter parameters[] = {
    {"share", 0.5, 0, 1, "kept"}, {"steps", 3, 1, 9, "made"}, {0}};
static int init(void *self, struct duet_view *view)
{
    return duet_view_parameter(view, 0) == 0.25 && duet_view_parameter(view, 1) == 3 ? 0 : -1;
}
""" + tuned)
        accepted(f"{tuned}:share=0.25", "share=0.25")
        assert simulate(tuned).returncode == 1, "init is told of another share"
        refused(f"{tuned}:share=1.5", "policy mine: share is a number from 0 to 1, not '1.5'")
        refused(f"{tuned}:share", "share is a number from 0 to 1, not ''")
        refused(f"{tuned}:share=nan", "share is a number from 0 to 1, not 'nan'")
        refused(f"{tuned}:share=0:steps=2:share=1", "policy mine: share is given twice")
        refused(f"{tuned}:speed=1", "policy mine has no parameter 'speed' (as in",
                "share (0.5; 0 to 1), steps (3; 1 to 9)")
        refused("ws:speed=1", "policy ws has no parameter 'speed'", "but: none")
        refused("ws:", "policy ws has no parameter ''")
        unknown = START + "void duet_unknown(void);\n" + POLICY % ("duet_policy", "pop")
        unknown += "void use(void)\n{\n    duet_unknown();\n}\n"
        refused(compile_policy(folder, "unknown", unknown), "cannot load", "duet_unknown")
    refused("nobody", "nobody", "known are eager, ws", "shared object")


main()
