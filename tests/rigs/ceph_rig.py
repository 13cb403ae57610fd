# SPDX-License-Identifier: Apache-2.0
"""A real Ceph with its S3 gateway, in memory, on one machine: a monitor, one storage daemon, radosgw.

    with Ceph() as ceph:
        ceph.endpoint                                  # "http://127.0.0.1:PORT"
        ceph.access_key, ceph.secret_key, ceph.region
        ceph.calls.make_bucket("b")                    # an S3 client of the tests' own: rigs/s3_calls.py
        ceph.environment                               # AWS_... variables that say all of it

All programs are given the map of monitors: who has to learn it first may ask for something before it knows which cluster
that is, and is refused.

It checks signatures, the hash of what is sent, the clock and conditions of puts; regions it does not check.
"""
import json
import re
import shutil
import subprocess
import time
import unittest
import urllib.parse
import uuid

from rigs.s3_calls import AsS3, S3Calls
from rigs.servers import START_SECONDS, Servers, free_port, listens

PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "monmaptool")

CONFIGURATION = """[global]
fsid = {fsid}
mon host = v1:127.0.0.1:{mon_port}
monmap = {at}/monmap
mon initial members = a
auth cluster required = none
auth service required = none
auth client required = none
run dir = {at}/run
admin socket = {at}/run/$name.asok
log file = {at}/log/$name.log
pid file = {at}/run/$name.pid
crash dir = {at}/run/crash
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail warn = 1
mon data avail crit = 0
mon data = {at}/mon
ms bind msgr2 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
[osd]
osd data = {at}/osd0
osd objectstore = memstore
memstore device bytes = {bytes}
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:{rgw_port}{frontend}
rgw enable usage log = false
rgw dns name = localhost
rgw thread pool size = 16
"""
# With it a wrong secret is told as AccessDenied: for those who ask.
ROLES = """rgw sts key = keyoftheteststs0
rgw s3 auth use sts = true
"""


class Ceph(AsS3, Servers):
    region, has_role = "us-east-1", False
    access_key, secret_key = "OVERCAPCEPHTESTKEY00", "ceph/secret+key/of/the/tests/0123456789ab"

    def __init__(self, memory=4 * 1024**3, roles=False, no_delay=False):
        """`no_delay`: answers are sent at once; without it, as in most installations, a body waits until the client's system has told that
        the head arrived."""
        missing = [name for name in PROGRAMS if not shutil.which(name)]
        if missing:
            raise unittest.SkipTest(f"NOT TESTED: no {' '.join(missing)} here (Debian: radosgw ceph-mon ceph-osd ceph-common)")
        super().__init__("ceph-")
        self.frontend = " tcp_nodelay=1" if no_delay else ""
        self.begin_patiently(lambda: self.begin(memory, CONFIGURATION + (ROLES if roles else "")))

    def begin(self, memory, configuration):
        at, self.port, mon_port = self.folder, free_port(), free_port()
        for name in ("mon", "osd0", "run", "log"):
            (at / name).mkdir()
        fsid, osd = str(uuid.uuid4()), str(uuid.uuid4())
        (at / "ceph.conf").write_text(
            configuration.format(fsid=fsid, at=at, mon_port=mon_port, rgw_port=self.port, frontend=self.frontend, bytes=memory))
        conf = ["-c", str(at / "ceph.conf")]
        self.run(["monmaptool", "--create", "--addv", "a", f"[v1:127.0.0.1:{mon_port}]", "--fsid", fsid, str(at / "monmap")])
        self.run(["ceph-mon", *conf, "--mkfs", "-i", "a", "--monmap", str(at / "monmap")])
        self.start("mon", ["ceph-mon", *conf, "-i", "a", "-f"])
        self.wait(lambda: listens(mon_port), "the monitor of Ceph")
        self.run(["ceph", *conf, "--connect-timeout", "60", "osd", "new", osd])
        self.run(["ceph-osd", *conf, "-i", "0", "--mkfs", "--osd-uuid", osd])
        self.start_osd(conf)
        self.start("rgw", ["radosgw", *conf, "-n", "client.rgw", "-f"])
        self.run(["radosgw-admin", *conf, "-n", "client.rgw", "user", "create", "--uid=tests", "--display-name=tests",
                  f"--access-key={self.access_key}", f"--secret-key={self.secret_key}"])
        self.wait(lambda: listens(self.port), "the gateway of Ceph")

    def start_osd(self, conf):
        """It gives up when it asks the monitor for something before that knows it: then anew."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            process = self.start("osd", ["ceph-osd", *conf, "-i", "0", "-f"])
            while process.poll() is None and time.monotonic() < end:
                if self.osd_is_up(conf):
                    return
            if process.poll() is not None:
                self.processes.remove(process)
                time.sleep(0.2)
        raise RuntimeError(f"ceph-osd did not come up; last: {self.last_stat}")

    def osd_is_up(self, conf):
        """A monitor that does not answer yet, or not in time, is no reason to give up."""
        try:
            self.last_stat = self.run(["ceph", *conf, "--connect-timeout", "30", "osd", "stat", "-f", "json"], seconds=60)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            self.last_stat = str(error)
            time.sleep(0.2)
        return '"num_up_osds":1' in self.last_stat

    def admin(self, *words):
        return self.run(["radosgw-admin", "-c", str(self.folder / "ceph.conf"), "-n", "client.rgw", *words])

    def make_reader(self):
        """AWS_... variables of keys that may only read."""
        keys = {"AWS_ACCESS_KEY_ID": "OVERCAPCEPHREADER000", "AWS_SECRET_ACCESS_KEY": "reader/secret+key/of/the/tests/0123456789"}
        self.admin("subuser", "create", "--uid=tests", "--subuser=tests:reader", "--access=read")
        self.admin("key", "create", "--subuser=tests:reader", "--key-type=s3", f"--access-key={keys['AWS_ACCESS_KEY_ID']}",
                   f"--secret-key={keys['AWS_SECRET_ACCESS_KEY']}")
        return keys

    def session_keys(self):
        """Keys for an hour, as an instance gets them for its role: good only with their token. Of Ceph(roles=True)."""
        if not self.has_role:
            self.has_role = True
            trust = {"Effect": "Allow", "Principal": {"AWS": ["arn:aws:iam:::user/tests"]}, "Action": ["sts:AssumeRole"]}
            may = {"Effect": "Allow", "Action": ["s3:*"], "Resource": "arn:aws:s3:::*"}
            trust, may = (json.dumps({"Version": "2012-10-17", "Statement": [one]}) for one in (trust, may))
            self.admin("role", "create", "--role-name=lab-role", "--path=/", f"--assume-role-policy-doc={trust}")
            self.admin("role-policy", "put", "--role-name=lab-role", "--policy-name=all", f"--policy-doc={may}")
        wish = {"Action": "AssumeRole", "RoleArn": "arn:aws:iam:::role/lab-role", "RoleSessionName": "tests", "Version": "2011-06-15"}
        said = S3Calls(self.endpoint, self.access_key, self.secret_key, self.region, "sts").must(
            "POST", "/", body=urllib.parse.urlencode(wish).encode(), headers={"content-type": "application/x-www-form-urlencoded"}).decode()
        names = {"AccessKeyId": "AccessKeyId", "SecretAccessKey": "SecretAccessKey", "Token": "SessionToken"}
        return {name: re.search(f"<{tag}>(.*?)</{tag}>", said).group(1) for name, tag in names.items()}

    def collect(self):
        """Frees what was removed; by itself the gateway waits two hours with it."""
        self.admin("gc", "process", "--include-all")
