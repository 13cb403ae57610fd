// SPDX-License-Identifier: Apache-2.0
#include "elastic/etcd/etcd_client.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "model/json_fields.h"

namespace overcap::elastic {
namespace {

using Json = nlohmann::json;
constexpr size_t kMostAnswer = 1 << 20;
constexpr int64_t kShortestTryUs = 100'000;
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string Base64(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t block = 0;
    for (size_t j = 0; j < 3; ++j) {
      block = block << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0);
    }
    for (size_t j = 0; j < 4; ++j) {
      out.push_back(i + j <= bytes.size() ? kDigits[block >> (18 - 6 * j) & 63] : '=');
    }
  }
  return out;
}

std::string FromBase64(std::string_view text) {
  std::string out;
  uint32_t block = 0;
  int bits = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) break;
    block = block << 6 | static_cast<uint32_t>(digit);
    if ((bits += 6) >= 8) out.push_back(static_cast<char>(block >> (bits -= 8)));
  }
  return out;
}

// 64-bit numbers are strings here; 0, false and "" are left out.
int64_t Number(const Json& object, const char* key) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || at == object.end()) return 0;
  if (at->is_number_integer()) return at->get<int64_t>();
  return at->is_string() ? ParseInt(at->get_ref<const std::string&>()).value_or(0) : 0;
}

bool Truth(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

std::string Words(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

std::optional<EtcdValue> ValueOf(const Json& response) {
  const auto range = response.find("response_range");
  if (range == response.end() || !range->is_object()) return std::nullopt;
  const auto kvs = range->find("kvs");
  if (kvs == range->end() || !kvs->is_array() || kvs->empty() || !(*kvs)[0].is_object()) return std::nullopt;
  const Json& first = (*kvs)[0];
  return EtcdValue{FromBase64(Words(first, "value")), Number(first, "create_revision"),
                   Number(first, "mod_revision")};
}

std::string RangeOf(const std::string& key) {
  return StrCat(R"({"requestRange":{"key":")", Base64(key), R"("}})");
}

// Which errors are for good, and not another endpoint's business.
bool IsDenied(int status, std::string_view text) {
  return status == 401 || status == 403 || text.find("authentication failed") != text.npos ||
         text.find("permission denied") != text.npos || text.find("user name is empty") != text.npos;
}

}  // namespace

EtcdClient::EtcdClient(EtcdOptions options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {
  for (const auto& [host, port] : options_.endpoints) {
    clients_.push_back(std::make_unique<HttpClient>(HttpOrigin{options_.tls, host, port},
                                                    HttpClientOptions{options_.certificates, 4}));
  }
}

EtcdClient::~EtcdClient() = default;

// Short while members elect a leader; after that etcd may be slow rather than away.
int64_t EtcdClient::TryUs() const {
  const int64_t most = options_.call_us;
  if (clients_.size() == 1) return most;
  if (failing_us_ >= 0 && clock_.MonotonicUs() - failing_us_ >= most * 5 / 2) return most;
  return std::min(most, std::max({kShortestTryUs, most / 8, took_us_ * 4}));
}

Result<Json> EtcdClient::CallOne(size_t endpoint, const std::string& path, const std::string& body) {
  HttpRequest request;
  request.method = "POST";
  request.target = path;
  const std::string_view pieces[] = {body};
  request.body = pieces;
  request.has_body = true;
  request.headers = {{"Content-Type", "application/json"}};
  if (!token_.empty()) request.headers.push_back({"Authorization", token_});
  const int64_t try_us = TryUs();
  request.deadlines = {try_us, try_us, try_us};
  std::string text;
  OC_TRY(answer, clients_[endpoint]->Call(request, &text, kMostAnswer));
  const std::string name = clients_[endpoint]->origin().Text();
  auto json = ParseJsonObject(text, "answer of etcd");
  if (answer.status == 200 && json) return json;
  const std::string said = json ? Words(*json, "message") : std::string(Trim(text.substr(0, 200)));
  const std::string message = StrCat("etcd at '", name, "' says ", answer.status, ": ", ToUtf8(said));
  if (IsDenied(answer.status, said)) return Fail(ErrorCode::kDenied, message);
  if (answer.status == 404 && said.find("lease not found") != said.npos)
    return Fail(ErrorCode::kNotFound, message);
  return Fail(ErrorCode::kUnavailable, message);
}

Result<void> EtcdClient::LogIn(size_t endpoint) {
  token_.clear();
  JsonWriter json;
  json.BeginObject().Field("name", options_.user).Field("password", options_.password).EndObject();
  OC_TRY(answer, CallOne(endpoint, "/v3/auth/authenticate", json.Text()));
  token_ = Words(answer, "token");
  return {};
}

Result<Json> EtcdClient::Call(const std::string& path, const std::string& body) {
  std::vector<std::string> said;
  const int64_t begin_us = clock_.MonotonicUs();
  for (size_t i = 0; i < clients_.size(); ++i) {
    const size_t endpoint = (good_ + i) % clients_.size();
    const int64_t sent_us = clock_.MonotonicUs();
    Result<void> in;
    if (!options_.user.empty() && token_.empty()) in = LogIn(endpoint);
    auto answer = in ? CallOne(endpoint, path, body) : Result<Json>(Fail(in.error()));
    if (!answer && answer.error().code == ErrorCode::kDenied && in && !options_.user.empty()) {
      in = LogIn(endpoint);  // a token does not live for ever
      answer = in ? CallOne(endpoint, path, body) : Result<Json>(Fail(in.error()));
    }
    if (answer) {
      good_ = endpoint;
      took_us_ = clock_.MonotonicUs() - sent_us;
      failing_us_ = -1;
      return answer;
    }
    const ErrorCode code = answer.error().code;
    if (code == ErrorCode::kDenied || code == ErrorCode::kUsage || code == ErrorCode::kNotFound) {
      return Fail(std::move(answer).error());
    }
    said.push_back(answer.error().message);
  }
  if (failing_us_ < 0) failing_us_ = begin_us;
  return Fail(ErrorCode::kUnavailable, Join(said, "; "));
}

Result<int64_t> EtcdClient::GrantLease(int64_t ttl_seconds) {
  OC_TRY(answer, Call("/v3/lease/grant", StrCat(R"({"TTL":)", ttl_seconds, "}")));
  const int64_t id = Number(answer, "ID");
  if (id == 0) return Fail(ErrorCode::kUnavailable, "etcd gave no lease");
  return id;
}

Result<bool> EtcdClient::RenewLease(int64_t lease) {
  OC_TRY(answer, Call("/v3/lease/keepalive", StrCat(R"({"ID":")", lease, R"("})")));
  const auto result = answer.find("result");
  return result != answer.end() && Number(*result, "TTL") > 0;
}

Result<void> EtcdClient::RevokeLease(int64_t lease) {
  auto answer = Call("/v3/lease/revoke", StrCat(R"({"ID":")", lease, R"("})"));
  if (!answer && answer.error().code != ErrorCode::kNotFound) return Fail(std::move(answer).error());
  return {};
}

Result<std::pair<std::optional<EtcdValue>, std::optional<EtcdValue>>> EtcdClient::GetBoth(
    const std::string& a, const std::string& b) {
  OC_TRY(answer, Call("/v3/kv/txn", StrCat(R"({"success":[)", RangeOf(a), ",", RangeOf(b), "]}")));
  const auto responses = answer.find("responses");
  if (responses == answer.end() || !responses->is_array() || responses->size() != 2) {
    return Fail(ErrorCode::kUnavailable, "etcd gave no answer to what it was asked");
  }
  return std::pair(ValueOf((*responses)[0]), ValueOf((*responses)[1]));
}

Result<std::optional<int64_t>> EtcdClient::Create(const std::string& key, const std::string& value,
                                                  int64_t lease) {
  const std::string name = Base64(key);
  OC_TRY(answer,
         Call("/v3/kv/txn", StrCat(R"({"compare":[{"target":"CREATE","result":"EQUAL","key":")", name,
                                   R"(","create_revision":"0"}],"success":[{"requestPut":{"key":")", name,
                                   R"(","value":")", Base64(value), R"(","lease":")", lease, R"("}}]})")));
  if (!Truth(answer, "succeeded")) return std::optional<int64_t>();
  const auto header = answer.find("header");
  const int64_t revision = header != answer.end() ? Number(*header, "revision") : 0;
  if (revision == 0) return Fail(ErrorCode::kUnavailable, "etcd told no revision");
  return std::optional(revision);
}

Result<EtcdPut> EtcdClient::PutIf(const std::string& key, const std::string& value, int64_t mod_revision,
                                  const std::string& guard, int64_t guard_revision) {
  const std::string name = Base64(key);
  OC_TRY(answer, Call("/v3/kv/txn",
                      StrCat(R"({"compare":[{"target":"CREATE","result":"EQUAL","key":")", Base64(guard),
                             R"(","create_revision":")", guard_revision,
                             R"("},{"target":"MOD","result":"EQUAL","key":")", name, R"(","mod_revision":")",
                             mod_revision, R"("}],"success":[{"requestPut":{"key":")", name, R"(","value":")",
                             Base64(value), R"("}}],"failure":[)", RangeOf(key), ",", RangeOf(guard), "]}")));
  EtcdPut put;
  const auto header = answer.find("header");
  const int64_t revision = header != answer.end() ? Number(*header, "revision") : 0;
  if (Truth(answer, "succeeded")) {
    if (revision == 0) return Fail(ErrorCode::kUnavailable, "etcd told no revision");
    put.revision = revision;
    return put;
  }
  const auto responses = answer.find("responses");
  if (responses == answer.end() || !responses->is_array() || responses->size() != 2) {
    return Fail(ErrorCode::kUnavailable, "etcd gave no answer to what it was asked");
  }
  put.value = ValueOf((*responses)[0]);
  put.guard = ValueOf((*responses)[1]);
  return put;
}

}  // namespace overcap::elastic
