# SPDX-License-Identifier: Apache-2.0
"""What the parts of bench/gpu.py measure with: programs within the time that is left, rows of
figures, checks, and what failed."""

import datetime
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time

import common

SKIPPED = 77
SMI = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit,"
       "pcie.link.gen.current,pcie.link.width.current", "--format=csv,noheader"]


class Stopped(Exception):
    """A measurement that did not succeed; the text says why."""


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip().split("skipped: ")[-1] if lines else "no message"


def start_program(command, most, variables=None):
    """(status, standard output, errors), where a status of None says that it ran out of time.
    It is then interrupted first: duet reports the runs that are finished."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                          env={**os.environ, **(variables or {})}) as process:
        for seconds, stop in (most, lambda: process.send_signal(signal.SIGINT)), (20, process.kill):
            try:
                output, errors = process.communicate(timeout=seconds)
                return process.returncode if seconds == most else None, output, errors
            except subprocess.TimeoutExpired:
                stop()
        return None, *process.communicate()


class Session:
    def __init__(self, options, before):
        self.options = options
        self.start = time.monotonic()
        self.deadline = self.start + options.budget  # of all
        self.until = self.deadline                   # of the part at hand
        self.part = "info"
        self.cores = len(os.sched_getaffinity(0))
        self.record = {"schema": 3, "rows": [], "checks": [], "failures": [], "omitted": [],
                       "runs": [], **(before or {})}
        self.before = list(self.record["runs"])

    # --------------------------------------------------------------------------------------------
    # Begin, end, and time

    def probe(self):
        """None, or why there is no GPU."""
        info = [*self.options.duet, "info", *self.options.run_options]
        status, output, errors = start_program([*info, "--gpus", 1, "--json"], 60)
        if status:
            return last_line(errors)
        self.record["machine"] = json.loads(output)
        self.record["info"] = start_program(info, 60)[1]
        self.record["smi"] = start_program(SMI, 30)[1].strip() if shutil.which(SMI[0]) else ""
        return None

    def finish(self):
        """The record, with what this run was, as far as it has come."""
        run = {"date": datetime.date.today().isoformat(), "command": shlex.join(sys.argv),
               "seconds": time.monotonic() - self.start, "parts": self.options.only}
        self.record["runs"] = [*self.before, run]
        return self.record

    def left(self):
        return min(self.until, self.deadline) - time.monotonic()

    def begin(self, part, share):
        """The part gets `share`, at most 1, of the time that is left, and some seconds at least."""
        self.part = part
        self.until = time.monotonic() + max(10, share * (self.deadline - time.monotonic()))
        # what is measured anew replaces what was
        for key in "rows", "checks", "failures", "omitted":
            self.record[key] = [entry for entry in self.record[key] if entry["part"] != part]
        print(f"gpu: {part}, {self.left():.0f} s at most", file=sys.stderr, flush=True)

    # --------------------------------------------------------------------------------------------
    # Programs

    def execute(self, command, variables=None):
        """Standard output of what is measured."""
        if self.left() < 2:
            raise Stopped("no time left")
        status, output, errors = start_program(command, self.left(), variables)
        if status is None and not output.strip():
            raise Stopped("no time left: not finished in its share of the time")
        if status == SKIPPED:
            raise Stopped(last_line(errors))
        if status:
            raise RuntimeError(f"status {status}: {last_line(errors)}")
        return output

    def check(self, name, command, most=120):
        """Runs what succeeds or fails; its output is kept, and its last line reported."""
        started = time.monotonic()
        most = min(most, self.deadline - started)
        status, output, errors = (start_program(command, most) if most > 0
                                  else (SKIPPED, "no time left", ""))
        logs = self.options.output.parent / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        (logs / f"{name}.log").write_text(output + errors, encoding="utf-8")
        outcome = {0: "passed", SKIPPED: "skipped", None: "failed (out of time)"}.get(
            status, f"failed (status {status})")
        entry = {"part": self.part, "name": name, "outcome": outcome,
                 "seconds": time.monotonic() - started}
        if status != 0:
            entry["text"] = last_line(output + "\n" + errors)
        self.record["checks"].append(entry)
        print(f"{name}: {outcome}" + (f": {entry['text']}" if status else ""), flush=True)

    def omit(self, what, why):
        entry = {"part": self.part, "what": what, "why": why}
        if entry not in self.record["omitted"]:
            self.record["omitted"].append(entry)

    def attempt(self, what, measure):
        """The rows that `measure` returns, which are added; none if that is among what failed or
        was left out."""
        try:
            rows = [{"part": self.part, **row, **common.figures(row["values"])}
                    for row in measure() or []]
            self.record["rows"] += rows
            return rows
        except Stopped as stopped:
            self.omit(what, str(stopped))
        except Exception as error:  # whatever it is, the rest goes on
            why = str(error) if isinstance(error, RuntimeError) else repr(error)
            self.record["failures"].append({"part": self.part, "what": what, "why": why})
            print(f"gpu: {what} failed: {why}", file=sys.stderr, flush=True)
        return []

    # --------------------------------------------------------------------------------------------
    # Rows

    def rows(self, part=None, **facts):
        return [row for row in self.record["rows"] if row["part"] == (part or self.part)
                and all(row.get(key) == value for key, value in facts.items())]

    def fits(self, bytes_, what):
        """Whether the host's memory holds that much; else it is noted once."""
        available = self.record["machine"]["host"]["free_bytes"]
        if bytes_ >= 0.8 * available:
            self.omit(what, f"needs {bytes_ / 2**30:.0f} GiB of the host's memory, "
                            f"{available / 2**30:.0f} GiB are available")
            return False
        return True

    def program(self, name, arguments, variables=None, **facts):
        """Rows of a program of bench/, which prints one a line, with facts of the caller's."""
        shown = " ".join([*(f"{key}={value}" for key, value in (variables or {}).items()), name,
                          *map(str, arguments)])

        def measure():
            path = self.options.programs / name
            if not path.exists():
                raise Stopped(f"{name} is not there (built where the CUDA toolkit is)")
            return [{**line, **facts, "command": shown}
                    for line in common.series(self.execute([path, *arguments], variables))]
        return self.attempt(shown, measure)

    def peer(self, workload, block=None, **options):
        """Rows of cuda_peers."""
        options = {"repeats": self.options.reps, "limit": max(1, int(self.left() / 3)), **options,
                   **({"block": block} if block else {})}
        words = [word for key, value in options.items() for word in (f"--{key}", value)]
        return self.program("cuda_peers", [workload, *words], tile=block)

    def duet(self, workload, bytes_=0, choice=None, **options):
        """Rows of `duet run`, one a policy: 10^9 bytes a second if it is said how many bytes its
        kernels read and write, else Gflop/s. Those of a choice of options run once, unverified."""
        options = {"reps": 1 if choice else self.options.reps, "verify": not choice, **options}
        words = ["run", workload, "--gpus", 1, "--quiet", "--json", *self.options.run_options]
        for key, value in options.items():
            option = "--param" if key == "params" else f"--{key.replace('_', '-')}"
            if value is True:
                words += [option]
            elif value not in (None, False):
                words += [word for each in (value if key == "params" else [value])
                          for word in (option, each)]
        shown = "duet " + shlex.join(map(str, words))
        facts = {"workload": workload, "unit": "GB/s" if bytes_ else "Gflop/s", "choice": choice,
                 "command": shown, "copies": True, "slab": options.get("gpu_memory"),
                 "window": options.get("gpu_window"), "streams": options.get("gpu_streams"),
                 "params": ",".join(options.get("params", [])) or None,
                 "pin": options.get("pin")}

        def measure():
            runs = json.loads(self.execute([*self.options.duet, *words]))["runs"]
            if any(run["gpus"] != 1 for run in runs):
                raise RuntimeError(f"no GPU took part: {shown}")
            if options["verify"] and not all((run.get("verification") or {}).get("passed")
                                             for run in runs):
                raise RuntimeError(f"a wrong result: {shown}")
            rows = [{**facts, **row_of(run, bytes_)} for run in runs if run["makespan_s"]["values"]]
            if not rows:
                raise Stopped("no time left: no run was finished")
            return rows
        return self.attempt(shown, measure)


def row_of(run, bytes_):
    """What a run of the JSON report comes to. The makespan ends with the last kernel, the wall time
    when the results are back."""
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
