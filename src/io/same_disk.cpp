#include "io/same_disk.hpp"

#include <sys/stat.h>

namespace kith {

bool on_the_same_disk(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev;
}

}  // namespace kith
