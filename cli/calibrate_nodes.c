/* SPDX-License-Identifier: Apache-2.0 */
/* `mpirun -n 2 duet calibrate --nodes`: what messages take, added to the description of a machine.
 */
#include "cli/calibrate.h"

#include <inttypes.h>

#include "runtime/history.h"
#include "calibrate/network.h"
#include "cli/command.h"
#include "base/json.h"
#include "base/table.h"

static void put_text(const struct duet__network_fit *fit, const struct duet__mpi_measured *measured,
                     const struct duet__measured *foreign, const char *path, FILE *stream)
{
    const struct duet__network *n = &fit->network;
    struct duet__table table;

    fprintf(stream, "%u nodes: messages between node 0 and each other one, over MPI\n\n",
            measured->nodes);
    duet__table_init(&table, "rrrrrrrr");
    duet__table_print(&table, "bytes\tmessages\toutliers\tmedian us\tquartiles\tpredicted\t"
                              "error %%\tGB/s in streams");
    for (size_t i = 0; i < fit->count; i++) {
        const struct duet__network_size *size = &fit->sizes[i];
        const struct duet__summary *ping = &size->ping;

        duet__table_print(&table, "%" PRIu64 "\t%zu\t%zu\t%.4g\t%.4g-%.4g\t%.4g\t%+.1f\t%.3g",
                          size->bytes, ping->count, size->rejected, 1e6 * ping->median,
                          1e6 * ping->quartile1, 1e6 * ping->quartile3, 1e6 * size->predicted_s,
                          100 * (size->predicted_s / ping->median - 1),
                          1e-9 * (double)size->bytes / size->stream_s);
    }
    duet__table_put(&table, stream, 2);
    fprintf(stream,
            "\nnetwork switch:%.6gGbps,%.6gus,eager=%" PRIu64
            ",overhead=%.6gus,rendezvous=%.6gus\n",
            n->bandwidth_Bps / 125e6, 1e6 * n->latency_s, n->eager_bytes, 1e6 * n->overhead_s,
            1e6 * n->rendezvous_s);
    fprintf(stream, "foreign %.3g us (%.3g to %.3g): %s\n", 1e6 * foreign->times.median,
            1e6 * foreign->times.quartile1, 1e6 * foreign->times.quartile3, foreign->description);
    fprintf(stream, "Written: into %s\n", path);
}

static void put_json(const struct duet__network_fit *fit, const struct duet__mpi_measured *measured,
                     const struct duet__measured *foreign, const char *path, FILE *stream)
{
    struct duet__json_writer json = {.stream = stream, .indented = true};
    const struct duet__network *n = &fit->network;

    duet__json_print(&json,
                     "{schema: 1, command: %s, file: %s, nodes: %u, network: {bandwidth_Bps: "
                     "%g, latency_s: %g, overhead_s: %g, rendezvous_s: %g, eager_bytes: %" PRIu64
                     "}, foreign_s: %g",
                     "calibrate", path, measured->nodes, n->bandwidth_Bps, n->latency_s,
                     n->overhead_s, n->rendezvous_s, n->eager_bytes, foreign->times.median);
    duet__json_begin(&json, "messages", '[');
    for (size_t i = 0; i < fit->count; i++) {
        const struct duet__network_size *size = &fit->sizes[i];

        duet__json_print(&json,
                         "{bytes: %" PRIu64 ", samples: %zu, rejected: %zu, median_s: %g, "
                         "quartile1_s: %g, quartile3_s: %g, predicted_s: %g, stream_s: %g}",
                         size->bytes, size->ping.count, size->rejected, size->ping.median,
                         size->ping.quartile1, size->ping.quartile3, size->predicted_s,
                         size->stream_s);
    }
    duet__json_print(&json, "]}");
}

/* Writes the file anew, with the network in place of its old one. */
static int replace(const char *path, const struct duet__network *network, double foreign_s,
                   struct duet_message *message)
{
    struct duet__platform *platform = NULL;
    g_autofree char *file =
        g_path_is_absolute(path) ? g_strdup(path) : g_strconcat("./", path, NULL);
    int locked = duet__history_lock(path, message);
    int error = locked < 0 ? locked : duet__platform_load(file, &platform, message);

    if (!error) {
        platform->network = *network;
        platform->costs.foreign_s = foreign_s;
        error = duet__platform_write(platform, path, DUET_WRITE_REPLACE, message);
    }
    duet__platform_free(platform);
    if (locked >= 0)
        duet__history_unlock(path, locked);
    return error;
}

/* Measures and writes the network: every process calls this. */
static int measure(const struct duet__calibrate_options *options,
                   struct duet__mpi_measured *messages, struct duet__measured *foreign,
                   struct duet_message *message)
{
    struct duet_config config = options->job->request.config;
    g_autofree char *nodes = NULL;
    int error = duet__mpi_measure(options->request.budget_s, messages, message);

    nodes = g_strdup_printf("%u", messages->nodes);
    config.nodes = nodes;
    if (!error)
        error = duet__foreign_measure(&(struct duet__measurement){.config = &config,
                                                                  .message = message},
                                      foreign);
    return error;
}

int duet__calibrate_nodes(const struct duet__calibrate_options *options)
{
    struct duet__mpi_measured messages = {0};
    struct duet__measured foreign = {.name = NULL};
    struct duet__network_fit fit;
    struct duet_message message = {""};
    unsigned count;
    int error = 0;

    if (duet__launched_as(&count) == 0 && !g_file_test(options->out, G_FILE_TEST_IS_REGULAR))
        return duet__complain(DUET__MISUSED,
                              "--nodes adds to the description of a machine: there is no %s (duet "
                              "calibrate --out makes it)",
                              options->out);
    error = measure(options, &messages, &foreign, &message);
    if (!error && messages.node == 0)
        error = duet__network_fit(&messages, &fit, &message);
    if (!error && messages.node == 0)
        error = replace(options->out, &fit.network, foreign.times.median, &message);
    if (!error && messages.node == 0)
        (options->job->values.json ? put_json : put_text)(&fit, &messages, &foreign, options->out,
                                                          stdout);
    duet__mpi_measured_free(&messages);
    return error ? duet__job_refuse(error, &message) : duet__finish_output();
}
