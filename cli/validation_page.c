/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a comparison as a file. */
#include "cli/validation_page.h"

#include "cli/command.h"
#include "cli/signals.h"
#include "report/output.h"
#include "report/page/page.h"

int duet__validation_page(const char *path, const struct duet_validation *validation,
                          const struct duet_validation_figures *figures)
{
    struct duet_message message = {""};
    struct duet_output output = {0};
    sigset_t before;
    int error;

    /* a signal waits until the file is whole, so that no temporary one stays */
    duet__signals_hold(&before);
    error = duet_output_open(&output, path, &message);
    if (!error) {
        duet_page_write_validation(output.stream, validation, figures);
        error = duet_output_commit(&output, &message);
    }
    duet__signals_release(&before);
    return error ? duet__complain(DUET__FAILED, "%s", message.text) : DUET__DONE;
}
