// Reads a .kith container. Nothing in a file is trusted: the table is checked against its hash and against the one
// layout that a writer makes, and a section against its hash when it is read. Memory is taken for sections only, and
// none is larger than the file.
//
// Errors name the file, the section and the problem: CorruptFile for damage, Unsupported for another version,
// InvalidArgument for a FAISS file.
#pragma once

#include <kith/resources.hpp>

#include "io/container/section.hpp"
#include "io/disk.hpp"
#include "io/posix_file.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kith {

class AtomicFileWriter;

class ContainerFile {
 public:
  explicit ContainerFile(const std::string& path);
  // One that a disk has opened.
  explicit ContainerFile(std::shared_ptr<const DiskFile> file);

  const std::string& path() const { return path_; }
  const std::string& kind() const { return kind_; }
  uint32_t version() const { return version_; }
  const std::vector<Section>& sections() const { return sections_; }
  const Section* find(std::string_view name) const;  // null: there is none

  // All bytes of a section, which are then as they were written.
  void read(const Section& section, void* out, const Resources& resources) const;
  // Some bytes of a section, from `first` on, which nothing has checked.
  void read_part(const Section& section, int64_t first, void* out, int64_t bytes) const;
  // Throws CorruptFile if this is not the XXH3-64 of the section's bytes.
  void verify(const Section& section, uint64_t hash) const;
  const FileDescriptor& descriptor() const { return file_.file; }  // of a path
  int64_t size() const { return file_.size; }
  uint64_t head_hash() const { return head_hash_; }  // of header and table, and so of all hashes of sections

  // CorruptFile at the beginning of the section.
  [[noreturn]] void corrupt(const Section& section, std::string_view reason) const;
  // CorruptFile of the file as a whole.
  [[noreturn]] void corrupt(std::string_view reason) const;

 private:
  void fetch(int64_t offset, void* out, int64_t bytes) const;
  void read_header();
  void read_table(uint32_t count, std::span<const std::byte> header);
  void check_layout() const;

  std::string path_;
  OpenedFile file_;
  std::shared_ptr<const DiskFile> disk_file_;  // in its place
  std::string kind_;
  uint32_t version_ = 0;
  uint64_t head_hash_ = 0;
  std::vector<Section> sections_;
};

// Writes a .kith container. Sections refer to the caller's memory, or are produced while they are written; hashes are
// taken on the way, and the table, which stands in front, is written last.
class ContainerWriter {
 public:
  using Piece = std::span<const std::byte>;
  using Put = std::function<void(Piece)>;
  // Calls put(piece) with the bytes of a section, one piece after the other.
  using Produce = std::function<void(const Put& put)>;

  // `kind` says what the file is: "index", "codec", ...; `version`: the first that knows all that is written.
  explicit ContainerWriter(std::string_view kind, uint32_t version = kFirstContainerVersion);

  // The values in one piece or in several, one behind the other. They must stay as they are until write() is done.
  void add(std::string_view name, SectionType type, std::vector<int64_t> shape, std::vector<Piece> pieces);
  // For a section that is added afterwards: its bytes come from here, whatever pieces it is given.
  void produce(std::string_view name, Produce bytes) {
    produced_.insert_or_assign(std::string(name), std::move(bytes));
  }

  // Under a temporary name, synced, renamed.
  void write(const std::string& path, const Resources& resources);
  // The same without waiting for the disk: for a file that only this process will read.
  void write_unsynced(const std::string& path, const Resources& resources);
  // Into an empty file, which the caller syncs. Returns the hash of header and table.
  uint64_t write_to(DiskFile& file, const Resources& resources);
  int64_t file_bytes();  // of all that was added

 private:
  struct Source {
    Section section;
    std::vector<Piece> pieces;
    Produce produce;
  };

  void place_sections();
  template <typename Write>
  void write_sections(const Write& write, const Resources& resources);
  void write_sections(AtomicFileWriter& file, const Resources& resources);
  std::vector<std::byte> head() const;

  std::string kind_;
  uint32_t version_;
  std::vector<Source> sources_;
  std::map<std::string, Produce, std::less<>> produced_;
  int64_t file_bytes_ = 0;
};

}  // namespace kith
