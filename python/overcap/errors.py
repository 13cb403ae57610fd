# SPDX-License-Identifier: Apache-2.0
"""What goes wrong here."""


class OvercapError(RuntimeError):
    """One line that says what is wrong and what to do about it."""
