// file_list: the files of a corpus, in the order their rows will have.
//
// Out: FileRef, one for every path that matches, also for those that turn out to be no readable
//      file: whoever reads them says so, and the ledger has a line for each.

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <unordered_map>

#include <fmt/format.h>

#include "pipeline/registry.h"
#include "stages/csv.h"
#include "stages/feed.h"
#include "stages/glob.h"
#include "stages/items.h"
#include "stages/manifest.h"

namespace melflow {

enum class Labels { none, parent_dir, top_dir, csv, manifest };
template <>
struct EnumNames<Labels> {
  static constexpr std::pair<const char*, Labels> values[] = {{"none", Labels::none},
                                                              {"parent_dir", Labels::parent_dir},
                                                              {"top_dir", Labels::top_dir},
                                                              {"csv", Labels::csv},
                                                              {"manifest", Labels::manifest}};
};

namespace {

struct FileListOptions {
  std::string root;
  std::vector<std::string> include{"**/*.wav", "**/*.flac", "**/*.ogg",  "**/*.oga",  "**/*.opus",
                                   "**/*.mp3", "**/*.aif",  "**/*.aiff", "**/*.aifc", "**/*.au",
                                   "**/*.caf", "**/*.w64",  "**/*.rf64"};
  std::vector<std::string> exclude;
  std::string manifest;
  Labels labels = Labels::none;
  std::string label_file;
  bool follow_links = false;
  FeedOptions feed;

  void describe(Schema& s) {
    s.field("root", root,
            "folder to look in, with all folders below it; paths are stored below it");
    s.field("include", include,
            "patterns of files to take: * within a name, ** for any folders; case does not matter");
    s.field("exclude", exclude, "patterns of files to leave out again");
    s.field("manifest", manifest,
            "instead of looking: a text file with a path a line, or a .csv with a header and the "
            "columns path and, if wanted, label and split; order is kept");
    s.field("labels", labels,
            "where labels come from: the name of the file's folder (parent_dir), of its first "
            "folder below root (top_dir), the column of the manifest, or label_file (csv)");
    s.field("label_file", label_file,
            "for labels: csv; a .csv with a header and the columns path and label");
    s.field("follow_links", follow_links, "also look into folders that are symbolic links");
    feed.describe(s);
  }
};

class FileList final : public Source<FileRef>, public ManifestSource {
 public:
  explicit FileList(FileListOptions options)
      : options_(std::move(options)), feed_(std::make_shared<Feed>(options_.feed)) {
    for (const std::string& p : options_.include) include_.emplace_back(p);
    for (const std::string& p : options_.exclude) exclude_.emplace_back(p);
  }

  static std::optional<Insertion> insert(const NodeSpec& spec) { return Feed::insertion(spec); }

  Facts plan(const Facts& given, const Facts&, PlanCheck& check) override {
    if (options_.root.empty() && options_.manifest.empty())
      check.error("", "'root' is missing: which folder holds the recordings?");
    if (options_.labels == Labels::csv && options_.label_file.empty())
      check.error("labels", "csv needs a label_file");
    if (options_.labels != Labels::csv && !options_.label_file.empty())
      check.error("label_file", "is read with labels: csv only");
    if (options_.labels == Labels::manifest && options_.manifest.empty())
      check.error("labels", "manifest needs a manifest");
    else if (options_.labels == Labels::manifest && !is_csv(options_.manifest))
      check.error("labels", "a manifest with labels is a .csv with the column label, not " +
                                options_.manifest);
    if (!options_.manifest.empty() && !options_.exclude.empty())
      check.error("exclude", "a manifest is taken as it stands; leave the files out there");
    feed_->check(check);
    Facts out = given;
    out.set_object(Feed::kFact, std::make_shared<const FeedLink>(FeedLink{feed_}));
    return out;
  }

  void start(RunContext& run) override {
    manifest_ = Manifest(options_.root);
    if (options_.manifest.empty())
      scan_root();
    else
      read_manifest();
    if (options_.labels == Labels::csv) read_labels(run);
    manifest_.close();
  }

  [[nodiscard]] std::size_t source_count() const override { return manifest_.size(); }
  [[nodiscard]] std::string source_name(std::size_t i) const override {
    return manifest_.relative(i);
  }
  // Beside the index itself, what ledger and writer keep for every file.
  [[nodiscard]] std::size_t source_index_bytes() const override {
    return manifest_.memory_bytes() + (40 + feed_->index_bytes()) * manifest_.size();
  }
  [[nodiscard]] SourceItem source_item(std::size_t i) override {
    auto file = std::make_shared<FileRef>();
    file->path = manifest_.path(i);
    struct stat st {};
    if (stat(file->path.c_str(), &st) == 0 && S_ISREG(st.st_mode))
      file->size = static_cast<std::uint64_t>(st.st_size);
    feed_->attach(*file, i, st);
    const SourceInfo info{file->path, file->size};
    return {std::move(file), info};
  }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  void finish(RunContext& run, Ending) override { feed_->finish(run); }
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    return feed_->summary();
  }

 private:
  static bool any_matches(const std::vector<Glob>& globs, const std::string& path) {
    return std::any_of(globs.begin(), globs.end(), [&](const Glob& g) { return g.matches(path); });
  }
  [[nodiscard]] bool wanted(const std::string& path) const {
    return any_matches(include_, path) && !any_matches(exclude_, path);
  }

  void scan_root() {
    struct stat st {};
    if (stat(options_.root.c_str(), &st) != 0 ||
        (S_ISDIR(st.st_mode) && eaccess(options_.root.c_str(), R_OK | X_OK) != 0))
      throw RunError(fmt::format("{}: cannot look into the folder: {}; check file_list.root",
                                 options_.root, std::strerror(errno)));
    if (!S_ISDIR(st.st_mode))
      throw RunError(fmt::format("{}: is a file, file_list.root takes a folder", options_.root));
    std::vector<std::pair<dev_t, ino_t>> way{{st.st_dev, st.st_ino}};
    scan("", way);
    if (manifest_.size() == 0)
      throw RunError(fmt::format("{}: no file matches {}; check file_list.root and include",
                                 options_.root, fmt::join(options_.include, ", ")));
  }

  // Depth first with sorted names is the order of the paths compared component by component.
  // `way`: the folders from the root down to here, to notice links that lead back.
  void scan(const std::string& folder, std::vector<std::pair<dev_t, ino_t>>& way) {
    const std::string here = options_.root + "/" + folder;
    struct Found {
      std::string name;
      bool is_folder;
    };
    std::vector<Found> found;
    DIR* dir = opendir(here.c_str());
    if (dir == nullptr) return add_closed(folder);
    while (const dirent* e = (errno = 0, readdir(dir))) {
      if (std::strcmp(e->d_name, ".") == 0 || std::strcmp(e->d_name, "..") == 0) continue;
      bool is_folder = e->d_type == DT_DIR;
      if (e->d_type == DT_UNKNOWN || (e->d_type == DT_LNK && options_.follow_links)) {
        struct stat st {};
        const int flags = options_.follow_links ? 0 : AT_SYMLINK_NOFOLLOW;
        is_folder = fstatat(dirfd(dir), e->d_name, &st, flags) == 0 && S_ISDIR(st.st_mode);
      }
      if (is_folder || wanted(folder + e->d_name)) found.push_back({e->d_name, is_folder});
    }
    const int error = errno;
    closedir(dir);
    if (error != 0)
      throw RunError(fmt::format("{}: cannot be listed: {}", here, std::strerror(error)));
    std::sort(found.begin(), found.end(),
              [](const Found& a, const Found& b) { return a.name < b.name; });
    for (const Found& f : found) {
      const std::string path = folder + f.name;
      if (!f.is_folder || wanted(path)) {
        manifest_.add(manifest_.add_folder(folder), f.name);
        label(path);
      }
      if (!f.is_folder) continue;
      struct stat st {};
      if (stat((here + f.name).c_str(), &st) != 0) {
        add_closed(path + "/");
        continue;
      }
      const std::pair<dev_t, ino_t> id{st.st_dev, st.st_ino};
      if (std::find(way.begin(), way.end(), id) != way.end()) continue;
      way.push_back(id);
      scan(path + "/", way);
      way.pop_back();
    }
  }

  // A folder that cannot be entered is listed as it stands, once: reading it fails and says why.
  // Where the user leaves it out, nothing is missing.
  void add_closed(const std::string& folder) {
    const std::string name = folder.substr(0, folder.size() - 1);
    if (wanted(name) || any_matches(exclude_, name)) return;
    manifest_.add(manifest_.add_folder(""), folder);
    label(folder);
  }

  void label(std::string_view path) {
    if (path.starts_with(options_.root + "/")) path.remove_prefix(options_.root.size() + 1);
    const std::size_t last = path.find_last_of('/', path.size() - (path.ends_with('/') ? 2 : 1));
    if (last == path.npos) return;
    if (options_.labels == Labels::top_dir && !path.starts_with('/')) {
      manifest_.set_label(path.substr(0, path.find('/')));
    } else if (options_.labels == Labels::parent_dir) {
      const std::string_view folder = path.substr(0, last);
      const std::size_t slash = folder.rfind('/');
      manifest_.set_label(slash == folder.npos ? folder : folder.substr(slash + 1));
    }
  }

  // As it is listed: without what `find .` puts in front.
  static std::string_view plain(std::string_view path) {
    while (path.starts_with("./")) path.remove_prefix(2);
    return path;
  }

  static bool is_csv(const std::string& path) {
    return path.ends_with(".csv") || path.ends_with(".CSV");
  }

  void read_manifest() {
    const auto take = [this](std::string_view path) {
      path = plain(path);
      const std::size_t slash = path.rfind('/');
      const std::string_view folder = slash == path.npos ? "" : path.substr(0, slash + 1);
      manifest_.add(manifest_.add_folder(folder), path.substr(folder.size()));
    };
    if (is_csv(options_.manifest)) {
      CsvReader csv(options_.manifest, {"path"});
      const int label_column = csv.column("label"), split_column = csv.column("split");
      if (options_.labels == Labels::manifest && label_column < 0)
        throw RunError(options_.manifest +
                       ": has no column 'label', but labels: manifest asks for it");
      while (csv.next()) {
        const std::string& path = csv.cell("path");
        if (path.empty())
          throw RunError(fmt::format("{}:{}: the path is empty", options_.manifest, csv.line()));
        take(path);
        if (options_.labels == Labels::manifest && !csv.cell(label_column).empty())
          manifest_.set_label(csv.cell(label_column));
        else
          label(plain(path));
        if (split_column < 0 || csv.cell(split_column).empty()) continue;
        if (!manifest_.set_split(csv.cell(split_column)))
          throw RunError(fmt::format("{}:{}: more than {} splits", options_.manifest, csv.line(),
                                     Manifest::kMostSplits));
      }
    } else {
      std::ifstream in(options_.manifest);
      if (!in)
        throw RunError(fmt::format("{}: cannot read the manifest: {}", options_.manifest,
                                   std::strerror(errno)));
      bool is_first = true;
      for (std::string line; std::getline(in, line);) {
        if (line.ends_with('\r')) line.pop_back();
        if (is_first && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
        is_first = false;
        if (line.empty() || line.starts_with('#')) continue;
        take(line);
        label(plain(line));
      }
      if (in.bad())
        throw RunError(fmt::format("{}: cannot read the manifest: {}", options_.manifest,
                                   std::strerror(errno)));
    }
    if (manifest_.size() == 0) throw RunError(options_.manifest + ": the manifest names no file");
  }

  void read_labels(RunContext& run) {
    CsvReader csv(options_.label_file, {"path", "label"});
    std::unordered_map<std::string, std::string> of;
    while (csv.next())
      if (!csv.cell("label").empty()) of[std::string(plain(csv.cell("path")))] = csv.cell("label");
    std::size_t without = 0;
    Manifest labelled(manifest_.root());
    for (std::size_t i = 0; i < manifest_.size(); ++i) {
      const std::string path = manifest_.relative(i);
      const std::size_t name = path.rfind('/') + 1;  // 0 without a slash
      labelled.add(labelled.add_folder(path.substr(0, name)), path.substr(name));
      if (const auto it = of.find(path); it != of.end())
        labelled.set_label(it->second);
      else
        ++without;
      if (manifest_.split(i) >= 0)
        (void)labelled.set_split(
            manifest_.split_names()[static_cast<std::size_t>(manifest_.split(i))]);
    }
    manifest_ = std::move(labelled);
    if (without > 0)
      run.warn(fmt::format("{}: {} of {} files have no label there", options_.label_file, without,
                           manifest_.size()));
  }

  FileListOptions options_;
  std::shared_ptr<Feed> feed_;
  std::vector<Glob> include_, exclude_;
  Manifest manifest_;
};

const RegisterStage<FileList, FileListOptions> registered{
    "file_list", "Lists the files of a corpus, with their labels, in path order."};

}  // namespace
}  // namespace melflow
