# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 1. Greedy, or HEFT?
#
# Idgraf has CPUs and GPUs. A *greedy* scheduler gives an idle worker whatever task is ready.
# *HEFT* gives each task to the worker that will end it first. How much does foresight bring?

# %%
import duet

table = duet.simulate("cholesky", platform="idgraf", n=9600, tile=960, cpus=4, gpus=3,
                      policy=["eager", "heft"])
for row in table:
    print(f"{row['policy']:<8} {row['makespan_s']:.3f} s, GPUs idle {row['idle_share_c2050']:.0%}")
greedy, heft = table

# %% [markdown]
# Time goes from left to right, a row is a worker, a bar a task. Look at the right end.

# %%
for number, row in enumerate(table):
    table.gantt(f"greedy_or_heft_{row['policy']}.svg", row=number)

# %% [markdown]
# ## Answer

# %%
tasks = table.trace(row=0).tasks()
cpu, gpu = (min(task["end_s"] - task["start_s"] for task in tasks if task["name"] == "dgemm"
                and task["worker"].startswith(kind)) for kind in ("cpu", "gpu"))
print(f"HEFT is {greedy['makespan_s'] / heft['makespan_s']:.1f} times as fast: a dgemm takes a CPU "
      f"{cpu / gpu:.0f} times as long as a GPU, and greedy CPUs take what others wait for.")

# %% [markdown]
# ## Exercise
#
# Without CPUs' help (`cpus=1`), is `eager` still slower? From which number of GPUs on?
