# SPDX-License-Identifier: Apache-2.0
"""`overcap store` and workspaces on Azure Blob Storage (Azurite)."""
import urllib.request

from store_rig import CopiesHold, StoreRig, main, make_tree, tree
from rigs.azurite_rig import Azurite

GROUP = "stores"
DEADLINE_SECONDS = 500


class OnAzurite(CopiesHold, StoreRig):
    @classmethod
    def setUpClass(cls):
        cls.server = Azurite()
        cls.addClassCleanup(cls.server.close)
        cls.server.make_container("store-tests")

    def setUp(self):
        super().setUp()
        self.env.update(self.server.environment)

    def here(self, name):
        return f"az://{self.server.account}/store-tests/{self.id().rpartition('.')[2]}/{name}"

    def test_a_url_that_anybody_can_use(self):
        (self.project / "a b").write_bytes(b"shared")
        there = self.here("url")
        self.ok("store", "cp", "a b", there + "/")
        url = self.ok("store", "url", there + "/a b", "--expires", "7d").out.strip()
        self.assertNotIn(self.server.key, url)
        with urllib.request.urlopen(url, timeout=30) as answer:
            self.assertEqual(answer.read(), b"shared")

    def test_storage_files(self):
        del self.env["AZURE_STORAGE_CONNECTION_STRING"]
        there = self.here("keys")
        self.refused("store", "ls", there, status=4, says="AZURE_STORAGE_KEY")
        storage = self.project / "storage.yaml"
        storage.write_text(f"account_name: {self.server.account}\naccount_key: {self.server.key}\ncontainer_name: store-tests\n")
        storage.chmod(0o600)
        (self.project / "overcap.yaml").write_text(
            f"stores:\n  blobs: {{at: '{there}', credentials: {storage}, endpoint: '{self.server.endpoint}'}}\n")
        (self.project / "x").write_bytes(b"1")
        self.ok("store", "cp", "x", "blobs")
        self.assertEqual(self.ok("store", "ls", "blobs").out, "x\n")
        storage.chmod(0o640)
        done = self.refused("store", "ls", "blobs", status=4, says=f"chmod 600 {storage}")
        self.assertNotIn(self.server.key, done.err)

    def test_what_is_wrong_is_said_in_a_line_without_the_key(self):
        wrong = "d3JvbmdTRUNSRVRXT1JEd3Jvbmc="
        env = {"AZURE_STORAGE_CONNECTION_STRING": self.server.environment["AZURE_STORAGE_CONNECTION_STRING"].replace(self.server.key, wrong)}
        self.refused("store", "check", self.here("x"), status=4, env=env, says="keys: AZURE_STORAGE_CONNECTION_STRING")
        done = self.refused("store", "ls", self.here("x"), status=4, env=env)
        self.assertNotIn(wrong, done.err)
        self.refused("store", "ls", f"az://{self.server.account}/no-such-container", status=3)

    def test_from_store_to_store(self):
        files = make_tree(self.project / "from")
        self.ok("store", "cp", "from", self.here("a"))
        self.ok("store", "cp", self.here("a"), self.here("b"))
        self.ok("store", "cp", self.here("b"), "back")
        self.assertEqual(tree(self.project / "back"), files)


if __name__ == "__main__":
    main()
