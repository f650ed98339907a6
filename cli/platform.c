/* SPDX-License-Identifier: Apache-2.0 */
/* `duet platform`: checks if what a platform says is likely to be meant; makes machines of known
   devices. */
#include <stdio.h>
#include <string.h>

#include "cli/calibrate.h"
#include "platforms/catalogue.h"
#include "base/units.h"

/* True if one text is the other with a letter more, less, or changed, or with two exchanged. */
static bool is_near(const char *a, const char *b)
{
    for (; *a && *a == *b; a++)
        b++;
    return (*a && !strcmp(a + 1, b)) || (*b && !strcmp(a, b + 1)) ||
           (*a && *b &&
            (!strcmp(a + 1, b + 1) || (a[0] == b[1] && a[1] == b[0] && !strcmp(a + 2, b + 2))));
}

/*
 * Returns the kernel of a workload that an unknown one of the platform's `names` probably is: it is
 * not among them, and its name is nearly the same; for g_free. NULL: there is none.
 */
static char *find_meant(GHashTable *names, const char *name)
{
    g_autofree char *meant = NULL;
    for (size_t w = 0; duet__workload_at(w); w++)
        for (const char *const *kernel = duet__workload_at(w)->kernels; *kernel; kernel++)
            for (const char *precision = "sd"; *precision; precision++) {
                g_autofree char *own = g_strdup_printf("%c%s", *precision, *kernel);
                if (strcmp(own, name) == 0)
                    return NULL;
                if (is_near(own, name) && !g_hash_table_contains(names, own)) {
                    g_free(meant);
                    meant = g_steal_pointer(&own);
                }
            }
    return g_steal_pointer(&meant);
}

/* Prints kernels whose names are misspelt on all architectures. Returns whether there are any. */
static bool check_names(const char *name, const struct duet__calibration *calibration)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    bool any = false;
    for (size_t i = 0; i < calibration->count; i++)
        g_hash_table_add(names, calibration->curves[i].kernel);
    for (size_t i = 0; i < calibration->count; i++) {
        char *kernel = calibration->curves[i].kernel;
        g_autofree char *meant = g_hash_table_add(seen, kernel) ? find_meant(names, kernel) : NULL;
        if (meant)
            printf("%s: no workload has a kernel %s: is it %s, which has no times?\n", name, kernel,
                   meant);
        any = any || meant;
    }
    return any;
}

/* Prints what is suspicious of one platform. DUET__FAILED if anything is. */
static int check(const char *name)
{
    struct duet_message message = {""};
    struct duet__platform *platform = NULL;
    char **found;
    int status = DUET__DONE;
    if (duet__platform_load(name, &platform, &message))
        return duet__complain(DUET__MISUSED, "%s", message.text);
    found = duet__platform_suspicions(platform);
    for (char **at = found; *at; at++) {
        printf("%s: %s\n", name, *at);
        status = DUET__FAILED;
    }
    if (check_names(name, &platform->calibration))
        status = DUET__FAILED;
    if (status == DUET__DONE)
        printf("%s: nothing is suspicious\n", name);
    g_strfreev(found);
    duet__platform_free(platform);
    return status;
}

/* The parts of a new machine; the names of groups and links belong to the options. */
struct wanted {
    struct duet__assembly assembly;
    struct duet__gpu_group groups[16];
    GArray *links;
    char *cpus, *out, *name;
};

/* Cuts a text at `mark` and returns the part behind it; NULL if there is no mark. */
static char *cut(char *text, char mark)
{
    char *at = strchr(text, mark);
    if (at)
        *at++ = '\0';
    return at;
}

/* Reads CPUs: "2x32:epyc-9654", "2:epyc-9654" or "2x32". */
static int read_cpus(struct wanted *wanted, const char *text, struct duet_message *message)
{
    struct duet__assembly *a = &wanted->assembly;
    uint64_t sockets = 0, cores = 0;
    char *each;
    int error;
    if (!text)
        return duet_fail(message, DUET_EINVAL,
                         "which CPUs? --cpus SOCKETSxCORES:DEVICE, such as 2x32:epyc-9654");
    wanted->cpus = g_strdup(text);
    a->cpu = cut(wanted->cpus, ':');
    each = cut(wanted->cpus, 'x');
    error = duet__parse_count("--cpus", wanted->cpus, 1, 64, &sockets, message);
    if (!error && each)
        error = duet__parse_count("--cpus", each, 1, 4096, &cores, message);
    if (!error && !each && !a->cpu)
        error = duet_fail(message, DUET_EINVAL,
                          "--cpus takes SOCKETSxCORES, such as 2x32, or SOCKETS:DEVICE, not '%s'",
                          text);
    a->sockets = (unsigned)sockets;
    a->cores = (unsigned)cores;
    return error;
}

/* Reads GPUs: "4:a100". */
static int read_gpus(struct wanted *wanted, char **texts, struct duet_message *message)
{
    struct duet__assembly *a = &wanted->assembly;
    int error = 0;
    a->gpus = wanted->groups;
    for (; texts && *texts && !error; texts++) {
        uint64_t count = 0;
        char *device = cut(*texts, ':');
        if (!device || a->group_count == G_N_ELEMENTS(wanted->groups))
            return duet_fail(message, DUET_EINVAL, "--gpus takes NUMBER:DEVICE, such as 4:a100%s",
                             device ? ", at most 16 times" : "");
        error = duet__parse_count("--gpus", *texts, 1, 4096, &count, message);
        wanted->groups[a->group_count++] = (struct duet__gpu_group){(unsigned)count, device};
    }
    return error;
}

static int read_links(struct wanted *wanted, char **texts, struct duet_message *message)
{
    int error = 0;
    for (; texts && *texts && !error; texts++) {
        struct duet__link_override link = {.name = *texts};
        char *value = cut(*texts, '=');
        if (!value)
            return duet_fail(message, DUET_EINVAL, "--link takes NAME=BANDWIDTH, not '%s'", *texts);
        error = duet__parse_change("--link", value, &link.bandwidth_Bps, &link.factor, message);
        g_array_append_val(wanted->links, link);
    }
    wanted->assembly.links = (const struct duet__link_override *)(void *)wanted->links->data;
    wanted->assembly.link_count = wanted->links->len;
    return error;
}

static int check_out(const struct duet__job *job, struct duet_message *message)
{
    const struct duet__values *values = &job->values;
    if (!values->out)
        return duet_fail(message, DUET_EINVAL, "where to? --out FILE.json");
    if (!values->replace && g_file_test(values->out, G_FILE_TEST_EXISTS))
        return duet_fail(message, DUET_EINVAL, "%s is there already: --replace writes over it",
                         values->out);
    return duet__platform_may_write(values->out, DUET_WRITE_REPLACE, message) ? DUET_EINVAL : 0;
}

static int read_wanted(struct wanted *wanted, const struct duet__job *job,
                       struct duet_message *message)
{
    const struct duet__values *values = &job->values;
    int error = duet__exclude(job, "nvlink", "nvswitch", message);
    error = error ? error : check_out(job, message);
    wanted->out = g_strdup(values->out);
    error =
        error ? error : duet__calibrate_names(values->name, &wanted->out, &wanted->name, message);
    error = error ? error : read_cpus(wanted, values->sockets, message);
    error = error ? error : read_gpus(wanted, values->gpu_groups, message);
    error = error ? error : read_links(wanted, values->links, message);
    if (error)
        return error;
    wanted->assembly.name = wanted->name;
    wanted->assembly.switches = (unsigned)values->pcie_switches;
    wanted->assembly.fabric = values->nvlink     ? DUET_FABRIC_DIRECT
                              : values->nvswitch ? DUET_FABRIC_SWITCHED
                                                 : DUET_FABRIC_NONE;
    return 0;
}

/* Builds the machine and writes it. */
static int make(const struct wanted *wanted, const char *path, struct duet_message *message)
{
    struct duet__catalogue catalogue;
    struct duet__platform platform = {.name = ""};
    int error = duet__catalogue_load(&catalogue, message);
    if (!error)
        error = duet__platform_assemble(&catalogue, &wanted->assembly, &platform, message);
    if (!error)
        error = duet__platform_write(&platform, path, DUET_WRITE_REPLACE, message);
    if (!error)
        printf("%s: %s\n", path, platform.description);
    duet__platform_fini(&platform);
    duet__catalogue_fini(&catalogue);
    return error;
}

static int new (const struct duet__job *job, int argc, char *const *argv)
{
    struct wanted wanted = {.links = g_array_new(FALSE, FALSE, sizeof(struct duet__link_override))};
    struct duet_message message = {""};
    int error = 0;
    if (argc > 2)
        error = duet_fail(&message, DUET_EINVAL, "duet platform new takes options only, not '%s'",
                          argv[2]);
    else if (duet__given(job, "starpu-models"))
        error = duet_fail(&message, DUET_EINVAL, "duet platform new has no option --starpu-models");
    error = error ? error : read_wanted(&wanted, job, &message);
    error = error ? error : make(&wanted, job->values.out, &message);
    g_array_unref(wanted.links);
    g_free(wanted.cpus);
    g_free(wanted.out);
    g_free(wanted.name);
    return error ? duet__complain(duet__status_of(error), "%s", message.text)
                 : duet__finish_output();
}

/* Writes what StarPU has measured of its machine as a file of ours. */
static int import(struct duet__job *job, int argc, char *const *argv)
{
    static const char *const of_new[] = {"cpus",     "gpus",          "link", "nvlink",
                                         "nvswitch", "pcie-switches", NULL};
    struct duet__platform platform = {.name = ""};
    struct duet__graph_models from;
    struct duet_message message = {""};
    g_autofree char *out = g_strdup(job->values.out), *name = NULL;
    int error = argc > 2 ? duet_fail(&message, DUET_EINVAL,
                                     "duet platform import takes options only, not '%s'", argv[2])
                         : duet__find_starpu(job, &from, &message);
    for (const char *const *option = of_new; *option && !error; option++)
        if (duet__given(job, *option))
            error = duet_fail(&message, DUET_EINVAL, "duet platform import has no option --%s",
                              *option);
    error = error ? error : check_out(job, &message);
    error = error ? error : duet__calibrate_names(job->values.name, &out, &name, &message);
    if (!error)
        error = duet__platform_read_starpu(from.directory, from.host, name, &platform, &message);
    error = error == DUET_EIO ? DUET_EPARSE : error; /* a file that cannot be read is bad input */
    if (!error)
        error = duet__platform_write(&platform, out, DUET_WRITE_REPLACE, &message);
    if (!error)
        printf("%s: %s\n", out, platform.description);
    duet__platform_fini(&platform);
    return error ? duet__complain(duet__status_of(error), "%s", message.text)
                 : duet__finish_output();
}

static int work(struct duet__job *job, int argc, char **argv)
{
    int status = DUET__DONE, ended;
    if (argc > 1 && strcmp(argv[1], "new") == 0)
        return new (job, argc, argv);
    if (argc > 1 && strcmp(argv[1], "import") == 0)
        return import(job, argc, argv);
    if (argc < 2 || strcmp(argv[1], "check") != 0)
        return duet__complain(DUET__MISUSED, "what about a platform? duet platform check PLATFORM, "
                                             "or duet platform new|import --out F.json");
    if (job->given->len > 0)
        return duet__complain(DUET__MISUSED, "duet platform check has no option --%s",
                              g_array_index(job->given, struct duet__given, 0).option->name);
    if (argc < 3)
        return duet__complain(DUET__MISUSED, "which platform? a name or a file");
    for (int i = 2; i < argc && status != DUET__MISUSED; i++) {
        int own = check(argv[i]);
        status = own == DUET__DONE ? status : own;
    }
    ended = duet__finish_output();
    return ended == DUET__DONE ? status : ended;
}

const struct duet__command duet__platform_command = {
    .name = "platform",
    .description =
        "checks the figures of a platform, or makes one of known devices or StarPU's figures",
    .where = DUET__IN_PLATFORM,
    .arguments = "check PLATFORM...|new|import",
    .summary =
        "check warns of what can be read and is hardly meant: latencies and costs of seconds, "
        "kernels\nfaster than the machine or its data sheet, times far off the neighbouring sizes, "
        "kernels that lack\ntimes on one of the machine's architectures, or have nearly the name "
        "of a workload's (misspelt).\n\n"
        "new writes a machine made of devices of public data sheets (duet list devices), with "
        "estimated\nkernel times.\n\n"
        "import writes the machine that StarPU has measured (files HOST.* of its folder of bus "
        "figures),\nwithout kernel times.",
    .notes = "A platform is a name (duet list platforms) or a file. Exit status of check: 1 if "
             "something is suspicious.\nOptions but --starpu-models, which is for import, are "
             "those of new; import has --name, --out, --replace.\n\n"
             "Examples:\n"
             "  duet platform check ./mine.json\n"
             "  duet platform new --cpus 2x32 --gpus 4:a100 --nvlink --out mine.json\n"
             "  duet simulate cholesky --platform ./mine.json --n 40000",
    .work = work,
};
