# SPDX-License-Identifier: Apache-2.0
"""Damaged state is recovered or refused with a message that says what to do; never a silent loss."""
import os

from overcap_rig import Rig, main, needs_root


class Damage(Rig):
    def stopped_with_jobs(self, count):
        ids = [self.run_job("echo", str(number))["id"] for number in range(count)]
        self.ok("daemon", "stop")
        self.until(lambda: not self.processes(), "the engine to end")
        return ids, self.home / "journal"

    def known(self):
        return {job["id"]: job["state"] for job in self.jobs("ls", "--all")}

    def test_a_torn_last_record_is_cut_off_and_said(self):
        ids, journal = self.stopped_with_jobs(3)
        whole = journal.read_bytes()
        journal.write_bytes(whole + b'deadbeef {"e":"submitted","t":17')
        self.assertEqual(self.known(), {job_id: "succeeded" for job_id in ids})
        self.assertIn("journal", (self.home / "daemon.log").read_text())
        self.assertTrue(journal.read_bytes().startswith(whole))
        self.assertEqual(self.run_job("true")["state"], "succeeded")

    def test_a_tail_of_nul_bytes_is_cut_off(self):
        ids, journal = self.stopped_with_jobs(2)
        journal.write_bytes(journal.read_bytes() + bytes(5000))
        self.assertEqual(self.known(), {job_id: "succeeded" for job_id in ids})
        self.assertNotIn(b"\0", journal.read_bytes())

    def test_a_whole_last_line_with_a_wrong_checksum_is_damage(self):
        _, journal = self.stopped_with_jobs(2)
        journal.write_bytes(journal.read_bytes() + b'deadbeef {"e":"removed","t":17,"id":"x"}\n')
        self.refused("ls", status=7, says=[str(journal), "overcap daemon recover"])

    def test_a_journal_cut_at_any_byte_of_its_last_records_loses_no_job(self):
        ids, journal = self.stopped_with_jobs(2)
        whole = journal.read_bytes()
        last_two = len(whole) - sum(len(line) + 1 for line in whole.split(b"\n")[-3:-1])
        for cut in range(last_two, len(whole), 7):
            journal.write_bytes(whole[:cut])
            self.assertEqual(self.known(), {job_id: "succeeded" for job_id in ids}, f"cut at byte {cut}")
            self.ok("daemon", "stop")
            self.until(lambda: not self.processes(), "the engine to end")

    def test_a_flipped_byte_in_the_middle_is_refused_with_what_to_type(self):
        ids, journal = self.stopped_with_jobs(4)
        lines = journal.read_bytes().split(b"\n")
        line = len(lines) // 2
        broken = bytearray(lines[line])
        broken[len(broken) // 2] ^= 0x01
        damaged = b"\n".join(lines[:line] + [bytes(broken)] + lines[line + 1:])
        journal.write_bytes(damaged)
        for command in (("ls",), ("submit", "true")):
            self.refused(*command, status=7, says=[str(journal), str(line + 1), "overcap daemon recover"])
        self.assertEqual(journal.read_bytes(), damaged, "a damaged journal is not touched")
        self.ok("daemon", "recover")
        beside = [name for name in os.listdir(self.home) if name.startswith("journal") and name != "journal"]
        kept = [name for name in beside if (self.home / name).read_bytes() == damaged]
        self.assertTrue(kept, f"the damaged file is kept: {beside}")
        known = self.known()
        self.assertGreaterEqual(len(set(ids) & set(known)), 3)
        self.assertEqual(self.run_job("true")["state"], "succeeded")

    def test_recover_names_a_job_whose_submission_was_lost(self):
        ids, journal = self.stopped_with_jobs(3)
        lines = journal.read_bytes().split(b"\n")
        line = next(i for i, text in enumerate(lines) if b'"submitted"' in text and ids[1].encode() in text)
        lines[line] = lines[line].replace(b"submitted", b"submitteD", 1)
        journal.write_bytes(b"\n".join(lines))
        done = self.ok("daemon", "recover")
        self.assertIn(ids[1], done.out + done.err)
        self.assertLessEqual({ids[0], ids[2]}, set(self.known()))

    def test_a_journal_of_a_newer_version_is_refused_and_kept(self):
        self.home.mkdir(mode=0o700)
        self.write("journal", self.record(b'{"e":"journal","version":99}'), base=self.home)
        before = (self.home / "journal").read_bytes()
        self.refused("ls", status=None, says=[str(self.home / "journal"), "newer"])
        self.assertEqual((self.home / "journal").read_bytes(), before)

    def test_an_unknown_record_is_refused_not_skipped(self):
        _, journal = self.stopped_with_jobs(1)
        unknown = self.record(b'{"e":"teleported","t":1763186400000000,"id":"x_1763186400_00000000"}')
        after = self.record(b'{"e":"held","t":1763186400000001,"id":"x_1763186400_00000000"}')
        before = journal.read_bytes() + unknown + after
        journal.write_bytes(before)
        self.refused("ls", status=None, says="teleported")
        self.assertEqual(journal.read_bytes(), before)

    def record(self, json_text):
        return b"%08x %s\n" % (crc32c(json_text), json_text)

    def test_the_journal_is_what_its_document_says(self):
        _, journal = self.stopped_with_jobs(1)
        for line in journal.read_bytes().splitlines():
            checksum, _, text = line.partition(b" ")
            self.assertEqual(checksum, b"%08x" % crc32c(text), line)
        self.assertIn(b'"version":1', journal.read_bytes().splitlines()[0])

    def test_a_home_that_is_a_file_is_refused(self):
        self.home.write_text("not a folder")
        self.refused("submit", "true", status=None, says=str(self.home))
        self.assertEqual(self.home.read_text(), "not a folder")
        self.home.unlink()

    def test_a_job_folder_that_is_gone_does_not_stop_the_engine(self):
        ids, _ = self.stopped_with_jobs(2)
        os.rename(self.home / "jobs" / ids[0], self.root / "moved")
        self.assertEqual(self.known(), {job_id: "succeeded" for job_id in ids})
        self.overcap("query", ids[0])
        self.overcap("logs", ids[0])
        self.assertEqual(self.run_job("true")["state"], "succeeded")

    def test_a_damaged_file_in_the_store_is_noticed_not_run(self):
        self.write("train.sh", "echo the real code\n" * 50)
        job = self.run_job("sh", "train.sh")
        damaged = 0
        for folder, _, names in os.walk(self.home / "store"):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    content = f.read()
                if b"the real code" in content:
                    os.chmod(path, 0o600)
                    with open(path, "wb") as f:
                        f.write(content.replace(b"real", b"fake"))
                    damaged += 1
        self.assertGreater(damaged, 0, "the code is in the store as plain content")
        again = self.overcap("resubmit", job["id"])
        if again.status == 0:
            job = self.ended(self.id_in(again))
            self.assertNotEqual(job["state"], "succeeded", "damaged code must not run")
            for log in job["logs"]:
                if os.path.exists(log["path"]):
                    with open(log["path"], "rb") as f:
                        self.assertNotIn(b"fake", f.read())
            self.assertIn("damaged", job["reason"])


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@needs_root
class Unreadable(Rig):
    """Root may read everything, so these tests run as a user that nobody is."""

    parent = "/tmp"

    def setUp(self):
        super().setUp()
        self.user = 61003
        self.share_with(self.user)

    def test_an_unreadable_folder_is_refused_with_its_name(self):
        self.run_job("true")
        self.ok("daemon", "stop")
        os.chmod(self.home / "jobs", 0)
        done = self.overcap("submit", "true")
        self.assertNotEqual(done.status, 0, str(done))
        self.assertIn(str(self.home / "jobs"), done.err)
        os.chmod(self.home / "jobs", 0o700)
        self.assertEqual(self.run_job("true")["state"], "succeeded")

    def test_unreadable_code_is_named_at_submit(self):
        path = self.write("secret.key", "x", mode=0)
        self.assertIn(path.name, self.overcap("submit", "true").err, "what is not captured is said")


if __name__ == "__main__":
    main()
