# SPDX-License-Identifier: Apache-2.0
"""`overcap store` and workspaces on a real S3 service (Ceph)."""
import os
import pathlib
import urllib.error
import urllib.request

from store_rig import MIB, CopiesHold, StoreRig, main, make_tree, tree
from rigs.ceph_rig import Ceph
from rigs.swift_rig import Swift

GROUP = "stores"
DEADLINE_SECONDS = 500


class OnCeph(CopiesHold, StoreRig):
    @classmethod
    def setUpClass(cls):
        cls.server = Ceph()
        cls.addClassCleanup(cls.server.close)
        cls.server.calls.make_bucket("store-tests")

    def setUp(self):
        super().setUp()
        self.env.update(self.server.environment)

    def here(self, name):
        return f"s3://store-tests/{self.id().rpartition('.')[2]}/{name}"

    def test_a_url_that_anybody_can_use(self):
        (self.project / "a b+c").write_bytes(b"shared")
        there = self.here("url")
        self.ok("store", "cp", "a b+c", there + "/")
        url = self.ok("store", "url", there + "/a b+c", "--expires", "7d").out.strip()
        self.assertNotIn(self.server.secret_key, url)
        with urllib.request.urlopen(url, timeout=30) as answer:
            self.assertEqual(answer.read(), b"shared")
        with self.assertRaises(urllib.error.HTTPError):
            urllib.request.urlopen(url.replace("Signature=", "Signature=0"), timeout=30)
        self.refused("store", "url", there + "/a b+c", "--expires", "8d")
        self.refused("store", "url", there + "/none", status=3)

    def test_keys_of_files_and_profiles(self):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del self.env[name]
        there = self.here("keys")
        self.refused("store", "check", there, status=4, says="AWS_ACCESS_KEY_ID")
        aws = pathlib.Path(self.env["HOME"]) / ".aws"
        aws.mkdir()
        credentials = aws / "credentials"
        credentials.write_text(f"[lab]\naws_access_key_id = {self.server.access_key}\naws_secret_access_key = {self.server.secret_key}\n")
        credentials.chmod(0o600)
        (self.project / "overcap.yaml").write_text("stores:\n  lab: {at: 's3://store-tests/lab', profile: lab}\n")
        (self.project / "x").write_bytes(b"1")
        self.ok("store", "cp", "x", "lab:")
        self.assertEqual(self.ok("store", "ls", "lab").out, "x\n")
        self.assertEqual(self.ok("store", "check", "lab", "--json").json()["keys"], "profile 'lab' of ~/.aws")
        storage = self.project / "storage.json"
        storage.write_text(f'{{"access_key": "{self.server.access_key}", "secret_key": "{self.server.secret_key}"}}')
        storage.chmod(0o600)
        (self.project / "overcap.yaml").write_text(f"stores:\n  lab: {{at: 's3://store-tests/lab', credentials: {storage}}}\n")
        self.assertEqual(self.ok("store", "ls", "lab").out, "x\n")
        self.assertEqual(self.ok("store", "check", "lab", "--json").json()["keys"], str(storage))
        credentials.chmod(0o644)
        self.refused("store", "ls", "s3://store-tests", status=4, says="chmod 600")

    def test_what_is_wrong_is_said_in_a_line_without_the_key(self):
        secret = "wrongSECRETWORDwrong"
        done = self.refused("store", "ls", "s3://store-tests", status=4, env={"AWS_SECRET_ACCESS_KEY": secret})
        self.assertNotIn(secret, done.err)
        done = self.refused("store", "check", "s3://store-tests", status=4, says="keys: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                            env={"AWS_SECRET_ACCESS_KEY": secret})
        self.assertNotIn(secret, done.err)
        self.refused("store", "ls", "s3://no-such-bucket-here", status=3, says="no-such-bucket-here")
        (self.project / "x").write_bytes(b"1")
        self.refused("store", "cp", "x", "s3://no-such-bucket-here/y", status=3, says=["no bucket 'no-such-bucket-here'", "hint: look at its name"])
        self.refused("store", "ls", "s3://store-tests/no/such/prefix", status=3)
        self.refused("store", "ls", "s3://store-tests", status=5, env={"AWS_ENDPOINT_URL": "http://127.0.0.1:9"})

    def test_keys_are_in_no_file_and_no_command_line(self):
        make_tree(self.project / "from", large=30 * MIB)
        process = self.start("store", "cp", "from", self.here("leak"), "--json")
        seen = b""
        while process.poll() is None:
            for pid in self.processes():
                try:
                    seen += pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                except OSError:
                    pass
        done = self.finish(process)
        self.assertEqual(done.status, 0, str(done))
        secret = self.server.secret_key.encode()
        self.assertNotIn(secret, seen + done.raw_out + done.raw_err)
        folder = self.root / "space"
        self.ok("workspace", "create", "w", "--at", str(folder), "--store", self.here("repository"))
        for path in self.root.rglob("*"):
            if path.is_file():
                self.assertNotIn(secret, path.read_bytes(), path)

    def test_from_store_to_store(self):
        files = make_tree(self.project / "from")
        self.ok("store", "cp", "from", self.here("a"))
        self.ok("store", "cp", self.here("a"), self.here("b"))
        self.ok("store", "cp", self.here("b"), "back")
        self.assertEqual(tree(self.project / "back"), files)


class BetweenServices(StoreRig):
    def test_buckets_of_two_services_may_have_the_same_name(self):
        entries = ""
        for name, kind in (("ceph", Ceph), ("swift", Swift)):
            server = kind()
            self.addCleanup(server.close)
            server.calls.make_bucket("store-tests")
            keys = self.root / f"{name}.yaml"
            keys.write_text(f"access_key: '{server.access_key}'\nsecret_key: '{server.secret_key}'\nregion: {server.region}\n")
            keys.chmod(0o600)
            entries += f"  {name}: {{at: 's3://store-tests/x', endpoint: '{server.endpoint}', credentials: {keys}}}\n"
            entries += f"  {name}-again: {{at: 's3://store-tests', endpoint: '{server.endpoint}', credentials: {keys}}}\n"
        self.write("overcap.yaml", "stores:\n" + entries)
        files = make_tree(self.project / "from")
        self.ok("store", "cp", "from", "ceph")
        self.assertEqual(self.done("store", "sync", "ceph", "swift", "--delete")["copied"], len(files))
        self.assertEqual(self.done("store", "check", "ceph", "swift")["same"], len(files))
        self.ok("store", "cp", "swift:large", "ceph:large", "--force")
        self.ok("store", "cp", "swift", "back")
        self.assertEqual(tree(self.project / "back"), files)
        for words in (("cp", "ceph", "ceph-again:x"), ("sync", "ceph-again", "ceph:sub"), ("cp", "ceph:large", "ceph-again:x/large")):
            self.refused("store", *words, status=2)


if __name__ == "__main__":
    main()
