# SPDX-License-Identifier: Apache-2.0
"""Accounts, caps and history for a test cluster: MariaDB and slurmdbd in its folder, on its own loopback.

    SlurmCluster(accounting=Accounting(labs={"lab-a": 4, "lab-b": 8}))

LABS        an account each, whose jobs together have at most so many GPUs (GrpTRES; None: no cap); above it jobs
            wait with AssocGrpGRES. A further account, overcap, has no cap.
PARTITIONS  each has a QOS p_NAME with its limits, `partition_limits`. That of the overcap partitions has a GrpTRES so
            large that it never holds, and it replaces the account's: what runs there does not count against the lab.
PREEMPTION  by partition, or with SlurmCluster(preemption="qos") by QOS: jobs of the QOS labq, the labs' own, take
            GPUs from jobs of the QOS over (that of the account overcap; labs may ask for it: --qos=over).
MEMBERS     {lab: users}; None: everybody in every lab. Everybody is in overcap; who runs the tests is in all.
"""
import dataclasses
import pathlib
import unittest

from rigs.machines import need, wait_until

DATABASE_PORT, SLURMDBD_PORT = 3306, 6819
SYSTEM_TABLES = pathlib.Path("/usr/share/mysql/mysql_system_tables.sql")
NO_LIMIT = "GrpTRES=gres/gpu=1000000"
PARTITION_LIMITS = {
    "debug": "MaxTRESPerUser=gres/gpu=2", "short": "MaxTRESPerUser=gres/gpu=8", "long": "MaxTRESPerUser=gres/gpu=6",
    "user-overcap": NO_LIMIT, "overcap": NO_LIMIT,
}


@dataclasses.dataclass
class Accounting:
    labs: dict = dataclasses.field(default_factory=lambda: {"lab-a": 4, "lab-b": 8})
    members: dict = None
    partition_limits: dict = dataclasses.field(default_factory=lambda: dict(PARTITION_LIMITS))
    grace: int = 0  # seconds, of the QOS over; Slurm looks every 30 s only
    more: tuple = ()  # lines for sacctmgr

    def __post_init__(self):
        need("mariadbd", "slurmdbd", "sacctmgr")
        if not SYSTEM_TABLES.exists():
            raise unittest.SkipTest(f"NOT TESTED: no {SYSTEM_TABLES}")

    # ---- what it adds to slurm.conf

    def qos_of(self, partitions):
        return {name: f"p_{name}" for name in partitions if name in self.partition_limits}

    def settings(self, at, head, gpu_types):
        kinds = ["gres/gpu", *(f"gres/gpu:{kind}" for kind in gpu_types)]
        return {
            "AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageHost": head,
            "AccountingStoragePort": SLURMDBD_PORT, "AccountingStoragePass": f"{at}/munge.sock",
            "AccountingStorageTRES": ",".join(kinds), "AccountingStorageEnforce": "associations,limits,qos",
            "JobAcctGatherType": "jobacct_gather/linux", "PriorityType": "priority/multifactor",
            "PriorityWeightQOS": 1000}

    # ---- how it comes up, in this order

    def start_mariadb(self, cluster):
        """First of all, so that it starts beside the rest. An empty folder does: grants are off, and of the system
        tables slurmdbd needs one, for its stored procedure. In memory, because making tables syncs a lot."""
        at = cluster.folder
        (at / "db").mkdir()
        cluster.machines.inside_switch(["mount", "-t", "tmpfs", "tmpfs", f"{at}/db"])
        (at / "etc" / "init.sql").write_text(system_tables())
        self.quick_acknowledgements(cluster)
        cluster.daemon(
            [cluster.program("mariadbd"), "--no-defaults", f"--user={cluster.owner}", "--basedir=/usr",
             f"--datadir={at}/db", f"--socket={at}/my.sock", f"--pid-file={at}/mariadbd.pid",
             f"--init-file={at}/etc/init.sql", f"--port={DATABASE_PORT}", "--bind-address=127.0.0.1",
             "--skip-grant-tables", "--skip-networking=0", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0",
             "--innodb-log-file-size=8M", "--innodb-buffer-pool-size=64M", "--skip-innodb-doublewrite"], "mariadbd")

    def quick_acknowledgements(self, cluster):
        """slurmdbd's protocol writes twice per message: 2 x 40 ms for each call, were it not for this."""
        net = cluster.machines.net
        cluster.machines.lay([f"route replace local {net}.254 dev br0 table local proto kernel scope host "
                              f"src {net}.254 quickack 1"])

    def start_slurmdbd(self, cluster):
        wait_until(lambda: cluster.listens(DATABASE_PORT), "mariadbd to listen")
        at, path = cluster.folder, cluster.folder / "etc" / "slurmdbd.conf"
        path.touch(mode=0o600)
        path.write_text("\n".join([
            "AuthType=auth/munge", f"AuthInfo=socket={at}/munge.sock", "DbdHost=head",
            f"DbdAddr={cluster.head_address}", f"DbdPort={SLURMDBD_PORT}", f"SlurmUser={cluster.owner}",
            f"PidFile={at}/slurmdbd.pid", f"LogFile={at}/log/slurmdbd.log", "StorageType=accounting_storage/mysql",
            "StorageHost=127.0.0.1", f"StoragePort={DATABASE_PORT}", "StorageUser=slurm", "StoragePass=x",
            "StorageLoc=slurm_acct_db", *([f"PluginDir={cluster.root}/plugins"] if cluster.root else [])]) + "\n")
        cluster.daemon([cluster.program("slurmdbd"), "-D"], "slurmdbd")
        wait_until(lambda: cluster.listens(SLURMDBD_PORT), "slurmdbd to listen")

    def add_qos_names(self, cluster):
        """A partition's QOS must exist before slurmctld starts, limits on GPUs can be set only after it has."""
        names = [*self.qos_of(cluster.partitions).values(), "over", "labq"]
        cluster.must(["sacctmgr", "-i", "add", "qos", ",".join(names)])

    def add_accounts(self, cluster):
        """When slurmctld listens: what slurmdbd tells it before that is lost, and a limit only looks as if it held."""
        # A new slurmctld may register the cluster and its kinds of resources some seconds after it listens.
        wait_until(lambda: "gres|gpu" in cluster.run(["sacctmgr", "-nP", "show", "tres", "format=type,name"]).stdout,
                   "slurmdbd to know the cluster", pause=0.1)
        said = cluster.must(["sacctmgr", "-i"], input="\n".join(self.lines(cluster)) + "\n")
        if any(word in said for word in ("rror", "Problem", "Unknown", "Bad ", "Nothing")):
            raise RuntimeError(f"sacctmgr did not take the accounts: {said}")
        wait_until(lambda: self.known(cluster), "slurmctld to know the accounts", pause=0.02)

    def lines(self, cluster):
        lines = [f"modify qos p_{name} set {limits}" for name, limits in self.partition_limits.items()
                 if name in cluster.partitions]
        lines.append(f"modify qos over set Priority=1 PreemptMode=requeue GraceTime={self.grace}")
        lines.append("modify qos labq set Priority=100 Preempt=over")
        for lab, cap in self.labs.items():
            limit = "" if cap is None else f"GrpTRES=gres/gpu={cap} "
            lines.append(f"add account {lab} Cluster=lab {limit}QOS=labq,over DefaultQOS=labq")
        lines.append("add account overcap Cluster=lab QOS=over DefaultQOS=over")
        for user in [cluster.owner, *cluster.users]:
            accounts = [lab for lab in self.labs if self.is_member(user, lab, cluster.owner)] + ["overcap"]
            lines.append(f"add user {user} Account={','.join(accounts)} Cluster=lab DefaultAccount={accounts[0]}")
        return lines + list(self.more)

    def is_member(self, user, lab, owner):
        return self.members is None or user == owner or user in self.members.get(lab, ())

    def known(self, cluster):
        said = cluster.run(["scontrol", "show", "assoc_mgr", "flags=assoc"]).stdout
        wanted = [*(f"Account={lab} " for lab in self.labs), "Account=overcap "]
        people = [f"UserName={user}(" for user in [cluster.owner, *cluster.users]]
        return all(word in said for word in wanted + people)


def system_tables():
    for line in SYSTEM_TABLES.read_text().splitlines():
        if line.startswith("CREATE TABLE IF NOT EXISTS proc ("):
            return f"create database if not exists mysql;\nuse mysql;\n{line}\n"
    raise unittest.SkipTest(f"NOT TESTED: {SYSTEM_TABLES} has no table 'proc'")
