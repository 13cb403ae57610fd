# SPDX-License-Identifier: Apache-2.0
"""Site files as a user meets them: shipped ones are read, wrong ones are named, the nearest place wins."""
import os
import subprocess

from overcap_rig import REPOSITORY, Rig, main

EXAMPLES = REPOSITORY / "examples/sites"
PLANS = {
    "aurora": "site aurora\nmodule frameworks\n",
    "frontier": "site frontier\nmodule PrgEnv-gnu\nmodule rocm\nmodule craype-accel-amd-gfx90a\nmodule miniforge3\n"
                "conda_environment base\nconda conda\n",
    "perlmutter": "site perlmutter\nmodule pytorch\n",
    "polaris": "site polaris\nmodule_path /soft/modulefiles\nmodule conda\nconda_environment base\nconda conda\n",
    "sirius": "site sirius\nmodule_path /soft/modulefiles\nmodule conda\nconda_environment base\nconda conda\n",
    "sophia": "site sophia\nmodule conda\nconda_environment base\nconda conda\n",
    "sunspot": "site sunspot\nmodule frameworks\n",
}


class SiteFiles(Rig):
    def plan(self, **env):
        return self.ok("shell-init", "--python-plan", env=env).out

    def test_every_shipped_file_is_read(self):
        self.assertEqual({path.stem for path in EXAMPLES.glob("*")}, set(PLANS))
        for name, plan in PLANS.items():
            self.assertEqual(self.plan(OVERCAP_SITE=str(EXAMPLES / f"{name}.yaml")), plan)

    def test_built_in_files_are_found_without_any_file_on_disk(self):
        self.assertEqual(self.plan(NERSC_HOST="perlmutter"), PLANS["perlmutter"])
        self.assertEqual(self.plan(), "conda_if_found\n")

    def test_a_users_file_wins_over_a_built_in_one_and_a_named_one_over_both(self):
        host = os.uname().nodename.split(".")[0]
        self.write(".config/overcap/sites/mine.yaml", f"match: {{hosts: ['{host}']}}\nmodules: [mine]\n",
                   base=self.root / "user")
        self.assertEqual(self.plan(NERSC_HOST="perlmutter"), "site mine\nmodule mine\n")
        named = self.write("named.yaml", "modules: [named]\n")
        self.assertEqual(self.plan(OVERCAP_SITE=str(named)), "site named\nmodule named\n")
        self.assertEqual(self.plan(OVERCAP_SITE="named.yaml"), "site named\nmodule named\n")
        self.assertEqual(self.plan(OVERCAP_SITE="/dev/null"), "conda_if_found\n")

    def test_a_broken_file_is_named_with_its_line(self):
        path = self.write(".config/overcap/sites/polaris.yaml", "name: polaris\n\ngpu: 4\n", base=self.root / "user")
        done = self.refused("shell-init", "--python-plan", says=(f"{path}:3: unknown key 'gpu'", "did you mean 'gpus'?"))
        self.assertEqual(len(done.err.splitlines()), 2, "the message and its hint")

    def test_bad_input_is_refused_in_one_line(self):
        cases = {
            "gpus: four\n": "'gpus' must be a whole number, not 'four'",
            "gpus: 4\ngpus: 5\n": "named.yaml:2: key 'gpus' stands here a second time",
            "modules: conda\n": "'modules' must be a list",
            "match: {hosts: [*.org]}\n": "must stand in quotes",
            "a: [\n": "named.yaml:",
            "gpus: 4\n---\ngpus: 5\n": "behind the end of the document",
            "x: " + "[" * 5000: "named.yaml:1:",
            "modules: [" + "a," * 40000 + "]": "larger than 64 KiB",
            b"\xff\xfe\x00gpus": "named.yaml:",
        }
        for text, says in cases.items():
            self.write("named.yaml", text)
            self.refused("shell-init", "--python-plan", says=says, env={"OVERCAP_SITE": "named.yaml"})
        self.refused("shell-init", "--python-plan", says="no site file 'gone.yaml'", env={"OVERCAP_SITE": "gone.yaml"})
        self.refused("shell-init", "--python-plan", says="is no plain file", env={"OVERCAP_SITE": str(self.project)})

    def test_a_pipe_in_the_place_of_a_file_does_not_hang(self):
        subprocess.run(["mkfifo", str(self.project / "pipe")], check=True)
        self.refused("shell-init", "--python-plan", says="is no plain file", env={"OVERCAP_SITE": "pipe"})


if __name__ == "__main__":
    main()
