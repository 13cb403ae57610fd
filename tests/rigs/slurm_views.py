# SPDX-License-Identifier: Apache-2.0
"""What tests ask a cluster about its jobs, and about the calls that reached its controller. A part of SlurmCluster."""
import dataclasses
import re

from rigs.machines import wait_until

SACCT_FIELDS = ("JobID", "State", "ExitCode", "Account", "User", "Partition", "AllocTRES")
OWN_CALL = "REQUEST_STATS_INFO"  # what sdiag sends
READ = re.compile(r"REQUEST_\w*INFO(_SINGLE)?|REQUEST_PRIORITY_FACTORS")
CONNECTING = ("SLURM_PERSIST_INIT", "DBD_FINI")  # all that slurmdbd counts of one who asks for its counts


@dataclasses.dataclass
class RpcCounts:
    """Calls since the daemon started, by message type and by user. Those that asked for the counts are left out."""
    types: dict
    users: dict

    def since(self, earlier):
        """What came after another count: only what grew."""
        return RpcCounts(grown(earlier.types, self.types), grown(earlier.users, self.users))

    def reads(self):
        """Only the types with which clients ask for something, not what nodes and the database report by themselves."""
        return {name: count for name, count in self.types.items() if READ.fullmatch(name)}


def grown(before, after):
    more = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in more.items() if count}


def parse_rpc_counts(text, own_user):
    """text: of sdiag or `sacctmgr show stats`; own_user: who alone asks for counts."""
    _, _, rest = text.partition("statistics by message type")
    by_type, _, by_user = rest.partition("statistics by user")
    by_user = by_user.partition("\n\n")[0]
    line = re.compile(r"^\s+(\S+)\s+\(\s*\d+\)\s+count:(\d+)", re.M)
    types = {name: int(count) for name, count in line.findall(by_type)}
    users = {name: int(count) for name, count in line.findall(by_user)}
    own = types.pop(OWN_CALL, 0)
    if own:
        users[own_user] -= own
    return RpcCounts(types, {name: count for name, count in users.items() if count})


class SlurmViews:
    def submit(self, *words, user=None, **more):
        """sbatch; gives the job's number."""
        return int(self.must(["sbatch", "--parsable", *words], user=user, **more).partition(";")[0])

    def job_state(self, job):
        return self.must(["squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T"]).strip()

    def job_reason(self, job):
        """Why it waits, as squeue says."""
        return self.must(["squeue", "-h", "-j", str(job), "-o", "%r"]).strip()

    def wait_state(self, job, *states, seconds=90):
        """Until the job is in one of the states; gives it. Every look is a call to the controller."""
        return self.wait_view(job, "%T", states, seconds)

    def wait_reason(self, job, *reasons, seconds=90):
        return self.wait_view(job, "%r", reasons, seconds)

    def wait_view(self, job, form, wanted, seconds):
        seen = []

        def there():
            done = self.run(["squeue", "-h", "-t", "all", "-j", str(job), "-o", form])
            now = done.stdout.strip() or done.stderr.strip()
            if not seen or seen[-1] != now:
                seen.append(now)
            return now if now in wanted else None
        try:
            return wait_until(there, f"job {job} to be {' or '.join(wanted)}", seconds, pause=0.05)
        except TimeoutError as error:
            shown = self.run(["scontrol", "show", "job", str(job)]).stdout
            raise TimeoutError(f"{error}; it was {seen}\n{shown}") from None

    def empty_queue(self, seconds=90):
        """Cancels everybody's jobs and waits until none is left."""
        def empty():
            self.run(["sh", "-c", "squeue -h -o %A | xargs -r scancel"])
            return not self.must(["squeue", "-h"])
        wait_until(empty, "the queue to be empty", seconds, pause=0.05)

    def sacct(self, job, fields=SACCT_FIELDS):
        """What the database has of it: a dict for each attempt, oldest first; steps are left out."""
        names = ",".join(fields)
        said = self.must(["sacct", "-n", "-P", "-D", "-X", "-j", str(job), "-o", names])
        return [dict(zip(fields, line.split("|"), strict=True)) for line in said.splitlines()]

    def wait_sacct(self, job, *states, seconds=90):
        """Until the database has the attempts in these states, in this order; it lags about a second behind."""
        seen = []

        def there():
            seen[:] = self.sacct(job)
            # "CANCELLED by 0"
            return seen if [row["State"].split(" ")[0] for row in seen] == list(states) else None
        try:
            return wait_until(there, f"sacct to show job {job} as {states}", seconds, pause=0.05)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it shows {seen}") from None

    def node_state(self, name):
        """In small letters, as sinfo says: idle, mixed, down*, drained, ..."""
        return self.must(["sinfo", "-h", "-N", "-n", name, "-o", "%T"]).split("\n")[0].strip()

    def wait_node(self, name, *states, seconds=90):
        return wait_until(lambda: (now := self.node_state(name)) in states and now,
                          f"node {name} to be {' or '.join(states)}", seconds, pause=0.05)

    def rpc_counts(self):
        """The calls that reached slurmctld (RpcCounts); take two and compare them with `since`."""
        return parse_rpc_counts(self.must(["sdiag"]), self.owner)

    def database_rpc_counts(self):
        """The calls that reached slurmdbd, by type: those of sacct, of sacctmgr and the controller's own."""
        counts = parse_rpc_counts(self.must(["sacctmgr", "show", "stats"]), self.owner)
        return RpcCounts({name: count for name, count in counts.types.items() if name not in CONNECTING}, {})
