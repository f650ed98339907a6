/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a comparison: table, JSON or CSV, the page, and whether it passes. */
#include "cli/validation.h"

#include "cli/command.h"
#include "base/atomic_file.h"
#include "report/page/page.h"

static void write_page(FILE *stream, const void *validation)
{
    duet__page_write_validation(stream, validation);
}

int duet__validation_show(const struct duet__job *job, struct duet__validation *validation)
{
    const struct duet__values *values = &job->values;
    struct duet_message message = {""};
    int status;

    duet__validation_judge(validation);
    /* the table first: a long run is not lost because a disk is full */
    if (values->json)
        duet__validation_write_json(stdout, validation);
    else if (values->csv)
        duet__validation_write_csv(stdout, validation);
    else
        duet__validation_write_text(stdout, validation, values->verbose);
    status = duet__finish_output();
    if (values->html && duet__file_write(values->html, write_page, validation, &message))
        status = duet__complain(DUET__FAILED, "%s", message.text);
    if (status == DUET__DONE && validation->failed)
        status = duet__complain(DUET__FAILED,
                                "%zu of %zu cases differ by more than %g %%, the most by %.3g %%",
                                validation->failed, validation->case_count,
                                validation->fail_over * 100, validation->worst * 100);
    return status;
}
