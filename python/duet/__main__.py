# SPDX-License-Identifier: Apache-2.0
"""`python3 -m duet GRAPH.json`: a program that submits a task graph, for `duet ... -- PROGRAM`.

The environment says how it is run, as for all programs that use libduet, and which policy, which
may be one in Python.
"""

import sys

from duet.command import Error
from duet.runtime import Runtime


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python3 -m duet GRAPH.json", file=sys.stderr)
        return 2
    try:
        with Runtime() as runtime:
            runtime.submit_graph(arguments[0])
    except Error as error:
        print(f"duet: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
