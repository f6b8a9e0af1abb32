#include "stages/output/formats/tar_shards.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/output/formats/appender.h"
#include "stages/output/formats/framed_rows.h"
#include "stages/output/formats/npy_file.h"
#include "stages/output/formats/npy_header.h"
#include "stages/output/formats/npy_layout.h"

namespace melflow {
namespace {

constexpr const char* kTarStage = "tar_write";
constexpr std::size_t kBlock = 512, kNpyHeader = 128;
constexpr std::size_t kMostShards = 4096;

std::string padding(std::uint64_t bytes) {
  return std::string((kBlock - bytes % kBlock) % kBlock, '\0');
}

// A header of one block.
std::string ustar(std::string_view name, std::uint64_t size, char type) {
  std::string out(kBlock, '\0');
  const auto put = [&](std::size_t at, std::string_view text) {
    text.copy(out.data() + at, text.size());
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");  // user
  put(116, "0000000");  // group
  put(124, fmt::format("{:011o}", size));
  put(136, "00000000000");  // time
  put(148, "        ");     // the checksum, which counts its own bytes as blanks
  out[156] = type;
  put(257, std::string_view("ustar\0"
                            "00",
                            8));
  put(148,
      fmt::format("{:06o}", std::accumulate(out.begin(), out.end(), 0U, [](unsigned sum, char c) {
                    return sum + static_cast<unsigned char>(c);
                  })));
  out[154] = '\0';
  return out;
}

// "LENGTH KEY=VALUE\n", where the length counts itself.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest;
  while (length != rest + fmt::formatted_size("{}", length))
    length = rest + fmt::formatted_size("{}", length);
  return fmt::format("{} {}={}\n", length, key, value);
}

std::string member(const std::string& name, std::string_view data) {
  return tar_header(name, data.size()).append(data) + padding(data.size());
}

Value json_text(std::string of) { return Value::scalar(std::move(of), {}, true); }

// What readers of the output find about all recordings of the run, and about one of them.
FeatureData about_all(const OutputIndex& x, std::span<const std::uint64_t> shape,
                      const std::string& fingerprint) {
  FeatureData out;
  out.shape.assign(shape.begin(), shape.end());
  out.labels = x.manifest.label_names();
  out.splits = x.manifest.split_names();
  out.targets = x.manifest.target_names();
  out.columns = x.manifest.text_names();
  out.has_label_sets = x.manifest.has_label_sets();
  out.texts["feature_fingerprint"] = fingerprint;
  return out;
}
FeatureData::Entry about_recording(const OutputIndex& x, std::size_t file) {
  FeatureData::Entry out;
  out.path = x.path(file);
  out.label = x.label(file);
  out.split = x.split(file);
  out.sample_rate = x.sample_rate(file);
  out.duration = x.duration(file);
  if (const auto& measured = x.order.audio(x.first + file).measured)
    out.measured = std::make_shared<MeasureValues>(*measured);
  if (x.manifest.has_label_sets()) out.labels.assign(x.labels(file).begin(), x.labels(file).end());
  for (std::size_t t = 0; t < x.manifest.target_names().size(); ++t)
    out.targets.push_back(x.target(file, t));
  for (std::size_t t = 0; t < x.manifest.text_names().size(); ++t)
    out.texts.push_back(x.text(file, t));
  return out;
}

// The positions of the braces; npos, npos without braces.
std::pair<std::size_t, std::size_t> braces_in(const std::string& path) {
  const std::size_t begin = path.find('{');
  return {begin, begin == path.npos ? begin : path.find('}', begin)};
}

// "a.tar" for "a-{000..127}.tar".
std::string without_braces(std::string path) {
  auto [begin, end] = braces_in(path);
  if (begin == path.npos || end == path.npos) return path;
  if (begin > 0 && (path[begin - 1] == '-' || path[begin - 1] == '_')) --begin;
  return path.erase(begin, end + 1 - begin);
}

}  // namespace

std::vector<std::string> shard_paths(const std::string& path) {
  const auto [begin, end] = braces_in(path);
  if (begin == path.npos) return {path};
  const std::string inner = end == path.npos ? "" : path.substr(begin + 1, end - begin - 1);
  const std::size_t digits = inner.size() < 4 ? 0 : (inner.size() - 2) / 2;
  const std::string first = inner.substr(0, digits),
                    last = inner.substr(std::min(inner.size(), digits + 2));
  const auto is_number = [&](const std::string& t) {
    return !t.empty() && t.size() == digits && digits < 10 &&
           std::all_of(t.begin(), t.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const bool is_range = is_number(first) && is_number(last) && inner.substr(digits, 2) == "..";
  const long from = is_range ? std::stol(first) : 0, to = is_range ? std::stol(last) : -1;
  if (to < from || static_cast<std::size_t>(to - from) >= kMostShards ||
      path.find_first_of("{}", end + 1) != path.npos || path.find('}') < begin)
    throw RunError(
        fmt::format("'{}': braces stand for shards by two numbers of as many digits, at "
                    "most {} in all, as in train-{{000000..000127}}.tar",
                    excerpt(path, kLongestPath), kMostShards));
  std::vector<std::string> out;
  for (long n = from; n <= to; ++n)
    out.push_back(
        fmt::format("{}{:0{}}{}", path.substr(0, begin), n, digits, path.substr(end + 1)));
  return out;
}

std::string tar_header(std::string_view name, std::uint64_t size) {
  constexpr std::size_t kLongestName = 100;
  constexpr std::uint64_t kSizes = std::uint64_t{1} << 33;
  std::string records;
  if (name.size() > kLongestName) records += pax_record("path", name);
  if (size >= kSizes) records += pax_record("size", fmt::format("{}", size));
  std::string out;
  if (!records.empty()) out = ustar("pax", records.size(), 'x') + records + padding(records.size());
  return out + ustar(name.substr(0, kLongestName), size < kSizes ? size : 0, '0');
}

std::vector<std::string> TarShards::files_of(const std::string& path) {
  std::vector<std::string> out = shard_paths(path);
  for (const auto& of : {npy_index_path, npy_document_path})
    out.push_back(of(without_braces(path)));
  return out;
}

TarShards::TarShards(const std::string& path, NumberType type, std::size_t values_per_row,
                     const Opening& opening, std::shared_ptr<const std::vector<std::string>> names,
                     std::string fingerprint)
    : RowPartFile(shard_paths(path).front(), kTarStage, type, values_per_row, kUnframedOffset,
                  opening, has_one_of({"\"feature_fingerprint\""})),
      names_(std::move(names)),
      fingerprint_(std::move(fingerprint)),
      index_(without_braces(path), kTarStage, opening.existing) {
  const std::vector<std::string> shards = shard_paths(path);
  for (std::size_t i = 1; i < shards.size(); ++i)
    files_.push_back(std::make_unique<PartFile>(shards[i], kTarStage, opening.existing,
                                                has_one_of({"\"feature_fingerprint\""})));
}

std::vector<PartFile*> TarShards::parts() {
  std::vector<PartFile*> out{&index_.index, &index_.document};
  for (const auto& file : files_) out.push_back(file.get());
  out.push_back(this);
  return out;
}

std::string TarMembers::json(const FeatureData::Entry& e, const NamedRows& of) const {
  Value out = Value::map({});
  const auto add = [&](std::string name, Value value) {
    while (out.find(name) != nullptr) name += '_';
    out.set(name, std::move(value));
  };
  const auto number = [](auto n) { return Value::scalar(fmt::format("{}", n)); };
  const auto name_of = [](const std::vector<std::string>& names, std::int32_t which) {
    return json_text(names[static_cast<std::size_t>(which)]);
  };
  add("path", json_text(e.path));
  if (about_.has_label_sets) {
    std::vector<Value> labels;
    for (const std::int32_t label : e.labels) labels.push_back(name_of(about_.labels, label));
    add("labels", Value::list(std::move(labels)));
  } else if (e.label >= 0) {
    add("label", name_of(about_.labels, e.label));
  }
  if (e.split >= 0) add("split", name_of(about_.splits, e.split));
  add("rows", number(of.rows));
  add("sample_rate", number(e.sample_rate));
  add("duration", number(e.duration));
  if (e.measured != nullptr)
    for (const MeasureInfo& m : measures())
      if (const float value = (*e.measured)[measure_of(m)]; std::isfinite(value))
        add(m.column, number(value));
  add("feature_fingerprint", json_text(about_.text("feature_fingerprint")));
  for (std::size_t t = 0; t < about_.targets.size(); ++t)
    if (std::isfinite(e.targets[t])) add(about_.targets[t], number(e.targets[t]));
  for (std::size_t t = 0; t < about_.columns.size(); ++t)
    add(about_.columns[t], json_text(e.texts[t]));
  std::string json = utf8_or_escaped(to_json(out));
  if (!of.result.empty()) json.insert(json.rfind('}'), ", \"result\": " + of.result);
  return json;
}

std::uint64_t TarMembers::bytes_with_header(const NamedRows& of) const {
  return std::accumulate(about_.shape.begin() + 1, about_.shape.end(),
                         static_cast<std::uint64_t>(of.rows) * size_of(type_), std::multiplies()) +
         kNpyHeader;
}

std::string TarMembers::before(const FeatureData::Entry& e, const NamedRows& of) const {
  std::string out = member(of.name + ".json", json(e, of));
  const auto& columns = about_.columns;
  if (const auto at = std::find(columns.begin(), columns.end(), "text"); at != columns.end())
    out += member(of.name + ".txt", e.texts[static_cast<std::size_t>(at - columns.begin())]);
  if (e.label >= 0 && !about_.has_label_sets)
    out += member(of.name + ".cls", fmt::format("{}", e.label));
  std::vector<std::uint64_t> own = about_.shape;
  own.front() = static_cast<std::uint64_t>(of.rows);
  out += tar_header(of.name + ".npy", bytes_with_header(of));
  return out + npy_header(NpyFile::descr(type_), own, kNpyHeader);
}

std::string TarMembers::after(const NamedRows& of) const { return padding(bytes_with_header(of)); }

std::string TarMembers::end() { return std::string(2 * kBlock, '\0'); }

void TarShards::make_shards(std::span<const std::uint64_t> shape, const OutputIndex& index) {
  index_.write(shape, type(), index);
  if (!index.complete) return;
  const std::vector<NamedRows> named = named_rows(
      index.files(),
      [&](std::size_t i) {
        return RowsOfFile{index.offset(i), index.rows(i), index.results(i)};
      },
      std::span(*names_).subspan(index.first, index.files()));
  const auto bytes_of = [&](const NamedRows& of) {
    return static_cast<std::uint64_t>(of.rows) * row_bytes();
  };
  const FeatureData about = about_all(index, shape, fingerprint_);
  const TarMembers members(about, type());
  RowHash hash;
  const auto check = [&](std::size_t i) {
    const std::size_t file = named[i].file;
    if (i + 1 < named.size() && named[i + 1].file == file) return;
    if (const std::uint64_t written = index.rows_hash(file);
        written != 0 && hash.value() != written)
      fail_read_back(part_path());
    hash.reset();
  };
  // Shards of about as many rows. A recording lies in the shard in which its first row would,
  // unless that would leave a shard empty.
  std::vector<std::size_t> begins, ends;  // of recordings and of shards
  for (std::size_t i = 0; i < named.size(); ++i)
    if (i == 0 || named[i - 1].file != named[i].file) begins.push_back(i);
  const std::size_t shards = files_.size() + 1, recordings = begins.size();
  for (std::size_t s = 0, r = 0; s < shards; ++s) {
    const std::size_t least = std::min(recordings, r + 1),
                      most = std::max(least, recordings - std::min(recordings, shards - 1 - s));
    while (r < least || (r < most && static_cast<std::uint64_t>(named[begins[r]].first) * shards <
                                         (s + 1) * shape.front()))
      ++r;
    ends.push_back(r == recordings ? named.size() : begins[r]);
  }
  const auto tail_of = [&](std::size_t begin, std::size_t end) {
    return (begin == end ? "" : members.after(named[end - 1])) + TarMembers::end();
  };
  const auto framed = [&](std::size_t i, std::size_t begin) {
    return FramedPiece{(i == begin ? "" : members.after(named[i - 1])) +
                           members.before(about_recording(index, named[i].file), named[i]),
                       named[i].rows};
  };
  std::vector<char> piece(1 << 20);
  for (std::size_t s = 1; s < shards; ++s) {
    Appender out(*files_[s - 1]);
    for (std::size_t i = ends[s - 1]; i < ends[s]; ++i) {
      out.add(framed(i, ends[s - 1]).head);
      std::uint64_t at = kUnframedOffset + static_cast<std::uint64_t>(named[i].first) * row_bytes();
      for (std::uint64_t left = bytes_of(named[i]); left > 0;) {
        const std::size_t n = std::min<std::uint64_t>(piece.size(), left);
        get(piece.data(), n, at);
        hash.add(piece.data(), n);
        out.add({piece.data(), n});
        at += n;
        left -= n;
      }
      check(i);
    }
    out.add(tail_of(ends[s - 1], ends[s]));
    out.finish();
  }
  frame_rows(
      *this, ends[0], [&](std::size_t i) { return framed(i, 0); }, tail_of(0, ends[0]));
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < ends[0]; ++i) {
    at = add_bytes(hash, *this, at + framed(i, 0).head.size(), bytes_of(named[i]));
    check(i);
  }
}

}  // namespace melflow
