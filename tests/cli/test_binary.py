# SPDX-License-Identifier: Apache-2.0
"""One binary, glibc only: it can be copied to any node and just runs."""
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile
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

    def test_names_the_libraries_inside_with_their_versions(self):
        result = run(str(BINARY), "--version", "--full")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(result.stdout.startswith(f"overcap {(SOURCE / 'VERSION').read_text().strip()}\n"))
        for name in ("OpenSSL", "yaml-cpp", "zstd", "lz4", "zlib", "nlohmann json", "libstdc\\+\\+"):
            self.assertRegex(result.stdout, rf"(?m)^  {name} \d+(\.\d+)*( \(\S+ \S+\))?$")
        inside = run("openssl", "version").stdout.split()[1:2]  # the same package of the distribution
        if inside and (pathlib.Path("/etc/debian_version")).exists():
            self.assertIn(f"OpenSSL {inside[0].split('.')[0]}.", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^hardening: .*stack protector.*full RELRO")

    def test_names_them_for_programs_too(self):
        for words in (("--version", "--full", "--json"), ("--json", "--full", "--version")):
            told = json.loads(run(str(BINARY), *words).stdout)
            self.assertEqual(told["version"], (SOURCE / "VERSION").read_text().strip())
            versions = {library["name"]: library["version"] for library in told["libraries"]}
            self.assertRegex(versions["OpenSSL"], r"^\d+\.\d+\.\d+$")
            self.assertRegex(versions["zlib"], r"^\d+\.\d+")
            self.assertIn("full RELRO", told["hardening"])

    def test_ends_with_one_line_where_there_is_not_enough_memory(self):
        with tempfile.TemporaryDirectory() as folder:
            # A log that has to be in memory as a whole, and room for less.
            attempt = pathlib.Path(folder) / "attempt-1"
            attempt.mkdir()
            (attempt.parent / "launch.json").write_text(
                '{"id":"x","command":["true"],"launcher":"local","scheduler":"","job_id":"","world_size":1,"started_us":1}')
            (attempt / "rank-0.log").write_bytes(b"x" * 300_000_000)

            def limit():
                resource.setrlimit(resource.RLIMIT_AS, (200_000_000, 200_000_000))
            result = subprocess.run([str(BINARY), "launches", "--rank", "0", folder], capture_output=True, timeout=60,
                                    preexec_fn=limit, env={"HOME": folder})
        self.assertEqual((result.returncode, result.stderr), (70, b"overcap: there is not enough memory\n"))

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
        self.assertRegex(segments, r"GNU_STACK.*\bRW\s")

    def test_notices_an_overwritten_stack_and_buffer(self):
        imported = run("readelf", "--dyn-syms", "-W", str(BINARY)).stdout
        self.assertIn("__stack_chk_fail", imported)
        self.assertRegex(imported, r"__(mem(cpy|move|set)|snprintf|read|readlink)_chk")

    def test_runs_from_anywhere_with_an_empty_environment(self):
        result = subprocess.run([str(BINARY), "--version"], capture_output=True, timeout=30, cwd="/", env={})
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
