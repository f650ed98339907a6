# SPDX-License-Identifier: Apache-2.0
"""Calls of the command `duet`, with its answers as objects."""

import csv
import dataclasses
import functools
import io
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

loading = None  # script that is being run only for its policies: it may not start simulations
HERE = pathlib.Path(__file__).resolve()


class Error(Exception):
    """What the command or the library refused; the text is its message."""

    def __init__(self, message, status=2):
        super().__init__(message)
        self.status = status  # exit status of the command, or a negative code of duet/error.h


def first_file(paths):
    """The first of the paths that is a file, as text, or None."""
    return next((str(path) for path in paths if path.is_file()), None)


def command_path():
    """The command `duet`: the variable DUET, else beside this package, else on the PATH."""
    beside = [HERE.parents[4] / "bin/duet",  # PREFIX/share/duet/python/duet
              HERE.parents[2] / "build/duet"]  # a repository
    found = os.environ.get("DUET") or first_file(beside) or shutil.which("duet")
    if not found:
        raise Error("there is no command duet: put it on the PATH, or its path into the variable "
                    "DUET")
    return found


SEVERAL = (list, tuple, range, set, frozenset)


def listed(value):
    """The values of an option, of which there may be one."""
    return list(value) if isinstance(value, SEVERAL) else [value]


def option_text(value):
    """A value as the command reads it: lists and ranges joined by commas, flags as 0 and 1."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, SEVERAL):
        return ",".join(map(option_text, value))
    if hasattr(value, "push"):
        raise Error("a policy in Python is an object of a subclass of duet.Policy, for simulate() "
                    "and study(); duet.policy_object makes a file of it for the command")
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def problems_of(workload):
    """Workloads, files and graphs; what is none of these becomes a Graph."""
    from duet.graph import graph
    return [one if isinstance(one, (str, os.PathLike)) or hasattr(one, "save") else graph(one)
            for one in listed(workload)]


def options_of(keywords):
    """Keyword arguments as options: set_arch=True, gpus=range(1, 9), param={"block": 320}."""
    words = []
    for name, value in keywords.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, dict):
            words += [f"{option}={key}={option_text(one)}" for key, one in value.items()]
        else:
            words.append(f"{option}={option_text(value)}")
    return words


def call(*words, accept=(0,), environment=None):
    """What the command prints. Raises Error with its message unless its status is accepted."""
    if loading:
        raise Error(f"{loading} is run again, for its policies, by the simulations that it starts: "
                    'put its calls of duet behind `if __name__ == "__main__":`')
    result = subprocess.run([command_path(), *words], stdin=subprocess.DEVNULL, text=True,
                            capture_output=True, check=False, encoding="utf-8",
                            env={**os.environ, **(environment or {})})
    if result.returncode not in accept or result.returncode and not result.stdout:
        message = result.stderr.strip().removeprefix("duet: ") or f"status {result.returncode}"
        raise Error(message, result.returncode)
    return result.stdout


def call_on(name, workload, program, options, **how):
    """Calls a command for a workload, file or graph, several of them, or a program with its
    arguments."""
    with tempfile.TemporaryDirectory() as folder:
        if program is not None:
            words = ["--", *map(os.fspath, [program] if isinstance(program, str) else program)]
        else:
            words = []
            for number, one in enumerate(problems_of(workload)):
                if hasattr(one, "save"):  # a Graph
                    one = one.save(pathlib.Path(folder, f"{one.name or 'graph'}-{number}.json"))
                words.append(os.fspath(one))
        return call(name, *options_of(options), *words, **how)


def call_runs(name, workload, program, options, environment=None):
    """What `duet simulate`, `run` or `study` prints, and its rows in order unless that is JSON."""
    is_csv = not options.get("json")
    text = call_on(name, workload, program, {"quiet": True, "csv": is_csv, **options},
                   accept=(0, 1), environment=environment)
    return text, in_order(rows_of(text) if is_csv else [], options.get("policy"))


def call_json(name, workload, program, options, accept=(0,)):
    return json.loads(call_on(name, workload, program, {"quiet": True, "json": True, **options},
                              accept=accept))


class Table(list):
    """A list of dicts, one a run, whose members are the columns of `--csv` in docs/formats.md."""

    def __init__(self, rows, again=None):
        super().__init__(rows)
        self.text = None  # of a study, what the command prints of it
        self._again = again  # calls the command once more, for one row, with further options

    def __repr__(self):
        """What a study says; else a line a row: what tells the rows apart, and their results."""
        if self.text or not any("makespan_s" in row for row in self):
            return self.text or super().__repr__()
        names = [name for name in (*SORTED, "policy", "seed")
                 if len({str(row.get(name)) for row in self}) > 1]
        names += ["makespan_s", "gflops", *["error"] * any(row.get("error") for row in self)]
        lines = [names, *([str(row.get(name)) for name in names] for row in self)]
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)

    @functools.cached_property
    def data(self):
        """The whole JSON of docs/formats.md, for which one setting is simulated once more."""
        return json.loads(self._rerun(None, json=True))

    def pandas(self):
        """The table as a pandas.DataFrame."""
        import pandas
        return pandas.DataFrame(list(self))

    def best(self, key="makespan_s"):
        """The row in which this number is least."""
        rows = [row for row in self if row.get(key) is not None]
        if not rows:
            raise Error(f"no row of this table has a number '{key}'")
        return min(rows, key=lambda row: row[key])

    def _rerun(self, row, **options):
        if self._again is None:
            raise Error("these runs cannot be made again for this: only those of simulate() can")
        return self._again(row, options)

    def _write(self, option, path, row):
        self._rerun(self[row], **{option: path})
        return pathlib.Path(path)

    def trace(self, path=None, row=0):
        """The trace of a row's first run, which is simulated again; a file of Perfetto."""
        if path is not None:
            return Trace(self._write("trace", path, row))
        with tempfile.TemporaryDirectory() as folder:
            trace = Trace(self._write("trace", pathlib.Path(folder, "trace.json"), row))
            trace.data  # is read while the file is there
            return trace

    def gantt(self, path, row=0):
        """Draws a row's first run: .svg, and its bars as .csv, by duet, others by matplotlib."""
        if pathlib.Path(path).suffix in (".svg", ".csv"):
            return self._write("gantt", path, row)
        self.trace(row=row).gantt().figure.savefig(path)
        return pathlib.Path(path)

    def html(self, path, row=0):
        """The page of a row's run, with all that is known of it."""
        return self._write("html", path, row)


class Trace:
    """A trace: the kernels and copies of one run, by date."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    @functools.cached_property
    def data(self):
        return json.loads(self.path.read_text(encoding="utf-8"))

    @property
    def workers(self):
        return [worker["name"] for worker in self.data["otherData"]["workers"]]

    def tasks(self):
        """Kernels as dicts: name, worker, start_s, end_s, and what the trace has beside (args)."""
        return self._events("kernel")

    def copies(self):
        return self._events("copy")

    def _events(self, category):
        names = {(event["pid"], event.get("tid")): event["args"]["name"]
                 for event in self.data["traceEvents"]
                 if event["name"] in ("thread_name", "process_name")}
        workers = set(self.workers)  # those of GPUs are processes in the trace

        def worker(event):
            name = names.get((event["pid"], event["tid"]))
            return name if name in workers else names.get((event["pid"], None))
        return [{"name": event["name"], "worker": worker(event), "start_s": event["ts"] / 1e6,
                 "end_s": (event["ts"] + event["dur"]) / 1e6, **event.get("args", {})}
                for event in self.data["traceEvents"] if event.get("cat") == category]

    def gantt(self, axes=None):
        """Draws the kernels with matplotlib; returns the axes."""
        if axes is None:
            from matplotlib.figure import Figure
            size = (12, 1 + 0.25 * len(self.workers))
            axes = Figure(figsize=size, layout="constrained").subplots()
        rows = {name: number for number, name in enumerate(self.workers)}
        bars = {}
        for task in self.tasks():
            bars.setdefault(task["name"], {}).setdefault(rows[task["worker"]], []).append(
                (task["start_s"], task["end_s"] - task["start_s"]))
        for color, (name, lines) in enumerate(sorted(bars.items())):
            for line, (row, spans) in enumerate(lines.items()):
                axes.broken_barh(spans, (row - 0.4, 0.8), facecolors=f"C{color}",
                                 label="_" if line else name)
        axes.set_yticks(list(rows.values()), list(rows))
        axes.invert_yaxis()
        axes.set_xlabel("seconds")
        axes.legend()
        return axes

    def explain(self, **options):
        """`duet explain`: why the run took so long (docs/explain.md)."""
        return explain(self, **options)

    def __fspath__(self):
        if not self.path.is_file():
            raise Error(f"the trace {self.path} is not kept: call trace() with a path")
        return str(self.path)


# Columns that make a row what it is, in the order by which rows are sorted; restated are those that
# an option says again when one row is simulated alone.
RESTATED = ("n", "gpus", "cpus", "tile", "precision", "policy")
SORTED = ("workload", "platform", *RESTATED[:-1], "settings")


def _value(name, text):
    if name in ("set_arch", "hold"):
        return text in ("1", "true")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"": None, "true": True, "false": False}.get(text, text)


def rows_of(text):
    return [{name: _value(name, value) for name, value in row.items()}
            for row in csv.DictReader(io.StringIO(text))]


def in_order(rows, policy):
    """Sorts rows, which come as their simulations end; policies as they were given."""
    order = policy.split(",") if isinstance(policy, str) else policy or ()
    place = {name: number for number, name in enumerate(map(str, order))}

    def key(row):
        values = [row.get(name) for name in SORTED]
        name = row.get("policy")
        return ([(isinstance(value, str), value or 0) for value in values],
                place.get(name, 0), str(name), row.get("rep", 0))
    return sorted(rows, key=key)


def _runs(name, workload, program, options):
    """What `duet simulate` or `duet study` prints, a text and its rows for each of its calls."""
    from duet import policy
    if policy.objects(options):
        with tempfile.TemporaryDirectory() as folder:
            return list(policy.run_each(name, workload, options, folder))
    return [call_runs(name, workload, program, options)]


def simulate(workload=None, *, program=None, **options):
    """`duet simulate`: a Table with a row for each run of each combination of options' values."""
    from duet import policy

    def again(row, further):
        stated = {}
        if row is not None:
            row = {**row, "policy": policy.objects(options).get(row["policy"], row["policy"])}
            stated = {name: row[name] for name in RESTATED if name in options}
            stated.update(reps=1, seed=row["seed"])
        return _runs("simulate", workload, program, {**options, **stated, **further})
    return Table([row for _, rows in again(None, {}) for row in rows],
                 lambda row, further: again(row, further)[0][0])


def run(workload=None, *, program=None, **options):
    """`duet run`: runs on this machine, or on GPUs that it emulates. A Table."""
    return Table(call_runs("run", workload, program, options)[1])


def study(workload=None, *, program=None, out=None, **options):
    """`duet study`: a Table with a row a run. `out` keeps the results, so that the next study with
    this file simulates only what is not in it."""
    with tempfile.TemporaryDirectory() as folder:
        options["out"] = pathlib.Path(folder, "study.db") if out is None else out
        table = Table(row for _, rows in _runs("study", workload, program, options) for row in rows)
        table.text = call("study", *options_of({"show": True, "out": options["out"],
                                                "best": options.get("best")}))
        return table


def tune(workload=None, *, program=None, **options):
    """`duet tune`: the best settings first, as a Table; `data` says how sure that is."""
    data = call_json("tune", workload, program, options)
    table = Table(data["best"])
    table.data = data
    return table


def validate(workload=None, *, program=None, **options):
    """`duet validate`: the JSON of the comparison of runs with simulations, as a dict."""
    return call_json("validate", workload, program, options, accept=(0, 1))


def explain(trace, **options):
    """`duet explain`: the JSON of why a run took so long, as a dict; `trace`: a Trace or a path."""
    return call_json("explain", trace, None, options)


def compare(first, second, **options):
    """`duet compare`: the JSON of how two traces or reports differ, as a dict."""
    return call_json("compare", [first, second], None, {"quiet": None, **options}, accept=(0, 1))


def info(**options):
    """`duet info`: this duet, this machine, and what a run would use of it, as a dict."""
    return call_json("info", [], None, {"quiet": None, **options})


def _descriptions(kind):
    """Names that `duet list` prints, with their descriptions, as a dict."""
    lines = (line.split(None, 1) for line in call("list", kind).splitlines()
             if line and not line[0].isspace())
    return {words[0]: words[1] if len(words) > 1 else "" for words in lines}


policies = functools.partial(_descriptions, "policies")
workloads = functools.partial(_descriptions, "workloads")


@dataclasses.dataclass(frozen=True)
class Platform:
    """A machine to simulate, by its name or file: usable as `platform=`."""

    name: str
    description: str = ""

    def __str__(self):
        return str(self.name)

    def machine(self, **options):
        """Workers, memories, links and routes of the machine, as `duet info` has them."""
        return info(emulate=self.name, **options)

    def warnings(self):
        """What `duet platform check` finds suspicious; "" if nothing."""
        text = call("platform", "check", str(self), accept=(0, 1))
        return "" if text.rstrip().endswith("nothing is suspicious") else text

    @classmethod
    def new(cls, out, **options):
        """`duet platform new`: a machine made of devices of public data sheets, in a file."""
        call("platform", "new", *options_of({**options, "out": out}))
        return cls(out)


def platforms():
    """The machines that come with duet, by name."""
    return {name: Platform(name, text) for name, text in _descriptions("platforms").items()}
