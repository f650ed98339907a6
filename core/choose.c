/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of a policy: the core tries the candidates by simulation on the tasks that the
 * application has submitted by its first wait, and goes on with the best. The choice is made once,
 * when enough tasks are held for it and nothing else is going on; until then the first candidate is
 * used.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trial.h"

enum { CANDIDATES_MAX = 16 };

/* Ratio of makespans up to which trials count as equal, since real kernel times vary. The candidate
   named first is then taken. */
static const double AS_GOOD = 1.005;

struct choice {
    size_t most; /* most tasks that are tried */
    bool made;
    unsigned count;
    struct candidate candidates[CANDIDATES_MAX];
    struct duet_choice told;
};

static void copy_text(char *out, size_t room, const char *text)
{
    (void)snprintf(out, room, "%s", text);
}

static int read_candidate(const struct duet_policy *of, const struct duet_candidate *from,
                          struct candidate *candidate, struct duet_message *message)
{
    const struct duet_policy *policy = duet_policy_find(from->policy);
    bool found = !from->parameter;
    if (!policy || policy->candidates)
        return duet_fail(message, DUET_EINVAL, "candidate %s of policy %s is no policy",
                         from->policy, of->name);
    candidate->policy = policy;
    if (from == of->candidates && from[1].policy &&
        (policy->init || policy->fini || policy->steal || policy->state_size ||
         policy->state_size_a_worker || policy->state_size_a_data))
        return duet_fail(message, DUET_EINVAL,
                         "candidate %s of policy %s is the first, and keeps state, steals, or has "
                         "init or fini: name another one first",
                         from->policy, of->name);
    for (unsigned i = 0; i < duet__parameter_count(policy); i++) {
        const struct duet_policy_parameter *one = &policy->parameters[i];
        bool set = from->parameter && !strcmp(one->name, from->parameter);
        candidate->parameters[i] = set ? from->value : one->initial;
        found = found || set;
    }
    if (!found)
        return duet_fail(message, DUET_EINVAL, "candidate %s of policy %s has no parameter %s",
                         from->policy, of->name, from->parameter);
    (void)snprintf(candidate->text, sizeof candidate->text, "%s", policy->name);
    if (from->parameter)
        (void)snprintf(candidate->text, sizeof candidate->text, "%s:%s=%g", policy->name,
                       from->parameter, from->value);
    return DUET_OK;
}

/* True if all workers are of one architecture. */
static bool are_alike(const struct duet_machine *machine)
{
    for (unsigned w = 1; w < machine->worker_count; w++)
        if (machine->workers[w].arch != machine->workers[0].arch)
            return false;
    return true;
}

int duet__choice_new(struct duet_runtime *core, const struct duet__core_config *config,
                     struct duet_message *message)
{
    const struct duet_policy *policy = config->policy;
    struct choice *choice = core->choice = calloc(1, sizeof *choice);
    if (!choice)
        return DUET_ENOMEM;
    choice->most = (size_t)(config->chosen ? config->parameters[0] : policy->parameters[0].initial);
    int error = DUET_OK;
    for (const struct duet_candidate *one = policy->candidates; one->policy && !error; one++) {
        struct candidate *candidate = &choice->candidates[choice->count];
        if (one->alike && !are_alike(&core->machine))
            continue;
        if (choice->count == CANDIDATES_MAX)
            return duet_fail(message, DUET_EINVAL, "policy %s has more than %d candidates",
                             policy->name, CANDIDATES_MAX);
        error = read_candidate(policy, one, candidate, message);
        if (!error)
            duet__policy_room(core, candidate->policy);
        choice->count++;
    }
    if (error)
        return error;
    if (!choice->count)
        return duet_fail(message, DUET_EINVAL, "policy %s has no candidates", policy->name);
    const struct candidate *first = &choice->candidates[0];
    copy_text(choice->told.policy, sizeof choice->told.policy, first->text);
    copy_text(choice->told.why, sizeof choice->told.why,
              "never were more tasks held than there are workers, with nothing under way");
    return duet__policy_begin(core, first->policy, first->parameters, message);
}

/* True if the choice is still to be made, and `count` held tasks are enough for it. */
bool duet__chooses(const struct duet_runtime *core, size_t count)
{
    const struct choice *choice = core->choice;
    return choice && !choice->made && count > core->machine.worker_count;
}

/* Returns why a task cannot be tried; NULL: it can. */
static const char *why_untried(const struct duet_runtime *core, const struct duet_task *task)
{
    if (task->klass->codelet->expand)
        return "some tasks expand";
    if (task->modes & ACCESS_REDUCES)
        return "some tasks reduce data";
    for (unsigned k = 0; k < core->kind_count; k++)
        if (core->masks[task->mask].kinds >> k & 1 && atomic_load(&core->kinds[k].living) &&
            !(duet__expected_s(task, core->kinds[k].arch) > 0))
            return "some times of kernels are not known";
    return NULL;
}

/* Returns the shortest trial except candidate `but`; the first among equals; `count` if no other
   one came to an end. */
static unsigned shortest_trial(const double *seconds, unsigned count, unsigned but)
{
    unsigned best = count;
    for (unsigned c = 0; c < count; c++)
        if (c != but && !isinf(seconds[c]) && (best == count || seconds[c] < seconds[best]))
            best = c;
    return best;
}

/* Tries the candidates in turn, and returns the first of those that are as good as the best. */
static const struct candidate *best_of(struct duet_runtime *core, struct duet_task *const *tasks,
                                       const double *ranks, size_t count)
{
    struct choice *choice = core->choice;
    struct duet_choice *told = &choice->told;
    double seconds[CANDIDATES_MAX] = {0}, limit_s = INFINITY;
    for (unsigned c = 0; c < choice->count; c++) {
        seconds[c] = duet__trial(core, &choice->candidates[c], tasks, ranks, count, limit_s);
        /* a trial longer than two others is neither taken nor the runner-up */
        const unsigned best = shortest_trial(seconds, c + 1, c + 1),
                       second = shortest_trial(seconds, c + 1, best);
        limit_s = second <= c ? seconds[second] : INFINITY;
    }
    unsigned taken = shortest_trial(seconds, choice->count, choice->count);
    told->tasks = count;
    copy_text(told->why, sizeof told->why,
              taken < choice->count ? "" : "no candidate came to an end");
    if (taken == choice->count)
        return &choice->candidates[0];
    for (unsigned c = 0; c < taken; c++)
        if (seconds[c] <= seconds[taken] * AS_GOOD)
            taken = c;
    const unsigned second = shortest_trial(seconds, choice->count, taken);
    told->predicted_s = seconds[taken];
    copy_text(told->policy, sizeof told->policy, choice->candidates[taken].text);
    if (second < choice->count) {
        told->runner_up_s = seconds[second];
        copy_text(told->runner_up, sizeof told->runner_up, choice->candidates[second].text);
    }
    return &choice->candidates[taken];
}

/*
 * Chooses by the held tasks, in order of submission, with their upward ranks. `submitted` is the
 * number of held tasks and of other held calls that count as submitted.
 */
void duet__choose(struct duet_runtime *core, struct duet_task *const *tasks, const double *ranks,
                  size_t count, size_t submitted)
{
    struct choice *choice = core->choice;
    struct duet_message message = {""};
    size_t tried = count < choice->most ? count : choice->most;
    const char *why = NULL;
    /* tasks under way are under the first candidate */
    if (!duet__chooses(core, count) || unfinished(core) != submitted)
        return;
    for (size_t t = 0; t < tried && !why; t++)
        why = why_untried(core, tasks[t]);
    choice->made = !why; /* unknown times may be known the next time */
    if (why) {
        copy_text(choice->told.why, sizeof choice->told.why, why);
        return;
    }
    const struct candidate *first = &choice->candidates[0];
    const struct candidate *best = best_of(core, tasks, ranks, tried);
    int error = best == first ? DUET_OK
                              : duet__policy_begin(core, best->policy, best->parameters, &message);
    if (error)
        duet__fail_run(core, error, "%s", *message.text ? message.text : duet_strerror(error));
}

bool duet_choice(const struct duet_runtime *runtime, struct duet_choice *out)
{
    *out = (struct duet_choice){.tasks = 0};
    if (runtime->choice)
        *out = runtime->choice->told;
    return runtime->choice;
}
