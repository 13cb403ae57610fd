# SPDX-License-Identifier: Apache-2.0
"""People who exist only inside a test cluster: its /etc/passwd and /etc/group are the real ones and a few lines more.

Only root can be several people; elsewhere whoever asks for users is skipped, and told so."""
import os
import pathlib
import unittest

FIRST_ID = 23000


def need_root(users):
    if users and os.geteuid() != 0:
        raise unittest.SkipTest("NOT TESTED: a cluster with several users needs root")


def add_users(machines, folder, users):
    """Before anything looks a user up, and before nodes are added (they get these mounts from the login node)."""
    homes = folder / "home"
    homes.mkdir()
    people, groups = [], []
    for number, name in enumerate(users, FIRST_ID):
        home = homes / name
        home.mkdir(mode=0o700)
        os.chown(home, number, number)
        people.append(f"{name}:x:{number}:{number}::{home}:/bin/bash\n")
        groups.append(f"{name}:x:{number}:\n")
    give_own_etc(machines, folder)
    for real, lines in (("/etc/passwd", people), ("/etc/group", groups)):
        private = folder / "etc" / pathlib.Path(real).name
        private.write_text(pathlib.Path(real).read_text().rstrip("\n") + "\n" + "".join(lines))
        machines.inside_switch(["cp", str(private), real])


def give_own_etc(machines, folder):
    """A layer over all of /etc. A file mounted over /etc/passwd would vanish from the cluster as soon as useradd, run by another
    suite on the real machine, replaces the real /etc/passwd: the kernel detaches what is mounted on a file that is replaced."""
    layer = folder / "etc.layer"
    layer.mkdir()
    machines.inside_switch(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", str(layer)])
    machines.inside_switch(["mkdir", f"{layer}/upper", f"{layer}/work"])
    machines.inside_switch(["mount", "-t", "overlay", "-o", f"lowerdir=/etc,upperdir={layer}/upper,workdir={layer}/work",
                            "overlay", "/etc"])
    machines.inside_switch(["mount", "--bind", str(machines.hosts_file), "/etc/hosts"])


def as_user(folder, user, argv, environment):
    """(argv, environment) that run argv as somebody of the cluster."""
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--inh-caps=-all"]
    own = {"USER": user, "LOGNAME": user, "HOME": f"{folder}/home/{user}", "TMPDIR": "/tmp"}  # that of the tests is not theirs
    return [*become, *argv], {**environment, **own}
