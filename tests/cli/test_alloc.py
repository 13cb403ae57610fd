# SPDX-License-Identifier: Apache-2.0
"""Allocations on this machine: GPUs that the engine keeps for a person."""
import pathlib

from overcap_rig import Rig, main, shell


class Alloc(Rig):
    def entry(self):
        path = pathlib.Path(self.env["HOME"]) / ".ssh/overcap/config"
        return path.read_text() if path.exists() else ""

    def test_an_allocation_holds_gpus_until_it_is_released(self):
        self.declare_gpus(2)
        done = self.ok("alloc", "--name", "mine", "-n", "2")
        self.assertRegex(done.out, r"^mine: running .* 2 GPUs \(job '.*'\)\n$")
        self.assertIn("overcap release mine", done.err)
        self.assertIn("Host overcap-mine\n", self.entry())
        held, = self.ok("alloc", "list", "--json").json()
        self.assertEqual((held["name"], held["state"], held["ssh_host"]), ("mine", "running", "overcap-mine"))
        waits = self.submit("-n", "1", "true")
        self.assertEqual(self.job(waits)["state"], "queued")
        out = self.ok("ssh", "mine", *shell('pwd; echo "$CUDA_VISIBLE_DEVICES"')).out
        self.assertEqual(out.splitlines(), [str(self.project), "0,1"])
        self.ok("release", "mine")
        self.assertEqual(self.ended(waits)["state"], "succeeded")
        self.assertEqual((self.ok("alloc", "list", "--json").json(), self.entry()), ([], ""))

    def test_a_name_is_held_once_and_free_after_its_job_was_aborted(self):
        held = self.ok("alloc", "-n", "0", "--json").json()
        self.refused("alloc", "-n", "0", status=6, says="there is an allocation 'dev' already")
        self.ok("abort", held["job"])
        self.ended(held["job"])
        again = self.ok("alloc", "-n", "0", "--json").json()
        self.assertNotEqual(again["job"], held["job"])
        self.ok("alloc", "release", "dev")

    def test_an_allocation_that_is_submitted_again_takes_no_name_from_another(self):
        held = self.ok("alloc", "-n", "0", "--json").json()
        self.ok("release", "dev")
        again = self.ok("alloc", "-n", "0", "--json").json()
        entry = self.entry()
        copy = self.ok("resubmit", held["job"]).out.strip()
        self.assertEqual(self.ended(copy)["state"], "failed")
        self.assertIn(f"belongs to job '{again['job']}'", self.ok("logs", copy).out)
        self.assertEqual(self.entry(), entry)
        self.ok("release", "dev")

    def test_what_cannot_be_held_leaves_no_name_behind(self):
        self.declare_gpus(1)
        self.refused("alloc", "-n", "8", status=2)
        self.refused("alloc", "-p", "short", status=2)
        for name in ("last", "../x", "a b", ""):
            self.refused("alloc", "--name", name, "-n", "0", status=2)
        self.refused("alloc", "--ssh", "somehow", status=2, says="somehow")
        self.assertEqual(self.ok("alloc", "list", "--json").json(), [])
        self.refused("alloc", "release", "dev", status=3, says="dev")
        self.refused("ssh", "dev", status=3)

    def test_this_machine_gives_no_shells_and_has_no_nodes(self):
        self.refused("shell", status=2, says="gives no shells")
        self.ok("alloc", "-n", "0")
        self.refused("ssh", "dev", "-w", "n1", "true", status=2, says="no nodes")
        self.refused("exec", "dev", "-w", status=2, says="needs a value")
        self.ok("release", "dev")


if __name__ == "__main__":
    main()
