#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "stages/containers/container.h"
#include "stages/python/python_functions.h"
#include "tests/stage/folder_faults.h"
#include "tests/stage/listed_files.h"
#include "tests/support/printing.h"
#include "tests/support/skip.h"

namespace melflow::test::file_list_test {
namespace {

using Paths = std::vector<std::string>;

// Returns "path=label/split" for every file.
Paths labelled(List& list) {
  Paths out;
  const Manifest& m = list.manifest();
  for (std::size_t i = 0; i < m.size(); ++i) {
    std::string text = m.relative(i) + "=";
    if (m.label(i) >= 0) text += m.label_names().at(static_cast<std::size_t>(m.label(i)));
    if (m.split(i) >= 0) text += "/" + list.split_of(i);
    out.push_back(text);
  }
  return out;
}

// Compares component by component, as bytes: the definition, independent of the code under test.
bool before(const std::string& a, const std::string& b) {
  const auto components = [](const std::string& path) {
    std::vector<std::vector<unsigned char>> out(1);
    for (const char c : path) {
      if (c == '/')
        out.emplace_back();
      else
        out.back().push_back(static_cast<unsigned char>(c));
    }
    return out;
  };
  return components(a) < components(b);
}

// Changes the working folder until the end of the scope.
class InFolder {
 public:
  explicit InFolder(const std::string& folder) { std::filesystem::current_path(folder); }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;
  ~InFolder() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

}  // namespace

TEST_CASE("file_list: limit takes the first files, and says so where there are more") {
  const TempFolder folder;
  for (const char* name : {"b/2.wav", "a/1.wav", "c.wav", "b/1.wav", "b/notes.txt"})
    folder.write(name, "x");
  const std::string root = folder.path();
  for (const auto& [limit, expected] :
       {std::pair(1, Paths{"a/1.wav"}), std::pair(3, Paths{"a/1.wav", "b/1.wav", "b/2.wav"}),
        std::pair(4, Paths{"a/1.wav", "b/1.wav", "b/2.wav", "c.wav"}),
        std::pair(9, Paths{"a/1.wav", "b/1.wav", "b/2.wav", "c.wav"})}) {
    CAPTURE(limit);
    List list(fmt::format("{{root: '{}', limit: {}}}", root, limit));
    Paths found;
    for (std::size_t i = 0; i < list.manifest().size(); ++i)
      found.push_back(list.manifest().relative(i));
    CHECK(found == expected);
    const std::string told =
        limit == 1
            ? ": only the first file is taken (limit); there are more"
            : fmt::format(": only the first {} files are taken (limit); there are more", limit);
    CHECK(list.warnings() == (limit < 4 ? Paths{root + told} : Paths{}));
  }
  folder.write("l.txt", "c.wav\n# one more\na/1.wav\nb/1.wav\n");
  folder.write("l.csv", "path,label\nc.wav,x\na/1.wav,y\nb/1.wav,z\n");
  for (const char* name : {"l.txt", "l.csv"}) {
    CAPTURE(name);
    const std::string manifest = std::string("manifest: '") + (folder / name) + "'" +
                                 (std::string(name) == "l.csv" ? ", labels: manifest" : "");
    List two(fmt::format("{{root: '{}', {}, limit: 2}}", root, manifest));
    REQUIRE(two.manifest().size() == 2);
    CHECK(two.manifest().relative(0) == "c.wav");
    CHECK(two.manifest().relative(1) == "a/1.wav");
    CHECK(two.warnings() ==
          Paths{(folder / name) + ": only the first 2 files are taken (limit); there are more"});
    List all(fmt::format("{{root: '{}', {}, limit: 3}}", root, manifest));
    CHECK(all.manifest().size() == 3);
    CHECK(all.warnings().empty());
  }
}

TEST_CASE("file list: files come in the order of their paths, compared by component as bytes") {
  const TempFolder folder;
  Paths expected{"a/x.wav",     "a.b/x.wav",   "a.wav",       "a/y/1.wav", "a/y.wav",
                 "a/y.a/2.wav", "b.wav",       "B.wav",       "_.wav",     "\xC3\xA9/x.wav",
                 "a b/x.wav",   "a-b/x.wav",   "a/y0.wav",    "10.wav",    "9.wav",
                 "a/\xFF.wav",  "z/z/z/z.wav", "z/z/z.z.wav", "z/z.wav"};
  for (const std::string& p : expected) folder.write(p, "x");
  std::sort(expected.begin(), expected.end(), before);
  List list(root(folder));
  CHECK(list.paths() == expected);
  // "a/x" comes before "a.b/x", unlike in an order by the bytes of whole paths.
  const auto place = [&](const std::string& path) {
    return std::find(expected.begin(), expected.end(), path) - expected.begin();
  };
  CHECK(place("a/x.wav") < place("a.b/x.wav"));
  CHECK(std::string("a/x.wav") > std::string("a.b/x.wav"));
}

TEST_CASE("file list: include and exclude") {
  const TempFolder folder;
  for (const char* p : {"a.wav", "b.WAV", "c.flac", "d.txt", "e/f.wav", "e/g/h.wav", "i/j.wav",
                        "i/.k.wav", "test/l.wav", "noext", "m.Mp3"})
    folder.write(p, "x");
  struct Row {
    std::string options;
    Paths paths;
  };
  const Row rows[] = {
      {"", {"a.wav", "b.WAV", "c.flac", "e/f.wav", "e/g/h.wav", "i/j.wav", "m.Mp3", "test/l.wav"}},
      {"include: ['*.wav']", {"a.wav", "b.WAV", "e/f.wav", "e/g/h.wav", "i/j.wav", "test/l.wav"}},
      {"include: '*.wav', exclude: 'test/**'",
       {"a.wav", "b.WAV", "e/f.wav", "e/g/h.wav", "i/j.wav"}},
      {"include: ['e/*.wav', 'c.*']", {"c.flac", "e/f.wav"}},
      {"include: 'e/**.wav'", {"e/f.wav"}},
      {"include: 'e/**/*.wav'", {"e/f.wav", "e/g/h.wav"}},
      // A pattern that matches every name applies to files.
      {"include: '**', exclude: ['*.wav', '*.flac']", {"d.txt", "m.Mp3", "noext"}},
      {"include: '*', exclude: ['*.wav', '*.flac']", {"d.txt", "m.Mp3", "noext"}},
      {"include: 'e/**'", {"e/f.wav", "e/g/h.wav"}},
      {"include: 'e/**/*'", {"e/f.wav", "e/g/h.wav"}},
      {"include: 'e/*'", {"e/f.wav"}},
      {"include: ['E/G/**', 'test/**']", {"e/g/h.wav", "test/l.wav"}},
      // Other folders are listed when a pattern matches them, to be reported as folders.
      {"include: ['e*', 'noext']", {"e", "noext"}},
      {"include: ['i/*', 'i/.*'], exclude: '.*'", {"i/j.wav"}},
      {"include: 'noext'", {"noext"}},
      // A folder is excluded with all its contents.
      {"exclude: [e, i]", {"a.wav", "b.WAV", "c.flac", "m.Mp3", "test/l.wav"}},
      {"exclude: [./e/g, 'tes?/']", {"a.wav", "b.WAV", "c.flac", "e/f.wav", "i/j.wav", "m.Mp3"}},
      {"exclude: ['e/*', test]", {"a.wav", "b.WAV", "c.flac", "e/g/h.wav", "i/j.wav", "m.Mp3"}},
      // Brackets in patterns are ordinary characters.
      {"include: '*.wav', exclude: ['[ab].wav', 'test/[!x]*', 'e/**']",
       {"a.wav", "b.WAV", "i/j.wav", "test/l.wav"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.options);
    CHECK(List(root(folder, row.options)).paths() == row.paths);
  }
}

TEST_CASE("file list: whatever matches is listed, so that the reader can name what it is") {
  const TempFolder folder;
  folder.write("a.wav", "x");
  folder.write("dir.wav/b.wav", "x");
  REQUIRE(mkfifo((folder / "fifo.wav").c_str(), 0644) == 0);
  REQUIRE(symlink("nowhere", (folder / "dangling.wav").c_str()) == 0);
  REQUIRE(symlink("a.wav", (folder / "link.wav").c_str()) == 0);
  REQUIRE(symlink("dir.wav", (folder / "to_dir.wav").c_str()) == 0);
  REQUIRE(symlink("dir.wav", (folder / "to_dir").c_str()) == 0);
  CHECK(List(root(folder)).paths() == Paths{"a.wav", "dangling.wav", "dir.wav", "dir.wav/b.wav",
                                            "fifo.wav", "link.wav", "to_dir.wav"});
  CHECK(List(root(folder, "follow_links: true")).paths() ==
        Paths{"a.wav", "dangling.wav", "dir.wav", "dir.wav/b.wav", "fifo.wav", "link.wav",
              "to_dir/b.wav", "to_dir.wav", "to_dir.wav/b.wav"});
}

TEST_CASE("file list: a size is that of a file and 0 for anything else") {
  const TempFolder folder;
  folder.write("a.wav", std::string(1234, 'x'));
  REQUIRE(symlink("a.wav", (folder / "b.wav").c_str()) == 0);
  folder.folder("c.wav");
  REQUIRE(symlink("nowhere", (folder / "d.wav").c_str()) == 0);
  List list(root(folder));
  const std::size_t sizes[] = {1234, 1234, 0, 0};
  REQUIRE(list.paths().size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const SourceItem item = list.bench().source().item(i);
    const auto& file = *static_cast<const FileRef*>(item.payload.get());
    CHECK(file.path == folder / list.paths()[i]);
    CHECK(file.size == sizes[i]);
    CHECK(item.info.bytes == sizes[i]);
    CHECK(item.info.name == file.path);
  }
}

TEST_CASE("file list: a pattern of exclude that matches nothing is named") {
  const TempFolder folder;
  for (const char* p : {"a.wav", "b/c.wav", "b/d.wav"}) folder.write(p, "x");
  CHECK(List(root(folder, "exclude: ['b/*', d.wav]")).warnings().empty());
  CHECK(List(root(folder, "exclude: [c.wav, bb, 'x/b/**']")).warnings() ==
        Paths{"exclude: bb, x/b/** match nothing; patterns are compared with the path below "
              "root"});
}

TEST_CASE("file_list: a line of a list that may be a path and is read as a comment is told") {
  TempFolder folder;
  for (const char* name : {"1.wav", "#2.wav"}) folder.write(name, "");
  folder.write("plain.txt", "# two recordings\n##\n#\n1.wav\n./#2.wav\n");
  folder.write("told.txt", "# two recordings\n1.wav\n#2.wav\n#3.wav\n");
  const auto list = [&](const char* name) {
    return List("{root: '" + folder.path() + "', manifest: '" + (folder / name) + "'}");
  };
  CHECK(list("plain.txt").warnings().empty());
  CHECK(list("told.txt").warnings() ==
        std::vector<std::string>{(folder / "told.txt") +
                                 ": 2 lines begin with # and are read as comments, line 3 first; a "
                                 "file of such a name is ./#..."});
}

TEST_CASE("file list: hidden files and folders are taken only by patterns that name them") {
  const TempFolder folder;
  for (const char* p : {"._a.wav", ".git/b.wav", "a.wav", "x/.c/d.wav", "x/e.wav"})
    folder.write(p, "x");
  struct Row {
    const char* include;
    Paths paths;
  };
  const Row rows[] = {
      {"'**/*.wav'", {"a.wav", "x/e.wav"}},
      {"'**'", {"a.wav", "x/e.wav"}},
      {"['*.wav', '.*']", {"._a.wav", "a.wav", "x/e.wav"}},
      {"'.git/**'", {".git/b.wav"}},
      {"'**/.c/*.wav'", {"x/.c/d.wav"}},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.include));
    CHECK(List(root(folder, std::string("include: ") + row.include)).paths() == row.paths);
  }
}

TEST_CASE("file list: links that lead in a circle end") {
  const TempFolder folder;
  folder.write("a/b/x.wav", "x");
  REQUIRE(symlink("..", (folder / "a/b/up").c_str()) == 0);
  REQUIRE(symlink(".", (folder / "a/here").c_str()) == 0);
  REQUIRE(symlink(folder.path().c_str(), (folder / "a/b/root").c_str()) == 0);
  REQUIRE(symlink("loop", (folder / "loop").c_str()) == 0);
  CHECK(List(root(folder)).paths() == Paths{"a/b/x.wav"});
  CHECK(List(root(folder, "follow_links: true")).paths() == Paths{"a/b/x.wav"});
  // Two links to one folder are no loop: both are followed.
  REQUIRE(symlink("b", (folder / "a/c").c_str()) == 0);
  CHECK(List(root(folder, "follow_links: true")).paths() == Paths{"a/b/x.wav", "a/c/x.wav"});
}

TEST_CASE("file list: labels from folders") {
  const TempFolder folder;
  for (const char* p : {"top.wav", "en/a.wav", "en/b/c.wav", "fr/b/d/e.wav"}) folder.write(p, "x");
  struct Row {
    std::string labels;
    Paths paths;
    Paths names;
  };
  const Row rows[] = {
      {"none", {"en/a.wav=", "en/b/c.wav=", "fr/b/d/e.wav=", "top.wav="}, {}},
      {"parent_dir",
       {"en/a.wav=en", "en/b/c.wav=b", "fr/b/d/e.wav=d", "top.wav="},
       {"b", "d", "en"}},
      {"top_dir", {"en/a.wav=en", "en/b/c.wav=en", "fr/b/d/e.wav=fr", "top.wav="}, {"en", "fr"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.labels);
    List list(root(folder, "labels: " + row.labels));
    CHECK(labelled(list) == row.paths);
    CHECK(list.manifest().label_names() == row.names);
    // The same for a manifest, whose paths may be written as other programs write them.
    folder.write("list.txt", "top.wav\n./en/a.wav\n" + (folder / "fr/b/d/e.wav") + "\n");
    List listed(
        root(folder, "labels: " + row.labels + ", manifest: '" + (folder / "list.txt") + "'"));
    const std::string absolute = (folder / "fr/b/d/e.wav") + "=";
    CHECK(labelled(listed) == Paths{"top.wav=", row.labels == "none" ? "en/a.wav=" : "en/a.wav=en",
                                    absolute + (row.labels == "none"         ? ""
                                                : row.labels == "parent_dir" ? "d"
                                                                             : "fr")});
  }
}

TEST_CASE("file list: labels from folders where there is none get a warning") {
  const TempFolder folder;
  folder.write("a.wav", "x");
  for (const std::string labels : {"parent_dir", "top_dir"}) {
    List flat(root(folder, "labels: " + labels));
    static_cast<void>(flat.manifest());
    CHECK(flat.bench().run_warnings() ==
          Paths{"labels: no file is in a folder below " + folder.path() +
                ", so that none has a label; remove labels, or take the root above"});
  }
}

TEST_CASE("file list: labels from an entry of columns, or from what an expression finds") {
  const TempFolder folder;
  for (const char* p : {"ann/yes_1.wav", "bob/no_2.wav", "bob/silence.wav"}) folder.write(p, "x");
  List by_column(root(folder, "labels: speaker, columns: {speaker: top_dir}"));
  CHECK(labelled(by_column) ==
        Paths{"ann/yes_1.wav=ann", "bob/no_2.wav=bob", "bob/silence.wav=bob"});
  List by_path(root(folder, "labels: '([a-z]+)_'"));
  CHECK(labelled(by_path) == Paths{"ann/yes_1.wav=yes", "bob/no_2.wav=no", "bob/silence.wav="});
  CHECK(by_path.bench().run_warnings() ==
        Paths{"labels: ([a-z]+)_ finds no text in 1 of 3 paths, such as bob/silence.wav; "
              "it is empty there"});
  // A column from a table.
  const std::string table =
      folder.write("who.csv", "path,speaker_id\nann/yes_1.wav,7\nbob/no_2.wav,8\n");
  List by_table(
      root(folder, "labels: speaker, columns: {speaker: speaker_id}, label_file: '" + table + "'"));
  CHECK(labelled(by_table) == Paths{"ann/yes_1.wav=7", "bob/no_2.wav=8", "bob/silence.wav="});
}

TEST_CASE("file list: labels from a table, and files without one are counted in a warning") {
  const TempFolder folder;
  for (const char* p : {"a.wav", "x/b.wav", "x/c.wav"}) folder.write(p, "x");
  const std::string table = folder.write(
      "labels.csv", "label,path,more\ncat,./x/b.wav,1\n\"a dog, big\",a.wav,2\nunused,z.wav,3\n");
  List list(root(folder, "labels: file, label_file: '" + table + "'"));
  CHECK(labelled(list) == Paths{"a.wav=a dog, big", "x/b.wav=cat", "x/c.wav="});
  CHECK(list.manifest().label_names() == Paths{"a dog, big", "cat"});
  CHECK(list.bench().run_warnings() ==
        Paths{table + ": 1 of 3 files have no label there (x/c.wav)"});
  // Together with a manifest, whose splits stay.
  const std::string manifest =
      folder.write("list.csv", "path,split\nx/c.wav,test\na.wav,train\nx/b.wav,\n");
  List both(
      root(folder, "labels: file, label_file: '" + table + "', manifest: '" + manifest + "'"));
  CHECK(labelled(both) == Paths{"a.wav=a dog, big/train", "x/c.wav=/test", "x/b.wav=cat"});
  // An empty cell means no label.
  folder.write("labels.csv", "path,label\na.wav,\nx/b.wav,cat\nx/c.wav,cat\n");
  List empty(root(folder, "labels: file, label_file: '" + table + "'"));
  CHECK(labelled(empty) == Paths{"a.wav=", "x/b.wav=cat", "x/c.wav=cat"});
}

TEST_CASE("file list: a manifest is taken as it stands, in its own order") {
  const TempFolder folder;
  struct Row {
    const char* what;
    const char* name;
    std::string text;
    std::string options;
    Paths paths;
  };
  const Row rows[] = {
      {"text", "list.txt", "b.wav\na.wav\nx/c d.wav\n", "", {"b.wav=", "a.wav=", "x/c d.wav="}},
      {"no line end, Windows' line ends, blank lines, comments",
       "list.txt",
       "# a list\r\nb.wav\r\n\r\na.wav",
       "",
       {"b.wav=", "a.wav="}},
      {"a byte order mark",
       "list.txt",
       "\xEF\xBB\xBF"
       "b.wav\n",
       "",
       {"b.wav="}},
      {"absolute paths and a file twice",
       "list.lst",
       "/abs/a.wav\nb.wav\n/abs/a.wav\n",
       "",
       {"/abs/a.wav=", "b.wav=", "/abs/a.wav="}},
      {"csv", "list.csv", "path\nb.wav\na.wav\n", "", {"b.wav=", "a.wav="}},
      {"csv, a column more than needed",
       "list.CSV",
       "n,path\n1,b.wav\n2,a.wav\n",
       "",
       {"b.wav=", "a.wav="}},
      {"label and split",
       "list.csv",
       "path,label,split\n\"x, y.wav\",\"the \"\"cat\"\"\",train\nb.wav,,test\nc.wav,dog,\n",
       "labels: manifest",
       {"x, y.wav=the \"cat\"/train", "b.wav=/test", "c.wav=dog"}},
      {"labels that are not asked for", "list.csv", "path,label\na.wav,cat\n", "", {"a.wav="}},
      {"labels from folders",
       "list.csv",
       "path,label\nx/a.wav,cat\n",
       "labels: parent_dir",
       {"x/a.wav=x"}},
      {"a column of labels with an empty cell",
       "list.csv",
       "path,label\nx/a.wav,\n",
       "labels: manifest",
       {"x/a.wav="}},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const std::string path = folder.write(row.name, row.text);
    List list("{manifest: '" + path + "'" + (row.options.empty() ? "" : ", " + row.options) + "}");
    CHECK(labelled(list) == row.paths);
  }
}

TEST_CASE("file list: a relative path of a manifest is below the root, or the working folder") {
  const TempFolder folder;
  folder.write("data/a.wav", "12345");
  const std::string list_path = folder.write("list.txt", "a.wav\n");
  List below("{manifest: '" + list_path + "', root: '" + (folder / "data") + "'}");
  CHECK(below.bench().source().item(0).info.bytes == 5);
  CHECK(below.paths() == Paths{"a.wav"});
  List here("{manifest: '" + list_path + "'}");
  CHECK(here.bench().source().item(0).info.bytes == 0);
  CHECK(here.bench().source().item(0).info.name == "a.wav");
}

TEST_CASE("file list: what cannot be listed stops the run, and the message says what to do") {
  const TempFolder folder;
  folder.folder("empty");
  folder.write("only/text.txt", "");
  folder.write("tars/0.tar", "");
  folder.write("empty.txt", "");
  folder.write("comments.txt", "# nothing\n\n");
  folder.write("header.csv", "path,label\n");
  folder.write("nolabel.csv", "path\na.wav\n");
  folder.write("blank.csv", "path,label\n,x\n");
  folder.folder("folder.txt");
  std::string splits = "path,split\n";
  for (int i = 0; i < 129; ++i) splits += "a.wav," + std::to_string(i) + "\n";
  folder.write("splits.csv", splits);
  const std::string& f = folder.path();
  struct Row {
    std::string options;
    std::string message;
  };
  const Row rows[] = {
      {"{root: '" + f + "/only', include: '*.txt', exclude: '*'}",
       "@/only: no file matches *.txt; check the options root, include and exclude"},
      {"{root: '" + f + "', include: 'emp*y'}",
       "@: no file matches emp*y, only folders: for the files in one write empty/** (there are 4 "
       ".csv, 3 .txt, 1 .tar); check the options root and include"},
      {"{root: '" + f + "/tars'}",
       "@/tars: there is no sound file in it or below it (there are 1 .tar); check the options "
       "root and include; for the files in archives write root: @/tars/*.tar"},
      {"{root: '" + f + "/only', include: '*.txt', columns: {text: 'x/{name}.lab'}}",
       "columns: text: x/{name}.lab gives none of the 1 recordings a text; that of text.txt would "
       "be in x/text.lab; correct it, or remove it"},
      {"{root: '" + f + "/only', include: '*.wav'}",
       "@/only: no file matches *.wav (there are 1 .txt); check the options root and include"},
      {"{manifest: '" + f + "/gone.txt'}", "@/gone.txt: cannot be read: No such file or directory"},
      {"{manifest: '" + f + "/folder.txt'}",
       "plan: manifest: @/folder.txt: this folder has no wav.scp, so it is no data folder of "
       "Kaldi; "
       "to search it write root: @/folder.txt"},
      {"{manifest: '" + f + "/empty.txt'}", "@/empty.txt: the manifest names no file"},
      {"{manifest: '" + f + "/comments.txt'}", "@/comments.txt: the manifest names no file"},
      {"{manifest: '" + f + "/header.csv'}", "@/header.csv: the manifest names no file"},
      {"{manifest: '" + f + "/blank.csv'}", "@/blank.csv:2: the path is empty"},
      {"{manifest: '" + f + "/splits.csv'}", "@/splits.csv:130: more than 128 splits"},
      {"{root: '" + f + "/only', include: '*.txt', labels: file, label_file: '" + f + "/gone.csv'}",
       "@/gone.csv: cannot be read: No such file or directory"},
      {"{root: '" + f + "/only', include: '*.txt', labels: file, label_file: '" + f +
           "/nolabel.csv'}",
       "@/nolabel.csv: there is no column 'label', which labels: file asks for; it has path; name "
       "the column with the labels by columns_are: {label: COLUMN}"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.options);
    CHECK(complaint(folder, row.options) == row.message);
  }
}

TEST_CASE("file list: labels, groups, columns and splits do not depend on how root is written") {
  const TempFolder folder;
  // For a folder below the root, the name of the root counts.
  std::string relative, absolute, odd;
  for (const char* p : {"c/1", "c/2", "c/c/3", "c/d/4", "e/5", "e/c/6", "f/7", "f/8"}) {
    folder.write(std::string("c/") + p + ".wav", "x");
    relative += std::string(p) + ".wav\n";
    absolute += (folder / "c/") + p + ".wav\n";
    odd += std::string("./") + "../c//c/../" + p + ".wav\n";
  }
  for (const auto& [name, paths] :
       {std::pair("relative", &relative), std::pair("absolute", &absolute), std::pair("odd", &odd)})
    folder.write(name + std::string(".txt"), *paths);
  std::string table = "path,age\n";
  for (const char c : absolute) table += c == '\n' ? ",1\n" : std::string(1, c);
  folder.write("ages.csv", table);
  std::filesystem::create_symlink("c", folder / "link");

  const std::string facts =
      "label_file: ages.csv, targets: age, columns: {top: parent_dir, up: '^([a-z]+)/'}, ";
  const std::string options[] = {
      facts + "labels: parent_dir, splits: top_dir, split_group: '/([0-9])'",
      facts +
          "labels: '^([a-z]+)/', splits: ratio, split_group: top_dir, "
          "split_ratios: {train: 1, test: 1}"};
  const InFolder here(folder.path());
  for (const std::string& option : options) {
    const auto facts_of = [&option](const std::string& root, const std::string& manifest) {
      List list("{root: '" + root + "', " + manifest + option + "}");
      const Manifest& m = list.manifest();
      Paths out;
      for (std::size_t i = 0; i < m.size(); ++i)
        out.push_back(fmt::format("{}: {} in {}, {} {}, {}", m.file_name(i),
                                  m.label_names().at(static_cast<std::size_t>(m.label(i))),
                                  list.split_of(i), m.text(i, 0), m.text(i, 1), m.target(i, 0)));
      return out;
    };
    const Paths expected = facts_of(folder / "c", "");
    CHECK(std::any_of(expected.begin(), expected.end(), [](const std::string& file) {
      return file.starts_with("1.wav: c in ") && file.ends_with(", c c, 1");
    }));
    for (const std::string root :
         {"c", "./c", "c/", "c//", "c/.", "c/../c", "c/c/..", "link", "@", "@/", "@/../c"}) {
      std::string form = root;
      if (form.starts_with('@')) form.replace(0, 1, folder / "c");
      for (const char* manifest :
           {"", "manifest: relative.txt, ", "manifest: absolute.txt, ", "manifest: odd.txt, "}) {
        CAPTURE(form);
        CAPTURE(manifest);
        CHECK(facts_of(form, manifest) == expected);
      }
    }
  }
}

TEST_CASE("file list: paths of a manifest that name the root themselves get a warning") {
  const TempFolder folder;
  for (const char* p : {"data/clips/a.wav", "data/clips/b.wav"}) folder.write(p, "x");
  const std::string list = folder / "list.txt", csv = folder / "list.csv";
  struct Row {
    std::string root, path, remark;  // with @ for the folder
  };
  const std::string below = "@/list.txt: paths are relative to root, so that ";
  const Row rows[] = {
      {"data/clips", "a.wav", ""},
      {"data/clips", folder / "data/clips/a.wav", ""},
      {"data/clips", "gone.wav", ""},  // the last one exists
      {"data/clips", "clips/a.wav",
       below +
           "clips/a.wav is looked for at @/data/clips/clips/a.wav, which does not exist; it is at "
           "@/data/clips/a.wav. Write paths relative to root, or set root to @/data"},
      {"data/clips/", "clips/a.wav",
       below +
           "clips/a.wav is looked for at @/data/clips/clips/a.wav, which does not exist; it is at "
           "@/data/clips/a.wav. Write paths relative to root, or set root to @/data"},
      {"data", "clips/clips/a.wav", ""},
      {"nowhere", "a.wav",
       "@/list.txt: neither its first file, a.wav, nor its last is there; the first is looked for "
       "at @/nowhere/a.wav"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.root);
    CAPTURE(row.path);
    folder.write("list.txt", row.path + "\n" + (row.root == "data" ? "clips/" : "") + "b.wav\n");
    List made("{root: '" + (folder / row.root) + "', manifest: '" + list + "'}");
    std::string said = made.warnings().empty() ? "" : made.warnings().front();
    for (std::size_t at; (at = said.find(folder.path())) != said.npos;)
      said.replace(at, folder.path().size(), "@");
    CHECK(said == row.remark);
  }
}

TEST_CASE("file list: a folder or table that is not there is told before the run") {
  const TempFolder folder;
  folder.write("a.csv", "path\na.wav\n");
  struct Row {
    std::string options;
    Paths warnings;
  };
  const std::string& f = folder.path();
  const Row rows[] = {
      {root(folder), {}},
      {"{root: '" + f + "/gone'}", {"root: " + f + "/gone: there is no such folder"}},
      {"{root: '${DATA}'}", {}},  // a plan that is only looked at, whose variables have no values
      {"{manifest: '" + f + "/a.csv'}", {}},
      {"{manifest: '" + f + "/b.csv'}", {"manifest: " + f + "/b.csv: there is no such file"}},
      {root(folder, "label_file: '" + f + "/b.csv', labels: file"),
       {"label_file: " + f + "/b.csv: there is no such file"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.options);
    Bench bench("file_list", row.options);
    const Planned planned = bench.plan();
    CHECK(planned.errors.empty());
    CHECK(planned.warnings == row.warnings);
  }
}

TEST_CASE("file list: what the plan can tell is told before the run") {
  struct Row {
    std::string options;
    Paths errors;
  };
  const Row rows[] = {
      {"{root: x}", {}},
      {"{manifest: x}", {}},
      {"{root: x, labels: file}", {"labels: file needs a label_file"}},
      {"{root: x, labels: file, label_file: y.csv}", {}},
      {"{root: x, labels: file, label_file: d/y.jsonl.gz}", {}},
      {"{root: x, labels: file, label_file: d/y.jsonl.zst}",
       {"label_file: d/y.jsonl.zst is packed; unpack it (unzstd d/y.jsonl.zst), and name "
        "d/y.jsonl"}},
      {"{manifest: y.csv.xz, labels: manifest}",
       {"manifest: y.csv.xz is packed; unpack it (unxz -k y.csv.xz), and name y.csv"}},
      {"{root: x, labels: '(a)(?=b)'}",
       {"labels: '(a)(?=b)' is not a regular expression: invalid perl operator: (?=; lookaheads "
        "and "
        "lookbehinds, (?= (?! (?<= (?<!, are not known (docs/pipelines.md)"}},
      {"{manifest: x.csv, labels: speaker}",
       {"labels: 'speaker' is not an entry of columns; for labels in the column speaker of the "
        "manifest, write labels: manifest and columns_are: {label: speaker}"}},
      {"{root: x, labels: '(a)(b)'}",
       {"labels: '(a)(b)' has 2 groups in ( ); it must have one, which marks the name"}},
      {"{manifest: x.txt, labels: manifest}",
       {"labels: a manifest with labels is a .csv, .tsv or .jsonl with the column label, not "
        "x.txt"}},
      {"{manifest: x.csv, labels: manifest}", {}},
      {"{root: x, label_file: y.csv}",
       {"label_file: is read with labels: file, targets or columns only"}},
      {"{root: x, targets: [t], label_file: y.tsv}", {}},
      {"{root: x, columns: [t], label_file: y.tsv}", {}},
      {"{root: x, columns: {t: top_dir}}", {}},
      {"{root: x, columns: {t: '()()'}}",
       {"columns: t: '()()' has 2 groups in ( ); it must have one, which marks the name"}},
      {"{manifest: x.csv, columns: [a/b]}",
       {"columns: 'a/b' cannot be the name of a column: it becomes that of a dataset, so it has 1 "
        "to 100 bytes of UTF-8, no '/' and no control characters, and does not begin with '.'"}},
      {"{manifest: x.csv, columns: [a, b, a]}", {"columns: 'a' is listed twice"}},
      {"{root: x, labels: top_dir, label_separator: '|'}",
       {"label_separator: is for labels of a table (labels: file or manifest)"}},
      {"{root: x, splits: manifest}",
       {"splits: manifest needs a manifest (.csv, .tsv or .jsonl) with the column split"}},
      {"{root: x, splits: ratio, split_names: [a]}",
       {"split_names: with splits: ratio the names are those of split_ratios"}},
      {"{manifest: x.jsonl, split_group: speaker}", {}},
      {"{root: x, split_group: '/(..)(.)/'}",
       {"split_group: '/(..)(.)/' has 2 groups in ( ); it must have one, which marks the name"}},
      {"{root: x, splits: top_dir, labels: top_dir}", {}},
      {"{manifest: 'hf://datasets/x/train.csv'}",
       {"manifest: 'hf://datasets/x/train.csv' is a URL, and paths of mounted disks are read and "
        "written; copy between it and a folder with huggingface-cli download, and name the "
        "folder"}},
      {"{root: 'file:///data/clips'}",
       {"root: 'file:///data/clips' is a URL, and paths of mounted disks are read and written; "
        "write /data/clips"}},
      {"{manifest: 'a://'}",
       {"manifest: 'a://' is a URL, and paths of mounted disks are read and written; copy between "
        "it "
        "and a folder with the program that it is for, and name the folder"}},
      {"{root: 'no url://x'}", {}},
      {"{manifest: lists.tar.gz, labels: manifest}",
       {"manifest: lists.tar.gz is an archive; unpack it (tar -xf), and name the list in it"}},
      {"{manifest: x, exclude: '*.wav'}",
       {"exclude: a manifest is taken as it stands; leave the files out there"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.options);
    CHECK(Bench("file_list", row.options).plan().errors == row.errors);
  }
  for (const char* options : {"{root: 's3://bucket/clips'}", "{call: 'clips.py:clips'}"})
    CHECK_THROWS_AS(Bench("file_list", options).plan(), NeedsPython);
}

TEST_CASE("file list: a folder that cannot be listed ends the run before it begins") {
  const TempFolder folder;
  for (const char* p : {"a.wav", "deep/b.wav", "deep/hidden/c.wav", "deep/hidden/d.wav", "z.wav"})
    folder.write(p, "x");
  const char* const kRest =
      "; nobody knows what would be missing. Make it readable, list it in exclude, or count "
      "every such folder as a failed file (closed_folders: failed)";
  for (const auto where : {FolderFault::Where::opendir, FolderFault::Where::readdir}) {
    for (const int error : {EIO, EMFILE, EACCES, ESTALE}) {
      const std::string why = std::strerror(error);
      CAPTURE(why);
      CAPTURE(where == FolderFault::Where::readdir);
      const FolderFault fault(where, "deep/hidden", error);
      CHECK(complaint(folder, root(folder)) == "@/deep/hidden/: cannot be listed: " + why + kRest);
      // A folder that a pattern matches is listed by its own name.
      CHECK(complaint(folder, root(folder, "include: '**/*'")) ==
            "@/deep/hidden: cannot be listed: " + why + kRest);
      for (const char* left_out :
           {"exclude: 'deep/hidden'", "exclude: 'deep/**'", "exclude: hidden"})
        CHECK(complaint(folder, root(folder, left_out)) == "");

      List list(root(folder, "closed_folders: failed"));
      CHECK(list.paths() == Paths{"a.wav", "deep/b.wav", "deep/hidden/", "z.wav"});
      // The folder can be opened again by then, and has failed all the same.
      const auto item = list.bench().source().item(2);
      for (const char* engine : {"{engine: inline}", "{engine: io_uring}"}) {
        const auto result =
            Bench("disk_read", engine)
                .single<RawBytes>(std::static_pointer_cast<const FileRef>(item.payload));
        CHECK(result.entry.outcome == Outcome::failed);
        CHECK(result.entry.reason == "cannot be listed: " + why + "; what is in it is missing");
      }
    }
  }
  const FolderFault fault(FolderFault::Where::opendir, folder.path(), EIO);
  CHECK(complaint(folder, root(folder, "closed_folders: failed")) ==
        "@: cannot list the folder: Input/output error; check the option root");
}

TEST_CASE("file list: what a folder that cannot be listed has no share of, splits and labels") {
  const TempFolder folder;
  for (const char* p : {"train/a/1.wav", "train/b/2.wav", "test/a/3.wav", "test/b/4.wav"})
    folder.write(p, "x");
  const FolderFault fault(FolderFault::Where::opendir, "train/b", EIO);
  List list(root(folder, "closed_folders: failed, splits: top_dir, labels: top_dir"));
  CHECK(labelled(list) ==
        Paths{"train/a/1.wav=a/train", "test/a/3.wav=a/test", "test/b/4.wav=b/test", "train/b/="});
  // At its new position the folder is still unreadable.
  CHECK(list.manifest().problem(3).starts_with("cannot be listed"));
  CHECK(list.manifest().problem(0).empty());
}

TEST_CASE("file list: folders that cannot be entered are counted, where that is wanted") {
  const TempFolder folder;
  folder.write("a.wav", "x");
  folder.write("closed/b.wav", "x");
  folder.write("lost+found/c.wav", "x");
  folder.write("noenter/d.wav", "x");
  folder.write("noenter/sub/e.wav", "x");
  REQUIRE(chmod((folder / "closed").c_str(), 0) == 0);
  REQUIRE(chmod((folder / "lost+found").c_str(), 0) == 0);
  REQUIRE(chmod((folder / "noenter").c_str(), 0444) == 0);  // names can be listed, files not opened
  const OtherUser other;
  if (!other.ok()) {
    skip("cannot act as a user without rights");
    return;
  }
  CHECK(complaint(folder, root(folder))
            .starts_with("@/closed/: cannot be listed: Permission denied; @/lost+found/: "));
  List list(root(folder, "closed_folders: failed"));
  CHECK(list.paths() == Paths{"a.wav", "closed/", "lost+found/", "noenter/d.wav", "noenter/sub/"});
  Bench read("disk_read");
  for (std::size_t i = 1; i < 5; ++i) {
    const auto item = list.bench().source().item(i);
    const auto result =
        read.single<RawBytes>(std::static_pointer_cast<const FileRef>(item.payload));
    CAPTURE(list.paths()[i]);
    CHECK(result.entry.outcome == Outcome::failed);
    CHECK(result.entry.reason ==
          (i == 3 ? "cannot be read: Permission denied"
                  : "cannot be listed: Permission denied; what is in it is missing"));
  }
  // Explicitly excluded folders do not fail.
  CHECK(
      List(root(folder, "closed_folders: failed, exclude: ['lost+found', 'noenter/**']")).paths() ==
      Paths{"a.wav", "closed/"});
  CHECK(complaint(folder, "{root: '" + (folder / "closed") + "'}") ==
        "@/closed: cannot list the folder: Permission denied; check the option root");
}

TEST_CASE("file_list: a file of a folder stays that file, and is no channel once it is gone") {
  const TempFolder folder;
  for (const char* name : {"a#channel=2.wav", "a.wav"}) folder.write(name, "sound");
  folder.write("files.txt", "a#channel=2.wav\n");
  List found(root(folder)), listed(root(folder, "manifest: '" + (folder / "files.txt") + "'"));
  std::filesystem::remove(folder / "a#channel=2.wav");
  for (List* list : {&found, &listed}) {
    (void)list->bench().source().item(0);
    const FileStamp stamp = dynamic_cast<ManifestSource&>(list->bench().stage()).stamp(0);
    CHECK((stamp.size < 0) == (list == &found));
  }
}

TEST_CASE("file_list: in an update, a file that changed after it was looked at has no stamp") {
  const TempFolder folder;
  for (const char* name : {"a.wav", "b.wav", "c.wav"}) folder.write(name, "sound");
  List list(root(folder), {{"a.wav", "-"}, {"b.wav", "-"}, {"c.wav", "-"}});
  auto& source = dynamic_cast<ManifestSource&>(list.bench().stage());
  const FileStamp as_found = stamp_of(folder / "a.wav");
  source.set_stamp(0, as_found);                    // of kept rows
  source.set_stamp(1, {5, as_found.modified - 1});  // of rows of another state
  source.set_stamp(2, as_found);
  std::filesystem::remove(folder / "c.wav");
  for (std::size_t i = 0; i < 3; ++i) (void)list.bench().source().item(i);
  CHECK(source.stamp(0) == as_found);
  CHECK(source.stamp(1).size == -1);
  CHECK(source.stamp(2) == as_found);  // its rows are kept, since its state is unknown
}

}  // namespace melflow::test::file_list_test
