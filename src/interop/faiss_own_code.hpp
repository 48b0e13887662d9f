// Codes that FAISS's files hold in another form than Kith: how one is read, converted and written. Each is a class in a
// file of its own and a line in faiss_own_codes().
#pragma once

#include "interop/faiss_parts.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kith {

class FaissOwnCode {
 public:
  constexpr FaissOwnCode(std::string_view tag, std::string_view list_tag) : tag_(tag), list_tag_(list_tag) {}
  FaissOwnCode(const FaissOwnCode&) = delete;
  FaissOwnCode& operator=(const FaissOwnCode&) = delete;

  // An index that holds codes row by row, and one with inverted lists.
  std::string_view tag() const { return tag_; }
  std::string_view list_tag() const { return list_tag_; }
  virtual bool is_of(const CodeFormat& format) const = 0;

  // The quantizer, which stands before the codes; then what follows it in an index with lists, which says whether codes
  // are of residuals; or what follows the codes of one without.
  virtual FaissCode read(FaissSource& source, int64_t cols) const = 0;
  virtual bool read_list_settings(FaissSource& source, const FaissCode& code) const = 0;
  virtual void read_end(FaissSource& source, FaissCode& code) const = 0;
  // Converts a file's codes in place. `centre`: their list's, or null.
  virtual void convert(FaissSource& source, const CodecParts& codec, const float* centre, int64_t count,
                       uint8_t* codes) const = 0;

  // Why such lists cannot be written for FAISS; empty where they can.
  virtual std::string refusal(const ListParts& lists, FaissMetric metric) const = 0;
  virtual void write(FaissSink& sink, const CodeFormat& format) const = 0;
  virtual void write_list_settings(FaissSink& sink, const CodeFormat& format, bool residual) const = 0;
  virtual void write_end(FaissSink& sink, const CodecParts& codec) const = 0;
  virtual void convert_back(const CodecView& codec, const float* centre, const uint8_t* code, uint8_t* out) const = 0;

 protected:
  ~FaissOwnCode() = default;

 private:
  std::string_view tag_;
  std::string_view list_tag_;
};

std::span<const FaissOwnCode* const> faiss_own_codes();
// Null where it is none of them.
const FaissOwnCode* own_code_of(std::string_view tag);
const FaissOwnCode* own_code_of(const CodeFormat& format);

}  // namespace kith
