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

bool IsIdChar(unsigned char c) {
  return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
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
  return !id.empty() && id.size() <= kLongestId && id[0] != '.' &&
         std::all_of(id.begin(), id.end(), IsIdChar);
}

std::string RendezvousIdOf(std::string_view id) {
  if (IsRendezvousId(id)) return std::string(id);
  uint32_t hash = 2'166'136'261U;  // FNV-1a
  for (const unsigned char c : id) hash = (hash ^ c) * 16'777'619U;
  std::string text = "id-";
  for (const unsigned char c : id.substr(0, kLongestId / 2)) text += IsIdChar(c) ? static_cast<char>(c) : '_';
  return StrCat(text, "-", hash);
}

std::string RendezvousPlace::Text() const {
  if (!asked.empty()) return asked;
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

namespace {

Result<std::pair<std::string, int>> TorchEndpoint(std::string_view flag, std::string_view text, int port) {
  if (auto found = HostAndPort(text, port)) return std::move(*found);
  return Fail(ErrorCode::kUsage, StrCat(flag, ": ", Quoted(text, 200), " is no HOST:PORT"));
}

// Agents of one machine need no port; those of a single node need not meet at all.
RendezvousPlace TorchAuto(const TorchPlace& asked) {
  RendezvousPlace place;
  place.again = true;
  if (asked.max_nodes > 1 && !asked.id.empty()) place.id = RendezvousIdOf(asked.id);
  return place;
}

// Two jobs at two ports are two jobs, also when neither was given an id.
RendezvousPlace TorchTcp(const TorchPlace& asked, std::string host, int port) {
  RendezvousPlace place;
  place.kind = RendezvousPlace::Kind::kTcp;
  place.again = true;
  place.id = RendezvousIdOf(StrCat(asked.id.empty() ? "none" : asked.id, "-", port));
  place.endpoints = {{std::move(host), port}};
  return place;
}

Result<TorchMeeting> TorchStatic(const TorchPlace& asked) {
  constexpr int kMasterPort = 29500;  // torchrun's own default
  const bool one_host = asked.master_addr.empty() && asked.endpoint.empty();
  if (one_host && asked.master_port == 0) return TorchMeeting{TorchAuto(asked), 0};
  const int port = asked.master_port != 0 ? asked.master_port : kMasterPort;
  if (one_host && asked.max_nodes > 1) return TorchMeeting{TorchAuto(asked), port};
  std::string host(one_host ? "127.0.0.1" : asked.master_addr);
  if (host.find(':') != host.npos && !host.starts_with('[')) host = StrCat("[", host, "]");
  const std::string text = asked.endpoint.empty() ? StrCat(host, ":", port) : std::string(asked.endpoint);
  OC_TRY(endpoint,
         TorchEndpoint(asked.endpoint.empty() ? "--master-addr" : "--rdzv-endpoint", text, kMasterPort));
  const int meeting = MeetingPort(endpoint.second);
  TorchMeeting found{TorchTcp(asked, endpoint.first, endpoint.second), endpoint.second};
  found.place.endpoints[0].second = meeting;
  found.place.asked = StrCat(text, " (agents meet at port ", meeting, ")");
  return found;
}

}  // namespace

Result<TorchMeeting> TorchRendezvous(const TorchPlace& asked) {
  const std::string_view backend = asked.backend;
  const bool any_port = asked.endpoint.ends_with(":0");  // of one node, or of agents of this machine
  if (backend == "etcd" || backend == "etcd-v2") {
    if (asked.endpoint.empty())
      return Fail(ErrorCode::kUsage, "--rdzv-backend etcd needs --rdzv-endpoint HOST:PORT");
    RendezvousPlace place;
    place.kind = RendezvousPlace::Kind::kEtcd;
    place.again = true;
    place.id = RendezvousIdOf(asked.id.empty() ? "none" : asked.id);
    OC_TRY(found, WithEndpoints(std::move(place), asked.endpoint, kEtcdPort, asked.endpoint));
    return TorchMeeting{std::move(found), 0};
  }
  if (!backend.empty() && backend != "c10d" && backend != "static") {
    return Fail(ErrorCode::kUsage,
                StrCat("--rdzv-backend: ", Quoted(backend), " is not c10d, etcd, etcd-v2 or static"));
  }
  if (backend != "c10d" && !any_port) return TorchStatic(asked);
  if (asked.endpoint.empty() || any_port) return TorchMeeting{TorchAuto(asked), 0};
  OC_TRY(endpoint, TorchEndpoint("--rdzv-endpoint", asked.endpoint, kTorchPort));
  return TorchMeeting{TorchTcp(asked, std::move(endpoint.first), endpoint.second), 0};
}

}  // namespace overcap::elastic
