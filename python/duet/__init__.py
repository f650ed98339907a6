# SPDX-License-Identifier: Apache-2.0
"""duet in Python: simulations, studies, task graphs, policies and runs (docs/python.md)."""

from duet.command import (Error, Platform, Table, Trace, compare, explain, info, platforms,
                          policies, run, simulate, study, tune, validate, workloads)
from duet.graph import Graph, export, graph, read_graph
from duet.policy import SUBMITTER, Policy, Task, View, policy_object
from duet.runtime import COMMUTE, RW, R, Runtime, W

__all__ = ["COMMUTE", "RW", "SUBMITTER", "Error", "Graph", "Platform", "Policy", "R", "Runtime",
           "Table", "Task", "Trace", "View", "W", "compare", "explain", "export", "graph", "info",
           "platforms", "policies", "policy_object", "read_graph", "run", "simulate", "study",
           "tune", "validate", "workloads"]
