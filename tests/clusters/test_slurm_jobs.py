# SPDX-License-Identifier: Apache-2.0
"""Jobs on a real Slurm as a user has them: from submit to the exit status, and every verb between."""
import os
import pathlib
import re
import subprocess
import unittest

from slurm_jobs_rig import DEADLINE, NODE_PYTHON, REPOSITORY, SlurmJobsRig, main, shell
from rigs.slurm_accounts import Accounting

DEADLINE_SECONDS = 500
ON_EVERY_SLURM = True

TELL = ('echo "$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK $(hostname) $MASTER_ADDR:$MASTER_PORT" '
        '> "$FACTS/new-$RANK" && mv "$FACTS/new-$RANK" "$FACTS/place-$RANK"')
MORE = ('echo "$OMP_NUM_THREADS $GROUP_RANK/$GROUP_WORLD_SIZE $TORCHELASTIC_RUN_ID $TORCHELASTIC_RESTART_COUNT" '
        '> "$FACTS/more-$RANK"')
RAN = 'echo ran >> "$FACTS/ran"'


class Jobs(SlurmJobsRig):
    cluster = {"nodes": 2, "gpus": 0, "accounting": Accounting(labs={"lab-a": 4})}

    # ---- submit to finish

    def test_a_job_that_succeeds(self):
        job_id = self.submit("-c", "sky", "--name", "first", "--", *shell("echo out; echo err >&2"))
        self.ok("wait", job_id)
        job = self.job(job_id)
        self.assertEqual((job["state"], job["exit_status"], job["attempt"], job["cluster"], job["name"]),
                         ("succeeded", 0, 1, "sky", "first"), job)
        self.assertEqual(self.ok("logs", job_id).out, "out\nerr\n")
        self.assertEqual(self.rank_log(job_id), "out\nerr\n")
        self.assertEqual(self.ls()[job_id]["state"], "succeeded")
        self.assertIn(f"overcap:{job_id}", self.scontrol(job_id)["Comment"])
        self.assertEqual((self.folder(job_id) / "slurm.log").read_text(), "", "empty unless something broke")
        self.assertIn(job_id, self.ok("ls").out)
        number = self.slurm_id(job_id)
        self.assertRegex(self.ok("query", job_id).out, rf"state +succeeded[^$]*cluster +sky, its job {number}\nnodes +n[12]\n")
        self.assertEqual((job["cluster_job"], job["node_list"] in ("n1", "n2")), (str(number), True), job)

    def test_exit_statuses_are_the_jobs_own(self):
        jobs = {self.submit(*shell(script)): status for script, status in
                (("exit 3", 3), ("kill -KILL $$", 137), ("exit 255", 255), ("exec /nowhere/program", 127))}
        for job_id, status in jobs.items():
            done = self.overcap("wait", job_id)
            self.assertEqual(done.status, status, str(done))
            job = self.job(job_id)
            self.assertEqual((job["state"], job["exit_status"]), ("failed", status), job)
        signals = [self.job(job_id)["signal"] for job_id in jobs]
        self.assertEqual(signals, [None, 9, None, None])
        (waited,) = {self.overcap("wait", *jobs).status}
        self.assertEqual(waited, 3, "of several, that of the first")

    def test_submit_wait_and_follow_return_the_status_and_the_output(self):
        done = self.overcap("submit", "--wait", *shell("exit 4"))
        self.assertEqual(done.status, 4, str(done))
        done = self.overcap("submit", "--follow", *shell("echo seen; exit 5"))
        self.assertEqual(done.status, 5, str(done))
        self.assertIn("seen\n", done.out)

    def test_each_rank_on_two_nodes_knows_its_place_and_has_its_log(self):
        job_id = self.submit("--nodes", "2", "--ranks-per-node", "2", "--cpus", "2", *shell(f'{TELL}; echo "I am $RANK"; {MORE}'))
        self.ok("wait", job_id)
        for rank in range(4):
            threads, group, run, attempts = self.fact(f"more-{rank}").split()
            self.assertEqual((threads, group, run, attempts), ("1", f"{rank // 2}/2", f"overcap-{job_id}", "0"))
        places = [self.fact(f"place-{rank}").split() for rank in range(4)]
        self.assertEqual([place[:5] for place in places],
                         [["0", "4", "0", "2", "0"], ["1", "4", "1", "2", "0"], ["2", "4", "0", "2", "1"],
                          ["3", "4", "1", "2", "1"]])
        self.assertEqual([place[5] for place in places], ["n1", "n1", "n2", "n2"])
        self.assertEqual(len({place[6] for place in places}), 1)
        for rank in range(4):
            self.assertEqual(self.rank_log(job_id, rank), f"I am {rank}\n")
        self.assertEqual(self.ok("logs", "--rank", "all", job_id).out.count("I am"), 4)
        self.assertEqual(sorted(log["rank"] for log in self.job(job_id)["logs"]), [0, 1, 2, 3])

    def test_one_failing_rank_of_several_nodes_ends_the_others_and_is_named(self):
        script = f'[ $RANK = 2 ] && exit 7; {RAN}; exec sleep 300'
        job_id = self.submit("--nodes", "2", "--ranks-per-node", "2", "--cpus", "2", *shell(script))
        self.assertEqual(self.overcap("wait", job_id).status, 7)
        job = self.job(job_id)
        self.assertEqual((job["state"], job["exit_status"], job["first_failed_rank"]), ("failed", 7, 2), job)

    def test_the_environment_of_the_submitter_and_of_the_job(self):
        names = ("MINE", "ALSO", "OVERCAP_JOB_ID", "OVERCAP_ATTEMPT", "OVERCAP_STATE_DIR", "OVERCAP_JOB_DIR")
        script = "; ".join(f'echo "{name}=${name}"' for name in names)
        job_id = self.submit("--env", "ALSO=a b", *shell(script + '; [ -d "$OVERCAP_STATE_DIR" ] && echo there'),
                             env={"MINE": "x=$y"})
        self.ok("wait", job_id)
        said = self.rank_log(job_id).splitlines()
        self.assertEqual(said[:4], ["MINE=x=$y", "ALSO=a b", f"OVERCAP_JOB_ID={job_id}", "OVERCAP_ATTEMPT=1"])
        self.assertEqual(said[4], f"OVERCAP_STATE_DIR={self.folder(job_id)}/state")
        self.assertEqual(said[6], "there")

    def test_words_reach_the_ranks_as_they_are(self):
        words = ["a b", "", "'q'", '"', "$HOME", "`id`", "new\nline", "ü", "-x", "\\"]
        job_id = self.submit("--", "printf", "[%s]", *words)
        self.ok("wait", job_id)
        self.assertEqual(self.rank_log(job_id), "".join(f"[{word}]" for word in words))

    # ---- what is sent

    def test_the_dry_run_prints_the_script_and_sends_nothing(self):
        before = self.slurm.rpc_counts()
        done = self.ok("submit", "--dry-run", "--name", "dry", "--time", "90m", "--nodes", "2", *shell(RAN))
        self.assertNotIn("REQUEST_SUBMIT_BATCH_JOB", self.slurm.rpc_counts().since(before).types)
        self.assertFalse((self.home / "jobs").exists() and os.listdir(self.home / "jobs"))
        for words in ("$ sbatch ", "--job-name=dry", "--nodes=2", "--time=01:30:00", "\n#!/", "agent", "--under slurm"):
            self.assertIn(words, done.out)
        job_id = self.submit("--name", "dry", "--time", "90m", "--nodes", "2", *shell(RAN))
        sent = (self.folder(job_id) / "script.sh").read_text()
        any_id = re.compile(r"[A-Za-z0-9.-]+_[0-9]{9,11}_[0-9a-f]{8}")
        self.assertIn(any_id.sub("ID", sent).strip(), any_id.sub("ID", done.out), "what was sent is what was shown")
        self.assertEqual(self.scontrol(job_id)["TimeLimit"], "01:30:00")
        self.ok("wait", job_id)
        self.assertEqual(self.lines("ran"), ["ran", "ran"])

    def test_the_code_is_frozen_at_submit(self):
        self.write("what.txt", "then\n")
        self.write("sub/more.txt", "also then\n")
        job_id = self.submit("--hold", *shell("cat what.txt sub/more.txt; pwd"))
        self.write("what.txt", "now\n")
        (self.project / "sub" / "more.txt").unlink()
        self.ok("release", job_id)
        self.ok("wait", job_id)
        said = self.rank_log(job_id).splitlines()
        self.assertEqual(said[:2], ["then", "also then"])
        self.assertTrue(said[2].startswith(str(self.folder(job_id))), said)

    def test_several_partitions_and_words_for_sbatch(self):
        job_id = self.submit("-p", "short,user-overcap", "--hold", "--slurm-args", "--nice=77", *shell(RAN))
        shown = self.scontrol(job_id)
        self.assertEqual((shown["Partition"], shown["Nice"]), ("short,user-overcap", "77"))

    def test_what_slurm_refuses_is_told_in_its_words_and_nothing_stays(self):
        for words, says in ((("-p", "nowhere"), "partition"), (("--account", "nobody"), "account"),
                            (("-p", "debug", "--time", "2d"), "time limit"), (("--nodes", "99"), "")):
            done = self.overcap("submit", *words, *shell(RAN))
            self.assertNotEqual(done.status, 0, str(done))
            self.assertEqual(done.out, "", str(done))
            self.assertIn(says, done.err.lower(), str(done))
            self.assertEqual(os.listdir(self.home / "jobs") if (self.home / "jobs").exists() else [], [], str(done))
        self.assertEqual(self.slurm.must(["squeue", "-h"]), "")
        self.assertEqual([job_id for job_id in self.ls() if not job_id.isdigit()], [])

    # ---- arrays and dependencies

    def test_an_array_of_ten_with_one_that_fails(self):
        script = ('echo "start $OVERCAP_TASK_ID $(date +%s%N)" >> "$FACTS/edges"; echo "task $OVERCAP_TASK_ID"; sleep 0.05; '
                  'echo "end $OVERCAP_TASK_ID $(date +%s%N)" >> "$FACTS/edges"; [ $OVERCAP_TASK_ID != 4 ] || exit 9')
        job_id = self.submit("--array", "0-9%3", *shell(script))
        self.assertEqual(self.overcap("wait", job_id, deadline=3 * DEADLINE).status, 9)
        job = self.job(job_id)
        self.assertEqual(job["state"], "failed", job)
        self.assertEqual(job["tasks"], {"total": 10, "queued": 0, "running": 0, "succeeded": 9, "failed": 1, "lost": 0,
                                        "not_run": 0})
        self.assertEqual(job["first_failed_task"], 4, job)
        edges = sorted((int(time), word, task) for word, task, time in map(str.split, self.lines("edges")))
        self.assertEqual(sorted(int(task) for _, word, task in edges if word == "start"), list(range(10)))
        now = most = 0
        for _, word, _ in edges:
            now += 1 if word == "start" else -1
            most = max(most, now)
        self.assertLessEqual(most, 3)
        for task in (0, 4, 9):
            self.assertEqual(self.ok("logs", "--task", str(task), job_id).out, f"task {task}\n")
        tasks = self.jobs("query", "--tasks", job_id)
        self.assertEqual([task["state"] for task in tasks], ["succeeded"] * 4 + ["failed"] + ["succeeded"] * 5)
        self.slurm.wait_sacct(f"{self.slurm_id(job_id)}_4", "FAILED")  # it is one of Slurm's arrays

    def test_an_array_in_a_table_has_run_since_its_first_task_began(self):
        job_id = self.submit("--array", "0-1%1", *shell("[ $OVERCAP_TASK_ID = 1 ] || exec sleep 3; exec sleep 600"))
        self.until(lambda: self.job(job_id)["tasks"]["succeeded"] == 1, "the first task to end")
        self.until(lambda: self.job(job_id)["tasks"]["running"] == 1, "the second one to run")
        head, *rows = self.ok("ls").out.splitlines()
        row = next(row for row in rows if row.startswith(job_id))
        elapsed = row[:head.index("ELAPSED") + len("ELAPSED")].split()[-1]
        self.assertGreaterEqual(float(elapsed.removesuffix("s")), 3, row)

    def test_a_job_after_another(self):
        first = self.submit("--hold", *shell('echo first >> "$FACTS/order"'))
        then = self.submit("--after", first, *shell('echo then >> "$FACTS/order"'))
        self.assertIn(self.job(then)["state"], ("queued", "held"))
        self.ok("release", first)
        self.ok("wait", first, then)
        self.assertEqual(self.lines("order"), ["first", "then"])

    def test_a_job_after_one_that_fails_does_not_run_and_after_any_does(self):
        first = self.submit("--hold", *shell("exit 2"))
        never = self.submit("--after", first, *shell(RAN))
        anyway = self.submit("--after-any", first, *shell('echo anyway >> "$FACTS/order"'))
        self.ok("release", first)
        self.ok("wait", anyway)
        done = self.overcap("wait", never)
        self.assertEqual((done.status, self.job(never)["state"]), (130, "cancelled"), str(done))
        self.assertIn("waits for", self.job(never)["reason"])
        self.assertEqual((self.lines("ran"), self.lines("order")), ([], ["anyway"]))

    # ---- while it waits and runs

    def test_hold_and_release(self):
        job_id = self.submit("--hold", *shell(RAN))
        self.assertEqual(self.job(job_id)["state"], "held")
        self.assertEqual(self.slurm.job_reason(self.slurm_id(job_id)), "JobHeldUser")
        self.ok("release", job_id)
        self.ok("wait", job_id)
        self.assertEqual(self.lines("ran"), ["ran"])

    def test_abort_of_one_that_waits(self):
        job_id = self.submit("--hold", *shell(RAN))
        self.ok("abort", "--reason", "no need", job_id)
        self.assertEqual(self.job(job_id)["state"], "cancelled")
        self.assertEqual(self.overcap("wait", job_id).status, 130)
        self.assertIn(self.slurm.job_state(self.slurm_id(job_id)), ("CANCELLED", ""))
        self.assertEqual(self.lines("ran"), [])

    def test_abort_of_one_that_runs_ends_all_that_it_started(self):
        script = f"setsid sleep 301 & {TELL}; trap 'echo told' TERM; while :; do sleep 0.05; done"
        job_id = self.submit("--nodes", "2", *shell(script))
        for rank in range(2):
            self.fact(f"place-{rank}")
        self.ok("abort", job_id)
        job = self.job(job_id)
        self.assertEqual((job["state"], job["attempt"]), ("cancelled", 1), job)
        self.assertIn("told", self.rank_log(job_id).splitlines())  # Slurm tells the shell's children, too, which it reports
        self.until(lambda: not self.processes(), "all of it to be gone")
        self.assertEqual(self.overcap("abort", job_id).status, 0, "once more changes nothing")

    def test_resubmit_runs_the_same_code_again(self):
        self.write("what.txt", "then\n")
        first = self.submit(*shell('cat what.txt; exit 3'))
        self.assertEqual(self.overcap("wait", first).status, 3)
        self.write("what.txt", "now\n")
        second = self.id_in(self.ok("resubmit", first))
        self.assertEqual(self.overcap("wait", second).status, 3)
        self.assertEqual((self.rank_log(second), self.job(second)["resubmit_of"]), ("then\n", first))

    def test_logs_are_followed_while_it_runs(self):
        job_id = self.submit(*shell(f"echo one; {self.gate()}; echo two; exit 6"))
        follow = self.start("logs", "-f", job_id)
        self.assertEqual(follow.stdout.readline(), b"one\n")
        self.open_gate()
        done = self.finish(follow)
        self.assertEqual((done.status, done.out), (6, "two\n"), str(done))

    def test_wait_gives_up_and_ls_shows_it_running(self):
        job_id = self.submit(*shell(f"{TELL}; {self.gate()}"))
        self.fact("place-0")
        done = self.overcap("wait", "--timeout", "1", job_id)
        self.assertEqual(done.status, 124, str(done))
        self.assertEqual((self.job(job_id)["state"], self.ls()[job_id]["state"]), ("running", "running"))
        self.assertEqual(list(self.ls("--status", "running")), [job_id])
        self.open_gate()
        self.ok("wait", job_id)

    def test_exec_runs_beside_the_job_on_its_node(self):
        self.write("here.txt", "frozen\n")
        job_id = self.submit("--slurm-args", "--nodelist=n2", "--env", "MINE=1", *shell(f"{TELL}; {self.gate()}"))
        self.fact("place-0")
        done = self.ok("exec", job_id, "--", "/bin/sh", "-c", "hostname; cat here.txt; echo $MINE $OVERCAP_JOB_ID")
        self.assertEqual(done.out, f"n2\nfrozen\n1 {job_id}\n")
        self.assertEqual(self.overcap("exec", job_id, "--", "/bin/sh", "-c", "exit 9").status, 9)
        self.open_gate()
        self.ok("wait", job_id)
        self.assertEqual(self.overcap("exec", job_id, "--", "true").status, 6)

    # ---- other people's ways

    def test_a_script_with_sbatch_directives(self):
        self.write("job.sh", "#!/bin/bash\n#SBATCH --job-name=mine\n#SBATCH -N 2\n#SBATCH --time=7\n#SBATCH --nice=5\n"
                   f'{RAN}\nsrun -n2 -N2 hostname | sort\necho "args $1"\nexit 3\n')
        job_id = self.submit("job.sh", "word")
        shown = self.scontrol(job_id)
        self.assertEqual((shown["JobName"], shown["TimeLimit"], shown["NumNodes"].partition("-")[0], shown["Nice"]),
                         ("mine", "00:07:00", "2", "5"), shown)
        self.assertEqual(self.overcap("wait", job_id).status, 3)
        self.assertEqual(self.lines("ran"), ["ran"], "a batch script runs once")
        self.assertEqual(self.rank_log(job_id), "n1\nn2\nargs word\n")

    def test_a_sweep_makes_one_array_and_prints_its_table(self):
        self.write("job.sh", "#!/bin/bash\n#SBATCH --job-name=sweep\n"
                   'echo "$OVERCAP_TASK_ID $lr $gamma" >> "$FACTS/ran"\n')
        done = self.ok("submit", "--sweep", "lr=1e-4,1e-3", "--sweep", "gamma=0.9,1", "job.sh")
        job_id = next(line for line in done.out.splitlines() if re.fullmatch(r"\S+_[0-9]+_[0-9a-f]{8}", line))
        self.ok("wait", job_id)
        self.assertEqual(sorted(self.lines("ran")), ["0 1e-4 0.9", "1 1e-4 1", "2 1e-3 0.9", "3 1e-3 1"])
        table = done.out + done.err
        for row in (r"0\s+1e-4\s+0\.9\b", r"1\s+1e-4\s+1\b", r"2\s+1e-3\s+0\.9\b", r"3\s+1e-3\s+1\b", r"lr\s+gamma"):
            self.assertRegex(table, row)
        self.assertEqual(self.job(job_id)["tasks"]["succeeded"], 4)

    def test_jobs_that_overcap_did_not_submit(self):
        number = self.slurm.submit("-J", "foreign", "-H", "-o", "/dev/null", "--wrap", "exec sleep 300")
        # What was read of the queue serves everybody for some seconds.
        job = self.until(lambda: self.ls().get(str(number)), "ls to have it")
        self.assertEqual((job["state"], job["name"]), ("held", "foreign"), job)
        self.assertIn("foreign", self.ok("ls").out)
        self.ok("release", str(number))
        self.slurm.wait_state(number, "RUNNING")
        self.assertEqual(self.job(str(number))["id"], str(number))
        self.ok("abort", str(number))
        self.slurm.wait_state(number, "CANCELLED")

    def test_without_a_configuration_the_cluster_is_there_by_itself(self):
        (pathlib.Path(self.env["XDG_CONFIG_HOME"]) / "overcap" / "overcap.yaml").unlink()
        self.assertIn("slurm", self.ok("cluster", "list").out)
        job_id = self.submit("-c", "slurm", *shell(RAN))
        self.ok("-c", "slurm", "wait", job_id)
        self.assertEqual(self.lines("ran"), ["ran"])

    @unittest.skipUnless(os.geteuid() == 0, "NOT TESTED: mounting over /run needs root")
    def test_a_configless_login_node_submits_to_its_slurm(self):
        (pathlib.Path(self.env["XDG_CONFIG_HOME"]) / "overcap" / "overcap.yaml").unlink()
        etc = pathlib.Path(self.env.pop("SLURM_CONF")).parent
        script = self.write("as_with_sackd.sh", 'mount -t tmpfs tmpfs /run && mkdir -p /run/slurm && ln -s "$1" /run/slurm/conf && shift && exec "$@"\n')
        done = self.slurm.run(["unshare", "-m", "sh", script, etc, self.binary, "submit", "--hold", "true"], env=self.env, cwd=self.project)
        self.assertEqual(done.returncode, 0, done.stderr)
        job_id = done.stdout.strip()
        self.assertEqual(self.scontrol(job_id)["JobState"], "PENDING")
        self.ok("-c", "slurm", "abort", job_id, env={"SLURM_CONF": f"{etc}/slurm.conf"})


def has_torch():
    words = [NODE_PYTHON, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]
    return os.path.exists(NODE_PYTHON) and subprocess.run(words, timeout=60, check=False).returncode == 0


ALL_REDUCE = """
import torch, torch.distributed as dist
import overcap.torch
world = overcap.torch.setup(timeout=120)
total = torch.tensor([world.rank + 1.0])
dist.all_reduce(total)
print(world.rank, world.world_size, world.node_rank, int(total.item()), flush=True)
overcap.torch.cleanup()
"""


class Gpus(SlurmJobsRig):
    """Without accounts, and with GPUs of several kinds."""
    cluster = {"nodes": 3, "gpus": 2, "gpu_types": ("a40", "2080_ti", "rtx_6000")}

    def test_gpu_types_choose_the_node_and_the_ranks_see_their_gpus(self):
        say = shell('echo "$(hostname) $RANK $WORLD_SIZE [$CUDA_VISIBLE_DEVICES]"')
        one = self.submit("-n", "1", "--gpu-type", "2080_ti|rtx_6000", *say)
        two = self.submit("-n", "2", "--gpu-type", "rtx_6000", *say)
        four = self.submit("-n", "4", "--nodes", "2", *say)
        self.ok("wait", one, two, four)
        self.assertRegex(self.rank_log(one), r"^n[23] 0 1 \[[01]\]\n$")
        for rank in range(2):
            host, *place, gpus = self.rank_log(two, rank).split()
            self.assertEqual((host, place), ("n3", [str(rank), "2"]))
            self.assertIn(gpus, ("[0,1]", f"[{rank}]"))
        hosts = [self.rank_log(four, rank).split()[0] for rank in range(4)]
        self.assertEqual((hosts[0], hosts[2]), (hosts[1], hosts[3]))
        self.assertNotEqual(hosts[0], hosts[2])

    def test_more_gpus_than_a_type_has_are_refused(self):
        done = self.overcap("submit", "-n", "3", "--gpu-type", "a40", *shell(RAN))
        self.assertEqual((done.status, done.out), (2, ""), str(done))
        done = self.overcap("submit", "-n", "1", "--gpu-type", "v100", *shell(RAN))
        self.assertEqual((done.status, done.out), (2, ""), str(done))

    @unittest.skipUnless(has_torch(), f"NOT TESTED: no torch for {NODE_PYTHON} (tools/install_packages test)")
    def test_torch_adds_up_over_two_nodes(self):
        self.write("sum.py", ALL_REDUCE)
        self.env.update(PYTHONPATH=str(REPOSITORY / "python"), PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1",
                        CUDA_VISIBLE_DEVICES="")
        job_id = self.submit("-n", "0", "--nodes", "2", "--ranks-per-node", "1", "--", NODE_PYTHON, "sum.py")
        done = self.overcap("wait", job_id, deadline=6 * DEADLINE)
        self.assertEqual(done.status, 0, self.rank_log(job_id) + self.rank_log(job_id, 1))
        self.assertEqual((self.rank_log(job_id), self.rank_log(job_id, 1)), ("0 2 0 3\n", "1 2 1 3\n"))


if __name__ == "__main__":
    main()
