# SPDX-License-Identifier: Apache-2.0
"""The S3 store against real services: the conformance suite of all stores, and what is S3's own.

The suite is build/*/unit/stores_test, beside $OVERCAP_BINARY."""
import functools
import os
import pathlib
import subprocess
import unittest

from rigs.ceph_rig import Ceph
from rigs.fault_proxy import FaultProxy
from rigs.s3proxy_rig import S3Proxy
from rigs.swift_rig import Swift
from rigs.versity_rig import Versity

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("OVERCAP_BINARY") or REPOSITORY / "build/release/overcap").resolve()
SUITE = BINARY.parent / "unit" / "stores_test"
GROUP = "stores"
DEADLINE_SECONDS = 500
BUCKET = "conformance"


class Conformance:
    never = "*BadWay*:*RefusesLocks*"  # these, apart from those that have tests of their own, a service cannot do

    @classmethod
    def setUpClass(cls):
        if not SUITE.exists():
            raise unittest.SkipTest(f"NOT TESTED: {SUITE} is not built")
        cls.server = cls.Server()
        cls.addClassCleanup(cls.server.close)
        cls.server.calls.make_bucket(BUCKET)

    def run_suite(self, tests, more=None):
        env = {**os.environ, "OVERCAP_TEST_S3_ENDPOINT": self.server.endpoint, "OVERCAP_TEST_S3_KEY": self.server.access_key,
               "OVERCAP_TEST_S3_SECRET": self.server.secret_key, "OVERCAP_TEST_S3_REGION": self.server.region,
               "OVERCAP_TEST_S3_BUCKET": BUCKET, **(more or {})}
        done = subprocess.run([str(SUITE), f"--gtest_filter={tests}", "--gtest_brief=1"], env=env, capture_output=True, text=True,
                              timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
        self.assertRegex(done.stdout, r"PASSED  \] [1-9]\d* tests?")
        self.assertNotIn("SKIPPED", done.stdout)

    def test_the_suite_of_all_stores_holds(self):
        self.run_suite(f"S3/StoreConformance.*-{self.never}")

    def test_what_is_its_own_holds(self):
        self.run_suite(f"S3/RealS3.*-{self.never}")

    def test_a_bad_way_loses_nothing_and_leaves_no_parts(self):
        with FaultProxy(self.server.port, seed=8) as proxy:
            self.run_suite("S3/RealS3.*BadWay*", {"OVERCAP_TEST_S3_FAULTY_ENDPOINT": f"http://127.0.0.1:{proxy.port}"})
            self.assertGreater(sum(count for fate, count in proxy.counts.items() if fate != "lives"), 50, proxy.counts)
        # An upload whose beginning was never answered may stand there, without a single part.
        calls = self.server.calls
        for key, upload in calls.uploads(BUCKET):
            if key.startswith("r/"):
                self.assertEqual(calls.parts(BUCKET, key, upload), [], key)


class OnCeph(Conformance, unittest.TestCase):
    Server = Ceph

    def test_locks_hold(self):
        self.run_suite("S3/LockConformance.*")


class OnSwift(Conformance, unittest.TestCase):
    Server = Swift

    def test_locks_are_refused(self):
        self.run_suite("S3/RealS3.RefusesLocks*", {"OVERCAP_TEST_S3_NO_CONDITIONS": "1"})


class OnVersity(Conformance, unittest.TestCase):
    Server = Versity

    def test_locks_hold(self):
        self.run_suite("S3/LockConformance.*")


class OnS3Proxy(Conformance, unittest.TestCase):
    """It ignores `If-None-Match`, which creates on a bad way need, too; gives no pages of uploads; and takes parts of one that was aborted."""
    Server = functools.partial(S3Proxy, "transient")
    never = "*BadWay*:*RefusesLocks*:*Create*:*Creator*:*IsSeenByOthersAtOnce*:*SeesPagesOfUploads*:*FindsAndEnds*"
    test_a_bad_way_loses_nothing_and_leaves_no_parts = None


if __name__ == "__main__":
    unittest.main()
