# SPDX-License-Identifier: Apache-2.0
"""What `overcap launch` and `overcap launches` say to people and to programs, and that it can be pasted."""
import json
import os
import shutil
import subprocess
import unittest

from launch_rig import LaunchRig
from overcap_rig import main, shell

TELL = 'echo "$RANK of $WORLD_SIZE on node $NODE_RANK"'


class Hints(LaunchRig):
    def test_flags_as_other_launchers_call_them_lead_to_ours(self):
        for typed, meant in (("-np", "'-n'"), ("--ntasks", "'-n'"), ("-N", "'--nnodes'"), ("--ntasks-per-node", "'--ppn'"),
                             ("--machinefile", "'--hostfile'")):
            with self.subTest(typed):
                self.refuse(typed, "2", "true", says=[f"'{typed}'", f"did you mean {meant}?"])

    def test_other_flags_lead_to_launcher_args(self):
        self.refuse("--oversubscribe", "true", says="--launcher-args")

    def test_launcher_args_without_a_launcher_are_refused(self):
        self.refuse("--launcher-args", "--verbose", "true", says=["--launcher-args", "local"])
        hosts = self.write("hosts", "a\nb\n")
        self.refuse("--hostfile", str(hosts), "--launcher-args", "-v", "true", says=["--launcher-args", "ssh"])

    def test_a_host_that_lets_nobody_in_leads_to_ssh(self):
        hosts = self.write("hosts", "a\nb\n")
        ssh = self.write("ssh", "#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit 255\n", mode=0o755)
        self.refuse("--hostfile", str(hosts), "--nnodes", "1", "true", env={"OVERCAP_SSH": str(ssh)},
                    says=["'a'", "Permission denied", "hint: does 'ssh a true' work without a password?"])

    def test_a_launcher_that_fails_leads_to_all_that_it_said(self):
        program = self.write("mpiexec", "#!/bin/sh\n[ \"$1\" = --version ] && echo 'HYDRA build details:' && exit\n"
                             "echo 'no such thing' >&2\nexit 3\n", mode=0o755)
        done = self.launch("--launcher", str(program), "true")
        self.assertEqual(done.status, 5, str(done))
        self.assertRegex(done.err, r"hint: all that it said: /.*/attempt-1/launcher\.log\n")
        self.assertIn("no such thing", (self.folder() / "attempt-1" / "launcher.log").read_text())

    def test_the_names_of_other_launchers_lead_to_launch(self):
        for name in ("mpirun", "mpiexec", "srun", "torchrun"):
            self.refused(name, "-n", "2", "true", says="did you mean 'overcap launch'?")

    def test_a_command_that_cannot_be_started_here(self):
        self.write("plain", "x")
        for command, status, says in (("nosuch", 127, "looked in PATH"), ("./plain", 126, "chmod +x ./plain"),
                                      ("./nosuch", 127, "./nosuch"), ("/", 126, "'/'")):
            for flags in ((), ("--dry-run",), ("--retries", "3")):
                with self.subTest(command=command, flags=flags):
                    self.refused("launch", *flags, command, status=status, says=says)
        self.assert_no_logs()

    def test_a_home_that_cannot_be_made(self):
        self.refused("launch", "true", status=None, says=["/proc/nowhere", "--logs", "OVERCAP_HOME"],
                     env={"OVERCAP_HOME": "/proc/nowhere"})


class Json(LaunchRig):
    def failure(self, *args, status):
        done = self.launch("--json", *args)
        self.assertEqual(done.status, status, str(done))
        return [json.loads(line) for line in done.err.splitlines()]

    def test_a_failed_rank_is_one_object(self):
        [found] = self.failure("-n", "2", "--tee", "none", *shell("echo one; echo two; exit 4"), status=4)
        self.assertEqual(found["error"]["code"], "rank_failed")
        self.assertIn("exit status 4", found["error"]["message"])
        self.assertEqual(found["last_lines"], ["one", "two"])
        self.assertEqual((found["attempt"], found["stacks"]), (1, ""))
        self.assertTrue(os.path.isdir(found["logs"]))

    def test_each_attempt_is_an_object_of_its_own(self):
        found = self.failure("-n", "1", "--retries", "1", "false", status=1)
        self.assertEqual([each["attempt"] for each in found], [1, 2])

    def test_silence_names_the_stacks(self):
        [found] = self.failure("-n", "1", "--timeout", "1s", "sleep", "60", status=124)
        self.assertEqual(found["error"]["code"], "idle")
        self.assertTrue(os.path.isfile(found["stacks"]))

    def test_a_refusal_is_an_error_like_any_other(self):
        [found] = self.failure("--nnodes", "9", "true", status=2)
        self.assertEqual(found["error"]["code"], "usage")


class Paste(LaunchRig):
    """What --dry-run prints does the same when a shell reads it."""
    patience = 3

    def paste(self, *args, env=None):
        env = {**self.env, **(env or {})}
        text = self.launched("--dry-run", *args, env=env).out
        done = subprocess.run(["sh", "-c", text], env=env, cwd=self.project, capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stderr}")
        return text, done

    def with_mpiexec(self, name):
        program = shutil.which(name)
        if program is None:
            raise unittest.SkipTest(f"NOT TESTED: {name} is not installed")
        folder = self.root / f"bin-{name}"
        self.write("mpiexec", f'#!/bin/sh\nexec {program} "$@"\n', mode=0o755, base=folder)
        return {"PATH": f"{folder}:{self.env['PATH']}"}

    def test_both_mpis(self):
        for name in ("mpiexec.openmpi", "mpiexec.hydra"):
            with self.subTest(name):
                _, done = self.paste("-n", "2", "--launcher", "mpiexec", *shell(TELL), env=self.with_mpiexec(name))
                self.assertEqual(sorted(done.stdout.splitlines()), ["0 of 2 on node 0", "1 of 2 on node 0"])
                self.assertEqual(done.stderr, "")

    def test_with_a_host_file_of_its_own(self):
        # A Hydra that only tells what it was given.
        folder = self.root / "bin"
        self.write("mpiexec", "#!/bin/sh\n[ \"$1\" = --version ] && echo 'HYDRA build details:' && exit\n"
                   'while [ $# -gt 0 ]; do [ "$1" = -f ] && cat "$2"; shift; done\necho "$OVERCAP_LAUNCH_PLAN"\n',
                   mode=0o755, base=folder)
        hosts = self.write("hosts", "a slots=2\nb slots=1\n")
        text, done = self.paste("--hostfile", str(hosts), "--launcher", "mpiexec", "true",
                                env={"PATH": f"{folder}:{self.env['PATH']}"})
        self.assertIn("> HOSTFILE", text)
        self.assertEqual(done.stdout.splitlines(), ["a:2", "b:1", "hydra:2,1"])

    def test_this_machine_alone(self):
        _, done = self.paste("printf", "%s|", "a b", "", "$HOME", "'")
        self.assertEqual(done.stdout, "a b||$HOME|'|")

    def test_over_ssh_the_way_to_each_host_is_a_comment(self):
        hosts = self.write("hosts", "a\nb\n")
        text = self.launched("--dry-run", "--hostfile", str(hosts), "echo", "x", env={"OVERCAP_SSH": "my-ssh"}).out
        self.assertRegex(text, r"(?m)^# to each host: my-ssh .*BatchMode=yes.* HOST$")
        self.assertEqual(text.splitlines()[-1], "echo x")


class Listed(LaunchRig):
    def test_without_any(self):
        done = self.ok("launches")
        self.assertEqual(done.out, "")
        self.assertEqual(self.ok("launches", "--json").json(), [])

    def test_in_the_order_of_their_starts(self):
        for name in "abcdefgh":
            self.launched("echo", name)
        self.assertEqual([launch["command"][1] for launch in self.ok("launches", "--json").json()], list("abcdefgh"))
        self.assertEqual(self.ok("launches", "--rank", "0").out, "h\n")
        self.assertRegex(self.ok("launches", "--times").out, r"^\d{4}-\d\d-\d\d.*  h\n$")

    def test_an_attempt_alone_says_nothing(self):
        self.launched("true")
        self.refused("launches", "--attempt", "1", "latest", says="--rank")
        self.refused("launches", "--rank", "0", "--attempt", "4", "latest", status=3, says="attempt 4")

    def test_logs_of_others_are_left_alone(self):
        logs = self.root / "logs"
        logs.mkdir()
        (logs / "attempt-1").write_text("in the way")
        self.launched("--logs", str(logs), "true")
        self.assertEqual((logs / "attempt-1").read_text(), "in the way")
        (own,) = [path for path in logs.iterdir() if path.name != "attempt-1"]
        self.assertEqual(self.result_of(own)["exit_status"], 0)


if __name__ == "__main__":
    main()
