// SPDX-License-Identifier: Apache-2.0
#include "elastic/messages.h"

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "elastic/times.h"
#include "model/json_fields.h"

namespace overcap::elastic {
namespace {

constexpr std::string_view kWhat = "message of an elastic launch";
constexpr int kMostRanks = 1'000'000;
constexpr size_t kMostTerms = 64;
constexpr size_t kBeatBytes = 1 + 4 + 8;
constexpr size_t kNodBytes = 1 + 8 + 8;

void PutNumber(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t GetNumber(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return value;
}

std::string Framed(char type, JsonWriter* json) {
  return StrCat(std::string_view(&type, 1), json->EndObject().Text());
}

std::string EncodeOne(const JoinRequest& m) {
  JsonWriter json;
  json.BeginObject().Field("protocol", m.protocol).Field("version", m.version).Field("agent", m.agent);
  WriteBytes(&json, "host", m.host);
  json.Field("address", m.address).Field("ranks", m.ranks).Field("node_rank", m.node_rank);
  json.Key("terms").BeginArray();
  for (const auto& [name, value] : m.terms) {
    json.BeginArray().String(name);
    WriteBytes(&json, value);
    json.EndArray();
  }
  json.EndArray();
  return Framed('J', &json);
}

void WriteFailure(const ElasticFailure& failure, JsonWriter* json) {
  json->Key("failure").BeginObject();
  json->Field("rank", failure.rank).Field("exit_status", failure.exit_status).Field("signal", failure.signal);
  json->Field("out_of_memory", failure.out_of_memory).Field("kind", failure.kind);
  json->Field("message", failure.message).Field("traceback", failure.traceback).EndObject();
}

std::string EncodeOne(const MemberReport& m) {
  JsonWriter json;
  json.BeginObject().Field("seq", m.seq).Field("sent_us", m.sent_us).Field("epoch", m.epoch);
  json.Field("state", RanksStateName(m.state)).Field("port", m.port).Field("leaving", m.leaving);
  json.Field("step", m.step).Field("checkpoint", m.checkpoint).Field("slowest_rank", m.slowest_rank);
  json.Field("slowest_step", m.slowest_step);
  if (m.warned) json.Field("warned", true);
  if (m.failure) WriteFailure(*m.failure, &json);
  return Framed('H', &json);
}

std::string EncodeOne(const MemberBeat& m) {
  std::string frame = "h";
  PutNumber(&frame, m.seq, 4);
  PutNumber(&frame, static_cast<uint64_t>(m.sent_us), 8);
  return frame;
}

std::string EncodeOne(const Refusal& m) {
  JsonWriter json;
  json.BeginObject().Field("code", ErrorCodeName(m.code)).Field("message", m.message);
  return Framed('R', &json);
}

void WriteOrder(const OrderWait& order, JsonWriter* json) {
  json->Field("order", "wait").Field("waiting_for", order.waiting_for);
}

void WriteOrder(const OrderRun& order, JsonWriter* json) {
  json->Field("order", "run").Field("epoch", order.epoch).Field("group_rank", order.group_rank);
  json->Field("group_size", order.group_size).Field("first_rank", order.first_rank);
  json->Field("world_size", order.world_size).Field("restarts", order.restarts);
  json->Field("master_addr", order.master_addr).Field("master_port", order.master_port);
  json->Field("took_us", order.took_us).Field("joined", order.joined).Field("left", order.left);
  json->Field("joined_count", order.joined_count).Field("left_count", order.left_count);
  json->Field("why", order.why).Field("steps_lost", order.steps_lost);
}

void WriteOrder(const OrderStop& order, JsonWriter* json) {
  json->Field("order", "stop").Field("epoch", order.epoch).Field("warn", order.warn);
  json->Field("stacks", order.stacks).Field("why", order.why);
}

void WriteOrder(const OrderEnd& order, JsonWriter* json) {
  json->Field("order", "end").Field("status", order.status).Field("message", order.message);
  json->Field("traceback", order.traceback);
}

std::string EncodeOne(const LeaderAnswer& m) {
  JsonWriter json;
  json.BeginObject().Field("echo_us", m.echo_us).Field("right_us", m.right_us).Field("term", m.term);
  json.Field("grows", m.grows);
  if (m.warned) json.Field("warned", true);
  std::visit([&json](const auto& order) { WriteOrder(order, &json); }, m.order);
  return Framed('A', &json);
}

std::string EncodeOne(const LeaderNod& m) {
  std::string frame = "a";
  PutNumber(&frame, static_cast<uint64_t>(m.echo_us), 8);
  PutNumber(&frame, static_cast<uint64_t>(m.right_us), 8);
  return frame;
}

// Reads with bounds; the first bad field is what Check() tells.
class Bounded {
 public:
  explicit Bounded(const nlohmann::json& json) : reader_(json, kWhat) {}
  template <typename T>
  Bounded& Read(std::string_view key, T* value) {
    reader_.Read(key, value);
    return *this;
  }
  template <typename T>
  Bounded& Read(std::string_view key, T* value, int64_t least, int64_t most) {
    reader_.Read(key, value);
    if (*value < least || *value > most) reader_.Bad(key, "in its range");
    return *this;
  }
  Bounded& Time(std::string_view key, int64_t* value) { return Read(key, value, 0, kNever); }
  FieldReader& reader() { return reader_; }

 private:
  FieldReader reader_;
};

Result<JoinRequest> DecodeJoin(const nlohmann::json& json) {
  JoinRequest m;
  Bounded fields(json);
  fields.Read("protocol", &m.protocol).Read("version", &m.version).Read("agent", &m.agent);
  fields.Read("host", &m.host).Read("address", &m.address).Read("ranks", &m.ranks, 1, kMostRanks);
  fields.Read("node_rank", &m.node_rank, -1, kMostRanks);
  if (m.agent.empty()) fields.reader().Bad("agent", "a name");
  const nlohmann::json* terms = fields.reader().Array("terms");
  if (terms != nullptr && terms->size() > kMostTerms) fields.reader().Bad("terms", "so short");
  OC_TRY_VOID(fields.reader().Check());
  if (terms == nullptr) return m;
  for (const nlohmann::json& pair : *terms) {
    const nlohmann::json named = {
        {"name", pair.is_array() && pair.size() == 2 ? pair[0] : nlohmann::json(0)},
        {"value", pair.is_array() && pair.size() == 2 ? pair[1] : nlohmann::json(0)}};
    auto& [name, value] = m.terms.emplace_back();
    FieldReader term(named, kWhat);
    term.Read("name", &name);
    term.Read("value", &value);
    OC_TRY_VOID(term.Check());
  }
  return m;
}

Result<ElasticFailure> DecodeFailure(const nlohmann::json& json) {
  ElasticFailure m;
  Bounded fields(json);
  fields.Read("rank", &m.rank, -1, kMostRanks).Read("exit_status", &m.exit_status, -1, 255);
  fields.Read("signal", &m.signal, 0, 127).Read("out_of_memory", &m.out_of_memory).Read("kind", &m.kind);
  fields.Read("message", &m.message).Read("traceback", &m.traceback);
  OC_TRY_VOID(fields.reader().Check());
  return m;
}

Result<MemberReport> DecodeReport(const nlohmann::json& json) {
  MemberReport m;
  Bounded fields(json);
  int64_t seq = 0;
  std::string state;
  fields.Read("seq", &seq, 0, UINT32_MAX).Time("sent_us", &m.sent_us).Time("epoch", &m.epoch);
  fields.Read("state", &state).Read("port", &m.port, 0, 65535).Read("leaving", &m.leaving);
  fields.Read("step", &m.step)
      .Read("checkpoint", &m.checkpoint)
      .Read("slowest_rank", &m.slowest_rank, -1, kMostRanks);
  fields.Read("slowest_step", &m.slowest_step).Read("warned", &m.warned);
  m.seq = static_cast<uint32_t>(seq);
  const nlohmann::json* failure = fields.reader().Object("failure");
  if (state == RanksStateName(RanksState::kRunning)) {
    m.state = RanksState::kRunning;
  } else if (state == RanksStateName(RanksState::kDone)) {
    m.state = RanksState::kDone;
  } else if (state != RanksStateName(RanksState::kIdle)) {
    fields.reader().Bad("state", "a state");
  }
  OC_TRY_VOID(fields.reader().Check());
  if (failure != nullptr) {
    OC_TRY(read, DecodeFailure(*failure));
    m.failure = std::move(read);
  }
  return m;
}

Result<OrderRun> DecodeRun(const nlohmann::json& json) {
  OrderRun m;
  Bounded fields(json);
  fields.Read("epoch", &m.epoch, 1, kNever).Read("group_rank", &m.group_rank, 0, kMostRanks);
  fields.Read("group_size", &m.group_size, 1, kMostRanks).Read("first_rank", &m.first_rank, 0, kMostRanks);
  fields.Read("world_size", &m.world_size, 1, kMostRanks).Read("restarts", &m.restarts, 0, kMostRanks);
  fields.Read("master_addr", &m.master_addr).Read("master_port", &m.master_port, 0, 65535);
  fields.Time("took_us", &m.took_us).Read("joined", &m.joined).Read("left", &m.left);
  fields.Read("joined_count", &m.joined_count).Read("left_count", &m.left_count).Read("why", &m.why);
  fields.Read("steps_lost", &m.steps_lost);
  if (m.group_rank >= m.group_size) fields.reader().Bad("group_rank", "one of the group");
  if (m.first_rank >= m.world_size) fields.reader().Bad("first_rank", "one of the world");
  OC_TRY_VOID(fields.reader().Check());
  return m;
}

Result<Order> DecodeOrder(const nlohmann::json& json) {
  Bounded fields(json);
  std::string name;
  fields.Read("order", &name);
  if (name == "run") {
    OC_TRY(order, DecodeRun(json));
    return Order(std::move(order));
  }
  Order order;
  if (name == "wait") {
    OrderWait m;
    fields.Read("waiting_for", &m.waiting_for);
    order = std::move(m);
  } else if (name == "stop") {
    OrderStop m;
    fields.Time("epoch", &m.epoch).Read("warn", &m.warn).Read("stacks", &m.stacks).Read("why", &m.why);
    order = std::move(m);
  } else if (name == "end") {
    OrderEnd m;
    fields.Read("status", &m.status, 0, 255).Read("message", &m.message).Read("traceback", &m.traceback);
    order = std::move(m);
  } else {
    fields.reader().Bad("order", "an order");
  }
  OC_TRY_VOID(fields.reader().Check());
  return order;
}

Result<LeaderAnswer> DecodeAnswer(const nlohmann::json& json) {
  LeaderAnswer m;
  Bounded fields(json);
  fields.Time("echo_us", &m.echo_us).Time("right_us", &m.right_us).Time("term", &m.term);
  fields.Read("grows", &m.grows).Read("warned", &m.warned);
  OC_TRY_VOID(fields.reader().Check());
  OC_TRY(order, DecodeOrder(json));
  m.order = std::move(order);
  return m;
}

Result<Refusal> DecodeRefusal(const nlohmann::json& json) {
  Refusal m;
  Bounded fields(json);
  std::string code;
  fields.Read("code", &code).Read("message", &m.message);
  OC_TRY_VOID(fields.reader().Check());
  m.code = ErrorCodeFromName(code);
  return m;
}

tl::unexpected<Error> NoSuch() {
  return Fail(ErrorCode::kCorrupt, StrCat(kWhat, ": it is of no known type"));
}

}  // namespace

const char* ElasticVersion() {
  return OVERCAP_VERSION;
}

std::string_view RanksStateName(RanksState state) {
  switch (state) {
    case RanksState::kIdle:
      return "idle";
    case RanksState::kRunning:
      return "running";
    case RanksState::kDone:
      return "done";
  }
  return "idle";
}

std::string Encode(const ToLeader& message) {
  return std::visit([](const auto& m) { return EncodeOne(m); }, message);
}

std::string Encode(const ToMember& message) {
  return std::visit([](const auto& m) { return EncodeOne(m); }, message);
}

Result<ToLeader> DecodeToLeader(std::string_view frame) {
  if (frame.size() == kBeatBytes && frame[0] == 'h') {
    const uint64_t sent = GetNumber(frame.substr(5, 8));
    if (sent > static_cast<uint64_t>(kNever)) return NoSuch();
    return ToLeader(
        MemberBeat{static_cast<uint32_t>(GetNumber(frame.substr(1, 4))), static_cast<int64_t>(sent)});
  }
  if (frame.empty() || (frame[0] != 'J' && frame[0] != 'H')) return NoSuch();
  OC_TRY(json, ParseJsonObject(frame.substr(1), kWhat));
  if (frame[0] == 'J') {
    OC_TRY(join, DecodeJoin(json));
    return ToLeader(std::move(join));
  }
  OC_TRY(report, DecodeReport(json));
  return ToLeader(std::move(report));
}

Result<ToMember> DecodeToMember(std::string_view frame) {
  if (frame.size() == kNodBytes && frame[0] == 'a') {
    const uint64_t echo = GetNumber(frame.substr(1, 8)), right = GetNumber(frame.substr(9, 8));
    if (echo > static_cast<uint64_t>(kNever) || right > static_cast<uint64_t>(kNever)) return NoSuch();
    return ToMember(LeaderNod{static_cast<int64_t>(echo), static_cast<int64_t>(right)});
  }
  if (frame.empty() || (frame[0] != 'A' && frame[0] != 'R')) return NoSuch();
  OC_TRY(json, ParseJsonObject(frame.substr(1), kWhat));
  if (frame[0] == 'R') {
    OC_TRY(refusal, DecodeRefusal(json));
    return ToMember(std::move(refusal));
  }
  OC_TRY(answer, DecodeAnswer(json));
  return ToMember(std::move(answer));
}

}  // namespace overcap::elastic
