/* SPDX-License-Identifier: Apache-2.0 */
/* StarPU's figures of the bus: which node is which, and mutated files. */
#include "platforms/internal.h"

#include <glib/gstdio.h>
#include <stdio.h>

#include "report/testing_mutate.h"

/* Two memories of the host, two CUDA devices behind one bridge, one of OpenCL. */
static const struct {
    const char *kind, *text;
} files[] = {
    {"config", "# Current configuration\n8 # Number of CPUs\n2 # Number of NUMA nodes\n"
               "2 # Number of CUDA devices\n1 # Number of OpenCL devices\n"},
    {"bandwidth", "# to 0\tto 1\n0 900 1000 1100 50\n900 0 1 1 50\n1200 1 0 1300 50\n"
                  "1400 1 1500 0 50\n50 50 50 50 0\n"},
    {"latency", "0 9 10 11 5\n9 0 1 1 5\n12 1 0 13 5\n14 1 15 0 5\n5 5 5 5 0\n"},
    {"affinity", "# GPU\tNUMA0\n0\t1\t0\n1\t1\t0\n0\t0\t1\n"},
    {"platform.xml",
     "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"simgrid.dtd\">\n<platform><AS>\n"
     "<host id=\"CUDA0\"><prop id=\"memsize\" value=\"1000\"/></host>\n"
     "<host id=\"CUDA1\"><prop id=\"memsize\" value=\"2000\"/></host>\n"
     "<route src=\"RAM\" dst=\"CUDA0\"><link_ctn id=\"PCI:1 down\"/><link_ctn id=\"PCI:0 down\"/>"
     "<link_ctn id=\"Host\"/></route>\n"
     "<route src=\"RAM\" dst=\"CUDA1\"><link_ctn id=\"PCI:2 down\"/><link_ctn id=\"PCI:0 down\"/>"
     "</route></AS></platform>\n"},
};

static void write_files(const char *directory, size_t changed, const char *text)
{
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_strdup_printf("%s/bus/box.%s", directory, files[i].kind);
        FILE *file = fopen(path, "w");
        g_assert_true(file && fputs(i == changed ? text : files[i].text, file) >= 0);
        g_assert_cmpint(fclose(file), ==, 0);
    }
}

static void test_figures(gconstpointer directory)
{
    OWNED(duet__platform_fini) struct duet__platform p;
    write_files(directory, G_N_ELEMENTS(files), NULL);
    WORKS(duet__platform_read_starpu(directory, "box", "box", &p, hear()));
    g_assert_cmpuint(p.gpu_count, ==, 2);
    g_assert_cmpuint(p.socket_count, ==, 1);
    g_assert_cmpuint(p.sockets[0].cores, ==, 8);
    g_assert_cmpuint(p.switch_count, ==, 1);
    g_assert_cmpfloat(p.gpus[0].to_device.bandwidth_Bps, ==, 1000e6);
    g_assert_cmpfloat(p.gpus[1].to_device.bandwidth_Bps, ==, 1100e6);
    g_assert_cmpfloat(p.gpus[0].to_host.bandwidth_Bps, ==, 1200e6);
    g_assert_cmpfloat(p.switches[0].to_host_Bps, ==, 1400e6);
    g_assert_cmpfloat(p.gpus[1].to_host.latency_s, ==, 14e-6);
    g_assert_cmpfloat(p.peers[DUET_REACH_SWITCH].up.bandwidth_Bps, ==, 1300e6);
    g_assert_cmpfloat(p.peers[DUET_REACH_SWITCH].down.latency_s, ==, 15e-6);
    g_assert_cmpuint(p.gpus[1].memory_bytes, ==, 2000);
}

/* Any machine that can be read can be built. */
static void test_fuzz(gconstpointer directory)
{
    enum { ROUNDS = 200 };
    const struct duet__platform_options options = {.cpus = -1, .gpus = -1};
    g_autoptr(GRand) random = g_rand_new_with_seed(45);
    for (int round = 0; round < ROUNDS; round++) {
        g_autoptr(GString) text = g_string_new(files[round % G_N_ELEMENTS(files)].text);
        OWNED(duet__platform_fini) struct duet__platform p;
        struct duet_machine machine;
        testing_mutate(text, random);
        write_files(directory, round % G_N_ELEMENTS(files), text->str);
        if (duet__platform_read_starpu(directory, "box", "box", &p, hear())) {
            g_assert_cmpstr(heard(), !=, "");
        } else if (p.sockets[0].cores > p.gpu_count && p.sockets[0].cores < 100) {
            WORKS(duet__platform_build(&p, &options, &machine, hear()));
            duet_machine_fini(&machine);
        }
    }
}

int main(int argc, char **argv)
{
    OWNED(drop_folder) char *directory = new_folder();
    g_autofree char *bus = g_build_filename(directory, "bus", NULL);
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(g_mkdir(bus, 0700), ==, 0);
    g_test_add_data_func("/starpu/figures", directory, test_figures);
    g_test_add_data_func("/starpu/fuzz", directory, test_fuzz);
    return g_test_run();
}
