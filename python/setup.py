# SPDX-License-Identifier: Apache-2.0
"""The version is the program's own: one VERSION file for all of the checkout (a source package carries PKG-INFO)."""
import pathlib
import re

from setuptools import setup

HERE = pathlib.Path(__file__).resolve().parent


def version():
    packed = HERE / "PKG-INFO"
    if packed.exists():
        return re.search(r"^Version: (\S+)", packed.read_text(encoding="utf-8"), re.M)[1]
    return (HERE.parent / "VERSION").read_text(encoding="utf-8").strip()


setup(version=version())
