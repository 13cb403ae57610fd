# SPDX-License-Identifier: Apache-2.0
"""Help, version, completion: what a user reads first."""
import os
import pty
import shutil
import subprocess

from overcap_rig import Rig, main

VERBS = ("submit", "launch", "launches", "rank", "env", "query", "ls", "logs", "wait", "abort", "resubmit", "hold", "release", "exec", "ssh", "shell", "alloc", "alloc list", "alloc release", "alloc install", "rm", "gc", "init", "fanout",
         "doctor", "cluster list", "cluster check", "config show", "daemon status", "daemon stop", "shell-init",
         "policy check", "policy render", "policy apply",
         *(f"store {verb}" for verb in ("ls", "cp", "sync", "rm", "stat", "url", "du", "check")),
         *(f"workspace {verb}" for verb in ("create", "init", "backup", "restore", "auto", "list", "status", "ls", "cat", "diff", "verify", "prune",
                                            "forget", "export", "import")))


class Help(Rig):
    def test_every_verb_has_help_with_examples_first_and_exit_statuses_last(self):
        for verb in VERBS:
            text = self.ok(*verb.split(), "--help").out
            low = text.lower()
            self.assertIn("example", "\n".join(low.splitlines()[:6]), verb)
            self.assertIn("exit status", low, verb)
            self.assertGreater(low.rindex("exit status"), low.index("example"), verb)
            self.assertIn("overcap " + verb.split()[0], text, verb)

    def test_help_lists_every_verb_and_version_is_one_line(self):
        text = self.ok("--help").out
        for verb in VERBS:
            self.assertIn(verb.split()[0], text)
        version = self.ok("--version").out
        self.assertRegex(version, r"^overcap \d+\.\d+\S*\n$")

    def test_help_and_version_start_no_engine_and_write_nothing(self):
        self.ok("--help")
        self.ok("--version")
        self.ok("submit", "--help")
        self.assertFalse(self.home.exists())

    def test_completion_is_valid_shell(self):
        for name in ("bash", "zsh"):
            script = self.ok("completion", name).raw_out
            self.assertIn(b"submit", script)
            interpreter = shutil.which(name)
            if interpreter:
                checked = subprocess.run([interpreter, "-n"], input=script, capture_output=True, timeout=20, check=False)
                self.assertEqual((checked.returncode, checked.stderr), (0, b""))

    def on_a_terminal(self, *args, **env):
        """What the command prints on a terminal."""
        master, slave = pty.openpty()
        process = subprocess.Popen([str(self.binary), *args], cwd=self.project, env={**self.env, "TERM": "xterm", **env},
                                   stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        out = b""
        try:
            while chunk := os.read(master, 65536):
                out += chunk
        except OSError:  # how Linux says that the other side is closed
            pass
        os.close(master)
        process.wait(timeout=20)
        return out

    def test_no_color_is_respected_on_a_terminal(self):
        self.run_job("false")
        self.assertIn(b"\x1b[", self.on_a_terminal("ls"))
        self.assertNotRegex(self.on_a_terminal("ls", NO_COLOR="1"), rb"\x1b\[[0-9;]*m")

    def test_colour_is_for_terminals_only(self):
        self.run_job("false")
        for command in (("ls",), ("query", "last"), ("doctor",), ("--help",)):
            self.assertNotIn(b"\x1b[", self.overcap(*command).raw_out)


if __name__ == "__main__":
    main()
