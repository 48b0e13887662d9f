#include "exit_codes.hpp"

#include <kith/error.hpp>
#include <kith/work_part.hpp>

#include <new>
#include <string_view>

namespace kith::cli {

namespace {

// Replaces the library's names of parameters by the program's options.
std::string in_terms_of_options(std::string text) {
  constexpr std::string_view kParameter = "check_finite = false";
  if (const size_t at = text.find(kParameter); at != std::string::npos) {
    text.replace(at, kParameter.size(), "--no-check-finite");
  }
  return text;
}

}  // namespace

Failure describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const UsageError& e) {
    return {2, "UsageError", e.what()};
  } catch (const InvalidArgument& e) {
    return {2, "InvalidArgument", in_terms_of_options(e.what())};
  } catch (const Unsupported& e) {
    return {2, "Unsupported", e.what()};
  } catch (const IoError& e) {
    return {3, "IoError", e.what()};
  } catch (const CorruptFile& e) {
    return {3, "CorruptFile", e.what()};
  } catch (const OutOfMemory& e) {
    return {4, "OutOfMemory", e.what()};
  } catch (const std::bad_alloc&) {
    return {4, "OutOfMemory", "the system is out of memory"};
  } catch (const DeviceError& e) {
    return {5, "DeviceError", e.what()};
  } catch (const Cancelled&) {
    return {130, "Cancelled", "interrupted; no output was written"};
  } catch (const Unfinished& e) {
    return {75, "Unfinished", e.what()};
  } catch (const InvalidState& e) {
    return {1, "InvalidState", e.what()};
  } catch (const std::exception& e) {
    return {1, "Error", e.what()};
  } catch (...) {
    return {1, "Error", "an unknown error"};
  }
}

}  // namespace kith::cli
