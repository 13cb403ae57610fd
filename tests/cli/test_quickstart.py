# SPDX-License-Identifier: Apache-2.0
"""./quickstart runs a real job with two ranks and can be run again."""
import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 600  # it builds when nobody has


class Quickstart(unittest.TestCase):
    def test_twice_in_a_row(self):
        env = dict(os.environ, OVERCAP_NO_INSTALL="1")
        self.addCleanup(subprocess.run, [os.environ["OVERCAP_BINARY"], "daemon", "stop"], env=env, timeout=30,
                        capture_output=True)
        ids = set()
        for _ in range(2):
            result = subprocess.run([ROOT / "quickstart"], env=env, capture_output=True, text=True, timeout=280,
                                    stdin=subprocess.DEVNULL)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("hello from rank 0 of 2", result.stdout)
            self.assertIn("hello from rank 1 of 2", result.stdout)
            self.assertIn("succeeded", result.stdout)
            self.assertIn("overcap submit -n 1", result.stdout)
            ids.update(re.findall(r"^\S+_\d+_[0-9a-f]{8}$", result.stdout, re.M))
        self.assertEqual(len(ids), 2)


if __name__ == "__main__":
    unittest.main()
