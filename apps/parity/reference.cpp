#include "apps/parity/reference.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fmt/format.h>

#include "apps/json_value.h"
#include "apps/shipped.h"
#include "apps/start_python.h"
#include "apps/temporary_folder.h"
#include "pipeline/base/problem.h"
#include "stages/features/mel_stage_options.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class FileActions {
 public:
  explicit FileActions(const std::string& output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, output.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
  }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// Runs `command`, a program (found on PATH when it has no slash) and its arguments, with stdout
// and stderr written to the file `output`. Returns the exit status, or 128 + the number of the
// signal that ended it. Throws RunError when it cannot be started.
int run_child(std::vector<std::string> command, const std::string& output) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const FileActions actions(output);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, arguments[0], actions.get(), nullptr, arguments.data(), environ);
  if (error != 0)
    throw RunError(fmt::format("{}: cannot be started: {}", command[0], std::strerror(error)));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      throw RunError(
          fmt::format("{}: its end cannot be waited for: {}", command[0], std::strerror(errno)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void write_file(const std::string& path, const void* data, std::size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  if (!file.flush()) throw RunError(path + ": cannot be written");
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json request_of(const TemporaryFolder& folder, const std::string& library,
                const MelOptions& options, const std::vector<std::string>& changed,
                const std::vector<ParityRecording>& recordings) {
  MelStageOptions stage;
  stage.set(resolve(options));
  Schema schema;
  stage.describe(schema);
  Json out{{"reference", library},
           {"options", json_of(schema.echo())},
           {"changed", changed},
           {"inputs", Json::array()}};
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    const std::string samples = folder / fmt::format("{}.samples", i);
    write_file(samples, recordings[i].samples.data(), recordings[i].samples.size() * sizeof(float));
    out["inputs"].push_back({{"samples", samples},
                             {"rows", folder / fmt::format("{}.rows", i)},
                             {"own_errors", folder / fmt::format("{}.own_errors", i)}});
  }
  return out;
}

[[noreturn]] void lacking(const std::string& python, const Json& missing) {
  std::string names, text;
  for (const Json& one : missing) {
    names += fmt::format(" {}", one.at(1).get<std::string>());
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", one.at(1).get<std::string>(),
                        one.at(2).get<std::string>());
  }
  throw RunError(
      fmt::format("{0} lacks what the library needs ({1}): {0} -m pip install{2}, or name another "
                  "Python with --python",
                  python, text, names));
}

std::vector<float> floats_of(const std::string& path, std::int64_t frames, int columns) {
  const std::string bytes = read_file(path);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  if (static_cast<std::int64_t>(out.size()) != frames * columns)
    throw RunError(
        fmt::format("{}: has {} values, must have {} x {}", path, out.size(), frames, columns));
  return out;
}

ReferenceRows rows_of(const Json& output, const std::string& path) {
  ReferenceRows out;
  out.refused = output.value("refused", "");
  if (!out.refused.empty()) return out;
  out.frames = output.at("frames").get<std::int64_t>();
  out.columns = output.at("columns").get<int>();
  out.values = floats_of(path + ".rows", out.frames, out.columns);
  if (output.value("has_own_errors", false))
    out.own_errors = floats_of(path + ".own_errors", out.frames, out.columns);
  return out;
}

// Joins the last lines of Python's output, which say what went wrong.
std::string tail(const std::string& text) {
  std::string out;
  std::istringstream lines(text.size() > 1000 ? text.substr(text.size() - 1000) : text);
  for (std::string line; std::getline(lines, line);) out += (out.empty() ? "" : " | ") + line;
  return out;
}

}  // namespace

const std::vector<ParityLibrary>& parity_libraries() {
  static const std::vector<ParityLibrary> all{
      {"librosa", {"librosa"}, true},
      {"torchaudio", {"torchaudio"}, false},
      {"kaldi-native-fbank", {"kaldi", "kaldi_htk"}, false},
      {"whisper", {"whisper", "whisper_large_v3"}, true},
      {"nemo", {"nemo"}, false},
      {"speechbrain", {"speechbrain"}, false},
      {"hifigan", {"hifigan"}, false},
      {"ast", {"ast"}, false},
  };
  return all;
}

bool transforms_in_double(const std::string& preset) {
  const auto& all = parity_libraries();
  return std::any_of(all.begin(), all.end(), [&](const ParityLibrary& l) {
    return l.is_double && std::find(l.presets.begin(), l.presets.end(), preset) != l.presets.end();
  });
}

ReferenceAnswer ask_reference(const std::string& python, const std::string& library,
                              const MelOptions& options, const std::vector<std::string>& changed,
                              const std::vector<ParityRecording>& recordings) {
  const fs::path script =
      shipped_file("parity/parity_reference.py", "apps/parity/parity_reference.py");
  const TemporaryFolder folder;
  const std::string request = request_of(folder, library, options, changed, recordings).dump();
  write_file(folder / "request.json", request.data(), request.size());
  clean_python_path();
  const int status =
      run_child({python, script.string(), folder / "request.json", folder / "answer.json"},
                folder / "output");
  const Json answer = Json::parse(read_file(folder / "answer.json"), nullptr, false);
  if (status != 0 || !answer.is_object())
    throw RunError(fmt::format("{} exited with status {} and without an answer: {}", python, status,
                               tail(read_file(folder / "output"))));
  if (answer.contains("missing")) lacking(python, answer["missing"]);
  ReferenceAnswer out;
  out.source = {answer.at("library"), answer.at("version"), answer.at("function")};
  if (const Json& unknown = answer.at("unknown"); !unknown.empty())
    throw RunError(fmt::format("{} has no setting for {}, so nothing can be compared",
                               out.source.function,
                               fmt::join(unknown.get<std::vector<std::string>>(), ", ")));
  for (std::size_t i = 0; i < recordings.size(); ++i)
    out.rows.push_back(rows_of(answer.at("outputs").at(i), folder / fmt::format("{}", i)));
  return out;
}

}  // namespace melflow
