// Kith's exceptions become the ones that a Python person expects.
//
//   InvalidArgument   ValueError
//   CorruptFile       kith.CorruptFileError, a ValueError with filename and offset
//   IoError           OSError; where there is an errno, with it and the filename, as FileNotFoundError and its like
//   OutOfMemory       MemoryError
//   Unsupported       NotImplementedError, a RuntimeError
//   Unfinished        kith.UnfinishedError, a RuntimeError
//   every other       RuntimeError
#include "module.hpp"

#include <kith/error.hpp>
#include <kith/work_part.hpp>

#include <fmt/format.h>

#include <exception>
#include <string>
#include <string_view>

namespace kith::python {
namespace {

// A path need not be UTF-8; Python's own rule for such names is used.
nb::object file_name(const std::string& path) {
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

// The library's words, with the one setting that it quotes written as Python writes it.
nb::str text(const std::exception& error) {
  std::string what = error.what();
  constexpr std::string_view kSetting = "check_finite = false";
  if (const size_t at = what.find(kSetting); at != std::string::npos) {
    what.replace(at, kSetting.size(), "check_finite=False");
  }
  PyObject* decoded = PyUnicode_DecodeUTF8(what.data(), static_cast<Py_ssize_t>(what.size()), "backslashreplace");
  return nb::steal<nb::str>(decoded);
}

void raise(nb::handle type, nb::object error) { PyErr_SetObject(type.ptr(), error.ptr()); }

void set_os_error(const IoError& error) {
  nb::handle type = PyExc_OSError;
  // Python shows errno, these words and the filename. So the words leave the name out, and what the system call was; who
  // failed ("rank 1 on host: ") stays. Without an errno the text stands alone.
  if (error.code() == 0) {
    const nb::object raised = type(text(error));
    return raise(raised.type(), raised);
  }
  nb::object words = text(error);
  const std::string_view what = error.what();
  const std::string quoted = fmt::format(" '{}': ", error.path());
  if (const size_t named = what.find(quoted); named != std::string_view::npos) {
    const size_t who = what.rfind(": ", named);
    const std::string_view before = who == std::string_view::npos ? "" : what.substr(0, who + 2);
    const std::string shown = fmt::format("{}{}", before, what.substr(named + quoted.size()));
    words = nb::steal(PyUnicode_DecodeUTF8(shown.data(), static_cast<Py_ssize_t>(shown.size()), "backslashreplace"));
  }
  const nb::object raised = type(error.code(), words, file_name(error.path()));
  raise(raised.type(), raised);
}

void set_corrupt_file(const CorruptFile& error) {
  nb::object type = nb::module_::import_("kith._errors").attr("CorruptFileError");
  raise(type, type(text(error), file_name(error.path()), error.offset()));
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const InvalidArgument& error) {
    raise(PyExc_ValueError, text(error));
  } catch (const CorruptFile& error) {
    set_corrupt_file(error);
  } catch (const IoError& error) {
    set_os_error(error);
  } catch (const OutOfMemory& error) {
    raise(PyExc_MemoryError, text(error));
  } catch (const Unsupported& error) {
    raise(PyExc_NotImplementedError, text(error));
  } catch (const Unfinished& error) {
    raise(nb::module_::import_("kith._errors").attr("UnfinishedError"), text(error));
  } catch (const Error& error) {
    raise(PyExc_RuntimeError, text(error));
  }
}

}  // namespace

void bind_errors() { nb::register_exception_translator(translate); }

}  // namespace kith::python
