#include "stages/corpus/manifest_file.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/value.h"
#include "stages/corpus/split_name.h"
#include "stages/corpus/text_lines.h"
#include "stages/files/byte_hash.h"
#include "stages/files/json_bytes.h"
#include "stages/files/own_file.h"
#include "stages/files/unique_fd.h"
#include "stages/files/whole_io.h"
#include "stages/shallow_json.h"

namespace melflow {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kPiece = 1 << 20;  // [bytes] written at a time

std::string json(std::string_view text) {
  if (is_utf8(text)) return to_json(Value::scalar(std::string(text), {}, true));
  return R"({"hex": ")" + hex_of(text) + "\"}";
}

// JSON has no infinity, and null means NaN.
std::string json(double number) {
  if (std::isnan(number)) return "null";
  if (std::isinf(number)) return number > 0 ? R"("inf")" : R"("-inf")";
  return fmt::format("{}", number);
}

double number_of(const Json& json) {
  if (json.is_null()) return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  if (json.is_string()) return json.get<std::string>() == "inf" ? infinity : -infinity;
  return json.get<double>();
}

template <class List, class Text>
std::string json_list(const List& list, const Text& text) {
  std::string out = "[";
  for (const auto& one : list) out += (out.size() > 1 ? ", " : "") + text(one);
  return out + "]";
}

std::string names(const std::vector<std::string>& list) {
  return json_list(list, [](const std::string& name) { return json(name); });
}

std::vector<std::string> names_of(const Json& list) {
  std::vector<std::string> out;
  for (const Json& name : list) out.push_back(bytes_of(name));
  return out;
}

std::string head_line(const Manifest& manifest) {
  std::string out = fmt::format(
      R"({{"root": {}, "files": {}, "labels": {}, "splits": {}, "targets": {}, "texts": {}, )"
      R"("several_labels": {})",
      json(manifest.root()), manifest.size(), names(manifest.label_names()),
      names(manifest.split_names()), names(manifest.target_names()), names(manifest.text_names()),
      manifest.has_label_sets());
  if (!manifest.sources().empty())
    out += R"(, "sources": )" + json_list(manifest.sources(), [](const CorpusSource& s) {
             return fmt::format(R"({{"name": {}, "root": {}}})", json(s.name), json(s.root));
           });
  if (manifest.has_spans())
    out += fmt::format(R"(, "spans": "{}")",
                       manifest.span_unit() == Manifest::SpanUnit::seconds ? "seconds" : "samples");
  return out + "}\n";
}

std::string line_of(const Manifest& manifest, std::size_t i, const FileStamp& stamp) {
  std::string out = fmt::format(R"({{"path": {}, "size": {}, "modified": {})",
                                json(manifest.relative(i)), stamp.size, stamp.modified);
  if (!manifest.sources().empty()) out += fmt::format(R"(, "source": {})", manifest.source_of(i));
  if (manifest.has_label_sets())
    out += R"(, "labels": )" +
           json_list(manifest.labels(i), [](std::int32_t l) { return std::to_string(l); });
  else if (manifest.label(i) >= 0)
    out += fmt::format(R"(, "label": {})", manifest.label(i));
  if (manifest.split(i) >= 0) out += fmt::format(R"(, "split": {})", manifest.split(i));
  std::vector<std::size_t> columns(manifest.target_names().size());
  for (std::size_t c = 0; c < columns.size(); ++c) columns[c] = c;
  if (!columns.empty())
    out += R"(, "targets": )" +
           json_list(columns, [&](std::size_t c) { return json(double{manifest.target(i, c)}); });
  columns.resize(manifest.text_names().size());
  for (std::size_t c = 0; c < columns.size(); ++c) columns[c] = c;
  if (!columns.empty())
    out += R"(, "texts": )" +
           json_list(columns, [&](std::size_t c) { return json(manifest.text(i, c)); });
  if (manifest.has_spans())
    out += fmt::format(R"(, "start": {}, "end": {})", json(manifest.span(i).start),
                       json(manifest.span(i).end));
  const DeclaredAudio declared = manifest.declared(i);
  if (declared.seconds > 0) out += fmt::format(R"(, "duration": {})", declared.seconds);
  if (declared.rate > 0) out += fmt::format(R"(, "sample_rate": {})", declared.rate);
  if (!manifest.problem(i).empty()) out += R"(, "problem": )" + json(manifest.problem(i));
  return out + "}\n";
}

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  throw RunError(fmt::format("{}: cannot be {}: {}", path, what, std::strerror(error)));
}

[[noreturn]] void refuse(const std::string& path, const std::string& why = "") {
  throw RunError(fmt::format("{}: this file is not what `melflow plan` wrote{}{}; plan again", path,
                             why.empty() ? "" : ": ", why));
}

// Builds a manifest from the lines that are read.
class Lines {
 public:
  explicit Lines(const std::string& head) {
    const Json json = parse_shallow(head);
    std::vector<CorpusSource> sources;
    for (const Json& source : json.value("sources", Json::array()))
      sources.push_back({bytes_of(source.at("name")), bytes_of(source.at("root"))});
    corpus_.manifest =
        sources.empty() ? Manifest(bytes_of(json.at("root"))) : Manifest(std::move(sources));
    Manifest& manifest = corpus_.manifest;
    labels_ = names_of(json.at("labels"));
    splits_ = names_of(json.at("splits"));
    const std::vector<std::string> texts = names_of(json.at("texts"));
    // They become names of files and datasets, and the job may be from elsewhere.
    for (const std::string& split : splits_) check_name(split_name_problem(split));
    for (const std::string& text : texts) check_name(column_name_problem(text));
    manifest.set_names(labels_, splits_);
    manifest.set_target_names(names_of(json.at("targets")));
    manifest.set_text_names(texts);
    has_label_sets_ = json.at("several_labels").get<bool>();
    if (json.contains("spans"))
      manifest.set_span_unit(json.at("spans") == "seconds" ? Manifest::SpanUnit::seconds
                                                           : Manifest::SpanUnit::samples);
  }
  void add(std::string_view line) {
    const Json json = parse_shallow(line);
    Manifest& manifest = corpus_.manifest;
    const std::string path = bytes_of(json.at("path"));
    const std::size_t name =
        path.find_last_of('/', path.size() - 2) + 1;  // a folder's name ends in its slash
    const std::size_t i = manifest.size();
    const std::size_t source = json.value("source", std::size_t{0});
    if (!manifest.sources().empty()) static_cast<void>(manifest.sources().at(source));
    manifest.add(manifest.add_folder(path.substr(0, name), source), path.substr(name));
    corpus_.stamps.push_back(
        {json.at("size").get<std::int64_t>(), json.at("modified").get<std::int64_t>()});
    set_labels(i, json);
    if (json.contains("split"))
      (void)manifest.set_split(i, splits_.at(json.at("split").get<std::size_t>()));
    std::size_t column = 0;
    for (const Json& target : json.value("targets", Json::array()))
      manifest.set_target(i, column++, static_cast<float>(number_of(target)));
    column = 0;
    for (const Json& text : json.value("texts", Json::array()))
      manifest.set_text(i, column++, bytes_of(text));
    if (json.contains("start"))
      manifest.set_span(i, {number_of(json.at("start")), number_of(json.at("end"))});
    if (json.contains("duration") || json.contains("sample_rate"))
      manifest.set_declared(i, {json.value("duration", 0.0), json.value("sample_rate", 0.0)});
    if (json.contains("problem")) manifest.set_problem(i, bytes_of(json.at("problem")));
  }
  FrozenCorpus end() {
    corpus_.manifest.close();
    return std::move(corpus_);
  }

 private:
  static void check_name(const std::string& problem) {
    if (!problem.empty()) throw std::invalid_argument(problem);
  }
  void set_labels(std::size_t i, const Json& json) {
    if (has_label_sets_) {
      std::vector<std::string_view> set;
      for (const Json& label : json.at("labels"))
        set.push_back(labels_.at(label.get<std::size_t>()));
      corpus_.manifest.set_labels(i, set);
    } else if (json.contains("label")) {
      corpus_.manifest.set_label(i, labels_.at(json.at("label").get<std::size_t>()));
    }
  }

  FrozenCorpus corpus_;
  std::vector<std::string> labels_, splits_;
  bool has_label_sets_ = false;
};

std::string read_at(int fd, const std::string& path, std::uint64_t at, std::uint64_t bytes) {
  struct stat st {};
  if (fstat(fd, &st) != 0) fail(path, "read", errno);
  if (bytes > static_cast<std::uint64_t>(st.st_size)) refuse(path);
  std::string out(bytes, '\0');
  if (const int error = read_whole(fd, out.data(), bytes, at)) {
    if (error == EIO) refuse(path);  // the file is too short
    fail(path, "read", error);
  }
  return out;
}

}  // namespace

void write_manifest(const std::string& path, const Manifest& manifest,
                    std::span<const FileStamp> stamps, std::span<ManifestRange> ranges) {
  const UniqueFd fd = create_empty(path);
  if (!fd) fail(path, "made", errno);
  std::uint64_t at = 0;
  const auto put = [&](std::string& bytes) {
    if (const int error = write_whole(fd.get(), bytes.data(), bytes.size(), at))
      fail(path, "written", error);
    at += bytes.size();
    bytes.clear();
  };
  std::string lines = head_line(manifest);
  put(lines);
  for (ManifestRange& range : ranges) {
    range.at = at;
    ByteHash hash;
    const auto flush = [&] {
      hash.add(lines.data(), lines.size());
      put(lines);
    };
    for (std::size_t i = range.first; i < range.end; ++i) {
      lines += line_of(manifest, i, stamps[i]);
      if (lines.size() >= kPiece) flush();
    }
    flush();
    range.bytes = at - range.at;
    range.hash = hash.value();
  }
  if (const int error = close_error(fd.get())) fail(path, "written", error);
}

FrozenCorpus read_manifest(const std::string& path, std::span<const ManifestRange> ranges) {
  const UniqueFd fd(InputFile(path).release());
  try {
    std::string head;
    while (head.find('\n') == head.npos) {
      char piece[4096];
      const ssize_t n = ::pread(fd.get(), piece, sizeof piece, static_cast<off_t>(head.size()));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(path, "read", errno);
      if (n == 0) refuse(path);
      head.append(piece, static_cast<std::size_t>(n));
    }
    Lines out(head.substr(0, head.find('\n')));
    for (const ManifestRange& range : ranges) {
      const std::string lines = read_at(fd.get(), path, range.at, range.bytes);
      if (XXH3_64bits(lines.data(), lines.size()) != range.hash) refuse(path);
      std::string_view rest = lines;
      for (std::size_t i = range.first; i < range.end; ++i) {
        const std::size_t end = rest.find('\n');
        out.add(rest.substr(0, end));
        rest.remove_prefix(end + 1);
      }
    }
    return out.end();
  } catch (const Json::exception&) {
  } catch (const std::out_of_range&) {
  } catch (const std::invalid_argument& e) {
    refuse(path, e.what());
  }
  refuse(path);
}

}  // namespace melflow
