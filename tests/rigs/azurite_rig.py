# SPDX-License-Identifier: Apache-2.0
"""Azurite, Microsoft's own emulator of Azure Blob Storage, in memory.

    with Azurite() as azure:
        azure.endpoint          # "http://127.0.0.1:PORT/ACCOUNT"
        azure.account, azure.key
        azure.make_container("c")
        azure.environment       # AZURE_STORAGE_... variables that say all of it

It checks signatures, and of shared access signatures also the time and what they permit; clocks it does not check.
tools/install_azurite puts it into build/azurite; $OVERCAP_TEST_AZURITE names another place of its program azurite-blob.
"""
import base64
import datetime
import hashlib
import hmac
import http.client
import os
import pathlib
import shutil
import unittest
import urllib.parse

from rigs.servers import Servers, free_port, listens

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "build/azurite/node_modules/.bin/azurite-blob"


class Azurite(Servers):
    account = "devstoreaccount1"
    key = base64.b64encode(b"a key of the tests, not the one that everybody knows: 0123456789ab").decode()

    def __init__(self):
        program = pathlib.Path(os.environ.get("OVERCAP_TEST_AZURITE") or PROGRAM)
        if not program.exists() or not shutil.which("node"):
            raise unittest.SkipTest("NOT TESTED: no Azurite here; tools/install_azurite gets it")
        super().__init__("azurite-")
        self.begin_patiently(lambda: self.begin(str(program)))

    def begin(self, program):
        self.port = free_port()
        self.start("azurite", [program, "--blobHost", "127.0.0.1", "--blobPort", str(self.port), "--inMemoryPersistence",
                               "--silent", "--disableTelemetry"], {"AZURITE_ACCOUNTS": f"{self.account}:{self.key}"})
        self.wait(lambda: listens(self.port), "Azurite")

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}/{self.account}"

    @property
    def environment(self):
        return {"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;AccountName={self.account};"
                                                   f"AccountKey={self.key};BlobEndpoint={self.endpoint};"}

    def make_container(self, name):
        status = self.put(name, {"restype": "container"})
        if status not in (201, 409):
            raise RuntimeError(f"Azurite answers {status} when a container is made")

    def lease(self, container, blob):
        """Nobody can write the blob from here on who does not know the lease."""
        status = self.put(f"{container}/{blob}", {"comp": "lease"}, {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"})
        if status != 201:
            raise RuntimeError(f"Azurite answers {status} when a lease is asked for")

    def sas(self, container, permissions="racwdl", hours=1):
        """A shared access signature for all of a container, with the `?` that such texts begin with. Signs on its own, too."""
        end = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = f"{permissions}\n\n{end}\n/blob/{self.account}/{container}\n\n\n\n2019-12-12\nc" + "\n" * 6
        signature = base64.b64encode(hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()).decode()
        return "?" + urllib.parse.urlencode({"sv": "2019-12-12", "sr": "c", "sp": permissions, "se": end, "sig": signature})

    def put(self, path, query, headers=None):
        """The status of a put without a body. Signs on its own, as the manual says: independent of Overcap's client."""
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
        headers = {**(headers or {}), "x-ms-date": date, "x-ms-version": "2021-08-06"}
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        words = "".join(f"\n{name}:{value}" for name, value in sorted(query.items()))
        text = f"PUT{chr(10) * 12}{lines}/{self.account}/{self.account}/{path}{words}"
        signature = base64.b64encode(hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()).decode()
        connection = http.client.HTTPConnection(f"127.0.0.1:{self.port}", timeout=60)
        connection.request("PUT", f"/{self.account}/{path}?{urllib.parse.urlencode(query)}", headers={
            **headers, "content-length": "0", "authorization": f"SharedKey {self.account}:{signature}"})
        status = connection.getresponse().status
        connection.close()
        return status
