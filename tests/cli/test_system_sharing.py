# SPDX-License-Identifier: Apache-2.0
"""Labs share a machine through the engine of all its users: what alice's lab leaves idle bob may borrow, and he loses not a
step when she comes back."""
import json
import shutil
import time
import unittest

from overcap_rig import REPOSITORY, main, shell
from rigs.counting_job import COUNTING_JOB
from system_rig import SystemRig

PYTHON = shutil.which("python3", path="/usr/bin:/bin")  # one that every user may run

# It also says who it runs as.
RESUME = COUNTING_JOB.replace('f"attempt', 'f"uid {os.getuid()} attempt')


@unittest.skipUnless(PYTHON, "NOT TESTED: there is no python3 in /usr/bin that other users could run")
class Sharing(SystemRig):
    policy = """nodes:
  here: {{gpus: a40:4, cpus: 8}}
labs:
  vision: 2 {alice}
  language: 2 {bob}
partitions:
  short: {{max_time: 1h}}
  overcap: {{grace: 30s, quantum: 0}}
"""

    def said(self, who, job, attempt=1):
        path = self.area(who) / "jobs" / job / f"attempt-{attempt}" / "rank-0.log"
        return path.read_text().splitlines() if path.exists() else []

    def labs(self):
        labs = json.loads(self.ok("usage", "-l", "--json").out)["labs"]
        self.assertEqual([lab["gpu_cap"] for lab in labs], [2, 2])
        return {lab["name"]: (lab["gpus"], lab["overcap_gpus"]) for lab in labs}

    def test_an_overcap_job_gives_way_to_another_labs_user_and_goes_on_at_its_step(self):
        shutil.copytree(REPOSITORY / "python", self.root / "python", ignore=shutil.ignore_patterns("__pycache__"))
        self.be("bob")
        self.env.update(PYTHONPATH=str(self.root / "python"), PYTHONDONTWRITEBYTECODE="1", FACTS=str(self.facts))
        self.write("resume.py", RESUME, base=self.here)
        borrowers = [self.submit("-p", "overcap", "-n", "2", "--one-rank-per-node", "--", PYTHON, "-S", "resume.py") for _ in range(2)]
        for job in borrowers:
            self.until(lambda job=job: self.said("bob", job), f"{job} to count")
        self.assertEqual(self.labs(), {"language": (0, 4), "vision": (0, 0)})
        self.be("alice")
        self.assertEqual(self.labs(), {"language": (0, 4), "vision": (0, 0)}, "whoever asks, what is borrowed is not within a cap")
        self.assertIn(f"user       {self.names['bob']}\nlab        language\npartition  overcap\n", self.ok("query", borrowers[0]).out)
        self.refused("submit", "-p", "short", "--account", "language", "true", status=4, says="not in lab 'language'")
        self.refused("submit", "-p", "fast", "true", status=2, says="no partition 'fast'")
        began = time.monotonic()
        owner = self.submit("-p", "short", "-n", "2", "--one-rank-per-node", *shell(f"id -un; {self.gate()}"))
        self.until_state(owner, "running")
        self.assertLess(time.monotonic() - began, 30, "the warning is enough")
        self.be("bob")
        gone = [job for job in borrowers if self.job(job)["state"] == "queued"]
        self.assertEqual(len(gone), 1, "never more than needed")
        self.assertEqual((self.job(gone[0])["preemptions"], self.job(gone[0])["preempted_by"]), (1, owner))
        self.refused("abort", owner, status=4, says="belongs to user")
        self.open_gate()
        self.until(lambda: self.said("bob", gone[0], 2), "the victim to go on")
        (self.facts / "finish").touch()
        for job in borrowers:
            self.assertEqual(self.ended(job)["state"], "succeeded", job)
        first, second = self.said("bob", gone[0]), self.said("bob", gone[0], 2)
        uid = self.uid["bob"]
        self.assertEqual(first[0], f"uid {uid} attempt 1 begins at step 0")
        saved = int(first[1].removeprefix("saved step "))
        self.assertEqual(second[0], f"uid {uid} attempt 2 begins at step {saved}", "not a step is lost or done twice")
        self.assertGreaterEqual(int(second[1].removeprefix("done at step ")), saved)
        self.be("alice")
        self.ended(owner)
        self.assertEqual(self.said("alice", owner), [self.names["alice"]])


if __name__ == "__main__":
    main()
