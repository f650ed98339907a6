# SPDX-License-Identifier: Apache-2.0
"""`python3 -m duet GRAPH.json`: a program that submits a task graph, for `duet ... -- PROGRAM`."""

import sys

from duet.command import Error
from duet.runtime import Runtime

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: python3 -m duet GRAPH.json", file=sys.stderr)
        sys.exit(2)
    try:
        with Runtime() as runtime:
            runtime.submit_graph(sys.argv[1])
    except Error as error:
        sys.exit(f"duet: {error}")  # with status 1
