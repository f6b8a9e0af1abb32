// melflow init: a configuration to start from, or a project with a stage of one's own.
#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/verbs/init_stage.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/written_file.h"
#include "pipeline/problem.h"
#include "stages/files/own_file.h"

namespace melflow {
namespace {

constexpr std::string_view kTemplate =
    R"yaml(# A melflow pipeline: a folder of recordings becomes log-mel features in one HDF5 file.
#
#   melflow validate FILE                        checks it
#   DATA=clips OUT=clips.h5 melflow run FILE     runs it
#   melflow stages mel                           shows every option of a stage
version: 1

# All that the files under way may take at the same time.
memory: {host: 1GiB}

# End the run when more files than this fail: a count (10) or a share (1%). Without it a bad file
# never stops a run; it is listed at the end and in the output.
# max_failures: 1%

# Each node names its stage and the node whose output it takes. Every node but the first may also
# have `concurrency` (items at the same time) and `queue` (items that wait); left out, they fit the
# machine. ${NAME} is a variable of the environment, or of --var NAME=value; after :- is what it is
# when nobody sets it.
graph:
  files:
    stage: file_list
    root: ${DATA:-data}
    # include: ["**/*.wav", "**/*.flac"]
    labels: parent_dir        # the label; one of none, parent_dir, top_dir, file, manifest

  read:
    stage: disk_read
    from: files

  decode:                     # WAV, FLAC, OGG, MP3, AIFF, …; several channels become one
    stage: decode
    from: read

  resample:                   # recordings of any rate: all the same from here on
    stage: resample
    from: decode
    rate: 16kHz

  segment:                    # without a length: whole recordings, a row is a frame
    stage: segment
    from: resample
    # length: 1s              # with a length: a row is a window of that length
    # hop: 500ms

  batch:                      # small files go on in groups
    stage: batch
    from: segment
    files: 16

  mel:
    stage: mel
    from: batch
    sample_rate: 16kHz        # must be what arrives
    n_fft: 512                # [samples]
    win_length: 25ms          # or in samples: 400
    hop: 10ms                 # or in samples: 160
    n_mels: 80
    log: db                   # one of none, ln, log10, db

  write:
    stage: hdf5_write
    from: mel
    path: ${OUT:-features.h5}
)yaml";

int write_template(const std::string& path, bool force) {
  if (!force && has_name(path))
    throw RunError(path + ": this already exists; give another name, or --force to replace it");
  WrittenFile(path).write(kTemplate);
  say(stdout, "{0} is written. Next:\n  DATA=folder OUT=features.h5 melflow run {0}\n", path);
  return kDone;
}

int write_stage(const std::string& name, const std::string& folder) {
  write_stage_project(name, folder);
  const std::string prefix = installed_prefix();
  say(stdout,
      "{0} is written: the stage {1} ({1}.cpp), its test, a pipeline. Next:\n"
      "  cd {0}\n"
      "  cmake -S . -B build -DCMAKE_PREFIX_PATH={2}\n"
      "  cmake --build build\n"
      "  ctest --test-dir build\n"
      "  DATA=folder OUT=features.h5 build/melflow_{1} run {1}.yaml\n",
      folder, name, prefix.empty() ? "PREFIX    # where melflow is installed" : prefix);
  return kDone;
}

}  // namespace

Action add_init(CLI::App& verb) {
  struct Arguments {
    std::string path = "melflow.yaml", stage;
    bool force = false;
  };
  auto given = std::make_shared<Arguments>();
  CLI::Option* path = verb.add_option("FILE", given->path,
                                      "the file to write; with --stage a new folder, by default "
                                      "the stage's name")
                          ->capture_default_str();
  CLI::Option* force = verb.add_flag("--force", given->force, "replaces FILE if it exists");
  CLI::Option* stage =
      verb.add_option("--stage", given->stage,
                      "writes a project with a stage of that name instead: C++, its test, a "
                      "pipeline, CMakeLists.txt")
          ->type_name("NAME")
          ->check(CLI::Validator([](std::string& name) { return wrong_stage_name(name); }, ""))
          ->excludes(force);
  verb.footer("Example:\n  melflow init mine.yaml\n  melflow init --stage loudness");
  return [given, path, stage] {
    if (stage->empty()) return write_template(given->path, given->force);
    return write_stage(given->stage, path->empty() ? given->stage : given->path);
  };
}

}  // namespace melflow
