#include "io/hdf5_library.hpp"

#include <kith/error.hpp>

#include <fmt/format.h>

#include <dlfcn.h>

namespace kith {
namespace {

std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

template <typename Pointer>
void look_up(void* handle, const char* name, Pointer& pointer) {
  pointer = reinterpret_cast<Pointer>(::dlsym(handle, name));
  if (pointer == nullptr) throw Unsupported(fmt::format("{} lacks {}, which Kith needs", KITH_HDF5_LIBRARY, name));
}

Hdf5Library load() {
  // Never unloaded: it registers what runs at the end of the process.
  void* const handle = ::dlopen(KITH_HDF5_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    throw Unsupported(
        fmt::format("HDF5 files need libhdf5, which could not be loaded ({}); install the one that Kith "
                    "was built with",
                    why == nullptr ? KITH_HDF5_LIBRARY : why));
  }
  Hdf5Library library;
#define KITH_HDF5_LOOK_UP(name) look_up(handle, #name, library.name);
  KITH_HDF5_FUNCTIONS(KITH_HDF5_LOOK_UP)
  KITH_HDF5_VARIABLES(KITH_HDF5_LOOK_UP)
#undef KITH_HDF5_LOOK_UP
  if (library.H5open() < 0) throw Unsupported("libhdf5 could not start");
  return library;
}

const Hdf5Library& library() {
  static const Hdf5Library loaded = load();  // after a failure the next call tries again
  return loaded;
}

herr_t keep_innermost(unsigned, const H5E_error2_t* error, void* kept) {
  if (error->desc != nullptr) *static_cast<std::string*>(kept) = error->desc;
  return 1;  // the first one visited is enough
}

}  // namespace

Hdf5Session::Hdf5Session() : lock_(library_mutex()), library_(library()) {
  library_.H5Eget_auto2(H5E_DEFAULT, &print_, &print_argument_);
  library_.H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Session::~Hdf5Session() {
  library_.H5Eclear2(H5E_DEFAULT);
  library_.H5Eset_auto2(H5E_DEFAULT, print_, print_argument_);
}

std::string Hdf5Session::reason() const {
  std::string innermost;
  library_.H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &innermost);
  return innermost.empty() ? "no reason given" : innermost;
}

Hdf5Id::~Hdf5Id() {
  if (valid()) library().H5Idec_ref(id_);
}

}  // namespace kith
