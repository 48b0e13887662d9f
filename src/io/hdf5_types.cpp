#include "io/hdf5_types.hpp"

#include "io/file_error.hpp"

#include <fmt/format.h>

#include <array>

namespace kith {
namespace {

// IEEE half precision, which HDF5 has no name for: the fields of h5py's float16.
Hdf5Id half_type(const Hdf5Session& hdf5) {
  Hdf5Id type(hdf5->H5Tcopy(*hdf5->H5T_IEEE_F32LE_g));
  hdf5->H5Tset_fields(type.get(), 15, 10, 5, 0, 10);
  hdf5->H5Tset_precision(type.get(), 16);
  hdf5->H5Tset_size(type.get(), 2);
  hdf5->H5Tset_ebias(type.get(), 15);
  return type;
}

std::string why_refused(const Hdf5Session& hdf5, hid_t type) {
  const size_t bits = 8 * hdf5->H5Tget_size(type);
  const bool swapped = hdf5->H5Tget_order(type) == H5T_ORDER_BE;
  switch (hdf5->H5Tget_class(type)) {
    case H5T_FLOAT: return fmt::format("{}-bit {}floating-point numbers", bits, swapped ? "big-endian " : "");
    case H5T_INTEGER:
      return fmt::format("{}-bit {}{}integers", bits, swapped ? "big-endian " : "",
                         hdf5->H5Tget_sign(type) == H5T_SGN_NONE ? "unsigned " : "");
    case H5T_STRING: return "strings";
    case H5T_COMPOUND: return "compound values";
    case H5T_ENUM: return "an enumeration (booleans, perhaps)";
    default: return "values of a type that is no number";
  }
}

}  // namespace

Hdf5Id hdf5_type_of(const Hdf5Session& hdf5, ElementType element) {
  switch (element) {
    case ElementType::f16: return half_type(hdf5);
    case ElementType::u8: return Hdf5Id(hdf5->H5Tcopy(*hdf5->H5T_STD_U8LE_g));
    case ElementType::i8: return Hdf5Id(hdf5->H5Tcopy(*hdf5->H5T_STD_I8LE_g));
    case ElementType::i32: return Hdf5Id(hdf5->H5Tcopy(*hdf5->H5T_STD_I32LE_g));
    case ElementType::i64: return Hdf5Id(hdf5->H5Tcopy(*hdf5->H5T_STD_I64LE_g));
    default: return Hdf5Id(hdf5->H5Tcopy(*hdf5->H5T_IEEE_F32LE_g));
  }
}

ElementType element_of_hdf5(const Hdf5Session& hdf5, const Hdf5Id& type, const std::string& path) {
  constexpr std::array kTaken{ElementType::f32, ElementType::f16, ElementType::u8,
                              ElementType::i8,  ElementType::i32, ElementType::i64};
  for (const ElementType element : kTaken) {
    if (hdf5->H5Tequal(type.get(), hdf5_type_of(hdf5, element).get()) > 0) return element;
  }
  throw_refused(path, 0,
                fmt::format("the dataset holds {}; taken are float32, float16, uint8 and int8 for vectors and int32 "
                            "and int64 for ids, little-endian",
                            why_refused(hdf5, type.get())));
}

}  // namespace kith
