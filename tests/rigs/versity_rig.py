# SPDX-License-Identifier: Apache-2.0
"""A real versitygw, an S3 gateway in Go whose buckets are folders of this machine.

    with Versity() as gateway:
        gateway.endpoint, gateway.access_key, gateway.secret_key, gateway.region, gateway.calls, gateway.environment

As rigs/ceph_rig.py. It sorts listings by URL-encoded names. It checks signatures, the region, the hash of what is sent and
the clock, and has conditional puts. tools/install_s3_servers builds it.
"""
import os
import unittest

from rigs.s3_calls import AsS3
from rigs.servers import Servers, free_port, installed, listens


class Versity(AsS3, Servers):
    region = "us-east-1"
    access_key, secret_key = "OVERCAPVERSITYKEY000", "versity/secret+key/of/the/tests/0123456789"

    def __init__(self):
        program = installed("versitygw-1.8.0/versitygw", "tools/install_s3_servers")
        super().__init__("versity-")
        self.begin_patiently(lambda: self.begin(program))

    def begin(self, program):
        self.port = free_port()
        buckets = self.folder / "buckets"
        buckets.mkdir()
        try:
            os.setxattr(buckets, "user.overcap", b"1")
        except OSError as error:
            # In files of its own the metadata of an object is not replaced together with its content.
            raise unittest.SkipTest(f"NOT TESTED: versitygw needs extended attributes, which {self.folder} has not") from error
        self.start("versitygw", [program, "--port", f"127.0.0.1:{self.port}", "--region", self.region, "--keep-alive", "--quiet",
                                 "posix", str(buckets)],
                   {"ROOT_ACCESS_KEY": self.access_key, "ROOT_SECRET_KEY": self.secret_key})
        self.wait(lambda: listens(self.port), "versitygw")
