# SPDX-License-Identifier: Apache-2.0
"""The protocol of elastic launches, checked by spin: the model as it is, and that each safeguard is needed."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

MODEL = pathlib.Path(__file__).resolve().parent / "elastic.pml"
GROUP = "threads"
DEADLINE_SECONDS = 400


@unittest.skipUnless(shutil.which("spin") and shutil.which("gcc"), "NOT TESTED: spin or gcc is not installed")
class ElasticModel(unittest.TestCase):
    def check(self, *defines):
        """(errors, states) as the checker that spin makes tells."""
        with tempfile.TemporaryDirectory() as folder:
            for argv in (["spin", "-a", *defines, str(MODEL)], ["gcc", "-O2", "-w", "-DSAFETY", "-o", "pan", "pan.c"]):
                subprocess.run(argv, cwd=folder, check=True, capture_output=True, timeout=120)
            done = subprocess.run(["./pan", "-m200000", "-w24"], cwd=folder, capture_output=True, text=True, timeout=300, check=True)
        self.assertNotIn("truncated", done.stdout)
        self.assertNotIn("max search depth too small", done.stdout)
        return (int(re.search(r"errors: (\d+)", done.stdout).group(1)),
                float(re.search(r"(\S+) states, stored", done.stdout).group(1)))

    def test_never_has_two_groups_at_once(self):
        errors, states = self.check()
        self.assertEqual(errors, 0)
        self.assertGreater(states, 1_000_000)

    def test_every_safeguard_is_needed(self):
        for without in ("-DNO_KILL", "-DLEND", "-DNO_WAIT", "-DANY_EPOCH"):
            with self.subTest(without):
                self.assertGreater(self.check(without)[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
