// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/system_engine.h"

#include "base/json_scan.h"
#include "clusters/local/engine_client.h"
#include "sys/variables.h"

namespace overcap {

std::string SystemSocket() {
  const std::string named(Variables::OfThisProcess().Get(kSystemSocketVariable));
  return named.empty() ? std::string(kSystemSocket) : named;
}

Result<std::string> SystemArea(bool needed) {
  EngineClient::Options options{
      .root = {}, .binary = {}, .machine_json = {}, .socket = SystemSocket(), .of_root = true};
  if (!needed) options.retry_time = {};
  EngineClient client(std::move(options));
  OC_TRY(reply, client.Call("{\"op\":\"status\"}"));
  const auto area = JsonString(JsonMember(reply, "area"));
  if (!area || !area->starts_with('/'))
    return Fail(ErrorCode::kInternal, "the machine's engine does not say where this user's jobs are");
  return *area;
}

}  // namespace overcap
