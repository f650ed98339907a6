/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a comparison as a file. */
#include "cli/validation_page.h"

#include "cli/command.h"
#include "report/output.h"
#include "report/page/page.h"

struct compared {
    const struct duet_validation *validation;
    const struct duet_validation_figures *figures;
};

static int write_page(FILE *stream, const void *data, struct duet_message *message)
{
    const struct compared *compared = data;

    (void)message;
    duet_page_write_validation(stream, compared->validation, compared->figures);
    return 0;
}

int duet__validation_page(const char *path, const struct duet_validation *validation,
                          const struct duet_validation_figures *figures)
{
    struct duet_message message = {""};
    int error =
        duet_output_write(path, write_page, &(struct compared){validation, figures}, &message);

    return error ? duet__complain(DUET__FAILED, "%s", message.text) : DUET__DONE;
}
