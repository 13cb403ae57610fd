# SPDX-License-Identifier: Apache-2.0
"""The mirror of a Slurm controller against a real one: what many who watch cost it, and what they see when it is away.

Watched with build/*/unit/slurm_mirror_watch (slurm_mirror_watch.cc), beside $OVERCAP_BINARY.
"""
import json
import os
import pathlib
import unittest

from rigs.slurm_rig import SlurmCluster

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("OVERCAP_BINARY") or REPOSITORY / "build/release/overcap").resolve()
WATCH = BINARY.parent / "unit" / "slurm_mirror_watch"
INTERVAL = 5  # seconds between two calls at least
DEADLINE_SECONDS = 300


class SlurmMirror(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not WATCH.exists():
            raise unittest.SkipTest(f"NOT TESTED: {WATCH} is not built")
        cls.slurm = SlurmCluster(nodes=1, gpus=0)
        cls.addClassCleanup(cls.slurm.close)

    def setUp(self):
        self.folder = self.slurm.folder / "work" / f"mirror-{self._testMethodName}"
        self.jobs = [self.slurm.submit("--hold", "--wrap", "true") for _ in range(3)]
        self.addCleanup(self.slurm.empty_queue)

    def begin(self, seconds, max_age=0):
        return self.slurm.popen([str(WATCH), str(self.folder), str(seconds), str(max_age)])

    def saw(self, watcher):
        out, err = watcher.communicate(timeout=120)
        self.assertEqual((watcher.returncode, err), (0, ""))
        return json.loads(out)

    def watch(self, seconds=0):
        return self.saw(self.begin(seconds))

    def assert_calm(self, seen):
        self.assertEqual((seen["failed"], seen["stale"], seen["error"]), (0, 0, ""), seen)
        self.assertGreaterEqual(seen["jobs"], 3)

    def watch_together(self, seconds, max_age):
        """Fifty at once; gives the reads that reached the controller, by their type."""
        before = self.slurm.rpc_counts()
        watchers = [self.begin(seconds, max_age) for _ in range(50)]
        seen = [self.saw(watcher) for watcher in watchers]
        reads = self.slurm.rpc_counts().since(before).reads()
        for one in seen:
            self.assert_calm(one)
            self.assertGreater(one["reads"], seconds)
            self.assertLess(one["oldest_us"], (max(max_age, INTERVAL) + 5) * 1_000_000)
        # What squeue asks for, whatever its options.
        self.assertLessEqual(set(reads), {"REQUEST_JOB_INFO", "REQUEST_PARTITION_INFO"})
        return reads

    # With the real commands, which are content with less: test_slurm_sight.py
    def test_fifty_who_watch_cost_the_controller_one_call_in_five_seconds(self):
        calls = self.watch_together(16, 0)["REQUEST_JOB_INFO"]
        # Those that begin late end late.
        self.assertTrue(3 <= calls <= (16 + 5) // INTERVAL + 1, calls)

    def test_without_its_controller_the_last_queue_is_told_with_the_error(self):
        self.assert_calm(self.watch())
        self.slurm.stop_controller()
        try:
            seen = self.watch(INTERVAL + 1)
        finally:
            self.slurm.restart_controller()
        self.assertEqual((seen["failed"], seen["jobs"] >= 3), (0, True), seen)
        self.assertGreater(seen["stale"], 0, seen)
        self.assertIn("squeue", seen["error"])
        seen = self.watch(INTERVAL + 2)
        self.assertLess(seen["stale"], seen["reads"], "it comes back by itself")

    def test_without_its_controller_from_the_start_there_is_an_error_and_no_empty_queue(self):
        self.slurm.stop_controller()
        try:
            seen = self.watch()
        finally:
            self.slurm.restart_controller()
        self.assertEqual((seen["reads"], seen["failed"], seen["jobs"]), (1, 1, 0), seen)
        self.assertIn("squeue", seen["error"])


if __name__ == "__main__":
    unittest.main()
