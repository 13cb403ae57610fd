# SPDX-License-Identifier: Apache-2.0
"""A case: files, and the command lines that are run one after the other. Cases are data; stage.py says how a line is read."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    name: str         # "jobs/one-rank": what --case and allowed-differences.txt call it
    files: dict       # path below the case's folder -> text; those in bin/ are programs on the PATH of every step
    steps: tuple      # lines, see stage.py
    unstable: tuple   # patterns of observations that differ between two runs of one program
    root: bool        # only root can run it
    crossing: bool    # has steps of two programs


def case(name, files, *steps, unstable=(), root=False):
    return Case(name, files, steps, tuple(unstable), root, any(line.startswith("b: ") for line in steps))
