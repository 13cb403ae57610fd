# SPDX-License-Identifier: Apache-2.0
"""Damaged state is recovered or refused with a message that says what to do; never a silent loss."""
import json
import os
import random

from overcap_rig import Rig, main, needs_root, shell


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

    def stop(self):
        self.ok("daemon", "stop")
        self.until(lambda: not self.processes(), "the engine to end")

    def lived(self):
        """A home with jobs of many kinds, stopped: what `ls` says of each, and what their folders say."""
        self.declare_gpus(2)
        self.run_job("true")
        self.run_job("-n", "0", "--max-restarts", "1", *shell("exit 3"))
        self.run_job("-n", "1", "--array", "0-3", *shell("echo $OVERCAP_TASK_ID"))
        held = self.submit("-n", "0", "--hold", *shell('echo x >> "$FACTS/ran"'))
        cancelled = self.submit("-n", "0", "--hold", *shell('echo x >> "$FACTS/ran"'))
        self.ok("abort", cancelled)
        self.stop()
        return held

    def everything(self):
        keep = ("id", "state", "exit_status", "attempt", "started", "ended", "reason", "gpu_indices")
        return [{key: job[key] for key in keep} for job in sorted(self.jobs("ls", "--all"), key=lambda job: job["id"])]

    def copies(self):
        return {path.parent.name: path.read_text() for path in (self.home / "jobs").glob("*/events.jsonl")}

    def test_whatever_line_is_damaged_recover_gives_back_what_there_was(self):
        self.lived()
        journal = self.home / "journal"
        before = self.everything()
        self.stop()
        copies = self.copies()
        whole = journal.read_bytes()
        lines = whole.splitlines(keepends=True)
        rng = random.Random(20)
        for number in range(int(os.environ.get("OVERCAP_DAMAGES", "20"))):
            at, other = rng.randrange(len(lines) - 1), rng.randrange(len(lines) - 1)
            kind = number % 5
            if kind == 0:
                byte = rng.randrange(len(whole) - 1)
                damaged = whole[:byte] + bytes([whole[byte] ^ 1 << rng.randrange(8)]) + whole[byte + 1:]
            elif kind == 1:
                damaged = b"".join(lines[:at] + lines[at + 1:])
            elif kind == 2:
                damaged = b"".join(lines[:other] + [lines[at]] + lines[other:])
            elif kind == 3:
                swapped = list(lines)
                swapped[at], swapped[other] = lines[other], lines[at]
                damaged = b"".join(swapped)
            else:
                damaged = b"".join(lines[:at] + [bytes(len(lines[at]) - 1) + b"\n"] + lines[at + 1:])
            journal.write_bytes(damaged)
            told = self.ok("daemon", "recover").out
            self.assertIn("not damaged", self.ok("daemon", "recover").out)
            self.assertEqual(self.everything(), before, f"kind {kind}, line {at}: {told}")
            self.stop()
            self.assertEqual(self.copies(), copies, f"kind {kind}, line {at}: {told}")
        self.assertFalse((self.facts / "ran").exists(), "what was held or cancelled never ran")

    def test_a_lost_list_is_rebuilt_from_the_job_folders(self):
        held = self.lived()
        before = self.everything()
        self.stop()
        copies = self.copies()
        (self.home / "journal").unlink()
        self.refused("ls", status=7, says="overcap daemon recover")
        told = self.ok("daemon", "recover").out
        for job in before:
            self.assertIn(job["id"], told)
        self.assertEqual(self.everything(), before, told)
        self.stop()
        self.assertEqual(self.copies(), copies)
        # The machine has gone down since: nothing proves that what waited never started.
        lock = self.home / "daemon.lock"
        pid, _, words = lock.read_text().partition("\n")
        lock.write_text(pid + "\n" + json.dumps({**json.loads(words), "opened_boot_id": "another"}))
        (self.home / "journal").unlink()
        told = self.ok("daemon", "recover").out
        self.assertIn(f"overcap resubmit {held}", told)
        states = {job["id"]: job["state"] for job in self.everything()}
        self.assertEqual(states, {job["id"]: "lost" if job["id"] == held else job["state"] for job in before})

    def test_a_kept_journal_is_never_overwritten(self):
        _, journal = self.stopped_with_jobs(1)
        whole = journal.read_bytes()
        damages = [whole + b"x%d\n" % number for number in range(3)]
        for damaged in damages:
            journal.write_bytes(damaged)
            self.ok("daemon", "recover")
        kept = [path.read_bytes() for path in self.home.glob("journal.damaged-*")]
        self.assertEqual(sorted(kept), damages)

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
