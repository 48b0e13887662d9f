// The exceptions that Kith throws. Messages say what was given, what is allowed and what to do.
#pragma once

#include <kith/export.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace kith {

class KITH_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An argument that the function does not accept: a value, shape, dtype or name.
class KITH_EXPORT InvalidArgument : public Error {
 public:
  using Error::Error;
};

// The object is not ready for this call: committing a file before all rows were written, for instance.
class KITH_EXPORT InvalidState : public Error {
 public:
  using Error::Error;
};

// A valid request that this build or this device cannot serve.
class KITH_EXPORT Unsupported : public Error {
 public:
  using Error::Error;
};

// The operating system refused an operation on a file. `code` is the errno, or 0.
class KITH_EXPORT IoError : public Error {
 public:
  IoError(const std::string& what, std::string path, int code) : Error(what), path_(std::move(path)), code_(code) {}
  const std::string& path() const { return path_; }
  int code() const { return code_; }

 private:
  std::string path_;
  int code_;
};

// A file was read but violates its format, at `offset`.
class KITH_EXPORT CorruptFile : public Error {
 public:
  CorruptFile(const std::string& what, std::string path, int64_t offset)
      : Error(what), path_(std::move(path)), offset_(offset) {}
  const std::string& path() const { return path_; }
  int64_t offset() const { return offset_; }

 private:
  std::string path_;
  int64_t offset_;
};

// A memory limit, or the memory itself, is too small. `bytes_needed` is a limit with which the whole call works if it
// was refused before work began, otherwise the size of the allocation that failed.
class KITH_EXPORT OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& what, int64_t bytes_needed) : Error(what), bytes_needed_(bytes_needed) {}
  OutOfMemory(const std::string& what, int64_t bytes_needed, std::string refused)
      : Error(what), refused_(std::move(refused)), bytes_needed_(bytes_needed) {}
  int64_t bytes_needed() const { return bytes_needed_; }
  // What was refused, without the limit that would do, where what() names one; else empty. For programs whose own limit
  // is another one.
  const std::string& refused() const { return refused_; }

 private:
  std::string refused_;
  int64_t bytes_needed_;
};

// A CUDA call failed.
class KITH_EXPORT DeviceError : public Error {
 public:
  using Error::Error;
};

// The caller asked a running operation to stop.
class KITH_EXPORT Cancelled : public Error {
 public:
  Cancelled() : Error("the operation was cancelled") {}
};

}  // namespace kith
