# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 2. Locality
#
# A GPU needs a task's data in its own memory, and PCI Express is slow. `heft-tm` chooses the worker
# that ends a task first as if copies took no time; `dmda` adds the time of copies. When does that
# matter?

# %%
import duet

LINKS = ["0.25x", "0.5x", "1x", "2x"]
table = duet.study("cholesky", platform="idgraf", n=9600, tile=480, cpus=4, gpus=4,
                   link={"pcie": LINKS}, policy=["heft-tm", "dmda"], svg="locality")
blind, aware = ({row["link_pcie"]: row for row in table if row["policy"] == policy}
                for policy in ("heft-tm", "dmda"))
print("makespan, and GB that were copied to GPUs")
print("PCIe   heft-tm         dmda")
for link in LINKS:
    print(f"{link:<7}" + "  ".join(
        f"{one[link]['makespan_s']:.3f} s {one[link]['host_to_device_bytes'] / 1e9:.1f} GB"
        for one in (blind, aware)))

# %% [markdown]
# The picture is `locality/makespan-over-link_pcie.svg`; its numbers are beside it as CSV.
#
# ## Answer

# %%
saved = {link: 1 - aware[link]["makespan_s"] / blind[link]["makespan_s"] for link in LINKS}
fewer = 1 - aware["0.25x"]["host_to_device_bytes"] / blind["0.25x"]["host_to_device_bytes"]
print(f"Minding copies saves {saved['0.25x']:.0%} of the time with links of a quarter of their "
      f"speed, where it brings {fewer:.0%} less to GPUs, and {saved['2x']:.0%} with links twice as "
      "fast as idgraf's: kernels hide the copies then.")

# %% [markdown]
# ## Exercise
#
# `dmda:beta=3` weighs copies three times. Is more locality always better? Try it for each link.
