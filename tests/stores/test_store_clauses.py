# SPDX-License-Identifier: Apache-2.0
"""What `overcap store` promises beside plain copies, as a user meets it: keys of an instance's role, services that are not what they
should be, disks that are full, bad ways, terminals. Ceph, Azurite, and servers that lie."""
import contextlib
import http.client
import http.server
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

from store_rig import DEADLINE, MIB, StoreRig, main, make_tree, needs_root, tree
from rigs.azurite_rig import Azurite
from rigs.ceph_rig import Ceph
from rigs.fault_proxy import FATES, FaultProxy
from rigs.metadata_rig import ROLES, Metadata
from rigs.ports import free_port
from rigs.terminal import SHELL, Terminal

GROUP = "stores"
DEADLINE_SECONDS = 500
BUCKET = "clauses"
NO_HANGS = tuple((name, weight) for name, weight in FATES if name != "hangs")  # each takes the minute that a silent server is given


class OnCeph(StoreRig):
    roles = False

    @classmethod
    def setUpClass(cls):
        cls.server = Ceph(roles=cls.roles)
        cls.addClassCleanup(cls.server.close)
        cls.server.calls.make_bucket(BUCKET)

    def setUp(self):
        super().setUp()
        self.env.update(self.server.environment)

    def here(self, name):
        return f"s3://{BUCKET}/{self.id().rpartition('.')[2]}/{name}"


class InstanceRoles(OnCeph):
    roles = True

    def setUp(self):
        super().setUp()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del self.env[name]
        keys = self.server.session_keys()
        self.secrets = [keys["SecretAccessKey"], keys["Token"]]
        self.metadata = Metadata(keys)
        self.addCleanup(self.metadata.close)
        self.env.update(self.metadata.environment)

    def test_the_keys_of_the_role_open_the_bucket(self):
        files = make_tree(self.project / "from", large=9 * MIB)
        self.ok("store", "cp", "from", self.here("role"))
        token, roles, role = self.metadata.asked
        self.assertEqual((token, roles, role), (("PUT", "/latest/api/token", 200), ("GET", ROLES, 200), ("GET", ROLES + "lab-role", 200)))
        self.ok("store", "cp", self.here("role"), "back")
        self.assertEqual(tree(self.project / "back"), files)
        for done in (self.ok("store", "check", self.here("role")), self.ok("config", "show")):
            for secret in self.secrets:
                self.assertNotIn(secret, done.out + done.err)
        for path in self.root.rglob("*"):
            if path.is_file():
                for secret in self.secrets:
                    self.assertNotIn(secret.encode(), path.read_bytes(), path)

    def test_the_token_of_the_role_is_needed(self):
        self.metadata.keys = {**self.metadata.keys, "Token": ""}
        self.refused("store", "ls", f"s3://{BUCKET}", status=4)

    def test_without_a_role_it_is_said_where_keys_come_from(self):
        self.metadata.role = None
        self.refused("store", "ls", f"s3://{BUCKET}", status=4, says="AWS_ACCESS_KEY_ID")
        self.metadata.role, self.metadata.keys = "lab-role", {"AccessKeyId": ""}
        self.refused("store", "ls", f"s3://{BUCKET}", status=4, says="no keys of S3")
        self.assertEqual([status for _, _, status in self.metadata.asked], [200, 404, 200, 200, 200])

    def test_where_there_is_no_such_service_nobody_waits(self):
        begin = time.monotonic()
        self.refused("store", "ls", f"s3://{BUCKET}", status=4, says="no keys of S3",
                     env={"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{free_port()}"})
        self.assertLess(time.monotonic() - begin, 10)
        before = len(self.metadata.asked)
        self.refused("store", "ls", f"s3://{BUCKET}", status=4, env={"AWS_EC2_METADATA_DISABLED": "true"})
        self.assertEqual(len(self.metadata.asked), before)

    def test_keys_in_the_environment_come_first(self):
        self.ok("store", "check", f"s3://{BUCKET}", env={"AWS_ACCESS_KEY_ID": self.server.access_key,
                                                         "AWS_SECRET_ACCESS_KEY": self.server.secret_key})
        self.assertEqual(self.metadata.asked, [])


class Liar(http.server.BaseHTTPRequestHandler):
    """A login page, whatever is asked for."""

    def do_GET(self):  # noqa: N802
        self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b"<html><body>Please log in to the hotel's network</body></html>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST = do_HEAD = do_GET  # noqa: N815

    def log_message(self, *unused):
        pass


@contextlib.contextmanager
def liar(certificate=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    server.daemon_threads = True
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


class Trouble(OnCeph):
    def test_a_server_that_answers_html_is_no_store(self):
        with liar() as endpoint:
            for words in (("ls", "s3://clauses"), ("cp", "s3://clauses/x", "x"), ("stat", "s3://clauses/x")):
                done = self.refused("store", *words, status=5, says="does not answer as an S3 service does", env={"AWS_ENDPOINT_URL": endpoint})
                self.assertNotIn("<html>", done.err)
            self.assertFalse((self.project / "x").exists())
            account = {"AZURE_STORAGE_CONNECTION_STRING": f"AccountName=acct;AccountKey=c2VjcmV0;BlobEndpoint={endpoint}/acct;"}
            self.refused("store", "ls", "az://acct/container", status=5, says="does not answer as Azure Blob Storage does", env=account)

    def test_a_certificate_that_does_not_fit_is_refused(self):
        files = []
        for name, subject in (("fits", "IP:127.0.0.1"), ("other", "DNS:elsewhere.lab")):
            pair = (str(self.root / f"{name}.pem"), str(self.root / f"{name}.key"))
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                            "/CN=test", "-addext", f"subjectAltName={subject}", "-keyout", pair[1], "-out", pair[0]], check=True,
                           capture_output=True, timeout=60)
            files.append(pair)
        with liar(files[0]) as endpoint:
            self.refused("store", "ls", "s3://clauses", status=4, says="certificate", env={"AWS_ENDPOINT_URL": endpoint})
            done = self.overcap("store", "ls", "s3://clauses", env={"AWS_ENDPOINT_URL": endpoint, "AWS_CA_BUNDLE": files[0][0]})
            self.assertNotIn("certificate", done.err)  # it is the right host, which is no S3
        with liar(files[1]) as endpoint:
            self.refused("store", "ls", "s3://clauses", status=4, says="certificate",
                         env={"AWS_ENDPOINT_URL": endpoint, "AWS_CA_BUNDLE": files[1][0]})

    def test_keys_that_may_only_read(self):
        (self.project / "x").write_bytes(b"1")
        self.ok("store", "cp", "x", self.here("ro") + "/")
        reader = self.server.make_reader()
        self.assertEqual(self.ok("store", "ls", self.here("ro"), env=reader).out, "x\n")
        done = self.refused("store", "cp", "x", self.here("ro") + "/y", status=4, env=reader)
        self.assertNotIn(reader["AWS_SECRET_ACCESS_KEY"], done.err)
        self.refused("store", "rm", self.here("ro") + "/x", status=4, env=reader)
        self.assertEqual(self.ok("store", "ls", self.here("ro")).out, "x\n")

    def test_names_that_a_service_cannot_take_are_told_and_the_others_copied(self):
        source = self.project / "from"
        deep = source / "/".join(["d" * 200] * 6)
        deep.mkdir(parents=True)
        (deep / "too-long").write_bytes(b"1")
        (source / "good").write_bytes(b"2")
        odd = bytes(source) + b"/not-utf8-\xff"
        with open(odd, "wb") as file:
            file.write(b"3")
        done = self.overcap("store", "cp", "from", self.here("names"))
        self.assertNotEqual(done.status, 0)
        self.assertIn("ddd...' cannot be the name of an object in S3", done.err)
        self.assertIn("not-utf8", done.err)
        self.assertEqual(self.ok("store", "ls", "-R", self.here("names")).out, "good\n")

    def test_objects_with_names_that_no_file_can_have(self):
        """They are shown, counted and removed; copies leave them out and say so."""
        there = self.here("odd")
        prefix = there.removeprefix(f"s3://{BUCKET}/")
        odd = ["//lead", "/a//b", "/folder/", "/./dot", "/x/../y", "/" + "n" * 300, "/"]
        for name in ["/good", *odd]:
            self.server.calls.must("PUT", f"/{BUCKET}/{prefix}{name}", body=b"12")
        names = [name[1:] for name in sorted(["/good", *odd])]
        self.assertEqual([entry["name"] for entry in self.events("store", "ls", "-R", there)], names)
        self.assertEqual(self.ok("store", "ls", "-R", there).out.splitlines(), ["/", *names[1:]])
        sums = self.ok("store", "du", there, "--json").json()
        self.assertEqual((sums["files"], sums["bytes"], sums["left_out"]), (8, 16, 0))
        down = self.done("store", "cp", there, "back")
        self.assertEqual((down["copied"], down["left_out"]), (1, len(odd)))
        self.assertIn(f"left out: {len(odd)} objects (names that no file can have;", self.ok("store", "cp", there, "back").err)
        (self.project / "other").mkdir()
        (self.project / "other/x").write_bytes(b"1")
        self.ok("store", "sync", "other", there, "--delete")
        self.assertEqual(len(self.server.calls.keys(BUCKET, prefix + "/")), len(odd) + 1)
        dry = self.ok("store", "rm", "-r", there, "--dry-run")
        self.assertIn("would remove 8 files; nothing was changed", dry.err)
        self.assertIn("removed 8 files", self.ok("store", "rm", "-r", there).err)
        self.assertEqual(self.server.calls.keys(BUCKET, prefix), [])

    @needs_root
    def test_the_bucket_in_the_host_s_name(self):
        hosts = self.root / "hosts"
        hosts.write_text(f"127.0.0.1 localhost {BUCKET}.localhost\n")
        self.write("overcap.yaml", f"stores:\n  v: {{at: 's3://{BUCKET}/host style', endpoint: 'http://localhost:{self.server.port}', path_style: false}}\n")

        def store(*words):
            done = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts, self.binary, "store", *words],
                                  env=self.env, cwd=self.project, capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        files = make_tree(self.project / "from")
        store("cp", "from", "v")
        store("cp", "v", "back")
        self.assertEqual(tree(self.project / "back"), files)
        self.assertEqual(len(self.server.calls.keys(BUCKET, "host style/")), len(files))
        url = store("url", "v:a+b&c=d?e#f%41").strip()
        host = f"{BUCKET}.localhost:{self.server.port}"
        self.assertTrue(url.startswith(f"http://{host}/host%20style/a%2Bb"), url)
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)) as connection:
            connection.request("GET", url.removeprefix(f"http://{host}"), headers={"host": host})
            self.assertEqual(connection.getresponse().read(), b"4")
        store("rm", "-r", "v")
        self.assertEqual(self.server.calls.keys(BUCKET, "host style/"), [])

    def test_ctrl_c_while_the_service_does_not_answer(self):
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(50)
            env = {**self.env, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{deaf.getsockname()[1]}"}
            (self.project / "from").mkdir()
            (self.project / "from/x").write_bytes(b"1")
            for words in (["store", "cp", "from", f"s3://{BUCKET}/deaf"], ["store", "check", "from", f"s3://{BUCKET}/deaf"]):
                process = self.start(*words, env=env)
                connection, _ = deaf.accept()  # it has asked, and waits
                self.addCleanup(connection.close)
                begin = time.monotonic()
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=DEADLINE)
                self.assertEqual(process.returncode, 130, err)
                self.assertLess(time.monotonic() - begin, 30)
                self.assertIn("stopped while the store did not answer; the same command goes on", str(err))

    @needs_root
    def test_a_disk_that_is_full_while_downloading_has_nothing_half_written(self):
        small = self.root / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", small], check=False).returncode != 0:
            self.skipTest("NOT TESTED: no tmpfs can be mounted here")
        self.addCleanup(subprocess.run, ["umount", small], check=False)
        (self.project / "large").write_bytes(bytes(20 * MIB))
        self.ok("store", "cp", "large", self.here("full") + "/")
        done = self.overcap("store", "cp", self.here("full") + "/large", str(small) + "/")
        self.assertEqual(done.status, 5, str(done))
        self.assertIn("o space left", done.err)
        self.assertEqual({name for name in tree(small) if "/.overcap-part-" not in "/" + name}, set())

    def test_from_store_to_store_no_file_is_written(self):
        (self.project / "large").write_bytes(bytes(40 * MIB))
        self.ok("store", "cp", "large", self.here("a") + "/")
        done = subprocess.run(["prlimit", "--fsize=0", str(self.binary), "store", "cp", self.here("a"), self.here("b")], env=self.env,
                              cwd=self.project, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.ok("store", "stat", self.here("b") + "/large", "--json").json()["bytes"], 40 * MIB)

    def test_a_bar_with_bytes_rate_and_time_left_on_a_terminal(self):
        with open(self.project / "large", "wb") as file:
            file.truncate(300 * MIB)
        with Terminal(SHELL, self.env) as terminal:
            terminal.type(f"cd {self.project}")
            terminal.type(f"{self.binary} store cp large {self.here('bar')}/")
            seen = terminal.expect(r"\d+% +[\d.]+ MiB of 300(\.0)? MiB +[\d.]+ [KMG]iB/s +\S+ left", 60)
            self.assertIn("[", seen.string)
            self.assertEqual(terminal.status(), 0)

    def test_a_thousand_copies_on_a_bad_way(self):
        files = make_tree(self.project / "from", large=12 * MIB)
        for number in range(440):
            (self.project / f"from/more-{number}").write_bytes(b"%d" % number * (number * 3))
            files[f"more-{number}"] = b"%d" % number * (number * 3)
        there = self.here("faults")
        with FaultProxy(self.server.port, seed=11, fates=NO_HANGS) as proxy:
            env = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}"}
            copied = 0
            for words in (("from", there), (there, "back")):
                process = self.start("store", "cp", *words, env=env)
                time.sleep(0.7)
                process.send_signal(signal.SIGKILL)  # in the middle of it all
                process.communicate()
                done = self.done("store", "cp", *words, env=env, deadline=240)
                self.assertEqual(done["failed"], 0)
                copied += done["copied"] + done["same"]
        self.assertGreater(copied, 1000)
        self.assertGreater(sum(count for fate, count in proxy.counts.items() if fate != "lives"), 50, proxy.counts)
        self.assertEqual({n: c for n, c in tree(self.project / "back").items() if "/.overcap-" not in "/" + n}, files)
        self.ok("store", "cp", there, "direct")
        self.assertEqual(tree(self.project / "direct"), files)
        prefix = there.removeprefix(f"s3://{BUCKET}/")
        for key, upload in self.server.calls.uploads(BUCKET):
            if key.startswith(prefix):  # a killed one's parts stay until they are cleaned up: none for what is whole
                self.assertEqual(self.server.calls.parts(BUCKET, key, upload), [], key)


class OnAzurite(StoreRig):
    @classmethod
    def setUpClass(cls):
        cls.server = Azurite()
        cls.addClassCleanup(cls.server.close)
        cls.server.make_container(BUCKET)

    def setUp(self):
        super().setUp()
        self.there = f"az://{self.server.account}/{BUCKET}/{self.id().rpartition('.')[2]}"
        (self.project / "x").write_bytes(b"1")
        self.ok("store", "cp", "x", self.there + "/", env=self.server.environment)

    def with_sas(self, sas):
        storage = self.root / "storage.yaml"
        storage.write_text(f"account_name: {self.server.account}\ncontainer_name: {BUCKET}\nsas_token: '{sas}'\n")
        storage.chmod(0o600)
        self.write("overcap.yaml", f"stores:\n  lab: {{at: '{self.there}', endpoint: '{self.server.endpoint}', credentials: {storage}}}\n")

    def test_a_signature_that_has_expired(self):
        sas = self.server.sas(BUCKET, "rl", -1)
        self.with_sas(sas)
        done = self.refused("store", "ls", "lab", status=4, says="expired")
        self.assertNotIn(urllib.parse.parse_qs(sas)["sig"][0], done.err)

    def test_a_signature_that_only_permits_to_read(self):
        sas = self.server.sas(BUCKET, "rl")
        self.with_sas(sas)
        self.assertEqual(self.ok("store", "ls", "lab").out, "x\n")
        done = self.refused("store", "cp", "x", "lab:y", status=4, says="not allowed to write")
        self.assertNotIn(urllib.parse.parse_qs(sas)["sig"][0], done.err + self.ok("config", "show").out)
        self.assertEqual(self.ok("store", "ls", "lab").out, "x\n")

    def test_a_blob_that_somebody_has_leased_is_not_written(self):
        self.server.lease(BUCKET, self.there.split("/", 4)[4] + "/x")
        (self.project / "x").write_bytes(b"other")
        self.refused("store", "cp", "x", self.there + "/", status=6, says="leased", env=self.server.environment)
        self.assertEqual(self.ok("store", "stat", self.there + "/x", "--json", env=self.server.environment).json()["bytes"], 1)

    def test_names_that_azure_cannot_take_are_told_and_the_others_copied(self):
        source = self.project / "from"
        source.mkdir()
        # It reads '\\' as '/', drops dots at an end, and one control character spoils the listing of all.
        bad = ["ends-with.", "part./x", "back\\slash", "\x01control", "new\nline", "\x7f", "\ufffe"]
        for name in ["good", "a.b/..c", *bad]:
            (source / name).parent.mkdir(exist_ok=True)
            (source / name).write_bytes(b"1")
        env = self.server.environment
        events = self.events("store", "cp", "from", self.there + "/names", status=2, env=env)
        self.assertEqual({event["key"] for event in events if event["event"] == "problem"}, set(bad))
        self.assertEqual(events[-1]["copied"], 2)
        self.assertEqual(self.ok("store", "ls", "-R", self.there + "/names", env=env).out, "a.b/..c\ngood\n")
        self.refused("store", "rm", self.there + "\\x", status=2, says="cannot be the name of a blob", env=env)
        self.assertEqual(self.ok("store", "stat", self.there + "/x", "--json", env=env).json()["bytes"], 1)


if __name__ == "__main__":
    main()
