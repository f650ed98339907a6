# SPDX-License-Identifier: Apache-2.0
"""What the parts of bench/gpu.py measure with: commands within the time that is left, rows of
figures, and what failed."""

import datetime
import json
import os
import platform
import shlex
import signal
import statistics
import subprocess
import sys
import time

SKIPPED = 77


class Stopped(Exception):
    """A measurement that did not succeed; the text says why."""


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def memory_bytes(key):
    """A line of /proc/meminfo; 0 where there is none."""
    try:
        with open("/proc/meminfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0


def size(text):
    """Bytes of "8GiB"."""
    for unit, bytes_ in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if text.endswith(unit):
            return int(float(text[:-3]) * bytes_)
    return int(text)


def flops_of(run):
    return 1e9 * run["gflops"] * run["makespan_s"]["median"] if run["gflops"] else 0


def back(run, amount):
    """Of an amount, 10^9 a second, until the results are back in the host's memory: the makespan
    ends with the last kernel."""
    return 1e-9 * amount / run["wall_s"] if run.get("wall_s") else None


class Session:
    def __init__(self, options, before):
        self.options = options
        self.start = time.monotonic()
        self.deadline = self.start + options.budget  # of all
        self.until = self.deadline                   # of the part at hand
        self.part = "info"
        self.why = ""
        self.device = {}
        self.record = before or {"schema": 1, "rows": [], "failures": [], "omitted": [], "runs": []}
        self.before = list(self.record["runs"])
        self.cores = len(os.sched_getaffinity(0))
        self.unfit = set()

    # --------------------------------------------------------------------------------------------
    # Time

    def left(self):
        return min(self.until, self.deadline) - time.monotonic()

    def begin(self, part, share):
        """The part gets `share`, at most 1, of the time that is left, and some seconds at least."""
        self.part = part
        self.until = time.monotonic() + max(10, share * (self.deadline - time.monotonic()))
        # what is measured anew replaces what was
        for key in "rows", "failures", "omitted":
            self.record[key] = [entry for entry in self.record[key] if entry["part"] != part]
        print(f"gpu: {part}, {self.left():.0f} s at most", file=sys.stderr, flush=True)

    # --------------------------------------------------------------------------------------------
    # Commands

    def execute(self, command, variables=None, least=2):
        """Standard output. A command that runs out of time is interrupted: duet then reports the
        runs that are finished."""
        command = [str(word) for word in command]
        if self.left() < least:
            raise Stopped("no time left")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **(variables or {})}) as process:
            interrupted = False
            try:
                output, errors = process.communicate(timeout=max(self.left(), least))
            except subprocess.TimeoutExpired:
                interrupted = True
                process.send_signal(signal.SIGINT)
                try:
                    output, errors = process.communicate(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    output, errors = process.communicate()
        if interrupted and not output.strip():
            raise Stopped("no time left: not finished in its share of the time")
        if process.returncode == SKIPPED:
            raise Stopped("skipped: " + last_line(errors).split("skipped: ")[-1])
        if process.returncode and not interrupted:
            raise RuntimeError(f"status {process.returncode}: {last_line(errors)}")
        return output

    def omit(self, what, why):
        self.record["omitted"].append({"part": self.part, "what": what, "why": why})

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

    def add(self, values, unit, **facts):
        """A row of this part: its facts, and values of which the best is not necessarily the
        largest. Returns it."""
        row = {"part": self.part, **facts, "unit": unit, "values": values,
               "median": statistics.median(values), "least": min(values), "most": max(values)}
        self.record["rows"].append(row)
        return row

    def rows(self, part=None, **facts):
        return [row for row in self.record["rows"] if row["part"] == (part or self.part)
                and all(row.get(key) == value for key, value in facts.items())]

    # --------------------------------------------------------------------------------------------
    # The programs

    def peer_lines(self, mode, least=2, **arguments):
        """Objects that cuda_peers prints."""
        if not self.options.peers:
            raise Stopped("cuda_peers is not there (built where the CUDA toolkit is)")
        command = [self.options.peers, mode]
        for key, value in arguments.items():
            command += [f"--{key}", value]
        lines = [json.loads(line) for line in self.execute(command, least=least).splitlines()]
        for line in lines:
            line["command"] = " ".join(["cuda_peers", *map(str, command[1:])])
        return lines

    def peer(self, mode, **arguments):
        """Rows in Gflop/s of one mode of cuda_peers that has flops: one for each line."""
        cubes = {"gemm": 2, "gemm-xt": 2, "potrf": 1 / 3, "getrf": 2 / 3}[mode]

        def measure():
            return [self.add([1e-9 * cubes * line["n"] ** 3 / s for s in line["seconds"]],
                             "Gflop/s", peer=line["peer"], precision=line["precision"], n=line["n"],
                             copies=line["copies"], tile=line.get("block"),
                             verified=line["verified"], command=line["command"])
                    for line in self.peer_lines(
                        mode, repeats=self.options.reps, limit=max(1, int(self.left() / 3)),
                        **arguments)]
        return self.attempt(f"{mode} {arguments}", measure) or []

    def duet_command(self, workload, options):
        command = [*self.options.duet, "run", workload, "--gpus", 1, "--quiet", "--json",
                   *self.options.run_options]
        for key, value in options.items():
            if value is True:
                command += [f"--{key.replace('_', '-')}"]
            elif key == "params":
                for parameter in value:
                    command += ["--param", parameter]
            elif value is not None:
                command += [f"--{key.replace('_', '-')}", value]
        return [str(word) for word in command]

    def duet_runs(self, workload, **options):
        """The runs of `duet run --json`, one a policy, with the command."""
        options.setdefault("reps", self.options.reps)
        options.setdefault("verify", True)
        if options["verify"] is False:
            del options["verify"]
        command = self.duet_command(workload, options)
        runs = json.loads(self.execute(command))["runs"]
        shown = "duet " + shlex.join(command[len(self.options.duet):])
        for run in runs:
            run["command"] = shown
            if run["gpus"] != 1 or run["world"] != "real" and not self.options.run_options:
                raise RuntimeError(f"no GPU took part: {shown}")
            if options.get("verify") and not (run.get("verification") or {}).get("passed"):
                raise RuntimeError(f"a wrong result: {shown}")
        return runs

    def duet(self, workload, keep=True, **options):
        """Rows in Gflop/s, one a policy; keep False: they are not recorded."""
        def measure():
            rows = []
            for run in self.duet_runs(workload, **options):
                values = [1e-9 * flops_of(run) / s for s in run["makespan_s"]["values"]]
                if not values:
                    continue
                rows.append(self.row_of(run, values, keep, options))
            if not rows:
                raise Stopped("no time left: no run was finished")
            return rows
        label = " ".join(f"{key}={value}" for key, value in options.items())
        return self.attempt(f"duet run {workload} {label}", measure) or []

    def row_of(self, run, values, keep, options):
        facts = {
            "peer": "duet", "workload": run["workload"], "precision": run["precision"],
            "n": run["n"], "tile": run["tile"], "cpus": run["cpus"], "policy": run["policy"],
            "slab": options.get("gpu_memory"), "copies": True,
            "window": options.get("gpu_window"), "streams": options.get("gpu_streams"),
            "pin": options.get("pin"), "params": ",".join(options.get("params", [])) or None,
            "set_arch": run["set_arch"], "to_gpu": run["bytes"]["host_to_device"],
            "to_host": run["bytes"]["device_to_host"], "hits": run["cache_hit_ratio"],
            "idle": run["idle_share"], "back": back(run, flops_of(run)),
            "verified": run["verification"]["passed"] if run.get("verification") else None,
            "command": run["command"]}
        if keep:
            return self.add(values, "Gflop/s", **facts)
        return {**facts, "unit": "Gflop/s", "values": values, "median": statistics.median(values)}

    # --------------------------------------------------------------------------------------------
    # Begin and end

    def peers_begin(self):
        """Whether the peers can be used; a library of CUDA's that they need may be missing."""
        if not self.options.peers:
            return False
        try:
            self.device = self.peer_lines("device")[0]
        except RuntimeError as error:
            print(f"gpu: {self.options.peers}: {error}", file=sys.stderr, flush=True)
            self.options.peers = None
        return self.options.peers is not None

    def probe(self):
        """Whether there is a GPU: by the peers, or, where they are not built or cannot begin, by
        duet. self.why."""
        try:
            if not self.peers_begin():
                self.duet_runs("saxpy", n=65536, tile=16384, cpus=1, reps=1)
        except (Stopped, RuntimeError, ValueError, KeyError, IndexError) as error:
            self.why = str(error).removeprefix("skipped: ")
            return False
        self.record["machine"] = self.machine()
        return True

    def machine(self):
        facts = {"processor": processor(), "cores": self.cores,
                 "memory_bytes": memory_bytes("MemTotal"),
                 "system": f"{platform.system()} {platform.release()}",
                 "gpu": self.device.get("device", "a GPU"), "device": self.device}
        for key, command in (("version", [*self.options.duet, "--version"]),
                             ("smi", ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,"
                                      "clocks.max.mem,power.limit,pcie.link.gen.current,"
                                      "pcie.link.width.current", "--format=csv,noheader"])):
            try:
                result = subprocess.run(command, capture_output=True, text=True, check=False,
                                        timeout=30)
                facts[key] = result.stdout.strip() if result.returncode == 0 else ""
            except (OSError, subprocess.TimeoutExpired):
                facts[key] = ""
        return facts

    def fits(self, bytes_, what):
        """Whether the host's memory holds that much; else it is noted once."""
        available = memory_bytes("MemAvailable")
        if not available or bytes_ < 0.8 * available:
            return True
        if what not in self.unfit:
            self.unfit.add(what)
            self.omit(what, f"needs {bytes_ / 2**30:.0f} GiB of the host's memory, "
                            f"{available / 2**30:.0f} GiB are available")
        return False

    def finish(self):
        """The record, with what this run was, as far as it has come."""
        run = {"date": datetime.date.today().isoformat(), "command": shlex.join(sys.argv),
               "seconds": time.monotonic() - self.start, "parts": self.options.only}
        self.record["runs"] = [*self.before, run]
        return self.record
