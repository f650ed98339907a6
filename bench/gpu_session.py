# SPDX-License-Identifier: Apache-2.0
"""Measures for the parts of bench/gpu.py: programs that end in time, rows of figures, checks, and a
record that is on the disk after each of them."""

import contextlib
import datetime
import functools
import glob
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import common
import gpu_report

SKIPPED = 77
GIB = 1 << 30
LOG_BYTES = 200000  # of one log: the middle of a longer one is cut out
SMI = ["nvidia-smi", "--format=csv,noheader", "--query-gpu="
       "name,driver_version,clocks.max.sm,clocks.max.mem,power.limit,pcie.link.gen.current,"
       "pcie.link.width.current"]
STATES = ["nvidia-smi", "--format=csv,noheader,nounits", "-lms", "250", "--query-gpu="
          "clocks.sm,temperature.gpu,power.draw,clocks_throttle_reasons.active"]
LATE = "no time left: not finished in its share of the time"
IDLE = 0x3  # of the reasons: idle, and clocks that applications have set


class Stopped(Exception):
    """A measurement that did not succeed; the text says why."""


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip().split("skipped: ")[-1] if lines else "no message"


@functools.cache
def watcher():
    """A process that reads the groups of children, and kills the last once this program is gone."""
    script = "while read group; do last=$group; done; kill -9 -$last"
    return subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, preexec_fn=os.setpgrp,
                            bufsize=0, stderr=subprocess.DEVNULL)


def lead_group():
    """In a child: signals reach all that it starts, which does not outlive this program."""
    os.setpgrp()
    watcher().stdin.write(f"{os.getpid()}\n".encode())


def start_program(command, most, variables=None, grace=12):
    """(status, standard output, errors), where a status of None says that it ran out of time. It is
    interrupted then, as duet reports the runs that are finished, and killed after `grace` seconds,
    more than duet's watchdog, with all that it has started."""
    watcher()
    with tempfile.TemporaryFile("w+", errors="replace") as output, \
            tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=errors, preexec_fn=lead_group,
                                   env={**os.environ, **(variables or {})})
        status = None
        try:
            for number, seconds in (0, most), (signal.SIGINT, grace), (signal.SIGKILL, 5):
                with contextlib.suppress(subprocess.TimeoutExpired, ProcessLookupError):
                    if number:
                        os.killpg(process.pid, number)
                    ended = process.wait(max(seconds, 0.1))
                    status = None if number else ended
                    break
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            watcher().stdin.write(b"\n")
        for stream in output, errors:
            stream.seek(0)
        return status, output.read(), errors.read()


def find_libraries(names):
    """The folders to be searched for these shared libraries where the loader does not know them by
    itself: named by the user, beside nvcc, or of Python's packages. Stopped if one is nowhere."""
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda",
             os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("nvcc") or "/x/x")))]
    folders = [f"{root}/{name}" for root in roots if root for name in ("lib64", "lib")]
    packages = [folder for path in sys.path for folder in glob.glob(f"{path}/nvidia/*/lib")]
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False)
    own = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    found = set()
    for name in names:
        if f"\t{name} " in known.stdout or any(os.path.exists(f"{path}/{name}") for path in own):
            continue
        places = [path for path in folders + packages if os.path.exists(f"{path}/{name}")]
        if not places:
            raise Stopped(f"{name} is nowhere: not known to the loader, and not in "
                          f"{', '.join(dict.fromkeys(folders + packages))}: name its folder in "
                          "LD_LIBRARY_PATH")
        # libraries that it needs itself, as cuSOLVER needs cuSPARSE, may be in another package
        found.update(packages if places[0] in packages else places[:1])
    return sorted(found)


class States:
    """Samples the GPU's clocks, heat and power while rows are made, by nvidia-smi in a loop."""

    def __init__(self):
        self.lines = []
        if shutil.which(STATES[0]):
            process = subprocess.Popen(STATES, stdout=subprocess.PIPE, text=True,
                                       stderr=subprocess.DEVNULL)
            threading.Thread(target=self.lines.extend, args=[process.stdout], daemon=True).start()

    def since(self, first):
        """The most that was seen from line number `first` on."""
        words = [line.replace(" ", "").strip().split(",") for line in self.lines[first:]]
        try:
            clocks, heat, power, reasons = zip(*words)
            reasons = {name for name in reasons if int(name, 16) & ~IDLE}
            return {"sm_MHz": max(map(float, clocks)), "celsius": max(map(float, heat)),
                    "watts": max(map(float, power)), "throttled": ",".join(sorted(reasons)) or None}
        except ValueError:  # nothing was seen, or this GPU does not tell
            return {}


class Session:
    def __init__(self, options):
        self.options = options
        self.start = time.monotonic()
        self.planned_s = 8 * options.plan  # time to look at the machine; then rows, as planned
        self.deadline = self.until = self.start + options.budget
        self.part = "info"
        self.cores = len(os.sched_getaffinity(0))
        self.expected_s = self.taken_s = 1.0  # sums over the rows measured, to scale what comes
        self.row_s = 0.0  # after which a row hangs
        self.cut = False  # the row that is being made is not complete
        self.pin = ["--pin", f"{0.75 * options.memory:.0f}GiB"] if options.memory else []
        self.record = {"schema": 4, "rows": [], "checks": [], "failures": [], "omitted": [],
                       "texts": {}, "goals": [], "runs": [], "smi": "", "info": ""}
        self.logs, self.before = {}, []
        self.states = States() if not options.plan else None

    def probe(self):
        """Looks for a GPU, and takes up what is in the output's folder. None, or why not."""
        info = [*self.options.duet, "info"]
        status, output, errors = start_program([*info, "--gpus", 1, "--json"], 60)
        if status:
            return last_line(errors)
        self.record.update(machine=json.loads(output), info=start_program(info, 60)[1])
        self.record["smi"] = start_program(SMI, 30)[1].strip() if shutil.which(SMI[0]) else ""
        return self.take_up()

    def take_up(self):
        """Goes on with the record that is there, which has to be of this GPU and this duet."""
        path = self.options.output / "results.json"
        if not path.exists():
            return
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
            same = [(of["machine"]["build"], gpu_report.gpu_of(of)) for of in (before, self.record)]
        except (ValueError, KeyError, TypeError) as error:
            raise Stopped(f"{path}: not written by gpu.py: {error!r}") from None
        if same[0] != same[1]:
            raise Stopped(f"{path}: of another GPU or another duet: name another folder (--output)")
        # what failed, was cut short or left out is tried again
        for part in self.options.only:
            again = part in self.options.again
            for key in "rows", "checks", "failures", "omitted":
                before[key] = [entry for entry in before[key] if entry["part"] != part or not (
                    again or key in ("failures", "omitted") or entry.get("cut") or
                    "failed" in entry.get("outcome", ""))]
            if again:
                before["texts"].pop(part, None)
            if part == "validate" and (again or before.get("validation", {}).get("cut")):
                before.pop("validation", None)
        self.record = {**before, **{key: self.record[key] for key in ("machine", "info", "smi")}}
        self.before = before["runs"]
        if path.with_name("logs.tgz").exists():
            with tarfile.open(path.with_name("logs.tgz")) as tar:
                self.logs = {name: tar.extractfile(name).read() for name in tar.getnames()}

    def save(self):
        """Writes the page, the values and the logs, each in one step: what is there is whole."""
        if self.options.plan:
            return
        self.record["runs"] = [*self.before, {
            "date": datetime.date.today().isoformat(), "command": shlex.join(sys.argv),
            "seconds": self.now() - self.start, "parts": self.options.only}]
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for name, data in self.logs.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        page = gpu_report.markdown(self.record)
        for name, data in (("results.json", json.dumps(self.record, indent=1).encode()),
                           ("results.md", page.encode()), ("logs.tgz", packed.getvalue())):
            beside = self.options.output / f".{name}"
            beside.write_bytes(data)
            os.replace(beside, self.options.output / name)

    def now(self):
        return time.monotonic() + self.planned_s

    def left(self):
        return min(self.until, self.deadline) - self.now()

    def begin(self, part, share):
        """The part gets `share`, at most 1, of the time that is left."""
        self.part = part
        self.until = self.now() + share * (self.deadline - self.now())
        print(f"gpu: {part}, {self.left():.0f} of {self.deadline - self.now():.0f} s",
              file=sys.stderr, flush=True)

    def log(self, command, text):
        data = f"{shlex.join(map(str, command))}\n{text}".encode()
        cut = len(data) - LOG_BYTES
        self.logs[f"{len(self.logs) + 1:03}-{self.part}.log"] = data if cut <= 0 else (
            data[:LOG_BYTES // 2] + b"\n[...]\n" + data[-LOG_BYTES // 2:])

    def omit(self, what, why):
        self.record["omitted"].append({"part": self.part, "what": what, "why": why})
        self.save()

    def fail(self, what, why):
        self.record["failures"].append({"part": self.part, "what": what, "why": str(why)})
        print(f"gpu: {what} failed: {why}", file=sys.stderr, flush=True)

    def memory(self):
        """Bytes of the host's that are free, or will be: a virtual machine's memory may grow."""
        with open("/proc/meminfo", encoding="ascii") as lines:
            free = next(int(line.split()[1]) << 10 for line in lines if "MemAvailable" in line)
        return max(free, self.options.memory * GIB)

    def begins(self, what, seconds, bytes_=0):
        """Says if time and memory are left, and names `what` as left out if not. A plan prints it,
        lets its time pass and says no."""
        expected = seconds
        seconds *= min(max(self.taken_s / self.expected_s, 0.25), 4)
        if bytes_ > 0.85 * self.memory():
            self.omit(what, f"needs {bytes_ / GIB:.0f} GiB of the host's memory, "
                            f"{0.85 * self.memory() / GIB:.0f} GiB may be used (--memory)")
        elif self.left() < seconds:
            self.omit(what, f"takes about {seconds:.0f} s, {max(self.left(), 0):.0f} s are left")
        elif not self.options.plan:
            self.row_s = 4 * seconds + 20
            return True
        else:
            print(f"{self.now() - self.start:7.1f} s  {self.part:9} {expected:6.1f} s  {what}")
            self.planned_s += expected
        return False

    def execute(self, command, variables=None, some=False):
        """(standard output, remarks on standard error) of what is measured, which may be cut short
        by the time or, with `some`, by failures of cases."""
        status, output, errors = start_program(command, min(self.left(), self.row_s), variables)
        self.log(command, errors + output)
        self.cut = status is None or (status == 1 and some)
        if status is None and self.left() > 0:
            raise RuntimeError(f"it hangs: not finished in {self.row_s:.0f} s")
        if self.cut and not output.strip():
            raise Stopped(LATE)
        if status == SKIPPED:
            raise Stopped(last_line(errors))
        if status and not self.cut:
            raise RuntimeError(f"status {status}: {last_line(errors)}")
        if status:
            self.fail("a case", last_line(errors))
        return output, [line for line in errors.splitlines() if "cuda:" in line]

    def attempt(self, what, measure, seconds=5.0, bytes_=0):
        """Makes and returns the rows of `what` by `measure`, or those of an earlier call. None: it
        failed or was left out. `seconds` are what it takes on an H100."""
        rows = self.rows(key=what)
        if rows or not self.begins(what, seconds, bytes_):
            return rows
        begun, first, self.cut = self.now(), len(self.states.lines), False
        try:
            rows = measure() or []
            if self.cut:
                self.omit(what, "not all of it is measured: no time left, or some of it failed")
        except Stopped as stopped:
            self.omit(what, str(stopped))
        except Exception as error:  # whatever it is, the rest goes on
            self.fail(what, error if isinstance(error, RuntimeError) else repr(error))
        if rows:
            self.expected_s += seconds
            self.taken_s += self.now() - begun
        facts = {"part": self.part, "key": what, "seconds": self.now() - begun, "cut": self.cut,
                 **self.states.since(first)}
        rows = [{**facts, **row, **common.figures(row["values"])} for row in rows]
        self.record["rows"] += rows
        self.save()
        return rows

    def check(self, name, command, most=120.0, variables=None, seconds=2.0, unable=None):
        """Runs a program whose status is its outcome, or which is skipped if its output matches
        `unable`. Keeps the output, and reports its last line."""
        if any(check["name"] == name and check["part"] == self.part
               for check in self.record["checks"]) or not self.begins(name, seconds):
            return
        begun = self.now()
        status, output, errors = start_program(command, min(most, self.left()), variables, 3)
        self.log(command, output + errors)
        if status is None and self.left() <= 0:
            return self.omit(name, LATE)
        if status and unable and re.search(unable, output + errors):
            status = SKIPPED
        outcome = {0: "passed", SKIPPED: "skipped", None: "failed (out of time)"}.get(
            status, f"failed (status {status})")
        said = last_line(output + "\n" + errors) if status != 0 else None
        self.record["checks"].append({"part": self.part, "name": name, "outcome": outcome,
                                      "seconds": self.now() - begun, "text": said})
        print(f"{name}: {outcome}" + (f": {said}" if said else ""), flush=True)
        self.save()

    def text(self, name, command, seconds):
        """Keeps what a script prints, a table, beside the rows."""
        def measure():
            output, _ = self.execute(command)
            if self.cut:
                raise Stopped(LATE)
            self.record["texts"].setdefault(self.part, {})[name] = output
        if name not in self.record["texts"].get(self.part, {}):
            self.attempt(name, measure, seconds)

    def rows(self, part=None, **facts):
        return [row for row in self.record["rows"] if row["part"] == (part or self.part)
                and all(row.get(key) == value for key, value in facts.items())]

    def program(self, name, arguments, variables=None, seconds=5.0, bytes_=0, **facts):
        """Rows of a program of bench/, which prints one a line, with facts of the caller's."""
        shown = " ".join([*(f"{key}={value}" for key, value in (variables or {}).items()), name,
                          *map(str, arguments)])

        def measure():
            output, _ = self.execute([self.options.programs / name, *arguments], variables)
            return [{**line, **facts} for line in common.series(output)]
        return self.attempt(shown, measure, seconds, bytes_)

    def duet(self, workload, amount=0.0, seconds=5.0, bytes_=0, **options):
        """Rows of `duet run`, one a policy: 10^9 bytes a second if `amount` says how many bytes its
        kernels read and write, else Gflop/s."""
        options = {"reps": self.options.reps, "verify": "last", **options}
        words = ["run", workload, "--gpus", 1, "--quiet", "--json"]
        for key, value in options.items():
            option = "--param" if key == "params" else f"--{key.replace('_', '-')}"
            if value is True:
                words += [option]
            elif value is not None:
                words += [word for each in (value if key == "params" else [value])
                          for word in (option, each)]
        shown = "duet " + shlex.join(map(str, words))
        facts = {"workload": workload, "unit": "GB/s" if amount else "Gflop/s", "copies": True,
                 "slab": options.get("gpu_memory"), "window": options.get("gpu_window"),
                 "streams": options.get("gpu_streams"), "pin": options.get("pin"),
                 "params": ",".join(options.get("params", [])) or None}

        def measure():
            output, said = self.execute([*self.options.duet, words[0], *self.pin, *words[1:]])
            runs = json.loads(output)["runs"]
            if any(run["gpus"] != 1 for run in runs):
                raise RuntimeError("no GPU took part")
            if not all(run["verification"]["passed"] for run in runs if run.get("verification")):
                raise RuntimeError("a wrong result")
            rows = [{**facts, "said": said or None, **row_of(run, amount)} for run in runs
                    if run["makespan_s"]["values"]]
            if not rows:
                raise Stopped("no time left: no run was finished")
            return rows
        return self.attempt(shown, measure, seconds, bytes_)


def row_of(run, bytes_):
    """Row of a run in the JSON report. The makespan ends with the last kernel, the wall time when
    the results are back."""
    seconds = run["makespan_s"]
    amount = 1e-9 * bytes_ or (run["gflops"] or 0) * seconds["median"]
    return {"peer": "duet", **{key: run[key] for key in ("precision", "n", "tile", "cpus", "policy",
                                                         "set_arch")},
            "to_gpu_GB": 1e-9 * run["bytes"]["host_to_device"],
            "to_host_GB": 1e-9 * run["bytes"]["device_to_host"],
            "idle_percent": 100 * run["idle_share"],
            "verified": run["verification"]["passed"] if run.get("verification") else None,
            "values": [amount / value for value in seconds["values"]],
            "back": amount / run["wall_s"] if run.get("wall_s") else None}
