# SPDX-License-Identifier: Apache-2.0
"""One binary, glibc only: it can be copied to any node and just runs."""
import os
import pathlib
import re
import subprocess
import unittest

BINARY = pathlib.Path(os.environ["OVERCAP_BINARY"])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
GLIBC = {"linux-vdso", "libc", "libm", "libdl", "libpthread", "librt", "libresolv", "ld-linux-x86-64", "ld-linux-aarch64"}


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, timeout=30)


class Binary(unittest.TestCase):
    def test_needs_only_glibc(self):
        libraries = run("ldd", str(BINARY))
        self.assertEqual(libraries.returncode, 0, libraries.stderr)
        names = {pathlib.Path(line.split()[0]).name for line in libraries.stdout.splitlines()}
        needed = {re.sub(r"\.so.*$", "", name) for name in names}
        self.assertIn("libc", needed)
        self.assertEqual(needed - GLIBC, set())

    def test_says_its_version(self):
        result = run(str(BINARY), "--version")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr, "")
        self.assertIn((SOURCE / "VERSION").read_text().strip(), result.stdout)

    def test_is_of_a_sensible_size(self):
        self.assertGreater(BINARY.stat().st_size, 200_000)
        self.assertLess(BINARY.stat().st_size, 40_000_000)

    def test_is_position_independent_and_its_tables_are_read_only_after_the_start(self):
        header = run("readelf", "-hW", str(BINARY)).stdout
        self.assertRegex(header, r"Type:\s+DYN")
        dynamic = run("readelf", "-dW", str(BINARY)).stdout
        self.assertRegex(dynamic, r"FLAGS_1.*\bNOW\b.*\bPIE\b")
        segments = run("readelf", "-lW", str(BINARY)).stdout
        self.assertRegex(segments, r"GNU_RELRO")
        self.assertRegex(segments, r"GNU_STACK.*\bRW \b")

    def test_notices_an_overwritten_stack_and_buffer(self):
        imported = run("readelf", "--dyn-syms", "-W", str(BINARY)).stdout
        self.assertIn("__stack_chk_fail", imported)
        self.assertRegex(imported, r"__(mem(cpy|move|set)|snprintf|read|readlink)_chk")

    def test_runs_from_anywhere_with_an_empty_environment(self):
        result = subprocess.run([str(BINARY), "--version"], capture_output=True, timeout=30, cwd="/", env={})
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
