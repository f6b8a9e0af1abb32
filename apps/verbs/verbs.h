// The verbs of the program. The command line, --help and the message for an unknown verb use this
// table; a new verb is a file beside this one, with a declaration and a row here.
#pragma once

#include <functional>
#include <optional>

#include "apps/exit_codes.h"

namespace CLI {
class App;
}

namespace melflow {

/// The action of a verb, called once its options are read. Returns the exit status.
using Action = std::function<int()>;

/// Each function adds a verb's options, and an example for its help, to `verb`.
Action add_run(CLI::App& verb);
Action add_update(CLI::App& verb);
Action add_plan(CLI::App& verb);
Action add_work(CLI::App& verb);
Action add_merge(CLI::App& verb);
Action add_status(CLI::App& verb);
Action add_explain(CLI::App& verb);
Action add_sweep(CLI::App& verb);
Action add_tune(CLI::App& verb);
Action add_report(CLI::App& verb);
Action add_init(CLI::App& verb);
Action add_validate(CLI::App& verb);
Action add_test(CLI::App& verb);
Action add_graph(CLI::App& verb);
Action add_stages(CLI::App& verb);
Action add_presets(CLI::App& verb);
Action add_inspect(CLI::App& verb);
Action add_show(CLI::App& verb);
Action add_compare(CLI::App& verb);
Action add_verify(CLI::App& verb);
Action add_repair(CLI::App& verb);
Action add_export(CLI::App& verb);
Action add_verify_parity(CLI::App& verb);
Action add_vectors(CLI::App& verb);
Action add_bench(CLI::App& verb);
Action add_check(CLI::App& verb);
Action add_duplicates(CLI::App& verb);

struct Verb {
  const char* name;
  const char* heading;  ///< the heading under which --help lists it
  const char* summary;  ///< one sentence, for --help
  Action (*add)(CLI::App& verb);
  /// The exit status when stdout did not take everything. None: the action's own status, which says
  /// whether the output was made.
  std::optional<ExitCode> unprinted = kRunFailed;
};

inline constexpr Verb kVerbs[] = {
    {"run", "Making features", "Runs a pipeline.", add_run, {}},
    {"update",
     "Making features",
     "Runs a pipeline for files that are new or have changed since its output was made.",
     add_update,
     {}},
    {"check", "Recordings",
     "Says what is wrong with which recordings: clipped, silent, noisy, cut off, mislabelled.",
     add_check},
    {"duplicates", "Recordings",
     "Says which recordings sound alike, across splits and outputs, by fingerprints.",
     add_duplicates},
    {"plan", "Making features on several machines",
     "Lists a corpus and cuts it into parts, as a folder that workers share.", add_plan},
    {"work",
     "Making features on several machines",
     "Computes parts of a planned job until none are left.",
     add_work,
     {}},
    {"merge",
     "Making features on several machines",
     "Combines a job's parts into its output, byte for byte that of `melflow run`.",
     add_merge,
     {}},
    {"status", "Making features on several machines", "Shows the progress of a job.", add_status},
    {"explain", "Pipelines",
     "Runs a pipeline as a trial and says what limits its speed and what would help.", add_explain},
    {"sweep", "Pipelines",
     "Runs a pipeline with several values of some options, in turn, and ranks them.", add_sweep},
    {"tune", "Pipelines",
     "Looks for options that make a pipeline faster on this machine, and writes a copy with them.",
     add_tune},
    {"report", "Pipelines",
     "Compares the reports of two runs: what got slower, and whether that is more than noise.",
     add_report, kUsage},
    {"init", "Pipelines", "Writes a commented pipeline to start from, or a stage of your own.",
     add_init},
    {"validate", "Pipelines",
     "Checks a pipeline and starts nothing; reports every problem at once.", add_validate},
    {"test", "Pipelines", "Runs the tests in a pipeline: inputs with the results expected of them.",
     add_test},
    {"graph", "Pipelines",
     "Prints a pipeline as a Mermaid flowchart, with the limits of its nodes and queues.",
     add_graph},
    {"stages", "Pipelines", "Lists the stages, or shows one with all its options.", add_stages},
    {"presets", "Pipelines",
     "Lists the front ends of known libraries and models, and shows that of a model's own file.",
     add_presets},
    {"inspect", "Files of features", "Shows what is in a file of features.", add_inspect},
    {"show", "Files of features", "Draws the rows of one recording as a picture (SVG).", add_show},
    {"compare", "Files of features",
     "Shows which settings of the features differ between two files or pipelines.", add_compare,
     kUsage},
    {"verify", "Files of features",
     "Checks that a file's rows are unchanged since they were written.", add_verify},
    {"repair", "Files of features", "Recomputes rows that are damaged; keeps all others.",
     add_repair},
    {"export", "Files of features",
     "Writes the rows for other libraries: Parquet, Arrow, Zarr, Kaldi, tar and others.",
     add_export},
    {"verify-parity", "Files of features",
     "Compares melflow's features with those of the libraries they come from.", add_verify_parity},
    {"vectors", "Files of features",
     "Prints samples and their rows, to test a front end in another language.", add_vectors},
    {"bench", "This machine",
     "Measures what this machine can do at most: reading, decoding, computing, writing.",
     add_bench},
};

}  // namespace melflow
