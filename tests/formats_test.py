# SPDX-License-Identifier: Apache-2.0
"""What duet writes is documented, and what is documented is written.

The keys of JSON, of traces and of SQLite, and the columns of CSV, that the commands below write are
those that the sections name, in tables and in prose. The first column of a table names keys, of
objects within others by `path.parts` or, after a row of `path`, by `.parts`; the row says in
backticks which keys these have in turn, and values in quotes.
"""

import json
import os
import pathlib
import re
import sqlite3
import subprocess
import tempfile

import repository

GRAPHS = repository.ROOT / "examples/graphs"
EXAMPLE = f"DUET_SIMULATE=idgraf DUET_TRACE=trace.json {repository.BUILD}/examples"
IDGRAF = "cholesky --platform idgraf --n 1920"
SMALL = "cholesky --n 256 --tile 128"
NODES = "--nodes 2 --network switch:100Gbps,1us"
PAGES = repository.read("docs/formats.md") + repository.read("docs/study.md")
# Sections, the objects that their tables are about, words there that are neither keys nor values in
# quotes, and commands that write all the keys between them: to what the last word of a command
# names, or else to standard output.
SECTIONS = [
    (["JSON, schema 1: `--json`"], ["runs", "runs"], "auto", [
        f"duet simulate {IDGRAF} --policy auto --json",
        f"duet simulate {IDGRAF} --tile 480 --policy auto --hold --wall --json",
        f"duet simulate {IDGRAF} {NODES} --json",
        f"duet run {SMALL} --reps 1 --verify --json",
        "duet run cholesky --n 640 --tile 320 --reps 1 --emulate idgraf --json"]),
    # of CUDA where this build has it
    (["JSON: `duet info --json`"], [""], "compiled_for toolkit", [
        "duet info --emulate idgraf --json"]),
    (["JSON: `duet list FILE --json`"], [""], "", [f"duet list {GRAPHS}/rand0000.stg --json"]),
    # what `duet calibrate --nodes` prints under mpirun, cli.calibrate_nodes reads
    (["JSON: `duet calibrate --json`"], [""], "bytes eager_bytes file foreign_s messages network "
     "nodes overhead_s predicted_s rendezvous_s stream_s", [
         f"duet calibrate {SMALL} --emulate free --cpus 1 --gpus 2 --budget 100ms --out mine.json"
         " --json"]),
    (["JSON: `duet tune --json`"], [""], "", [
        f"duet tune {SMALL} --platform ./mine.json --policy ws --budget 100ms --json"]),
    (["CSV: `--csv`", "The file"], [""], "free inf paced runs sqlite3 studies", [
        f"duet simulate {IDGRAF} {NODES} --wall --csv", f"duet run {SMALL} --reps 1 --csv",
        f"duet study {IDGRAF} --gpu-memory 1GiB --link pcie=1x --quiet --out runs.db"]),
    # `failed` is of kernels or copies, whichever a loss interrupts; reductions may leave `barred`
    (["Trace: `--trace`, `DUET_TRACE`"], ["traceEvents"], "barred failed duet_mark duet_stats "
     "duet_phase", [
         f"{EXAMPLE}/fibonacci >&2; cat trace.json", f"{EXAMPLE}/dot_product >&2; cat trace.json",
         "duet run jacobi2d --n 512 --tile 256 --reps 1 --trace run.json",
         "duet run cholesky --emulate idgraf --scale 0.01 --n 1920 --reps 1 --trace scaled.json",
         f"duet simulate {GRAPHS}/diamond.json --platform idgraf --trace graph.json",
         f"duet simulate qr --platform {repository.ROOT}/platforms/idgraf.json --n 3840 --tile 480"
         " --policy auto --hold --trace auto.json",
         f"duet simulate {IDGRAF} --policy auto --param potrf=any --trace choice.json",
         f"duet simulate {IDGRAF} --tile 320 --set-arch --gpus 1 --gpu-memory 5MiB"
         " --trace full.json"]),
    (["Schedule: `--schedule-out`"], [""], "", [
        f"duet simulate {IDGRAF} --schedule-out plan.json"]),
    (["Gantt and page: `--gantt`, `--html`"], [], "report", [
        f"duet simulate {IDGRAF} --gantt run.csv"]),
    (["CSV: `duet study --svg`"], [], "", [
        f"duet study cholesky --platform idgraf --n 1920,3840 --tile 320,480 --gpus 1,2 --policy "
        f"ws,heft --quiet --out {name}.db --svg charts >&2; cat charts/{name}.csv"
        for name in ("speedup-over-gpus-n-1920", "efficiency-over-gpus-n-1920", "effects",
                     "ranking-policy")]),
    (["JSON: `duet validate --json`, `duet compare --json`"], [""], "", [
        "duet compare choice.json full.json --json"]),
    (["CSV: `duet validate --csv`, `duet compare --csv`"], [], "", [
        "duet compare choice.json full.json --csv"]),
    (["JSON: `duet explain --json`"], [""], "", ["duet explain choice.json --json --interval run"]),
    (["Task graphs"], ["", "tasks"], "gpu", [
        f"cat {GRAPHS}/diamond.json", f"duet export {GRAPHS}/rand0000.stg --out graph.json",
        "duet export choice.json --out graph.json"]),
]
# Objects whose keys are no fixed ones: architectures, counters, variables, sizes, options.
BY_NAME = {"idle_share_by_arch", "stats", "environment", "simulations", "settings", "schedule"}
# Keys of the trace event format itself, as browsers read it.
EVENTS = {"pid", "tid", "id", "bp", "labels", "sort_index", "displayTimeUnit", "traceEvents"}
SPAN = re.compile(r"`([^`]+)`")


def members(value, path=()):
    """The paths of all keys; elements of lists count as the list."""
    for element in value if isinstance(value, list) else ():
        yield from members(element, path)
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield (*path, key)
        if key not in BY_NAME:
            yield from members(inner, (*path, key))


def written(command, folder):
    """The paths of the keys that the command writes."""
    environment = dict(os.environ, PATH=f"{repository.BUILD}:{os.environ['PATH']}")
    result = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, check=False,
                            capture_output=True, text=True)
    assert result.returncode == 0, (command, result.stdout, result.stderr)
    file = os.path.join(folder, command.split()[-1])
    text = result.stdout
    if file.endswith(".db"):
        rows = sqlite3.connect(file).execute("PRAGMA table_info(runs)")
        text = ",".join(row[1] for row in rows)
    elif command.startswith("duet") and os.path.exists(file):
        text = pathlib.Path(file).read_text(encoding="utf-8")
    if text[0] != "{":  # columns, those of any architecture as one
        return {(re.sub(r"^idle_share_\w+$", "idle_share_x5650", name),)
                for name in text.splitlines()[0].split(",")}
    document = json.loads(text)
    for event in document.get("traceEvents", ()):
        if event.get("cat") in ("kernel", "copy"):
            event[event["cat"]] = event.pop("args")
    return set(members(document))


def spans(text):
    """The names in backticks, and the keys of pieces of JSON there."""
    found = SPAN.findall(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("[]", ""))
    names = {name for name in found if re.fullmatch(r"[A-Za-z_]\w*", name)}
    return names.union(*(re.findall(r'"(\w+)":', name) for name in found)) - {"null", "true",
                                                                             "false"}


def documented(heading, roots):
    """The rows of a section: the paths of keys, and the names said of them; prose is of none."""
    text = PAGES.partition(f"# {heading}\n")[2]
    assert text, heading
    text = re.split(r"^#+ ", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE)[0]
    base = ""
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        if not block.startswith("|"):
            yield {()}, spans(block)
            continue
        root = next(roots)
        for first, rest in (line.strip("| ").split(" | ", 1) for line in lines[2:]):
            paths = set()
            for name in SPAN.findall(first.replace("[]", "")):
                base = base if name.startswith(".") else name.partition(".")[0]
                path = f"{root}.{base}{name}" if name.startswith(".") else f"{root}.{name}"
                paths.add(tuple(path.strip(".").split(".")))
            yield paths, spans(rest)


def problems_of(headings, roots, words, keys):
    roots = iter(roots)
    rows = [row for heading in headings for row in documented(heading, roots)]
    above = {path[:length] for paths, _ in rows for path in paths for length in range(len(path))}
    leaves = {path[-1] for paths, _ in rows for path in paths if path} | set(words.split())
    prose = set().union(*(names for paths, names in rows if () in paths), EVENTS)
    for key in sorted(keys - above):
        if not any(key[:len(path)] == path and set(key[len(path):]) <= names | prose
                   for paths, names in rows for path in paths):
            yield f"{headings}: {'.'.join(key)} is written and not documented"
    for paths, names in rows:
        below = {name for key in keys for path in paths if key[:len(path)] == path
                 for name in key[len(path):]}
        for name in sorted({".".join(path) for path in paths - keys - {()}}
                           | names - below - leaves):
            yield f"{headings}: {name} is documented and not written"


with tempfile.TemporaryDirectory() as scratch:
    found = [problem for headings, roots, words, commands in SECTIONS for problem in problems_of(
        headings, roots, words, set().union(*(written(command, scratch) for command in commands)))]
repository.finish(found, "what is written is documented")
