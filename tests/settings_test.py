# SPDX-License-Identifier: Apache-2.0
"""What can be set is documented, and what is documented can be set.

The options that help shows are on the pages of their subcommand, those that these pages name exist,
and the variables of programs are those of the table in docs/applications.md. What the library says
to a program names the program's options (--duet-gpus), which the command says as its own (--gpus).
"""

import os
import re
import subprocess

import repository

# Where the options of a subcommand are explained.
PAGES = {
    "simulate": {"simulate", "graphs", "nodes"},
    "run": {"run", "graphs", "nodes"},
    "calibrate": {"calibrate"},
    "validate": {"validate", "nodes"},
    "compare": {"compare"},
    "explain": {"explain"},
    "info": {"run", "platforms"},
    "list": {"simulate", "graphs"},
    "export": {"graphs"},
    "platform": {"platforms"},
    "record": {"openmp"},
    "openmp": {"openmp"},
    "study": {"study", "simulate", "graphs", "nodes"},
    "tune": {"tune", "study", "simulate", "graphs", "nodes"},
}
# Of other programs.
OTHERS = {"--install", "--prefix", "--cflags", "--libs", "--variable", "--help", "--version",
          "--bind-to", "--enable-recovery", "--map-by", "--oversubscribe"}
# Files that speak of the command's options: its table, and a line that programs and command print.
SAYS_BOTH = {"runtime/settings.c", "backends/cuda/pins.c"}
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]\b|(?<![\w-])--[a-z]\b")


def ask(*words):
    return subprocess.run([os.environ["DUET"], *words], stdout=subprocess.PIPE, encoding="utf-8",
                          check=True).stdout


def page(name):
    return repository.read(f"docs/{name}.md")


def options():
    """The options of each subcommand."""
    names = re.findall(r"^  ([a-z]+)  ", ask("--help"), re.MULTILINE)
    return {name: set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", ask(name, "--help"), re.MULTILINE))
            - OTHERS for name in names}


def variables():
    """The variables of programs, with their arguments."""
    lines = ask("list", "options").splitlines()
    names = [line.split()[0] for line, where in zip(lines[::2], lines[1::2])
             if "environment" in where.split()]
    return {("DUET_" + name.upper().replace("-", "_"), f"--duet-{name}") for name in names}


def option_problems(known):
    for command, names in known.items():
        shown = set().union(*(OPTION.findall(page(name)) for name in PAGES[command]))
        for name in sorted(names - shown):
            yield f"duet {command} {name} is not in docs/: {', '.join(sorted(PAGES[command]))}"
    everything = set().union(*known.values()) | OTHERS
    for command in sorted({"simulate", "run", "calibrate", "validate", "compare", "study",
                           "explain", "tune"}):
        named = OPTION.findall(page(command))
        # rows of a table are about the page's own subcommand
        own = OPTION.findall("\n".join(re.findall(r"^\| `--[^|]*\|", page(command), re.MULTILINE)))
        for name in sorted(set(named) - everything | set(own) - known[command]):
            yield f"docs/{command}.md: there is no {name}"


def variable_problems(known):
    shown = set()
    for row in re.findall(r"^\| `DUET_.*$", page("applications"), re.MULTILINE):
        _, names, arguments, _ = row.split("|", 3)
        shown |= set(zip(re.findall(r"DUET_[A-Z_]+", names),
                         re.findall(r"--duet-[a-z-]+", arguments)))
    for name, _ in sorted(known - shown):
        yield f"docs/applications.md lacks {name}, or its argument"
    for name, _ in sorted(shown - known):
        yield f"docs/applications.md: there is no {name}"


def message_problems(known):
    arguments = {name.replace("--duet-", "--") for _, name in known} | {"--link"}
    for path in repository.sources():
        if (path.parts[0] in {"core", "real", "sim", "runtime", "backends"}
                and not repository.is_test(path) and str(path) not in SAYS_BOTH):
            for text in re.findall(r'"[^"\n]*"', repository.read(path)):
                for name in arguments & set(OPTION.findall(text)):
                    yield f"{path}: {text} names {name} to programs: --duet-..."


repository.finish([*option_problems(options()), *variable_problems(variables()),
                   *message_problems(variables())],
                  "options and variables are documented")
