#include "stages/files/publication.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "stages/files/undo_file.h"
#include "tests/stage/failing_calls.h"
#include "tests/support/commit_file.h"
#include "tests/support/complaint.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::publication_test {
namespace {

constexpr int kMostCalls = 100;

std::set<std::string> names_in(const TempFolder& folder) {
  std::set<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    out.insert(entry.path().filename());
  return out;
}

std::string content(const std::string& path) {
  return std::filesystem::exists(path) ? read_bytes(path) : "";
}

// Appends if it extends an existing file.
class Written : public PartFile {
 public:
  Written(const std::string& target, Existing existing) : PartFile(target, "test", existing) {
    if (extends()) save(3, 3);
    put("new", 3, 0);
    cut(3);
  }
};

// An output of several files.
struct Case {
  const char* what;
  std::vector<std::string> files;
  std::vector<Existing> existing;
  bool sync;
};

const Case kCases[] = {
    {"new files", {"a", "b", "c"}, {Existing::refuse, Existing::refuse, Existing::refuse}, false},
    {"files that are replaced",
     {"a", "b", "c"},
     {Existing::replace, Existing::replace, Existing::replace},
     false},
    {"likewise, to disk", {"a", "b"}, {Existing::replace, Existing::replace}, true},
    {"one that is replaced", {"a"}, {Existing::replace}, false},
    {"one that is replaced, to disk", {"a"}, {Existing::replace}, true},
    {"one that is new, to disk", {"a"}, {Existing::refuse}, true},
    {"an update: one is extended, one replaced, one new",
     {"a", "b", "c"},
     {Existing::extend, Existing::replace, Existing::refuse},
     true},
};

class Output {
 public:
  explicit Output(const Case& c) : c_(c) {
    for (std::size_t i = 0; i < c.files.size(); ++i)
      if (c.existing[i] != Existing::refuse) folder_.write(c.files[i], "old");
    before_ = generation();
  }
  [[nodiscard]] const TempFolder& folder() const { return folder_; }
  [[nodiscard]] std::string path() const { return folder_ / "a"; }

  void publish() const {
    std::vector<std::unique_ptr<Written>> files;
    std::vector<PartFile*> parts;
    for (std::size_t i = 0; i < c_.files.size(); ++i) {
      files.push_back(std::make_unique<Written>(folder_ / c_.files[i], c_.existing[i]));
      parts.push_back(files.back().get());
    }
    Publication::publish(path(), parts, c_.sync);
  }
  // Returns what the files contain: "old", "new", or how they are mixed.
  [[nodiscard]] std::string generation() const {
    std::string all;
    for (const std::string& f : c_.files) all += content(folder_ / f) + ",";
    return all;
  }
  [[nodiscard]] bool is_old() const { return generation() == before_; }
  [[nodiscard]] bool is_new() const {
    std::string all;
    for (std::size_t i = 0; i < c_.files.size(); ++i) all += "new,";
    return generation() == all;
  }
  // Whether the files are of one run only, and the last one exists only with all others of its run.
  [[nodiscard]] bool is_one_run() const {
    const std::string now = generation();
    const bool has_new = now.find("new") != now.npos, has_old = now.find("old") != now.npos;
    if (has_new && has_old) return false;
    return content(folder_ / c_.files.back()).empty() || is_new() || is_old();
  }
  [[nodiscard]] bool has_parts() const {
    return std::ranges::all_of(c_.files, [this](const std::string& f) {
      return content(folder_ / (f + ".part")) == "new";
    });
  }
  [[nodiscard]] bool is_tidy() const {
    std::set<std::string> expected;
    for (const std::string& f : c_.files)
      if (std::filesystem::exists(folder_ / f)) expected.insert(f);
    return names_in(folder_) == expected;
  }
  // Returns the names that a run may use which makes all of the files.
  [[nodiscard]] std::vector<OutputName> names() const {
    std::vector<OutputName> out;
    for (const std::string& f : c_.files) out.push_back({folder_ / f});
    return out;
  }
  // Does what the next run of this output does first.
  void recover() const {
    Publication::recover(path(), names());
    for (const std::string& f : c_.files) PartFile::recover(folder_ / f);
  }

 private:
  const Case& c_;
  TempFolder folder_;
  std::string before_;
};

// Saves a folder's contents, to be restored; hard links are restored as such. Ending a program in a
// certain call again and again is slow: a sanitizer's memory is copied each time.
class Kept {
 public:
  explicit Kept(const TempFolder& folder) : folder_(folder) {
    for (const std::string& name : names_in(folder)) {
      const std::string path = folder / name;
      const auto same = std::find_if(files_.begin(), files_.end(), [&](const File& f) {
        return std::filesystem::equivalent(path, folder / f.names.front());
      });
      if (same == files_.end())
        files_.push_back({{name}, read_bytes(path), std::filesystem::status(path).permissions()});
      else
        same->names.push_back(name);
    }
  }
  void put_back() const {
    for (const std::string& name : names_in(folder_)) std::filesystem::remove(folder_ / name);
    for (const File& f : files_) {
      const std::string first = folder_.write(f.names.front(), f.bytes);
      std::filesystem::permissions(first, f.permissions);
      for (std::size_t i = 1; i < f.names.size(); ++i)
        std::filesystem::create_hard_link(first, folder_ / f.names[i]);
    }
  }

 private:
  struct File {
    std::vector<std::string> names;
    std::string bytes;
    std::filesystem::perms permissions;
  };
  const TempFolder& folder_;
  std::vector<File> files_;
};

bool is_update(const Case& c) { return c.existing.front() == Existing::extend; }

}  // namespace

TEST_CASE("publication: whatever call fails, all files have their names or none has") {
  for (const Case& c : kCases) {
    CAPTURE(std::string(c.what));
    int failed = 0;
    for (int n = 0; n < kMostCalls; ++n) {
      CAPTURE(n);
      const Output out(c);
      bool is_past = false;
      const std::string message = complaint([&] {
        const FailingCall failing(n);
        struct Look {
          const FailingCall& failing;
          bool& is_past;
          ~Look() { is_past = failing.is_past(); }
        } const look{failing, is_past};
        out.publish();
      });
      CAPTURE(message);
      CAPTURE(out.generation());
      if (message.empty()) {
        CHECK(out.is_new());
        out.recover();  // for the file that could not be removed
        CHECK(out.is_tidy());
        if (n > 0 && !is_past) break;
        continue;
      }
      ++failed;
      CHECK(is_past);
      CHECK(message.find("Input/output error") != message.npos);
      CHECK(out.is_old());
      // If the message says that the files are complete, they are, and the next run publishes them.
      if (message.find("the complete file") == message.npos) continue;
      CHECK(out.has_parts());
      out.recover();
      if (out.is_old()) continue;  // .commit itself could not be written
      CHECK(out.is_new());
      CHECK(out.is_tidy());
    }
    CHECK(failed > 3);
  }
}

TEST_CASE("publication: a program that is interrupted in any call leaves files of one run") {
  for (const Case& c : kCases) {
    CAPTURE(std::string(c.what));
    int ended = 0, carried_out = 0;
    for (int n = 1; n < kMostCalls; ++n) {
      CAPTURE(n);
      const Output out(c);
      if (!ends_in_call(n, [&] { out.publish(); })) break;
      ++ended;
      CAPTURE(out.generation());
      if (!is_update(c)) CHECK(out.is_one_run());
      out.recover();
      CHECK((out.is_old() || out.is_new()));
      if (!out.is_new()) continue;
      ++carried_out;
      CHECK(out.is_tidy());
    }
    CHECK(ended > 5);
    CHECK(carried_out > 0);
  }
}

TEST_CASE("publication: nor which of several outputs the next run asks for first") {
  const Case c{"two updates",
               {"a", "b", "c"},
               {Existing::extend, Existing::extend, Existing::replace},
               true};
  int carried_out = 0;
  for (int n = 1; n < kMostCalls; ++n) {
    CAPTURE(n);
    const Output out(c);
    if (!ends_in_call(n, [&] { out.publish(); })) break;
    // A run of that output alone leaves the files to a run of all outputs.
    const std::string before = out.generation();
    if (complaint([&] { PartFile::recover(out.folder() / "b"); }).find("a.commit") !=
        std::string::npos)
      CHECK(out.generation() == before);
    out.recover();
    CHECK((out.is_old() || out.is_new()));
    if (!out.is_new()) continue;
    ++carried_out;
    CHECK(out.is_tidy());
  }
  CHECK(carried_out > 3);
}

TEST_CASE("publication: nor does it matter where the next run is ended, or fails") {
  for (const Case& c : {kCases[1], kCases[6]}) {
    CAPTURE(std::string(c.what));
    for (int n = 1; n < kMostCalls; ++n) {
      const Output out(c);
      if (!ends_in_call(n, [&] { out.publish(); })) break;
      const Kept ended(out.folder());
      for (const bool is_end : {true, false}) {
        for (int m = 1; m < kMostCalls; ++m) {
          ended.put_back();
          CAPTURE(n);
          CAPTURE(m);
          bool is_past = true;
          if (is_end) {
            is_past = ends_in_call(m, [&] { out.recover(); });
          } else {
            const FailingCall failing(m);
            complaint([&] { out.recover(); });
            is_past = failing.is_past();
          }
          out.recover();
          CHECK((out.is_old() || out.is_new()));
          if (!is_past) break;
        }
      }
    }
  }
}

TEST_CASE("publication: what is in the way is left alone, and a later run has the files") {
  for (const bool replaces : {false, true}) {
    for (const char* in_the_way : {"a", "b", "c"}) {
      CAPTURE(replaces);
      CAPTURE(std::string(in_the_way));
      const Output out(kCases[replaces ? 1 : 0]);
      const TempFolder& folder = out.folder();
      std::vector<std::unique_ptr<Written>> files;
      std::vector<PartFile*> parts;
      for (const char* f : {"a", "b", "c"}) {
        files.push_back(
            std::make_unique<Written>(folder / f, replaces ? Existing::replace : Existing::refuse));
        parts.push_back(files.back().get());
      }
      // The obstacle appears during the run; of files to be replaced, only a folder is one.
      std::filesystem::remove(folder / in_the_way);
      if (replaces)
        folder.folder(in_the_way);
      else
        folder.write(in_the_way, "precious");
      const std::string left = "; the complete files are " + (folder / "a.part") + ", " +
                               (folder / "b.part") + ", " + (folder / "c.part");
      const std::string what = (folder / in_the_way) +
                               (replaces ? ": cannot be renamed to " + (folder / in_the_way) +
                                               ".replaced: Is a directory"
                                         : std::string(": cannot be given its name: File exists"));
      CHECK(complaint([&] { Publication::publish(out.path(), parts, false); }) == what + left);
      files.clear();
      CHECK(out.has_parts());
      CHECK(Publication::waiting(folder / "b") == folder / "a.commit");
      const std::string message = complaint([&] { Publication::recover(out.path(), out.names()); });
      CHECK(message.starts_with(what));
      CHECK(message.ends_with("Move the conflicting files and run again, or remove " +
                              (folder / "a.commit") + " to give them up"));
      CHECK(out.has_parts());
      if (!replaces) CHECK(read_bytes(folder / in_the_way) == "precious");
      std::filesystem::remove(folder / in_the_way);
      CHECK(Publication::recover(out.path(), out.names()));
      CHECK(out.is_new());
      CHECK(out.is_tidy());
      CHECK_FALSE(Publication::recover(out.path(), out.names()));
    }
  }
}

TEST_CASE("publication: another run's is not carried out while that is at it") {
  for (int n = 1;; ++n) {
    const Output out(kCases[0]);
    REQUIRE(ends_in_call(n, [&] { out.publish(); }));
    const std::string commit = out.folder() / "a.commit";
    if (!std::filesystem::exists(commit)) continue;
    {
      const UniqueFd lock = open_locked(commit);
      CHECK(complaint([&] { Publication::recover(out.path(), out.names()); }) ==
            commit + ": another run is writing it");
    }
    CHECK(Publication::recover(out.path(), out.names()));
    CHECK(out.is_new());
    break;
  }
}

TEST_CASE("publication: a .commit that is damaged, or nobody's") {
  const Output out(kCases[0]);
  const std::string commit = out.folder().write("a.commit", "git commit -m precious");
  CHECK(complaint([&] {
          Publication::recover(out.path(), out.names());
        }).starts_with(commit + ": this exists already and is not melflow's"));
  CHECK(read_bytes(commit) == "git commit -m precious");
  out.folder().write("a.commit", "melflow names 1\n12345678abc");
  CHECK(complaint([&] {
          Publication::recover(out.path(), out.names());
        }).starts_with(commit + ": this file is damaged"));
}

TEST_CASE("publication: a .commit counts only for files that this run makes, too") {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "in");
  const std::string target = folder / "in/out", commit = target + ".commit";
  const std::vector<OutputName> names{{target}, {folder / "in/out.", ".h5"}};
  struct Row {
    std::string name;
    bool is_known;
  };
  const Row rows[] = {
      {"out", true},
      {target, true},
      {folder / "in/../in/out", true},
      {"out.train.h5", true},
      {"precious", false},
      {"../precious", false},
      {"../in/../precious", false},
      {folder / "precious", false},
      {"out.sub/x.h5", false},
      {"out.h5", false},  // not the name of a split
      {"", false},
      {"out.part", false},
  };
  for (const Row& row : rows) {
    for (const char how : {'0', '1', '2', '3'}) {
      CAPTURE(row.name);
      CAPTURE(how);
      std::filesystem::remove_all(folder / "in");
      std::filesystem::create_directories(folder / "in/out.sub");
      const std::filesystem::path in = folder / "in", file = in / row.name;
      write_commit(commit, how, {row.name});
      folder.write("precious", "precious");
      folder.write("precious.part", "new");
      if (!row.name.empty()) write_bytes(file.string() + ".part", "new");
      const std::string message = complaint([&] { Publication::recover(target, names); });
      if (row.is_known && how != '3') {
        CHECK(message == "");
        CHECK(content(file) == "new");
        continue;
      }
      CHECK(message.starts_with(commit + ": "));
      CHECK(message.find(row.name.empty() || how == '3'
                             ? "this file is damaged"
                             : "no output of this pipeline") != message.npos);
      CHECK(content(folder / "precious") == "precious");
      CHECK(content(folder / "precious.part") == "new");
    }
  }
}

TEST_CASE("publication: nothing is done where nothing may be changed") {
  const Output out(kCases[0]);
  write_commit(out.path() + ".commit", '0', {"a"});
  out.folder().write("a.part", "new");
  CHECK(complaint([&] {
          Publication::recover(out.path(), out.names(), /*may_change=*/false);
        }).starts_with(out.path() + ".commit: an interrupted run left this"));
  CHECK(names_in(out.folder()) == std::set<std::string>{"a.commit", "a.part"});
}

TEST_CASE("publication: a file that is called .replaced is not removed, whatever happens") {
  for (const Existing existing : {Existing::refuse, Existing::replace}) {
    const TempFolder folder;
    const std::string target = folder / "out";
    std::string message;
    {
      PartFile file(target, "test", existing);
      folder.write("out.replaced", "precious");  // appears during the run
      PartFile* const parts[] = {&file};
      message = complaint([&] { Publication::publish(target, parts, true); });
    }
    CHECK(read_bytes(folder / "out.replaced") == "precious");
    if (existing == Existing::refuse) {
      CHECK(message == "");
      continue;
    }
    CHECK(message == target + ": cannot be renamed to " + target +
                         ".replaced, which exists; the complete file is " + target + ".part");
    CHECK(std::filesystem::exists(target + ".part"));
    // At the start of a run, an existing .replaced file is in the way.
    CHECK(complaint([&] {
            PartFile(target, "test", existing);
          }).starts_with(target + ".replaced: this exists already"));
  }
}

}  // namespace melflow::test::publication_test
