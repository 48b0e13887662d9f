// FAISS's files, made by FAISS itself (tests/golden/faiss), are read to the vectors and ids that FAISS says they hold,
// and written again in bytes that FAISS could have written.
#include "interop/faiss_file.hpp"

#include <kith/error.hpp>
#include <kith/vector_file.hpp>

#include "index/index_access.hpp"
#include "index/index_file.hpp"
#include "index/parts_data.hpp"
#include "io/temporary_directory.hpp"
#include "io/thrown.hpp"
#include "reference/data.hpp"
#include "reference/taken_params.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <vector>

namespace kith {
namespace {

using testing::expect_refusal;

const Resources& resources() {
  static const Resources shared;
  return shared;
}

std::string golden(const std::string& name) { return std::string(KITH_GOLDEN) + "/faiss/" + name; }

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> names() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(golden(""))) {
    if (entry.path().extension() == ".faiss") found.insert(entry.path().stem());
  }
  return {found.begin(), found.end()};
}

std::vector<float> floats(const std::string& path, int64_t& cols) {
  const MatrixBuffer matrix = read_vectors(path);
  cols = matrix.cols();
  const auto* const values = static_cast<const float*>(matrix.view().data());
  return {values, values + matrix.rows() * matrix.cols()};
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6 * (1 + std::abs(b[i]))) << i;
}

void expect_golden(const IndexParts& parts, const std::string& name) {
  int64_t cols = 0;
  const std::vector<float> rows = floats(golden(name + ".rows.npy"), cols);
  EXPECT_EQ(cols, parts.stored_cols());
  expect_near(testing::decoded(parts), rows);
  const IdFile file(golden(name + ".ids.npy"));
  std::vector<int64_t> ids(static_cast<size_t>(file.rows() * file.cols()));
  file.read(0, file.rows(), ids.data());
  ASSERT_EQ(static_cast<int64_t>(ids.size()), parts.rows);
  for (int64_t i = 0; i < parts.rows; ++i) {
    EXPECT_EQ(ids[static_cast<size_t>(i)], parts.ids.empty() ? i : parts.ids[i]);
  }
  if (!std::filesystem::exists(golden(name + ".in.npy"))) {
    EXPECT_TRUE(parts.transforms.empty());
    return;
  }
  const std::vector<float> in = floats(golden(name + ".in.npy"), cols);
  const auto some = static_cast<int64_t>(in.size()) / cols;
  std::vector<float> out;
  for (int64_t i = 0; i < some; ++i) {
    for (const double value : testing::transformed(parts.transforms, in.data() + i * cols)) {
      out.push_back(static_cast<float>(value));
    }
  }
  expect_near(out, floats(golden(name + ".out.npy"), cols));
}

TEST(FaissFile, HoldsWhatFaissSays) {
  ASSERT_GE(names().size(), 45U);
  for (const std::string& name : names()) {
    SCOPED_TRACE(name);
    expect_golden(read_faiss(golden(name + ".faiss"), resources()), name);
  }
}

TEST(FaissFile, IsWrittenAgainAndHoldsTheSame) {
  const testing::TemporaryDirectory directory;
  const std::set<std::string> of_bytes{"ivf_direct", "sq8_direct", "sq8_direct_signed"};
  for (const std::string& name : names()) {
    SCOPED_TRACE(name);
    const IndexParts parts = read_faiss(golden(name + ".faiss"), resources());
    const auto write = [&] { write_faiss(parts, directory.path("again"), resources()); };
    if (of_bytes.contains(name)) {
      expect_refusal<Unsupported>(write, "vectors as they are");
      continue;
    }
    write();
    IndexParts again = read_faiss(directory.path("again"), resources());
    again.factory = parts.factory;  // every linear map is written as one kind
    for (size_t i = 0; i < again.transforms.size(); ++i) again.transforms[i].name = parts.transforms[i].name;
    if (name.ends_with("rabitq")) {  // |r|^2 and its root are rounded on both ways
      expect_near(testing::decoded(again), testing::decoded(parts));
      EXPECT_EQ(again.lists->codec.values, parts.lists->codec.values);
    } else {
      testing::expect_same(again, parts);
    }
    save_parts(parts, directory.path("kith"), resources());
    testing::expect_same(load_parts(directory.path("kith"), resources()), parts);
  }
}

TEST(FaissFile, IsWrittenInFaisssOwnBytes) {
  const testing::TemporaryDirectory directory;
  for (const std::string name :
       {"flat_l2",     "flat_ip",      "flat_none",   "pq8",     "pq6",         "sq8",
        "sq6",         "sq4",          "sq_fp16",     "sq_bf16", "ivf_flat",    "ivf_pq",
        "ivf_pq_ip",   "ivf_pq_plain", "ivf_sq8",     "ivf_sq4", "ivf_sq_fp16", "ivf_flat_probes",
        "opq_ivf_pq",  "l2norm",       "pad",         "centre",  "idmap_flat",  "idmap_ivf",
        "refine_flat", "refine_sq8",   "idmap_refine"}) {
    const IndexParts parts = read_faiss(golden(name + ".faiss"), resources());
    write_faiss(parts, directory.path("again"), resources());
    // IDMap over lists is written with the ids in the lists.
    EXPECT_EQ(directory.read("again") == content(golden(name + ".faiss")), name != "idmap_ivf") << name;
  }
}

TEST(FaissFile, RaBitQHasFaisssDistances) {
  const testing::TemporaryDirectory directory;
  for (const std::string name : {"rabitq", "ivf_rabitq"}) {
    const auto check = [&](const std::string& path) {
      const Index index = IndexAccess::from_parts(read_faiss(path, resources()), resources());
      const MatrixBuffer queries = read_vectors(golden(name + ".queries.npy"));
      int64_t cols = 0;
      const std::vector<float> theirs = floats(golden(name + ".distances.npy"), cols);
      const IdFile file(golden(name + ".ids.npy"));
      std::vector<int64_t> ids(static_cast<size_t>(file.rows() * file.cols()));
      file.read(0, file.rows(), ids.data());
      const Neighbors found = index.search(queries.view(), taken_by(index, {.k = cols, .probes = 4}), resources());
      for (int64_t q = 0; q < queries.rows(); ++q) {
        for (int64_t i = 0; i < cols; ++i) {
          const auto at = std::find(ids.begin(), ids.end(), found.ids(q)[i]) - ids.begin();
          const float distance = std::max(theirs[static_cast<size_t>(q * cols + at)], 0.0f);
          ASSERT_NEAR(found.distances(q)[i], distance, 1e-4) << name << ", query " << q << ", place " << i;
        }
      }
      write_faiss(IndexAccess::parts(index, resources()), directory.path(name), resources());
    };
    check(golden(name + ".faiss"));
    check(directory.path(name));
  }
}

TEST(FaissFile, RaBitQOfOtherMetricsIsRefused) {
  const testing::TemporaryDirectory directory;
  const auto rows = reference::make_floats(reference::Shape::gaussian, 300, 6, 1);
  Index index("RaBitQ", {.metric = Metric::inner_product});
  index.train(rows.view(), resources());
  index.add(rows.view(), Ownership::copy, resources());
  expect_refusal<Unsupported>(
      [&] { write_faiss(IndexAccess::parts(index, resources()), directory.path("x"), resources()); }, "correction");
}

// Lists of residuals: their norms are of whole vectors, which FAISS does not have.
TEST(FaissFile, NormsOfWholeVectorsAreLeftOut) {
  const testing::TemporaryDirectory directory;
  const auto rows = reference::make_floats(reference::Shape::gaussian, 300, 6, 1);
  Index index("IVF3,RQ3x3_Nqint8", {.metric = Metric::sqeuclidean});
  index.train(rows.view(), resources());
  index.add(rows.view(), Ownership::copy, resources());
  write_faiss(IndexAccess::parts(index, resources()), directory.path("lists"), resources());
  const IndexParts parts = read_faiss(directory.path("lists"), resources());
  EXPECT_EQ(parts.factory, "IVF3,RQ3x3");
  const Index again = IndexAccess::from_parts(read_faiss(directory.path("lists"), resources()), resources());
  std::vector<int64_t> ids(300);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> here(300 * 6);
  std::vector<float> there(300 * 6);
  index.reconstruct({ids.data(), 300, {}}, MutableMatrixView(here.data(), 300, 6), resources());
  again.reconstruct({ids.data(), 300, {}}, MutableMatrixView(there.data(), 300, 6), resources());
  EXPECT_EQ(here, there);
}

// What Kith would choose is written: FAISS's own default finds other neighbours.
TEST(FaissFile, ASecondLookTakesAsManyCandidatesAsBefore) {
  const testing::TemporaryDirectory directory;
  const auto rows = reference::make_floats(reference::Shape::gaussian, 300, 6, 1);
  Index index("PQ2x4,RFlat");
  index.train(rows.view(), resources());
  index.add(rows.view(), Ownership::copy, resources());
  write_faiss(IndexAccess::parts(index, resources()), directory.path("refined"), resources());
  EXPECT_EQ(read_faiss(directory.path("refined"), resources()).refine->factor, 4.0F);
}

TEST(FaissFile, NumbersAndNamesAreTaken) {
  const auto read = [](const std::string& name) { return read_faiss(golden(name + ".faiss"), resources()); };
  EXPECT_EQ(read("flat_l2").metric, Metric::sqeuclidean);
  EXPECT_EQ(read("flat_ip").metric, Metric::inner_product);
  EXPECT_EQ(read("flat_l1").metric, Metric::l1);
  EXPECT_EQ(read("flat_linf").metric, Metric::linf);
  EXPECT_EQ(read("ivf_flat_probes").probes, 3);
  EXPECT_TRUE(read("ivf_pq").lists->residual);
  EXPECT_FALSE(read("ivf_pq_plain").lists->residual);
  EXPECT_EQ(read("ivf_hnsw").factory, "IVF4,Flat");
  EXPECT_EQ(read("idmap_refine").factory, "OPQ2_4,IVF4,PQ2x4,RFlat");
  EXPECT_EQ(read("refine_sq8").factory, "PQ4x4,Refine(SQ8)");
  EXPECT_EQ(read("refine_flat").refine->factor, 4.0F);
  EXPECT_EQ(read("rq_norm").factory, "RQ3x4_Nqint8");
  EXPECT_EQ(read("rq_norm_float").factory, "RQ3x3_Nfloat");
  EXPECT_EQ(read("lsq_norm_levels").factory, "LSQ2x5_Ncqint8");
  EXPECT_EQ(read("rq_norm_4_bits").factory, "RQ3x4");            // norms that Kith lacks
  EXPECT_EQ(read("ivf_rq_norm").factory, "IVF4,RQ2x8");          // and norms of residuals
  EXPECT_EQ(read("ivf_lsq_norm_levels").factory, "IVF4,LSQ2x4");
  EXPECT_EQ(read("rabitq").factory, "RaBitQ");
  EXPECT_EQ(read("ivf_rabitq").factory, "IVF4,RaBitQ");
  EXPECT_EQ(read("rr_rabitq").factory, "RR12,IVF4,RaBitQ");
  EXPECT_EQ(read("pca").factory, "PCA4,Flat");
  EXPECT_EQ(read("pad").factory, "Pad12,SQ8");
  EXPECT_EQ(read("centre").factory, "Centre,Flat");
  EXPECT_EQ(read("sq8_direct").dtype, DType::u8);
  EXPECT_EQ(read("ivf_flat_removed").next_id, 70);
}

TEST(FaissFile, WhatFaissLacksIsRefusedWithAReason) {
  const testing::TemporaryDirectory directory;
  const auto write = [&](const std::string& kind, Metric metric) {
    IndexParts parts = testing::make_parts(kind);
    parts.metric = metric;
    write_faiss(parts, directory.path("x.faiss"), resources());
  };
  expect_refusal<Unsupported>([&] { write("lists_pq8", Metric::cosine); }, "no metric cosine");
  expect_refusal<Unsupported>([&] { write("flat_u8", Metric::hamming); }, "no metric hamming");
  expect_refusal<Unsupported>([&] { write("lists_u8", Metric::l2); }, "u8 vectors as they are");
  expect_refusal<Unsupported>([&] { write("empty", Metric::l2); }, "no columns yet");
  EXPECT_TRUE(directory.names().empty());
  write("lists_pq8", Metric::l2);  // its root is lost, which the documentation says
  EXPECT_EQ(read_faiss(directory.path("x.faiss"), resources()).metric, Metric::sqeuclidean);
}

std::string edited(const std::string& name, size_t at, const std::string& with) {
  return content(golden(name + ".faiss")).replace(at, with.size(), with);
}

TEST(FaissFile, WhatKithLacksIsNamed) {
  const testing::TemporaryDirectory directory;
  const auto read = [&](const std::string& bytes) {
    return [&directory, path = directory.write("x.faiss", bytes)] { read_faiss(path, resources()); };
  };
  expect_refusal<Unsupported>(read(edited("flat_l2", 0, "IxHe")), "'IxHe'");
  expect_refusal<CorruptFile>(read(edited("flat_l2", 0, "kith")), "no FAISS index");
  expect_refusal<Unsupported>(read(edited("l2norm", 41, "HRot")), "'HRot'");
  const std::string lists = content(golden("ivf_flat.faiss"));
  const size_t at = lists.find("ilar");
  ASSERT_NE(at, std::string::npos);
  expect_refusal<Unsupported>(read(edited("ivf_flat", at, "ilod")), "lists on disk");
  expect_refusal<Unsupported>(read(edited("ivf_flat", 53, "IxPq")), "centres in FAISS's IndexPQ ('IxPq')");
  expect_refusal<InvalidArgument>(read(edited("flat_l2", 32, std::string(1, '\0'))), "not trained");
  // A list of ids ends the file: the last becomes negative, or another's.
  const std::string ids = content(golden("idmap_flat.faiss"));
  expect_refusal<InvalidArgument>(read(edited("idmap_flat", ids.size() - 1, "\xff")), "is negative");
  expect_refusal<InvalidArgument>(read(edited("idmap_flat", ids.size() - 8, ids.substr(ids.size() - 16, 8))),
                                  "two rows");
  expect_refusal<InvalidArgument>(read(edited("ivf_flat", lists.size() - 8, lists.substr(lists.size() - 16, 8))),
                                  "two vectors have the id");
  expect_refusal<CorruptFile>(read(lists + "x"), "1 bytes follow the index");
}

TEST(FaissFile, CutAnywhereIsAnError) {
  const testing::TemporaryDirectory directory;
  for (const std::string name : {"flat_none", "pq_fast_odd", "ivf_flat_sparse", "idmap_refine", "pca", "ivf_pq_fast"}) {
    const std::string whole = content(golden(name + ".faiss"));
    for (size_t length = 0; length < whole.size(); ++length) {
      const std::string path = directory.overwrite("cut.faiss", whole.substr(0, length));
      const auto error = testing::thrown<CorruptFile>([&] { read_faiss(path, resources()); });
      ASSERT_TRUE(error) << name << " " << length;
    }
  }
}

TEST(FaissFile, TooSmallALimitIsOutOfMemory) {
  ResourceOptions options;
  options.host_memory_limit = 64;
  EXPECT_THROW(read_faiss(golden("ivf_pq.faiss"), Resources(options)), OutOfMemory);
}

// A list whose rows do not ascend is put in order where it lies: reading takes no memory in proportion to a list.
TEST(FaissFile, TakesNoMemoryInProportionToAList) {
  constexpr int64_t kRows = 20000;
  constexpr int64_t kCols = 16;
  const testing::TemporaryDirectory directory;
  IndexParts parts;
  parts.metric = Metric::sqeuclidean;
  parts.factory = "IVF1,Flat";
  parts.cols = kCols;
  parts.rows = kRows;
  parts.next_id = kRows;
  ListParts& lists = parts.lists.emplace();
  MatrixBuffer centre(DType::f32, 1, kCols, "a test", resources());
  std::fill_n(static_cast<float*>(centre.mutable_view().data()), kCols, 0.0F);
  lists.centres = std::move(centre);
  lists.codec.format.cols = kCols;
  HostArray<int64_t> offsets(2, "a test", resources());
  offsets[0] = 0;
  offsets[1] = kRows;
  HostArray<uint8_t> codes(kRows * kCols * 4, "a test", resources());
  HostArray<uint32_t> rows(kRows, "a test", resources());
  HostArray<int64_t> ids(kRows, "a test", resources());
  for (int64_t i = 0; i < kRows; ++i) {
    const std::vector<float> vector(kCols, static_cast<float>(i));
    std::memcpy(codes.data() + i * kCols * 4, vector.data(), kCols * 4);
    rows[i] = static_cast<uint32_t>(i);
    ids[i] = i * 7919 % kRows;  // a permutation
  }
  lists.offsets = std::move(offsets);
  lists.codes = std::move(codes);
  lists.rows = std::move(rows);
  parts.ids = std::move(ids);
  write_faiss(parts, directory.path("x.faiss"), resources());
  ResourceOptions options;
  options.host_memory_limit = kRows * (kCols * 4 + 8 + 4 + 8) + 100'000;  // what is read, and ids once more
  const IndexParts read = read_faiss(directory.path("x.faiss"), Resources(options));
  ASSERT_EQ(read.rows, kRows);
  EXPECT_TRUE(read.ids.empty());  // they are row numbers
  const auto* const values = reinterpret_cast<const float*>(read.lists->codes.data());
  for (int64_t i = 0; i < kRows; ++i) {
    ASSERT_EQ(read.lists->rows[i], i);
    ASSERT_EQ(static_cast<int64_t>(values[i * kCols]) * 7919 % kRows, i);
  }
}

}  // namespace
}  // namespace kith
