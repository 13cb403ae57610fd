# SPDX-License-Identifier: Apache-2.0
"""What `overcap shell-init` prints, in real shells: it sets up, says what fails, and leaves the shell as it was."""
import os
import shutil
import subprocess
import sys
import unittest

from overcap_rig import DEADLINE, Rig, main

SHELLS = {"bash": ["bash", "--norc", "--noprofile"], "zsh": ["zsh", "-f"]}
SYSTEM_PYTHON = "/usr/bin/python3"
# Names that the shells themselves make while they run; not ours.
OWN_NAMES = {"PIPESTATUS", "BASH_LINENO", "FUNCNAME", "BASH_ARGV", "BASH_ARGC", "_", "pipestatus", "ZSH_SCRIPT", "COLUMNS", "LINES"}

# A uv that makes real virtual environments, quickly: without pip.
FAKE_UV = f"""#!/bin/sh
echo "$@" >> "$FACTS/uv"
[ -z "$UV_FAILS" ] || {{ echo first; echo 'error: no interpreter' >&2; exit 2; }}
for last; do :; done
exec {SYSTEM_PYTHON} -m venv --without-pip --system-site-packages "$last"
"""

# A conda whose hook defines the shell function, as the real one does; it needs unset variables to be allowed.
FAKE_CONDA = """#!/bin/sh
[ "$1" = shell ] && exit 2
cat <<'END'
conda() {
  echo "$UNSET_HERE$*" >> "$FACTS/conda"
  [ "$2" != broken ] || return 1
  export CONDA_PREFIX="/soft/conda/2024-04-29/mconda3"
}
END
"""
FAKE_MICROMAMBA = """#!/bin/sh
[ "$1" = shell ] || exit 2
echo "$@" >> "$FACTS/hook"
cat <<'END'
micromamba() { echo "$* in $MAMBA_ROOT_PREFIX" >> "$FACTS/micromamba"; export CONDA_PREFIX="$MAMBA_ROOT_PREFIX/envs/$2"; }
END
"""


class InShells(Rig):
    """Runs scripts in each shell that is here; one that is missing is named."""

    def setUp(self):
        super().setUp()
        self.bin = self.root / "bin"
        self.bin.mkdir()
        os.symlink(self.binary, self.bin / "overcap")
        self.env["PATH"] = f"{self.bin}:{os.environ.get('PATH', '/usr/bin:/bin')}"
        for name in ("PBS_O_WORKDIR", "SLURM_SUBMIT_DIR", "VIRTUAL_ENV", "CONDA_PREFIX"):
            self.env.pop(name, None)
        self.env["OVERCAP_SITE"] = "/dev/null"

    def program(self, name, text):
        return self.write(name, text, mode=0o755, base=self.bin)

    def site(self, text):
        self.env["OVERCAP_SITE"] = str(self.write("here.yaml", text, base=self.root))

    def script(self, shell, text, flags=(), **options):
        """Runs the text after the functions were evaluated; gives the finished process."""
        body = f'eval "$(overcap shell-init {shell})"\n{text}\n'
        path = self.write(f"script.{shell}", body, base=self.root)
        return subprocess.run([*SHELLS[shell], *flags, str(path)], env=self.env, cwd=options.pop("cwd", self.project),
                              capture_output=True, text=True, timeout=4 * DEADLINE, check=False, stdin=subprocess.DEVNULL)

    def each(self):
        for shell in SHELLS:
            if shutil.which(shell) is None:
                print(f"NOT TESTED: {self.id()} in {shell}, which is not installed", file=sys.stderr)
                continue
            shutil.rmtree(self.project / "venvs", ignore_errors=True)
            for fact in self.facts.iterdir():
                fact.unlink()
            yield shell

    def works(self, shell, text, **options):
        done = self.script(shell, text, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def fails(self, shell, text, says):
        """The function must say it in one line, return non-zero, and leave the shell alive."""
        done = self.script(shell, f'{text} && echo WORKED || echo "status $?"\necho alive\n')
        self.assertRegex(done.stdout, r"status [1-9]\d*\nalive\n$")
        self.assertEqual(done.returncode, 0)
        self.assertIn(says, done.stderr)
        self.assertTrue(done.stderr.startswith("overcap: "), done.stderr)
        return done


class Loading(InShells):
    def test_an_unknown_shell_is_refused_in_one_line(self):
        self.refused("shell-init", "fish", says=("no functions for the shell 'fish'", "bash, zsh"))
        self.refused("shell-init", says="which shell?")

    def test_it_can_be_evaluated_twice_under_strict_options_and_says_nothing(self):
        for shell in self.each():
            again = f'eval "$(overcap shell-init {shell})"'
            self.assertEqual(self.works(shell, f"set -euo pipefail\n{again}\n{again}\n", flags=["-e", "-u"]), "")

    def test_it_works_at_a_prompt_too(self):
        for shell in self.each():
            done = subprocess.run(
                [*SHELLS[shell], "-i", "-c",
                 f'eval "$(overcap shell-init {shell})"; eval "$(overcap shell-init {shell})"; alias launch'],
                env=self.env, cwd=self.project, capture_output=True, text=True, timeout=DEADLINE, check=False,
                stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{self.binary} launch", done.stdout)
            self.assertNotIn("rror", done.stderr)
            self.assertNotIn("not found", done.stderr)

    def test_only_documented_names_are_left(self):
        names = {"bash": ("compgen -A function", "compgen -v"),
                 "zsh": ("print -rl -- ${(k)functions}", "print -rl -- ${(k)parameters}")}
        self.program("uv", FAKE_UV)
        for shell in self.each():
            functions, variables = names[shell]
            listing = f'{functions} | sed "s/^/f /"\n{variables} | sed "s/^/v /"\n'
            before = subprocess.run([*SHELLS[shell], "-c", listing], env=self.env, capture_output=True, text=True,
                                    timeout=DEADLINE, check=True).stdout
            text = f"overcap_setup_python >/dev/null\ndeactivate\n{listing}"
            after = self.works(shell, text)
            new = {line for line in set(after.splitlines()) - set(before.splitlines()) if line[2:] not in OWN_NAMES}
            ours = {line for line in new if line[2:].startswith("_overcap")}
            ours |= {line for line in new if line == "v PS1" or line.startswith("v _OLD_VIRTUAL")}  # venv's own leftovers
            public = {"f overcap_setup_env", "f overcap_setup_job", "f overcap_setup_python", "f launch"}
            self.assertEqual(new - ours, public, shell)

    def test_launch_hands_its_words_on(self):
        for shell in self.each():
            done = self.script(shell, "unalias launch\nlaunch --help\nlaunch --no-such-flag 'a b'\n")
            self.assertIn("overcap launch", done.stdout)
            self.assertIn("no-such-flag", done.stderr)


class Completing(InShells):
    def test_bash_completes_launch_as_overcap_launch(self):
        text = """
COMP_WORDS=(launch --np); COMP_CWORD=1; _overcap_launch; echo "${COMPREPLY[*]}"
COMP_WORDS=(overcap launch --pp); COMP_CWORD=2; _overcap; echo "${COMPREPLY[*]}"
COMP_WORDS=(launch --pp); COMP_CWORD=1; _overcap_launch; echo "${COMPREPLY[*]}"
complete -p launch overcap
"""
        lines = self.works("bash", text).splitlines()
        self.assertEqual(lines[1], "--ppn")
        self.assertEqual(lines[2], lines[1])
        self.assertIn("complete -o default -F _overcap_launch launch", lines)
        self.assertIn("complete -o default -F _overcap overcap", lines)

    @unittest.skipUnless(shutil.which("zsh"), "NOT TESTED: zsh is not installed")
    def test_zsh_registers_its_completions_once_compinit_has_run(self):
        text = 'autoload -Uz compinit && compinit -D -u\n%s\nprint -r -- "$_comps[overcap] ${_comps[launch]-}"\n'
        self.assertEqual(self.works("zsh", text % 'eval "$(overcap shell-init zsh)"'), "_overcap _overcap_launch\n")
        self.assertEqual(self.works("zsh", text % 'set -u; eval "$(overcap completion zsh)"'), "_overcap \n")

    @unittest.skipUnless(shutil.which("zsh"), "NOT TESTED: zsh is not installed")
    def test_zsh_finds_both_scripts_well_formed(self):
        for command in (("completion", "zsh"), ("shell-init", "zsh")):
            path = self.write("script", self.ok(*command).out)
            done = subprocess.run(["zsh", "-n", str(path)], capture_output=True, text=True, timeout=DEADLINE, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("zsh"), "NOT TESTED: zsh is not installed")
    def test_zsh_offers_the_flags_of_launch(self):
        # compadd is replaced: what it would offer is printed instead.
        text = """autoload -Uz compinit && compinit -D -u
eval "$(overcap shell-init zsh)"
compadd() { shift; print -r -- "$*"; }
words=(launch --p) CURRENT=2
_overcap_launch
"""
        self.assertIn("--ppn", self.works("zsh", text))


class Job(InShells):
    def test_it_exports_what_env_says_and_shows_it(self):
        exported = self.ok("env", "--export", env={"OVERCAP_SITE": "/dev/null"}).out
        names = [line.split("=")[0].removeprefix("export ") for line in exported.splitlines() if line.startswith("export ")]
        for shell in self.each():
            shown = self.works(shell, "set -eu\novercap_setup_job\nprintenv " + (names[0] if names else "HOME"))
            self.assertIn(os.uname().nodename.split(".")[0], shown)
            self.assertGreaterEqual(len(shown.splitlines()), 4)

    def test_when_overcap_fails_it_says_so_and_python_is_left_alone(self):
        self.site("gpu: 4\n")
        for shell in self.each():
            done = self.fails(shell, "overcap_setup_env", "the job's environment is not set up")
            self.assertIn("here.yaml:1: unknown key 'gpu'", done.stderr)
            self.assertFalse((self.project / "venvs").exists())


def can_make_venvs():
    return subprocess.run([SYSTEM_PYTHON, "-c", "import ensurepip"], check=False, capture_output=True).returncode == 0


class Python(InShells):
    @unittest.skipUnless(can_make_venvs(), "NOT TESTED: python3-venv is not installed")
    def test_a_real_virtual_environment_is_made_then_reused_in_a_folder_with_blanks(self):
        self.env["PATH"] = f"{self.bin}:/usr/bin:/bin"
        for shell in self.each():
            folder = self.root / f"my {shell} 'project'"
            folder.mkdir()
            text = """set -euo pipefail
overcap_setup_python
command -v python3
python3 -c 'import sys; print(sys.prefix)'
grep ^include-system-site "$VIRTUAL_ENV/pyvenv.cfg"
deactivate
overcap_setup_python
overcap_setup_python
"""
            version = subprocess.run([SYSTEM_PYTHON, "-c", "import sys; print('python%d.%d' % sys.version_info[:2])"],
                                     capture_output=True, text=True, check=True).stdout.strip()
            venv = folder / "venvs" / version
            self.assertEqual(self.works(shell, text, cwd=folder).splitlines(), [
                f"python: made the virtual environment '{venv}'", f"{venv}/bin/python3", str(venv),
                "include-system-site-packages = true", f"python: using the virtual environment '{venv}'",
                f"python: keeping the active virtual environment '{venv}'"])

    def test_uv_makes_it_when_there_is_one(self):
        self.program("uv", FAKE_UV)
        for shell in self.each():
            self.works(shell, "overcap_setup_python")
            (venv,) = (self.project / "venvs").iterdir()
            self.assertRegex((self.facts / "uv").read_text(),
                             rf"^venv --quiet --system-site-packages --python \S*/python3 {venv}\n$")

    def test_it_stands_where_the_job_was_submitted(self):
        self.program("uv", FAKE_UV)
        for shell in self.each():
            for name in ("PBS_O_WORKDIR", "SLURM_SUBMIT_DIR"):
                folder = self.root / f"{shell} {name}"
                folder.mkdir()
                self.env[name] = str(folder)
                self.works(shell, "overcap_setup_python")
                self.assertEqual(len(list((folder / "venvs").iterdir())), 1)
                del self.env[name]

    def test_the_sites_modules_are_loaded_in_order_then_conda_is_activated(self):
        self.program("uv", FAKE_UV)
        self.program("conda", FAKE_CONDA)
        self.site("name: big\nmodule_paths: ['/soft/my modules']\nmodules: [gcc, 'conda/2024']\n"
                  "python: {conda: conda, conda_environment: base}\n")
        module = 'module() { echo "$1<$2>" >> "$FACTS/module"; [ -z "$NO_SUCH_VARIABLE" ]; }\n'
        for shell in self.each():
            out = self.works(shell, f"set -eu\n{module}overcap_setup_python")
            self.assertEqual((self.facts / "module").read_text(), "use</soft/my modules>\nload<gcc>\nload<conda/2024>\n")
            self.assertEqual((self.facts / "conda").read_text(), "activate base\n")
            self.assertIn("/venvs/2024-04-29'", out)

    def test_micromamba_of_a_folder(self):
        self.program("uv", FAKE_UV)
        root = self.root / "my mamba"
        self.write("bin/micromamba", FAKE_MICROMAMBA, mode=0o755, base=root)
        self.site(f"python: {{conda: micromamba, conda_root: '{root}', conda_environment: ml}}\n")
        for shell in self.each():
            out = self.works(shell, "overcap_setup_python")
            self.assertEqual((self.facts / "hook").read_text(), f"shell hook --shell {shell}\n")
            self.assertEqual((self.facts / "micromamba").read_text(), f"activate ml in {root}\n")
            self.assertIn("/venvs/ml'", out)

    def test_conda_is_used_when_found_where_no_site_says_anything(self):
        self.program("uv", FAKE_UV)
        self.program("conda", FAKE_CONDA)
        for shell in self.each():
            self.assertIn("/venvs/2024-04-29'", self.works(shell, "overcap_setup_python"))

    def test_an_active_conda_environment_is_kept(self):
        self.program("uv", FAKE_UV)
        self.site("modules: [nothing]\npython: {conda: conda}\n")
        for shell in self.each():
            out = self.works(shell, "export CONDA_PREFIX='/home/me/envs/my env'\novercap_setup_python")
            self.assertIn("keeping the active conda environment '/home/me/envs/my env'", out)
            self.assertIn("/venvs/my env'", out)

    def test_the_site_names_folder_and_python(self):
        self.program("uv", FAKE_UV)
        self.site(f"python: {{program: {SYSTEM_PYTHON}, venv: ours}}\n")
        for shell in self.each():
            self.assertIn(f"'{self.project}/venvs/ours'", self.works(shell, "overcap_setup_python"))
            self.assertIn(f"--python {SYSTEM_PYTHON} ", (self.facts / "uv").read_text())


class Failing(InShells):
    def test_a_module_that_is_missing(self):
        self.site("name: big\nmodules: [conda]\n")
        for shell in self.each():
            self.fails(shell, "overcap_setup_python", "wants 'module load conda', and this shell has no 'module' command")
            self.fails(shell, "module() { return 1; }\novercap_setup_python", "'module load conda' failed")
            self.assertFalse((self.project / "venvs").exists())

    def test_a_conda_that_is_missing_or_fails(self):
        self.site("name: big\npython: {conda: conda, conda_environment: broken}\n")
        for shell in self.each():
            self.fails(shell, "overcap_setup_python", "the site 'big' wants 'conda', which is not on PATH")
        self.program("conda", FAKE_CONDA)
        for shell in self.each():
            self.fails(shell, "overcap_setup_python", "'conda activate broken' failed")
        self.program("conda", "#!/bin/sh\nexit 3\n")
        for shell in self.each():
            self.fails(shell, "overcap_setup_python", "does not say how this shell uses it")

    def test_a_python_that_is_missing(self):
        self.site("python: {program: python9}\n")
        for shell in self.each():
            self.fails(shell, "overcap_setup_python", "no 'python9' is on PATH")

    def test_a_folder_that_cannot_be_made(self):
        (self.project / "file").write_text("")
        for shell in self.each():
            self.fails(shell, "touch venvs\novercap_setup_python", f"cannot make the folder '{self.project}/venvs/python")
            os.unlink(self.project / "venvs")
            self.fails(shell, "PBS_O_WORKDIR=/no/such/folder\novercap_setup_python", "'/no/such/folder', where the job")

    def test_a_maker_that_fails_leaves_no_folder_behind(self):
        self.program("uv", FAKE_UV)
        self.env["UV_FAILS"] = "1"
        for shell in self.each():
            done = self.fails(shell, "overcap_setup_python", "cannot make the virtual environment")
            self.assertTrue(done.stderr.endswith(": error: no interpreter\n"), done.stderr)
            self.assertEqual(list((self.project / "venvs").iterdir()), [])

    def test_a_folder_that_is_no_virtual_environment_is_left_alone(self):
        self.site("python: {venv: ours}\n")
        for shell in self.each():
            self.write("venvs/ours/notes.txt", "mine")
            self.fails(shell, "overcap_setup_python", "venvs/ours' is no working virtual environment")
            self.assertEqual((self.project / "venvs/ours/notes.txt").read_text(), "mine")

    def test_a_virtual_environment_that_has_moved(self):
        self.program("uv", FAKE_UV)
        self.site("python: {venv: ours}\n")
        for shell in self.each():
            self.works(shell, "overcap_setup_python")
            moved = self.root / f"moved {shell}"
            shutil.move(self.project / "venvs", moved / "venvs")
            done = self.fails(shell, f"cd '{moved}'\novercap_setup_python", "has moved since; remove it")
            self.assertIn(str(self.project / "venvs/ours"), done.stderr)

    def test_the_name_of_a_folder_is_never_run(self):
        self.program("uv", FAKE_UV)
        for shell in self.each():
            for name in ("$(touch $FACTS/evil)", "`touch $FACTS/evil`", 'a"; touch $FACTS/evil; "b'):
                self.env["PBS_O_WORKDIR"] = str(self.project / name.replace("/", "_"))
                self.fails(shell, "overcap_setup_python", "no virtual environment can stand at")
                self.assertFalse((self.facts / "evil").exists())

    def test_options_traps_and_ifs_are_as_before(self):
        """After a function that works and one that fails, under strict options and without."""
        self.program("uv", FAKE_UV)
        state = {"bash": 'set +o; shopt -p; trap; printf "%q\\n" "$IFS" "$-"',
                 "zsh": 'setopt; trap; print -r -- "${(q)IFS}"'}
        for shell in self.each():
            for options in ("", "set -euo pipefail", "set -eu\nset -o noclobber\nset -a"):
                out = self.works(shell, f"""{options}
trap 'echo bye' EXIT
IFS=:
now() {{ {state[shell]}; }}
now >| "$FACTS/before"
overcap_setup_python >/dev/null
deactivate
now >| "$FACTS/worked"
PBS_O_WORKDIR=/no/such/folder overcap_setup_python 2>/dev/null || :
now >| "$FACTS/failed"
""")
                self.assertEqual(out, "bye\n")
                before = (self.facts / "before").read_text()
                self.assertEqual((self.facts / "worked").read_text(), before)
                self.assertEqual((self.facts / "failed").read_text(), before)


if __name__ == "__main__":
    main()
