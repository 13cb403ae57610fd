# SPDX-License-Identifier: Apache-2.0
"""policy simulate as its user meets it: the numbers, the page, the comparison, and histories that are wrong."""
import gzip
import random

from overcap_rig import Rig, main

POLICY = """
nodes:
  a[1-4]: {gpus: a40:8, cpus: 64}
labs:
  vision: 16 ann bob
  nlp: 16 carol
"""


class PolicySimulate(Rig):
    def setUp(self):
        super().setUp()
        self.write("policy.yaml", POLICY, base=self.project)

    def history(self, jobs=300, seed=1):
        chance, now = random.Random(seed), 0
        lines = ["submit,run,gpus,lab,user"]
        for _ in range(jobs):
            now += chance.randrange(300)
            lab, user = chance.choice((("vision", "ann"), ("vision", "bob"), ("nlp", "carol")))
            lines.append(f"{now},{chance.randrange(60, 20000)},{chance.choice((1, 1, 2, 4, 8, 16))},{lab},{user}")
        return "\n".join(lines) + "\n"

    def simulate(self, text, *flags, name="jobs.csv"):
        self.write(name, text, base=self.project)
        return self.run_simulation("--trace", name, *flags)

    def run_simulation(self, *flags):
        return self.ok("policy", "simulate", "policy.yaml", *flags, cwd=self.project)

    def test_numbers_of_labs_and_users_add_up(self):
        found = self.simulate(self.history(), "--json").json()
        self.assertEqual(found["pool_gpus"], 32)
        self.assertEqual(found["all"]["jobs"], 300)
        self.assertEqual(sum(lab["jobs"] for lab in found["labs"]), 300)
        self.assertEqual(sum(user["jobs"] for user in found["users"]), 300)
        self.assertEqual((found["skipped"], found["never_started"]), (0, 0))
        self.assertGreater(found["utilisation"], 0.3)
        self.assertLessEqual(found["utilisation_while_submitting"], 1.0)

    def test_the_same_history_gives_the_same_answer(self):
        first = self.simulate(self.history(), "--json").out
        self.assertEqual(first, self.run_simulation("--trace", "jobs.csv", "--json").out)

    def test_against_itself_there_is_no_difference(self):
        found = self.simulate(self.history(), "--against", "policy.yaml", "--json").json()
        self.assertEqual([lab["wait_mean_s"] for lab in found["difference"]], [0, 0])

    def test_what_the_other_policy_could_not_run_is_told_too(self):
        (self.project / "other.yaml").write_text("nodes:\n  a[1-2]: {gpus: a40:8, cpus: 128}\nlabs:\n  vision: 1 ann\n  speech: 2 joe\n"
                                                 "partitions: {overcap: none, user-overcap: none}\n")
        told = self.simulate(self.history(), "--against", "other.yaml").out
        before = told[told.index("against 'other.yaml':"):]
        self.assertRegex(before, r"\d+ jobs skipped: (no lab|lab) .*\(lines ")
        self.assertRegex(before, r"\d+ jobs skipped: asks for more than a cap or limit allows \(lines ")
        self.assertRegex(before, r"\nnlp +\d+ +0 +\S+ +- +- +\S+ +- ")
        self.assertRegex(before, r"\nspeech +0 +0 +- +- +- +- +- ")
        found = self.simulate(self.history(), "--against", "other.yaml", "--json").json()
        by_lab = {lab["name"]: lab for lab in found["difference"]}
        self.assertIsNone(by_lab["nlp"]["wait_mean_s"])
        self.assertEqual(sorted(by_lab), ["nlp", "speech", "vision"])

    def test_what_cannot_be_used_is_named_with_its_lines(self):
        done = self.simulate("submit,run,gpus,lab\n1,5,1,vision\n-2,5,1,vision\n3,5,64,nlp\n4,5,1,art\n", "--json").json()
        self.assertEqual(done["skipped"], 3)
        self.assertEqual(sorted(done["notes"]), ["1 job skipped: lab 'art' is not in the policy (line 5)",
                                                 "1 job skipped: larger than the cluster (line 4)",
                                                 "1 job skipped: negative submit time (line 3)"])

    def test_a_history_of_which_nothing_can_be_used_is_an_error(self):
        self.write("none.csv", "submit,run,gpus,lab,user\n0,60,99,vision,ann\n", base=self.project)
        done = self.refused("policy", "simulate", "policy.yaml", "--trace", "none.csv", cwd=self.project)
        self.assertIn("no job of 'none.csv' can be replayed: 1 job skipped: larger than the cluster (line 2)", done.err)
        self.write("none.csv", "submit,run,gpus,lab,user\n", base=self.project)
        done = self.refused("policy", "simulate", "policy.yaml", "--trace", "none.csv", cwd=self.project)
        self.assertIn("can be replayed: it has none", done.err)

    def test_a_column_that_is_missing_is_an_error(self):
        self.write("jobs.csv", "submit,run\n1,2\n", base=self.project)
        done = self.refused("policy", "simulate", "policy.yaml", "--trace", "jobs.csv", cwd=self.project)
        self.assertIn("jobs.csv: line 1: no column says the number of GPUs", done.err)

    def test_the_report_that_went_is_named_in_a_hint(self):
        self.refused("policy", "simulate", "policy.yaml", "--trace", "jobs.csv", "--html", "report.html", cwd=self.project,
                     says=["unknown flag '--html'", "'--json' prints the numbers"])

    def test_a_log_in_swf_is_refused_in_a_line_that_names_the_formats(self):
        log = "; Version: 2\n  1 10 5 100 4 -1 -1 4 200 -1 1 7 3 -1 1 -1 -1 -1\n"
        self.write("log.swf", log, base=self.project)
        done = self.refused("policy", "simulate", "policy.yaml", "--trace", "log.swf", cwd=self.project)
        self.assertIn("log.swf: its format must be CSV, the output of 'sacct -P', or the engine's journal", done.err)
        self.refused("policy", "simulate", "policy.yaml", "--trace", "log.swf", "--format", "swf", cwd=self.project,
                     says=["there is no trace format 'swf'", "csv, sacct, journal"])

    def test_gzip_is_read_and_a_torn_one_refused(self):
        plain = self.simulate(self.history(), "--json").json()
        packed = gzip.compress(self.history().encode())
        found = self.simulate(packed, "--json", name="jobs.csv.gz").json()
        self.assertEqual(found["all"], plain["all"])
        self.write("torn.gz", packed[:-40], base=self.project)
        self.refused("policy", "simulate", "policy.yaml", "--trace", "torn.gz", cwd=self.project)


if __name__ == "__main__":
    main()
