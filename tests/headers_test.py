# SPDX-License-Identifier: Apache-2.0
"""Every public header compiles on its own, as the first include, in C11, and all of them in C++11
to C++23, with the one of C++17 from there on, without the warnings that users of C++ ask for."""

import os
import re
import subprocess

import repository

LANGUAGES = [
    [os.environ.get("DUET_CC", "cc"), "-x", "c", "-std=c11", "-Wstrict-prototypes"],
    *[[compiler, "-x", "c++", f"-std=c++{standard}", "-Wshadow", "-Wconversion",
       "-Wold-style-cast"] for standard in ("11", "14", "17", "20", "2b")
      for compiler in (os.environ.get("DUET_CXX", "c++"), "clang++")],
]
FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wundef", "-Werror", "-Wno-unused",
         "-I", "core/include", "-"]

# what Fortran knows of a struct: it does not compile where that is wrong
WORDS = re.search(r"config_words = (\d+)", repository.read("core/include/duet/duet.f90")).group(1)
IN_FORTRAN = f"extern char config_words[sizeof(struct duet_config) == 8 * {WORDS} ? 1 : -1];\n"

problems = []
headers = [path for path in repository.sources()
           if path.parts[:3] == ("core", "include", "duet") and path.suffix == ".h"]
includes = [f"#include <duet/{header.name}>\n" for header in headers]
includes.append('#include "quark/quark.h"\n')
includes.append("#include <duet/duet.h>\n" + IN_FORTRAN)
MODERN = {f"-std=c++{standard}" for standard in ("17", "20", "2b")}
for language in LANGUAGES:
    # one at a time by the first, of C; what a header needs of others is the same in all
    for text in includes if language is LANGUAGES[0] else ["".join(
            includes + ["#include <duet/duet.hpp>\n"] * (language[3] in MODERN))]:
        result = subprocess.run(language + FLAGS, cwd=repository.ROOT, input=text,
                                capture_output=True, text=True, check=False)
        if result.returncode != 0:
            problems.append(f"{text} not by {language[0]} {language[3]}:\n{result.stderr}")
repository.finish(problems, f"{len(headers)} public headers stand on their own")
