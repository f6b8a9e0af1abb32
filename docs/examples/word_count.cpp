// Counts the words of all text files below a folder: melflow's framework without any audio.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "pipeline/run/compose.h"

namespace fs = std::filesystem;

struct File {
  static constexpr const char* kName = "file";
  std::string path;
  std::size_t size = 0;
  std::size_t bytes() const { return size; }
  std::size_t rows() const { return 0; }
};

struct Words {
  static constexpr const char* kName = "words";
  std::map<std::string, int> counts;
  std::size_t bytes() const { return 64 * counts.size(); }
  std::size_t rows() const { return counts.size(); }
};

Words words_of(const File& file) {
  std::ifstream in(file.path);
  if (!in) throw std::runtime_error("cannot be read");
  Words out;
  for (std::string word; in >> word; ++out.counts[word])
    if (word.find('\0') != std::string::npos) throw std::runtime_error("is not a text");
  return out;
}

int main(int, char** argv) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(argv[1]))
    if (entry.is_regular_file() && entry.path().extension() == ".txt")
      files.push_back(entry.path());

  std::map<std::string, int> total;
  melflow::Compose graph;
  graph
      .source<File>("files", files,
                    [&](std::size_t i) {
                      return File{files[i], fs::file_size(files[i])};
                    })
      .map<File, Words>("words", "files", words_of, 32)  // 64 bytes a word, of at least 2 in a file
      .sink<Words>("sum", "words", [&](const Words& words) {
        for (const auto& [word, count] : words.counts) total[word] += count;
      });
  std::vector<melflow::Remark> remarks;
  const melflow::RunReport report = graph.run(&remarks);
  for (const auto& [word, count] : total) std::printf("%6d %s\n", count, word.c_str());
  for (const melflow::Remark& r : remarks)
    std::fprintf(stderr, "%s: %s\n", r.name.c_str(), r.entry.reason.c_str());
  return report.counts.failed > 0 ? 3 : 0;
}
