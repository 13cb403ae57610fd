# SPDX-License-Identifier: Apache-2.0
"""Resubmit: the same command and the same code, bit for bit, linked to the old job, never both running."""
from overcap_rig import Rig, main, shell


class Resubmit(Rig):
    def resubmit(self, *args):
        return self.id_in(self.ok("resubmit", *args))

    def test_a_resubmitted_job_runs_the_old_code_after_edits(self):
        self.write("train.sh", "echo version one\n")
        self.write("data/blob", b"\x00\xff\r\n" * 100)
        script = "sh train.sh; sha256sum data/blob; ls -A"
        old = self.run_job(*shell(script))
        self.write("train.sh", "echo version two\n")
        (self.project / "data/blob").unlink()
        self.write("new.txt", "new")
        new = self.ended(self.resubmit(old["id"]))
        self.assertEqual(new["state"], "succeeded")
        self.assertEqual(self.log(new["id"]), self.log(old["id"]))
        self.assertEqual((new["snapshot"], new["command"]), (old["snapshot"], old["command"]))

    def test_it_keeps_a_link_to_the_old_job(self):
        old = self.run_job("false")
        new = self.ended(self.resubmit(old["id"]))
        self.assertNotEqual(new["id"], old["id"])
        self.assertEqual(new["resubmit_of"], old["id"])
        self.assertIsNone(old["resubmit_of"])

    def test_it_works_from_another_folder_and_with_the_old_one_gone(self):
        folder = self.root / "elsewhere"
        folder.mkdir()
        (folder / "word").write_text("kept")
        old = self.run_job("cat", "word", cwd=folder)
        (folder / "word").unlink()
        folder.rmdir()
        new = self.ended(self.resubmit(old["id"]))
        self.assertEqual(self.log(new["id"]), b"kept")

    def test_it_keeps_resources_name_and_environment(self):
        self.declare_gpus(2)
        script = shell('echo "$WORD $CUDA_VISIBLE_DEVICES"')
        old = self.run_job("-n", "1", "--name", "n1", "--time", "2h", "--env", "WORD=w", *script)
        self.env["WORD"] = "other"
        new = self.ended(self.resubmit(old["id"]))
        for field in ("gpus", "name", "time_seconds", "command", "workdir", "cpus", "mem_bytes"):
            self.assertEqual(new[field], old[field], field)
        self.assertTrue(self.log(new["id"]).startswith(b"w "), self.log(new["id"]))

    def test_the_number_of_gpus_may_change(self):
        self.declare_gpus(4)
        old = self.run_job("-n", "1", "--one-rank-per-node", *shell('echo "$CUDA_VISIBLE_DEVICES"'))
        new = self.ended(self.resubmit("-n", "3", old["id"]))
        self.assertEqual(new["gpus"], 3)
        self.assertEqual(len(self.log(new["id"]).split(b",")), 3, self.log(new["id"]))

    def test_a_living_job_is_stopped_first_and_both_never_run(self):
        script = ('echo "start $(date +%s%N)" >> "$FACTS/$OVERCAP_JOB_ID"; '
                  'trap \'sleep 0.3; echo "end $(date +%s%N)" >> "$FACTS/$OVERCAP_JOB_ID"; exit 0\' TERM; '
                  '[ -e "$FACTS/second" ] && exit 0; touch "$FACTS/second"; while :; do sleep 0.02; done')
        old = self.submit(*shell(script))
        self.until(lambda: (self.facts / "second").exists(), "the old job to run")
        new = self.ended(self.resubmit(old))
        self.assertEqual(self.ended(old)["state"], "cancelled")
        self.assertEqual(new["state"], "succeeded")
        old_end = int((self.facts / old).read_text().split()[-1])
        new_start = int((self.facts / new["id"]).read_text().split()[1])
        self.assertLess(old_end, new_start)

    def test_a_queued_job_is_replaced_and_never_runs(self):
        held = self.submit("--hold", *shell('echo ran >> "$FACTS/$OVERCAP_JOB_ID"'))
        new = self.ended(self.resubmit(held))
        self.assertEqual((self.job(held)["state"], new["state"]), ("cancelled", "succeeded"))
        self.assertFalse((self.facts / held).exists())

    def test_several_jobs_give_several_new_ones(self):
        ids = [self.run_job("echo", str(number))["id"] for number in range(2)]
        new = self.ok("resubmit", *ids).out.split()
        self.assertEqual(len(new), 2)
        self.assertEqual([self.ended(job_id)["resubmit_of"] for job_id in new], ids)
        self.assertEqual([self.log(job_id) for job_id in new], [b"0\n", b"1\n"])


if __name__ == "__main__":
    main()
