# SPDX-License-Identifier: Apache-2.0
"""`overcap store` and workspaces on S3 servers that are not like AWS: versitygw (Go) and S3Proxy (Java)."""
import datetime
import json
import os

from store_rig import CopiesHold, StoreRig, main, tree
from rigs.s3proxy_rig import S3Proxy
from rigs.versity_rig import Versity

GROUP = "stores"
DEADLINE_SECONDS = 500
MANY = 2300  # more than two pages of a list


class OnAKind(CopiesHold):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.Server()
        cls.addClassCleanup(cls.server.close)
        cls.server.calls.make_bucket("store-tests")

    def setUp(self):
        super().setUp()
        self.env.update(self.server.environment)

    def here(self, name):
        return f"s3://store-tests/{self.id().rpartition('.')[2]}/{name}"

    def files(self, names):
        for name in names:
            path = self.project / "from" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(name.encode())

    def test_names_that_servers_sort_in_many_ways(self):
        """By bytes, by UTF-16, by their URL-encoded form, folder by folder."""
        names = ["a!", "a%41", "a-b", "a.b/c", "a/c", "ab", "\uff01wide/x", "\U0001f600emoji", "\u00e9", "e\u0301", "+", "~"]
        self.files(names)
        there = self.here("names")
        self.ok("store", "cp", "from", there)
        self.assertEqual(self.done("store", "sync", "from", there)["copied"], 0)
        shown = self.ok("store", "ls", "-R", there).out.splitlines()
        self.assertEqual(shown, sorted(names, key=str.encode))
        (self.project / "from" / "\U0001f600emoji").unlink()
        self.assertEqual(self.done("store", "sync", "from", there, "--delete")["removed"], 1)
        self.assertEqual(self.done("store", "check", "from", there)["same"], len(names) - 1)
        self.ok("store", "cp", there, "back")
        self.assertEqual(tree(self.project / "back"), tree(self.project / "from"))
        self.ok("store", "rm", "-r", there)
        self.refused("store", "ls", there, status=3)

    def test_rm_leaves_nothing_of_a_long_list(self):
        self.files([f"many/{i:04}" for i in range(MANY)] + ["zz"])
        there = self.here("long")
        self.assertEqual(self.done("store", "cp", "from", there)["copied"], MANY + 1)
        self.assertEqual(self.ok("store", "ls", there).out.split(), ["many/", "zz"])
        self.assertEqual(self.done("store", "sync", "from", there)["same"], MANY + 1)
        self.ok("store", "rm", "-r", there)
        self.refused("store", "ls", there, status=3)

    def test_old_snapshots_are_pruned(self):
        folder = self.root / "space"
        self.ok("workspace", "create", "w", "--at", str(folder), "--store", self.here("repository"))
        for content in (b"one", b"two", b"three"):
            (folder / "data").write_bytes(os.urandom(50_000) + content)
            self.ok("workspace", "backup", "w")
        done = json.loads(self.ok("workspace", "prune", "w", "--keep-last", "1", "--json").out.splitlines()[-1])
        self.assertEqual((len(done["removed"]), done.get("not_cleaned")), (3, None))
        self.assertIn("sound", self.ok("workspace", "verify", "w", "--read-data").out)

    def test_an_older_file_in_the_place_of_one_that_was_copied(self):
        """tar, rsync -t and git put old times on what they write. Its ctime tells; the service's checksum decides."""
        (self.project / "from").mkdir()
        for name, size in (("small", 8), ("large", 20 << 20)):
            path = self.project / "from" / name
            path.write_bytes(b"1" * size)
            os.utime(path, (1_500_000_000, 1_500_000_000))
        there = self.here("older")
        self.ok("store", "cp", "from", there)
        self.assertEqual(self.done("store", "cp", "from", there)["copied"], 0)
        self.wait_for_a_later_second([f"{there}/{name}" for name in ("small", "large")])
        for name, size in (("small", 8), ("large", 20 << 20)):
            path = self.project / "from" / name
            path.write_bytes(b"1" * (size - 1) + b"2")
            os.utime(path, (1_400_000_000, 1_400_000_000))
        self.assertEqual(self.done("store", "cp", "from", there)["copied"], 2)
        self.assertEqual(self.done("store", "cp", "from", there)["same"], 2)
        self.assertEqual(self.done("store", "check", "from", there)["same"], 2)

    def wait_for_a_later_second(self, there):
        """Until files that are written now have a time of another second than what is there: services tell whole seconds."""
        probe = self.project / "probe"
        copied = max(self.ok("store", "stat", one, "--json").json()["modified"][:19] for one in there)
        self.until(lambda: probe.write_bytes(b"") == 0 and self.second_of(probe) > copied, "a later second")

    def second_of(self, path):
        return datetime.datetime.fromtimestamp(path.stat().st_ctime, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")

    def test_wrong_keys_are_told_as_such(self):
        for name, says in (("AWS_SECRET_ACCESS_KEY", "the secret key"), ("AWS_ACCESS_KEY_ID", "does not know this access key")):
            wrong = {name: "wrongWORDwrong"}
            self.refused("store", "ls", self.here("x"), status=4, says=says, env=wrong)
            done = self.refused("workspace", "create", "w", "--at", str(self.root / "w"), "--store", self.here("x"), status=4, says=says, env=wrong)
            self.assertNotIn("--key-file", done.err)


class OnVersity(OnAKind, StoreRig):
    Server = Versity

    def test_a_name_that_the_server_does_not_tell_as_it_is(self):
        """XML cannot hold a control character, and versitygw encodes no names: its list has another one, which nothing can remove."""
        self.files(["a\x01", "b", "c/d"])
        there = self.here("ghost")
        self.ok("store", "cp", "from", there)
        self.assertEqual(len(self.ok("store", "ls", there).out.splitlines()), 3)
        self.refused("store", "rm", "-r", there, status=5, says="still lists it")
        self.assertEqual(len(self.ok("store", "ls", there).out.splitlines()), 1)
        self.ok("store", "rm", there + "/a\x01")
        self.refused("store", "ls", there, status=3)


class OnS3Proxy(OnAKind, StoreRig):
    Server = S3Proxy


if __name__ == "__main__":
    main()
