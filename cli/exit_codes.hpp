// Exit codes and names of errors.
//
//   0 done   1 any other error   2 wrong usage or a request that cannot be served   3 a file   4 memory   5 a device
//   75 a part has done its share and others have not, so run it again later   130 interrupted
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace kith::cli {

// A command line that cannot be parsed.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Failure {
  int exit_code = 1;
  std::string type;  // "InvalidArgument", "IoError", ...
  std::string message;
};

Failure describe(const std::exception_ptr& error);

}  // namespace kith::cli
