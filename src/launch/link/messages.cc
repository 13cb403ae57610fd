// SPDX-License-Identifier: Apache-2.0
#include "launch/link/messages.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "model/json_fields.h"

namespace overcap::node_link {
namespace {

constexpr size_t kOutputHeader = 6;  // type, rank, stream
constexpr int kMaxRanks = 1 << 24;
constexpr std::string_view kWhat = "message of a launch";

std::string Framed(char type, JsonWriter* json) {
  return StrCat(type, json->Take());
}

void WriteList(JsonWriter* json, std::string_view key, const std::vector<std::string>& values) {
  json->Key(key).BeginArray();
  for (const std::string& value : values) WriteBytes(json, value);
  json->EndArray();
}

std::string EncodeOne(const Start& m) {
  JsonWriter json;
  json.BeginObject();
  json.Field("node_rank", m.node_rank).Field("first_rank", m.first_rank).Field("ranks", m.ranks);
  json.Field("world_size", m.world_size);
  WriteList(&json, "command", m.command);
  WriteList(&json, "env", m.env);
  WriteBytes(&json, "folder", m.folder);
  WriteBytes(&json, "master_addr", m.master_addr);
  json.Field("master_port", m.master_port).Field("grace_us", m.grace_us);
  WriteBytes(&json, "cpu_bind", m.cpu_bind);
  json.EndObject();
  return Framed('S', &json);
}

std::string EncodeOne(const Place& m) {
  JsonWriter json;
  json.BeginObject();
  WriteBytes(&json, "master_addr", m.master_addr);
  json.Field("master_port", m.master_port).EndObject();
  return Framed('P', &json);
}

std::string EncodeOne(const Stacks&) {
  return "C{}";
}

std::string EncodeOne(const Warn&) {
  return "W{}";
}

std::string EncodeOne(const Stop& m) {
  JsonWriter json;
  json.BeginObject().Field("grace_us", m.grace_us);
  if (m.interrupted) json.Field("interrupted", true);
  json.EndObject();
  return Framed('T', &json);
}

std::string EncodeOne(const Hello& m) {
  JsonWriter json;
  json.BeginObject().Field("protocol", m.protocol);
  WriteBytes(&json, "version", m.version);
  WriteBytes(&json, "host", m.host);
  WriteBytes(&json, "address", m.address);
  json.Field("free_port", m.free_port).Field("node_rank", m.node_rank).EndObject();
  return Framed('H', &json);
}

std::string EncodeOne(const Begun& m) {
  JsonWriter json;
  json.BeginObject().Field("rank", m.rank).Field("pid", m.pid).EndObject();
  return Framed('B', &json);
}

std::string EncodeOne(const Output& m) {
  std::string frame(kOutputHeader, 'O');
  for (int i = 0; i < 4; ++i) frame[1 + i] = static_cast<char>(static_cast<uint32_t>(m.rank) >> (8 * i));
  frame[5] = static_cast<char>(m.stream);
  return frame.append(m.bytes);
}

std::string EncodeOne(const Ended& m) {
  JsonWriter json;
  json.BeginObject().Field("rank", m.rank).Field("exit_status", m.exit_status).Field("signal", m.signal);
  json.Field("known", m.known).Field("out_of_memory", m.out_of_memory);
  WriteBytes(&json, "reason", m.reason);
  json.EndObject();
  return Framed('E', &json);
}

std::string EncodeOne(const Stack& m) {
  JsonWriter json;
  json.BeginObject().Field("rank", m.rank);
  WriteBytes(&json, "text", m.text);
  json.EndObject();
  return Framed('K', &json);
}

std::string EncodeOne(const Note& m) {
  JsonWriter json;
  json.BeginObject();
  WriteBytes(&json, "text", m.text);
  json.EndObject();
  return Framed('N', &json);
}

std::string EncodeOne(const NothingLeft&) {
  return "X{}";
}

// The fields of one message, with ranges.
class Fields {
 public:
  explicit Fields(const nlohmann::json& object) : reader_(object, kWhat) {}

  template <typename T>
  Fields& Read(std::string_view key, T* value) {
    reader_.Read(key, value);
    return *this;
  }
  template <typename N>
  Fields& Read(std::string_view key, N* value, int64_t low, int64_t high) {
    reader_.Read(key, value);
    if (*value < low || *value > high) reader_.Bad(key, "number in its range");
    return *this;
  }
  Fields& Rank(int* rank) { return Read("rank", rank, 0, kMaxRanks); }
  Fields& Port(std::string_view key, int* port) { return Read(key, port, 0, 65535); }

  FieldReader& reader() { return reader_; }

 private:
  FieldReader reader_;
};

template <typename T>
Result<T> Checked(FieldReader& reader, T message) {
  OC_TRY_VOID(reader.Check());
  return message;
}

constexpr int64_t kAnyTime = std::numeric_limits<int64_t>::max();

Result<ToNode> DecodeStart(Fields fields) {
  Start m;
  fields.Read("world_size", &m.world_size, 1, kMaxRanks).Read("ranks", &m.ranks, 1, kMaxRanks);
  fields.Read("node_rank", &m.node_rank, 0, kMaxRanks).Read("first_rank", &m.first_rank, 0, kMaxRanks);
  fields.Read("command", &m.command).Read("env", &m.env).Read("folder", &m.folder);
  fields.Read("master_addr", &m.master_addr).Port("master_port", &m.master_port);
  fields.Read("grace_us", &m.grace_us, 0, kAnyTime);
  fields.Read("cpu_bind", &m.cpu_bind);
  if (m.command.empty()) fields.reader().Bad("command", "command");
  if (m.first_rank + m.ranks > m.world_size) fields.reader().Bad("ranks", "part of the world");
  return Checked<ToNode>(fields.reader(), std::move(m));
}

Result<ToNode> DecodePlace(Fields fields) {
  Place m;
  fields.Read("master_addr", &m.master_addr).Port("master_port", &m.master_port);
  return Checked<ToNode>(fields.reader(), std::move(m));
}

Result<ToNode> DecodeStop(Fields fields) {
  Stop m;
  fields.Read("grace_us", &m.grace_us, 0, kAnyTime).Read("interrupted", &m.interrupted);
  return Checked<ToNode>(fields.reader(), m);
}

Result<ToHead> DecodeHello(Fields fields) {
  Hello m;
  fields.Read("protocol", &m.protocol).Read("version", &m.version).Read("host", &m.host);
  fields.Read("address", &m.address).Port("free_port", &m.free_port);
  fields.Read("node_rank", &m.node_rank, -1, kMaxRanks);
  return Checked<ToHead>(fields.reader(), std::move(m));
}

Result<ToHead> DecodeBegun(Fields fields) {
  Begun m;
  fields.Rank(&m.rank).Read("pid", &m.pid, 0, kAnyTime);
  return Checked<ToHead>(fields.reader(), m);
}

Result<ToHead> DecodeEnded(Fields fields) {
  Ended m;
  fields.Rank(&m.rank).Read("exit_status", &m.exit_status, -1, 255).Read("signal", &m.signal, 0, 127);
  fields.Read("known", &m.known).Read("out_of_memory", &m.out_of_memory).Read("reason", &m.reason);
  return Checked<ToHead>(fields.reader(), std::move(m));
}

Result<ToHead> DecodeStack(Fields fields) {
  Stack m;
  fields.Rank(&m.rank).Read("text", &m.text);
  return Checked<ToHead>(fields.reader(), std::move(m));
}

Result<ToHead> DecodeNote(Fields fields) {
  Note m;
  fields.Read("text", &m.text);
  return Checked<ToHead>(fields.reader(), std::move(m));
}

Result<ToHead> DecodeOutput(std::string_view frame) {
  Output m;
  if (frame.size() < kOutputHeader) return Fail(ErrorCode::kCorrupt, StrCat(kWhat, ": output is cut off"));
  uint32_t rank = 0;
  for (int i = 0; i < 4; ++i) rank |= static_cast<uint32_t>(static_cast<uint8_t>(frame[1 + i])) << (8 * i);
  m.stream = frame[5];
  if (rank > kMaxRanks || m.stream < 1 || m.stream > 2) {
    return Fail(ErrorCode::kCorrupt, StrCat(kWhat, ": output of no rank or stream"));
  }
  m.rank = static_cast<int>(rank);
  m.bytes = frame.substr(kOutputHeader);
  return m;
}

tl::unexpected<Error> Unknown(std::string_view frame) {
  return Fail(ErrorCode::kCorrupt, frame.empty()
                                       ? StrCat(kWhat, ": it is empty")
                                       : StrCat(kWhat, ": unknown type '", ToUtf8(frame.substr(0, 1)), "'"));
}

}  // namespace

std::string Encode(const ToNode& message) {
  return std::visit([](const auto& m) { return EncodeOne(m); }, message);
}

std::string Encode(const ToHead& message) {
  return std::visit([](const auto& m) { return EncodeOne(m); }, message);
}

Result<ToNode> DecodeToNode(std::string_view frame) {
  if (frame.empty() || std::string_view("SPCWT").find(frame[0]) == std::string_view::npos)
    return Unknown(frame);
  OC_TRY(json, ParseJsonObject(frame.substr(1), kWhat));
  switch (frame[0]) {
    case 'S':
      return DecodeStart(Fields(json));
    case 'P':
      return DecodePlace(Fields(json));
    case 'T':
      return DecodeStop(Fields(json));
    case 'W':
      return Warn{};
    default:
      return Stacks{};
  }
}

Result<ToHead> DecodeToHead(std::string_view frame) {
  if (frame.empty() || std::string_view("HBOEKNX").find(frame[0]) == std::string_view::npos) {
    return Unknown(frame);
  }
  if (frame[0] == 'O') return DecodeOutput(frame);
  OC_TRY(json, ParseJsonObject(frame.substr(1), kWhat));
  switch (frame[0]) {
    case 'H':
      return DecodeHello(Fields(json));
    case 'B':
      return DecodeBegun(Fields(json));
    case 'E':
      return DecodeEnded(Fields(json));
    case 'K':
      return DecodeStack(Fields(json));
    case 'N':
      return DecodeNote(Fields(json));
    default:
      return NothingLeft{};
  }
}

}  // namespace overcap::node_link
