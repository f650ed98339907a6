# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 3. Priorities
#
# Of several ready tasks, which one first? The Cholesky factorisation gives tasks near its critical
# path a higher priority, and `dmdas` sorts its workers' lists by it. What if it does not know it?

# %%
import duet

GPUS = [1, 2, 4, 8]
table = duet.study("cholesky", platform="idgraf", n=9600, tile=480, cpus=4, gpus=GPUS,
                   policy="dmdas", priorities=["none", "workload"], svg="priorities")
seconds = {(row["gpus"], row["priorities"]): row["makespan_s"] for row in table}
print("GPUs   without  with priorities")
for gpus in GPUS:
    print(f"{gpus:<6} {seconds[gpus, 'none']:.3f} s  {seconds[gpus, 'workload']:.3f} s")

# %% [markdown]
# The picture is `priorities/makespan-over-gpus.svg`.
#
# ## Answer

# %%
saved = {gpus: 1 - seconds[gpus, "workload"] / seconds[gpus, "none"] for gpus in GPUS}
path = {row["gpus"]: row["critical_path_s"] / row["makespan_s"] for row in table}
print(f"Priorities save {saved[1]:.1%} on one GPU and {saved[8]:.1%} on eight, where the critical "
      f"path takes {path[8]:.0%} of the makespan instead of {path[1]:.0%}.")

# %% [markdown]
# ## Exercise
#
# `priorities="bottom-level"` computes priorities from the graph. Is it as good as the workload's?
