// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace overcap {

// A certificate that vouches for itself, and its key, as PEM files.
struct TestCertificate {
  std::string cert_file, key_file;
};

// Written to FOLDER/NAME.pem and FOLDER/NAME.key. `names` are such as "DNS:localhost" and "IP:127.0.0.1".
TestCertificate MakeTestCertificate(const std::string& folder, const std::string& name,
                                    const std::vector<std::string>& names);

}  // namespace overcap
