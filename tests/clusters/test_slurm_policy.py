# SPDX-License-Identifier: Apache-2.0
"""A policy brought to a real Slurm that has nothing of it: what differs, making it so, being killed meanwhile. And changed
for a lab that had only idle GPUs."""
import json
import signal
import time

from slurm_jobs_rig import DEADLINE, main
from slurm_policy_rig import PATIENCE, PolicyRig, SharedRig

DEADLINE_SECONDS = 400
ON_EVERY_SLURM = True


class Applied(PolicyRig):
    def qos(self):
        return self.lines_of("sacctmgr", "-n", "-P", "show", "qos", "format=Name,GrpTRES,Preempt")

    def test_it_is_shown_applied_and_then_there_is_nothing_to_change(self):
        before = self.qos()
        shown = self.apply_once("--dry-run")
        self.assertEqual(shown.status, 0, str(shown))
        self.assertIn("add account 'vision'", shown.out)
        self.assertIn("# there is no partition 'debug'\nPartitionName=debug Nodes=n[1-2] ", shown.out)
        self.assertEqual(self.qos(), before, "--dry-run changes nothing")

        for number in range(8):  # killed at some moment or other, each time a little later
            process = self.start("policy", "apply", str(self.policy))
            time.sleep(0.03 * number)  # of the test's own doing: the moment does not matter
            process.send_signal(signal.SIGKILL)
            process.communicate()
        done = self.apply()
        self.assertEqual(done.status, 0, str(done))
        again = self.apply_once()
        self.assertEqual((again.status, again.out.splitlines()), (0, ["nothing to change"]), str(again))
        facts = json.loads(self.ok("policy", "apply", "--json", str(self.policy)).out)
        self.assertEqual((facts["nothing"], facts["steps"], facts["settings"]), (True, [], []))

        rows = dict(line.split("|", 1) for line in self.qos())
        self.assertEqual(rows["vision"], "gres/gpu=2|language-user-overcap,overcap,vision-user-overcap")
        self.assertEqual(set(rows["language"].split("|")[0].split(",")), {"cpu=24", "gres/gpu=2", "gres/gpu:a40=2"})
        self.assertEqual(rows["language-user-overcap"], "|overcap")
        tree = self.lines_of("sacctmgr", "-n", "-P", "show", "associations", "where", "cluster=lab", "format=Account,"
                             "ParentName,User,Share,GrpTRES,QOS,DefaultQOS")
        self.assertEqual({row for row in tree if row.startswith("vision") and not row.split("|")[2]},
                         {"vision-lab|root||2||normal|",
                          "vision|vision-lab||1|gres/gpu=2|vision,vision-user-overcap|vision",
                          "vision-overcap|vision-lab||1||overcap|overcap"})
        users = self.lines_of("sacctmgr", "-n", "-P", "show", "user", "format=User,DefaultAccount")
        self.assertEqual({"ann|vision", "bob|vision", "carol|language"} - set(users), set())
        accounts = self.lines_of("sacctmgr", "-n", "-P", "show", "account", "withcoord", "format=Account,Coordinators")
        self.assertEqual({"vision|ann", "vision-overcap|ann", "vision-lab|"} - set(accounts), set())
        self.assertIn("ReservationName=power", self.slurm.must(["scontrol", "show", "reservation"]))

        self.change("ann, bob]", "ann, eve]")   # one leaves, one comes
        self.change("gpus_per_user: 1", "gpus_per_user: 2")
        self.change("gpus: 2, members", "gpus: 1, members")
        changed = self.apply()
        self.assertEqual(changed.status, 0, str(changed))
        for text in ("add to account 'vision': eve", "remove from account 'vision': bob",
                     "add to account 'vision-overcap': eve", "remove from account 'vision-overcap': bob",
                     "change qos 'vision': GrpTRES=gres/gpu=1", "change account 'vision': GrpTRES=gres/gpu=1",
                     "MaxTRESPerUser=gres/gpu=2"):
            self.assertIn(text, changed.out)
        self.assertEqual(self.apply_once().out.splitlines(), ["nothing to change"])

        self.change("carol, ann]", "ann]")  # in no lab any more
        left = self.apply_once()
        self.assertEqual(left.status, 0, str(left))
        self.assertIn("remove from account 'language': carol", left.out)
        self.assertEqual([row for row in self.lines_of("sacctmgr", "-n", "-P", "show", "associations", "user=carol", "format=Account")], [])
        self.assertEqual(self.apply_once().out.splitlines(), ["nothing to change"])

    def test_lines_that_slurm_conf_lacks_are_printed_and_no_file_is_written(self):
        files = {path: path.read_bytes() for path in (self.slurm.folder / "etc").iterdir()}
        self.change("n[1-2]: {gpus: a40:2", "n[1-2]: {gpus: a40:3")
        self.change("gpus_per_user: 1", "max_time: 3h")
        done = self.apply_once()
        self.assertEqual(done.status, 6, str(done))
        self.assertIn("# slurm.conf must have these lines", done.out)
        self.assertIn("# node 'n1' has GPUs a40:2; the policy says a40:3\n", done.out)
        self.assertIn("Overcap does not write slurm.conf: add the lines, then restart slurmctld, then run it again", done.err)
        self.assertEqual({path: path.read_bytes() for path in (self.slurm.folder / "etc").iterdir()}, files)

    def test_the_flag_that_wrote_the_file_is_refused(self):
        done = self.apply_once("--write", str(self.slurm.folder / "etc"))
        self.assertEqual(done.status, 2, str(done))
        self.assertIn("unknown flag '--write' of 'policy apply'", done.err)
        self.assertIn("prints the lines that slurm.conf needs", done.err)

    def test_nodes_that_slurm_conf_lacks_are_named_and_nothing_is_changed(self):
        before = self.qos(), self.lines_of("sacctmgr", "-n", "-P", "show", "account")
        self.change("n[1-2]:", '"n[1-2],new[7-9]":')
        done = self.apply_once()
        self.assertEqual(done.status, 6, str(done))
        self.assertIn("slurm.conf has no node new[7-9]: nothing was changed", done.err)
        self.assertIn("'overcap policy render slurm FILE' prints the lines", done.err)
        self.assertEqual((self.qos(), self.lines_of("sacctmgr", "-n", "-P", "show", "account")), before)
        shown = self.apply_once("--dry-run")
        self.assertEqual(shown.status, 0, str(shown))
        self.assertIn("slurm.conf has no node new[7-9]", shown.err)

    def test_a_policy_for_another_cluster_is_refused(self):
        self.policy.write_text("cluster: other\n" + self.policy.read_text())
        done = self.apply()
        self.assertEqual(done.status, 2, str(done))
        self.assertIn("the policy is for cluster 'other', this one is called 'lab'", done.err)


class WithoutLimits(PolicyRig):
    """A cluster whose slurm.conf has nothing that a policy needs, not even AccountingStorageEnforce."""
    cluster_settings = dict.fromkeys(("AccountingStorageEnforce", "PreemptType", "PreemptMode", "EnforcePartLimits", "PriorityType",
                                      "PriorityWeightQOS", "SlurmctldParameters"))

    def test_slurmctld_starts_with_the_printed_lines(self):
        slurm = self.slurm
        done = self.apply_once()
        self.assertEqual(done.status, 6, str(done))
        self.assertIn("AccountingStorageEnforce=associations,limits,qos\n", done.out)
        slurm.take_lines(self.lines_in(done.out))  # a controller that reads them without a restart goes on
        slurm.restart_controller()
        slurm.wait_idle(slurm.names)
        again = self.apply_once()
        self.assertEqual((again.status, again.out.splitlines()), (0, ["nothing to change"]), str(again))
        self.assertIn("associations,limits,qos", slurm.must(["scontrol", "show", "config"]))


class ALabThatGetsACap(SharedRig):
    def test_its_waiting_jobs_change_their_account_and_what_runs_goes_on(self):
        slurm, capped = self.slurm, self.policy.read_text()
        only_vision = "labs: [vision]"
        self.change("debug: {", f"short: {{{only_vision}}}\n  long: {{{only_vision}}}\n  debug: {{{only_vision}, ")
        self.change("user-overcap: {", f"user-overcap: {{{only_vision}, ")
        done = self.apply()
        self.assertEqual(done.status, 0, str(done))
        running = [self.sbatch("language", 2, partition="overcap") for _ in range(2)]  # on all GPUs
        for number in running:
            slurm.wait_state(number, "RUNNING")
        waiting = self.sbatch("language", 1, partition="overcap", seconds=2)
        array = self.sbatch("language", 1, "--array=0-3%2", partition="overcap", seconds=2)

        self.policy.write_text(capped)
        shown = self.apply_once("--dry-run")
        self.assertEqual(shown.status, 0, str(shown))
        for text in ("change account 'language': Parent=language-lab ", "add account 'language-overcap': Parent=language-lab ",
                     f"move job '{waiting}' to account 'language-overcap'", f"move job '{array}_[0-3]' to account 'language-overcap'"):
            self.assertIn(text, shown.out)
        self.assertIn("2 running jobs of account 'language' belong into 'language-overcap'", shown.err)
        done = self.apply()
        self.assertEqual(done.status, 0, str(done))
        self.assertIn("nothing to change", self.apply_once().out)
        self.assertEqual([self.place_of(number) for number in (waiting, array)], ["language-overcap overcap"] * 2)
        self.assertEqual([slurm.job_state(number) for number in running], ["RUNNING"] * 2)
        slurm.must(["scancel", str(running[0])])
        slurm.wait_state(waiting, "COMPLETED", seconds=PATIENCE)
        slurm.wait_sacct(f"{array}_3", "COMPLETED", seconds=PATIENCE)
        self.assertEqual(slurm.job_state(running[1]), "RUNNING")


if __name__ == "__main__":
    main()
