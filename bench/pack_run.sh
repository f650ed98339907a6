#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks, verifies and measures duet on this machine's GPU, out of a folder made by bench/pack, and
# writes results.md and results.json into a directory (./results). A part that fails or takes too
# long does not stop the others. Ends with the line "N passed, N failed, N skipped"; status 1 if
# something failed, 77 if there is no GPU. That is so if cuda_peers says it; if it cannot even begin
# (a library of CUDA's is missing), that is a failure, and duet itself is tried all the same.
#
# Usage: run [--limit SECONDS] [--only PART,...] [--quick] [DIRECTORY [OPTION OF gpu.py ...]]
#        parts: tests, sanitizer, verify, bench; default: all, within 1500 seconds
#        --quick: small sizes, to see that everything runs
#        options of gpu.py: python3 bench/gpu.py --help
set -u

here=$(cd "$(dirname "$0")" && pwd)
parts=tests,sanitizer,verify,bench
limit=1500
only=$parts
quick=
help() {
    sed -n 's/^# \{0,1\}//; /^Checks/,/^$/p; /^Usage/,/^set/{/^set/!p;}' "$0"
}
# usage WHAT: refuses the command line.
usage() {
    echo "run: $1" >&2
    sed -n 's/^# //; /^Usage/p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --help | -h) help; exit 0 ;;
    --limit) [ $# -gt 1 ] || usage "--limit wants seconds"; limit=$2; shift 2 ;;
    --only) [ $# -gt 1 ] || usage "--only wants parts: $parts"; only=$2; shift 2 ;;
    --quick) quick=--quick; shift ;;
    -*) usage "unknown option $1" ;;
    *) break ;;
    esac
done
case $limit in *[!0-9]* | '') usage "--limit is \"$limit\": it must be a number of seconds" ;; esac
[ -n "$only" ] || usage "--only names no part: known are $parts"
rest=$only,
while [ -n "$rest" ]; do
    part=${rest%%,*} rest=${rest#*,}
    case $part in
    tests | sanitizer | verify | bench) ;;
    *) usage "unknown part \"$part\": known are $parts" ;;
    esac
done
results=${1:-results}
[ $# -eq 0 ] || shift
mkdir -p "$results/logs" || exit 2
results=$(cd "$results" && pwd)
checks=$results/logs/checks
: >"$checks"
: >"$results/logs/begin" # what is newer was made by this run
begin=$(date +%s)

# The libraries of the folder; CUDA's from wherever they are: named by the user, beside nvcc, or
# where they were when the folder was packed.
value() {
    sed -n "s/^$1: //p" "$here/manifest"
}
directories=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
nvcc=$(command -v nvcc) && nvcc=$(dirname "$(dirname "$nvcc")")
for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" "${nvcc:-}"; do
    [ -z "$root" ] || directories=$directories:$root/lib64
done
LD_LIBRARY_PATH=$directories:$(value cuda-directory)
PATH=$here/bin:$PATH
export LD_LIBRARY_PATH PATH

passed=0 failed=0 skipped=0

left() {
    echo $((limit - $(date +%s) + begin))
}

# note NAME STATUS SECONDS: counts, prints, and keeps for the report.
note() {
    case $2 in
    0) word=passed passed=$((passed + 1)) ;;
    77) word=skipped skipped=$((skipped + 1)) ;;
    124 | 137) word='failed (out of time)' failed=$((failed + 1)) ;;
    *) word="failed (status $2)" failed=$((failed + 1)) ;;
    esac
    why=
    if [ "$2" -ne 0 ] && [ -f "$results/logs/$1.log" ]; then
        why=$(grep -v '^[[:space:]]*$' "$results/logs/$1.log" | tail -n 1 |
            sed 's/^cuda_peers: skipped: //')
    fi
    printf '%s\t%s\t%s\t%s\n' "$1" "$word" "$3" "$why" >>"$checks"
    echo "$1: $word${why:+: $why}"
}

# step NAME SECONDS COMMAND...: runs it within so many seconds, and those that are left.
step() {
    name=$1 most=$2
    shift 2
    rest=$(left)
    [ "$most" -le "$rest" ] || most=$rest
    if [ "$most" -le 0 ]; then
        echo "no time left" >"$results/logs/$name.log"
        note "$name" 77 0
        return 77
    fi
    started=$(date +%s)
    timeout -k 10 "$most" "$@" >"$results/logs/$name.log" 2>&1 </dev/null
    status=$?
    note "$name" $status $(($(date +%s) - started))
    return $status
}

wanted() {
    case ,$only, in *,$1,*) return 0 ;; esac
    return 1
}

skip() {
    echo "$2" >"$results/logs/$1.log"
    note "$1" 77 0
}

# ----------------------------------------------------------------------------------------------

tests() {
    for path in "$here"/tests/*; do
        [ -x "$path" ] && step "$(basename "$path")" 120 "$path"
    done
}

sanitizer() {
    tool=$(command -v compute-sanitizer) || tool=
    packed=$(dirname "$(value cuda-directory)")
    for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" "${nvcc:-}" "$packed"; do
        [ -n "$tool" ] || [ ! -x "$root/bin/compute-sanitizer" ] || tool=$root/bin/compute-sanitizer
    done
    if [ -z "$tool" ]; then
        skip memcheck "compute-sanitizer is not here"
        return
    fi
    for path in "$here"/tests/backends.conformance*; do
        # calls that CUDA refuses are part of what these tests are about
        [ ! -x "$path" ] || step "memcheck-$(basename "$path")" 300 "$tool" --tool memcheck \
            --report-api-errors no --error-exitcode 99 "$path"
    done
}

# Every workload in both precisions, with all of the GPU's memory and with little of it.
verify() {
    n=4096 tile=512 memory=64MiB
    [ -z "$quick" ] || n=512 tile=128 memory=2MiB
    for workload in cholesky lu lu-pivot gemm jacobi2d; do
        for precision in s d; do
            step "verify-$workload-$precision" 120 duet run "$workload" --n $n --tile $tile \
                --precision $precision --gpus 1 --cpus 1 --policy ws,locality-aware,heft --reps 2 \
                --verify --quiet
            step "verify-$workload-$precision-small-memory" 120 duet run "$workload" --n $n \
                --tile $tile --precision $precision --gpus 1 --cpus 1 --gpu-memory $memory \
                --policy ws,locality-aware,heft --reps 2 --verify --quiet
        done
    done
    step verify-saxpy 120 duet run saxpy --n 4194304 --tile 65536 --gpus 1 --cpus 1 --reps 2 \
        --verify --quiet
    step verify-cholesky-on-gpu 120 duet run cholesky --n $n --tile $tile --gpus 1 --cpus 1 \
        --param potrf=any --set-arch --reps 2 --verify --quiet
    step verify-cholesky-columns 120 duet run cholesky --n $n --tile $tile --gpus 1 --cpus 1 \
        --param layout=lapack --reps 2 --verify --quiet
}

# A line about the machine, as far as it says.
machine() {
    processor=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)
    memory=$(awk '/^MemTotal:/ { printf ", %.0f GiB", $2 / 1048576 }' /proc/meminfo 2>/dev/null)
    echo "${processor:-$(uname -m)}, $(nproc) cores$memory, $(uname -sr); $(value version)."
}

# The report where gpu.py writes none: what was run, and what came of it.
report() {
    device=$(sed -n 's/.*"device": "\([^"]*\)".*/\1/p' "$results/logs/device.log" | head -n 1)
    [ $gpu -ne 77 ] || device='No GPU'
    {
        echo "# ${device:-A GPU} and $(nproc) cores, $(date +%Y-%m-%d)"
        echo
        machine
        echo
        echo "$passed passed, $failed failed, $skipped skipped. No figures were taken."
        echo
        echo "| what | outcome | seconds | last line |"
        echo "|---|---|--:|---|"
        sed 's/|/\\|/g; s/\t/ | /g; s/^/| /; s/ *$/ |/' "$checks"
        if [ -s "$results/logs/info.log" ]; then
            printf '\n## duet info\n\n```text\n'
            cat "$results/logs/info.log"
            printf '```\n'
        fi
    } >"$results/results.md"
}

bench() {
    if ! command -v python3 >/dev/null; then
        skip bench "python3 is not here"
        return
    fi
    budget=$(($(left) - 15))
    step bench 100000 python3 "$here/bench/gpu.py" $quick --budget $budget \
        --output "$results/results.md" --checks "$checks" --duet "$here/bin/duet" \
        --programs "$here/bench" "$@"
    tail -n 3 "$results/logs/bench.log"
}

# ----------------------------------------------------------------------------------------------

echo "$(value version), needs glibc $(value glibc)"
step info 60 duet info
cat "$results/logs/info.log"
timeout -k 10 120 "$here/bench/cuda_peers" device >"$results/logs/device.log" 2>&1 </dev/null
gpu=$?
[ $gpu -ne 0 ] || cat "$results/logs/device.log"
note device $gpu 0

if [ $gpu -eq 77 ]; then
    for part in tests sanitizer verify bench; do
        wanted $part && skip $part "no GPU"
    done
else
    wanted tests && tests
    wanted sanitizer && sanitizer
    wanted verify && verify
    wanted bench && bench "$@"
fi
made=$(find "$results" -name results.md -newer "$results/logs/begin")
[ -n "$made" ] || report
echo "results: $results/results.md"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] || exit 1
[ $gpu -ne 77 ] || exit 77
exit 0
