# SPDX-License-Identifier: Apache-2.0
"""Bad input is refused at submit with exit status 2 and a message that helps; nothing is left behind."""
import os
import subprocess

from overcap_rig import Rig, main, needs_root, shell


class BadInput(Rig):
    def setUp(self):
        super().setUp()
        self.declare_gpus(4)

    def refuse(self, *args, says=(), **options):
        done = self.refused(*args, says=says, **options)
        lines = done.err.strip().splitlines()
        self.assertLessEqual(len(lines), 3, f"one line and a hint, please: {done}")
        return done

    def tearDown(self):
        try:
            self.assertEqual(self.jobs("ls", "--all"), [], "a refused submit leaves nothing behind")
            jobs = self.home / "jobs"
            self.assertEqual(os.listdir(jobs) if jobs.exists() else [], [])
        finally:
            super().tearDown()

    def test_a_command_that_does_not_exist(self):
        self.refuse("submit", "no-such-command-anywhere", says="no-such-command-anywhere")
        self.refuse("submit", "./not-here.sh", says="./not-here.sh")
        self.refuse("submit", "/no/such/path", says="/no/such/path")

    def test_a_command_without_permission(self):
        self.write("script.sh", "#!/bin/sh\n", mode=0o644)
        self.refuse("submit", "./script.sh", says="./script.sh")
        self.refuse("submit", "/etc/passwd", says="/etc/passwd")

    def test_a_command_that_is_a_folder(self):
        self.write("folder/x", "x")
        self.refuse("submit", "./folder", says="./folder")

    def test_a_missing_workdir(self):
        self.refuse("submit", "--workdir", "no/such/dir", "true", says="no/such/dir")
        self.refuse("submit", "--workdir", "/no/such/dir", "true", says="/no/such/dir")
        self.write("file", "x")
        self.refuse("submit", "--workdir", "file", "true", says="file")

    def test_more_gpus_than_the_machine_has(self):
        self.refuse("submit", "-n", "8", "true", says="asks for 8 GPUs, this machine has 4")
        self.refuse("-n", "8", "submit", "true", says="asks for 8 GPUs, this machine has 4")

    def test_a_gpu_type_that_the_machine_has_not(self):
        self.refuse("submit", "-n", "1", "--gpu-type", "h200", "true", says="h200")
        self.refuse("submit", "-n", "1", "--gpu-type", "a40|", "true")

    def test_more_nodes_cpus_or_memory_than_there_are(self):
        self.refuse("submit", "--nodes", "2", "true", says="2")
        self.refuse("submit", "--cpus", "100000", "true", says="100000")
        self.refuse("submit", "--mem", "1000T", "true")

    def test_numbers_that_are_none(self):
        for flag, value in (("-n", "two"), ("-n", "-1"), ("-n", "1.5"), ("-n", ""), ("-n", "99999999999999999999"),
                            ("--nodes", "0"), ("--ranks-per-node", "0"), ("--cpus", "x"), ("--mem", "lots"),
                            ("--mem", "-5G"), ("--max-restarts", "-1"), ("--max-restarts", "many")):
            self.refuse("submit", flag, value, "true", says=value)

    def test_bad_durations(self):
        for value in ("soon", "", "-5m", "5x", "1:2:3:4", "0", "99999999999999999999d"):
            self.refuse("submit", "--time", value, "true", says=f"'{value}'")

    def test_bad_arrays(self):
        for value in ("", "x", "5-1", "-1", "0-", "0-9%0", "0-9%", "0-9%x", "0-99999999999", "1,,2", "0-9:0"):
            self.refuse("submit", "--array", value, "true", says=f"'{value}'")

    def test_bad_variables(self):
        for value in ("NOVALUE", "=x", ""):
            self.refuse("submit", "--env", value, "true", says="--env")

    def test_no_command_at_all(self):
        self.refuse("submit")
        self.refuse("submit", "-n", "1")
        self.refuse("submit", "--")
        self.refuse("submit", "")

    def test_an_unknown_verb_suggests_the_nearest(self):
        self.refuse("sumbit", "true", says=["sumbit", "submit"])
        self.refuse("qurey", says="query")
        self.refuse("xyzzy-unlike-anything", says="xyzzy-unlike-anything")

    def test_an_unknown_flag_suggests_the_nearest(self):
        self.refuse("submit", "--nmae", "x", "true", says=["--nmae", "--name"])
        self.refuse("logs", "--tial", "3", "last", says="--tail")

    def test_a_flag_without_its_value(self):
        self.refuse("submit", "--name", says="--name")
        self.refuse("logs", "--tail", "many", "last", says="--tail")
        self.refuse("logs", "--tail", "-3", "last", says="--tail")

    def test_flags_that_contradict_each_other(self):
        self.refuse("submit", "--ranks-per-node", "2", "--one-rank-per-node", "true")

    def test_a_status_that_there_is_not(self):
        self.refuse("ls", "--status", "sleeping", says="sleeping")

    def test_verbs_that_need_an_id(self):
        for verb in ("query", "abort", "wait", "logs", "resubmit", "hold", "release", "rm"):
            self.refuse(verb)

    def test_no_verb_at_all_shows_what_there_is(self):
        self.refuse(says="overcap --help")

    def test_a_current_folder_that_is_gone(self):
        script = 'mkdir "$1/gone" && cd "$1/gone" && rmdir "$1/gone" && exec "$2" submit true'
        done = self.finish(subprocess.Popen(shell(script, str(self.root), str(self.binary)), env=self.env,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        self.assertNotEqual(done.status, 0, str(done))
        self.assertTrue(done.err.strip(), str(done))

    @needs_root
    def test_a_home_that_cannot_be_made(self):
        self.user = 61001
        os.chmod(self.root, 0o755)
        done = self.overcap("submit", "true", env={"OVERCAP_HOME": "/proc/overcap", "HOME": "/nonexistent"}, cwd="/")
        self.assertNotEqual(done.status, 0)
        self.assertIn("/proc/overcap", done.err)
        self.user = None

    def test_a_folder_that_is_gone_is_said(self):
        gone = self.root / "gone"
        gone.mkdir()
        for verb in (["submit", "true"], ["init"]):
            done = subprocess.run(["/bin/sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", str(self.binary), *verb], cwd=gone,
                                  env=self.env, capture_output=True, timeout=30)
            gone.mkdir()
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(b"the current folder does not exist any more", done.stderr)

    def test_a_size_needs_its_unit(self):
        self.refused("gc", "--max-size", "1", says=["--max-size", "1G"])
        self.refused("submit", "--mem", "16", "true", says=["--mem", "16G"])

    def test_a_wrong_home_is_named(self):
        for verb in (["submit", "true"], ["ls"]):
            self.refused(*verb, status=None, says="OVERCAP_HOME", env={"OVERCAP_HOME": "/proc/nope"})


if __name__ == "__main__":
    main()
