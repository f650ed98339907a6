# SPDX-License-Identifier: Apache-2.0
"""scripts/test and scripts/check run every test between them, and none endlessly: a test of the
first ends in 20 minutes, of the second in an hour."""

import json
import subprocess

import repository


def listed(*options):
    """What ctest knows of the tests that these options choose, by name."""
    described = subprocess.run(["ctest", "--test-dir", repository.BUILD, "--show-only=json-v1",
                                *options], check=True, capture_output=True, text=True).stdout
    return {test["name"]: {each["name"]: each["value"] for each in test["properties"]}
            for test in json.loads(described)["tests"]}


script = repository.read("scripts/test")
quick, slow = (listed(option, "^check$") for option in ("--label-exclude", "--label-regex"))
problems = [f"scripts/test does not know the option {option} ^check$"
            for option in ("--label-exclude", "--label-regex") if f"{option} ^check$" not in script]
problems += [f"{name} is a test of neither scripts/test nor scripts/check"
             for name in listed().keys() - quick.keys() - slow.keys()]
for most_s, tests in (1200, quick), (3600, slow):
    problems += [f"{name} may take longer than {most_s} s" for name, properties in tests.items()
                 if properties.get("TIMEOUT", most_s + 1) > most_s]
if len(quick) < 200 or len(slow) < 10:
    problems.append(f"{len(quick)} quick tests and {len(slow)} slow ones: some are missing")
repository.finish(problems, f"{len(quick)} quick tests, {len(slow)} slow ones")
