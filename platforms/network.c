/* SPDX-License-Identifier: Apache-2.0 */
/* Networks between nodes: the notation of options and files, and shapes for a number of nodes. */
#include <math.h>
#include <string.h>

#include "platforms/internal.h"

enum {
    MOST_PLACES = 65536,  /* most places for nodes, each of which is a host of SimGrid */
    MOST_PARTS = 1 << 20, /* most places and cables; each cable is a link of SimGrid */
};

static const double LEAST_BPS = 1e3, MOST_BPS = 1e15, MOST_SECONDS = 1e3, MOST_BYTES = 0x1p50;

/* The kinds of networks. `least` to `most` numbers make a shape of the notation 16x4. */
static const struct {
    const char *name, *what, *example;
    unsigned least, most;
} kinds[DUET__NETWORK_KINDS] = {
    [DUET__NETWORK_SWITCH] = {"switch", "switch", "", 0, 0},
    [DUET__NETWORK_FAT_TREE] = {"fat-tree", "fat tree", "16x4, or 2;16,4;1,8;1,1", 1,
                                DUET__NETWORK_LEVELS},
    [DUET__NETWORK_DRAGONFLY] = {"dragonfly", "dragonfly", "8x1x8x4, or 8,4;1,1;8,1;4", 4, 4},
    [DUET__NETWORK_TORUS] = {"torus", "torus", "4x4x2", 1, DUET__NETWORK_LEVELS},
    [DUET__NETWORK_FILE] = {"file", "file", "", 0, 0},
};

/* ------------------------------------------------------------------------------------------- */
/* Shapes                                                                                        */

/* Reads whole numbers from 1, at most `most` of them. Returns how many; 0: the text is invalid. */
static unsigned read_numbers(const char *text, const char *separators, unsigned *out, unsigned most)
{
    g_auto(GStrv) words = g_strsplit_set(text, separators, -1);
    const unsigned count = g_strv_length(words);
    for (unsigned i = 0; i < count && count <= most; i++) {
        uint64_t number = 0;
        if (!duet__scan_whole(words[i], 1, MOST_PLACES, &number))
            return 0;
        out[i] = (unsigned)number;
    }
    return count <= most ? count : 0;
}

/* Returns the number of places for nodes. */
static double places_of(const struct duet__network *n)
{
    double places = 1;
    for (unsigned i = 0; i < n->levels; i++)
        places *= n->down[i];
    return places;
}

double duet__network_parts(const struct duet__network *n)
{
    const double places = places_of(n);
    double cables = 0, level = places;
    if (n->kind == DUET__NETWORK_FAT_TREE)
        for (unsigned i = 0; i < n->levels; i++) {
            cables += level * n->up[i] * n->cables[i];
            level = level / n->down[i] * n->up[i];
        }
    else if (n->kind == DUET__NETWORK_DRAGONFLY && n->levels > 0)
        for (unsigned i = 0; i < 3; i++)
            cables += places / n->down[3] * n->down[i] * n->cables[i];
    return n->levels > 0 ? places + cables : 0;
}

/* Sets all cables to one and, in a fat tree, the parents for full bisection bandwidth. */
static void complete_shape(struct duet__network *n)
{
    for (unsigned i = 0; i < n->levels; i++) {
        n->cables[i] = 1;
        n->up[i] = i > 0 ? n->down[i - 1] : 1;
    }
}

/*
 * Reads SimGrid's notation: "2;16,4;1,8;1,1", levels, children, parents, cables of a fat tree;
 * "8,4;1,1;8,1;4", groups, chassis, routers, nodes of a dragonfly, each but the last with its
 * cables. The result is written and compared with the text, to check all separators.
 */
static bool read_long(struct duet__network *n, const char *text)
{
    enum { DRAGONFLY = 7, MOST = 1 + 3 * DUET__NETWORK_LEVELS };
    unsigned all[MOST] = {0}, count = read_numbers(text, ",;", all, MOST);
    g_autofree char *again = NULL;
    if (n->kind == DUET__NETWORK_DRAGONFLY && count == DRAGONFLY) {
        n->levels = 4;
        for (unsigned i = 0; i < n->levels; i++) {
            n->down[i] = all[2 * i];
            n->cables[i] = 2 * i + 1 < DRAGONFLY ? all[2 * i + 1] : 1;
        }
    } else if (n->kind == DUET__NETWORK_FAT_TREE && count == 1 + 3 * all[0]) {
        n->levels = all[0];
        memcpy(n->down, all + 1, n->levels * sizeof *all);
        memcpy(n->up, all + 1 + n->levels, n->levels * sizeof *all);
        memcpy(n->cables, all + 1 + 2 * n->levels, n->levels * sizeof *all);
    }
    again = duet__network_shape_text(n);
    return again && strcmp(again, text) == 0;
}

/* Reads "16x4", for a torus also "16,4". */
static bool read_short(struct duet__network *n, const char *text)
{
    const char *separator = n->kind == DUET__NETWORK_TORUS && strchr(text, ',') ? "," : "x";
    n->levels = read_numbers(text, separator, n->down, kinds[n->kind].most);
    complete_shape(n);
    return n->levels > 0 && n->levels >= kinds[n->kind].least;
}

int duet__network_read_shape(struct duet__network *network, const char *text,
                             struct duet_message *message)
{
    struct duet__network n = {.kind = network->kind};
    if (kinds[n.kind].most == 0)
        return duet_fail(message, DUET_EINVAL, "a %s has no shape, such as '%.60s'",
                         kinds[n.kind].what, text);
    if (!(strchr(text, ';') ? read_long : read_short)(&n, text))
        return duet_fail(message, DUET_EINVAL, "'%.60s' is no shape of a %s, such as %s", text,
                         kinds[n.kind].what, kinds[n.kind].example);
    if (places_of(&n) > MOST_PLACES)
        return duet_fail(message, DUET_EINVAL, "a %s of '%.60s' has room for more than %u nodes",
                         kinds[n.kind].what, text, MOST_PLACES);
    if (duet__network_parts(&n) > MOST_PARTS)
        return duet_fail(message, DUET_EINVAL, "a %s of '%.60s' has more than %u cables",
                         kinds[n.kind].what, text, MOST_PARTS);
    if (n.kind == DUET__NETWORK_DRAGONFLY && n.down[0] > n.down[1] * n.down[2])
        return duet_fail(message, DUET_EINVAL,
                         "a dragonfly of '%.60s' has more groups than routers in a group", text);
    network->levels = n.levels;
    memcpy(network->down, n.down, sizeof n.down);
    memcpy(network->up, n.up, sizeof n.up);
    memcpy(network->cables, n.cables, sizeof n.cables);
    return DUET_OK;
}

static void add_numbers(GString *text, const char *before, const unsigned *numbers, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        g_string_append_printf(text, "%s%u", i > 0 ? "," : before, numbers[i]);
}

char *duet__network_shape_text(const struct duet__network *n)
{
    GString *text = g_string_new(NULL);
    if (n->kind == DUET__NETWORK_FAT_TREE && n->levels > 0) {
        g_string_printf(text, "%u", n->levels);
        add_numbers(text, ";", n->down, n->levels);
        add_numbers(text, ";", n->up, n->levels);
        add_numbers(text, ";", n->cables, n->levels);
    } else if (n->kind == DUET__NETWORK_DRAGONFLY && n->levels > 0) {
        for (unsigned i = 0; i < 3; i++)
            g_string_append_printf(text, "%u,%u;", n->down[i], n->cables[i]);
        add_numbers(text, "", &n->down[3], 1);
    } else {
        for (unsigned i = 0; i < n->levels; i++)
            g_string_append_printf(text, "%s%u", i > 0 ? "x" : "", n->down[i]);
    }
    return g_string_free(text, text->len == 0);
}

static void fit_fat_tree(struct duet__network *n, unsigned nodes)
{
    unsigned half = 1; /* half of a switch's ports */
    while (2 * half * half * half < nodes)
        half++;
    n->levels = 3;
    n->down[0] = n->down[1] = half;
    n->down[2] = 2 * half;
    complete_shape(n);
}

static void fit_dragonfly(struct duet__network *n, unsigned nodes)
{
    unsigned p = 1, group;
    while (4 * p * p * p < nodes)
        p++;
    group = 2 * p * p;
    n->levels = 4;
    n->down[0] = (nodes + group - 1) / group;
    n->down[1] = 1;
    n->down[2] = 2 * p;
    n->down[3] = p;
    complete_shape(n);
    n->cables[0] = p;
}

/* Returns the greatest divisor of a number that is at most `most`. */
static unsigned divisor(unsigned number, double most)
{
    unsigned best = 1;
    for (unsigned i = 2; i <= number && i <= most + 1e-9; i++)
        if (number % i == 0)
            best = i;
    return best;
}

static void fit_torus(struct duet__network *n, unsigned nodes)
{
    const unsigned least = divisor(nodes, cbrt(nodes)), rest = nodes / least;
    n->down[2] = MIN(least, divisor(rest, sqrt(rest)));
    n->down[1] = MAX(least, divisor(rest, sqrt(rest)));
    n->down[0] = nodes / n->down[2] / n->down[1];
    n->levels = n->down[1] == 1 ? 1 : n->down[2] == 1 ? 2 : 3;
}

int duet__network_shape(struct duet__network *network, unsigned nodes, struct duet_message *message)
{
    g_autofree char *shape = NULL;
    if (kinds[network->kind].most == 0)
        return DUET_OK;
    if (network->levels == 0 && network->kind == DUET__NETWORK_FAT_TREE)
        fit_fat_tree(network, nodes);
    else if (network->levels == 0 && network->kind == DUET__NETWORK_DRAGONFLY)
        fit_dragonfly(network, nodes);
    else if (network->levels == 0)
        fit_torus(network, nodes);
    if (places_of(network) >= nodes)
        return DUET_OK;
    shape = duet__network_shape_text(network);
    return duet_fail(message, DUET_EINVAL, "a %s of %s has room for %u nodes, not for %u",
                     kinds[network->kind].what, shape, (unsigned)places_of(network), nodes);
}

/* ------------------------------------------------------------------------------------------- */
/* The notation                                                                                  */

/* Reads bytes a second (`rate`), or bytes: a text such as 64KiB without "/s" or "ps". */
static bool read_bytes(const char *text, bool rate, double *out)
{
    g_autofree char *simgrid = NULL;
    if (rate && g_str_has_suffix(text, "/s"))
        simgrid = g_strdup_printf("%.*sps", (int)strlen(text) - 2, text);
    else if (!rate && g_str_has_suffix(text, "B"))
        simgrid = g_strconcat(text, "ps", NULL);
    else if (!rate && text[strspn(text, "0123456789")] != '\0')
        return false;
    return duet__xml_quantity(simgrid != NULL ? simgrid : text, true, out) &&
           (rate ? *out >= LEAST_BPS && *out <= MOST_BPS : *out <= MOST_BYTES);
}

static bool read_seconds(const char *text, double *out)
{
    return duet__xml_quantity(text, false, out) && *out <= MOST_SECONDS;
}

struct reading {
    const char *option;
    struct duet_message *message;
    struct duet__network network;
};

static int bad(const struct reading *r, const char *what, const char *text, const char *example)
{
    return duet_fail(r->message, DUET_EINVAL, "%s: '%.60s' is no %s, such as %s", r->option, text,
                     what, example);
}

/* Reads a setting such as "eager=64KiB". */
static int read_setting(struct reading *r, const char *text)
{
    static const char *const names[] = {"eager=", "overhead=", "rendezvous="};
    double *const seconds[] = {NULL, &r->network.overhead_s, &r->network.rendezvous_s};
    double bytes = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *value = text + strlen(names[i]);
        if (!g_str_has_prefix(text, names[i]))
            continue;
        if (seconds[i] != NULL)
            return read_seconds(value, seconds[i]) ? DUET_OK : bad(r, "time", value, "2us");
        if (!read_bytes(value, false, &bytes))
            return bad(r, "size", value, "64KiB");
        r->network.eager_bytes = (uint64_t)bytes;
        return DUET_OK;
    }
    return bad(r, "setting of a network", text, "eager=64KiB, overhead=0.5us or rendezvous=2us");
}

/* Reads the figures behind the kind, up to the settings: "100Gbps,1us,16x4". */
static int read_figures(struct reading *r, const char *text)
{
    struct duet__network *n = &r->network;
    g_auto(GStrv) words = g_strsplit(text, ",", 3);
    struct duet_message why = {""};
    if (n->kind == DUET__NETWORK_FILE && strlen(text) >= sizeof n->file)
        return duet_fail(r->message, DUET_EINVAL, "%s: the file's name is too long", r->option);
    if (n->kind == DUET__NETWORK_FILE) {
        g_strlcpy(n->file, text, sizeof n->file);
        return *text != '\0' ? DUET_OK : bad(r, "name of a file", text, "file:cluster.xml");
    }
    if (words[0] == NULL || !read_bytes(words[0], true, &n->bandwidth_Bps))
        return bad(r, "bandwidth", words[0] != NULL ? words[0] : "", "100Gbps or 12.5GB/s");
    if (words[1] == NULL || !read_seconds(words[1], &n->latency_s))
        return bad(r, "latency", words[1] != NULL ? words[1] : "", "1us: KIND:BANDWIDTH,LATENCY");
    if (words[2] != NULL && duet__network_read_shape(n, words[2], &why) != DUET_OK)
        return duet_fail(r->message, DUET_EINVAL, "%s: %s", r->option, why.text);
    return DUET_OK;
}

static int read_kind(struct reading *r, const char *name)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (unsigned i = 0; i < DUET__NETWORK_KINDS; i++) {
        r->network.kind = i;
        if (strcmp(kinds[i].name, name) == 0)
            return DUET_OK;
        g_string_append_printf(known, "%s%s", i > 0 ? ", " : "", kinds[i].name);
    }
    return duet_fail(r->message, DUET_EINVAL,
                     "%s: '%.60s' is no kind of network: known are %s (fat-tree:100Gbps,1us)",
                     r->option, name, known->str);
}

int duet__network_parse(const char *option, const char *text, const struct duet__network *usual,
                        struct duet__network *out, struct duet_message *message)
{
    struct reading r = {option, message, {0}};
    const bool known = usual != NULL && usual->bandwidth_Bps > 0;
    const char *equals = strchr(text, '='), *colon, *end = equals ? equals : text + strlen(text);
    g_autofree char *kind = NULL, *figures = NULL;
    g_auto(GStrv) settings = NULL;
    int error;
    while (equals && end > text && *end != ',') /* to the end of the text before the settings */
        end--;
    figures = g_strndup(text, (gsize)(end - text));
    settings = g_strsplit(equals ? end + (*end == ',') : "", ",", -1);
    colon = strchr(figures, ':');
    kind = g_strndup(figures, colon ? (gsize)(colon - figures) : strlen(figures));
    error = read_kind(&r, kind);
    if (error)
        return error;
    if (known) {
        const unsigned given = r.network.kind;
        r.network = *usual;
        r.network.kind = given;
        r.network.file[0] = '\0';
        if (given != usual->kind || colon != NULL)
            r.network.levels = 0;
        if (given == DUET__NETWORK_FILE)
            r.network.bandwidth_Bps = r.network.latency_s = 0;
    } else {
        r.network.overhead_s = 0.5e-6;
        r.network.eager_bytes = 65536;
        r.network.rendezvous_s = -1;
    }
    if (colon != NULL || !known || r.network.kind == DUET__NETWORK_FILE)
        error = read_figures(&r, colon != NULL ? colon + 1 : "");
    for (char **setting = settings; *setting != NULL && !error; setting++)
        error = read_setting(&r, *setting);
    if (r.network.rendezvous_s < 0)
        r.network.rendezvous_s = r.network.kind == DUET__NETWORK_FILE
                                     ? 2e-6
                                     : fmin(2 * r.network.latency_s, MOST_SECONDS);
    if (!error)
        *out = r.network;
    return error;
}
