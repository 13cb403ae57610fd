// SPDX-License-Identifier: Apache-2.0
#include "control/stores/instance_keys.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "net/http/http_client.h"

namespace overcap {
namespace {

constexpr const char* kService = "http://169.254.169.254";
constexpr const char* kRoles = "/latest/meta-data/iam/security-credentials/";

tl::unexpected<Error> NoRole() {
  return Fail(ErrorCode::kNotFound, "this machine has no role of EC2");
}

Result<std::string> Ask(HttpClient& client, std::string method, std::string target, HttpHeader header) {
  HttpRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.headers = {std::move(header)};
  request.has_body = request.method == "PUT";
  request.deadlines = {.connect_us = 1'000'000, .idle_us = 2'000'000, .total_us = 5'000'000};
  std::string body;
  const Result<HttpResponse> answer = client.Call(request, &body, 64 * 1024);
  if (!answer || answer->status != 200) return NoRole();
  return body;
}

}  // namespace

Result<StoreAccess::S3> ParseInstanceKeys(const std::string& json) {
  const nlohmann::json keys = nlohmann::json::parse(json, nullptr, false);
  StoreAccess::S3 access;
  if (!keys.is_object()) return NoRole();
  const auto take = [&](const char* name, std::string* to) {
    if (keys.contains(name) && keys[name].is_string()) *to = keys[name].get<std::string>();
  };
  take("AccessKeyId", &access.access_key);
  take("SecretAccessKey", &access.secret);
  take("Token", &access.session_token);
  if (access.access_key.empty() || access.secret.empty()) return NoRole();
  return access;
}

Result<StoreAccess::S3> KeysOfInstance(const std::string& endpoint) {
  OC_TRY(url, ParseUrl(endpoint.empty() ? kService : endpoint));
  HttpClient client(url.origin);
  OC_TRY(token, Ask(client, "PUT", "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds", "21600"}));
  const HttpHeader proof{"X-aws-ec2-metadata-token", std::string(Trim(token))};
  OC_TRY(roles, Ask(client, "GET", kRoles, proof));
  const std::string role(Trim(roles.substr(0, roles.find('\n'))));
  if (role.empty()) return NoRole();
  OC_TRY(keys, Ask(client, "GET", kRoles + PercentEncode(role), proof));
  return ParseInstanceKeys(keys);
}

}  // namespace overcap
