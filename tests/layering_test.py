# SPDX-License-Identifier: Apache-2.0
"""Who may include whom, and what the core may call.

The table below is the rule; docs/architecture.md gives the reasons. Tests (*_test.c), and what they
share (testing*.h), may include what they like, and nobody else includes them.
"""

import os
import pathlib
import re
import subprocess

import repository

# Headers of others, by the name of a group. Those of C++ have no suffix and are recognised by it.
C_PURE = """float.h inttypes.h limits.h math.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h
    stdint.h stdio.h stdlib.h stdnoreturn.h string.h""".split()
C_REST = "assert.h complex.h ctype.h errno.h fenv.h locale.h setjmp.h signal.h time.h".split()
POSIX = """dirent.h dlfcn.h fcntl.h getopt.h glob.h libgen.h poll.h sched.h spawn.h strings.h
    sys/mman.h sys/resource.h sys/stat.h sys/time.h sys/types.h sys/wait.h unistd.h""".split()
GROUPS = {
    "c-pure": C_PURE,
    "c": C_PURE + C_REST,
    "posix": POSIX,
    "linux": ["sys/prctl.h", "sys/file.h", "sys/syscall.h", "execinfo.h", "link.h",
              "linux/futex.h", "malloc.h"],
    "x86": ["cpuid.h", "x86intrin.h"],
    "threads": ["pthread.h", "threads.h", "semaphore.h"],
    "context": ["ucontext.h"],
    "glib": ["glib.h", "glib/*", "glib-object.h", "gio/gio.h"],
    "json": ["jansson.h"],
    "libxml": ["libxml/*"],
    "zlib": ["zlib.h"],
    "simgrid": ["simgrid/*", "xbt/*", "simgrid/*.hpp"],
    "sqlite": ["sqlite3.h"],
    "mpi": ["mpi.h"],
    "sockets": ["ifaddrs.h", "net/if.h", "netinet/in.h", "netinet/tcp.h", "sys/socket.h"],
    "hwloc": ["hwloc.h", "hwloc/*"],
    "blas": ["cblas.h", "lapacke.h"],
    "starpu": ["starpu.h"],
    "ompt": ["omp-tools.h"],
    "cublas": ["cublas_v2.h", "cublasXt.h", "cusolverDn.h"],
    "opencl": ["CL/cl.h"],
    "clblast": ["clblast_c.h"],
    "cuda": ["cuda.h", "cuda_runtime.h", "cuda_runtime_api.h"],
}

# Folder (or, for one file, a path without its suffix) -> what may be included: a group, or "c++",
# or files of ours. "duet/*" are the public headers, "." the folder's own. The first line whose
# pattern matches holds.
RULES = [
    ("core/include/duet/*", "c-pure c++ duet/*"),
    ("core/policies/list", ""),
    ("core/policies/*", "c-pure duet/policy.h"),
    ("core/models/list", ""),
    ("core/models/*", "c-pure duet/model.h"),
    ("core/*", "c-pure duet/* core/*"),
    ("backends/cuda/*", "c posix threads duet/* core/repeat.h backends/*.h cuda ."),
    ("backends/opencl/*", "c posix threads duet/* backends/*.h opencl ."),
    ("backends/emulated/*", "c posix threads duet/* backends/*.h core/flows.h ."),
    ("backends/*/*", "c posix threads duet/* backends/backend.h ."),
    ("backends/list", ""),
    ("backends/common", "c posix duet/* ."),
    ("backends/*", "c duet/* ."),
    ("real/clock_tsc", "c x86 ."),
    ("real/*", "c posix linux threads hwloc duet/* core/engine.h backends/backend.h ."),
    ("nodes/mpi*", "c posix linux threads mpi duet/* core/engine.h ."),
    ("nodes/*", "c-pure threads duet/* core/engine.h ."),
    ("base/*", "c posix glib json zlib duet/* ."),
    ("platforms/model/lookup", "c-pure duet/* core/engine.h ."),
    ("platforms/model/*", "c-pure duet/* ."),
    ("sim/coroutine", "c posix context ."),
    ("sim/simgrid*", "c posix c++ simgrid libxml duet/* platforms/model/*.h ."),
    ("sim/*", "c posix duet/* core/engine.h core/fluid.h nodes/*.h platforms/model/*.h ."),
    ("platforms/*", "c posix glib json libxml duet/* base/*.h ."),
    ("workloads/kernels_cuda*", "c posix threads cuda cublas duet/* workloads/*"),
    ("workloads/kernels_opencl*", "c posix threads opencl clblast duet/* workloads/*"),
    ("workloads/kernels_*", "c posix glib blas duet/* workloads/*"),
    ("workloads/files/*", "c posix glib duet/* base/*.h workloads/workload.h ."),
    ("workloads/*", "c posix glib duet/* workloads/*"),
    ("trace/*", "c posix glib duet/* base/*.h core/engine.h nodes/*.h workloads/workload.h"
                " workloads/files/*.h ."),
    ("runtime/modules/*", "c posix glib duet/* core/engine.h sim/network.h nodes/mpi*.h"
                          " platforms/platform.h workloads/kernels*.h ."),
    ("runtime/*", "c posix threads glib duet/* base/*.h core/engine.h nodes/*.h sim/*.h real/*.h"
                  " platforms/platform.h platforms/model/*.h trace/*.h ."),
    ("openmp/gomp/*", "c posix linux threads duet/* core/engine.h real/real.h openmp/names.h ."),
    ("openmp/*", "c posix linux ompt base/*.h ."),
    ("quark/*", "c posix threads glib duet/* ."),
    ("runs/executor", "c posix linux glib sockets duet/* ."),
    ("runs/*", "c posix linux glib duet/* base/*.h platforms/platform.h platforms/model/draws.h"
               " workloads/workload.h"
               " trace/*.h runtime/*.h core/engine.h nodes/*.h ."),
    ("calibrate/*", "c posix linux glib duet/* base/*.h platforms/model/*.h platforms/platform.h"
                    " nodes/mpi.h trace/*.h runtime/*.h runs/*.h workloads/*.h ."),
    ("validate/*", "c posix glib duet/* base/*.h platforms/platform.h workloads/*.h"
                   " workloads/files/graph.h trace/*.h runtime/*.h runs/*.h calibrate/*.h ."),
    ("report/*", "c posix glib duet/* base/*.h platforms/platform.h workloads/*.h trace/*.h"
                 " runs/*.h validate/*.h report/*.h ."),
    ("study/mpi", "c posix linux duet/* nodes/mpi.h ."),
    ("study/ranks", "c posix glib sockets duet/* ."),
    ("study/*", "c posix linux glib sqlite duet/* base/*.h platforms/platform.h runtime/*.h"
                " runs/*.h report/page/page.h report/gantt.h ."),
    ("cli/*", "c posix glib duet/* base/*.h platforms/*.h platforms/model/*.h workloads/*.h"
              " workloads/files/graph.h trace/*.h runtime/*.h runtime/modules/module.h runs/*.h"
              " calibrate/*.h validate/*.h report/*.h report/page/page.h study/*.h ."),
    ("python/policy", "duet/policy.h"),
    ("python/graph", "c-pure glib duet/* base/json.h workloads/files/graph.h"),
    ("examples/cuda_*", "c posix duet/* cuda"),  # what an application with own kernels includes
    ("examples/opencl_*", "c posix duet/* opencl"),
    ("examples/*", "c posix c++ blas duet/*"),
    ("bench/overhead/testing*", "c-pure duet/* bench/* tests/fake_cuda/fake.h"),
    ("bench/overhead/*", "c-pure duet/* starpu bench/*"),
    ("bench/corpus/*", "c glib base/* bench/* calibrate/* platforms/* runs/* trace/*"
                       " workloads/*"),
    ("bench/decisions/*", "c-pure duet/policy.h"),
    ("bench/contention/*", "c posix threads context duet/* core/engine.h bench/*"),
    ("bench/peers/scalapack", "c posix mpi"),
    ("bench/peers/count_mpi", "c posix mpi"),
    ("bench/messages/*", "c posix threads mpi duet/* core/engine.h nodes/mpi.h"),
    ("bench/*", "c posix glib cuda cublas blas bench/*"),
    ("tests/fake_cuda/*", "c posix threads cuda cublas blas duet/* workloads/kernels*.h "
     "backends/cuda/testing_gpu.h ."),
    ("tests/*", "c posix threads glib duet/* ."),
]

# Folders from the lowest to the highest: includes go down only, so that no folders form a cycle.
ORDER = """core/include base core backends real nodes platforms/model sim platforms workloads
    workloads/files trace runtime runs calibrate validate report study openmp quark python
    cli""".split()

# Functions of libc and libm that the core may call. It never ends the process, reads a clock or
# the environment, or does input and output.
CORE_CALLS = set("""
    aligned_alloc calloc free malloc realloc qsort bsearch
    memchr memcmp memcpy memmove memset strchr strcmp strlen strncmp strrchr strspn strcspn strstr
    snprintf vsnprintf strtod strtol strtoll strtoul strtoull
    cbrt ceil exp exp2 expm1 fabs floor fmax fmin fmod frexp hypot ldexp llround log log10 log1p
    log2 lround nextafter pow rint round sqrt trunc
    __errno_location __stack_chk_fail __tls_get_addr _GLOBAL_OFFSET_TABLE_
""".split())

FEATURE_TEST = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b\s*(.*)$")
INCLUDE = re.compile(r"^\s*#\s*include\s*([<\"])([^>\"]+)[>\"]")
CLOCK_READING = re.compile(r"\b(__rdtsc|__builtin_ia32_rdtsc|__builtin_readcyclecounter)\b")
ENVIRONMENT = re.compile(r"\b(getenv|secure_getenv|g_getenv|g_environ_getenv|environ)\b")
ENVIRONMENT_READERS = {"cli", "runtime", "tests", "openmp", "quark", "examples"}
OURS = {str(path) for path in repository.files()}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def matches(name, pattern):
    """As a shell would, but a final * also takes the rest of a path."""
    expression = re.escape(pattern).replace(r"\*", "[^/]*")
    if pattern.endswith("*"):
        expression = expression[:-len("[^/]*")] + ".*"
    return re.fullmatch(expression, name) is not None


def rule_for(path):
    stem = str(path.with_suffix(""))
    return next((rule for pattern, rule in RULES if matches(stem, pattern)), None)


def resolve(path, name):
    """The file of ours that an include means, or None."""
    for base in (str(path.parent), ".", "core/include"):
        candidate = os.path.normpath(os.path.join(base, name))
        if candidate in OURS:
            return candidate
    return None


def allowed(path, name, rule):
    """Whether `path` may include `name` under `rule`; `name` is as written, or a path of ours."""
    own = str(path.parent)
    public = name.removeprefix("core/include/")
    for word in rule.split():
        if word in GROUPS:
            if any(matches(name, pattern) for pattern in GROUPS[word]):
                return True
        elif word == "c++":
            if path.suffix in {".cpp", ".hpp"} and "." not in name and "/" not in name:
                return True
        elif word == ".":
            if name.startswith(own + "/"):
                return True
        elif word.startswith("duet/"):
            if public != name and matches(public, word):
                return True
        elif matches(name, word) and not name.startswith("core/include/"):
            return True
    return False


def place(path):
    """Where a file's folder is in ORDER; None: in none of these."""
    folders = [folder for folder in ORDER if str(path).startswith(folder + "/")]
    return ORDER.index(max(folders, key=len)) if folders else None


def goes_up(path, other):
    own, its = place(path), place(other)
    return own is not None and its is not None and its > own


def for_tests(path):
    return repository.is_test(path) or path.name.startswith("testing")


def include_problems(path, lines):
    if for_tests(path):
        rule = None
    else:
        rule = rule_for(path)
        if rule is None:
            yield f"{path}: no rule for this folder: add one to tests/layering_test.py"
            return
    for number, line in enumerate(lines, 1):
        include = INCLUDE.match(line)
        if not include:
            continue
        written = include.group(2)
        ours = resolve(path, written)
        if include.group(1) == '"' and not ours:
            yield f"{path}:{number}: \"{written}\" is no file of this repository (use <>)"
        elif re.search(r"_test\.(c|cpp|h)$", written):
            yield f"{path}:{number}: tests are not included"
        elif rule is not None and path.parts[0] != "tests" and pathlib.PurePath(
                written).name.startswith("testing"):
            yield f"{path}:{number}: {written} is for tests only"
        elif rule is not None and ours and goes_up(path, ours):
            yield f"{path}:{number}: {written} is above this folder"
        elif rule is not None and not allowed(path, ours or written, rule):
            yield f"{path}:{number}: {written} may not be included here (may: {rule or 'nothing'})"


def condition_problems(path, lines):
    """Core and sim choose files, not #if."""
    guard = path.suffix in {".h", ".hpp"}
    for number, line in enumerate(lines, 1):
        test = FEATURE_TEST.match(line)
        if not test:
            continue
        condition = test.group(1)
        if guard and re.fullmatch(r"\w+_H(PP)?", condition.strip()):
            guard = False
        elif condition.strip() == "__cplusplus":
            pass
        elif path.suffix == ".cpp" and path.parts[0] == "sim" and "SIMGRID_VERSION" in condition:
            pass
        else:
            yield f"{path}:{number}: conditional compilation: choose files instead"


def source_problems():
    for path in repository.sources():
        # Comments go, their line ends stay.
        text = COMMENT.sub(lambda comment: re.sub(r"[^\n]", "", comment.group()) or " ",
                           repository.read(path))
        lines = text.splitlines()
        yield from include_problems(path, lines)
        if for_tests(path):
            continue
        folder = path.parts[0]
        if folder in {"core", "sim"}:
            yield from condition_problems(path, lines)
        for number, line in enumerate(lines, 1):
            if folder == "core" and CLOCK_READING.search(line):
                yield f"{path}:{number}: the core reads no clock"
            if folder not in ENVIRONMENT_READERS and ENVIRONMENT.search(line):
                yield f"{path}:{number}: the environment is read in cli/ and runtime/ only"


def core_objects():
    """Object file of every source file of the core that has been compiled."""
    folder = repository.BUILD / "CMakeFiles" / "duet_core.dir"
    for path in repository.sources():
        compiled = folder / (str(path) + ".o")
        if path.parts[0] == "core" and path.suffix == ".c" and compiled.exists():
            yield path, str(compiled)


def symbols(*options):
    """The names that nm lists, for each source file of the core: in one process, which takes long
    to begin."""
    objects = {compiled: path for path, compiled in core_objects()}
    names = {path: set() for path in objects.values()}
    if objects:
        output = subprocess.run([os.environ.get("DUET_NM", "nm"), "--format=posix", "-A", *options,
                                 *objects], capture_output=True, text=True, check=True).stdout
        for line in output.splitlines():
            compiled, _, symbol = line.rpartition(": ")
            names[objects[compiled]].add(symbol.split()[0])
    return names


def core_problems():
    undefined = symbols("--undefined-only")
    defined = symbols("--extern-only", "--defined-only")
    ours = set().union(*defined.values()) if defined else set()
    for path, names in undefined.items():
        for name in sorted(names - ours - CORE_CALLS):
            yield f"{path}: calls {name}, which the core may not"
        plug_in = {"policies": "duet__policy_", "models": "duet__model_"}.get(path.parts[1])
        own = sorted(defined[path])
        if plug_in and not (own and all(name.startswith(plug_in) for name in own)):
            yield f"{path}: only {plug_in}* are to be external, found {own}"
        for name in sorted(names & ours):
            if plug_in and not re.match(r"duet_[a-z]", name):
                yield f"{path}: uses {name}, which is internal"
        for name in sorted(defined[path]):
            if not re.match(r"duet_", name):
                yield f"{path}: {name} is external and lacks the prefix duet_ or duet__"


problems = [*source_problems(), *core_problems()]
repository.finish(problems, f"{len(repository.sources())} files and {len(list(core_objects()))} "
                  "objects of the core keep to the map")
