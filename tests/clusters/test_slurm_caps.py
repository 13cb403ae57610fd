# SPDX-License-Identifier: Apache-2.0
"""What holds on a real Slurm to which a policy was applied: caps, limits of debug, who gives way to whom and gets how much, fair
share by lab; nobody loses a step."""
import time

from slurm_jobs_rig import main
from slurm_policy_rig import PATIENCE, SharedRig
from rigs.machines import wait_until

DEADLINE_SECONDS = 500


class RuledRig(SharedRig):
    applied = False

    def setUp(self):
        super().setUp()
        if not type(self).applied:
            done = self.apply()
            self.assertEqual(done.status, 0, str(done))
            type(self).applied = True


class Ruled(RuledRig):
    def test_borrowers_give_back_within_the_grace_time_and_lose_no_step(self):
        jobs = [self.count(lab, "overcap") for lab in ("vision", "vision", "vision", "language")]
        self.wait_counts(jobs)  # vision has three GPUs, and owns two
        self.assertEqual(self.place_of(self.slurm_id(jobs[0])), "vision-overcap overcap")
        self.wait_usage({"vision": {"gpus": 0, "overcap_gpus": 3, "gpu_cap": 2},
                         "language": {"gpus": 0, "overcap_gpus": 1, "gpu_cap": 2}, "vision-lab": {"gpus": None},
                         "vision-overcap": {"gpus": None}})
        began = time.monotonic()
        owners = [self.sbatch("language", 2, seconds=2), self.sbatch("vision", 2, seconds=2)]
        for number in owners:
            self.slurm.wait_state(number, "RUNNING", "COMPLETING", "COMPLETED", seconds=PATIENCE)
        # The grace time is never needed, the warning is enough.
        self.assertLess(time.monotonic() - began, 120)
        self.wait_counts(jobs, attempt=2)
        self.wait_ends_at_the_exact_step(jobs)

    def test_caps_and_the_limits_of_debug_hold(self):
        inside = self.sbatch("language", 2)
        self.slurm.wait_state(inside, "RUNNING")
        above = self.sbatch("language", 1)
        self.slurm.wait_reason(above, "QOSGrpGRES")
        debug = self.sbatch("vision", 1, partition="debug")
        self.slurm.wait_state(debug, "RUNNING")
        second = self.sbatch("vision", 1, partition="debug")
        self.slurm.wait_reason(second, "QOSMaxGRESPerUser")
        long = self.slurm.run(["sbatch", "-A", "vision", "-p", "debug", "-t", "5:00:00", "--wrap", "true"])
        self.assertIn("Requested time limit is invalid", long.stderr)
        # Nobody borrows under the name of what he owns, and the other way round.
        account, qos = "Invalid account or account/partition combination", "Invalid qos specification"
        for words, said in ((["-A", "vision", "-p", "overcap", "--qos=overcap"], qos), (["-A", "vision", "-p", "overcap"], account),
                            (["-A", "vision", "-p", "short", "--qos=overcap"], qos), (["-A", "vision", "-p", "user-overcap"], qos),
                            (["-A", "vision-overcap", "-p", "short"], account),
                            (["-A", "vision-overcap", "-p", "overcap", "--qos=vision"], qos),
                            (["-A", "vision-lab", "-p", "short"], account)):
            refused = self.slurm.run(["sbatch", *words, "--wrap", "true"])
            self.assertIn(said, refused.stderr, words)
        self.wait_usage({"language": {"gpus": 2, "gpu_cap": 2, "capped_gpus": 1}, "vision": {"gpus": 1, "gpu_cap": 2}})

    def test_user_overcap_has_what_is_left_of_the_cap_and_overcap_takes_nothing_from_it(self):
        borrowed = self.sbatch("vision-overcap", 1, partition="overcap")
        inside = self.sbatch("vision", 1)
        for number in (borrowed, inside):
            self.slurm.wait_state(number, "RUNNING")
        left, more = self.yielding("vision"), self.yielding("vision")  # a GPU of the cap, and a GPU of the cluster, are left
        self.slurm.wait_reason(more, "AssocGrpGRES", "None", seconds=PATIENCE)
        self.slurm.wait_state(left, "RUNNING", seconds=PATIENCE)
        self.slurm.wait_reason(more, "AssocGrpGRES", seconds=PATIENCE)
        self.wait_usage({"vision": {"gpus": 2, "overcap_gpus": 1, "gpu_cap": 2, "capped_gpus": 1}})
        self.assertIn("lab 'vision' may have 2 GPUs at a time; 2 are in use", self.ok("why", str(more)).out)
        self.slurm.must(["scancel", str(inside)])
        self.slurm.wait_state(more, "RUNNING", seconds=PATIENCE)
        third = self.yielding("vision")
        self.slurm.wait_reason(third, "AssocGrpGRES", seconds=PATIENCE)
        self.assertEqual(self.slurm.job_state(borrowed), "RUNNING")

    def test_caps_on_types_and_cpus_hold_for_what_yields_and_do_not_lock_labmates_out(self):
        typed = self.yielding("language", "a40:2", "-c", "9")
        self.slurm.wait_state(typed, "RUNNING")
        for words in (("a40:1", "-c", "1"), (1, "-c", "1")):
            waits = self.yielding("language", *words)
            self.slurm.wait_reason(waits, "AssocGrpGRES", seconds=PATIENCE)
            self.slurm.must(["scancel", str(waits)])
        mate = self.sbatch("language", "a40:1", "-c", "16")  # the lab owns 24 CPUs, and 16 are taken
        self.slurm.wait_state(mate, "RUNNING", seconds=PATIENCE)
        self.assertEqual(self.slurm.job_state(typed), "RUNNING", "it starts beside it")
        above = self.sbatch("language", 1, "-c", "16")
        self.slurm.wait_reason(above, "QOSGrpCpuLimit", seconds=PATIENCE)
        self.slurm.must(["scancel", str(typed)])
        cpus = self.yielding("language", 1, "-c", "9")
        self.slurm.wait_reason(cpus, "AssocGrpCpuLimit", seconds=PATIENCE)

    def test_labmates_start_beside_user_overcap_where_there_is_room(self):
        spilled = [self.sbatch("vision", 1, "--requeue", "--qos=vision-user-overcap", partition="short,user-overcap")
                   for _ in range(2)]
        for number in spilled:
            self.slurm.wait_state(number, "RUNNING")
            self.assertIn(self.partition_of(number), ("short", "user-overcap"))
        mate = self.sbatch("vision", 2)
        self.slurm.wait_state(mate, "RUNNING", seconds=PATIENCE)
        self.assertEqual([self.slurm.job_state(number) for number in spilled], ["RUNNING"] * 2)
        self.wait_usage({"vision": {"gpus": 4, "overcap_gpus": 0, "gpu_cap": 2}})
        # More than its cap, but nobody's harm: who owns the GPUs gets them.
        other = self.sbatch("language", 2)
        self.slurm.wait_state(other, "RUNNING", seconds=PATIENCE)
        self.assertEqual(self.slurm.job_state(mate), "RUNNING", "what counts in full is nobody's to take")
        for number in spilled:
            self.slurm.wait_reason(number, "BeginTime", "AssocGrpGRES", seconds=PATIENCE)

    def test_on_a_full_cluster_user_overcap_gives_way_to_a_labmate_and_loses_no_step(self):
        jobs = [self.count("vision", "user-overcap"), self.count("vision", "short,user-overcap")]
        self.wait_counts(jobs)
        for job in jobs:
            self.assertEqual(self.place_of(self.slurm_id(job)), "vision vision-user-overcap")
        other = self.sbatch("language", 2)
        self.slurm.wait_state(other, "RUNNING")
        self.wait_usage({"vision": {"gpus": 2, "gpu_cap": 2}, "language": {"gpus": 2, "gpu_cap": 2}})
        mate = self.sbatch("vision", 2, seconds=2)
        self.slurm.wait_state(mate, "RUNNING", "COMPLETING", "COMPLETED", seconds=PATIENCE)
        self.assertEqual(self.slurm.job_state(other), "RUNNING", "what counts in full is nobody's to take")
        self.wait_counts(jobs, attempt=2)
        self.wait_ends_at_the_exact_step(jobs)

    def test_where_overcap_has_something_left_another_lab_takes_that(self):
        within = self.yielding("vision", 2)
        self.slurm.wait_state(within, "RUNNING")
        borrowed = [self.count("vision", "overcap") for _ in range(2)]
        self.wait_counts(borrowed)
        owner = self.sbatch("language", 2, seconds=2)
        self.slurm.wait_state(owner, "RUNNING", "COMPLETING", "COMPLETED", seconds=PATIENCE)
        self.assertEqual(self.slurm.job_state(within), "RUNNING")
        self.wait_counts(borrowed, attempt=2)
        self.wait_ends_at_the_exact_step(borrowed)

    def test_above_the_cap_the_line_that_is_advised_starts_at_once(self):
        self.slurm.wait_state(self.sbatch("vision", 2), "RUNNING")
        self.wait_usage({"vision": {"gpus": 2}})
        words = ("--account", "vision", "-n", "1", "--dry-run")
        said = self.ok("submit", "-p", "short", *words, "true").err
        self.assertIn("lab 'vision' has 2 of its 2 GPUs in use; partition 'overcap' would start it now: -p overcap (", said)
        self.wait_counts([self.count("vision", "overcap")])

    def test_only_the_lab_and_the_partition_are_typed(self):
        def script(*words):
            text = self.ok("submit", "--dry-run", *words, "true").out
            return [line for line in text.splitlines() if line.startswith("#SBATCH --account") or "sbatch " in line][0]
        for words, wanted in (
                (("-p", "overcap", "--account", "language"), ("--account=language-overcap", "--qos=overcap")),
                (("-p", "overcap"), ("--account=vision-overcap", "--qos=overcap")),
                (("-p", "short,user-overcap"), ("--qos=vision-user-overcap",)),
                (("-p", "user-overcap", "--account", "language"), ("--account=language", "--qos=language-user-overcap"))):
            for word in wanted:
                self.assertIn(f"{word} ", script(*words) + " ", words)
        self.assertNotIn("--qos", script("-p", "short", "--account", "vision"))


class Fair(RuledRig):
    cluster_settings = {"PriorityCalcPeriod": "00:01:00"}

    def test_fair_share_sees_both_accounts_as_the_lab(self):
        """Vision uses nothing but what it borrows, and stands behind the other lab with what it owns too."""
        borrowed = self.sbatch("vision-overcap", 2, partition="overcap", seconds=5)
        self.slurm.wait_state(borrowed, "COMPLETED")

        def shares():
            rows = [line.split("|") for line in self.lines_of("sshare", "-a", "-n", "-P", "-o", "Account,User,RawUsage,FairShare")]
            return {(row[0].strip(), row[1]): (float(row[2]), row[3]) for row in rows}

        def behind():
            now, me = shares(), self.slurm.owner
            return float(now["vision", me][1]) < float(now["language", me][1]) and now
        now = wait_until(behind, "vision to stand behind language", PATIENCE)
        self.assertGreater(now["vision-overcap", ""][0], 0)
        both = now["vision", ""][0] + now["vision-overcap", ""][0]
        self.assertAlmostEqual(now["vision-lab", ""][0], both, delta=2)


if __name__ == "__main__":
    main()
