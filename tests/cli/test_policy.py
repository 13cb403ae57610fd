# SPDX-License-Identifier: Apache-2.0
"""Policies without a cluster: what `policy check` says of right and wrong ones, and what `policy render` prints."""
import json

from overcap_rig import REPOSITORY, Rig, main

EXAMPLE = REPOSITORY / "examples" / "pooled-cluster-policy.yaml"
SMALL = "nodes:\n  n[1-2]: {gpus: a40:4, cpus: 16}\nlabs:\n  vision: 4 ann bob\n  language: 4 carol ann\n"


class Policies(Rig):
    def check(self, text, *words):
        self.write("policy.yaml", text)
        return self.overcap("policy", "check", *words, "policy.yaml")

    def test_the_example_is_good(self):
        said = self.ok("policy", "check", str(EXAMPLE)).out
        self.assertEqual(said, "good: 13 labs, 5 partitions, 36 nodes, 284 GPUs (80 2080_ti, 68 a40, 88 rtx_6000, 48 titan_x)\n")
        self.assertFalse(self.home.exists(), "and nothing is written")

    def test_every_error_is_told_with_its_line(self):
        done = self.check(SMALL.replace("4 carol ann", "40") + "partitons: {}\n")
        self.assertEqual(done.status, 2)
        self.assertEqual(done.out, "policy.yaml:6: unknown key 'partitons' (did you mean 'partitions'?)\n")
        done = self.check(SMALL.replace("4 carol ann", "40") + "partitions:\n  long: {preempted_by: [overcap]}\n")
        self.assertEqual([line.split(" (")[0] for line in done.out.splitlines()], [
            "policy.yaml:4: the labs have caps of 44 GPUs together, the cluster has 8",
            "policy.yaml:5: lab 'language' has no members",
            "policy.yaml:5: lab 'language' has a cap of 40 GPUs, the cluster has 8",
            "policy.yaml:7: cyclic preemption: long is preempted by overcap is preempted by long"])

    def test_json_has_the_same(self):
        done = self.check("nodes: {n1: a40:4}\nlabs: {x: 4}\n", "--json")
        self.assertEqual(done.status, 2)
        facts = json.loads(done.out)
        self.assertEqual((facts["good"], facts["problems"][0]["line"], facts["problems"][0]["message"]),
                         (False, 2, "lab 'x' has no members"))
        good = json.loads(self.check(SMALL, "--json").out)
        self.assertEqual((good["good"], good["labs"], good["gpus"], good["problems"]), (True, 2, 8, []))

    def test_files_that_are_none(self):
        self.assertEqual(self.overcap("policy", "check", "missing.yaml").status, 3)
        self.assertEqual(self.check("\x00\xff: [").status, 2)
        self.assertEqual(self.check("a: 1\n" * 2).status, 2)
        self.assertEqual(self.check("#" * (5 << 20)).status, 2)
        self.assertNotIn(self.overcap("policy", "check", "/").status, (0, 2))

    def test_render_prints_the_files_the_commands_and_what_cannot_be(self):
        self.write("policy.yaml", SMALL)
        text = self.ok("policy", "render", "slurm", "policy.yaml").out
        for line in ("PreemptType=preempt/qos", "SlurmctldParameters=preempt_send_user_signal",
                     "NodeName=n[1-2] CPUs=16 Gres=gpu:a40:4 Feature=a40 State=UNKNOWN",
                     "NodeName=n[1-2] Name=gpu Type=a40 File=/dev/nvidia[0-3]",
                     "sacctmgr --immediate add user ann,bob Account=vision Cluster=CLUSTER"):
            self.assertIn(line + "\n", text)
        self.assertIn("PartitionName=debug Nodes=n[1-2] ", text)
        self.assertIn("GrpTRES=gres/gpu=4", text)
        self.assertIn("Slurm stops no job because a cap is full:", text)
        self.assertIn("sacctmgr --immediate add account vision-overcap Parent=vision-lab ", text)
        facts = json.loads(self.ok("policy", "render", "--json", "slurm", str(EXAMPLE)).out)
        self.assertEqual([file["name"] for file in facts["files"]], ["slurm.conf: settings and partitions", "slurm.conf: nodes", "gres.conf"])
        self.assertTrue(all(argv[0] in ("sacctmgr", "scontrol") for argv in facts["commands"]))

    def test_what_cannot_be_told_a_policy_says_so(self):
        self.write("policy.yaml", SMALL)
        self.assertEqual(self.overcap("policy", "render", "slrum", "policy.yaml").status, 3)
        self.assertIn("did you mean 'slurm'?", self.overcap("policy", "render", "slrum", "policy.yaml").err)
        self.assertEqual(self.overcap("policy", "render", "local", "policy.yaml").status, 2)
        done = self.overcap("-c", "local", "policy", "apply", "policy.yaml")
        self.assertEqual(done.status, 2, str(done))
        self.assertRegex(done.err, "the policy has no node '.*', which this machine is")
        self.assertIn("name it under 'nodes'", done.err)


if __name__ == "__main__":
    main()
