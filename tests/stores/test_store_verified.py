# SPDX-License-Identifier: Apache-2.0
"""What is read from real services is compared with their checksums: a byte that changes on the way is found, wherever it is."""
import random
import re

from store_rig import MIB, StoreRig, main, tree
from rigs.azurite_rig import Azurite
from rigs.ceph_rig import Ceph
from rigs.fault_proxy import FLIPS, FaultProxy
from rigs.swift_rig import Swift

GROUP = "stores"
DEADLINE_SECONDS = 500
BUCKET = "verified"
CONTENT = random.Random(3).randbytes(21 * MIB + 1)


class Verified:
    """Classes give `there` (a location), `through(port)` (variables for the way through a proxy)."""

    def found(self, name, heals=False):
        """Copies the object down on a way that changes a byte, then on a good one; by what it was verified. What can be asked for once
        more at once, `heals`."""
        with FaultProxy(self.server.port, seed=1, fates=FLIPS) as proxy:
            done = self.overcap("store", "cp", f"{self.there}/{name}", f"{name}.bad", env=self.through(proxy.port))
            self.assertEqual(proxy.counts["flipped"], 1)
        if heals:
            self.assertEqual(done.status, 0, str(done))
            self.assertEqual((self.project / f"{name}.bad").read_bytes(), self.content)
            (self.project / f"{name}.bad").unlink()
        else:
            self.assertEqual(done.status, 7, str(done))
            self.assertIn("another checksum", done.err)
        self.assertEqual(sorted(tree(self.project)), [], "something half-written stays")
        done = self.done("store", "cp", f"{self.there}/{name}", name)
        self.assertEqual((self.project / name).read_bytes(), self.content)
        self.assertEqual(done["unverified"], 0)
        (self.project / name).unlink()
        return done["verified"]

    content = CONTENT

    def test_small_ones(self):
        self.content = CONTENT[:5 * MIB]
        (self.project / "small").write_bytes(self.content)
        self.ok("store", "cp", "small", self.there + "/")
        (self.project / "small").unlink()
        self.assertEqual(self.found("small", heals=True), {"md5": 1})

    def test_own_uploads(self):
        (self.project / "own").write_bytes(CONTENT)
        self.assertEqual(self.done("store", "cp", "own", self.there + "/")["verified"], {"service": 1})
        (self.project / "own").unlink()
        self.assertEqual(self.found("own"), {"md5_of_parts": 1})

    def test_a_killed_download_is_verified_as_a_whole(self):
        (self.project / "own").write_bytes(CONTENT)
        self.ok("store", "cp", "own", self.there + "/")
        self.kill_copies(["store", "cp", self.there + "/own", "back"], 6)
        done = self.done("store", "cp", self.there + "/own", "back")
        self.assertEqual((done["copied"] + done["same"], done["unverified"]), (1, 0))
        self.assertEqual((self.project / "back").read_bytes(), CONTENT)


class S3Verified(Verified):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.Server()
        cls.addClassCleanup(cls.server.close)
        cls.server.calls.make_bucket(BUCKET)

    def setUp(self):
        super().setUp()
        self.prefix = self.id().rpartition(".")[2]
        self.there = f"s3://{BUCKET}/{self.prefix}"
        self.env.update(self.server.environment)

    def through(self, port):
        return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}

    def put_in_parts(self, name, size, headers=None):
        calls, path = self.server.calls, f"/{BUCKET}/{self.prefix}/{name}"
        begun = calls.must("POST", path, query={"uploads": ""}, headers=headers or {})
        upload = re.search(b"<UploadId>(.*?)</UploadId>", begun).group(1).decode()
        listed = ""
        for number, at in enumerate(range(0, len(CONTENT), size), 1):
            status, _, head = calls.request("PUT", path, query={"partNumber": str(number), "uploadId": upload}, body=CONTENT[at:at + size])
            self.assertEqual(status, 200)
            etag = {key.lower(): value for key, value in dict(head).items()}["etag"].strip('"')
            listed += f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
        calls.must("POST", path, query={"uploadId": upload}, body=f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode())

    def test_what_others_put_at_once(self):
        self.server.calls.must("PUT", f"/{BUCKET}/{self.prefix}/whole", body=CONTENT)
        self.assertEqual(self.found("whole"), {"md5": 1})

    def test_parts_of_the_usual_size_that_others_uploaded(self):
        self.put_in_parts("usual", 5 * MIB)
        done = self.done("store", "cp", f"{self.there}/usual", "usual")
        self.assertEqual((done["verified"], done["unverified"]), ({"md5_of_parts": 1}, 0))
        self.assertEqual((self.project / "usual").read_bytes(), CONTENT)

    def test_parts_of_a_size_that_nobody_guesses(self):
        """Told as what it is where the service does not tell parts apart; else it is asked."""
        self.put_in_parts("odd", 6_000_001)
        done = self.overcap("store", "cp", f"{self.there}/odd", "odd", "--json")
        self.assertEqual(done.status, 0, str(done))
        last = [__import__("json").loads(line) for line in done.out.splitlines()][-1]
        self.assertIn((last["verified"], last["unverified"]), (({"md5_of_parts": 1}, 0), ({}, 1)))
        self.assertEqual((self.project / "odd").read_bytes(), CONTENT)

    def test_from_store_to_store(self):
        self.put_in_parts("usual", 5 * MIB)
        done = self.done("store", "cp", f"{self.there}/usual", f"{self.there}/copies/usual")
        self.assertEqual(done["verified"], {"md5_of_parts": 1})
        self.assertEqual(self.done("store", "check", f"{self.there}/copies", f"{self.there}/copies")["same"], 1)


class OnCeph(S3Verified, StoreRig):
    Server = Ceph


class OnSwift(S3Verified, StoreRig):
    Server = Swift


class OnAzurite(Verified, StoreRig):
    @classmethod
    def setUpClass(cls):
        cls.server = Azurite()
        cls.addClassCleanup(cls.server.close)
        cls.server.make_container(BUCKET)

    def setUp(self):
        super().setUp()
        self.prefix = self.id().rpartition(".")[2]
        self.there = f"az://{self.server.account}/{BUCKET}/{self.prefix}"
        self.env.update(self.server.environment)

    def through(self, port):
        return {name: text.replace(f":{self.server.port}/", f":{port}/") for name, text in self.server.environment.items()}

    def test_blobs_without_any_checksum(self):
        (self.project / "bare").write_bytes(CONTENT)
        self.ok("store", "cp", "bare", self.there + "/")
        (self.project / "bare").unlink()
        self.assertEqual(self.server.put(f"{BUCKET}/{self.prefix}/bare", {"comp": "metadata"}), 200)
        self.assertEqual(self.found("bare", heals=True), {"md5_of_ranges": 1})


if __name__ == "__main__":
    main()
