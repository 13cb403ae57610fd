# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of one case in a fresh folder and notes what a user could see of them.

A step is one line:
    WORDS...                 runs `overcap WORDS...` in the project folder
    $ COMMAND                a shell command of the case's own, which must succeed
    until PATH [has TEXT]    waits until that file of the case's folder is there; * stands for anything
    join                     waits for the steps that were started with `&`
    signal NAME              sends it to the step that was started last with `&`

Before WORDS may be, in this order: `b: ` for the second program of a crossing; `nobody: ` to run it as that user, in a folder of theirs; `> ` to
compare the bytes of stdout, which is done anyway for `--dry-run` (and as JSON for `--json`); @FILE with variables in lines; NAME=VALUE. Behind
them: `< FILE` for stdin, and `&` to go on meanwhile.

{1}, {2} are the ids of jobs that steps have printed so far and {~1} is the end of the first one, {s1} is the first snapshot of a workspace,
{root} the case's folder.
"""
import itertools
import os
import pathlib
import re
import shlex
import shutil
import signal
import stat
import subprocess
import time

from behaviour import observe
from behaviour.normalise import MADE_SNAPSHOT, Normaliser
from behaviour.presets import PROGRAMS, SYSTEM_TOOLS
from overcap_rig import DEADLINE, JOB_ID, Rig

LONG_AGO = 1_700_000_000
MARKS = re.compile(r"^(?:b: )?(?:nobody: )?(?:> )?")
NOBODY = 65534
VARIABLE = re.compile(r"^[A-Z_][A-Z0-9_]*=|^@")


class Stage(Rig):
    """`programs` is {role: program on the folder's file system}. The folder must not exist; close() removes it."""

    def __init__(self, case, programs, folder):
        super().__init__("runTest")
        self.case, self.root, self.ids, self.snapshots, self.background, self.ended = case, pathlib.Path(folder), [], [], [], []
        self.home, self.project, self.facts = (self.root / name for name in ("state", "project", "facts"))
        self.user, self.roles = None, {}
        for path in (self.project, self.facts, self.root / "user", self.root / "tmp", self.root / "bin"):
            path.mkdir(parents=True)
        for role, program in programs.items():
            self.roles[role] = self.root / "programs" / role / "overcap"
            self.roles[role].parent.mkdir(parents=True)
            os.link(program, self.roles[role])
        self.binary = self.roles["a"]
        self.env = self.environment(self.root / "user", self.home)
        self.make_files()

    def runTest(self):
        """Only there because unittest asks for it."""

    def environment(self, user_home, overcap_home):
        env = super().environment(user_home, overcap_home)
        return {**env, "PATH": str(self.root / "bin"), "TMPDIR": str(self.root / "tmp"), "OVERCAP_HOST": "here",
                "OVERCAP_SYSTEM_SOCKET": str(self.root / "run/daemon.sock")}

    def make_files(self):
        for name in SYSTEM_TOOLS:
            if found := shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin"):
                (self.root / "bin" / name).symlink_to(found)
        for name, text in {**PROGRAMS, **self.case.files}.items():
            path = self.root / name
            path.unlink(missing_ok=True)
            text = text.replace("{root}", str(self.root)) if isinstance(text, str) else text
            self.write(name, text, base=self.root, mode=0o755 if name.startswith("bin/") else 0o600 if name.startswith("user/") else 0o644)
        for folder, _, files in os.walk(self.root):
            for name in [".", *files]:  # what is captured has the same times
                os.utime(os.path.join(folder, name), (LONG_AGO, LONG_AGO), follow_symlinks=False)

    # ---- steps

    def play(self):
        for number, line in enumerate(self.case.steps, 1):
            self.step(number, line.replace("{root}", str(self.root)))
        self.join()
        self.binary = self.roles["a"]
        self.stop_everything()
        return self.observe()

    def step(self, number, line):
        if line.startswith("$ "):
            return self.shell(line[2:])
        if line.startswith("until "):
            pattern, _, text = line[6:].partition(" has ")
            return self.until(lambda: any(not text or text in path.read_text() for path in self.root.glob(pattern)), line, DEADLINE)
        if line == "join":
            return self.join()
        if line.startswith("signal "):
            return self.background[-1][-1].send_signal(signal.Signals["SIG" + line[7:]])
        for index, job_id in enumerate(self.ids, 1):
            line = line.replace(f"{{{index}}}", job_id).replace(f"{{~{index}}}", job_id[-6:])
        for index, snapshot in enumerate(self.snapshots, 1):
            line = line.replace(f"{{s{index}}}", snapshot)
        self.command(number, line)

    def shell(self, command):
        env = {**self.env, "PATH": self.env["PATH"] + ":/usr/bin:/bin"}
        subprocess.run(["sh", "-c", command], cwd=self.project, env=env, check=True, timeout=DEADLINE, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL)

    def command(self, number, line):
        words, env, marks = words_of(line), self.variables(line), MARKS.match(line)[0]
        compares_output = "> " in marks
        in_background = words[-1:] == ["&"]
        if in_background:
            words.pop()
        source = subprocess.DEVNULL
        if words[-2:-1] == ["<"]:
            source = open(self.project / words.pop(), "rb")
            words.pop()
        self.binary = self.roles["b" if "b: " in marks else "a"]
        process = self.start_as_nobody(words, env) if "nobody: " in marks else self.start(*words, env=env, stdin=source)
        if source != subprocess.DEVNULL:
            source.close()
        process.began = time.time()
        self.background.append((number, words, compares_output, process))
        if not in_background:
            self.end(self.background.pop())

    def start_as_nobody(self, words, env):
        home = self.root / "nobody"
        if not home.exists():
            home.mkdir()
            os.chown(home, NOBODY, NOBODY)
            self.facts.chmod(0o777)
        self.user = NOBODY
        try:
            return self.start(*words, cwd=home, env={**self.environment(home, home / "state"), **env})
        finally:
            self.user = None

    def variables(self, line):
        env = {}
        for word in itertools.takewhile(VARIABLE.match, split(line)):
            lines = (self.root / word[1:]).read_text().splitlines() if word.startswith("@") else [word]
            env.update(line.split("=", 1) for line in lines)
        return env

    def join(self):
        while self.background:
            self.end(self.background.pop(0))

    def end(self, started):
        number, words, compares_output, process = started
        done = self.finish(process, DEADLINE)
        done.began = process.began
        if "--dry-run" not in words and any(verb in words for verb in ("submit", "resubmit", "alloc")):
            self.ids = list(dict.fromkeys([*self.ids, *(word for word in re.findall(r"[^\s\"]+", done.out) if JOB_ID.match(word))]))
        self.snapshots += [word for word in MADE_SNAPSHOT.findall(done.out) if word not in self.snapshots]
        self.ended.append((number, words, compares_output, done))

    # ---- what is left

    def observe(self):
        normal, seen = Normaliser({"JOB": self.ids, "SNAPSHOT": self.snapshots, "LAUNCH": observe.launches(self.root)}), {}
        for number, words, compares_output, done in self.ended:
            seen[f"status {number}"] = str(done.status)
            seen.update(observe.output(number, words, done, compares_output, normal))
        return {**seen, **observe.facts(self.facts, normal), **observe.tree(self.root, normal)}

    def close(self, keep=None):
        for _, _, _, process in self.background:
            process.kill()
            process.communicate()
        self.stop_everything()
        for folder, names, _ in os.walk(self.root):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    os.chmod(path, stat.S_IRWXU)
        if keep:
            shutil.rmtree(keep, ignore_errors=True)
            keep.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(self.root, keep)
        else:
            shutil.rmtree(self.root)


def split(line):
    """The words of a step that runs overcap, with the variables before them."""
    if line == "join" or line.startswith(("$ ", "until ", "signal ")):
        return []
    return shlex.split(MARKS.sub("", line))


def words_of(line):
    return list(itertools.dropwhile(VARIABLE.match, split(line)))
