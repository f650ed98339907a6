# SPDX-License-Identifier: Apache-2.0
"""`duet simulate`, and `duet explain`, against stored outputs, byte for byte: tables, figures with
all their digits, and every date of a small run. A change of these files is a change of what is
simulated: look at it.

Regenerate with: DUET=build/duet python3 cli/golden_test.py --update
"""

import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

DUET = os.environ.get("DUET") or "build/duet"
GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
NEW = "--cpus 2x16 --gpus 4:h100 --nvswitch --pcie-switches 2".split()  # the platform "new"
THREE_KINDS = GOLDEN.parents[1] / "validate" / "three-kinds.json"

# The first five; what is newer has cases of its own, so that a new policy changes no file.
FIVE = "eager,ws,data-aware,locality-aware,heft"

# For tasks of uneven length: a closed list, as FIVE is.
UNEVEN = f"{FIVE},w-rand,dmda,dmdar,heteroprio,dada"

# All others, in newer.csv alone.
NEWER = "no-prio,random,w-rand,heft-tm,dmda,dmdas,dmdar,lws,heteroprio,multreeprio,dada"

# Name -> arguments; FIVE, UNEVEN and NEWER stand for policies, THREE-KINDS and NEW for platforms,
# "trace" among the words for the file that is compared, or explained, instead.
CASES = {
    "cholesky-table.txt": "cholesky --n 9600 --cpus 4 --gpus 8 --policy FIVE --set-arch",
    "cholesky-noise.csv": "cholesky --n 9600 --cpus 8 --gpus 4 --policy ws,heft --reps 2 --noise"
                          " --csv",
    "cholesky-nodes.csv": "cholesky --n 9600 --cpus 2 --gpus 2 --policy ws,heft --csv --nodes 2x3"
                          " --network torus:10Gbps,5us,overhead=1us --noise",
    "cholesky-left.json": "cholesky --n 7680 --cpus 10 --gpus 2 --policy heft,ws --json"
                          " --param variant=left",
    "cholesky-tiny-memory.csv": "cholesky --n 9600 --cpus 1 --gpus 2 --policy FIVE --csv"
                                " --gpu-memory 60MiB",
    "cholesky-no-peer.csv": "cholesky --n 9600 --cpus 2 --gpus 4 --policy ws,heft --csv --no-peer",
    "cholesky-dates.json": "cholesky --n 2880 --cpus 2 --gpus 2 --policy heft --trace trace",
    "cholesky-16-gpus.csv": "cholesky --n 19200 --gpus 16 --policy ws,heft --csv"
                            " --link pcie=12GB/s",
    "gemm-single.csv": "gemm --n 5760 --cpus 4 --gpus 4 --policy ws,heft --csv --precision s",
    "lu-beliefs.csv": "lu --n 7680 --cpus 4 --gpus 4 --policy heft,ws --csv --model regression"
                      " --model-error 0.5",
    "lu-learned.csv": "lu --n 7680 --cpus 4 --gpus 4 --policy heft,fcrm --csv --model segmented"
                      " --learn",
    "sort-learned.csv": "sort --n 1048576 --tile 4096 --policy w-rand,fcrm --csv --learn"
                        " --window 64 --platform THREE-KINDS",
    "lu-perturbed.csv": "lu --n 7680 --cpus 4 --gpus 4 --policy heft,ws --csv --reps 2"
                        " --perturbation 0.1",
    "lu.csv": "lu --n 7680 --cpus 4 --gpus 4 --policy FIVE --csv",
    "lu-incremental.csv": "lu-incremental --n 7680 --cpus 4 --gpus 4 --policy ws,heft --csv",
    "qr.csv": "qr --n 7680 --cpus 4 --gpus 4 --policy ws,heft --csv",
    "sparse-lu.csv": "sparse-lu --n 11520 --cpus 4 --gpus 4 --policy ws,heft --csv",
    "auto.csv": "qr --n 7680 --cpus 4 --gpus 4 --policy auto,cp,dmdas --csv",
    "newer.csv": "cholesky --n 9600 --cpus 4 --gpus 4 --policy NEWER --csv",
    "cholesky-planned.csv": "cholesky --n 9600 --cpus 4 --gpus 4 --policy static,cp,eager --csv"
                            " --priorities bottom-level",
    "sort.csv": "sort --n 262144 --tile 4096 --cpus 4 --gpus 4 --policy UNEVEN --csv",
    "sort-three-kinds.csv": "sort --n 262144 --tile 4096 --policy w-rand,heteroprio,dada --csv"
                            " --param sizes=bimodal --platform THREE-KINDS",
    "little-memory.csv": "gemm --n 5760 --cpus 2 --gpus 2 --csv --gpu-memory 150MiB"
                         " --policy darts,cp,static,dmdas,dmda,dmda:prefetch=1:luf=0",
    "nbody.csv": "nbody --n 16384 --tile 512 --cpus 4 --gpus 4 --csv --param iterations=4"
                 " --policy w-rand,heteroprio,dada",
    "nbody-three-kinds.csv": "nbody --n 16384 --tile 512 --policy UNEVEN --csv --precision s"
                             " --param iterations=4 --platform THREE-KINDS",
    "cholesky-estimated.txt": "cholesky --n 19200 --policy ws,heft --platform NEW",
    "explain.txt": "explain cholesky --n 9600 --cpus 2 --gpus 2 --policy ws --link pcie=2GB/s"
                   " --trace trace",
    "layered.csv": "layered --n 300 --cpus 4 --gpus 4 --policy ws,heft --csv",
}


def output(arguments):
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")
        stands = {"trace": trace, "FIVE": FIVE, "UNEVEN": UNEVEN, "NEWER": NEWER,
                  "THREE-KINDS": str(THREE_KINDS), "NEW": os.path.join(folder, "new.json")}
        words = [stands.get(word, word) for word in arguments.split()]
        words += ["--quiet"] if "--platform" in words else ["--platform", "idgraf", "--quiet"]
        explain = words[0] == "explain"
        words = words[explain:]
        if words[0] not in ("layered", "nbody", "sort"):
            words += ["--tile", "960"]
        if stands["NEW"] in words:
            subprocess.run([os.path.abspath(DUET), "platform", "new", *NEW, "--out", stands["NEW"]],
                           check=True, capture_output=True)
        command = [os.path.abspath(DUET), "simulate", *words]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        if explain:
            printed = subprocess.run([command[0], "explain", "trace.json"], check=True,
                                     text=True, capture_output=True, cwd=folder).stdout
        if explain or trace not in words:
            return printed.replace(folder, "")
        with open(trace, encoding="utf-8") as file:
            return file.read()


def readme_problem():
    """README shows what scripts/demo prints of the simulation."""
    root = GOLDEN.parents[1]
    demo = (root / "scripts" / "demo").read_text(encoding="utf-8").replace("\\\n", " ")
    words = demo[demo.index("build/duet simulate") + len("build/duet"):].splitlines()[0].split()
    shown = subprocess.run([os.path.abspath(DUET), *words], check=True, capture_output=True,
                           text=True).stdout
    if shown in (root / "README.md").read_text(encoding="utf-8"):
        return 0
    print(f"README.md does not show what scripts/demo prints now:\n{shown}")
    return 1


def main():
    different = 0 if "--update" in sys.argv else readme_problem()
    graphs = [(name, arguments + " --param submit=graph") for name, arguments in CASES.items()
              if "iterations" in arguments]  # steps that are submitted again give the same
    for name, arguments in [*CASES.items(), *graphs]:
        got = output(arguments)
        path = GOLDEN / name
        if "--update" in sys.argv:
            path.write_text(got, encoding="utf-8")
            continue
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        if got == expected:
            continue
        different += 1
        print(f"{name}: duet simulate {arguments}")
        lines = difflib.unified_diff(expected.splitlines(), got.splitlines(), "stored", "now",
                                     lineterm="", n=0)
        print("\n".join(list(lines)[:20]))
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
