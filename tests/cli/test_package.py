# SPDX-License-Identifier: Apache-2.0
"""`cmake --install` and the .deb hold the program, its completions, licence and manual, and need libc6 only."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["OVERCAP_BINARY"]).parent
VERSION = (pathlib.Path(__file__).resolve().parents[2] / "VERSION").read_text().strip()
FILES = ["bin/overcap", "share/bash-completion/completions/overcap", "share/zsh/vendor-completions/_overcap",
         "share/doc/overcap/copyright", "share/doc/overcap/README.md", "share/doc/overcap/manual/getting-started.md"]


def run(*argv, **more):
    result = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=120, **more)
    if result.returncode != 0:
        raise AssertionError(f"{argv}: {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result.stdout


@unittest.skipUnless(shutil.which("cmake") and shutil.which("cpack"), "cmake is not installed")
class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_install_puts_every_file_in_its_place(self):
        run("cmake", "--install", BUILD, "--prefix", self.folder / "usr")
        for name in FILES:
            with self.subTest(name):
                self.assertGreater((self.folder / "usr" / name).stat().st_size, 0)
        self.assertIn(VERSION, run(self.folder / "usr/bin/overcap", "--version"))

    @unittest.skipUnless(shutil.which("dpkg-deb"), "dpkg-deb is not installed")
    def test_deb_holds_the_files_and_needs_libc6_only(self):
        run("cpack", "-G", "DEB", "-B", self.folder, cwd=BUILD)
        [deb] = self.folder.glob("*.deb")
        architecture = run("dpkg", "--print-architecture").strip()
        self.assertEqual(deb.name, f"overcap_{VERSION}_{architecture}.deb")
        fields = run("dpkg-deb", "--field", deb, "Package", "Version", "Depends", "Maintainer")
        self.assertIn("Package: overcap\n", fields)
        depends = [line for line in fields.splitlines() if line.startswith("Depends:")]
        self.assertRegex(depends[0], r"^Depends: libc6 \(>= [\d.]+\)$")
        contents = {line.split()[5] for line in run("dpkg-deb", "--contents", deb).splitlines()}
        for name in FILES:
            self.assertIn("./usr/" + name, contents)
        run("dpkg-deb", "--extract", deb, self.folder / "root")
        self.assertIn(VERSION, run(self.folder / "root/usr/bin/overcap", "--version"))


if __name__ == "__main__":
    unittest.main()
