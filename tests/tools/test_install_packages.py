# SPDX-License-Identifier: Apache-2.0
"""tools/install_packages touches nothing when nothing is missing, and says what to type when it may not install."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "install_packages"


class InstallPackages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.calls = self.folder / "calls"
        self.program("apt-get", f'echo "apt-get $*" >>{self.calls}')
        self.program("sudo", f'echo "sudo $*" >>{self.calls}; exit 1')
        self.program("id", "echo 1000")

    def program(self, name, text):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run_script(self, *words, **variables):
        env = dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}", **variables)
        return subprocess.run([SCRIPT, *words], env=env, capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL)

    def test_nothing_missing_runs_nothing(self):
        self.program("dpkg-query", "printf installed")
        result = self.run_script("build", "test", "bench")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        self.assertFalse(self.calls.exists())

    def test_what_is_missing_is_named_when_sudo_is_refused(self):
        self.program("dpkg-query", 'case $* in *ccache*) exit 1;; *) printf installed;; esac')
        result = self.run_script("build")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.splitlines()[-1], "install_packages: sudo is not allowed; as root, type: "
                         "apt-get install --no-install-recommends ccache")
        self.assertNotIn("apt-get", self.calls.read_text())

    def test_a_removed_package_counts_as_missing(self):
        self.program("dpkg-query", "printf config-files")
        self.assertEqual(self.run_script("bench").returncode, 1)

    def test_missing_packages_can_be_asked_for(self):
        self.program("dpkg-query", 'case $* in *ccache*) exit 1;; *) printf installed;; esac')
        result = self.run_script("--missing", "build")
        self.assertEqual((result.returncode, result.stdout), (0, "ccache\n"))

    def test_an_unknown_group_is_an_error(self):
        result = self.run_script("bild")
        self.assertEqual(result.returncode, 1)
        self.assertIn("unknown group 'bild'", result.stderr)

    def test_nothing_is_installed_when_told_so(self):
        self.program("dpkg-query", "exit 1")
        self.assertEqual(self.run_script("build", OVERCAP_NO_INSTALL="1").returncode, 0)
        self.assertFalse(self.calls.exists())

    def policy_of(self, process):
        """The policy that the script of this process would place, as a program."""
        functions = "".join(part[0] for part in re.findall(r"(?m)^((policy_text|start_of)\(\) \{\n(.*\n)*?\}\n)",
                                                           SCRIPT.read_text()))
        text = subprocess.run(["bash", "-c", f'{functions}\npolicy_mark="# mark"\npolicy_text $1 "$(start_of $1)"',
                               "bash", str(process.pid)], capture_output=True, text=True, check=True).stdout
        self.program("policy-rc.d", text.removeprefix("#!/bin/sh\n"))
        return self.folder / "policy-rc.d"

    def test_services_are_forbidden_no_longer_than_the_script_lives(self):
        process = subprocess.Popen(["sleep", "600"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        policy = self.policy_of(process)
        self.assertIn("# mark", policy.read_text())
        self.assertEqual(subprocess.run([policy, "postgresql", "start"]).returncode, 101)
        process.kill()
        process.wait()
        self.assertEqual(subprocess.run([policy, "postgresql", "start"]).returncode, 0)

    def test_another_process_with_the_number_of_a_killed_script_forbids_nothing(self):
        process = subprocess.Popen(["sleep", "600"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        policy = self.policy_of(process)
        start = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()[19]
        policy.write_text(policy.read_text().replace(f'"{start}"', '"1"'))
        self.assertEqual(subprocess.run([policy, "postgresql", "start"]).returncode, 0)


if __name__ == "__main__":
    unittest.main()
