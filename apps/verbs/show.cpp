// melflow show: draws the rows of recordings as one picture.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/picture/spectrogram.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/svg.h"
#include "apps/usage_errors.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/written_file.h"
#include "pipeline/base/sentences.h"
#include "pipeline/base/text.h"
#include "pipeline/options/schema.h"
#include "stages/files/own_file.h"
#include "stages/output/formats/feature_file.h"
#include "stages/output/formats/stored_json.h"

namespace melflow {
namespace {

constexpr std::size_t kShownPaths = 5;

struct ShowArguments {
  std::vector<std::string> files;
  std::vector<std::string> paths;
  std::string picture;
  bool force = false;
  std::string rows;
};

// Matches the whole path, or its end after some '/'.
bool ends_like(const std::string& path, const std::string& wanted) {
  return path.ends_with(wanted) && (path.size() == wanted.size() || wanted.starts_with('/') ||
                                    path[path.size() - wanted.size() - 1] == '/');
}

// Suggests a name like did_you_mean(), comparing file names without folder and extension.
std::string near_name(const std::string& wanted, const std::vector<std::string>& paths) {
  const auto name = [](const std::string& path) {
    return std::filesystem::path(path).stem().string();
  };
  std::vector<std::string> names(paths.size());
  std::transform(paths.begin(), paths.end(), names.begin(), name);
  const std::string near = did_you_mean(name(wanted), names);
  for (std::size_t i = 0; i < paths.size() && !near.empty(); ++i)
    if (near.find("'" + names[i] + "'") != std::string::npos)
      return did_you_mean(excerpt(paths[i], kLongestPath));
  return {};
}

const FeatureFile::Entry& find_entry(const FeatureFile& f, const std::string& wanted) {
  std::vector<const FeatureFile::Entry*> hits;
  for (const FeatureFile::Entry& e : f.files()) {
    if (e.path == wanted) return e;
    if (ends_like(e.path, wanted)) hits.push_back(&e);
  }
  if (hits.size() == 1) return *hits.front();
  if (hits.empty()) {
    std::vector<std::string> paths;
    for (const FeatureFile::Entry& e : f.files()) paths.push_back(e.path);
    std::string near = did_you_mean(wanted, paths);
    if (near.empty()) near = near_name(wanted, paths);
    throw RunError(fmt::format("{}: there is no file '{}' in it{}", f.path(), excerpt(wanted),
                               near.empty() ? "; `melflow inspect --files` lists them" : near));
  }
  std::string list;
  for (std::size_t i = 0; i < std::min(kShownPaths, hits.size()); ++i)
    list += (list.empty() ? "" : ", ") + excerpt(hits[i]->path, kLongestPath);
  if (hits.size() > kShownPaths) list += fmt::format(" … and {} more", hits.size() - kShownPaths);
  throw RunError(fmt::format("{}: '{}' could be any of {}; write more of the path", f.path(),
                             excerpt(wanted), list));
}

// Says why a file has no rows.
std::string excuse(const FeatureFile& f, const FeatureFile::Entry& e) {
  for (const FeatureFile::Remark& r : f.remarks())
    if (r.path == e.path)
      return fmt::format("{} ({}: {})", to_text(r.status), excerpt(r.stage),
                         excerpt(r.reason, kLongestReason));
  return to_text(e.status);
}

struct Range {
  std::uint64_t begin = 0, end = 0;
};

// Parses A:B like a Python slice: either may be omitted, and negative numbers count from the end.
Range parse_rows(const std::string& text, std::int64_t count) {
  Range all{0, static_cast<std::uint64_t>(count)};
  if (text.empty()) return all;
  const std::size_t colon = text.find(':');
  const auto number = [&](const std::string& part, std::int64_t fallback) {
    if (part.empty()) return fallback;
    std::int64_t n = 0;
    if (!detail::parse_integer(Value::scalar(part), n).empty())
      throw UsageError(fmt::format(
          "--rows {}: this is not a range of rows; write A:B, such as 0:500", excerpt(text)));
    return std::clamp<std::int64_t>(n < 0 ? n + count : n, 0, count);
  };
  if (colon == std::string::npos)
    throw UsageError(fmt::format("--rows {}: this is not a range of rows; write A:B, such as 0:500",
                                 excerpt(text)));
  const std::int64_t begin = number(text.substr(0, colon), 0);
  const std::int64_t end = number(text.substr(colon + 1), count);
  if (begin >= end)
    throw RunError(
        fmt::format("--rows {}: there are no such rows; the recording has {}", text, count));
  return {static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end)};
}

// Whether each row is a window, so that rows may overlap or leave gaps in time.
bool has_windows(const FeatureFile& f) {
  if (f.shape().size() == 3) return true;
  const StoredJson config = parse_settings_or_null(f.text("config"));
  if (!config.is_object() || !config.contains("graph") || !config["graph"].is_object())
    return false;
  for (const auto& node : config["graph"])
    if (node.is_object() && node.contains("stage") && node["stage"] == "segment")
      for (const char* key : {"length", "long"})
        if (node.contains(key) && !node[key].is_null()) return true;
  return false;
}

// Returns the first recording that has rows.
const FeatureFile::Entry& first_entry(const FeatureFile& f) {
  for (const FeatureFile::Entry& e : f.files())
    if (e.count > 0) return e;
  throw RunError(f.path() + ": no recording in it has rows; `melflow inspect` says why");
}

Spectrogram read_spectrogram(const FeatureFile& file, const FeatureFile::Entry& entry,
                             const Range& range) {
  Spectrogram s;
  s.frames = (range.end - range.begin) * file.frames_per_row();
  s.values = file.read_rows(static_cast<std::uint64_t>(entry.offset) + range.begin,
                            range.end - range.begin);
  s.bands = file.bands();
  const Levels levels = to_levels(s.values, file.unit());
  s.unit = levels.unit;
  s.shown = levels.shown;
  s.band_hz = file.band_hz();
  s.first_frame = static_cast<double>(range.begin * file.frames_per_row());
  if (!has_windows(file)) {
    const double rate = static_cast<double>(file.integer("sample_rate").value_or(0));
    if (rate > 0)
      s.frame_seconds = static_cast<double>(file.integer("hop_length").value_or(0)) / rate;
  } else {
    s.axis = file.frames_per_row() == 1 ? "row" : "frame";
  }
  s.title = entry.path;
  return s;
}

void check_picture(const std::string& path) {
  const std::filesystem::path ending = std::filesystem::path(path).extension();
  // A path without an extension may be a device or a pipe.
  if (ending.empty() || ending == ".svg" || ending == ".SVG") return;
  throw UsageError(fmt::format(
      "--output {}: pictures are written as SVG; name it {}, which a browser, "
      "rsvg-convert or Inkscape makes a PNG of",
      excerpt(path), excerpt(std::filesystem::path(path).replace_extension(".svg").string())));
}

int show(const ShowArguments& arguments) {
  std::vector<FeatureFile> outputs;
  for (const std::string& file : arguments.files)
    if (outputs.emplace_back(file).has_samples())
      throw RunError(file + ": its rows are samples; pictures are drawn of features such as mel");
  std::vector<std::string> paths = arguments.paths;
  if (paths.empty()) paths.push_back(first_entry(outputs.front()).path);
  const std::string picture =
      !arguments.picture.empty()
          ? arguments.picture
          : std::filesystem::path(find_entry(outputs.front(), paths.front()).path).stem().string() +
                ".svg";
  if (arguments.picture.empty() && !arguments.force && has_name(picture))
    throw RunError(
        fmt::format("{}: this already exists; name another picture by --output, or replace "
                    "it by --force",
                    excerpt(picture, kLongestPath)));
  WrittenFile written(picture, arguments.force ? kAnyFile : kSvgMark, arguments.files);
  check_picture(picture);
  std::vector<Spectrogram> drawn;
  std::string said;
  for (const std::string& path : paths)
    for (const FeatureFile& file : outputs) {
      const FeatureFile::Entry& entry = find_entry(file, path);
      if (entry.count == 0)
        throw RunError(fmt::format("{}: {} has no rows: {}", file.path(),
                                   excerpt(entry.path, kLongestPath), excuse(file, entry)));
      const Range range = parse_rows(arguments.rows, entry.count);
      Spectrogram s = read_spectrogram(file, entry, range);
      said += (said.empty() ? "" : "; ") + fmt::format("{} of {}",
                                                       plural(range.end - range.begin, "row"),
                                                       excerpt(entry.path, kLongestPath));
      if (outputs.size() > 1) {
        s.title += " in " + file.path();
        said += " in " + file.path();
      }
      drawn.push_back(std::move(s));
    }
  const Drawn all = draw(drawn);
  written.write(all.svg);
  say(stdout, "{}: {} x {} pixels, {}\n", picture, all.width, all.height, said);
  return kDone;
}

}  // namespace

Action add_show(CLI::App& verb) {
  auto arguments = std::make_shared<ShowArguments>();
  verb.add_option("FILE", arguments->files,
                  "files that `melflow run` wrote; several are drawn one below the other")
      ->required();
  verb.add_option("--file", arguments->paths,
                  "a recording: its path in FILE, or as much of the end as is unique; may be given "
                  "more than once (default: the first one that has rows)")
      ->type_name("PATH")
      ->expected(1)
      ->take_all();
  verb.add_option(
          "-o,--output", arguments->picture,
          "the picture (SVG) to write (default: named after the recording, in the current folder)")
      ->type_name("PATH");
  verb.add_flag("--force", arguments->force,
                "replaces the picture if it exists, and with --output a file that is no picture");
  verb.add_option("--rows", arguments->rows,
                  "draws only these rows, as in 0:500; a negative number counts from the end")
      ->type_name("A:B");
  verb.footer(
      "Example:\n"
      "  melflow show features.h5\n"
      "  melflow show before.h5 after.h5 --file en/hello.wav -o both.svg");
  return [arguments] { return show(*arguments); };
}

}  // namespace melflow
