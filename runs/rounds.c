/* SPDX-License-Identifier: Apache-2.0 */
/* The order of turns, and what one turn leaves for those after it. */
#include "runs/rounds.h"

#include <string.h>

void duet__rounds_init(struct duet__rounds *rounds)
{
    *rounds = (struct duet__rounds){.disturbed = g_array_new(FALSE, FALSE, sizeof(size_t)),
                                    .opened = g_hash_table_new(NULL, NULL)};
}

void duet__rounds_fini(struct duet__rounds *rounds)
{
    duet__rounds_discard(rounds);
    g_clear_pointer(&rounds->disturbed, g_array_unref);
    g_clear_pointer(&rounds->opened, g_hash_table_unref);
}

size_t duet__rounds_begin(struct duet__rounds *rounds)
{
    duet__rounds_look(rounds);
    return rounds->round % 2 ? rounds->cases - 1 - rounds->turn : rounds->turn;
}

void duet__rounds_look(struct duet__rounds *rounds)
{
    rounds->before = duet__load_now();
}

struct duet__disturbance duet__rounds_load(struct duet__rounds *rounds)
{
    const struct duet__load now = duet__load_now();
    const struct duet__disturbance load = duet__load_between(&rounds->before, &now);
    const GArray *noted = rounds->disturbed;
    size_t number = rounds->round + 1;

    if (load.disturbed && (!noted->len || g_array_index(noted, size_t, noted->len - 1) != number))
        g_array_append_val(rounds->disturbed, number);
    return load;
}

bool duet__rounds_next(struct duet__rounds *rounds)
{
    if (++rounds->turn < rounds->cases)
        return true;
    rounds->turn = 0;
    rounds->round++;
    return false;
}

bool duet__rounds_opened(struct duet__rounds *rounds, int cpus, int gpus)
{
    enum { GPUS_MOST = 1 << 16 };

    return !g_hash_table_add(rounds->opened, GINT_TO_POINTER(cpus * GPUS_MOST + gpus));
}

static bool is_same(const struct duet__problem *one, const struct duet__problem *other)
{
    bool same = one->n == other->n && one->tile == other->tile && one->seed == other->seed &&
                one->precision == other->precision && one->nodes.rows == other->nodes.rows &&
                one->nodes.cols == other->nodes.cols && one->setting_count == other->setting_count;

    for (size_t i = 0; i < one->setting_count && same; i++)
        same = !strcmp(one->settings[i].name, other->settings[i].name) &&
               !strcmp(one->settings[i].value, other->settings[i].value);
    return same;
}

static void kept_discard(struct duet__rounds *rounds, size_t number)
{
    struct duet__problem *problem = &rounds->kept[number].problem;

    if (problem->data)
        rounds->kept[number].workload->discard(problem->data);
    problem->data = NULL;
}

int duet__rounds_data(struct duet__rounds *rounds, size_t number,
                      const struct duet__workload *workload, struct duet__problem *problem,
                      struct duet_message *message)
{
    struct duet__problem *kept = &rounds->kept[number].problem;
    int error = 0;

    if (!kept->data || rounds->kept[number].workload != workload || !is_same(kept, problem)) {
        kept_discard(rounds, number);
        rounds->kept[number].workload = workload;
        *kept = *problem;
        error = workload->generate(workload, problem, &kept->data, message);
        if (error)
            kept->data = NULL;
    }
    problem->data = kept->data;
    return error;
}

void duet__rounds_discard(struct duet__rounds *rounds)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rounds->kept); i++)
        kept_discard(rounds, i);
}
