# SPDX-License-Identifier: Apache-2.0
"""What the parts of bench/gpu.py measure with: programs within the time that is left, rows of
figures, checks, and what failed."""

import datetime
import json
import os
import platform
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


def system_file(path, key):
    """The value of a line "key: value" of a file in /proc; empty where there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith(key)),
                        "")
    except OSError:
        return ""


def memory_bytes(key):
    return 1024 * int((system_file("/proc/meminfo", key) or "0").split()[0])


def flops_of(run):
    return 1e9 * run["gflops"] * run["makespan_s"]["median"] if run["gflops"] else 0


class Session:
    def __init__(self, options, before):
        self.options = options
        self.start = time.monotonic()
        self.deadline = self.start + options.budget  # of all
        self.until = self.deadline                   # of the part at hand
        self.part = "info"
        self.why = ""
        self.record = {"schema": 2, "rows": [], "checks": [], "failures": [], "omitted": [],
                       "runs": [], "info": "", "machine": {"device": {}}, **(before or {})}
        self.before = list(self.record["runs"])
        self.cores = len(os.sched_getaffinity(0))

    # --------------------------------------------------------------------------------------------
    # Time

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

    def start_program(self, command, most, variables=None):
        """(status, standard output, errors), where a status of None says that it ran out of time.
        It is then interrupted first: duet reports the runs that are finished."""
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                              env={**os.environ, **(variables or {})}) as process:
            try:
                output, errors = process.communicate(timeout=most)
                return process.returncode, output, errors
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
                try:
                    output, errors = process.communicate(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    output, errors = process.communicate()
                return None, output, errors

    def execute(self, command, variables=None):
        """Standard output of what is measured."""
        if self.left() < 2:
            raise Stopped("no time left")
        status, output, errors = self.start_program(command, max(self.left(), 2), variables)
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
        status, output, errors = (self.start_program(command, most) if most > 0
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
        """What `measure` returns, or None: then it is among what failed or was left out."""
        try:
            return measure()
        except Stopped as stopped:
            self.omit(what, str(stopped))
        except Exception as error:  # whatever it is, the rest goes on
            why = str(error) if isinstance(error, RuntimeError) else repr(error)
            self.record["failures"].append({"part": self.part, "what": what, "why": why})
            print(f"gpu: {what} failed: {why}", file=sys.stderr, flush=True)
        return None

    # --------------------------------------------------------------------------------------------
    # Rows

    def rows(self, part=None, **facts):
        return [row for row in self.record["rows"] if row["part"] == (part or self.part)
                and all(row.get(key) == value for key, value in facts.items())]

    def program(self, name, arguments, variables=None, **facts):
        """Rows of cuda_peers or cuda_overhead, which print one a line: its values and facts."""
        def measure():
            path = self.options.programs / name
            if not path.exists():
                raise Stopped(f"{name} is not there (built where the CUDA toolkit is)")
            shown = " ".join([*(f"{key}={value}" for key, value in (variables or {}).items()),
                              name, *map(str, arguments)])
            rows = [{"part": self.part, **line, **facts, **common.figures(line["values"]),
                     "command": shown}
                    for line in common.objects(self.execute([path, *arguments], variables))]
            self.record["rows"] += rows
            return rows
        return self.attempt(f"{name} {' '.join(map(str, arguments))}", measure) or []

    def peers(self, mode, **arguments):
        """Rows of a mode of cuda_peers."""
        words = [word for key, value in arguments.items() for word in (f"--{key}", value)]
        return self.program("cuda_peers", [mode, "--repeats", self.options.reps, "--limit",
                                           max(1, int(self.left() / 3)), *words])

    def duet_runs(self, workload, **options):
        """(command, runs) of `duet run --json`, one a policy."""
        command = [*self.options.duet, "run", workload, "--gpus", 1, "--quiet", "--json",
                   *self.options.run_options]
        for key, value in options.items():
            option = f"--{key.replace('_', '-')}"
            if value is True:
                command += [option]
            elif key == "params":
                command += [word for parameter in value for word in ("--param", parameter)]
            elif value is not None and value is not False:
                command += [option, value]
        runs = json.loads(self.execute(command))["runs"]
        shown = "duet " + shlex.join(map(str, command[len(self.options.duet):]))
        for run in runs:
            if run["gpus"] != 1 or run["world"] != "real" and not self.options.run_options:
                raise RuntimeError(f"no GPU took part: {shown}")
            if options.get("verify") and not (run.get("verification") or {}).get("passed"):
                raise RuntimeError(f"a wrong result: {shown}")
        return shown, runs

    def duet(self, workload, bytes_=0, choice=None, **options):
        """Rows of `duet run`, one a policy: 10^9 bytes a second if it is said how many bytes its
        kernels read and write, else Gflop/s. Those of a choice of options run once, unverified."""
        options = {"reps": 1 if choice else self.options.reps, "verify": not choice, **options}

        def measure():
            command, runs = self.duet_runs(workload, **options)
            rows = [self.row(run, bytes_ or flops_of(run), options) for run in runs
                    if run["makespan_s"]["values"]]
            if not rows:
                raise Stopped("no time left: no run was finished")
            facts = {"part": self.part, "unit": "GB/s" if bytes_ else "Gflop/s", "choice": choice,
                     "command": command}
            self.record["rows"] += ({**facts, **row} for row in rows)
            return rows
        label = " ".join(f"{key}={value}" for key, value in options.items())
        return self.attempt(f"duet run {workload} {label}", measure) or []

    def row(self, run, amount, options):
        values = [1e-9 * amount / s for s in run["makespan_s"]["values"]]
        facts = {key: run[key] for key in ("workload", "precision", "n", "tile", "cpus", "policy",
                                           "set_arch")}
        moved = run["bytes"]
        # the makespan ends with the last kernel, the wall time when the results are back
        return {"peer": "duet", **facts, "copies": True, "slab": options.get("gpu_memory"),
                "window": options.get("gpu_window"), "streams": options.get("gpu_streams"),
                "pin": options.get("pin"), "params": ",".join(options.get("params", [])) or None,
                "to_gpu": moved["host_to_device"], "to_host": moved["device_to_host"],
                "hits": run["cache_hit_ratio"], "idle": run["idle_share"],
                "verified": run["verification"]["passed"] if run.get("verification") else None,
                "values": values, **common.figures(values),
                "back": 1e-9 * amount / run["wall_s"] if run.get("wall_s") else None}

    # --------------------------------------------------------------------------------------------
    # Begin and end

    def probe(self):
        """Whether there is a GPU: by the peers, or, where they are not built or cannot begin, by
        duet. self.why."""
        try:
            device = self.device()
            if not device:
                self.duet_runs("saxpy", n=65536, tile=16384, cpus=1, reps=1)
        except (Stopped, RuntimeError, ValueError, KeyError, IndexError) as error:
            self.why = str(error)
            return False
        texts = {key: self.start_program(command, 30)[1].strip() if shutil.which(command[0])
                 else "" for key, command in (("version", [*self.options.duet, "--version"]),
                                              ("smi", SMI))}
        self.record["machine"] = {
            "processor": system_file("/proc/cpuinfo", "model name") or platform.machine(),
            "cores": self.cores, "memory_bytes": memory_bytes("MemTotal"),
            "system": f"{platform.system()} {platform.release()}",
            "gpu": device.get("device", "a GPU"), "device": device, **texts}
        return True

    def device(self):
        """What the peers say of the GPU; nothing if they cannot begin, which is a failure."""
        path = self.options.programs / "cuda_peers"
        if not path.exists():
            return {}
        try:
            return common.objects(self.execute([path, "device"]))[0]
        except RuntimeError as error:
            self.record["checks"].append({"part": "device", "name": "device", "seconds": 0,
                                          "outcome": "failed", "text": str(error)})
            print(f"device: failed: {error}", flush=True)
            return {}

    def fits(self, bytes_, what):
        """Whether the host's memory holds that much; else it is noted once."""
        available = memory_bytes("MemAvailable")
        if available and bytes_ >= 0.8 * available:
            self.omit(what, f"needs {bytes_ / 2**30:.0f} GiB of the host's memory, "
                            f"{available / 2**30:.0f} GiB are available")
            return False
        return True

    def finish(self):
        """The record, with what this run was, as far as it has come."""
        run = {"date": datetime.date.today().isoformat(), "command": shlex.join(sys.argv),
               "seconds": time.monotonic() - self.start, "parts": self.options.only}
        self.record["runs"] = [*self.before, run]
        return self.record
