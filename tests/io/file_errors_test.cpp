// What is no vector file: every wrong file is a typed error that names the file, the place and the reason.
#include <kith/vector_file.hpp>

#include <kith/error.hpp>

#include "io/posix_file.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

using namespace std::string_literals;

namespace kith {
namespace {

using testing::expect_corrupt;
using testing::expect_io_error;
using testing::expect_refusal;
using testing::TemporaryDirectory;

auto opening(const std::string& path) {
  return [path] { VectorFile file(path); };
}

const std::string kTwoByThree = "\x02\0\0\0\x03\0\0\0"s;  // 32 bytes as .fbin, 14 as .u8bin
const std::string kNpyTwoByThree = "\x93NUMPY\x01\0\x36\0"s + "{'descr':'<f4','fortran_order':False,'shape':(2,3),} \n";

TEST(FileErrors, TruncatedFiles) {
  const TemporaryDirectory directory;
  const std::string bin = directory.write("v.fbin", kTwoByThree + std::string(23, 'x'));
  expect_corrupt(opening(bin), bin, 31, "2 x 3 f32 after a header of 8 bytes need 32 bytes");
  const std::string bytes = directory.write("v.u8bin", kTwoByThree);
  expect_corrupt(opening(bytes), bytes, 8, "2 x 3 u8 after a header of 8 bytes need 14 bytes");
  const std::string npy = directory.write("v.npy", kNpyTwoByThree + std::string(20, 'x'));
  expect_corrupt(opening(npy), npy, 84, "need 88 bytes");
  const std::string ids = directory.write("v.ibin", kTwoByThree + "x");
  expect_corrupt([&] { IdFile file(ids); }, ids, 9, "2 x 3 i32 after a header of 8 bytes need 32 bytes");
}

TEST(FileErrors, TrailingBytes) {
  const TemporaryDirectory directory;
  const std::string bin = directory.write("v.fbin", kTwoByThree + std::string(25, 'x'));
  expect_corrupt(opening(bin), bin, 32, "1 bytes follow after 2 x 3 f32");
  const std::string npy = directory.write("v.npy", kNpyTwoByThree + std::string(100, 'x'));
  expect_corrupt(opening(npy), npy, 88, "76 bytes follow after 2 x 3 f32");
}

TEST(FileErrors, WrongHeaders) {
  const TemporaryDirectory directory;
  for (const char* name : {"v.fbin", "v.u8bin", "v.npy"}) {
    const std::string empty = directory.write(name, "");
    expect_corrupt(opening(empty), empty, 0, "ends inside its header");
  }
  const std::string seven = directory.write("v.fbin", std::string(7, 'x'));
  expect_corrupt(opening(seven), seven, 7, "ends inside its header, which has 8 bytes");
  const std::string overflow = directory.write("v.fbin", std::string(8, '\xff'));
  expect_corrupt(opening(overflow), overflow, 0, "more bytes than a file can have");
  const std::string no_columns = directory.write("v.fbin", "\x02\0\0\0\0\0\0\0"s);
  expect_corrupt(opening(no_columns), no_columns, 0, "2 rows of 0 columns");
  const std::string text = directory.write("v.npy", "x,y,z\n1,2,3\n");
  expect_corrupt(opening(text), text, 0, "not an .npy file");
  const std::string lying = directory.write("v.npy", "\x93NUMPY\x03\0\xff\xff\xff\x7f{"s);
  expect_corrupt(opening(lying), lying, 8, "at most 65536 are read");
}

TEST(FileErrors, MissingAndUnreadableFiles) {
  const TemporaryDirectory directory;
  const std::string missing = directory.path("v.fbin");
  expect_io_error(opening(missing), missing, ENOENT, "cannot open '" + missing + "': No such file or directory");
  const std::string below_file = directory.write("file", "") + "/v.npy";
  expect_io_error(opening(below_file), below_file, ENOTDIR, "Not a directory");
  const std::string loop = directory.path("loop.fbin");
  std::filesystem::create_symlink("loop.fbin", loop);
  expect_io_error(opening(loop), loop, ELOOP, "symbolic links");
  expect_io_error([&] { content_of(directory.path("none.npy")); }, directory.path("none.npy"), ENOENT, "No such file");
  expect_io_error([&] { read_vectors(missing); }, missing, ENOENT, "No such file");
  expect_io_error([&] { IdFile(directory.path("i.ibin")); }, directory.path("i.ibin"), ENOENT, "No such file");
  expect_refusal<InvalidArgument>(opening("v\0.fbin"s), "zero byte");
}

TEST(FileErrors, FilesWithoutReadPermission) {
  const TemporaryDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  const std::string path = directory.write("v.fbin", kTwoByThree + std::string(24, 'x'));
  std::filesystem::permissions(path, std::filesystem::perms(0));
  const bool root = ::geteuid() == 0;  // who may read everything, and so steps down for the test
  constexpr uid_t kNobody = 65534;
  if (root && ::seteuid(kNobody) != 0) GTEST_SKIP() << "root cannot become another user here";
  expect_io_error(opening(path), path, EACCES, "Permission denied");
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
}

TEST(FileErrors, NonRegularFilesDoNotHang) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path("folder.fbin");
  std::filesystem::create_directory(folder);
  expect_io_error(opening(folder), folder, EISDIR, "it is a directory; only regular files can be read");
  const std::string fifo = directory.path("fifo.fbin");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expect_io_error(opening(fifo), fifo, 0, "it is a fifo");
  const std::string device = directory.path("zero.u8bin");
  std::filesystem::create_symlink("/dev/zero", device);
  expect_io_error(opening(device), device, 0, "it is a character device");

  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string socket_path = directory.path("s.npy");
  ASSERT_LT(socket_path.size(), sizeof(address.sun_path));
  socket_path.copy(address.sun_path, socket_path.size());
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  expect_io_error(opening(socket_path), socket_path, ENXIO, "cannot open");
}

TEST(FileErrors, AFileThatShrinksWhileItIsOpen) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("v.fbin", kTwoByThree + std::string(24, 'x'));
  const VectorFile file(path);
  std::filesystem::resize_file(path, 25);
  std::vector<float> row(6);
  file.read(0, MutableMatrixView(row.data(), 1, 3));
  expect_corrupt([&] { file.read(0, MutableMatrixView(row.data(), 2, 3)); }, path, 25, "it was shortened while open");
}

TEST(FileErrors, UnknownEndings) {
  const TemporaryDirectory directory;
  for (const char* name : {"v", "v.FBIN", "v.fbin.gz", "fbin"}) {
    const std::string path = directory.write(name, "1");
    for (const char* ending :
         {".fbin", ".bvecs", ".ivecs", ".npy", ".hdf5", "idx3-ubyte[.gz]"}) {
      expect_refusal<InvalidArgument>(opening(path), ending);
    }
    EXPECT_THROW(IdFile{path}, InvalidArgument);
    EXPECT_THROW(content_of(path), InvalidArgument);
    EXPECT_THROW(VectorFileWriter(path, DType::f32, 1, 1), InvalidArgument);
    EXPECT_THROW(IdFileWriter(path, 1, 1), InvalidArgument);
  }
}

TEST(FileErrors, AnIndexIsNoFileOfVectors) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("v.kith", "1");
  expect_refusal<InvalidArgument>(opening(path), "'" + path + "' is a .kith file: an index or a quantizer, not vectors");
  expect_refusal<InvalidArgument>([&] { IdFile file(path); }, "kith index search");
}

TEST(FileErrors, IdsAreNoVectorsAndVectorsNoIds) {
  const TemporaryDirectory directory;
  const std::string ids = directory.write("i.ibin", kTwoByThree + std::string(24, 'x'));
  const std::string vectors = directory.write("v.fbin", kTwoByThree + std::string(24, 'x'));
  expect_refusal<InvalidArgument>(opening(ids), "'" + ids + "' holds ids (i32), not vectors");
  expect_refusal<InvalidArgument>([&] { IdFile file(vectors); }, "'" + vectors + "' holds f32 vectors, not ids");
  EXPECT_EQ(content_of("absent.fbin"), FileContent::vectors);
  EXPECT_EQ(content_of("absent.u8bin"), FileContent::vectors);
  EXPECT_EQ(content_of("absent.ibin"), FileContent::ids);
  EXPECT_EQ(content_of("absent.ivecs"), FileContent::ids);
}

TEST(FileErrors, WritersRefuseWhatTheFormatCannotHold) {
  const TemporaryDirectory directory;
  const auto vectors = [&](const std::string& name, DType dtype, int64_t rows, int64_t cols) {
    return [&directory, name, dtype, rows, cols] { VectorFileWriter writer(directory.path(name), dtype, rows, cols); };
  };
  expect_refusal<InvalidArgument>(vectors("v.fbin", DType::u8, 1, 1), ".fbin files hold f32");
  expect_refusal<InvalidArgument>(vectors("v.u8bin", DType::f32, 1, 1), ".u8bin files hold u8");
  expect_refusal<InvalidArgument>(vectors("v.ibin", DType::f32, 1, 1), ".ibin files hold i32");
  expect_refusal<InvalidArgument>(vectors("v.fvecs", DType::u8, 1, 1), ".fvecs files hold f32");
  expect_refusal<InvalidArgument>(vectors("v.bvecs", DType::i8, 1, 1), ".bvecs files hold u8");
  expect_refusal<InvalidArgument>(vectors("v.f16bin", DType::bf16, 1, 1), ".f16bin files hold f16");
  expect_refusal<InvalidArgument>(vectors("v.npy", DType::bf16, 1, 1),
                                  "have no such dtype; write .bf16bin, or convert the values to f32");
  expect_refusal<InvalidArgument>(vectors("v.fbin", DType::f32, -1, 1), "a matrix cannot have the shape -1 x 1");
  expect_refusal<InvalidArgument>(vectors("v.npy", DType::f32, 3, 0), "3 rows of 0 columns");
  expect_refusal<InvalidArgument>(vectors("v.fbin", DType::f32, int64_t{1} << 32, 1), "counts up to 4294967295");
  expect_refusal<InvalidArgument>(vectors("v.npy", DType::f32, int64_t{1} << 40, int64_t{1} << 40),
                                  "more bytes than a file");
  expect_refusal<InvalidArgument>([&] { IdFileWriter writer(directory.path("i.fbin"), 1, 1); },
                                  "choose .ibin, .ivecs, .npy or .hdf5");
  EXPECT_TRUE(directory.names().empty());
}

TEST(FileErrors, WritersNameTheirPath) {
  const TemporaryDirectory directory;
  const float value = 1;
  const std::string nowhere = directory.path("none/v.fbin");
  expect_io_error([&] { write_vectors(nowhere, MatrixView(&value, 1, 1)); }, nowhere, ENOENT,
                  "No such file or directory");
  const std::string folder = directory.path("folder.npy");
  std::filesystem::create_directory(folder);
  expect_io_error([&] { write_vectors(folder, MatrixView(&value, 1, 1)); }, folder, EISDIR, "it is a directory");
  const std::string full = directory.path("full.fbin");
  std::filesystem::create_symlink("/dev/full", full);
  expect_io_error([&] { IdFileWriter writer(directory.path("none/i.ibin"), 1, 1); }, directory.path("none/i.ibin"),
                  ENOENT, "");
  expect_io_error([&] { write_vectors(full, MatrixView(&value, 1, 1)); }, full, 0, "it is a character device");
}

}  // namespace
}  // namespace kith
