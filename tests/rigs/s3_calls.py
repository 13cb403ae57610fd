# SPDX-License-Identifier: Apache-2.0
"""A small S3 client for tests, independent of Overcap's: signs with version 4, sends one request, gives the answer."""
import datetime
import hashlib
import hmac
import http.client
import re
import urllib.parse


class S3Calls:
    def __init__(self, endpoint, access_key, secret_key, region="us-east-1", service="s3"):
        self.endpoint, self.access_key, self.secret_key = endpoint, access_key, secret_key
        self.region, self.service = region, service
        self.host = urllib.parse.urlsplit(endpoint).netloc

    def request(self, method, path, query=None, body=b"", headers=None):
        """(status, body, headers); path is not encoded: "/bucket/key"."""
        query = "&".join(f"{quote(k)}={quote(v)}" for k, v in sorted((query or {}).items()))
        path = urllib.parse.quote(path, safe="/-_.~")
        signed = self.sign(method, path, query, body, {**(headers or {}), "host": self.host})
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.request(method, path + ("?" + query if query else ""), body, signed)
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        finally:
            connection.close()

    def sign(self, method, path, query, body, headers):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        digest = hashlib.sha256(body).hexdigest()
        headers = {**headers, "x-amz-date": now, "x-amz-content-sha256": digest}
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}"
        scope = f"{now[:8]}/{self.region}/{self.service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = ("AWS4" + self.secret_key).encode()
        for word in (now[:8], self.region, self.service, "aws4_request"):
            key = hmac.new(key, word.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        return {**headers, "authorization": f"AWS4-HMAC-SHA256 Credential={self.access_key}/{scope}, "
                                            f"SignedHeaders={names}, Signature={signature}"}

    def must(self, *words, **more):
        status, body, _ = self.request(*words, **more)
        if status >= 300:
            raise RuntimeError(f"{words[0]} {words[1]}: {status} {body[:500]!r}")
        return body

    def make_bucket(self, name):
        self.must("PUT", f"/{name}")

    def keys(self, bucket, prefix=""):
        found, token = [], None
        while True:
            query = {"list-type": "2", "prefix": prefix, **({"continuation-token": token} if token else {})}
            text = self.must("GET", f"/{bucket}", query=query).decode()
            found += re.findall("<Key>(.*?)</Key>", text)
            token = (re.findall("<NextContinuationToken>(.*?)</", text) or [None])[0]
            if not token:
                return found

    def uploads(self, bucket):
        """(key, upload id) of uploads that are not finished."""
        text = self.must("GET", f"/{bucket}", query={"uploads": ""}).decode()
        return re.findall("<Upload>.*?<Key>(.*?)</Key>.*?<UploadId>(.*?)</UploadId>.*?</Upload>", text, re.S)

    def parts(self, bucket, key, upload):
        text = self.must("GET", f"/{bucket}/{key}", query={"uploadId": upload}).decode()
        return re.findall("<PartNumber>(.*?)</PartNumber>", text)


def quote(text):
    return urllib.parse.quote(text, safe="-_.~")


class AsS3:
    """For servers that have `port`, `access_key`, `secret_key` and `region`."""

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def calls(self):
        return S3Calls(self.endpoint, self.access_key, self.secret_key, self.region)

    @property
    def environment(self):
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key,
                "AWS_REGION": self.region, "AWS_ENDPOINT_URL": self.endpoint, "AWS_EC2_METADATA_DISABLED": "true"}
