/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What duet's runs on an NVIDIA GPU are measured beside: cuBLAS and cuSOLVER in core, cuBLASXt from
 * the host's memory, plain copies, and what CUDA's calls cost. Prints a JSON object a line, with
 * the value of every repeat; results are checked, a wrong one is status 1. Without a GPU, or with
 * too small a one: one line and status 77.
 *
 * Usage: cuda_peers MODE [--n N] [--precision s|d] [--repeats R] [--limit SECONDS] [--block B]
 *                   [--device K]
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/peers.h"
#include "bench/timing.h"

/* ------------------------------------------------------------------------------------------- */
/* Errors, memory, repeats                                                                      */

void peers_end(int status, const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fputs(status == PEERS_SKIPPED ? "cuda_peers: skipped: " : "cuda_peers: ", stderr);
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was started a line above */
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(status);
}

void peers_cuda(cudaError_t status, const char *call)
{
    if (status != cudaSuccess)
        peers_end(1, "%s: %s (%s)", call, cudaGetErrorString(status), cudaGetErrorName(status));
}

void peers_cublas(cublasStatus_t status, const char *call)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        peers_end(1, "%s: %s", call, cublasGetStatusName(status));
}

void peers_need(const struct peers *peers, double bytes)
{
    const double reserve = 0x1p29; /* of libraries */
    size_t available, total;
    CUDA(cudaMemGetInfo(&available, &total));
    if (bytes + reserve > (double)available)
        peers_end(PEERS_SKIPPED,
                  "%s of order %zu needs %.2f GiB of the GPU's memory, %.2f GiB are free",
                  peers->mode, peers->n, bytes * 0x1p-30, (double)available * 0x1p-30);
}

void *peers_device(size_t bytes)
{
    void *memory = NULL;
    CUDA(cudaMalloc(&memory, bytes));
    return memory;
}

void *peers_pinned(size_t bytes)
{
    void *memory = NULL;
    CUDA(cudaMallocHost(&memory, bytes));
    return memory;
}

void peers_copy(const struct peers *peers, void *to, const void *from, size_t bytes)
{
    CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, peers->stream));
}

void peers_wait(const struct peers *peers)
{
    CUDA(cudaStreamSynchronize(peers->stream));
}

bool repeats_go_on(const struct peers *peers, struct repeats *repeats)
{
    if (repeats->made == 0)
        repeats->start_s = seconds();
    return repeats->made < 2 ||
           (repeats->made <= peers->repeats && seconds() - repeats->start_s < peers->limit_s);
}

void repeats_add(struct repeats *repeats, double elapsed_s)
{
    repeats->seconds[repeats->made++] = elapsed_s;
}

/* ------------------------------------------------------------------------------------------- */
/* Lines                                                                                        */

void line_begin(const struct peers *peers, const char *peer)
{
    printf("{\"mode\": \"%s\", \"peer\": \"%s\"", peers->mode, peer);
}

void line_text(const char *key, const char *value)
{
    printf(", \"%s\": \"%s\"", key, value);
}

void line_integer(const char *key, uint64_t value)
{
    printf(", \"%s\": %" PRIu64, key, value);
}

void line_flag(const char *key, bool value)
{
    printf(", \"%s\": %s", key, value ? "true" : "false");
}

void line_values(const struct repeats *repeats, const char *unit, double amount)
{
    line_text("unit", unit);
    for (unsigned i = 1; i < repeats->made; i++)
        printf("%s%.9g", i == 1 ? ", \"values\": [" : ", ",
               amount > 0 ? amount / repeats->seconds[i] : -amount * repeats->seconds[i]);
    putchar(']');
}

void line_end(void)
{
    puts("}");
    fflush(stdout);
}

void line_end_verified(bool right)
{
    line_flag("verified", right);
    line_end();
    if (!right)
        peers_end(1, "a wrong result");
}

/* ------------------------------------------------------------------------------------------- */
/* The command line                                                                             */

static const struct mode {
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

static size_t number(const char *text, size_t least, size_t most)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && value >= least && value <= most)
        return (size_t)value;
    fprintf(stderr, "cuda_peers: \"%s\" must be a number from %zu to %zu\n", text, least, most);
    exit(2);
}

static const struct mode *parse(struct peers *peers, int argc, char **argv)
{
    static const struct option options[] = {{"n", required_argument, NULL, 'n'},
                                            {"precision", required_argument, NULL, 'p'},
                                            {"repeats", required_argument, NULL, 'r'},
                                            {"limit", required_argument, NULL, 'l'},
                                            {"block", required_argument, NULL, 'b'},
                                            {"device", required_argument, NULL, 'd'},
                                            {0}};
    const struct mode *mode = modes;
    while (mode < modes + MODES && (argc < 2 || strcmp(mode->name, argv[1]) != 0))
        mode++;
    if (mode == modes + MODES)
        usage();
    *peers = (struct peers){.mode = mode->name,
                            .precision = 'd',
                            .n = mode->n,
                            .repeats = 3,
                            .limit_s = 1 << 20};
    for (int option; (option = getopt_long(argc - 1, argv + 1, "", options, NULL)) != -1;)
        if (option == 'n')
            peers->n = number(optarg, 1, mode->most);
        else if (option == 'r')
            peers->repeats = (unsigned)number(optarg, 1, PEERS_REPEATS_MAX);
        else if (option == 'l')
            peers->limit_s = (double)number(optarg, 0, 1 << 20);
        else if (option == 'b')
            peers->block = (unsigned)number(optarg, 1, 1 << 20);
        else if (option == 'd')
            peers->device = (int)number(optarg, 0, 1 << 10);
        else if (option == 'p' && (!strcmp(optarg, "s") || !strcmp(optarg, "d")))
            peers->precision = *optarg;
        else
            usage();
    if (optind != argc - 1)
        usage();
    peers->element = peers->precision == 's' ? sizeof(float) : sizeof(double);
    return mode;
}

/* The GPU, and what all modes need of it. */
static void open_device(struct peers *peers)
{
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || !count)
        peers_end(PEERS_SKIPPED, "no GPU: %s (%s); `duet info` says more",
                  cudaGetErrorString(status), cudaGetErrorName(status));
    if (peers->device >= count)
        peers_end(PEERS_SKIPPED, "there is no GPU %d, there are %d", peers->device, count);
    CUDA(cudaSetDevice(peers->device));
    CUDA(cudaGetDeviceProperties(&peers->properties, peers->device));
    CUDA(cudaStreamCreateWithFlags(&peers->stream, cudaStreamNonBlocking));
    CUBLAS(cublasCreate(&peers->blas));
    CUBLAS(cublasSetStream(peers->blas, peers->stream));
}

void mode_device(struct peers *peers)
{
    size_t available, total;
    int driver, runtime, cublas;
    CUDA(cudaMemGetInfo(&available, &total));
    CUDA(cudaDriverGetVersion(&driver));
    CUDA(cudaRuntimeGetVersion(&runtime));
    CUBLAS(cublasGetVersion(peers->blas, &cublas));
    line_begin(peers, "cuda");
    line_text("device", peers->properties.name);
    line_integer("driver", (uint64_t)driver);
    line_integer("runtime", (uint64_t)runtime);
    line_integer("cublas", (uint64_t)cublas);
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
    struct peers peers;
    const struct mode *mode = parse(&peers, argc, argv);
    open_device(&peers);
    mode->run(&peers);
    CUBLAS(cublasDestroy(peers.blas));
    CUDA(cudaStreamDestroy(peers.stream));
    return 0;
}
