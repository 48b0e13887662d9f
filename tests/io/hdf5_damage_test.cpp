// Small HDF5 files of every kind, cut short at every byte and with every byte changed: each is read or is a typed error
// that knows its place.
#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "io/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

namespace kith {
namespace {

// Changes a file where it lies, which is much faster than to write it anew.
class Damaged {
 public:
  explicit Damaged(const std::string& seed) : path_(directory_.path("damaged.hdf5")) {
    std::filesystem::copy_file(std::filesystem::path(KITH_FUZZ_CORPUS) / "hdf5" / seed, path_);
    bytes_ = directory_.read("damaged.hdf5");
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (fd_ < 0) throw std::runtime_error("cannot open " + path_);
  }
  ~Damaged() { ::close(fd_); }
  Damaged(const Damaged&) = delete;
  Damaged& operator=(const Damaged&) = delete;

  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

  void change(int64_t at, char by) {
    const char changed = static_cast<char>(bytes_[static_cast<size_t>(at)] ^ by);
    ASSERT_EQ(::pwrite(fd_, &changed, 1, at), 1);
    try_to_read(size());
    ASSERT_EQ(::pwrite(fd_, &bytes_[static_cast<size_t>(at)], 1, at), 1);
  }

  void cut(int64_t size) {
    ASSERT_EQ(::ftruncate(fd_, size), 0);
    try_to_read(size);
    EXPECT_FALSE(was_read_) << "a file of " << this->size() << " bytes was read from " << size;
  }

 private:
  void try_to_read(int64_t size) {
    constexpr int64_t kMostValues = 1 << 16;  // a changed byte may promise many
    was_read_ = false;
    try {
      const VectorFile file(path_);
      if (file.rows() == 0 || file.cols() > kMostValues / file.rows()) return;
      std::vector<std::byte> values(static_cast<size_t>(file.rows() * file.cols() * size_of(file.dtype())));
      file.read(0, MutableMatrixView(values.data(), file.dtype(), {file.rows(), file.cols(), file.cols()}));
      was_read_ = true;
    } catch (const InvalidArgument&) {
    } catch (const Unsupported&) {
    } catch (const CorruptFile& error) {
      EXPECT_EQ(error.path(), path_);
      EXPECT_GE(error.offset(), 0) << error.what();
      EXPECT_LE(error.offset(), size) << error.what();
    }
  }

  testing::TemporaryDirectory directory_;
  std::string path_;
  std::string bytes_;
  int fd_ = -1;
  bool was_read_ = false;
};

class Hdf5Damage : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(All, Hdf5Damage,
                         ::testing::Values("f32", "compact", "user_block", "never_written", "v0_fletcher", "v0_lzf",
                                           "v0_nested", "v0_many_links", "v0_committed", "v1_shuffle", "v2_gzip",
                                           "v3_single_gzip", "v3_implicit", "v3_fixed_gzip", "v3_extensible", "v3_tree",
                                           "v3_many_links", "v3_attributes"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST_P(Hdf5Damage, CutShortAnywhereIsAnError) {
  Damaged file(GetParam());
  for (int64_t size = file.size() - 1; size >= 0; --size) file.cut(size);
}

TEST_P(Hdf5Damage, AnyByteChangedIsAnErrorOrIsRead) {
  Damaged file(GetParam());
  for (int64_t at = 0; at < file.size(); ++at) {
    file.change(at, '\xff');
    file.change(at, '\x01');
  }
}

}  // namespace
}  // namespace kith
