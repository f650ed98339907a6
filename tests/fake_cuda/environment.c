/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the environment, and writes the report at the end of the process. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/internal.h"

static const char *report_path;

static void refuse(const char *name, const char *text)
{
    (void)fprintf(stderr, "fake CUDA: %s=%s is not understood\n", name, text);
    abort();
}

/* Returns a number that ends with one of `ends` (0 counts as one), and sets *text behind it. */
static uint64_t number(const char *name, const char **text, const char *ends)
{
    char *end;
    uint64_t value = strtoull(*text, &end, 10);
    if (end == *text || (*end && !strchr(ends, *end)))
        refuse(name, *text);
    *text = *end ? end + 1 : end;
    return value;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? number(name, &text, "") : otherwise;
}

/* Reads faults: "FUNCTION@NTH=ERROR,..." */
static void read_faults(const char *name)
{
    const char *text = getenv(name);
    while (text && *text) {
        char function[64];
        const char *at = strchr(text, '@');
        if (!at || (size_t)(at - text) >= sizeof function)
            refuse(name, text);
        memcpy(function, text, (size_t)(at - text));
        function[at - text] = '\0';
        text = at + 1;
        uint64_t nth = number(name, &text, "=");
        fake_fault(function, nth, (cudaError_t)number(name, &text, ","));
    }
}

/* Reads breaks: "DEVICE@OPERATIONS=ERROR,..." */
static void read_breaks(const char *name)
{
    struct fake *fake = fake_state();
    const char *text = getenv(name);
    while (text && *text) {
        uint64_t device = number(name, &text, "@");
        if (device >= fake->config.devices)
            refuse(name, getenv(name));
        fake->devices[device].fuse = (unsigned)number(name, &text, "=");
        fake->devices[device].fuse_error = (cudaError_t)number(name, &text, ",");
        if (!fake->devices[device].fuse)
            fake->devices[device].broken = fake->devices[device].fuse_error;
    }
}

__attribute__((destructor)) static void report(void)
{
    if (!report_path || !*report_path)
        return;
    struct fake_cuda_stats s;
    unsigned leaks = fake_cuda_leaks(false);
    FILE *file = fopen(report_path, "we");
    if (!file) {
        perror(report_path);
        return;
    }
    fake_cuda_stats(&s);
#define X(name) (void)fprintf(file, #name " %" PRIu64 "\n", fake_cuda_calls(#name));
    FAKE_FUNCTIONS(X)
#undef X
#define X(name) (void)fprintf(file, #name " %" PRIu64 "\n", s.name);
    X(in)
    X(out)
    X(in_bytes)
    X(out_bytes)
    X(pageable_in)
    X(pageable_out)
    X(pageable_bytes)
    X(within)
    X(direct)
    X(staged)
    X(peer_bytes)
    X(kernels)
    X(host_functions)
    X(violations)
#undef X
    (void)fprintf(file, "leaks %u\n", leaks);
    if (fclose(file))
        perror(report_path);
}

void fake_read_environment(void)
{
    struct fake_cuda_config *config = &fake_state()->config;
    config->devices = (unsigned)setting("FAKE_CUDA_DEVICES", 0);
    if (config->devices > FAKE_CUDA_DEVICES_MAX)
        refuse("FAKE_CUDA_DEVICES", getenv("FAKE_CUDA_DEVICES"));
    config->memory_bytes = setting("FAKE_CUDA_MEMORY", FAKE_CUDA_MEMORY_BYTES);
    config->registered_bytes = setting("FAKE_CUDA_REGISTERED", 0);
    config->delay_us = (unsigned)setting("FAKE_CUDA_DELAY", 0);
    config->no_peers = !setting("FAKE_CUDA_PEERS", 1);
    read_faults("FAKE_CUDA_FAIL");
    read_breaks("FAKE_CUDA_BREAK");
    report_path = getenv("FAKE_CUDA_REPORT");
}
