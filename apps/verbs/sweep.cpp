// melflow sweep: a pipeline with every combination of some values, run in turn, and how fast each was.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/profile/figures.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/rate_chart.h"
#include "apps/report/report_json.h"
#include "apps/usage_errors.h"
#include "apps/verbs/trials.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/written_file.h"
#include "pipeline/text.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostCombinations = 1000;

struct SweepArguments {
  TrialArguments trial{.seconds = 10};
  std::vector<std::string> vary, figures;
  std::string picture;  ///< a file; "": none
  int repeat = 3;
};

/// An option and the values that it gets.
struct Varied {
  std::string option;
  std::vector<std::string> values;
};

// At commas outside of brackets: lists and maps are values, too.
std::vector<std::string> values_of(const std::string& text) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && depth == 0)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

Varied varied(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == 0 || equals == argument.npos || equals + 1 == argument.size())
    throw UsageError(
        fmt::format("--vary: {} is not of the form NODE.OPTION=VALUE,VALUE", excerpt(argument)));
  Varied out{argument.substr(0, equals), values_of(argument.substr(equals + 1))};
  if (std::any_of(out.values.begin(), out.values.end(), [](const auto& v) { return v.empty(); }))
    throw UsageError(fmt::format("--vary: {} has an empty value", excerpt(argument)));
  for (const std::string& v : out.values)
    if (std::count(out.values.begin(), out.values.end(), v) > 1)
      throw UsageError(fmt::format("--vary: {} has the value {} twice; leave one out",
                                   excerpt(argument), excerpt(v)));
  return out;
}

// Every value of each with every one of the others; the last option changes first.
std::vector<Trials::Changes> combinations(const std::vector<Varied>& options) {
  std::vector<Trials::Changes> out(1);
  for (const Varied& o : options) {
    std::vector<Trials::Changes> longer;
    for (const Trials::Changes& before : out)
      for (const std::string& value : o.values) {
        longer.push_back(before);
        longer.back().emplace_back(o.option, value);
      }
    out = std::move(longer);
    if (out.size() > kMostCombinations)
      throw UsageError(fmt::format("--vary: these are more than {} combinations",
                                   count_text(kMostCombinations)));
  }
  return out;
}

// A number of the JSON report by its place there: "memory.resident_peak",
// "stages.mel.call_seconds.p99", where an element of a list goes by its name.
double figure_of(const Json& report, const std::string& place) {
  const Json* at = &report;
  for (std::size_t begin = 0; begin <= place.size();) {
    const std::size_t end = std::min(place.find('.', begin), place.size());
    const std::string name = place.substr(begin, end - begin);
    const Json* next = nullptr;
    if (at->is_object() && at->contains(name)) next = &(*at)[name];
    if (at->is_array())
      for (const Json& element : *at)
        if (element.value("name", "") == name) next = &element;
    if (next == nullptr)
      throw UsageError(
          fmt::format("--figure: the report of a run has no {}; `melflow run --json` "
                      "shows what it has",
                      excerpt(place)));
    at = next;
    begin = end + 1;
  }
  if (!at->is_number())
    throw UsageError(fmt::format("--figure: {} is not a number in the report", excerpt(place)));
  return at->get<double>();
}

struct Measured {
  Trials::Changes changes;
  std::vector<double> rates;                 ///< files per second of each run
  std::vector<std::vector<double>> figures;  ///< of each figure, of each run
};

// All of them once, then all of them again, so that what changes on the machine meanwhile meets
// every one.
std::vector<Measured> measure(const SweepArguments& arguments, const std::vector<Varied>& options,
                              const Trials& trials) {
  std::vector<Measured> out;
  for (Trials::Changes& c : combinations(options))
    out.push_back({std::move(c), {}, std::vector<std::vector<double>>(arguments.figures.size())});
  for (const Measured& m : out) trials.check(m.changes);
  for (int round = 0; round < arguments.repeat; ++round)
    for (Measured& m : out) {
      Json document;
      m.rates.push_back(Trials::rate(trials.run(m.changes, &document)));
      for (std::size_t f = 0; f < arguments.figures.size(); ++f)
        m.figures[f].push_back(figure_of(document, arguments.figures[f]));
    }
  std::stable_sort(out.begin(), out.end(), [](const Measured& a, const Measured& b) {
    return median(a.rates) > median(b.rates);
  });
  return out;
}

std::string figure_text(double value) {
  return value >= 1000 ? count_text(static_cast<std::size_t>(std::llround(value)))
                       : fmt::format("{:.4g}", value);
}

std::string table_text(const std::vector<Measured>& measured,
                       const std::vector<std::string>& figures) {
  std::vector<std::vector<std::string>> rows(1);
  for (const auto& [option, value] : measured.front().changes) rows[0].push_back(option);
  rows[0].insert(rows[0].end(), {"files/s", "least", "greatest", "of the best"});
  rows[0].insert(rows[0].end(), figures.begin(), figures.end());
  const double best = median(measured.front().rates);
  for (const Measured& m : measured) {
    auto& row = rows.emplace_back();
    for (const auto& [option, value] : m.changes) row.push_back(value);
    const auto [least, greatest] = std::minmax_element(m.rates.begin(), m.rates.end());
    row.insert(row.end(), {rate_text(median(m.rates)), rate_text(*least), rate_text(*greatest),
                           fmt::format("{:.2f}", median(m.rates) / best)});
    for (const auto& values : m.figures) row.push_back(figure_text(median(values)));
  }
  std::vector<std::size_t> width(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      out += fmt::format("{}{:>{}}", c == 0 ? "" : "  ", row[c], width[c]);
    out += '\n';
  }
  return out;
}

// Whether the best is more than chance ahead of what is the pipeline's own.
std::string advice_text(const std::vector<Measured>& measured) {
  const auto spread =
      std::minmax_element(measured.front().rates.begin(), measured.front().rates.end());
  std::size_t alike = 0;
  for (const Measured& m : measured)
    alike += *std::max_element(m.rates.begin(), m.rates.end()) >= *spread.first ? 1 : 0;
  if (alike <= 1)
    return "\nthe first is the fastest: its slowest run beats every other one's best\n";
  return fmt::format(
      "\nthe first {} cannot be told apart: their runs overlap; --repeat says more\n", alike);
}

Json sweep_json(const std::vector<Measured>& measured, const std::vector<std::string>& figures) {
  Json out = Json::array();
  for (const Measured& m : measured) {
    Json one{{"set", Json::object()},
             {"files_per_second", {{"median", median(m.rates)}, {"runs", m.rates}}}};
    for (const auto& [option, value] : m.changes) one["set"][option] = value;
    for (std::size_t f = 0; f < figures.size(); ++f)
      one["figures"][figures[f]] = {{"median", median(m.figures[f])}, {"runs", m.figures[f]}};
    out.push_back(std::move(one));
  }
  return {{"runs", out}};
}

RateChart chart_of(const std::vector<Varied>& options, const std::vector<Measured>& measured,
                   const std::string& pipeline) {
  const bool are_two = options.size() > 1;
  RateChart out{"files per second of " + pipeline,
                options[0].option,
                are_two ? options[1].option : "",
                options[0].values,
                are_two ? options[1].values : std::vector<std::string>{""},
                {}};
  out.cells.assign(out.rows.size(), std::vector<RateChart::Cell>(out.columns.size()));
  const auto place = [](const std::vector<std::string>& values, const std::string& value) {
    return static_cast<std::size_t>(std::find(values.begin(), values.end(), value) -
                                    values.begin());
  };
  for (const Measured& m : measured) {
    const auto [least, greatest] = std::minmax_element(m.rates.begin(), m.rates.end());
    const std::size_t column = are_two ? place(out.columns, m.changes[1].second) : 0;
    out.cells[place(out.rows, m.changes[0].second)][column] = {median(m.rates), *least, *greatest};
  }
  return out;
}

// A page or a drawing, by the ending of its name; that it can be written is known before the runs.
class Picture {
 public:
  Picture(const SweepArguments& arguments, const std::vector<Varied>& options)
      : is_page_(std::filesystem::path(arguments.picture).extension() == ".html") {
    const std::string& path = arguments.picture;
    if (!is_page_ && std::filesystem::path(path).extension() != ".svg")
      throw UsageError(
          fmt::format("-o: {} ends neither in .html nor in .svg; a page or a drawing is written",
                      excerpt(path)));
    if (options.size() > 2)
      throw UsageError(
          fmt::format("-o: a picture shows one or two options, but {} are varied; leave out -o, or "
                      "--vary {} and what follows",
                      options.size(), options[2].option));
    try {
      file_.emplace(path, std::vector{arguments.trial.plan.file});
    } catch (const RunError& e) {
      throw RunError(fmt::format("-o: {}", e.what()));
    }
  }
  void write(const RateChart& chart, const std::string& table) {
    file_->write(is_page_ ? html_page(chart, table) : svg_document(chart));
  }

 private:
  bool is_page_;
  std::optional<WrittenFile> file_;
};

int sweep(const SweepArguments& arguments) {
  std::vector<Varied> options;
  for (const std::string& v : arguments.vary) options.push_back(varied(v));
  std::optional<Picture> picture;
  if (!arguments.picture.empty()) picture.emplace(arguments, options);
  try {
    const Trials trials(arguments.trial);
    const std::vector<Measured> measured = measure(arguments, options, trials);
    if (picture)
      picture->write(chart_of(options, measured, arguments.trial.plan.file),
                     table_text(measured, arguments.figures));
    if (arguments.trial.json)
      put(stdout, json_text(sweep_json(measured, arguments.figures)));
    else
      put(stdout, table_text(measured, arguments.figures) +
                      (measured.size() > 1 && arguments.repeat > 1 ? advice_text(measured) : ""));
    return kDone;
  } catch (const Trials::Interrupted&) {
    complain("stopped; what the trials wrote is removed");
    return kStopped;
  }
}

}  // namespace

Action add_sweep(CLI::App& verb) {
  auto arguments = std::make_shared<SweepArguments>();
  arguments->trial.plan.add_to(verb);
  verb.add_option("--vary", arguments->vary,
                  "an option and the values to try: mel.concurrency=1,2,4; given several times, "
                  "all combinations are tried")
      ->type_name("NODE.OPTION=VALUE,VALUE")
      ->required();
  verb.add_option("--figure", arguments->figures,
                  "adds a column: a number from the JSON report, such as memory.resident_peak or "
                  "stages.mel.call_seconds.p99")
      ->type_name("NAME");
  verb.add_option("-o,--output", arguments->picture,
                  "draws the files per second, of one option as bars, of two as a map with a cell "
                  "for each combination; a page or a drawing alone")
      ->type_name("FILE.html|FILE.svg");
  verb.add_option("--repeat", arguments->repeat, "how often each combination is run, in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  arguments->trial.add_to(verb);
  verb.footer(
      "The fastest comes first; files/s is the median of its runs, while the stages worked. What "
      "is\n"
      "written goes into a folder beside the output, which is removed at the end.\n"
      "\n"
      "Example:\n"
      "  DATA=clips OUT=f.h5 melflow sweep speech_16k_80mel --vary workers=1,2,4 --vary "
      "files.files_per_task=1,16 -o sweep.html");
  return [arguments] { return sweep(*arguments); };
}

}  // namespace melflow
