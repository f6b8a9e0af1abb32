#include "stages/corpus/corpus_listing.h"

#include <xxhash.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/secrets.h"
#include "pipeline/base/text.h"
#include "stages/containers/archive.h"
#include "stages/containers/container.h"
#include "stages/containers/file_channel.h"
#include "stages/corpus/archive_names.h"
#include "stages/corpus/double_paths.h"
#include "stages/corpus/earlier_files.h"
#include "stages/corpus/file_facts.h"
#include "stages/corpus/folder_scan.h"
#include "stages/corpus/joined_table.h"
#include "stages/corpus/label_file.h"
#include "stages/corpus/manifest_remarks.h"
#include "stages/corpus/name_rule.h"
#include "stages/corpus/path_parts.h"
#include "stages/corpus/python_corpus.h"
#include "stages/corpus/split_draw.h"
#include "stages/corpus/split_name.h"
#include "stages/corpus/table_columns.h"
#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"
#include "stages/corpus/whole_files.h"
#include "stages/path_advice.h"

namespace melflow {
namespace {

std::string too_long(std::string_view path) {
  return fmt::format("the path has {} bytes, and {} is the most that a system takes", path.size(),
                     kLongestPath);
}

// Whether a member's name has a part "..".
bool leads_up(std::string_view name) {
  return name.starts_with("../") || name.find("/../") != name.npos;
}

class Listing {
 public:
  Listing(const FileListOptions& options, const std::function<void(std::string)>& warn,
          const ListingContext& context)
      : options_(options),
        warn_(warn),
        context_(context),
        folder_(options.base()),
        manifest_(folder_),
        below_root_(folder_),
        facts_(options, manifest_, warn, context.source) {}

  Manifest make() {
    const bool is_all = context_.source.empty();
    for (const auto& [path, split] : context_.earlier) {
      const auto [it, is_new] = earlier_.emplace(path, split);
      if (!is_new && it->second.empty()) it->second = split;
    }
    if (!options_.targets.empty()) manifest_.set_target_names(options_.targets);
    manifest_.set_text_names(options_.text_names());
    if (options_.utterances) manifest_.set_span_unit(options_.utterances->unit);
    facts_.open_joined();
    if (!options_.manifest.empty() || !options_.call.empty())
      read_manifest();
    else if (names_archives(options_.root))
      scan_archives();
    else
      scan();
    if (undrawn_ > 0)
      tell(fmt::format("{}: {} of {} files are taken (sample)", corpus_text(), manifest_.size(),
                       manifest_.size() + undrawn_));
    if (is_cut_)
      tell(fmt::format(
          "{}: only the first {} taken (limit); there are more", corpus_text(),
          manifest_.size() == 1 ? "file is" : fmt::format("{} files are", manifest_.size())));
    facts_.tell_missing();
    recall_hidden();
    facts_.look_up();
    check_has_splits();
    facts_.tell_names_of_splits();
    tell(files_without_group(options_, manifest_, facts_.groups()));
    const bool is_waiting = context_.whole != nullptr && manifest_.size() == 0;
    if (options_.splits == Splits::ratio && !is_waiting) draw();
    if (options_.splits == Splits::top_dir) check_names();
    if (!manifest_.split_names().empty() && options_.splits != Splits::ratio) {
      tell(groups_across_splits(manifest_, facts_.groups()));
      if (is_all) tell(splits_alike(manifest_));
    }
    if (options_.utterances) manifest_.order_by_recording();
    if (!manifest_.split_names().empty()) {
      manifest_.order_by_split(split_order());
      if (is_all) tell(labels_not_in_training(manifest_));
    }
    tell(moves_between_splits(manifest_, earlier_));
    manifest_.close();
    return std::move(manifest_);
  }
  [[nodiscard]] const NotTaken& not_taken() const { return not_taken_; }

 private:
  void tell(const std::string& remark) const {
    if (!remark.empty()) warn_(remark);
  }

  // The lists or the root, as the user wrote them.
  [[nodiscard]] std::string corpus_text() const {
    if (options_.is_store) return without_secrets(options_.arguments.map.find("root")->text());
    if (!options_.lists_of_call.empty()) return options_.lists_of_call.text();
    if (!options_.call.empty()) return shown_call(options_.call);
    return options_.manifest.empty() ? options_.root : options_.manifest.text();
  }
  // " (there are 10 .txt)" of the files that `include` does not match, or "".
  [[nodiscard]] std::string others_there() const {
    return not_taken_.counts().empty() ? "" : fmt::format(" (there are {})", not_taken_.text());
  }

  // What to write where a folder has archives in place of sound files, or "".
  [[nodiscard]] std::string archives_there() const {
    for (const char* ending : {".tar", ".zip"})
      if (options_.include == FileListOptions{}.include && not_taken_.counts().contains(ending))
        return fmt::format("; for the files in archives write root: {}/*{}", options_.root, ending);
    return "";
  }

  // Whether a file that no output has is still being written.
  [[nodiscard]] bool is_unfinished(std::string_view path) const {
    if (context_.whole == nullptr || earlier_.contains(path)) return false;
    const std::string below(path);
    return !context_.whole->is_whole(
        path.starts_with('/') || folder_.empty() ? below : folder_ + '/' + below);
  }

  // Whether a file that was found is not taken: it is still being written, or not drawn.
  bool is_left_out(std::string_view path) {
    if (is_unfinished(path)) return true;
    if (!options_.sample) return false;
    const double at = std::ldexp(static_cast<double>(XXH3_64bits(path.data(), path.size())), -64);
    if (at < options_.sample->of) return false;
    ++undrawn_;
    return true;
  }

  // Whether a file that was found exceeds `limit`.
  bool is_full() {
    const bool is_full = options_.limit && manifest_.size() >= *options_.limit;
    is_cut_ = is_cut_ || is_full;
    return is_full;
  }

  void scan() {
    manifest_.set_all_files(true);
    const FolderScan folders(
        {options_.root, options_.include, options_.exclude, options_.follow_links});
    not_taken_ = folders.run([this](const FolderScan::Found& found) {
      const std::string path = std::string(found.folder).append(found.name);
      if (is_listed(path) || (!found.is_folder && is_left_out(path))) return;
      if (is_full()) return;
      manifest_.add(manifest_.add_folder(found.folder), found.name);
      if (found.is_folder && found.error == 0) ++folders_;
      if (found.error != 0) {
        closed_.push_back(manifest_.size() - 1);
        manifest_.set_problem(closed_.back(),
                              fmt::format("cannot be listed: {}; what is in it is missing",
                                          std::strerror(found.error)));
        facts_.take_none();
      } else {
        facts_.take(path, "", found.is_folder);
      }
    });
    if (!closed_.empty() && options_.closed_folders == ClosedFolders::error) refuse_closed();
    if (const std::vector<std::string> unused = folders.unused_excludes(); !unused.empty())
      tell(fmt::format("exclude: {} {} nothing; patterns are compared with the path below root",
                       fmt::join(unused, ", "), unused.size() == 1 ? "matches" : "match"));
    check_sample(manifest_.size() == folders_);
    if (manifest_.size() == folders_ && context_.whole == nullptr)
      throw RunError(fmt::format(
          "{}: {}{}{}; check the options {}{}", options_.root,
          options_.include == FileListOptions{}.include
              ? std::string("there is no sound file in it or below it")
              : fmt::format("no file matches {}", fmt::join(options_.include, ", ")),
          folders_ == 0 ? ""
                        : fmt::format(", only folders: for the files in one write {}/**",
                                      manifest_.relative(0)),
          others_there(),
          options_.exclude.empty() ? "root and include" : "root, include and exclude",
          archives_there()));
  }

  // The members of archives, as a folder's files. What is damaged counts as one failed file.
  void scan_archives() {
    const FolderScan folders({"", options_.include, options_.exclude, false});
    std::size_t damages = 0;
    for (const std::string& name : archives_of(options_.root)) {
      const std::string below = name.empty() ? "" : name + '/';
      const auto archive = archive_at(name.empty() ? folder_ : folder_ + '/' + name);
      for (const std::string& remark : archive->remarks()) tell(remark);
      std::size_t ups = 0;
      std::string first_up;
      for (std::size_t i = 0; i < archive->size(); ++i) {
        const std::string member(archive->name(i));
        if (leads_up(member)) {
          if (folders.wanted(member.substr(member.rfind("../") + 3)) && ups++ == 0)
            first_up = member;
          continue;
        }
        if (!folders.wanted(member)) {
          not_taken_.add(member);
          continue;
        }
        if (is_listed(below + member) || is_left_out(below + member)) continue;
        if (is_full()) break;
        add(below + member);
        if (const std::string why = archive->problem(i); !why.empty())
          manifest_.set_problem(manifest_.size() - 1, why);
        facts_.take(below + member);
      }
      if (ups > 0)
        tell(fmt::format(
            "{}: {} left out, as '..' in their names leads out of their folders, such "
            "as {}; unpack it, and name the folder",
            archive->path(), ups == 1 ? "1 member is" : fmt::format("{} members are", ups),
            excerpt(first_up)));
      for (const auto& [begin, end] : archive->damages()) {
        add(fmt::format("{}@{}", below, begin));
        manifest_.set_problem(
            manifest_.size() - 1,
            (begin < end
                 ? fmt::format("is no recording: the archive is damaged from byte {} to {}; "
                               "members may be missing",
                               begin, end)
                 : fmt::format("is no recording, but where the archive breaks off: {} bytes of it "
                               "could be unpacked, and the members behind them are missing",
                               begin)) +
                cure_of_archive(archive->path()));
        facts_.take_none();
        ++damages;
      }
    }
    check_sample(manifest_.size() == damages);
    if (manifest_.size() == damages && context_.whole == nullptr)
      throw RunError(fmt::format(
          "{}: there is no {} in it{}; check the options root and include", options_.root,
          options_.include == FileListOptions{}.include
              ? std::string("sound file")
              : fmt::format("member that matches {}", fmt::join(options_.include, ", ")),
          others_there()));
  }

  void check_sample(bool is_empty) const {
    if (is_empty && undrawn_ > 0)
      throw RunError(fmt::format("{}: sample takes none of its {} files; write a larger share",
                                 corpus_text(), undrawn_));
  }

  void refuse_closed() const {
    std::string text;
    constexpr std::size_t kMostNamed = 3;
    for (std::size_t i = 0; i < std::min(closed_.size(), kMostNamed); ++i) {
      const std::string_view problem = manifest_.problem(closed_[i]);
      text += fmt::format("{}: {}; ", manifest_.path(closed_[i]),
                          problem.substr(0, problem.rfind(';')));
    }
    if (closed_.size() > kMostNamed)
      text += fmt::format("and {} folders more; ", closed_.size() - kMostNamed);
    throw RunError(text +
                   "nobody knows what would be missing. Make it readable, list it in exclude, "
                   "or count every such folder as a failed file (closed_folders: failed)");
  }

  // Keeps the earlier outputs' files in folders that cannot be listed now, as they may still be
  // there.
  void recall_hidden() {
    if (closed_.empty()) return;
    const FolderScan folders({"", options_.include, options_.exclude, false});
    std::vector<std::string> hidden;
    for (const std::size_t i : closed_) {
      std::string folder = manifest_.relative(i);
      if (!folder.ends_with('/')) folder += '/';
      for (const auto& [path, split] : earlier_)
        if (path.starts_with(folder) && path.size() > folder.size() && !path.ends_with('/') &&
            folders.wanted(std::string(path)) && !is_listed(std::string(path)))
          hidden.emplace_back(path);
    }
    std::sort(hidden.begin(), hidden.end());
    for (const std::string& path : hidden) {
      add(path);
      facts_.take(path);
    }
  }

  void read_manifest() {
    if (context_.given != nullptr) {
      begin_list(corpus_text(), "");
      std::unique_ptr<TableReader> table = context_.given->table(list_);
      if (!context_.given->is_empty())
        read_table(*with_mapped_columns(std::move(table), options_.table, ""));
    }
    const std::vector<CorpusLists::List> lists = options_.manifest.files();
    are_several_ = lists.size() > 1;
    for (const auto& [split, path] : lists) {
      if (is_cut_) break;
      begin_list(path, split);
      const std::size_t first = manifest_.size();
      if (options_.is_table_list(path))
        read_table(
            *open_table(path, {"path"}, options_.table, folder_of_list(path, options_.root)));
      else
        read_lines();
      if (options_.manifest.rest.empty()) check_is_below_root(first);
    }
    const std::string all = corpus_text();
    check_sample(manifest_.size() == 0);
    if (manifest_.size() == 0 && context_.whole == nullptr)
      throw RunError(all + (options_.is_store ? ": there is no recording" + others_there() +
                                                    "; check the options root and include"
                            : options_.call.empty() ? ": the manifest names no file"
                                                    : ": the function gives no recording"));
    if (options_.call.empty()) {
      tell(urls_of_list(all, manifest_));
      tell(doubled_root(all, manifest_));
    }
    if (!options_.manifest.rest.empty()) take_rest();
    tell(paths_not_utf8(all, manifest_));
    tell(lines_of_one_path(are_several_ || rows_in_.empty() ? all : rows_in_, entry(), manifest_,
                           lines_.find()));
  }

  // Refuses a list whose paths start in its own folder instead of in the root. Looks no further
  // than the first file that exists.
  void check_is_below_root(std::size_t first) const {
    const std::filesystem::path folder = std::filesystem::path(list_).parent_path();
    std::error_code error;
    if (first == manifest_.size() ||
        std::filesystem::equivalent(folder.empty() ? "." : folder, folder_.empty() ? "." : folder_,
                                    error))
      return;
    for (std::size_t i = first; i < manifest_.size(); ++i) {
      const std::string path = without_channel(manifest_.relative(i));
      if (path.starts_with('/') || stamp_of(manifest_.path(i)).size >= 0 ||
          !std::filesystem::is_regular_file(folder / path, error))
        return;
    }
    throw RunError(fmt::format(
        "{}: none of its {} is {}, but they are beside the list, such as {}; write root: {}", list_,
        manifest_.size() - first == 1 ? "recordings"
                                      : fmt::format("{} recordings", manifest_.size() - first),
        folder_.empty() ? "in the current folder" : "below " + folder_,
        excerpt((folder / manifest_.relative(first)).string()),
        excerpt(folder.empty() ? "." : folder.string())));
  }

  void begin_list(const std::string& list, const std::string& split) {
    list_ = list;
    facts_.begin_list(list, split);
  }

  // Adds the files below the root that no list names.
  void take_rest() {
    begin_list(options_.root, options_.manifest.rest);
    for (std::size_t i = 0; i < manifest_.size(); ++i)
      listed_.insert(below_root_(without_channel(manifest_.relative(i))));
    const std::size_t before = manifest_.size();
    names_archives(options_.root) ? scan_archives() : scan();
    // Otherwise files that a list names would count as not listed and be taken twice.
    if (met_ == 0 && manifest_.size() > before && !is_cut_ && context_.whole == nullptr)
      throw RunError(fmt::format(
          "manifest.{}: none of the files that the lists name is below {}, such as {}; the paths "
          "in lists start there",
          excerpt(options_.manifest.rest), options_.root, excerpt(manifest_.relative(0))));
    if (manifest_.size() == before && !is_cut_ && context_.whole == nullptr)
      tell(fmt::format("manifest.{}: {}: include matches no files besides those in the lists{}",
                       excerpt(options_.manifest.rest), options_.root, others_there()));
  }
  bool is_listed(const std::string& path) {
    const bool is_there = listed_.contains(path);
    met_ += is_there ? 1 : 0;
    return is_there;
  }

  void check_has_splits() const {
    if (options_.split_group.empty() || options_.splits != Splits::automatic ||
        !manifest_.split_names().empty() || manifest_.size() == 0)
      return;
    tell(fmt::format(
        "split_group keeps the files of a group in one split, and {} gives no splits; add splits: "
        "ratio to draw them, or remove split_group",
        corpus_text()));
  }

  void add(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    const std::string_view folder = slash == path.npos ? "" : path.substr(0, slash + 1);
    manifest_.add(manifest_.add_folder(folder), path.substr(folder.size()));
  }

  void read_table(TableReader& table) {
    const std::size_t first = manifest_.size();
    const int split = split_column(table);
    const std::string& rule = options_.group_rule();
    const bool by_column = NameRule::is_column(rule);
    const ColumnsAre& are = options_.table.columns_are;
    int group = by_column ? mapped_column(table, list_, rule, are) : -1;
    if (by_column && group < 0) group = require_column(table, list_, rule, "split_group");
    std::optional<SpanColumns> spans;
    if (options_.utterances) spans.emplace(are, table, list_);
    const ChannelColumn channel(are, table, list_);
    std::optional<LabelColumns> columns;
    const bool has_values = !options_.targets.empty() || options_.columns.read_table();
    if (options_.labels == Labels::manifest || (has_values && options_.label_file.empty()))
      columns.emplace(options_, table, list_, options_.labels == Labels::manifest,
                      [this](std::string_view label) { return facts_.renamed(label); });
    const FolderScan folders({"", options_.include, options_.exclude, false});
    bool has_declared = false;
    const auto take_row = [&] {
      const std::string path = channel.path_of(plain(table.cell("path")), table);
      if (path.empty()) throw BadLine(table.where() + ": the path is empty");
      if (path.size() > kLongestPath) throw BadLine(table.where() + ": " + too_long(path));
      if (options_.is_store && !folders.wanted(path)) {
        not_taken_.add(path.substr(path.rfind('/') + 1));
        return;
      }
      if (is_left_out(path)) return;
      const std::string_view of_group = group < 0 ? std::string_view() : table.cell(group);
      const std::string of_split = split < 0 ? std::string() : table.cell(split);
      const Manifest::Span span = spans ? spans->take(table) : Manifest::Span{};
      add(path);
      const std::size_t file = manifest_.size() - 1;
      if (spans) manifest_.set_span(file, span);
      if (const DeclaredAudio audio = table.declared(spans.has_value()); !audio.is_empty()) {
        manifest_.set_declared(file, audio);
        has_declared = true;
      }
      const std::string below = below_root_(path);
      lines_.add(spans ? below_root_(manifest_.name(file)) : below, line_of(table.line()));
      facts_.take(below, of_group);
      if (!of_split.empty()) {
        facts_.check_split(of_split, table.where(split));
        facts_.set_split(file, of_split, table.where(split));
      }
      if (columns) columns->take(table, manifest_, file);
    };
    BadLines bad;
    for (bool is_row = true; is_row;) {
      const std::size_t before = manifest_.size();
      try {
        is_row = table.next() && !is_full();
        if (is_row) take_row();
      } catch (const BadLine& e) {
        if (manifest_.size() == before) {
          add_bad_line(table, spans);
          // The line's other values, such as the utterance's id.
          try {
            if (columns) columns->take(table, manifest_, before);
          } catch (const BadLine&) {
          }
        }
        bad.add(manifest_, before, e.what());
      }
    }
    rows_in_ = table.place(TableReader::kRow).path;
    tell(bad.remark(rows_in_, entry(), manifest_.size() - first));
    if (const std::string empty = columns ? columns->remark() : "";
        !empty.empty() && unused_.insert(empty.substr(list_.size())).second)
      tell(empty);
    std::vector<int> used{table.column("path"), split, group, channel.column()};
    if (columns)
      for (const int c : columns->columns()) used.push_back(c);
    if (spans)
      for (const int c : spans->columns()) used.push_back(c);
    if (has_declared) used.push_back(table.column("duration"));
    for (const std::string& remark : table.remarks(used)) tell(remark);
    // Columns that count as read: those that templates use, even under the template's own name, and
    // those whose name a column of the output has, wherever that comes from.
    std::vector<std::string> known = are.sources();
    for (std::string& name : options_.text_names()) known.push_back(std::move(name));
    for (std::size_t c = 0; c < table.columns().size(); ++c)
      if (std::find(known.begin(), known.end(), table.columns()[c]) != known.end())
        used.push_back(static_cast<int>(c));
    if (table.has_fixed_columns() || !options_.lists_of_call.empty()) return;
    const std::string unused = columns_not_read(options_, list_, table.columns(), used);
    if (!unused.empty() && unused_.insert(unused.substr(list_.size())).second) tell(unused);
  }

  // Adds an entry for a row that cannot be used, named after its known values, else after its line.
  void add_bad_line(const TableReader& table, const std::optional<SpanColumns>& spans) {
    std::string name;
    Manifest::Span span;
    try {
      name = plain(table.cell("path"));
      if (name.size() > kLongestPath) name.clear();
      if (spans && !name.empty()) span = spans->take(table);
    } catch (const BadLine&) {
      name.clear();
    }
    if (name.empty()) name = table.where();
    add(name);
    facts_.take_none();
    const std::size_t file = manifest_.size() - 1;
    if (spans) manifest_.set_span(file, span);
    facts_.set_constants(file);
    lines_.add(below_root_(manifest_.name(file)), line_of(table.line()));
  }

  int split_column(TableReader& table) const {
    if (options_.splits != Splits::automatic && options_.splits != Splits::manifest) return -1;
    if (options_.manifest.has_splits() || !facts_.constants().value("split").empty()) return -1;
    if (std::any_of(options_.join.begin(), options_.join.end(),
                    [](const TableJoin& join) { return !join.split.empty(); }))
      return -1;
    const int column = mapped_column(table, list_, "split", options_.table.columns_are);
    return options_.splits == Splits::manifest && column < 0
               ? require_column(table, list_, "split", "splits: manifest")
               : column;
  }
  // The word for an entry of the list in messages.
  [[nodiscard]] const char* entry() const { return context_.given == nullptr ? "line" : "item"; }
  // A line's number, or 0 where it would not identify the line, as with several lists.
  [[nodiscard]] int line_of(int number) const {
    return are_several_ || context_.given != nullptr ? 0 : number;
  }

  void read_lines() {
    TextLines lines(list_);
    std::size_t comments = 0;
    int first_comment = 0;
    for (std::string line; lines.next(line);) {
      if (line.empty()) continue;
      if (line.starts_with('#')) {
        // "#1.wav" may be meant as a path, "# 1" hardly.
        if (line.size() > 1 && line[1] != ' ' && line[1] != '#' && comments++ == 0)
          first_comment = lines.number();
        continue;
      }
      if (is_left_out(plain(line))) continue;
      if (is_full()) break;
      if (plain(line).size() > kLongestPath) {
        add(fmt::format("{}:{}", list_, lines.number()));
        manifest_.set_problem(manifest_.size() - 1, too_long(plain(line)));
        facts_.take_none();
        facts_.set_constants(manifest_.size() - 1);
        continue;
      }
      add(plain(line));
      const std::string below = below_root_(line);
      lines_.add(below, line_of(lines.number()));
      facts_.take(below);
    }
    if (comments > 0)
      tell(fmt::format(
          "{}: {} {} with # and {} read as {}, line {} first; a file of such a name is ./#...",
          list_, comments, comments == 1 ? "line begins" : "lines begin",
          comments == 1 ? "is" : "are", comments == 1 ? "a comment" : "comments", first_comment));
  }

  void draw() {
    std::vector<std::int8_t> splits;
    try {
      splits = draw_splits(options_, manifest_, facts_.groups().keys(), earlier_);
    } catch (const RunError&) {
      // Beside a recorder, the first complete files may be too few for all splits: they wait then.
      if (context_.whole == nullptr || !earlier_.empty()) throw;
      manifest_ = Manifest(folder_);
    }
    for (std::size_t i = 0; i < splits.size(); ++i)
      if (splits[i] >= 0)
        facts_.set_split(i, options_.split_ratios.list[static_cast<std::size_t>(splits[i])].first,
                         "");
  }

  void check_names() const {
    for (const std::string& split : manifest_.split_names())
      facts_.check_split(split, options_.root + "/" + split,
                         "; name it there, or leave its files out with exclude");
  }

  [[nodiscard]] std::vector<std::string> split_order() const {
    if (!options_.split_names.empty()) return options_.split_names;
    std::vector<std::string> names;
    if (options_.splits == Splits::ratio)
      for (const auto& [name, share] : options_.split_ratios.list) names.push_back(name);
    if (!names.empty()) return names;
    names = manifest_.split_names();
    sort_by_purpose(names);
    return names;
  }

  const FileListOptions& options_;
  const std::function<void(std::string)>& warn_;
  const ListingContext& context_;
  const std::string folder_;  // the folder to which paths are relative
  Manifest manifest_;
  BelowRoot below_root_;
  FileFacts facts_;
  std::string list_;                        // that is read
  std::string rows_in_;                     // the file with the rows of the last table
  bool are_several_ = false;                // whether there are several lists
  std::unordered_set<std::string> listed_;  // the paths of the lists, where the rest is taken
  std::size_t met_ = 0;                     // how many of these were found below the root
  std::set<std::string> unused_;            // remarks on columns, given for the first list only
  NotTaken not_taken_;
  bool is_cut_ = false;              // whether `limit` leaves files out
  std::size_t undrawn_ = 0;          // files that `sample` leaves out
  std::size_t folders_ = 0;          // folders that match as if they were files
  std::vector<std::size_t> closed_;  // folders that cannot be listed
  EarlierSplits earlier_;            // the earlier splits in an update
  DoublePaths lines_;                // of the lines of a manifest
};

}  // namespace

void check_lists(const FileListOptions& options, const std::function<void(std::string)>& warn) {
  if (!options.call.empty()) return;
  if (!options.manifest.empty())
    static_cast<void>(list_corpus(options, warn));
  else if (!options.label_file.empty())
    check_label_file(options, warn);
  if (options.manifest.empty())
    for (const TableJoin& join : options.join) static_cast<void>(JoinedTable(join, warn));
}

Manifest list_corpus(const FileListOptions& options, const std::function<void(std::string)>& warn,
                     const ListingContext& context) {
  Listing listing(options, warn, context);
  Manifest manifest = listing.make();
  if (context.not_taken != nullptr) *context.not_taken = listing.not_taken();
  return manifest;
}

}  // namespace melflow
