// libhdf5, loaded when the first HDF5 file is met. The only file that includes hdf5.h.
//
// It is not linked: with the libraries it brings along (curl, Kerberos, LDAP, ...) it would add 6 MiB and 40 ms to
// every start of a program that may never see such a file. The functions are therefore members, looked up by name and
// typed by the header.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

namespace kith {

#define KITH_HDF5_FUNCTIONS(use)                                                                                      \
  use(H5Dclose) use(H5Dcreate2) use(H5Dget_create_plist) use(H5Dget_offset) use(H5Dget_space) use(H5Dget_type)        \
      use(H5Dopen2) use(H5Dread) use(H5Eclear2) use(H5Eget_auto2) use(H5Eset_auto2) use(H5Ewalk2) use(H5Fcreate)      \
          use(H5Fget_create_plist) use(H5Fopen) use(H5Gget_info) use(H5Idec_ref) use(H5Lexists)                       \
              use(H5Lget_name_by_idx) use(H5Pall_filters_avail) use(H5Pcreate) use(H5Pget_chunk)                      \
                  use(H5Pget_external_count) use(H5Pget_layout) use(H5Pget_userblock) use(H5Pset_alloc_time)          \
                      use(H5Pset_chunk_cache) use(H5Pset_create_intermediate_group) use(H5Pset_elink_cb)              \
                          use(H5Pset_fill_time) use(H5Pset_layout) use(H5Pset_obj_track_times) use(H5Screate_simple)  \
                              use(H5Sget_simple_extent_dims) use(H5Sget_simple_extent_ndims) use(H5Sselect_hyperslab) \
                                  use(H5Tcopy) use(H5Tequal) use(H5Tget_class) use(H5Tget_order) use(H5Tget_sign)     \
                                      use(H5Tget_size) use(H5Tset_ebias) use(H5Tset_fields) use(H5Tset_precision)     \
                                          use(H5Tset_size) use(H5open)
// Identifiers that stand behind names such as H5T_IEEE_F32LE, set by H5open.
#define KITH_HDF5_VARIABLES(use)                                                                  \
  use(H5P_CLS_DATASET_ACCESS_ID_g) use(H5P_CLS_DATASET_CREATE_ID_g) use(H5P_CLS_LINK_CREATE_ID_g) \
      use(H5T_IEEE_F32LE_g) use(H5T_STD_I32LE_g) use(H5T_STD_I64LE_g) use(H5T_STD_I8LE_g) use(H5T_STD_U8LE_g)

struct Hdf5Library {
#define KITH_HDF5_MEMBER(name) decltype(&::name) name = nullptr;
  KITH_HDF5_FUNCTIONS(KITH_HDF5_MEMBER)
  KITH_HDF5_VARIABLES(KITH_HDF5_MEMBER)
#undef KITH_HDF5_MEMBER
};

// H5F_ACC_RDONLY and H5F_ACC_TRUNC, which are macros that call the library.
inline constexpr unsigned kHdf5ReadOnly = 0x0000U;
inline constexpr unsigned kHdf5Truncate = 0x0002U;

// The library in use by one thread: it has a single lock of ours, since it need not be built for threads, and its habit
// of printing errors is off while this lives.
class Hdf5Session {
 public:
  // Throws Unsupported where libhdf5 cannot be loaded.
  Hdf5Session();
  ~Hdf5Session();
  Hdf5Session(const Hdf5Session&) = delete;
  Hdf5Session& operator=(const Hdf5Session&) = delete;

  const Hdf5Library* operator->() const { return &library_; }

  // libhdf5's own words for what just failed.
  std::string reason() const;

 private:
  std::lock_guard<std::mutex> lock_;
  const Hdf5Library& library_;
  H5E_auto2_t print_ = nullptr;
  void* print_argument_ = nullptr;
};

// An identifier of libhdf5 that is given back. Lives and dies inside a session.
class Hdf5Id {
 public:
  Hdf5Id() = default;
  explicit Hdf5Id(hid_t id) : id_(id) {}
  ~Hdf5Id();
  Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Hdf5Id& operator=(Hdf5Id&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }

  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }
  // Gives it back now.
  void reset() { *this = Hdf5Id(); }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

}  // namespace kith
