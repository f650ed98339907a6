# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 4. Memory limits
#
# A matrix product has more data than a GPU's memory. What is brought may have to make room before
# it was used enough. `eager` takes tasks as they come; `darts` chooses the data that frees most
# tasks, and evicts what fewest need. Who gets on with less memory?

# %%
import duet

MEMORY, POLICIES = ["12MiB", "24MiB", "48MiB", "96MiB"], ["eager", "dmda", "darts"]
table = duet.study("gemm", platform="idgraf", n=5760, tile=480, cpus=1, gpus=8,
                   gpu_memory=MEMORY, policy=POLICIES, svg="memory")
found = {(row["policy"], row["gpu_memory"]): row for row in table}
print("makespan, and GB that were copied to GPUs")
print("GPU     " + "".join(f"{policy:<16}" for policy in POLICIES).rstrip())
for size in MEMORY:
    rows = [found[policy, size] for policy in POLICIES]
    print(f"{size:<8}" + "  ".join(
        f"{row['makespan_s']:.3f} s {row['host_to_device_bytes'] / 1e9:.1f} GB" for row in rows))

# %% [markdown]
# The picture is `memory/makespan-over-gpu_memory.svg`.
#
# ## Answer

# %%
best = {size: min(POLICIES, key=lambda policy: found[policy, size]["makespan_s"])
        for size in MEMORY}
longer = {policy: found[policy, MEMORY[0]]["makespan_s"] / found[policy, MEMORY[-1]]["makespan_s"]
          for policy in POLICIES}
print(f"The fastest is {best[MEMORY[-1]]} with {MEMORY[-1]}, {best[MEMORY[0]]} with {MEMORY[0]}. "
      "Having less lengthens the makespan by a factor of "
      + ", ".join(f"{part:.2f} ({policy})" for policy, part in longer.items()) + ".")

# %% [markdown]
# ## Exercise
#
# `darts:luf=0` evicts the oldest data. How much of its lead comes from the order of tasks, how much
# from eviction?
