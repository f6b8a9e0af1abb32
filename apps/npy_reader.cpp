#include "apps/npy_reader.h"

#include <fcntl.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/h5_reader.h"
#include "pipeline/problem.h"
#include "stages/npy_file.h"
#include "stages/npy_header.h"
#include "stages/npy_layout.h"
#include "stages/utf8.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMagic = "\x93NUMPY";
constexpr const char* kPart = ".part";

// Of "out.npy.part" the files beside it are ".part" files as well.
std::string beside(const std::string& rows, std::string (*name)(const std::string&)) {
  if (!rows.ends_with(kPart)) return name(rows);
  return name(rows.substr(0, rows.size() - std::strlen(kPart))) + kPart;
}

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw RunError(fmt::format("{}: {}", path, std::strerror(errno)));
  return {std::istreambuf_iterator<char>(in), {}};
}

// What can be read; less at the end of the file.
std::string read_at(int fd, std::uint64_t at, std::size_t bytes) {
  std::string out(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(fd, out.data() + done, bytes - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw RunError(std::strerror(errno));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  out.resize(done);
  return out;
}

float from_float16(std::uint16_t half) {
  const float sign = (half & 0x8000U) != 0 ? -1.0F : 1.0F;
  const int exponent = (half >> 10) & 0x1F;
  const int fraction = half & 0x3FF;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * std::numeric_limits<float>::infinity();
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

RowType row_type(const std::string& dtype) {
  if (dtype == "float32") return RowType::float32;
  if (dtype == "float16") return RowType::float16;
  throw RunError("rows of type " + dtype);
}

template <class Read>
void or_damaged(const std::string& path, const Read& read) {
  try {
    read();
  } catch (const std::exception& e) {
    throw RunError(fmt::format("{}: is damaged, or not as docs/output-format.md describes it: {}",
                               path, e.what()));
  }
}

// Takes one number after the other from a record.
class RecordReader {
 public:
  explicit RecordReader(const char* at) : at_(at) {}
  template <class T>
  void take(T& value) {
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
  }
  std::string text(std::size_t bytes) { return {at_, strnlen(at_, bytes)}; }

 private:
  const char* at_;
};

}  // namespace

UniqueFd open_if_npy(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || read_at(file.get(), 0, std::strlen(kMagic)) != kMagic) return {};
  return file;
}

void FeatureFile::read_npy() {
  const bool has_name =
      path_.ends_with(kNpyEnding) || path_.ends_with(kNpyEnding + std::string(kPart));
  const std::string document = has_name ? beside(path_, npy_document_path) : "";
  if (document.empty() || ::access(document.c_str(), F_OK) != 0)
    throw RunError(fmt::format("{}: is a .npy file, but no rows that melflow wrote{}", path_,
                               has_name ? fmt::format(" (there is no {})", document) : ""));
  Json about;
  or_damaged(path_, [&] { about = Json::parse(without_escaped_bytes(read_all(document))); });
  for (const auto& [name, value] : about.items()) {
    if (value.is_boolean())
      integers_[name] = value.get<bool>() ? 1 : 0;
    else if (value.is_number_integer())
      integers_[name] = value.get<std::int64_t>();
    else
      texts_[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  if (!integer("format")) throw RunError(document + ": is no index that melflow wrote");
  check_format();
  or_damaged(path_, [&] {
    about.at("shape").get_to(shape_);
    if (shape_.size() != 2 && shape_.size() != 3)
      throw RunError(fmt::format("rows have {} axes, not 2 or 3", shape_.size()));
    about.at("dtype").get_to(dtype_);
    about.at("unit").get_to(unit_);
    about.at("root").get_to(root_);
    about.at("labels").get_to(labels_);
    about.at("splits").get_to(splits_);
    for (const Json& hz : about.value("band_hz", Json::array()))
      band_hz_.push_back(hz.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                      : hz.get<double>());
    check_npy_rows();
    read_npy_index(beside(path_, npy_index_path));
    for (const Json& r : about.at("remarks")) {
      const auto file = r.at("file").get<std::size_t>();
      const Entry& entry = files_.at(file);  // which has the bytes of its name
      remarks_.push_back({static_cast<std::int64_t>(file), entry.path, entry.status,
                          r.at("stage").get<std::string>(), r.at("reason").get<std::string>()});
    }
  });
}

void FeatureFile::check_npy_rows() const {
  const RowType type = row_type(dtype_);
  const std::string header = NpyFile::header(shape_, type);
  if (read_at(rows_.get(), 0, header.size()) != header)
    throw RunError(fmt::format("its header is not that of {} [{}], which the index describes",
                               dtype_, fmt::join(shape_, ", ")));
  const std::uint64_t bytes = header.size() + rows() * frames_per_row() * bands() * size_of(type);
  if (file_bytes_ != bytes)
    throw RunError(fmt::format("the file has {} bytes, its rows end at {}", file_bytes_, bytes));
}

void FeatureFile::read_npy_index(const std::string& path) {
  const std::string bytes = read_all(path);
  const auto count = static_cast<std::uint64_t>(integer("found").value_or(0));
  std::size_t at = bytes.find("'|S"), width = 0;
  for (at += 3; at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9' && width < 1U << 20; ++at)
    width = 10 * width + static_cast<std::size_t>(bytes[at] - '0');
  const std::string header = npy_header(npy_index_type(width), {&count, 1});
  const std::size_t record = kNpyNumberBytes + width;
  if (!bytes.starts_with(header) || bytes.size() != header.size() + count * record)
    throw RunError(fmt::format("{} is no list of {} files", path, count));
  files_.resize(count);
  const char* next = bytes.data() + header.size();
  for (Entry& e : files_) {
    RecordReader r(next);
    std::int8_t status = 0;
    r.take(e.offset);
    r.take(e.count);
    r.take(e.duration);
    r.take(e.label);
    r.take(e.sample_rate);
    r.take(e.split);
    r.take(status);
    e.status = static_cast<Status>(status);
    e.path = r.text(width);
    next += record;
  }
}

std::vector<float> FeatureFile::read_npy_rows(std::uint64_t offset, std::uint64_t count) const {
  const RowType type = row_type(dtype_);
  std::vector<float> out(count * frames_per_row() * bands());
  const std::size_t row_bytes = frames_per_row() * bands() * size_of(type);
  const std::string bytes =
      read_at(rows_.get(), NpyFile::kDataOffset + offset * row_bytes, count * row_bytes);
  if (bytes.size() != count * row_bytes) throw RunError(path_ + ": ends before its rows do");
  if (type == RowType::float32) {
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes.data() + 2 * i, 2);
    out[i] = from_float16(half);
  }
  return out;
}

}  // namespace melflow
