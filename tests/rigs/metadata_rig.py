# SPDX-License-Identifier: Apache-2.0
"""A look-alike of the metadata service of EC2 instances, version 2, on loopback: keys only for who has asked for a token first.

    with Metadata({"AccessKeyId": ..., "SecretAccessKey": ..., "Token": ...}) as metadata:
        metadata.environment       # AWS_EC2_METADATA_SERVICE_ENDPOINT
        metadata.asked             # (method, path, status), in order

Like the real one it answers 401 to questions without a token or with one that is not valid any more (so version 1 does not work),
400 to a token wish without a life time of 1 to 21600 seconds, and 403 to whatever came through a proxy (X-Forwarded-For).
"""
import http.server
import json
import secrets
import threading
import time

ROLES = "/latest/meta-data/iam/security-credentials/"


class Metadata:
    def __init__(self, keys, role="lab-role"):
        self.keys, self.role, self.asked, self.tokens = keys, role, [], {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self):  # noqa: N802
                self.rfile.read(int(self.headers.get("content-length") or 0))
                self.tell(*outer.put(self.path, self.headers))

            def do_GET(self):  # noqa: N802
                self.tell(*outer.get(self.path, self.headers))

            def tell(self, status, text):
                outer.asked.append((self.command, self.path, status))
                body = text.encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.send_header("server", "EC2ws")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *unused):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(60)

    @property
    def environment(self):
        return {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{self.server.server_address[1]}", "AWS_EC2_METADATA_DISABLED": ""}

    def put(self, path, headers):
        if "x-forwarded-for" in headers:
            return 403, "Forbidden"
        seconds = headers.get("x-aws-ec2-metadata-token-ttl-seconds", "")
        if path != "/latest/api/token" or not seconds.isdigit() or not 1 <= int(seconds) <= 21600:
            return 400, "Bad Request"
        token = secrets.token_urlsafe(40)
        self.tokens[token] = time.monotonic() + int(seconds)
        return 200, token

    def get(self, path, headers):
        if self.tokens.get(headers.get("x-aws-ec2-metadata-token"), 0) < time.monotonic():
            return 401, "Unauthorized"
        if self.role is None or not path.startswith(ROLES):
            return 404, "Not Found"
        if path == ROLES:
            return 200, self.role
        if path != ROLES + self.role:
            return 404, "Not Found"
        return 200, json.dumps({"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": "2026-01-01T00:00:00Z",
                                "Expiration": "2036-01-01T00:00:00Z", **self.keys}, indent=2)
