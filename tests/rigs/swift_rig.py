# SPDX-License-Identifier: Apache-2.0
"""A real OpenStack Swift with its S3 interface (s3api): account, container, object and proxy server.

    with Swift() as swift:
        swift.endpoint, swift.access_key, swift.secret_key, swift.region, swift.calls, swift.environment

As rigs/ceph_rig.py. It checks signatures, the region, the hash of what is sent and the clock; it refuses conditions of
puts (501).
"""
import shutil
import unittest

from rigs.s3_calls import AsS3
from rigs.servers import Servers, free_port, listens

KINDS = ("account", "container", "object")
PROGRAMS = ("swift-ring-builder", "swift-proxy-server", *(f"swift-{kind}-server" for kind in KINDS))

STORAGE = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
devices = {at}/devs
mount_check = false
disable_fallocate = true
user = {user}
workers = 0
swift_dir = {at}/rings
log_level = ERROR
log_address = /dev/null
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""

PROXY = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
user = {user}
workers = 0
swift_dir = {at}/rings
log_level = ERROR
log_address = /dev/null
[pipeline:main]
pipeline = catch_errors gatekeeper cache listing_formats bulk s3api tempauth copy slo dlo symlink proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = {secret} .admin
[filter:s3api]
use = egg:swift#s3api
location = {region}
s3_acl = false
check_bucket_owner = false
auth_pipeline_check = true
allow_multipart_uploads = true
min_segment_size = 5242880
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
"""
# Objects have three copies, as Swift is meant to be run: of a single one a reader can see that it is not there while it is
# being replaced.
DEVICES = ("d1", "d2", "d3")
PLAIN_FILTERS = ("catch_errors", "gatekeeper", "listing_formats", "bulk", "copy", "slo", "dlo", "symlink")


class Swift(AsS3, Servers):
    region = "us-west-7"
    access_key, secret_key = "test:tester", "swift-secret-key-of-the-tests"

    def __init__(self):
        missing = [name for name in PROGRAMS if not shutil.which(name)]
        if missing:
            raise unittest.SkipTest(f"NOT TESTED: no {' '.join(missing)} here (Debian: swift-proxy swift-account "
                                    "swift-container swift-object)")
        super().__init__("swift-")
        self.begin_patiently(self.begin)

    def begin(self):
        at = self.folder
        for device in DEVICES:
            (at / "devs" / device).mkdir(parents=True)
        (at / "rings").mkdir()
        (at / "swift.conf").write_text("[swift-hash]\nswift_hash_path_prefix = tests\nswift_hash_path_suffix = tests\n")
        ports = {kind: free_port() for kind in KINDS}
        self.port = free_port()
        user = self.run(["id", "-un"]).strip()
        for kind, port in ports.items():
            self.make_ring(kind, port, DEVICES if kind == "object" else DEVICES[:1])
            (at / f"{kind}.conf").write_text(STORAGE.format(at=at, kind=kind, port=port, user=user))
        filters = "".join(f"[filter:{name}]\nuse = egg:swift#{name}\n" for name in PLAIN_FILTERS)
        (at / "proxy.conf").write_text(PROXY.format(at=at, port=self.port, user=user, secret=self.secret_key,
                                                    region=self.region) + filters)
        for kind in (*KINDS, "proxy"):
            self.start(kind, [f"swift-{kind}-server", str(at / f"{kind}.conf")])
        self.wait(lambda: all(listens(port) for port in (*ports.values(), self.port)), "the servers of Swift")

    def make_ring(self, kind, port, devices):
        builder = str(self.folder / "rings" / f"{kind}.builder")
        added = [["add", f"r1z1-127.0.0.1:{port}/{device}", "1"] for device in devices]
        for words in (["create", "4", str(len(devices)), "0"], *added, ["rebalance"]):
            self.run(["swift-ring-builder", builder, *words])
