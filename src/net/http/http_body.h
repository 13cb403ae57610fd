// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/http/http_exchange.h"

namespace overcap {

// Reads the body to its end. False: it was cut short on purpose (the text of an error answer that is too long
// to be of use), and the connection stands in its middle.
Result<bool> ReadHttpBody(HttpLink& link, const HttpResponse& head, const HttpFraming& framing,
                          const HttpBodyTo& to, const HttpWait& wait);

}  // namespace overcap
