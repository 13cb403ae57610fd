# SPDX-License-Identifier: Apache-2.0
"""A real S3Proxy, an S3 server in Java, with its buckets in folders of this machine or, as `S3Proxy("transient")`, in memory.

    with S3Proxy() as proxy:
        proxy.endpoint, proxy.access_key, proxy.secret_key, proxy.region, proxy.calls, proxy.environment

As rigs/ceph_rig.py. It sorts listings by UTF-16, lists all unfinished uploads or none, and ignores conditions of puts; in
folders it also leaves entries out of a list while others are removed, and cannot remove `a/b` while there is `a/b/c`. It
checks signatures, not regions. tools/install_s3_servers gets it.
"""
import shutil
import unittest

from rigs.s3_calls import AsS3
from rigs.servers import Servers, free_port, installed, listens

QUIET = "<configuration><root level='OFF'/></configuration>\n"
SETTINGS = """s3proxy.authorization=aws-v2-or-v4
s3proxy.endpoint=http://127.0.0.1:{port}
s3proxy.identity={access_key}
s3proxy.credential={secret_key}
jclouds.provider={provider}
jclouds.filesystem.basedir={at}/buckets
jclouds.identity=unused
jclouds.credential=unused
"""


class S3Proxy(AsS3, Servers):
    region = "us-east-1"
    access_key, secret_key = "OVERCAPS3PROXYKEY000", "s3proxy-secret-key-of-the-tests"

    def __init__(self, provider="filesystem-nio2"):
        jars = installed("s3proxy-2.6.0", "tools/install_s3_servers")
        if not shutil.which("java"):
            raise unittest.SkipTest("NOT TESTED: no java here (Debian: openjdk-17-jre-headless)")
        super().__init__("s3proxy-")
        self.begin_patiently(lambda: self.begin(jars, provider))

    def begin(self, jars, provider):
        self.port = free_port()
        (self.folder / "buckets").mkdir()
        (self.folder / "logback.xml").write_text(QUIET)
        (self.folder / "settings").write_text(SETTINGS.format(
            at=self.folder, port=self.port, access_key=self.access_key, secret_key=self.secret_key, provider=provider))
        self.start("s3proxy", ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Djava.io.tmpdir=.",
                               "-Dlogback.configurationFile=logback.xml", "-cp", f"{jars}/*", "org.gaul.s3proxy.Main",
                               "--properties", "settings"])
        self.wait(lambda: listens(self.port), "S3Proxy")
