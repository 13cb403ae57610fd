# SPDX-License-Identifier: Apache-2.0
"""Everywhere an id is taken the last characters suffice; also `last`, also several."""
import json

from overcap_rig import Rig, main
from system_rig import Connection


class Ids(Rig):
    def test_the_last_characters_of_an_id_suffice(self):
        job_id = self.run_job("true")["id"]
        for suffix in (job_id[-8:], job_id[-5:], job_id):
            self.assertEqual(self.job(suffix)["id"], job_id)

    def test_last_is_the_job_that_was_submitted_last(self):
        self.submit("true")
        second = self.submit("true")
        self.assertEqual(self.job("last")["id"], second)

    def test_several_ids_give_several_records_in_that_order(self):
        ids = [self.run_job("true")["id"] for _ in range(3)]
        asked = [ids[2], ids[0][-8:], ids[1]]
        self.assertEqual([job["id"] for job in self.jobs("query", *asked)], [ids[2], ids[0], ids[1]])

    def test_every_verb_takes_a_suffix(self):
        job_id = self.run_job("echo", "said")["id"]
        suffix = job_id[-6:]
        self.assertEqual(self.ok("logs", suffix).out, "said\n")
        self.assertEqual(self.ok("wait", suffix).status, 0)
        self.ok("abort", suffix)
        self.ok("rm", suffix)
        self.assertEqual(self.jobs("ls", "--all"), [])

    def test_an_ambiguous_suffix_lists_the_candidates_with_their_commands(self):
        by_digit = {}
        for number in range(17):  # of 17 jobs two must share their last digit
            job_id = self.submit("--hold", "echo", f"job-number-{number}")
            by_digit.setdefault(job_id[-1], []).append((job_id, f"job-number-{number}"))
            if len(by_digit[job_id[-1]]) > 1:
                break
        digit, same = next((d, jobs) for d, jobs in by_digit.items() if len(jobs) > 1)
        done = self.refused("query", digit, status=6, says=[part for job in same for part in job])
        for digit_other, jobs in by_digit.items():
            if digit_other != digit:
                self.assertNotIn(jobs[0][0], done.err)

    def test_an_ambiguous_suffix_aborts_nothing(self):
        ids = [self.submit("--hold", "true") for _ in range(17)]
        digit = next(i[-1] for i in ids if sum(j.endswith(i[-1]) for j in ids) > 1)
        self.refused("abort", digit, status=6)
        self.assertEqual({job["state"] for job in self.jobs("ls", "--all")}, {"held"})

    def test_verbs_that_change_jobs_need_four_characters(self):
        job_id = self.submit("--hold", "echo", "precious")
        for verb in ("abort", "rm", "resubmit", "hold", "release"):
            for length in (1, 3):
                self.refused(verb, job_id[-length:], status=2,
                             says=[f"'{job_id[-length:]}' is too short for `{verb}`", f"overcap {verb} {job_id[-8:]}", "echo precious"])
        self.assertEqual([job["state"] for job in self.jobs("ls", "--all")], ["held"])
        self.assertEqual(self.job(job_id[-1])["id"], job_id, "looking takes any length")
        self.ok("release", job_id[-4:])
        self.ended(job_id)
        self.ok("abort", "last")
        self.ok("rm", job_id[-4:])

    def test_last_follows_the_queue_and_not_the_clock(self):
        first = self.submit("--hold", "true")
        spec = json.loads((self.home / "jobs" / first / "spec.json").read_text())
        # As if the clock had been set back an hour between the two.
        seconds = int(first.split("_")[-2]) - 3600
        spec.update(id=f"{first.rsplit('_', 2)[0]}_{seconds}_0000beef", submitted_us=spec["submitted_us"] - 3_600_000_000)
        self.assertIn("ok", Connection(self.home / "daemon.sock").ask({"op": "submit", "spec": spec}))
        self.assertEqual(self.job("last")["id"], spec["id"])
        self.kill(self.daemon_pid())
        self.assertEqual(self.job("last")["id"], spec["id"], "also for the next engine")

    def test_a_name_leads_to_the_id(self):
        job_id = self.submit("--hold", "--name", "exp1", "true")
        self.refused("query", "exp1", status=3, says=["named 'exp1'", job_id])

    def test_an_unknown_id_suggests_the_nearest(self):
        job_id = self.submit("--hold", "true")
        wrong = job_id[:-1] + ("0" if job_id[-1] != "0" else "1")
        self.refused("query", wrong, status=3, says=[wrong, job_id])

    def test_an_unknown_id_among_known_ones_acts_on_none(self):
        job_id = self.submit("--hold", "true")
        self.refused("abort", job_id, "nobody_1563257309_00000000", status=3, says="nobody_1563257309_00000000")
        self.assertEqual(self.job(job_id)["state"], "held")

    def test_no_job_at_all_is_an_error_that_says_so(self):
        self.refused("query", "last", status=3)
        self.refused("query", "abcdef", status=3, says="abcdef")

    def test_an_id_that_is_a_path_is_refused(self):
        self.run_job("true")
        for path in ("../../etc/passwd", "/etc/passwd", ".", "..", ""):
            self.refused("query", path, status=None)
            self.refused("rm", path, status=None)
        self.assertEqual(len(self.jobs("ls", "--all")), 1)


if __name__ == "__main__":
    main()
