// SPDX-License-Identifier: Apache-2.0
#include "elastic/place.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"

namespace overcap::elastic {
namespace {

constexpr size_t kLongestId = 100;
constexpr size_t kMostEndpoints = 32;

tl::unexpected<Error> Bad(std::string_view text, std::string_view what) {
  return Fail(ErrorCode::kUsage, StrCat("--rdzv: ", Quoted(text, 200), " ", what),
              "etcd://HOST:2379,HOST:2379/ID, tcp://HOST:PORT/ID or auto");
}

// "host", "host:1", "[::1]:1"; nullopt when it is none of these.
std::optional<std::pair<std::string, int>> HostAndPort(std::string_view text, int port) {
  std::string_view host = text, rest;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == text.npos) return std::nullopt;
    host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else if (const size_t colon = text.find(':'); colon != text.npos) {
    host = text.substr(0, colon);
    rest = text.substr(colon);
  }
  if (rest.starts_with(':')) {
    const auto number = ParseInt(rest.substr(1));
    if (!number || *number < 1 || *number > 65535) return std::nullopt;
    port = static_cast<int>(*number);
  } else if (!rest.empty()) {
    return std::nullopt;
  }
  const auto fine = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
  };
  if (host.empty() || port == 0 || !std::all_of(host.begin(), host.end(), fine)) return std::nullopt;
  return std::pair(std::string(host), port);
}

Result<RendezvousPlace> WithEndpoints(RendezvousPlace place, std::string_view hosts, int port,
                                      std::string_view text) {
  for (const std::string& one : Split(hosts, ',')) {
    auto endpoint = HostAndPort(one, port);
    if (!endpoint) return Bad(text, StrCat("has no host and port in ", Quoted(one)));
    place.endpoints.push_back(std::move(*endpoint));
  }
  if (place.endpoints.size() > kMostEndpoints) return Bad(text, "names too many hosts");
  if (place.kind == RendezvousPlace::Kind::kTcp && place.endpoints.size() != 1)
    return Bad(text, "names more than one host");
  return place;
}

}  // namespace

bool IsRendezvousId(std::string_view id) {
  const auto fine = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_'; };
  return !id.empty() && id.size() <= kLongestId && id[0] != '.' && std::all_of(id.begin(), id.end(), fine);
}

std::string RendezvousPlace::Text() const {
  if (kind == Kind::kAuto) return id.empty() ? "auto" : StrCat("auto:", id);
  std::vector<std::string> hosts;
  for (const auto& [host, port] : endpoints) {
    hosts.push_back(host.find(':') == host.npos ? StrCat(host, ":", port) : StrCat("[", host, "]:", port));
  }
  return StrCat(kind == Kind::kTcp ? "tcp" : (tls ? "etcds" : "etcd"), "://", Join(hosts, ","), "/", id);
}

Result<RendezvousPlace> ParseRendezvous(std::string_view text) {
  RendezvousPlace place;
  if (text == "auto") return place;
  if (text.starts_with("auto:")) {
    place.id = text.substr(5);
    if (!IsRendezvousId(place.id)) return Bad(text, "has no id of letters, digits, '.', '_' and '-'");
    return place;
  }
  int port = 0;
  if (text.starts_with("etcd://") || text.starts_with("etcds://")) {
    place.kind = RendezvousPlace::Kind::kEtcd;
    place.tls = text[4] == 's';
    port = kEtcdPort;
  } else if (text.starts_with("tcp://")) {
    place.kind = RendezvousPlace::Kind::kTcp;
  } else {
    return Bad(text, "is no rendezvous");
  }
  const std::string_view rest = text.substr(text.find("//") + 2);
  if (rest.find('@') != rest.npos) {
    return Fail(ErrorCode::kUsage, "--rdzv: a user and password do not belong on a command line",
                "set OVERCAP_ETCD_USER and OVERCAP_ETCD_PASSWORD");
  }
  const size_t slash = rest.find('/');
  place.id = slash == rest.npos ? "" : rest.substr(slash + 1);
  if (!IsRendezvousId(place.id))
    return Bad(text, "has no id of letters, digits, '.', '_' and '-' at its end");
  return WithEndpoints(std::move(place), rest.substr(0, slash), port, text);
}

Result<RendezvousPlace> TorchRendezvous(std::string_view backend, std::string_view endpoint,
                                        std::string_view id) {
  RendezvousPlace place;
  place.id = id;
  if (!id.empty() && !IsRendezvousId(id)) {
    return Fail(ErrorCode::kUsage,
                StrCat("--rdzv-id: ", Quoted(id), " is no id of letters, digits, '.', '_' and '-'"));
  }
  if (endpoint.empty() && (backend.empty() || backend == "c10d" || backend == "static")) return place;
  if (place.id.empty()) {
    place.id = "none";  // as torchrun calls it
    place.unnamed = true;
  }
  if (backend == "etcd" || backend == "etcd-v2") {
    place.kind = RendezvousPlace::Kind::kEtcd;
    if (endpoint.empty())
      return Fail(ErrorCode::kUsage, "--rdzv-backend etcd needs --rdzv-endpoint HOST:PORT");
    return WithEndpoints(std::move(place), endpoint, kEtcdPort, endpoint);
  }
  if (!backend.empty() && backend != "c10d" && backend != "static") {
    return Fail(ErrorCode::kUsage,
                StrCat("--rdzv-backend: ", Quoted(backend), " is not c10d, etcd, etcd-v2 or static"));
  }
  place.kind = RendezvousPlace::Kind::kTcp;
  return WithEndpoints(std::move(place), endpoint, kTorchPort, endpoint);
}

}  // namespace overcap::elastic
