// SPDX-License-Identifier: Apache-2.0
// An S3 service inside a test, with the ways of services that are not AWS. It checks no signatures.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/text.h"
#include "net/http/http_date.h"
#include "net/testing/http_test_server.h"

namespace overcap {

struct OddWays {
  std::function<bool(const std::string& a, const std::string& b)> before = {};  // its order, where it has one
  bool begins_again = false;      // a list behind a key that is not there is the whole list (rclone)
  bool ranges_are_200 = false;    // with the right Content-Range (rclone)
  bool forgets_in_lists = false;  // a page after a removal leaves out every other key, once (S3Proxy)
  bool lists_uploads = true;      // false: 501 where a prefix is asked for (S3Proxy)
  std::string type_of_204 = {};   // Content-Type of answers to DELETE (moto)
};

class OddService {
 public:
  explicit OddService(OddWays ways)
      : ways_(std::move(ways)), server_([this](const HttpTestRequest& request, HttpTestPeer& peer) {
          const std::lock_guard lock(mutex_);
          Serve(request, peer);
        }) {}

  std::string endpoint() const { return server_.origin().Text(); }
  void Put(const std::string& key, const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    objects_[key] = bytes;
  }
  std::vector<std::string> Keys() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> keys;
    for (const auto& [key, bytes] : objects_) keys.push_back(key);
    return keys;
  }
  int lists() {
    const std::lock_guard lock(mutex_);
    return lists_;
  }

 private:
  static std::string Decoded(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '%') {
        out += text[i];
        continue;
      }
      out += static_cast<char>(strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    }
    return out;
  }

  static std::string Of(const HttpTestRequest& request, const std::string& name) {
    const size_t query = request.target.find('?');
    if (query == std::string::npos) return "";
    for (const std::string& pair : Split(std::string_view(request.target).substr(query + 1), '&'))
      if (pair.starts_with(name + "=")) return Decoded(std::string_view(pair).substr(name.size() + 1));
    return "";
  }

  void Serve(const HttpTestRequest& request, HttpTestPeer& peer) {
    const std::string path = Decoded(request.target.substr(0, request.target.find('?')));
    const std::string key = path.substr(std::min(path.size(), path.find('/', 1) + 1));
    if (path.find('/', 1) == std::string::npos)
      return request.target.find("uploads") != std::string::npos ? Uploads(request, peer)
                                                                 : List(request, peer);
    if (request.method == "PUT") {
      objects_[key] = request.body;
      return peer.Answer(200, "", {{"ETag", "\"e\""}});
    }
    if (request.method == "DELETE") {
      objects_.erase(key);
      removed_ = true;
      if (ways_.type_of_204.empty()) return peer.Answer(204, "");
      return peer.Send(StrCat("HTTP/1.1 204 No Content\r\nContent-Type: ", ways_.type_of_204, "\r\n\r\n"));
    }
    const auto found = objects_.find(key);
    if (found == objects_.end()) return peer.Answer(404, "<Error><Code>NoSuchKey</Code></Error>");
    if (request.method == "HEAD")
      return peer.Send(
          StrCat("HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: ", found->second.size(), "\r\n\r\n"));
    Get(request, found->second, peer);
  }

  void Get(const HttpTestRequest& request, const std::string& bytes, HttpTestPeer& peer) {
    const std::string range = request.Header("range");
    if (range.empty()) return peer.Answer(200, bytes);
    const auto first = static_cast<size_t>(atoll(range.c_str() + 6));
    if (first >= bytes.size()) return peer.Answer(416, "");
    const std::string end = range.substr(range.find('-') + 1);
    const size_t last =
        end.empty() ? bytes.size() - 1 : std::min(bytes.size() - 1, static_cast<size_t>(atoll(end.c_str())));
    peer.Answer(ways_.ranges_are_200 ? 200 : 206, bytes.substr(first, last - first + 1),
                {{"Content-Range", StrCat("bytes ", first, "-", last, "/", bytes.size())}});
  }

  void List(const HttpTestRequest& request, HttpTestPeer& peer) {
    ++lists_;
    const std::string prefix = Of(request, "prefix"), after = Of(request, "start-after");
    const auto most = static_cast<size_t>(atoll(Of(request, "max-keys").c_str()));
    const auto before = ways_.before ? ways_.before : std::less<std::string>();
    std::vector<std::string> keys;
    const bool whole = after.empty() || (ways_.begins_again && !objects_.contains(after));
    bool leave_out = false;
    for (const auto& [key, bytes] : objects_) {
      if (!key.starts_with(prefix) || (!whole && !before(after, key))) continue;
      if (ways_.forgets_in_lists && removed_ && !after.empty()) leave_out = !leave_out;
      if (!leave_out) keys.push_back(key);
    }
    removed_ = false;
    std::sort(keys.begin(), keys.end(), before);
    const bool more = keys.size() > most;
    keys.resize(std::min(keys.size(), most));
    std::string text = StrCat("<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>",
                              more ? "true" : "false", "</IsTruncated>");
    for (const std::string& key : keys)
      text +=
          StrCat("<Contents><Key>", PercentEncode(key), "</Key><Size>", objects_[key].size(),
                 "</Size><ETag>\"e\"</ETag><LastModified>2036-01-01T00:00:00.000Z</LastModified></Contents>");
    peer.Answer(200, text + "</ListBucketResult>");
  }

  void Uploads(const HttpTestRequest& request, HttpTestPeer& peer) const {
    if (!ways_.lists_uploads && !(Of(request, "prefix") + Of(request, "max-uploads")).empty())
      return peer.Answer(501, "<html>Error 501 Not Implemented</html>", {{"x-amz-request-id", "1"}});
    peer.Answer(200, "<ListMultipartUploadsResult/>");
  }

  const OddWays ways_;
  std::mutex mutex_;  // guards all below
  std::map<std::string, std::string> objects_;
  bool removed_ = false;
  int lists_ = 0;
  HttpTestServer server_;
};

}  // namespace overcap
