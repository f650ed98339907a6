# SPDX-License-Identifier: Apache-2.0
"""What libduet and the command are combined with in a process has licences that allow it.

Looked at are all shared libraries, as the loader finds them, of libduet.so and of its module, then
of the command and of all modules (which are opened when they are needed). Each belongs to a Debian
package; a package's licence was read by a person and is in REVIEWED, with words that must still be
in its copyright file. A package that is not there has to be read first. A library that is opened by
name and not linked, and that may be missing, is in OPENED.
"""

import os
import pathlib
import re
import shutil
import subprocess

import repository

# Licences of works that a work under Apache-2.0 may be combined with in one process, when each
# stays under its own: permissive ones, those that ask for changes of the library itself only, and
# those with an exception for whatever uses the library. GPL and AGPL without one are not here.
ALLOWED = set("""
    Apache-2.0 BSD-2-Clause BSD-3-Clause BSL-1.0 bzip2-1.0.6 EPL-1.0 EPL-2.0 ICU ISC MIT Zlib 0BSD
    blessing LGPL-2.1-only LGPL-2.1-or-later LGPL-3.0-or-later
    GPL-3.0-or-later-WITH-GCC-exception-3.1
""".split())

# Package (a regular expression: versions change) -> licence of its libraries, and words of its
# copyright file that say so.
REVIEWED = {
    r"libc6": ("LGPL-2.1-or-later", "GNU Lesser"),
    r"lib(gcc-s|stdc\+\+|gfortran|quadmath|gomp|atomic)\d*":
        ("GPL-3.0-or-later-WITH-GCC-exception-3.1", "GCC RUNTIME LIBRARY EXCEPTION"),
    r"libglib2\.0-0(t64)?": ("LGPL-2.1-or-later", "LGPL-2.1+"),
    r"libpcre2-8-0": ("BSD-3-Clause", "BSD-3-clause-Cambridge"),
    r"libjansson4": ("MIT", "License: Expat"),
    r"libxml2(-\d+)?": ("MIT", "License: MIT-1"),
    r"libicu\d+": ("ICU", "License: MIT"),
    r"liblzma5": ("0BSD", "License: PD"),  # public domain; 0BSD from 5.6 on
    r"zlib1g": ("Zlib", "License: Zlib"),
    r"libsqlite3-0": ("blessing", "License: public-domain"),  # in the public domain
    r"libopenmpi\d+": ("BSD-3-Clause", "Redistributions in binary form must reproduce"),
    r"libevent-(core|pthreads)-[\d.]+-\d+[a-z]?(t64)?": ("BSD-3-Clause", "License: BSD-3-clause"),
    r"libhwloc15": ("BSD-3-Clause", "Redistribution and use in source and binary forms"),
    r"libudev1": ("LGPL-2.1-or-later", "License: LGPL-2.1+"),
    r"libcap2": ("BSD-3-Clause", "BSD"),
    r"ocl-icd-libopencl1": ("BSD-2-Clause", "License: BSD-2-Clause"),
    # the module "sim"
    r"libsimgrid[\d.]+": ("LGPL-2.1-only", "License: LGPL-2.1"),
    r"libboost-[a-z]+[\d.]+": ("BSL-1.0", "BSL-1.0"),
    # the module "blas"
    r"libopenblas0(-\w+)?": ("BSD-3-Clause", "BSD-3-clause"),
    r"lib(blas|lapack|tmglib)3": ("BSD-3-Clause", "BSD-3-clause"),
    r"liblapacke": ("BSD-3-Clause", "BSD-3-clause"),
    # what is not to come back
    r"libns3.*": ("GPL-2.0-only", "GNU GENERAL PUBLIC LICENSE"),
    r"libglpk\d+": ("GPL-3.0-or-later", "GPL-3"),
}

# Source that calls dlopen -> whose library it opens.
OPENED = {
    "backends/cuda/nvlink.c": "NVML, of NVIDIA's driver; neither linked nor distributed",
    "nodes/mpi_meet.c": "the MPI that it is linked with, to make its functions everybody's",
    "real/one_thread.c": "nothing: the program itself, to look up functions that it has",
    "runtime/modules/module.c": "duet's own modules, which are looked at here",
    "runtime/policy.c": "the user's policy",
    "workloads/kernels_cuda_library.c": "NVIDIA's cuBLAS and cuSOLVER, by the user's licence of "
                                        "CUDA; neither linked nor distributed",
    "workloads/kernels_opencl.c": "CLBlast, under Apache-2.0; neither linked nor distributed",
}

DOCUMENTS = pathlib.Path(os.environ.get("DUET_LICENCES", "/usr/share/doc"))


def libraries(path):
    """The shared libraries of others that the loader takes for an object."""
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    found = {pathlib.Path(real) for real in re.findall(r"=> (/\S+)", listed)}
    return {real for real in found if repository.BUILD not in real.parents}


def packages(paths):
    """The Debian package of each library, where there is one. /lib may be a link to /usr/lib."""
    names = {path: {str(path), str(path.resolve()), f"/usr{path}"} for path in paths}
    listed = subprocess.run(["dpkg-query", "--search", *set().union(*names.values())],
                            capture_output=True, text=True,
                            check=False).stdout  # its status is 1 where one name has no package
    owners = {name: owner.split(":")[0] for owner, name in
              (line.split(": ", 1) for line in listed.splitlines() if ": " in line)}
    return {path: owner for path, of_path in names.items()
            for owner in map(owners.get, of_path) if owner}


def package_problem(name):
    """What is wrong with the licence of a package, or None."""
    review = next((review for pattern, review in REVIEWED.items() if re.fullmatch(pattern, name)),
                  None)
    if not review:
        return f"whose licence nobody has read: see {DOCUMENTS / name / 'copyright'}"
    licence, words = review
    if licence not in ALLOWED:
        return f"under {licence}, which Apache-2.0 may not be combined with"
    text = DOCUMENTS / name / "copyright"
    if not text.exists():  # a system without documentation
        return None
    if words not in text.read_text(encoding="utf-8", errors="replace"):
        return f"which is no longer said to be under {licence}: see {text}"
    return None


def object_problems(objects):
    opened = {path: libraries(path) for path in objects}
    known = packages(set().union(*opened.values()))
    for path, needed in opened.items():
        for library in sorted(needed):
            name = known.get(library)
            why = package_problem(name) if name else "which belongs to no package"
            if why:
                yield f"{path.name} opens {library} ({name}), {why}"


def source_problems():
    for path in repository.sources():
        if (not repository.is_test(path) and path.parts[0] not in {"tests", "bench"}
                and re.search(r"\bdlopen\(", repository.read(path)) and str(path) not in OPENED):
            yield f"{path}: opens a library that OPENED does not name"


if not all(map(shutil.which, ("dpkg-query", "ldd"))):
    repository.skip("no Debian packages here to look at")
everything = [repository.BUILD / "libduet.so", *(repository.BUILD / "modules").glob("*.so"),
              repository.BUILD / "duet"]
everything = [path for path in everything if path.exists()]
if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
    repository.skip("sanitizers bring libraries of their own")
if not everything:
    repository.skip("nothing is built")
problems = [*source_problems(), *object_problems(everything)]
repository.finish(problems, f"the licences of what {len(everything)} objects open are fine")
