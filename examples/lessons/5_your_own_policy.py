# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 5. Your own policy
#
# A policy is a class: `push` says where ready tasks go. This one gives each task to the worker that
# ends it first, copies included. Is it as good as those that are there?

# %%
import duet


class Earliest(duet.Policy):
    def init(self, view):
        self.free_s = [0.0] * view.workers

    def push(self, view, tasks, by, now):
        for task in tasks:
            ends = {worker: view.seconds(worker, task) + max(
                        self.free_s[worker], now + view.transfer_seconds(worker, task, True))
                    for worker in range(view.workers) if view.can_run(worker, task)}
            best = min(ends, key=ends.get)
            self.free_s[best] = ends[best]
            view.push_tail(view.list(best), task)


# %% [markdown]
# Two sizes, three policies, and a picture of the last run: `own_policy.svg`.

# %%
if __name__ == "__main__":
    table = duet.simulate("cholesky", platform="idgraf", n=[3840, 5760], tile=480, cpus=4, gpus=3,
                          policy=["eager", "dmda", Earliest()])
    for row in table:
        print(f"n {row['n']:<6} {row['policy']:<9} {row['makespan_s']:.3f} s")
    table.gantt("own_policy.svg", row=len(table) - 1)

# %% [markdown]
# ## Answer

# %%
if __name__ == "__main__":
    mine, eager, dmda = ([row["makespan_s"] for row in table if row["policy"] == policy]
                         for policy in ("earliest", "eager", "dmda"))
    print(f"earliest takes {max(a / b for a, b in zip(mine, eager)):.0%} of eager's time at most, "
          f"{max(a / b for a, b in zip(mine, dmda)):.0%} of dmda's: looking ahead is what counts.")

# %% [markdown]
# ## Exercise
#
# Let tasks of a higher priority go first: `order = "heap"`, and see `view.push_tail`.
