#include "capi/status.hpp"

#include <kith/error.hpp>
#include <kith/version.hpp>

#include <new>
#include <string>

namespace kith::capi {
namespace {

// The error of the last failed call on this thread.
struct LastError {
  std::string text;
  const char* message = "";  // the text, or a literal where there was no memory for one
  int64_t bytes_needed = 0;
};
thread_local LastError last_error;

kith_status keep(kith_status status, const char* message, int64_t bytes_needed = 0) noexcept {
  last_error.bytes_needed = bytes_needed;
  try {
    last_error.text = message;
    last_error.message = last_error.text.c_str();
  } catch (...) {
    last_error.message = "not enough memory for the message of an error";
  }
  return status;
}

}  // namespace

kith_status keep_current_exception() noexcept {
  try {
    throw;
  } catch (const InvalidArgument& error) {
    return keep(KITH_INVALID_ARGUMENT, error.what());
  } catch (const InvalidState& error) {
    return keep(KITH_INVALID_STATE, error.what());
  } catch (const Unsupported& error) {
    return keep(KITH_UNSUPPORTED, error.what());
  } catch (const IoError& error) {
    return keep(KITH_IO_ERROR, error.what());
  } catch (const CorruptFile& error) {
    return keep(KITH_CORRUPT_FILE, error.what());
  } catch (const OutOfMemory& error) {
    return keep(KITH_OUT_OF_MEMORY, error.what(), error.bytes_needed());
  } catch (const DeviceError& error) {
    return keep(KITH_DEVICE_ERROR, error.what());
  } catch (const Cancelled& error) {
    return keep(KITH_CANCELLED, error.what());
  } catch (const std::bad_alloc&) {
    return keep(KITH_OUT_OF_MEMORY, "not enough memory");
  } catch (const std::exception& error) {
    return keep(KITH_INTERNAL_ERROR, error.what());
  } catch (...) {
    return keep(KITH_INTERNAL_ERROR, "an exception of unknown type");
  }
}

}  // namespace kith::capi

using namespace kith;
using namespace kith::capi;

extern "C" {

const char* kith_last_message(void) { return last_error.message; }
int64_t kith_last_bytes_needed(void) { return last_error.bytes_needed; }

const char* kith_status_name(kith_status status) {
  switch (static_cast<int>(status)) {
    case KITH_OK: return "KITH_OK";
    case KITH_INVALID_ARGUMENT: return "KITH_INVALID_ARGUMENT";
    case KITH_INVALID_STATE: return "KITH_INVALID_STATE";
    case KITH_UNSUPPORTED: return "KITH_UNSUPPORTED";
    case KITH_IO_ERROR: return "KITH_IO_ERROR";
    case KITH_CORRUPT_FILE: return "KITH_CORRUPT_FILE";
    case KITH_OUT_OF_MEMORY: return "KITH_OUT_OF_MEMORY";
    case KITH_DEVICE_ERROR: return "KITH_DEVICE_ERROR";
    case KITH_CANCELLED: return "KITH_CANCELLED";
    case KITH_INTERNAL_ERROR: return "KITH_INTERNAL_ERROR";
    default: return "no status of Kith";
  }
}

// A literal, which ends with a zero.
const char* kith_version(void) { return version().data(); }

}  // extern "C"
