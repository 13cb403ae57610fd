# SPDX-License-Identifier: Apache-2.0
"""A Slurm whose accounts, QOS and caps come from `overcap policy apply`, and whose partitions are the lines that it prints.

    with PolicyCluster(nodes=2, gpus=2) as slurm: ...

It has slurmdbd and nothing in it, and of partitions only `boot`. slurm.conf includes etc/overcap-policy.conf, which is empty at first.
"""
import dataclasses

from rigs.slurm_accounts import Accounting
from rigs.slurm_rig import SlurmCluster

BOOT = {"boot": "MaxTime=1:00:00 PriorityTier=1 RootOnly=YES"}


@dataclasses.dataclass
class NoAccounts(Accounting):
    """The database alone."""

    def qos_of(self, partitions):
        return {}

    def add_qos_names(self, cluster):
        pass

    def add_accounts(self, cluster):
        pass


class PolicyCluster(SlurmCluster):
    def __init__(self, **more):
        super().__init__(**{"preemption": "qos", "partitions": BOOT, "accounting": NoAccounts(), **more})

    @property
    def policy_conf(self):
        return self.folder / "etc" / "overcap-policy.conf"

    def take_lines(self, lines):
        """Puts lines into slurm.conf as an administrator does: in place of those for the same setting or partition."""
        kept = {self.subject(line): line for line in [*self.policy_conf.read_text().splitlines(), *lines] if line[:1] not in ("", "#")}
        self.policy_conf.write_text("\n".join(kept.values()) + "\n")
        self.must(["scontrol", "reconfigure"])

    @staticmethod
    def subject(line):
        return line.split()[0] if line.startswith("PartitionName=") else line.split("=")[0]

    def write_config(self, settings):
        super().write_config(settings)
        self.policy_conf.write_text("# nothing yet\n")
        with open(self.folder / "etc" / "slurm.conf", "a", encoding="utf-8") as file:
            file.write(f"Include {self.policy_conf}\n")
