# SPDX-License-Identifier: Apache-2.0
"""The Azure store against Azurite: the conformance suite of all stores, and what is Azure's own.

The suite is build/*/unit/stores_test, beside $OVERCAP_BINARY."""
import os
import pathlib
import subprocess
import unittest

from rigs.azurite_rig import Azurite
from rigs.fault_proxy import FaultProxy

GROUP = "stores"

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("OVERCAP_BINARY") or REPOSITORY / "build/release/overcap").resolve()
SUITE = BINARY.parent / "unit" / "stores_test"
CONTAINER = "conformance"


class OnAzurite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not SUITE.exists():
            raise unittest.SkipTest(f"NOT TESTED: {SUITE} is not built")
        cls.server = Azurite()
        cls.addClassCleanup(cls.server.close)
        cls.server.make_container(CONTAINER)

    def run_suite(self, tests, more=None):
        env = {**os.environ, "OVERCAP_TEST_AZURE_ENDPOINT": self.server.endpoint, "OVERCAP_TEST_AZURE_ACCOUNT": self.server.account,
               "OVERCAP_TEST_AZURE_KEY": self.server.key, "OVERCAP_TEST_AZURE_CONTAINER": CONTAINER,
               **(more or {})}
        done = subprocess.run([str(SUITE), f"--gtest_filter={tests}", "--gtest_brief=1"], env=env, capture_output=True, text=True,
                              timeout=200, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
        self.assertRegex(done.stdout, r"PASSED  \] [1-9]\d* tests?")
        self.assertNotIn("SKIPPED", done.stdout)

    def test_the_suite_of_all_stores_holds(self):
        self.run_suite("Azure/StoreConformance.*")

    def test_locks_hold(self):
        self.run_suite("Azure/LockConformance.*")

    def test_what_is_its_own_holds(self):
        self.run_suite("Azure/RealAzure.*-*BadWay*")

    def test_a_bad_way_loses_nothing(self):
        with FaultProxy(self.server.port, seed=8) as proxy:
            way = f"http://127.0.0.1:{proxy.port}/{self.server.account}"
            self.run_suite("Azure/RealAzure.*BadWay*", {"OVERCAP_TEST_AZURE_FAULTY_ENDPOINT": way})
            self.assertGreater(sum(count for fate, count in proxy.counts.items() if fate != "lives"), 50, proxy.counts)


if __name__ == "__main__":
    unittest.main()
