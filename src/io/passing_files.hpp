// Names for files beside another that only this process will read, and that must not outlive it: each is removed as
// soon as it is open. A process that is killed in between leaves it, with a mark whose lock is gone:
// remove_left_behind() (atomic_file_writer.hpp) then removes both.
//
//   .kith-0123456789abcdef.tmp         the mark, locked as long as the process works
//   .kith-0123456789abcdef.7.run.tmp   its files
#pragma once

#include "io/posix_file.hpp"

#include <cstdint>
#include <string>

namespace kith {

class PassingFiles {
 public:
  // Removes what killed ones left in that folder, where it can be seen.
  explicit PassingFiles(const std::string& beside);
  ~PassingFiles();
  PassingFiles(const PassingFiles&) = delete;
  PassingFiles& operator=(const PassingFiles&) = delete;

  // A new path.
  std::string next();

 private:
  void make_mark();

  std::string folder_;
  std::string name_;  // of the files, without what tells them apart
  std::string mark_;
  FileDescriptor held_;
  int64_t count_ = 0;
};

}  // namespace kith
