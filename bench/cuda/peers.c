/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What duet's runs on an NVIDIA GPU are measured beside: cuBLAS and cuSOLVER in core, cuBLASXt from
 * the host's memory, plain copies, and what CUDA's calls cost. Prints a JSON object a line, with
 * the seconds of every repeat; results are checked, a wrong one is status 1. Without a GPU, or
 * with too small a one: one line and status 77.
 *
 * Usage: cuda_peers MODE [--n N] [--precision s|d] [--repeats R] [--limit SECONDS] [--block B]
 *                   [--device K]
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/devices.h"
#include "bench/cuda/peers.h"
#include "bench/timing.h"

static const struct {
    const char *name;
    void (*run)(struct peers *peers);
    size_t n; /* without --n; 0: it has none, or no bound */
    size_t most;
    const char *description;
} modes[] = {
    {"device", mode_device, 0, 0, "what the GPU is, and versions"},
    {"gemm", mode_gemm, 8192, INT32_MAX, "C += A B, cuBLAS in core, with and without copies"},
    {"gemm-xt", mode_gemm_xt, 8192, INT32_MAX, "the same from the host's memory, cuBLASXt"},
    {"potrf", mode_potrf, 8192, INT32_MAX, "Cholesky, cuSOLVER in core, with and without copies"},
    {"getrf", mode_getrf, 8192, INT32_MAX, "LU with pivoting, likewise"},
    {"axpy", mode_axpy, 1 << 24, INT32_MAX, "y += a x, cuBLAS in core, with and without copies"},
    {"jacobi2d", mode_jacobi2d, 4096, 1 << 20, "ten steps of Jacobi's iteration, likewise"},
    {"copies", mode_copies, 0, INT32_MAX, "bandwidths; --n: bytes of a copy at most"},
    {"costs", mode_costs, 0, 0, "launches, events, small copies, page-locking"},
};

enum { MODES = sizeof modes / sizeof modes[0] };

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: cuda_peers MODE [--n N] [--precision s|d] [--repeats R] "
                    "[--limit SECONDS] [--block B] [--device K]\nmodes:\n");
    for (size_t i = 0; i < MODES; i++)
        fprintf(stderr, "  %-9s %s\n", modes[i].name, modes[i].description);
    exit(2);
}

static size_t number(const char *option, const char *text, size_t least, size_t most)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && value >= least && value <= most)
        return (size_t)value;
    fprintf(stderr, "cuda_peers: --%s is \"%s\": it must be a number from %zu to %zu\n", option,
            text, least, most);
    exit(2);
}

static void set_option(struct peers *peers, int option, const char *text, size_t most)
{
    if (option == 'n') {
        peers->n = number("n", text, 1, most);
    } else if (option == 'r') {
        peers->repeats = (unsigned)number("repeats", text, 1, PEERS_REPEATS_MAX);
    } else if (option == 'l') {
        peers->limit_s = (double)number("limit", text, 0, 1 << 20);
    } else if (option == 'b') {
        peers->block = (unsigned)number("block", text, 1, 1 << 20);
    } else if (option == 'd') {
        peers->device = (int)number("device", text, 0, 1 << 10);
    } else if (option == 'p' && (!strcmp(text, "s") || !strcmp(text, "d"))) {
        peers->precision = *text;
    } else {
        usage();
    }
}

static size_t find_mode(const char *name)
{
    for (size_t i = 0; i < MODES; i++)
        if (name && !strcmp(name, modes[i].name))
            return i;
    usage();
}

static void parse(struct peers *peers, size_t mode, int argc, char **argv)
{
    static const struct option options[] = {
        {"n", required_argument, NULL, 'n'},
        {"precision", required_argument, NULL, 'p'},
        {"repeats", required_argument, NULL, 'r'},
        {"limit", required_argument, NULL, 'l'},
        {"block", required_argument, NULL, 'b'},
        {"device", required_argument, NULL, 'd'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        set_option(peers, option, optarg, modes[mode].most);
    if (optind != argc)
        usage();
    peers->element = peers->precision == 's' ? sizeof(float) : sizeof(double);
}

/* The GPU, and what all modes need of it. */
static void open_device(struct peers *peers)
{
    char why[256];
    int count = count_devices(why, sizeof why);
    if (count == 0)
        peers_skip("no GPU: %s", why);
    if (peers->device >= count)
        peers_skip("there is no GPU %d, there are %d", peers->device, count);
    CUDA(cudaSetDevice(peers->device));
    CUDA(cudaGetDeviceProperties(&peers->properties, peers->device));
    CUDA(cudaStreamCreateWithFlags(&peers->stream, cudaStreamNonBlocking));
    CUBLAS(cublasCreate(&peers->blas));
    CUBLAS(cublasSetStream(peers->blas, peers->stream));
}

void mode_device(struct peers *peers)
{
    size_t available, total;
    CUDA(cudaMemGetInfo(&available, &total));
    line_begin(peers, "cuda");
    line_integer("major", (uint64_t)peers->properties.major);
    line_integer("minor", (uint64_t)peers->properties.minor);
    line_integer("multiprocessors", (uint64_t)peers->properties.multiProcessorCount);
    line_integer("copy_engines", (uint64_t)peers->properties.asyncEngineCount);
    line_integer("total_bytes", total);
    line_integer("free_bytes", available);
    line_end();
}

int main(int argc, char **argv)
{
    size_t mode = find_mode(argc > 1 ? argv[1] : NULL);
    struct peers peers = {.mode = modes[mode].name,
                          .precision = 'd',
                          .n = modes[mode].n,
                          .repeats = 3,
                          .limit_s = 1 << 20,
                          .start_s = seconds()};
    parse(&peers, mode, argc - 1, argv + 1);
    open_device(&peers);
    modes[mode].run(&peers);
    CUBLAS(cublasDestroy(peers.blas));
    CUDA(cudaStreamDestroy(peers.stream));
    return 0;
}
