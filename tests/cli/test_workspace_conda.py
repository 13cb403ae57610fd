# SPDX-License-Identifier: Apache-2.0
"""`workspace create --env conda` with a real conda, mamba or micromamba: the one of $OVERCAP_TEST_CONDA, else whichever is on PATH.

No network is needed: packages come from a channel in a folder that is made here, in conda's own format. Its `python` is a script that starts
the machine's Python with the environment as its prefix. What is told when none of the three is there, or when it fails, is tested without."""
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import unittest

from overcap_rig import DEADLINE, main
from test_workspace import WorkspaceRig

NAMES = ("conda", "mamba", "micromamba")
CONDA = os.environ.get("OVERCAP_TEST_CONDA") or next(filter(None, map(shutil.which, NAMES)), None)
PLACEHOLDER = "/opt/anaconda1anaconda2anaconda3"  # what conda replaces by the path of the environment


def package(channel, name, version, files):
    """Puts name-version-0.tar.bz2 into the channel; gives its line of repodata.json."""
    about = {"name": name, "version": version, "build": "0", "build_number": 0, "depends": [], "subdir": "linux-64", "arch": "x86_64",
             "platform": "linux"}
    texts = {"info/index.json": json.dumps(about), "info/files": "".join(f"{path}\n" for path in files),
             "info/has_prefix": "".join(f"{PLACEHOLDER} text {path}\n" for path in files)}
    path = channel / "linux-64" / f"{name}-{version}-0.tar.bz2"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:bz2") as archive:
        for member, text in {**texts, **files}.items():
            entry = tarfile.TarInfo(member)
            entry.size, entry.mode = len(text.encode()), 0o755 if member.startswith("bin/") else 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    content = path.read_bytes()
    return path.name, {**about, "size": len(content), "md5": hashlib.md5(content).hexdigest(), "sha256": hashlib.sha256(content).hexdigest()}


def make_channel(channel):
    script = f'#!/bin/sh\nexport CONDA_TEST_PYTHON={PLACEHOLDER}\nexec {os.path.realpath(sys.executable)} "$@"\n'
    activation = 'export CONDA_TEST_ACTIVATED="yes, really"\n'
    lines = dict([package(channel, "python", "3.11.0", {"bin/python": script, "bin/python3": script, "etc/conda/activate.d/python.sh": activation}),
                  package(channel, "pip", "23.0", {"bin/pip": script})])  # conda wants it with every Python
    for folder, packages in (("linux-64", lines), ("noarch", {})):
        (channel / folder).mkdir(exist_ok=True)
        (channel / folder / "repodata.json").write_text(json.dumps({"info": {"subdir": folder}, "packages": packages,
                                                                    "packages.conda": {}, "repodata_version": 1}))


class CondaRig(WorkspaceRig):
    def setUp(self):
        super().setUp()
        self.channel = self.root / "channel"
        make_channel(self.channel)
        self.use_channel(self.channel)

    def use_channel(self, channel):
        settings = self.root / "condarc"
        settings.write_text(f"channels: [\"file://{channel}\"]\ndefault_channels: []\npkgs_dirs: [\"{self.root}/pkgs\"]\n"
                            "notify_outdated_conda: false\nreport_errors: false\n")
        self.env.update(CONDARC=str(settings), MAMBARC=str(settings), MAMBA_ROOT_PREFIX=str(self.root / "mamba"))
        self.env.update({name: value for name, value in os.environ.items() if name == "CONDA_SOLVER"})


@unittest.skipUnless(CONDA, "NOT TESTED: --env conda with a real one: none of conda, mamba and micromamba is on PATH; "
                            "$OVERCAP_TEST_CONDA names one that is elsewhere")
class RealConda(CondaRig):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = f"{pathlib.Path(CONDA).parent}:{self.env['PATH']}"

    def activated(self, script, shell="sh"):
        done = subprocess.run([shell, "-c", '. "$1/.overcap/activate" && ' + script, shell, str(self.folder)], capture_output=True, text=True,
                              env=self.env, timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout

    def test_the_environment_is_made_used_saved_and_comes_back(self):
        seen = 'python -c \'import os; open("which", "w").write(os.environ["CONDA_TEST_PYTHON"])\''
        self.create("--env", "conda", "--setup", seen, deadline=8 * DEADLINE)
        prefix = self.folder / ".conda"
        self.assertEqual((self.folder / "which").read_text(), str(prefix))
        self.assertIn("python-3.11.0-0", [path.stem for path in (prefix / "conda-meta").glob("*.json")])
        before = self.picture(self.folder)
        shutil.rmtree(self.folder)
        shutil.rmtree(self.root / "pkgs")  # its files were links to these, perhaps
        self.ok("workspace", "init", "work")
        self.assertEqual(self.picture(self.folder).keys(), before.keys())
        self.assertEqual({path: (fact[0], fact[1], fact[2][0]) for path, fact in self.picture(self.folder).items() if isinstance(fact[2], tuple)},
                         {path: (fact[0], fact[1], fact[2][0]) for path, fact in before.items() if isinstance(fact[2], tuple)})
        for shell in filter(shutil.which, ("sh", "bash", "zsh")):
            told = self.activated('echo "$CONDA_PREFIX|$CONDA_TEST_ACTIVATED|$(command -v python)"; python -c "import os; '
                                  'print(os.environ[\'CONDA_TEST_PYTHON\'])"', shell)
            self.assertEqual(told, f"{prefix}|yes, really|{prefix}/bin/python\n{prefix}\n", shell)
        self.assertIn("nothing has changed", self.ws("backup").out)

    def test_what_conda_cannot_do_is_told_in_its_words_and_nothing_is_made(self):
        empty = self.root / "empty channel"
        for folder in ("linux-64", "noarch"):
            (empty / folder).mkdir(parents=True)
            (empty / folder / "repodata.json").write_text(json.dumps({"info": {"subdir": folder}, "packages": {}}))
        self.use_channel(empty)
        self.refused("workspace", "create", "work", "--at", str(self.folder), "--env", "conda", status=6, says=["python", "failed with status 1"],
                     deadline=8 * DEADLINE)
        self.assertFalse(self.folder.exists())
        self.assertEqual(self.ok("workspace", "list", "--json").json(), [])


class WithoutConda(CondaRig):
    def stand_in(self, name, script):
        path = self.write(f"bin/{name}", f"#!/bin/sh\n{script}\n", mode=0o755, base=self.root)
        self.env["PATH"] = f"{path.parent}:/usr/bin:/bin"

    def test_none_of_the_three_is_said_before_anything_is_made(self):
        if any(pathlib.Path(folder, name).exists() for folder in ("/usr/bin", "/bin") for name in NAMES):
            raise unittest.SkipTest("NOT TESTED: a conda is in /usr/bin")
        self.env["PATH"] = "/usr/bin:/bin"
        self.refused("workspace", "create", "work", "--at", str(self.folder), "--env", "conda", status=3,
                     says=["none of conda, mamba and micromamba is on PATH", "--env venv"])
        self.assertFalse(self.folder.exists())

    def test_one_that_fails_half_way_leaves_nothing(self):
        self.stand_in("micromamba", 'mkdir -p "$4/conda-meta" && echo half > "$4/conda-meta/history"; echo "no space left" >&2; exit 1')
        self.refused("workspace", "create", "work", "--at", str(self.folder), "--env", "conda", status=6,
                     says=["micromamba create", "no space left", "failed with status 1"])
        self.assertFalse(self.folder.exists())


if __name__ == "__main__":
    main()
