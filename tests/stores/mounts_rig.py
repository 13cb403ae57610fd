# SPDX-License-Identifier: Apache-2.0
"""What the tests of mounts share: a node's own folder per test, and what must be gone after a job."""
import os
import pathlib
import shutil
import subprocess
import unittest

from store_rig import StoreRig


def has_fuse():
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError:
        return False
    return True


def needs_fuse(program):
    """Skips, and says so aloud, where nothing can be mounted."""
    return unittest.skipUnless(has_fuse() and shutil.which(program) and shutil.which("fusermount3"),
                               f"NOT TESTED: FUSE mounts need /dev/fuse, fusermount3 and {program}")


# Takes the place of a mounter that Debian does not have: notes what it was given, and shows a tmpfs in the place of the store. It refuses what
# the program refuses (blobfuse2: a file whose name does not end in .yaml, a cache that is not empty; its variables count before its file).
FAKE_MOUNTER = """#!/bin/sh
me=$(basename "$0")
point=POINT
{ for word in "$@"; do printf '%s\\n' "$word"; done; } > "$FACTS/$me.argv"
env > "$FACTS/$me.env"
for word in "$@"; do case $word in --config-file=*) cp "${word#--config-file=}" "$FACTS/$me.conf"
  stat -c %a "${word#--config-file=}" > "$FACTS/$me.mode";; esac; done
if [ "$me" = blobfuse2 ]; then
  config=${3#--config-file=}
  case $config in *.yaml|*.yml) ;; *) echo "Error: invalid config file [Unsupported Config Type]" >&2; exit 1;; esac
  if env | grep -q '^AZURE_STORAGE_\(ACCOUNT\|ACCESS_KEY\|SAS_TOKEN\|BLOB_ENDPOINT\)='; then echo "Error: another account" >&2; exit 1; fi
  cache=$(sed -n 's/.*"file_cache":{"path":"\([^"]*\)".*/\1/p' "$config")
  if [ -n "$(ls -A "$cache")" ]; then
    grep -q '"allow-non-empty-temp":true' "$config" || { echo "Error: temp directory not empty" >&2; exit 1; }
  fi
  echo part > "$cache/part"
fi
if [ -e "$FACTS/$me.hangs" ]; then sleep 1000; fi
if [ -e "$FACTS/$me.fails" ]; then echo "the key SECRETWORD is not known" >&2; exit 3; fi
stage="$FACTS/$me.stage"; mkdir -p "$stage"
mount -t tmpfs overcap-test "$stage" || exit 1
echo "$me was here" > "$stage/mounted-by"
mount --bind "$stage" "$point" || exit 1
umount "$stage"
trap 'umount -l "$point"; exit 0' TERM
while mountpoint -q "$point"; do sleep 0.05; done
"""


class MountsRig(StoreRig):
    def setUp(self):
        super().setUp()
        self.node = self.root / "node"
        self.config()

    def config(self, text=""):
        """overcap.yaml of the project: without GPUs, with the node's folder in the test's own."""
        self.write("overcap.yaml", f"clusters:\n  local:\n    gpus: []\n    mounts_at: {self.node}\n{text}")

    def fake_mounter(self, name, point):
        """`point`: which of its words is the mount point, in sh."""
        tools = self.root / "tools"
        tools.mkdir(exist_ok=True)
        path = tools / name
        path.write_text(FAKE_MOUNTER.replace("POINT", point))
        path.chmod(0o755)
        self.env["PATH"] = f"{tools}:{self.env['PATH']}"

    def words_of(self, pid):
        try:
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            return [""]

    def running(self, *words):
        """Processes of Overcap whose first words are these."""
        return [pid for pid in self.processes() if self.words_of(pid)[1:1 + len(words)] == list(words)]

    def mounts(self):
        return [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                if line.split()[4].startswith(str(self.root))]

    def assert_nothing_left(self):
        self.until(lambda: not self.mounts(), f"mounts to be gone, but there are {self.mounts()}")
        folder = self.node / f"overcap-mounts-{os.geteuid()}"
        left = [path.name for path in folder.iterdir() if path.name != "kept"] if folder.exists() else []
        self.assertEqual(left, [])

    def tearDown(self):
        super().tearDown()
        for point in self.mounts():
            subprocess.run(["umount", "-l", point], check=False)

    def job_ok(self, *args, **options):
        job = self.run_job(*args, **options)
        self.assertEqual(job["state"], "succeeded", job)
        return job["id"]

    def job_fails(self, *args, says=(), **options):
        job = self.run_job(*args, **options)
        self.assertEqual(job["state"], "failed", job)
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, job["reason"])
        return job

    def assert_no_key(self, *keys):
        """In no file but the private ones that have the submitter's variables."""
        for folder in (self.home, self.project, self.node):
            for path in folder.rglob("*"):
                if path.is_file() and not path.is_symlink() and path.name != "environment" and self.home / "store" not in path.parents:
                    content = path.read_bytes()
                    for key in keys:
                        self.assertNotIn(key.encode(), content, path)
