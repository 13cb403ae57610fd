# SPDX-License-Identifier: Apache-2.0
"""`overcap fanout` of what is in a bucket of a real S3 service (Ceph) and in a container of Azurite: the first nodes pull it, the head does not."""
import json
import pathlib
import random
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from fanout_rig import FED_BY_HEAD, FanoutRig
from overcap_rig import main
from rigs.azurite_rig import Azurite
from rigs.ceph_rig import Ceph
from rigs.relay import Relay

GROUP = "stores"
DEADLINE_SECONDS = 500


class FromStore(FanoutRig):
    """Subclasses give `server`. Hosts reach it through a relay that listens where they can reach this machine, and that counts."""

    def setUp(self):
        super().setUp()
        self.relay = Relay(self.machine_address(), self.server.port)
        self.addCleanup(self.relay.close)
        self.env.update(self.keys())
        self.store = self.location()

    def machine_address(self):
        """By which the hosts reach this machine."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((self.hosts.address("host1"), 9))
            return probe.getsockname()[0]

    def upload(self, files=60, size=20_000, large=30 << 20):
        self.fill(files=files, size=size)
        (self.source / "link").unlink()
        (self.source / "large").write_bytes(random.Random(2).randbytes(large))
        self.sync()

    def sync(self):
        self.ok("store", "sync", "--delete", str(self.source), self.store)
        self.relay.clear()

    def bytes_of_source(self):
        return sum(path.stat().st_size for path in self.source.rglob("*") if path.is_file())

    def brought_from_store(self, **options):
        done, said = self.fanout(source=self.store, **options)
        self.assertEqual(done.status, 0, str(done))
        return said

    def assert_no_secret(self, *texts):
        """Neither keys nor signed URLs are in anything that is left here or on a host."""
        secrets = [self.secret.encode(), b"X-Amz-Signature", b"sig="]
        folders = [self.root, *(self.there(name) for name in self.hosts.names)]
        for folder in folders:
            for path in pathlib.Path(folder).rglob("*"):
                if path.is_file() and not path.is_symlink():
                    content = path.read_bytes()
                    for secret in secrets:
                        self.assertNotIn(secret, content, path)
        for text in texts:
            for secret in secrets:
                self.assertNotIn(secret.decode(), text)


class Pulls:
    def test_the_first_nodes_pull_and_serve_the_others(self):
        self.upload()
        done, said = self.fanout(source=self.store)
        self.assertEqual(done.status, 0, str(done))
        for name in self.hosts.names:
            self.assert_same(name)
        total = self.bytes_of_source()
        self.assertEqual([node["from"] for node in said["nodes"][:2]], ["store", "store"], said)
        self.assertEqual(said["from_store_bytes"], 2 * total, said)
        for node in said["nodes"][2:]:
            self.assertIn(node["from"], ("host1", "host2"))
        self.assertLess(said["from_head_bytes"], total * 0.05, said)
        # What passed this machine's own connections to the store is the listing.
        self.assertLess(self.relay.to_this_machine(), total * 0.02)
        self.assertGreater(self.relay.to_others(), 2 * total)
        self.assertLess(self.relay.to_others(), 2 * total * 1.05)
        self.assert_no_secret(done.out, done.err)

    def test_a_second_run_moves_what_changed(self):
        self.upload(files=200, large=4 << 20)
        self.brought_from_store()
        again = self.brought_from_store()
        self.assertEqual([node["written_files"] for node in again["nodes"]], [0] * 4, again)
        self.assertLess(again["wire_bytes"], self.bytes_of_source() * 4 * 0.02)
        for number in (3, 77):
            (self.source / f"d{number % 10}/f{number}").write_bytes(random.Random(number).randbytes(20_000))
        (self.source / "d1/f11").unlink()
        (self.source / "d2/f12").unlink()
        (self.source / "d2/f12").mkdir()  # a folder where a file was
        (self.source / "d2/f12/x").write_bytes(b"x")
        self.sync()
        changed = self.brought_from_store()
        for name in self.hosts.names:
            self.assert_same(name)
        self.assertLess(changed["wire_bytes"], self.bytes_of_source() * 4 * 0.03, changed)
        # Another host that pulls has it by then, whoever has pulled before.
        other = self.brought_from_store(hosts=["host4", "host3"])
        self.assertEqual(other["from_store_bytes"], 0, other)

    def test_links_in_the_target_are_not_followed(self):
        self.upload(files=20, large=1000)
        outside = self.project / "outside"
        outside.mkdir()
        first = self.project / "first"
        first.mkdir()
        (first / "d1").symlink_to(outside)
        (first / "large").symlink_to(outside / "large")
        self.brought(source=first)
        self.brought_from_store()
        self.assertEqual(list(outside.iterdir()), [])
        for name in self.hosts.names:
            self.assert_same(name)

    def test_an_environment_is_pulled_again_where_paths_were_changed(self):
        self.fill(files=5)
        (self.source / "link").unlink()
        (self.source / "bin").mkdir()
        (self.source / "pyvenv.cfg").write_text(f"home = /usr/bin\ncommand = /usr/bin/python3 -m venv {self.target[:-1]}X\n")
        (self.source / "bin/activate").write_text(f'VIRTUAL_ENV="{self.target[:-1]}X"\nexport VIRTUAL_ENV\n')  # of the same length
        self.sync()
        said = self.brought_from_store()
        self.assertEqual([node["fixed"] for node in said["nodes"]], [2] * 4, said)
        said = self.brought_from_store()
        self.assertEqual([node["fixed"] for node in said["nodes"]], [2] * 4, said)
        for name in self.hosts.names:
            self.assertIn(f'VIRTUAL_ENV="{self.target}"', (self.there(name) / "bin/activate").read_text())


class Trouble:
    def test_a_host_that_is_off_and_one_that_refuses_are_named_and_others_pull(self):
        self.upload(files=20, large=1000)
        self.power_off("host1")
        self.there("host2").write_text("a file where the folder should be")
        self.addCleanup(self.there("host2").unlink, missing_ok=True)
        done, said = self.fanout(source=self.store, deadline=120)
        self.assertEqual((done.status, said["complete"], said["failed"]), (5, 2, 2), str(done))
        self.assertEqual([node["from"] for node in said["nodes"][2:]], ["store", "store"], said)
        for name in ("host3", "host4"):
            self.assert_same(name)

    def test_every_host_has_failed(self):
        self.upload(files=3, large=1000)
        for name in ("host1", "host2"):
            self.there(name).write_text("a file where the folder should be")
            self.addCleanup(self.there(name).unlink, missing_ok=True)
        done, said = self.fanout(source=self.store, hosts=["host1", "host2"])
        self.assertEqual((said["complete"], said["failed"]), (0, 2), str(done))
        self.assertIn("is not a folder", self.node(said, "host2")["error"]["message"])
        self.assertEqual(said["from_store_bytes"], 0)

    def test_a_node_that_dies_while_it_pulls_is_named_and_the_others_are_complete(self):
        self.upload(files=20, large=60 << 20)
        self.relay.slow_down(2 << 20)  # bytes a second, of each connection
        process = self.start("fanout", "--json", self.store, "--to", self.target, "--hosts", self.hosts.hostfile())
        self.until(lambda: self.relay.to_others() > 4 << 20 or process.poll() is not None, "the first bytes", 60)
        self.power_off("host1")
        self.relay.slow_down(0)
        done = self.finish(process, 120)
        said = json.loads(done.out.splitlines()[-1])
        self.assertEqual((done.status, said["complete"]), (5, 3), str(done))
        self.assertIn("host 'host1'", self.node(said, "host1")["error"]["message"])
        for name in ("host2", "host3", "host4"):
            self.assert_same(name)

    def test_nodes_that_have_pulled_and_die_leave_the_rest_to_the_head(self):
        self.upload(files=20, large=5 << 20)
        self.brought_from_store(hosts=["host1", "host2"])
        # Each is begun twice: to pull, then to take part.
        once = f"if [ -e {self.hosts.private_dir}/begun ]; then exit 1; fi; touch {self.hosts.private_dir}/begun"
        self.programs({"host1": once, "host2": once, "host3": "", "host4": ""})
        for name in ("host1", "host2"):
            self.addCleanup((pathlib.Path(self.hosts.private_path(name)) / "begun").unlink, missing_ok=True)
        done, said = self.fanout(source=self.store, deadline=120)
        self.assertEqual((done.status, said["complete"]), (5, 2), str(done))
        for name in ("host3", "host4"):
            self.assert_same(name)
        self.assertGreater(said["from_head_bytes"], 5 << 20)

    def test_an_object_that_changes_meanwhile(self):
        self.upload(files=20, large=96 << 20)
        self.relay.slow_down(1 << 20)  # not all of its parts are asked for at once
        process = self.start("fanout", "--json", self.store, "--to", self.target, "--hosts", self.hosts.hostfile())
        self.until(lambda: self.relay.to_others() > 6 << 20 or process.poll() is not None, "the first bytes", 60)
        (self.source / "large").write_bytes(random.Random(9).randbytes(96 << 20))
        direct = {"AWS_ENDPOINT_URL": self.server.endpoint} if "AWS_ENDPOINT_URL" in self.env else self.server.environment
        self.ok("store", "cp", str(self.source / "large"), self.store + "/", env=direct)
        self.relay.slow_down(0)
        done = self.finish(process, 120)
        self.assertEqual(done.status, 0, str(done))
        for name in self.hosts.names:
            self.assert_same(name)

    def test_nodes_that_cannot_reach_the_store_get_it_from_here(self):
        self.upload(files=20, large=1 << 20)
        self.relay.only_this_machine()
        done, said = self.fanout(source=self.store, deadline=150)
        self.assertEqual(done.status, 0, str(done))
        self.assertIn("this machine brings", done.err)
        self.assertEqual(said["from_store_bytes"], 0)
        self.assertIn([node["from"] for node in said["nodes"]].count("head"), FED_BY_HEAD, said)
        for name in self.hosts.names:
            self.assert_same(name)
        self.assert_no_secret(done.out, done.err)


class OnCeph(Pulls, Trouble, FromStore):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Ceph()
        cls.addClassCleanup(cls.server.close)
        cls.server.calls.make_bucket("fanout-tests")
        cls.secret = cls.server.secret_key

    def keys(self):
        return {**self.server.environment, "AWS_ENDPOINT_URL": self.relay.endpoint}

    def location(self):
        return f"s3://fanout-tests/{self.own_folder}"

    def test_a_service_that_is_busy_is_asked_again(self):
        self.upload(files=30, large=1 << 20)
        self.relay.refuse(20)  # answers of 503
        said = self.brought_from_store()
        self.assertEqual(said["from_store_bytes"], 2 * self.bytes_of_source())
        self.assertEqual(self.relay.refused, 20)
        for name in self.hosts.names:
            self.assert_same(name)


class OnAzure(Pulls, FromStore):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Azurite()
        cls.addClassCleanup(cls.server.close)
        cls.server.make_container("fanout-tests")
        cls.secret = cls.server.key

    def keys(self):
        text = self.server.environment["AZURE_STORAGE_CONNECTION_STRING"]
        return {"AZURE_STORAGE_CONNECTION_STRING": text.replace(f"http://127.0.0.1:{self.server.port}", self.relay.endpoint)}

    def location(self):
        return f"az://{self.server.account}/fanout-tests/{self.own_folder.replace('_', '-')}"

    def test_without_the_accounts_key_the_head_brings_it(self):
        self.upload(files=10, large=1000)
        keys = self.root / "storage.yaml"
        keys.write_text(f"account_name: {self.server.account}\ncontainer_name: fanout-tests\nsas_token: '{self.server.sas('fanout-tests')}'\n")
        keys.chmod(0o600)
        (self.project / "overcap.yaml").write_text(
            f"stores:\n  blobs: {{at: '{self.store}', endpoint: '{self.relay.endpoint}/{self.server.account}', credentials: '{keys}'}}\n")
        done, said = self.fanout(source="blobs")
        self.assertEqual(done.status, 0, str(done))
        self.assertIn("this machine brings", done.err)
        self.assertEqual(said["from_store_bytes"], 0)
        for name in self.hosts.names:
            self.assert_same(name)


if __name__ == "__main__":
    main()
