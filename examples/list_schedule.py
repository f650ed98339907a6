# SPDX-License-Identifier: Apache-2.0
"""A solver of one's own: a list schedule in which a task stays where its data is, unless that ends
later than LOYALTY seconds after the best.

    duet export cholesky --platform idgraf --n 9600 --tile 960 --out graph.json
    python3 list_schedule.py graph.json "cpu0 cpu1 gpu0 gpu2" plan.json
    duet simulate cholesky --platform idgraf --n 9600 --cpus 2 --gpus 2 --policy plan.json
"""

import json
import sys

COPY_S_A_BYTE = 1 / 5.9e9  # what a lone copy from the host takes on Idgraf
LOYALTY = 0.002

with open(sys.argv[1], encoding="utf-8") as file:
    graph = json.load(file)
free = dict.fromkeys(sys.argv[2].split(), 0.0)  # worker -> date from which on it is free
plan = {worker: [] for worker in free}
written, read = {}, {}  # data -> end and worker of its last writer; -> end of its last reader
for number, task in enumerate(graph["tasks"], 1):
    choices = []
    for worker, start in free.items():
        gpu = worker.startswith("gpu")
        if task["seconds"][gpu] is None or task.get("where") == ("cpu" if gpu else "gpu"):
            continue
        away = 0  # bytes that have to come
        for data, mode in task["accesses"]:
            end, where = written.get(data, (0, "cpu0"))
            coming = graph["data"][data]["bytes"] if gpu and where != worker else 0
            start = max(start, end + coming * COPY_S_A_BYTE)
            if "w" in mode:
                start = max(start, read.get(data, 0))
            away += coming
        choices.append((start + task["seconds"][gpu], away, worker))
    soonest = min(choices)[0]
    _, end, worker = min((away, end, worker) for end, away, worker in choices
                         if end <= soonest + LOYALTY)
    plan[worker].append(number)
    free[worker] = end
    for data, mode in task["accesses"]:
        read[data] = max(read.get(data, 0), end)
        if "w" in mode:
            written[data] = end, worker
with open(sys.argv[3], "w", encoding="utf-8") as file:
    json.dump({"schedule": plan}, file)
