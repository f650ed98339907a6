/* SPDX-License-Identifier: Apache-2.0 */
/* `duet info`: the machine as `duet run` would use it, and why something is not used. */
#include "cli/info.h"

#include "cli/command.h"
#include "cli/job.h"

static const char summary[] =
    "Shows this duet, this machine, and the machine that duet run would make of it with the same "
    "options:\nworkers, memories, links and routes, and what is not used and why.";

static const char notes[] =
    "Bandwidths and latencies are what schedulers assume before anything was measured. A machine "
    "without GPUs\nis no error: the reason is shown. Options of duet run that are not here change "
    "nothing of the machine.\n\n"
    "Examples:\n"
    "  duet info\n"
    "  duet info --gpus 1 --gpu-memory 8GiB --json\n"
    "  duet info --emulate idgraf --gpus 4";

static int write_platform(const struct duet__facts *facts, const char *path,
                          struct duet_message *message)
{
    static const struct duet_calibration none = {0};

    if (!path)
        return 0;
    if (facts->info.error)
        return duet_fail(message, facts->info.error, "%s", facts->info.why.text);
    return duet_platform_write_xml(&facts->info.machine, &none, path, message);
}

static int show(const struct duet__job *job)
{
    struct duet_message message = {""};
    struct duet__facts facts = {0};
    int status = duet__files_check(job), error;

    if (status != DUET__DONE)
        return status;
    error = duet__facts_find(&facts, &job->request.config, &message);
    if (error) {
        status = duet__job_refuse(error, &message);
    } else {
        if (job->json)
            duet__facts_put_json(&facts, stdout);
        else
            duet__facts_put_text(&facts, stdout);
        status = duet__finish_output();
        error = write_platform(&facts, job->machine_xml, &message);
        if (status == DUET__DONE && error)
            status = duet__complain(DUET__FAILED, "%s", message.text);
    }
    duet__facts_fini(&facts);
    return status;
}

static int read_all(struct duet__job *job, const struct duet__texts *texts, int argc,
                    char *const *argv, struct duet_message *message)
{
    int result = 0;

    job->json = texts->json;
    job->machine_xml = g_strdup(texts->machine_xml);
    if (argc > 1)
        return duet_fail(message, DUET_EINVAL, "duet info takes options only, not '%s'", argv[1]);
    result = duet__job_read_emulation(job, texts, message);
    if (!result)
        result = duet__job_read_machine(job, texts, message);
    return result ? result : duet__files_distinct(job, message);
}

static int info(int argc, char **argv)
{
    struct duet_message message = {""};
    struct duet__texts texts = {0};
    struct duet__job job = {0};
    int status = DUET__MISUSED;

    duet__job_init(&job, "info", argc, argv);
    if (duet__texts_parse(&texts, DUET__FOR_INFO, "info", summary, notes, &argc, &argv)) {
        int error = read_all(&job, &texts, argc, argv, &message);

        status = error ? duet__job_refuse(error, &message) : show(&job);
    }
    duet__texts_fini(&texts);
    duet__job_fini(&job);
    return status;
}

const struct duet__command duet__info_command = {
    .name = "info",
    .description = "this duet, this machine, and what a run would use of it",
    .run = info,
};
