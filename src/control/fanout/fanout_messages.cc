// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/fanout_messages.h"

#include <cstring>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "model/json_fields.h"

namespace overcap::fanout {
namespace {

constexpr std::string_view kWhat = "message of a fan-out";
constexpr size_t kChunkBytes = 36;  // id and size
constexpr uint32_t kChunkSizeMost = 8 << 20;
constexpr size_t kKeyMost = 1000;

void PutNumber(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t NumberAt(std::string_view bytes, size_t at, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    value |= uint64_t{static_cast<unsigned char>(bytes[at + static_cast<size_t>(i)])} << (8 * i);
  }
  return value;
}

void WriteList(JsonWriter* json, std::string_view key, const std::vector<std::string>& values) {
  json->Key(key).BeginArray();
  for (const std::string& value : values) WriteBytes(json, value);
  json->EndArray();
}

std::string Framed(char type, JsonWriter* json) {
  json->EndObject();
  return StrCat(type, json->Take());
}

std::string EncodeOne(const Object& m) {
  std::string frame = "O";
  PutNumber(&frame, m.key.size(), 2);
  return frame.append(m.key).append(m.content);
}

std::string EncodeOne(const Start& m) {
  JsonWriter json;
  json.BeginObject().Field("protocol", m.protocol).Field("tree", m.tree).Field("key", m.key);
  WriteBytes(&json, "target", m.target);
  WriteList(&json, "old", m.old);
  json.Field("fix", m.fix).Field("force", m.force);
  return Framed('S', &json);
}

std::string EncodeOne(const Use& m) {
  JsonWriter json;
  json.BeginObject();
  WriteBytes(&json, "peer", m.peer);
  WriteList(&json, "addresses", m.addresses);
  json.Field("port", m.port).Field("head", m.head);
  return Framed('U', &json);
}

std::string EncodeOne(const Data& m) {
  std::string frame = "D";
  PutNumber(&frame, m.request, 8);
  return frame.append(m.answer);
}

std::string EncodeOne(const Finish&) {
  return "F{}";
}

std::string EncodeOne(const Hello& m) {
  JsonWriter json;
  json.BeginObject().Field("protocol", m.protocol);
  WriteBytes(&json, "version", m.version);
  WriteBytes(&json, "host", m.host);
  WriteList(&json, "addresses", m.addresses);
  return Framed('H', &json);
}

std::string EncodeOne(const Ask& m) {
  JsonWriter json;
  json.BeginObject();
  WriteBytes(&json, "why", m.why);
  return Framed('A', &json);
}

std::string EncodeOne(const Get& m) {
  std::string frame = "G";
  PutNumber(&frame, m.request, 8);
  return frame.append(EncodeChunkList(m.chunks));
}

std::string EncodeOne(const Progress& m) {
  JsonWriter json;
  json.BeginObject().Field("bytes_done", m.bytes_done).Field("bytes_total", m.bytes_total);
  return Framed('P', &json);
}

std::string EncodeOne(const Ready& m) {
  JsonWriter json;
  json.BeginObject().Field("port", m.port).Field("files", m.files).Field("bytes", m.bytes);
  json.Field("written_files", m.written_files).Field("written_bytes", m.written_bytes);
  json.Field("same_files", m.same_files).Field("removed", m.removed).Field("fixed", m.fixed);
  json.Field("from_peers", m.from_peers).Field("from_head", m.from_head).Field("reused", m.reused);
  json.Field("failed", m.failed);
  WriteList(&json, "problems", m.problems);
  return Framed('R', &json);
}

std::string EncodeOne(const Trouble& m) {
  JsonWriter json;
  json.BeginObject().Field("code", ErrorCodeName(m.error.code));
  WriteBytes(&json, "message", m.error.message);
  WriteBytes(&json, "hint", m.error.hint);
  return Framed('E', &json);
}

Result<void> InRange(FieldReader* reader, std::string_view key, int64_t value, int64_t most) {
  if (value < 0 || value > most) reader->Bad(key, "number in its range");
  return reader->Check();
}

Result<Object> DecodeObject(std::string_view rest) {
  if (rest.size() < 2) return Fail(ErrorCode::kCorrupt, "an object of a fan-out has no key");
  const size_t length = NumberAt(rest, 0, 2);
  if (length > kKeyMost || length > rest.size() - 2)
    return Fail(ErrorCode::kCorrupt, "an object of a fan-out has no key");
  return Object{std::string(rest.substr(2, length)), std::string(rest.substr(2 + length))};
}

Result<uint64_t> RequestOf(std::string_view rest) {
  if (rest.size() < 8) return Fail(ErrorCode::kCorrupt, "a request of a fan-out has no number");
  return NumberAt(rest, 0, 8);
}

Result<Start> DecodeStart(const nlohmann::json& object) {
  Start m;
  FieldReader reader(object, kWhat);
  reader.Read("protocol", &m.protocol);
  reader.Read("tree", &m.tree);
  reader.Read("key", &m.key);
  reader.Read("target", &m.target);
  reader.Read("old", &m.old);
  reader.Read("fix", &m.fix);
  reader.Read("force", &m.force);
  OC_TRY_VOID(reader.Check());
  return m;
}

Result<Use> DecodeUse(const nlohmann::json& object) {
  Use m;
  FieldReader reader(object, kWhat);
  reader.Read("peer", &m.peer);
  reader.Read("addresses", &m.addresses);
  reader.Read("port", &m.port);
  reader.Read("head", &m.head);
  OC_TRY_VOID(InRange(&reader, "port", m.port, 65535));
  return m;
}

Result<Hello> DecodeHello(const nlohmann::json& object) {
  Hello m;
  FieldReader reader(object, kWhat);
  reader.Read("protocol", &m.protocol);
  reader.Read("version", &m.version);
  reader.Read("host", &m.host);
  reader.Read("addresses", &m.addresses);
  OC_TRY_VOID(reader.Check());
  return m;
}

Result<Progress> DecodeProgress(const nlohmann::json& object) {
  Progress m;
  FieldReader reader(object, kWhat);
  reader.Read("bytes_done", &m.bytes_done);
  reader.Read("bytes_total", &m.bytes_total);
  OC_TRY_VOID(InRange(&reader, "bytes_done", m.bytes_done, INT64_MAX));
  OC_TRY_VOID(InRange(&reader, "bytes_total", m.bytes_total, INT64_MAX));
  return m;
}

Result<Ready> DecodeReady(const nlohmann::json& object) {
  Ready m;
  FieldReader reader(object, kWhat);
  reader.Read("port", &m.port);
  const std::pair<std::string_view, int64_t*> numbers[] = {
      {"files", &m.files},           {"bytes", &m.bytes},           {"written_files", &m.written_files},
      {"same_files", &m.same_files}, {"removed", &m.removed},       {"written_bytes", &m.written_bytes},
      {"fixed", &m.fixed},           {"from_peers", &m.from_peers}, {"from_head", &m.from_head},
      {"reused", &m.reused},         {"failed", &m.failed},
  };
  for (const auto& [key, value] : numbers) {
    reader.Read(key, value);
    OC_TRY_VOID(InRange(&reader, key, *value, INT64_MAX));
  }
  reader.Read("problems", &m.problems);
  OC_TRY_VOID(InRange(&reader, "port", m.port, 65535));
  return m;
}

Result<Trouble> DecodeTrouble(const nlohmann::json& object) {
  Trouble m;
  std::string code;
  FieldReader reader(object, kWhat);
  reader.Read("code", &code);
  reader.Read("message", &m.error.message);
  reader.Read("hint", &m.error.hint);
  OC_TRY_VOID(reader.Check());
  m.error.code = ErrorCodeFromName(code);
  return m;
}

template <typename To, typename M>
Result<To> As(Result<M> message) {
  if (!message) return Fail(std::move(message).error());
  return To(*std::move(message));
}

tl::unexpected<Error> Unknown() {
  return Fail(ErrorCode::kCorrupt, "a message of a fan-out of a kind that nobody knows");
}

}  // namespace

std::string EncodeChunkList(const std::vector<WantedChunk>& chunks) {
  std::string out;
  out.reserve(chunks.size() * kChunkBytes);
  for (const WantedChunk& chunk : chunks) {
    out.append(reinterpret_cast<const char*>(chunk.id.bytes.data()), chunk.id.bytes.size());
    PutNumber(&out, chunk.size, 4);
  }
  return out;
}

Result<std::vector<WantedChunk>> DecodeChunkList(std::string_view bytes) {
  const auto bad = [] { return Fail(ErrorCode::kCorrupt, "a request for chunks is none"); };
  if (bytes.empty() || bytes.size() % kChunkBytes != 0) return bad();
  std::vector<WantedChunk> chunks(bytes.size() / kChunkBytes);
  int64_t total = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    std::memcpy(chunks[i].id.bytes.data(), bytes.data() + i * kChunkBytes, chunks[i].id.bytes.size());
    chunks[i].size = static_cast<uint32_t>(NumberAt(bytes, i * kChunkBytes + 32, 4));
    total += chunks[i].size;
    if (chunks[i].size == 0 || chunks[i].size > kChunkSizeMost || total > kRequestMost) return bad();
  }
  return chunks;
}

std::string Encode(const ToNode& message) {
  return std::visit([](const auto& m) { return EncodeOne(m); }, message);
}

std::string Encode(const ToHead& message) {
  return std::visit([](const auto& m) { return EncodeOne(m); }, message);
}

Result<ToNode> DecodeToNode(std::string_view frame) {
  if (frame.empty()) return Unknown();
  const std::string_view rest = frame.substr(1);
  if (frame[0] == 'O') return As<ToNode>(DecodeObject(rest));
  if (frame[0] == 'D') {
    OC_TRY(request, RequestOf(rest));
    return ToNode(Data{request, rest.substr(8)});
  }
  OC_TRY(object, ParseJsonObject(rest, kWhat));
  switch (frame[0]) {
    case 'S':
      return As<ToNode>(DecodeStart(object));
    case 'U':
      return As<ToNode>(DecodeUse(object));
    case 'F':
      return ToNode(Finish{});
    default:
      return Unknown();
  }
}

Result<ToHead> DecodeToHead(std::string_view frame) {
  if (frame.empty()) return Unknown();
  const std::string_view rest = frame.substr(1);
  if (frame[0] == 'G') {
    OC_TRY(request, RequestOf(rest));
    OC_TRY(chunks, DecodeChunkList(rest.substr(8)));
    return ToHead(Get{request, std::move(chunks)});
  }
  OC_TRY(object, ParseJsonObject(rest, kWhat));
  switch (frame[0]) {
    case 'H':
      return As<ToHead>(DecodeHello(object));
    case 'A': {
      Ask m;
      FieldReader reader(object, kWhat);
      reader.Read("why", &m.why);
      OC_TRY_VOID(reader.Check());
      return ToHead(std::move(m));
    }
    case 'P':
      return As<ToHead>(DecodeProgress(object));
    case 'R':
      return As<ToHead>(DecodeReady(object));
    case 'E':
      return As<ToHead>(DecodeTrouble(object));
    default:
      return Unknown();
  }
}

}  // namespace overcap::fanout
