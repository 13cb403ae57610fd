# SPDX-License-Identifier: Apache-2.0
"""Several machines on one (needs root)."""
import json
import os
import signal
import subprocess
import uuid

from overcap_rig import alive


class Host:
    """Namespaces that look like a machine: with a host name, a machine id, a boot id and, where `disk` names an image and a folder,
    a disk of its own. All that runs there ends with end()."""

    def __init__(self, rig, name, machine="a" * 32, env=None, disk=None):
        self.rig, self.name, self.env = rig, name, env or {}
        folder = rig.root / f"host-{name}-{uuid.uuid4().hex[:8]}"
        folder.mkdir()
        (folder / "machine-id").write_text(machine + "\n")
        (folder / "boot-id").write_text(str(uuid.uuid4()) + "\n")
        setup = ('hostname "$1" && mount --bind "$2/machine-id" /etc/machine-id && '
                 'mount --bind "$2/boot-id" /proc/sys/kernel/random/boot_id && '
                 '{ [ -z "$3" ] || mount -o loop "$3" "$4"; } && touch "$2/up" && exec sleep 1000000')
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", setup, "sh",
             name, str(folder), *map(str, disk or ("", ""))], env=rig.env, stderr=subprocess.DEVNULL)
        rig.until((folder / "up").exists, f"host {name}")
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(children, encoding="ascii") as file:
            self.init = int(file.read().split()[0])

    def start(self, *words, **env):
        return subprocess.Popen(
            ["nsenter", "-t", str(self.init), "-m", "-u", "-p", "--", "sh", "-c", 'cd "$0" && exec "$@"',
             str(self.rig.project), *words],
            env={**self.rig.env, **self.env, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words):
        return self.rig.finish(self.start(*words))

    def overcap(self, *args):
        return self.run(str(self.rig.binary), *args)

    def ok(self, *args):
        done = self.overcap(*args)
        self.rig.assertEqual(done.status, 0, str(done))
        return done

    def job(self, job_id):
        value = json.loads(self.ok("query", job_id, "--json").out)
        return value["jobs"][0] if "jobs" in value else value

    def kill_engine(self):
        pid = json.loads(self.ok("daemon", "status", "--json").out)["pid"]
        self.run("kill", "-9", str(pid))

    def end(self):
        """The machine is gone, with all that ran on it."""
        if alive(self.init):
            os.kill(self.init, signal.SIGKILL)
        self.process.wait()
