/* SPDX-License-Identifier: Apache-2.0 */
/* Life of a description. */
#include "platforms/description.h"

#include <string.h>

void duet__description_fini(struct duet__description *description)
{
    for (unsigned i = 0; description->switches != NULL && i < description->switch_count; i++)
        g_free(description->switches[i].gpus);
    g_free(description->archs);
    g_free(description->sockets);
    g_free(description->kinds);
    g_free(description->switches);
    g_free(description->gpus);
    g_free(description->order);
    memset(description, 0, sizeof(*description));
}
