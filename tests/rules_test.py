# SPDX-License-Identifier: Apache-2.0
"""Small rules for every file: licence line, length of lines, files and functions, leftovers."""

import json
import re
import shutil
import subprocess

import repository

MAX_COLUMNS = 100
MAX_LINES = 1200
MAX_FUNCTION_LINES = 100
SPDX = "SPDX-License-Identifier: Apache-2.0"
OLD_NAMES = repository.ROOT / "core/include/duet/old_names.h"
OLD_NAME = re.compile(r"\b(%s)\(" % "|".join(re.findall(r"define (\w+)\(", OLD_NAMES.read_text())))
SPDX_WITHIN = 2  # lines: a script has its "#!" first
LEFTOVERS = [
    (re.compile(r"^\s*#\s*if\s+0\b"), "code under #if 0"),
    (re.compile(r"\b(FIXME|XXX)\b"), "leftover mark"),
    (re.compile(r"\bTODO\b(?!\(#\d+\))"), "TODO without an issue number: TODO(#12)"),
]


def is_text_of_ours(path):
    return (path.suffix in repository.SOURCE_SUFFIXES | repository.SCRIPT_SUFFIXES
            | repository.PAGE_SUFFIXES
            or path.name == "CMakeLists.txt" or path.parts[0] == "scripts")


def line_problems(path, lines):
    if not any(SPDX in line for line in lines[:SPDX_WITHIN]):
        yield f"{path}:1: no line \"{SPDX}\""
    limited = repository.SOURCE_SUFFIXES | repository.PAGE_SUFFIXES
    if path.suffix in limited and len(lines) > MAX_LINES:
        yield f"{path}: {len(lines)} lines, more than {MAX_LINES}: split it by concept"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield f"{path}:{number}: {len(line)} columns, more than {MAX_COLUMNS}"
        if line != line.rstrip():
            yield f"{path}:{number}: space at the end of the line"
        if "\t" in line:
            yield f"{path}:{number}: tab"
        if path.name == "rules_test.py":
            continue
        if "g_ascii_string_to_" in line and path.suffix == ".c" and path.parts[0] != "bench":
            yield f"{path}:{number}: errno of GLib's set-up fails several threads: duet__scan_whole"
        if OLD_NAME.search(line) and not path.name.startswith("old_names"):
            yield f"{path}:{number}: a name of an earlier version: {OLD_NAMES.name} has the new one"
        for pattern, what in LEFTOVERS:
            if pattern.search(line):
                yield f"{path}:{number}: {what}"


def function_problems(paths):
    """Functions that are too long, as ctags sees them."""
    if not shutil.which("ctags") or not paths:
        return
    tags = subprocess.run(
        ["ctags", "--output-format=json", "--fields=+ne", "--kinds-C=f", "--kinds-C++=f",
         "--kinds-Fortran=fs", "-f", "-",
         *map(str, paths)],
        cwd=repository.ROOT, capture_output=True, text=True, check=True)
    for text in tags.stdout.splitlines():
        tag = json.loads(text)
        lines = tag.get("end", tag["line"]) - tag["line"] + 1
        if lines > MAX_FUNCTION_LINES:
            yield (f"{tag['path']}:{tag['line']}: {tag['name']} has {lines} lines, "
                   f"more than {MAX_FUNCTION_LINES}")


def prefix_problems(headers):
    """duet_ is for what the public headers have, duet__ for what is shared inside."""
    public, name = set(), re.compile(r"\bduet_[a-z]\w*")
    for path in headers:
        if "include" in path.parts:
            public.update(name.findall(repository.read(path)))
    for path in headers:
        for found in sorted(set(name.findall(repository.read(path))) - public):
            yield f"{path}: {found} is in no public header: duet__{found.removeprefix('duet_')}"


def tag_problems(headers):
    """A tag that folders share means the same everywhere: for grep, debuggers and profilers."""
    where, tags = {}, re.compile(r"^(?:struct|enum|union) (duet_\w+) \{", re.MULTILINE)
    for path in headers:
        for tag in tags.findall(repository.read(path)):
            if where.setdefault(tag, path) != path:
                yield f"{path}: {tag} is something else in {where[tag]}"


def version_problems():
    """CITATION.cff and the header name the version that is built."""
    built = re.search(r"^project\(duet VERSION (\S+)", repository.read("CMakeLists.txt"),
                      re.MULTILINE)
    if f"\nversion: {built.group(1)}\n" not in repository.read("CITATION.cff"):
        yield f"CITATION.cff: the version is not {built.group(1)}, which CMakeLists.txt has"
    header = repository.read("core/include/duet/duet.h")
    if f'#define DUET_VERSION "{built.group(1)}"' not in header:
        yield f"duet.h: the version is not {built.group(1)}, which CMakeLists.txt has"


def link_problems(paths):
    """Links of the documentation to files that are not there."""
    for path in paths:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", repository.read(path)):
            if not (repository.ROOT / path.parent / target).exists():
                yield f"{path}: there is no {target}"


texts = [path for path in repository.files() if is_text_of_ours(path)]
problems = []
for text_path in texts:
    problems.extend(line_problems(text_path, repository.read(text_path).splitlines()))
problems.extend(function_problems([path for path in texts
                                   if path.suffix in repository.SOURCE_SUFFIXES]))
problems.extend(prefix_problems([path for path in texts if path.suffix == ".h"]))
problems.extend(tag_problems([path for path in texts if path.suffix == ".h"
                              and "test" not in path.stem]))
problems.extend(version_problems())
problems.extend(link_problems([path for path in repository.files() if path.suffix == ".md"]))
repository.finish(problems, f"{len(texts)} files keep the rules")
