# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/same_behaviour: cases (tables of command lines), the stage that runs them, and the comparison."""
