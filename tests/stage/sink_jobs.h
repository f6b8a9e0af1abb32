// Jobs that end in hdf5_write, npy_write or both, and Python's checks of their outputs.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/job.h"
#include "tests/support/python.h"
#include "tests/support/small_pipeline.h"
#include "tests/support/temp_folder.h"

namespace melflow::test {

struct SinkKind {
  const char* stage;
  const char* ending;                ///< of the output's path
  std::vector<std::string> endings;  ///< of all files of an output
};
inline const SinkKind kHdf5{"hdf5_write", ".h5", {".h5"}};
inline const SinkKind kNpy{"npy_write", ".npy", {".npy", ".index.npy", ".index.json"}};
inline const SinkKind kSinks[] = {kHdf5, kNpy};

struct SinkJob {
  std::string files = "labels: parent_dir";
  std::string decode = "truncated: keep";
  std::string segment = "tail: drop";
  std::string mel = "log: db";
  std::string write = "overwrite: false";
  std::string top{};         ///< lines before the graph
  std::string from = "mel";  ///< input of the sinks
};

/// Returns a further line of a graph.
inline std::string sink_node(const std::string& node, const SinkKind& sink, const std::string& from,
                             const std::string& out, const std::string& more = "") {
  return fmt::format("  {}: {{stage: {}, from: {}, path: \"{}{}\"{}}}\n", node, sink.stage, from,
                     out, sink.ending, more);
}

/// A pipeline with one sink, called `write`.
inline std::string pipeline(const SinkKind& sink, const SinkJob& o = {}) {
  return fmt::format("version: 1\n{}\ngraph:\n{}{}", o.top,
                     nodes_to_mel(o.files, o.decode, o.segment, o.mel),
                     sink_node("write", sink, o.from, "${OUT}", ", " + o.write));
}

/// A pipeline with npy_write, called `write`, and hdf5_write, called `h5`, for the same rows.
inline std::string pipeline_of_both(const SinkJob& o = {}) {
  return pipeline(kNpy, o) + sink_node("h5", kHdf5, o.from, "${OUT}", ", " + o.write);
}

/// `out`: the output's name without its extension.
inline JobResult run_sinks(const std::string& yaml, const TempFolder& folder,
                           const std::string& out = "out") {
  return run_job(yaml, in_out(folder / "clips", folder / out));
}

// The results of the Python scripts for a file; "" when everything is right.

inline std::string check_h5(const std::string& file, const std::string& float32 = "") {
  return python_says("stage/read_output.py",
                     "'" + file + "'" + (float32.empty() ? "" : " '" + float32 + "'"));
}

inline std::string check_npy(const std::string& arguments) {
  return python_says("stage/read_npy.py", arguments);
}

/// For a job with both sinks.
inline std::string difference_from_h5(const TempFolder& folder, const std::string& out = "out",
                                      const std::string& part = "") {
  return check_npy(fmt::format("'{0}.npy{1}' --h5 '{0}.h5{1}'", folder / out, part));
}

/// Returns the stored rows of a .npy, including the header.
inline std::string rows_file(const TempFolder& folder, const std::string& out) {
  return read_bytes(folder / (out + ".npy"));
}

}  // namespace melflow::test
