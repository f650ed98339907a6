/* SPDX-License-Identifier: Apache-2.0 */
/* `duet validate`: reads the command line, predicts, measures, reports. */
#include "cli/validate.h"

#include "cli/command.h"

/* The first pair's failure where there is none without; NULL: something is left to do. */
static const struct duet__case_pair *all_failed(const struct duet__validate *validate)
{
    const struct duet__case_pair *first = NULL;

    for (size_t i = 0; i < validate->pair_count; i++) {
        const struct duet__case_pair *pair = &validate->pairs[i];

        if (!pair->failure)
            return NULL;
        if (!pair->refused && !first)
            first = pair;
    }
    return first;
}

static int complain(const struct duet__case_pair *pair)
{
    return duet__complain(duet__status_of(pair->error), "%s under %s %s", pair->real.workload->name,
                          pair->real.policies[0], pair->failure);
}

/* One line that says how much there is, when a signal came. Exit status. */
static int say_interrupted(const struct duet__validate *validate)
{
    size_t runs = 0, predicted = 0;

    for (size_t i = 0; i < validate->pair_count; i++) {
        if (validate->pairs[i].failure)
            continue;
        runs += validate->pairs[i].measured.count;
        predicted += validate->pairs[i].predicted.count > 0;
    }
    return duet__complain(DUET__SIGNALLED + validate->number,
                          "interrupted: %zu measured run%s finished%s", runs,
                          runs == 1 ? " is" : "s are",
                          runs && !predicted ? ", and nothing is predicted to compare with" : "");
}

/* Both sides of all cases. Exit status of what has failed as a whole. */
static int make_sides(struct duet__validate *validate)
{
    struct duet_message message = {""};
    int status = DUET__DONE, error = 0;

    if (validate->paced)
        error = duet__threads_measure(validate, &message);
    if (error)
        return duet__complain(duet__status_of(error), "measuring this machine's threads: %s",
                              message.text);
    if (validate->number)
        return status;
    /* what cannot be predicted is not measured; but for what the calibration has yet to tell */
    if (!validate->calibrating)
        duet__validate_predict(validate);
    if (!validate->number && !all_failed(validate))
        status = duet__validate_measure(validate);
    if (status != DUET__DONE || validate->number || !validate->calibrating || all_failed(validate))
        return status;
    status = duet__calibrating_finish(validate);
    if (status == DUET__DONE)
        duet__validate_predict(validate);
    duet__calibrating_end(validate->calibrating);
    return status;
}

static int validate_all(struct duet__validate *validate)
{
    int status = duet__files_check(&validate->job);

    if (status == DUET__DONE)
        status = make_sides(validate);
    if (status != DUET__DONE)
        return status;
    if (!validate->number && all_failed(validate))
        return complain(all_failed(validate));
    status = duet__validate_report(validate);
    return validate->number ? say_interrupted(validate) : status;
}

static int validate_command(int argc, char **argv)
{
    struct duet__validate validate = {0};
    int status = duet__validate_parse(&validate, argc, argv);

    if (status < 0)
        status = validate_all(&validate);
    duet__validate_fini(&validate);
    return status;
}

const struct duet__command duet__validate_command = {
    .name = "validate",
    .description = "simulates and runs the same, says how far apart, and why",
    .run = validate_command,
};
