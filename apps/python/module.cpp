// The extension module melflow._melflow, on which the package melflow is built. Users never call it
// directly.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "apps/calls/stage_chain.h"
#include "apps/exit_codes.h"
#include "apps/python/arrays.h"
#include "apps/python/batch_run.h"
#include "apps/python/list_columns.h"
#include "apps/python/process.h"
#include "apps/python/text_caster.h"
#include "apps/python/verb_call.h"
#include "apps/report/report_json.h"
#include "apps/usage_errors.h"
#include "config/plugins.h"
#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/secrets.h"
#include "pipeline/base/version.h"

namespace nb = nanobind;
using namespace melflow;

namespace {

// The number of a result among those that a node makes of the same item; -1 where it makes none.
std::int64_t number_by(std::string_view node, const SubItem* result) {
  for (; result != nullptr; result = result->of.get())
    if (result->maker == node) return static_cast<std::int64_t>(result->number);
  return -1;
}

nb::object dict_of(const BatchRun& run, SampleBatch batch) {
  nb::dict out;
  for (std::size_t k = 0; k < batch.inputs.size(); ++k) {
    const std::string& name = run.inputs()[k].name;
    add_rows(std::move(batch.inputs[k]), name,
             batch.inputs.size() == 1 ? "length" : name + "_length", out);
  }
  describe(run.manifest(), batch.files, out);
  for (std::int64_t& file : batch.files)
    file = static_cast<std::int64_t>(run.manifest().listed(static_cast<std::size_t>(file)));
  out["file"] = array(std::move(batch.files));
  out["offset"] = array(std::move(batch.offsets));
  if (run.dividers().empty()) return out;
  nb::dict result;
  for (const std::string& node : run.dividers()) {
    std::vector<std::int64_t> numbers;
    for (const auto& of_sample : batch.results) numbers.push_back(number_by(node, of_sample.get()));
    result[nb::cast(node)] = array(std::move(numbers));
  }
  out["result"] = result;
  out["result_offset"] = array(std::move(batch.result_offsets));
  return out;
}

nb::object take(BatchRun& run, double seconds) {
  return next_batch<SampleBatch>(run, seconds,
                                 [&](SampleBatch batch) { return dict_of(run, std::move(batch)); });
}

// Returns the report as JSON, with separate counts for files of other splits and ranks.
std::string report_of(const BatchRun& run) {
  const WithoutLock free;
  RunReport report = run.report();
  std::size_t other_splits = 0, other_ranks = 0;
  const Remarks remarks = run.remarks().where([&](const Remark& r) {
    const bool is_of_split = r.entry.reason == kInOtherSplit;
    const bool is_of_rank = !is_of_split && r.entry.reason == kForOtherRank;
    other_splits += is_of_split ? 1 : 0;
    other_ranks += is_of_rank ? 1 : 0;
    return !is_of_split && !is_of_rank;
  });
  report.counts.skipped -= other_splits + other_ranks;
  nlohmann::ordered_json out =
      report_json(report, run.plan(), remarks, report.counts.failed > 0 ? kSomeFailed : kDone);
  out["files"]["other_splits"] = other_splits;
  out["files"]["other_ranks"] = other_ranks;
  return json_text(out);
}

using Texts = std::map<std::string, std::string>;
std::vector<Assignment> assignments(const Texts& of) {
  std::vector<Assignment> out;
  for (const auto& [name, value] : of) out.push_back({name, value});
  return out;
}

nb::dict dict_of(const Listing& list) {
  nb::dict out;
  out["labels"] = list.label_names;
  out["splits"] = list.split_names;
  out["targets"] = list.target_names;
  out["recordings"] = list.recordings;
  out["list"] = fmt::format("{:016x}", list.hash);
  return out;
}

// Escapes bytes that are not UTF-8: messages contain names of files, and are printed.
void raise(PyObject* type, const char* text) {
  const auto message = nb::steal(
      PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "backslashreplace"));
  PyErr_SetObject(type, message.ptr());
}

// Removes a position in the first line of a text from the beginning of a message: a dict comes as a
// text of one line. The name of a longer text becomes "pipeline".
std::string without_position(const std::string& line) {
  for (const char* name : {"pipeline:", "-:"}) {
    if (!line.starts_with(name)) continue;
    const std::size_t rest = std::strlen(name), end = line.find(": ", rest);
    const std::string at = line.substr(rest, end == line.npos ? line.npos : end - rest);
    if (at.starts_with("1:") && at.find_first_not_of("0123456789:") == at.npos && end != line.npos)
      return line.substr(end + 2);
    return "pipeline:" + line.substr(rest);
  }
  return line;
}

// Replaces command-line options in a message by the corresponding Python arguments.
std::string with_arguments(std::string text) {
  std::string lines;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines += (at > 0 ? "\n" : "") + without_position(text.substr(at, end - at));
    at = end + 1;
  }
  text = std::move(lines);
  for (const auto& [option, argument] : {std::pair{"--set", "sets"},
                                         {"--var", "vars"},
                                         {"--trust", "trust=True"},
                                         {"--plugin FILE", "melflow.load_plugin(FILE)"}})
    for (std::size_t at = 0; (at = text.find(option, at)) != std::string::npos;)
      text.replace(at, std::strlen(option), argument);
  return text;
}

PyObject *config_error, *run_error;
void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ConfigError& error) {
    raise(config_error, with_arguments(error.what()).c_str());
  } catch (const RunError& error) {
    raise(run_error, error.what());
  } catch (const UsageError& error) {
    raise(PyExc_ValueError, with_arguments(error.what()).c_str());
  } catch (const std::invalid_argument& error) {
    raise(PyExc_ValueError, error.what());
  } catch (const CallEnded& error) {
    raise(PyExc_TimeoutError, error.what());
  } catch (const PythonEnds&) {
    PyErr_SetNone(PyExc_SystemExit);
  }
}

// The descriptor of a file that is opened for reading. Raises OSError.
int open_input(const std::string& path, bool may_be_pipe) {
  InputFile file(path, may_be_pipe ? Pipes::by_descriptor : Pipes::refused);
  if (file.error() == 0) return file.release();
  const char* why = file.error() == EINVAL ? file.problem().c_str() : std::strerror(file.error());
  PyErr_SetObject(PyExc_OSError, nb::make_tuple(file.error(), why, path).ptr());
  throw nb::python_error();
}

// Returns what a verb printed, its progress or None, and whether it has ended.
nb::tuple news_of(VerbCall& call, double seconds) {
  VerbCall::News news;
  {
    const WithoutLock free;
    news = call.wait(seconds);
  }
  nb::object seen = nb::none();
  if (news.seen) {
    const Progress& p = news.seen->progress;
    seen = nb::make_tuple(p.counts.closed(), p.counts.found, p.rows, news.seen->rows_per_second);
  }
  return nb::make_tuple(news.said, seen, news.has_ended);
}

}  // namespace

void bind_rows(nb::module_& m);        // row_bindings.cpp
void bind_row_export(nb::module_& m);  // row_export.cpp
void bind_audio_rows(nb::module_& m);  // audio_bindings.cpp
void bind_features(nb::module_& m);    // feature_bindings.cpp
void bind_streams(nb::module_& m);     // stream_bindings.cpp
void bind_graphs(nb::module_& m);      // graph_bindings.cpp
void bind_host(nb::module_& m);        // python_host.cpp

NB_MODULE(_melflow, m) {
  // A worker process of a DataLoader ends while its rows are still open.
  nb::set_leak_warnings(false);
  bind_rows(m);
  bind_row_export(m);
  bind_audio_rows(m);
  bind_features(m);
  bind_streams(m);
  bind_graphs(m);
  bind_host(m);
  m.attr("version") = kVersion;
  m.def("with_arguments", &with_arguments);
  m.def("without_secrets", [](const std::string& text) { return without_secrets(text); });
  m.def("with_escaped_user", &with_escaped_user);
  m.def("open_input", &open_input, nb::arg("path"), nb::arg("may_be_pipe"));
  m.def("load_plugin", [](const std::string& path) {
    const WithoutLock free;
    if (const std::string wrong = load_plugin(path); !wrong.empty()) throw ConfigError(wrong);
  });
  config_error = nb::exception<ConfigError>(m, "ConfigError", PyExc_ValueError).release().ptr();
  run_error = nb::exception<RunError>(m, "RunError", PyExc_RuntimeError).release().ptr();
  nb::register_exception_translator(&translate);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end_with_python));

  nb::class_<VerbCall>(m, "VerbCall")
      .def(
          "__init__",
          [](VerbCall* self, std::vector<std::string> arguments, std::string input) {
            const WithoutLock free;
            new (self) VerbCall(std::move(arguments), std::move(input));
          },
          nb::arg("arguments"), nb::arg("input"))
      .def("wait", &news_of, nb::arg("seconds"))
      .def("stop",
           [](VerbCall& call) {
             // At the end of Python, end_with_python() waits for the verb.
             if (python_ends()) return call.ask_to_stop();
             const WithoutLock free;
             call.stop();
           })
      .def("status", &VerbCall::status)
      .def("printed", &VerbCall::printed);
  nb::class_<BufferPool>(m, "Memory").def("__init__", [](BufferPool* self) {
    new (self) BufferPool(std::numeric_limits<std::size_t>::max());
  });
  nb::class_<BatchRun>(m, "BatchRun")
      .def(
          "__init__",
          [](BatchRun* self, std::string pipeline, std::string text, const Texts& vars,
             const Texts& sets, Texts options, std::optional<int> workers, std::uint64_t epoch,
             std::uint64_t skip, std::optional<std::uint64_t> order,
             std::shared_ptr<BufferPool> pool, std::string split, std::size_t rank,
             std::size_t ranks) {
            const WithoutLock free;
            new (self) BatchRun({std::move(pipeline), std::move(text), assignments(vars),
                                 assignments(sets), std::move(options), workers, epoch, skip, order,
                                 std::move(pool), std::move(split), rank, ranks});
          },
          nb::arg("pipeline"), nb::arg("text"), nb::arg("vars"), nb::arg("sets"),
          nb::arg("options"), nb::arg("workers").none(), nb::arg("epoch"), nb::arg("skip"),
          nb::arg("order").none(), nb::arg("memory"), nb::arg("split"), nb::arg("rank"),
          nb::arg("ranks"))
      .def("take", &take, nb::arg("seconds"))
      .def_static("check",
                  [](std::string pipeline, std::string text, const Texts& vars, const Texts& sets,
                     Texts options, std::optional<int> workers) {
                    const WithoutLock free;
                    BatchRun::Checked is =
                        BatchRun::check({std::move(pipeline), std::move(text), assignments(vars),
                                         assignments(sets), std::move(options), workers});
                    return std::pair(is.has_buckets, std::move(is.warnings));
                  })
      .def_static("list",
                  [](std::string pipeline, std::string text, const Texts& vars, const Texts& sets) {
                    Listing list;
                    {
                      const WithoutLock free;
                      list = BatchRun::list({std::move(pipeline), std::move(text),
                                             assignments(vars), assignments(sets)});
                    }
                    return dict_of(list);
                  })
      .def("stop", &BatchRun::stop, nb::call_guard<WithoutLock>())
      .def("warnings", &BatchRun::take_warnings)
      .def("report", &report_of)
      .def("listing", [](const BatchRun& r) {
        Listing list;
        {
          const WithoutLock free;
          list = r.listing();
        }
        return dict_of(list);
      });
}
