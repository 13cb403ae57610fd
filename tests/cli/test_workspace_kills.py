# SPDX-License-Identifier: Apache-2.0
"""kill -9 is a normal event: two hundred real ones, of backups, prunes and restores, at random moments."""
import os
import random
import shutil
import signal
import subprocess
import time

from overcap_rig import DEADLINE, main
from test_workspace import WorkspaceRig

KILLS = 200
LONGEST = 0.06  # seconds: some are killed before they begin, some when they have ended


class Kills(WorkspaceRig):
    def setUp(self):
        super().setUp()
        self.random = random.Random(20261115)
        self.seen = {}  # snapshot -> what the folder looked like

    def change(self):
        """New, changed and removed files, some of them large enough for several chunks."""
        for _ in range(self.random.randrange(1, 6)):
            path = self.folder / f"d{self.random.randrange(5)}" / f"f{self.random.randrange(40)}"
            path.parent.mkdir(exist_ok=True)
            size = self.random.choice((0, 10, 5_000, 200_000, 1_500_000))
            path.write_bytes(self.random.randbytes(size))
        for path in self.random.sample(sorted(self.folder.glob("d*/f*")), 1):
            path.unlink()

    def kill(self, *words):
        """Whether it was killed before its end."""
        child = subprocess.Popen([self.binary, "workspace", *words], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.random.random() * LONGEST)  # the moment is the test
        child.send_signal(signal.SIGKILL)
        return child.wait(DEADLINE) == -signal.SIGKILL

    def remember(self):
        """What the newest snapshot must be, when the folder has not changed since."""
        self.ws("backup")
        self.seen[self.snapshots()[-1]] = self.picture(self.folder)

    def check_all(self):
        for snapshot in self.snapshots():
            if snapshot not in self.seen:
                continue  # one that was complete before its process was killed
            target = self.root / "restored"
            self.ws("restore", snapshot, "--to", str(target))
            self.assertEqual(self.picture(target), self.seen[snapshot], snapshot)
            shutil.rmtree(target)

    def test_two_hundred_kills_lose_nothing_and_leave_nothing(self):
        self.create()
        self.fill()
        killed = 0
        for number in range(KILLS):
            self.change()
            if number % 7 == 3:
                killed += self.kill("prune", "--keep-last", "6")
            elif number % 11 == 5:
                killed += self.kill("restore", "latest", "--to", str(self.root / "half"))
                shutil.rmtree(self.root / "half", ignore_errors=True)
            else:
                killed += self.kill("backup")
            if number % 25 == 24:
                self.remember()
                self.check_all()
        self.assertGreater(killed, KILLS // 4, "most ended before they could be killed")
        self.remember()
        self.ws("verify", "--read-data")
        self.ws("prune", "--keep-last", "1")
        self.check_all()
        store = self.root / self.folder_name / "store"
        self.assertTrue((store / "config").exists())
        for path in store.rglob(".*"):
            os.utime(path, (0, 0))  # what a put was writing when it was killed; others may still be writing theirs
        again = self.done("prune", "--keep-last", "1")
        self.assertEqual((again["removed_packs"], again["waiting_packs"]), (0, 0), str(again))
        left = [path for path in store.rglob("*") if path.is_file() and path.parts[len(store.parts)] in ("writers", "condemned")]
        self.assertEqual([*left, *store.rglob(".*")], [])
        self.ws("verify", "--read-data")


if __name__ == "__main__":
    main()
