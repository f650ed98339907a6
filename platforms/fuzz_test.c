/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutated platforms: whatever the input, a reader succeeds with a machine that holds together or
 * fails with a message. Run as a test it is seeded and bounded; with clang's -fsanitize=fuzzer
 * (and DUET_FUZZER defined) LLVMFuzzerTestOneInput is the entry.
 */
#include <stdlib.h>

#include "platforms/catalogue.h"
#include "platforms/internal.h"
#include "platforms/testing_draft.h"
#include "report/testing_mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const path = "/nonexistent/fuzz";

static void read_platform(const char *text, size_t size, bool xml)
{
    static const struct duet__platform_options options[] =
        {{.cpus = -1, .gpus = -1}, {.cpus = 1, .gpus = 9}, {.cpus = 0, .gpus = 1, .no_peer = true}};
    struct duet__platform *p = NULL;
    /* A calibration beside /nonexistent/fuzz is never there, so old descriptions stop at it; the
     * one inside is read next. */
    if (!xml) {
        struct duet__platform inner = {.name = ""};
        g_autofree char *times = NULL;
        int error = duet__read_description(&inner, text, size, path, &times, hear());
        g_assert_true(!error || heard()[0] != '\0');
        for (unsigned i = 0; !error && i < G_N_ELEMENTS(options); i++) {
            OWNED(duet_machine_fini) struct duet_machine m;
            int result = duet__platform_build(&inner, &options[i], &m, hear());
            g_assert_true(result == DUET_OK || result == DUET_EINVAL);
        }
        duet__platform_fini(&inner);
        return;
    }
    if (duet__platform_parse(text, size, path, true, &p, hear()) != DUET_OK) {
        g_assert_cmpstr(heard(), !=, "");
        g_assert_null(p);
        return;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(options); i++) {
        OWNED(duet_machine_fini) struct duet_machine m;
        int result = duet__platform_build(p, &options[i], &m, hear());
        g_assert_true(result == DUET_OK || result == DUET_EINVAL);
    }
    duet__platform_free(p);
}

static void read_calibration(const char *text, size_t size)
{
    static const struct duet_arch archs[] = {{"x5650", "cpu"}, {"m2070", "cuda"}};
    OWNED(duet__platform_fini)
    struct duet__platform p = {.archs = g_memdup2(archs, sizeof(archs)),
                               .arch_count = G_N_ELEMENTS(archs)};
    int error = duet__read_calibration(&p, text, size, path, hear());
    g_assert_true(!error || heard()[0] != '\0');
}

/* A machine of any devices is put together or refused. */
static void read_catalogue(const char *text, size_t size)
{
    OWNED(duet__catalogue_fini) struct duet__catalogue catalogue;
    int error = duet__catalogue_read(&catalogue, text, size, path, hear());
    g_assert_true(!error || heard()[0] != '\0');
    for (unsigned i = 0; !error && i < catalogue.device_count; i++) {
        const struct duet__gpu_group group = {4, catalogue.devices[i].name};
        const struct duet__assembly assembly = {.name = "any",
                                                .sockets = 2,
                                                .gpus = &group,
                                                .group_count = 1,
                                                .fabric = i % 3};
        OWNED(duet__platform_fini) struct duet__platform p;
        int result = duet__platform_assemble(&catalogue, &assembly, &p, hear());
        g_assert_true(result == DUET_OK || heard()[0] != '\0');
    }
}

/* Any text is refused, or is a network whose shape is written as it was read. */
static void read_network(const char *text)
{
    struct duet__network network, again;
    if (duet__network_parse("--network", text, NULL, &network, hear()) != DUET_OK) {
        g_assert_cmpstr(heard(), !=, "");
        return;
    }
    g_autofree char *shape = duet__network_shape_text(&network);
    again = network;
    again.levels = 0;
    if (shape != NULL && duet__network_read_shape(&again, shape, hear()) != DUET_OK)
        g_error("%s: %s", shape, heard());
    g_assert_cmpmem(&again, sizeof again, &network, sizeof network);
    if (duet__network_shape(&again, 100, hear()) != DUET_OK)
        g_assert_cmpuint(network.levels, >, 0);
}

/*
 * The first byte of the document chooses the reader: '<' is XML, '{' and the like are JSON of each
 * kind, and a letter begins a network.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = g_malloc(size + 1); /* exactly this long, so that sanitizers see an overrun */
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    if (text[0] == '<') {
        read_platform(text, size, true);
    } else if (g_ascii_isalpha(text[0])) {
        read_network(text);
    } else {
        read_platform(text, size, false);
        read_calibration(text, size);
        read_catalogue(text, size);
    }
    g_free(text);
    return 0;
}

#ifndef DUET_FUZZER

enum { BYTES = 10000000 }; /* all mutated documents of a seed together; a short one counts 1 KB */

static void fuzz(const char *seed_text, size_t length)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(20130520);
    for (size_t round = 0; round < BYTES / MAX(length, 1000); round++) {
        GString *text = g_string_new_len(seed_text, (gssize)length);
        testing_mutate(text, random);
        LLVMFuzzerTestOneInput((const uint8_t *)text->str, text->len);
        g_string_free(text, TRUE);
    }
}

static void fuzz_file(const char *file)
{
    g_autofree char *text = NULL;
    size_t length = 0;
    g_assert_true(g_file_get_contents(file, &text, &length, NULL));
    fuzz(text, length);
}

static void test_description(void)
{
    fuzz_file(DUET_SOURCE_DIR "/platforms/mirage.json");
}

/* A file of kernel times alone, as in an old pair of files. */
static void test_calibration(void)
{
    OWNED(free_platform) struct duet__platform *p = load("mirage");
    g_autofree char *text = duet__format_times(p);
    fuzz(text, strlen(text));
}

static void test_network(void)
{
    static const char *const texts[] = {
        "fat-tree:100Gbps,1us,2;16,4;1,8;1,1,eager=64KiB,overhead=0.5us,rendezvous=2us",
        "dragonfly:12.5GB/s,1500ns,8,4;1,1;8,1;4,overhead=0",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        fuzz(texts[i], strlen(texts[i]));
}

static void test_catalogue(void)
{
    g_autofree char *file =
        g_build_filename(DUET_SOURCE_DIR, "platforms", "devices", "catalogue.json", NULL);
    fuzz_file(file);
}

/* Small files of a measured machine, which have every key there is. */
static void test_measured(void)
{
    OWNED(remove_folder) struct folder folder = make_folder();
    struct duet__platform draft = make_draft();
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    const struct duet__point points[] = {any_point(random, 1e6), any_point(random, 1e9)};
    OWNED(duet__calibration_fini) struct duet__calibration times = {0};
    add_curve(&times, "dgemm", "x5650", "cholesky", points, G_N_ELEMENTS(points));
    write_draft(&draft, &times, folder.json, DUET_WRITE_NEW);
    fuzz_file(folder.json);
}

static void test_xml(void)
{
    OWNED(drop_folder) char *directory = new_folder();
    g_autofree char *file = g_build_filename(directory, "m.xml", NULL);
    OWNED(free_platform) struct duet__platform *p = load("mirage");
    OWNED(duet_machine_fini) struct duet_machine m = build(p, 1, 2);
    g_autofree char *text = NULL;
    size_t length = 0;
    m.sharing = (struct duet_sharing){1 << 25, 1e11};
    m.cores = 3;
    m.first_waits = true;
    m.costs.wake_s = 5e-5;
    WORKS(duet__platform_write_xml(&m, NULL, file, hear()));
    g_assert_true(g_file_get_contents(file, &text, &length, NULL));
    fuzz(text, length);
}

TEST_MAIN(test_description, test_calibration, test_catalogue, test_network, test_measured, test_xml)

#endif
