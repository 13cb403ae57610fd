# SPDX-License-Identifier: Apache-2.0
"""`overcap store lock` on S3 (Ceph; Swift refuses), Azure (Azurite) and over ssh: crowds, killed, stopped and cut-off holders."""
from lock_rig import CutOff, LockRig, LocksHold
from store_rig import StoreRig, main
from rigs.azurite_rig import Azurite
from rigs.ceph_rig import Ceph
from rigs.fault_proxy import FaultProxy
from rigs.hosts_rig import SshHosts
from rigs.swift_rig import Swift

GROUP = "stores"
DEADLINE_SECONDS = 580


class Proxied(CutOff):
    def through(self):
        self.proxy = FaultProxy(self.server.port, seed=1, fates=(("lives", 1),))
        self.addCleanup(lambda: self.proxy and self.proxy.close())
        return {name: value.replace(f":{self.server.port}", f":{self.proxy.port}") for name, value in self.server.environment.items()}

    def cut(self):
        self.proxy.close()
        self.proxy = None


class OnCeph(LocksHold, Proxied, LockRig):
    rounds = 6

    @classmethod
    def setUpClass(cls):
        cls.server = Ceph()
        cls.addClassCleanup(cls.server.close)
        cls.server.calls.make_bucket("lock-tests")

    def setUp(self):
        super().setUp()
        self.env.update(self.server.environment)

    def here(self, name):
        return f"s3://lock-tests/{self.id().rpartition('.')[2]}/{name}"


class OnAzurite(LocksHold, Proxied, LockRig):
    rounds = 6

    @classmethod
    def setUpClass(cls):
        cls.server = Azurite()
        cls.addClassCleanup(cls.server.close)
        cls.server.make_container("lock-tests")

    def setUp(self):
        super().setUp()
        self.env.update(self.server.environment)

    def here(self, name):
        return f"az://{self.server.account}/lock-tests/{self.id().rpartition('.')[2]}/{name}"

    def test_somebody_elses_lease_is_respected(self):
        where = self.here("theirs")
        self.ok("store", "lock", where, "--", "true")
        self.server.lease("lock-tests", f"{self.id().rpartition('.')[2]}/theirs.lock/lease")
        self.refused("store", "lock", where, "--no-wait", "--", "true", status=6, says="is held by")
        # What a lock guards is fenced: nobody writes the blob without the lease.
        self.write("x", "1")
        self.refused("store", "cp", "x", where + ".lock/lease", status=None, says="somebody holds a lock on it")

    def test_with_a_shared_access_signature(self):
        del self.env["AZURE_STORAGE_CONNECTION_STRING"]
        storage = self.project / "storage.yaml"
        name = self.id().rpartition(".")[2]
        for permissions, status in (("rcw", 0), ("r", 4)):
            sas = self.server.sas("lock-tests", permissions)
            storage.write_text(f"account_name: {self.server.account}\ncontainer_name: lock-tests\nsas_token: '{sas}'\n")
            storage.chmod(0o600)
            (self.project / "overcap.yaml").write_text(
                f"stores:\n  locks: {{at: 'az://{self.server.account}/lock-tests/{name}', endpoint: '{self.server.endpoint}', credentials: {storage}}}\n")
            done = self.overcap("store", "lock", f"locks:{permissions}", "--", "true")
            self.assertEqual(done.status, status, str(done))
            self.assertNotIn(sas.rpartition("sig=")[2], done.err)

    def test_what_is_no_lock_is_not_replaced(self):
        where = self.here("other")
        self.write("x", "precious")
        self.ok("store", "cp", "x", where + ".lock/lease")
        self.refused("store", "lock", where, "--", "true", status=7, says=["is damaged", "overcap store rm az://"])
        self.ok("store", "cp", where + ".lock/lease", "back")
        self.assertEqual((self.project / "back").read_text(), "precious")


class OverSsh(LocksHold, CutOff, LockRig):
    rounds = 4

    @classmethod
    def setUpClass(cls):
        cls.hosts = SshHosts(2)
        cls.addClassCleanup(cls.hosts.close)

    def setUp(self):
        super().setUp()
        self.env["OVERCAP_SSH"] = self.hosts.ssh_program

    def here(self, name):
        return f"ssh://{self.hosts.names[1]}{self.root}/far/{name}"

    def other_way(self, where):
        """Through another host, which sees the same folder."""
        return where.replace(self.hosts.names[1], self.hosts.names[0])

    def through(self):
        return {}

    def cut(self):
        self.hosts.cut(self.hosts.names[0])
        self.addCleanup(lambda: self.hosts.heal(self.hosts.names[0]))


class OnSwift(StoreRig):
    @classmethod
    def setUpClass(cls):
        cls.server = Swift()
        cls.addClassCleanup(cls.server.close)
        cls.server.calls.make_bucket("lock-tests")

    def test_locks_are_refused_where_two_could_have_them(self):
        self.env.update(self.server.environment)
        self.refused("store", "lock", "s3://lock-tests/x", "--", "true", status=2,
                     says=["cannot keep locks: its service has no conditional put", "use another store"])


if __name__ == "__main__":
    main()
