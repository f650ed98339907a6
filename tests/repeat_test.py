# SPDX-License-Identifier: Apache-2.0
"""scripts/repeat counts what fails sometimes, keeps what it said, and leaves no load behind."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import repository

SCRIPT = repository.ROOT / "scripts" / "repeat"
# the file named first counts the calls: every third one fails
SOMETIMES = ('n=$(cat "$1" 2>/dev/null || echo 0); n=$((n + 1)); echo $n >"$1"; '
             'echo "call $n with $WITH"; [ $((n % 3)) -ne 0 ]')


def repeat(build, *arguments):
    result = subprocess.run([sys.executable, SCRIPT, "--build", build, *arguments],
                            capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def processes():
    """The command lines of what this test has begun and has not ended."""
    found, mine = [], f"REPEAT_TEST={os.getpid()}".encode()
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mine in (path / "environ").read_bytes().split(b"\0"):
                found.append((path / "cmdline").read_bytes())
        except OSError:
            continue
    return found


def check(folder):
    (folder / "CTestTestfile.cmake").write_text(f"""
add_test(good "true")
add_test(skipped "sh" "-c" "exit 77")
add_test(slow "sleep" "0.3")
add_test(sometimes "sh" "-c" [==[{SOMETIMES}]==] "sh" "{folder}/calls")
set_tests_properties(sometimes PROPERTIES ENVIRONMENT "WITH=a variable")
add_test(hangs "sleep" "1000")
add_test(endless "sleep" "1000")
set_tests_properties(hangs PROPERTIES TIMEOUT 1 LABELS "repo")
set_tests_properties(endless PROPERTIES LABELS "repo")
add_test(nowhere "true")
set_tests_properties(nowhere PROPERTIES LABELS "repo" WORKING_DIRECTORY "{folder}/nowhere")
""", encoding="utf-8")
    status, output = repeat(folder, "-n", "10", "-j", "2")
    assert status == 1, output
    lines = output.splitlines()
    assert len(lines) == 4, output
    kept = folder / "repeat" / "sometimes.alone.txt"
    assert lines[0] == f"sometimes: failed 3 of 10 times alone, see {kept}", output
    assert re.fullmatch(r"alone: 4 tests, 30 repetitions, 1 tests failed, 0 ran fewer.*", lines[1])
    assert lines[2].startswith("sometimes: failed 3 of 10 times beside load, see "), output
    assert lines[3].startswith("beside load: 4 tests, 30 repetitions, 1 tests failed"), output
    text = kept.read_text(encoding="utf-8")
    assert text.startswith("call 3 with a variable\n"), text
    assert "run 3 of sometimes: exit status 1" in text, text
    # what the time does not suffice for is said; what hangs has failed
    status, output = repeat(folder, "-n", "1000", "--seconds", "0.5", "-R", "slow", "--only",
                            "alone")
    assert status == 0 and re.match(r"slow: [1-9]\d? times alone\n", output), output
    status, output = repeat(folder, "-n", "1", "-R", "hangs", "--only", "alone", "--load", "0")
    assert status == 1 and "hangs: failed 1 of 1 times alone" in output, output
    (folder / "tests").symlink_to(repository.BUILD / "tests")
    # other time: a test that is stopped now and then ends all the same
    for time in "quota", "core", "nice", "delays":
        status, output = repeat(folder, "-n", "3", "-R", "slow|good", "--time", time, "--only",
                                "alone")
        assert status == 0 and "alone: 2 tests, 6 repetitions, 0 tests failed" in output, output
    # what cannot be begun ends everything
    status, output = repeat(folder, "-R", "endless|nowhere", "--only", "alone", "-j", "2")
    assert status == 1 and "FileNotFoundError" in output and not processes(), output
    status, output = repeat(folder, "-R", "no such test")
    assert status == 1 and "no test of" in output, output
    # ended in the middle, it leaves neither test nor load
    process = subprocess.Popen([sys.executable, SCRIPT, "--build", folder, "-R", "endless",
                                "--only", "beside", "--load", "1"])
    while not any(b"sleep\x001000" in line for line in processes()):
        assert process.poll() is None
    process.terminate()
    assert process.wait() == 143
    while processes():  # those that were killed may take a moment
        pass


os.environ["REPEAT_TEST"] = str(os.getpid())
with tempfile.TemporaryDirectory() as name:
    check(pathlib.Path(name).resolve())
