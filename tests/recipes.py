# SPDX-License-Identifier: Apache-2.0
"""Follows recipes of CONTRIBUTING.md in a copy of the sources, and builds and tests the copy.

Called by ctest: recipes.py DIRECTORY TESTS-REGEX CMAKE-ARGUMENT... The files that a recipe adds or
changes are those that it names, at most two.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import repository

FILES_MAX = 2
RECIPE = re.compile(r"^## (Add .*)\n\nFiles: ([^.]*(?:\.\w[^.]*)*)\.\s", re.MULTILINE)

POLICY = """/* SPDX-License-Identifier: Apache-2.0 */
/* Last in, first out, on one list. */
#include <duet/policy.h>

static void recipe_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                        int by, double now)
{
    for (size_t i = 0; i < count; i++)
        duet_push_head(view, duet_view_shared(view), batch[i]);
}

const struct duet_policy duet__policy_recipe = {
    .name = "recipe",
    .description = "last in, first out",
    .source = "CONTRIBUTING.md",
    .push = recipe_push,
    .pop = duet_pop_own_or_shared,
};
"""

WORKLOAD = """/* SPDX-License-Identifier: Apache-2.0 */
/* n tasks of a microsecond, one after another. */
#include "workloads/workload.h"

static const char *const kernels[] = {NULL};

static int recipe_check(const struct duet__problem *problem, struct duet_message *message)
{
    return problem->n ? DUET_OK : duet_fail(message, DUET_EINVAL, "n is 0: give 1 or more");
}

static double recipe_flops(const struct duet__problem *problem)
{
    return (double)problem->n;
}

static uint64_t recipe_tasks(const struct duet__problem *problem)
{
    return problem->n;
}

static double recipe_cost(const void *args, const char *arch)
{
    return 1e-6;
}

static int recipe_run(const struct duet_call *call)
{
    return DUET_OK;
}

static int recipe_build(const struct duet__workload *self, struct duet_runtime *runtime,
                        const struct duet__problem *problem, void **state,
                        struct duet_message *message)
{
    const struct duet_implementation cpu = {"cpu", recipe_run};
    const struct duet_codelet_desc desc = {.name = "link",
                                           .implementations = &cpu,
                                           .implementation_count = 1,
                                           .cost = recipe_cost};
    struct duet_codelet *codelet = NULL;
    struct duet_handle *chain = NULL;
    int error = duet_register_codelet(runtime, &desc, &codelet);
    if (!error)
        error = duet_register_vector(runtime, NULL, 1, 8, &chain);
    for (uint64_t i = 0; i < problem->n && !error; i++)
        error = duet_insert(runtime, codelet, DUET_RW, chain, 0);
    return error;
}

static void recipe_fini(void *state)
{
}

const struct duet__workload duet__workload_recipe = {
    .name = "recipe",
    .description = "a chain",
    .source = "CONTRIBUTING.md",
    .kernels = kernels,
    .default_n = 100,
    .default_tile = 1,
    .check = recipe_check,
    .flops = recipe_flops,
    .tasks = recipe_tasks,
    .build = recipe_build,
    .fini = recipe_fini,
};
"""

# Of a recipe: the texts that it adds to files, which may be new.
FOLLOWED = {
    "Add a scheduling policy": {"core/policies/NAME.c": POLICY,
                                "core/policies/list.h": "POLICY(duet__policy_recipe)\n"},
    "Add a workload": {"workloads/NAME.c": WORKLOAD, "workloads/list.h": "WORKLOAD(recipe)\n"},
}
COMMANDS = [["simulate", "recipe", "--platform", "idgraf", "--policy", "recipe", "--n", "7"],
            ["simulate", "cholesky", "--platform", "idgraf", "--n", "3840", "--policy", "recipe"]]


def problems(recipes, names):
    """Recipes that name no files, too many, or other files than are followed here."""
    for name in names:
        if name not in recipes:
            yield f"CONTRIBUTING.md, {name}: no line \"Files: ...\""
    for name, files in recipes.items():
        if len(files) > FILES_MAX:
            yield f"CONTRIBUTING.md, {name}: {len(files)} files: {', '.join(sorted(files))}"
        if name in FOLLOWED and files != set(FOLLOWED[name]):
            yield f"CONTRIBUTING.md, {name}: {sorted(files)} are not {sorted(FOLLOWED[name])}"
    for name in sorted(set(FOLLOWED) - set(names)):
        yield f"CONTRIBUTING.md: there is no recipe {name}"


def copy(tree):
    """Copies the sources, and follows the recipes there."""
    shutil.rmtree(tree, ignore_errors=True)
    for path in repository.files():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(repository.ROOT / path, tree / path)
    for files in FOLLOWED.values():
        for name, text in files.items():
            with open(tree / name.replace("NAME", "recipe"), "a", encoding="utf-8") as file:
                file.write(text)


def main(build, *arguments):
    text = repository.read("CONTRIBUTING.md")
    recipes = {name: set(re.findall(r"`(.*?)`", files)) for name, files in RECIPE.findall(text)}
    found = list(problems(recipes, re.findall("^## (Add .*)", text, re.MULTILINE)))
    if found:
        repository.finish(found, "")
    tree = pathlib.Path(build) / "tree"
    copy(tree)
    status = subprocess.run(["sh", tree / "tests/subbuild.sh", build, *arguments], check=False,
                            env={**os.environ, "DUET_SOURCE_DIR": str(tree)}).returncode
    for command in [] if status else COMMANDS:
        subprocess.run([f"{build}/duet", *command], check=True)
    sys.exit(status)


main(*sys.argv[1:])
