# SPDX-License-Identifier: Apache-2.0
"""Containers of Azure Blob Storage (Azurite) in the folders of jobs: mounted by rclone, by a stand-in for blobfuse2, and copied."""
import json
import signal

from mounts_rig import MountsRig, needs_fuse
from overcap_rig import main, needs_root, shell
from store_rig import make_tree, tree
from rigs.azurite_rig import Azurite

GROUP = "stores"
DEADLINE_SECONDS = 200


class OnAzurite(MountsRig):
    @classmethod
    def setUpClass(cls):
        cls.server = Azurite()
        cls.addClassCleanup(cls.server.close)
        cls.server.make_container("mount-tests")

    def setUp(self):
        super().setUp()
        self.env.update(self.server.environment)
        self.there = f"az://{self.server.account}/mount-tests/{self.id().rpartition('.')[2]}"
        self.files = make_tree(self.project / "from", large=3_000_000)
        self.ok("store", "cp", "from", self.there)
        self.write(".overcapignore", "/from\n/back\n")

    def lab_with_a_sas(self):
        """Names the store `lab`; returns its SAS."""
        sas = self.server.sas("mount-tests")
        storage = self.root / "storage.yaml"
        storage.write_text(f"account_name: {self.server.account}\nsas_token: '{sas}'\n")
        storage.chmod(0o600)
        self.config(f"stores:\n  lab: {{at: '{self.there}', endpoint: '{self.server.endpoint}', credentials: {storage}}}\n")
        return sas

    @needs_fuse("rclone")
    def test_a_container_is_mounted_to_read_and_to_write_with_a_sas(self):
        del self.env["AZURE_STORAGE_CONNECTION_STRING"]
        sas = self.lab_with_a_sas()
        self.job_ok("--mount", "data=lab,mounter=rclone", "--mount", "out=lab,mode=rw,mounter=rclone",
                    *shell("diff -r data \"$1\" && ! touch data/x 2> /dev/null && cp data/large out/again", str(self.project / "from")))
        self.ok("store", "cp", "lab", "back")
        self.assertEqual(tree(self.project / "back"), {**self.files, "again": self.files["large"]})
        self.assert_nothing_left()
        self.assert_no_key(sas[-20:])

    @needs_fuse("rclone")
    def test_rclone_that_cannot_be_told_the_address_is_refused(self):
        self.job_fails("--mount", f"data={self.there},mounter=rclone", "true", says=["rclone takes an account key only", "mode: copy"])
        self.assert_nothing_left()

    @needs_root
    @needs_fuse("rclone")
    def test_what_one_mounter_cannot_mount_the_next_one_does(self):
        del self.env["AZURE_STORAGE_CONNECTION_STRING"]
        self.lab_with_a_sas()
        self.fake_mounter("blobfuse2", '$2')
        (self.facts / "blobfuse2.fails").touch()
        job = self.job_ok("--mount", "data=lab", *shell('cmp data/large "$1" && grep -c fuse.rclone /proc/self/mountinfo', str(self.project / "from/large")))
        self.assertEqual(self.log(job).decode(), "1\n")
        self.assertIn("'blobfuse2' ended: the key SECRETWORD is not known; 'rclone' has mounted it instead", self.ok("query", job).out)
        self.job_fails("--mount", "data=lab,mounter=blobfuse2", "true", says="'blobfuse2' ended")
        self.job_fails("--mount", "data=lab,option=--debug", "true", says="'blobfuse2' ended")
        self.assert_nothing_left()

    def test_a_copy_with_the_keys_of_a_storage_file(self):
        del self.env["AZURE_STORAGE_CONNECTION_STRING"]
        storage = self.root / "storage.yaml"
        storage.write_text(f"account_name: {self.server.account}\naccount_key: {self.server.key}\ncontainer_name: mount-tests\n")
        storage.chmod(0o600)
        self.config(f"stores:\n  lab: {{at: '{self.there}', endpoint: '{self.server.endpoint}', credentials: {storage}}}\n"
                    "mounts:\n  lab: {store: 'lab:sub', at: data, mode: copy}\n")
        self.job_ok(*shell("cat data/with\\ blank && echo 1 > data/result"))
        self.assertEqual(self.ok("store", "ls", "lab:sub").out.splitlines(), ["deep/", "result", "with blank"])
        self.assert_nothing_left()
        self.assert_no_key(self.server.key)
        storage.chmod(0o644)
        self.job_fails("true", says="chmod 600")

    @needs_fuse("blobfuse2")
    def test_blobfuse2_for_real(self):
        job = self.run_job("--mount", f"data={self.there},mounter=blobfuse2", *shell("diff -r data \"$1\" && echo x > data/x", str(self.project / "from")))
        self.assertEqual(len(self.log(job["id"]).decode().splitlines()), 1, self.log(job["id"]))  # nothing differs, and x is refused
        self.assert_nothing_left()
        self.assert_no_key(self.server.key)

    @needs_root
    def test_blobfuse2_is_started_again_and_hears_of_no_other_account(self):
        self.fake_mounter("blobfuse2", '$2')
        self.env["AZURE_STORAGE_ACCOUNT"] = "another"
        script = f'cat data/mounted-by; touch "$FACTS/there"; {self.gate()}; i=0; until cat data/mounted-by 2> /dev/null || [ $i -ge 300 ]; do sleep 0.1; i=$((i+1)); done'
        job = self.submit("--mount", f"data={self.there},mounter=blobfuse2", *shell(script))
        self.until(lambda: (self.facts / "there").exists(), "the job to run")
        def mounters():
            return [pid for pid in self.processes() if any(word.endswith("/blobfuse2") for word in self.words_of(pid)[:2])]
        (first,) = mounters()
        self.kill(first, signal.SIGKILL)
        self.until(lambda: [pid for pid in mounters() if pid != first], "blobfuse2 to be started again")
        self.open_gate()
        self.assertEqual(self.ended(job)["state"], "succeeded", self.log(job))
        self.assertIn("started again", (self.home / "jobs" / job / "attempt-1/agent-0.jsonl").read_text())
        self.assertEqual(self.log(job).decode(), "blobfuse2 was here\n" * 2)
        self.assert_nothing_left()

    @needs_root
    def test_blobfuse2_is_told_in_a_file_that_nobody_else_can_read(self):
        self.fake_mounter("blobfuse2", '$2')
        job = self.job_ok("--mount", f"data={self.there},cache=2G,option=--log-level=LOG_DEBUG", *shell("cat data/mounted-by"))
        self.assertEqual(self.log(job).decode(), "blobfuse2 was here\n")
        self.assertEqual((self.facts / "blobfuse2.mode").read_text(), "600\n")
        argv = (self.facts / "blobfuse2.argv").read_text().splitlines()
        self.assertEqual(argv[0], "mount")
        self.assertEqual(argv[3:], ["--foreground", "--disable-version-check", "--read-only", "--log-level=LOG_DEBUG"])
        config = json.loads((self.facts / "blobfuse2.conf").read_text())
        self.assertEqual((config["azstorage"]["account-key"], config["azstorage"]["endpoint"], config["file_cache"]["max-size-mb"]),
                         (self.server.key, self.server.endpoint, 2048))
        self.assert_nothing_left()
        self.assert_no_key(self.server.key)


if __name__ == "__main__":
    main()
