// melflow sweep: runs a pipeline with every combination of some values, and compares the speeds.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/profile/figures.h"
#include "apps/report/format.h"
#include "apps/report/limits_text.h"
#include "apps/report/printing.h"
#include "apps/report/rate_chart.h"
#include "apps/report/report_json.h"
#include "apps/report/svg.h"
#include "apps/report/verdicts_text.h"
#include "apps/usage_errors.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/trials.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/written_file.h"
#include "pipeline/base/text.h"

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

/// An option and its values.
struct Varied {
  std::string option;
  std::vector<std::string> values;
};

// Splits at commas outside of brackets: lists and maps are values, too.
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

// Combines every value of each option with those of the others; the last one varies fastest.
std::vector<Settings> combinations(const std::vector<Varied>& options) {
  std::vector<Settings> out(1);
  for (const Varied& o : options) {
    std::vector<Settings> longer;
    for (const Settings& before : out)
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

// Appends a figure of a run, if the run has it.
void add_figure(std::vector<double>& to, const Json& report, const std::string& place) {
  const Json* at = find_in_report(report, place);
  if (at == nullptr) return;
  if (!at->is_number())
    throw UsageError(fmt::format("--figure: {} is not a number in the report", excerpt(place)));
  to.push_back(at->get<double>());
}

// Whether only the size of the corpus varies: then rows are sorted by size, and each is compared
// with the smallest.
bool varies_size(const std::vector<Varied>& options) {
  return options.size() == 1 &&
         (options[0].option.ends_with(".limit") || options[0].option.ends_with(".count"));
}

struct Measured {
  Settings changes;
  std::string cache;                         ///< "empty" or "filled"; "": no cache is filled
  std::vector<double> rates;                 ///< files per second of each run
  std::vector<std::vector<double>> figures;  ///< per figure, the value of each run that has it
};

// Whether a run stored decoded audio for later runs.
bool has_filled_cache(const RunReport& report) {
  return std::any_of(report.stages.begin(), report.stages.end(), [](const StageReport& s) {
    const Value* added = summary_of(s, "added");
    return added != nullptr && added->text() != "0";
  });
}

void check_figures(const std::vector<Measured>& measured, const std::vector<std::string>& figures) {
  for (std::size_t f = 0; f < figures.size(); ++f)
    if (std::all_of(measured.begin(), measured.end(),
                    [f](const Measured& m) { return m.figures[f].empty(); }))
      throw UsageError(
          fmt::format("--figure: the report of a run has no {}; `melflow run --json` shows what it "
                      "has",
                      excerpt(figures[f])));
}

// Runs all combinations once, then all of them again, so that changes on the machine affect all
// equally. A combination that fills a cache is run again with the filled cache.
std::vector<Measured> measure(const SweepArguments& arguments, const std::vector<Varied>& options,
                              const Trials& trials) {
  std::vector<Measured> out, with_cache;
  const std::vector<std::vector<double>> no_figures(arguments.figures.size());
  const std::vector<Settings> all = combinations(options);
  for (const Settings& c : all) {
    trials.check(c);
    out.push_back({c, {}, {}, no_figures});
  }
  trials.show_warnings(all);
  with_cache = out;
  const auto run = [&](Measured& m, Trials::Cache cache) {
    Json document;
    const RunReport report = trials.run(m.changes, &document, cache);
    m.rates.push_back(Trials::rate(report));
    for (std::size_t f = 0; f < arguments.figures.size(); ++f)
      add_figure(m.figures[f], document, arguments.figures[f]);
    return has_filled_cache(report);
  };
  for (int round = 0; round < arguments.repeat; ++round) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (run(out[i], Trials::Cache::kept)) {
        out[i].cache = "empty";
        with_cache[i].cache = "filled";
        run(with_cache[i], Trials::Cache::removed);
      }
      trials.clear();
    }
    if (round == 0) check_figures(out, arguments.figures);
  }
  for (Measured& m : with_cache)
    if (!m.rates.empty()) out.push_back(std::move(m));
  const bool by_size = varies_size(options);
  std::stable_sort(out.begin(), out.end(), [by_size](const Measured& a, const Measured& b) {
    const auto size = [](const Measured& m) {
      return std::strtod(m.changes[0].second.c_str(), nullptr);
    };
    return by_size ? size(a) < size(b) : median(a.rates) > median(b.rates);
  });
  return out;
}

std::string figure_text(double value) {
  return value >= 1000 ? count_text(static_cast<std::size_t>(std::llround(value)))
                       : fmt::format("{:.4g}", value);
}

// Returns a row's rate divided by the first one's, which is the fastest or the smallest corpus.
// Sizes of a corpus with a filled cache are compared with each other.
double share_of_first(const std::vector<Measured>& measured, const Measured& m, bool by_size) {
  const auto first = std::find_if(measured.begin(), measured.end(), [&](const Measured& other) {
    return !by_size || other.cache == m.cache;
  });
  return median(m.rates) / median(first->rates);
}

std::string table_text(const std::vector<Measured>& measured,
                       const std::vector<std::string>& figures, bool by_size) {
  std::vector<std::vector<std::string>> rows(1);
  for (const auto& [option, value] : measured.front().changes) rows[0].push_back(option);
  const bool has_cache = std::any_of(measured.begin(), measured.end(),
                                     [](const Measured& m) { return !m.cache.empty(); });
  if (has_cache) rows[0].emplace_back("cache");
  rows[0].insert(rows[0].end(), {"files/s", "least", "greatest",
                                 by_size ? "of the least" : "of the best", "ms/file"});
  rows[0].insert(rows[0].end(), figures.begin(), figures.end());
  for (const Measured& m : measured) {
    auto& row = rows.emplace_back();
    for (const auto& [option, value] : m.changes) row.push_back(value);
    if (has_cache) row.push_back(m.cache);
    const auto [least, greatest] = std::minmax_element(m.rates.begin(), m.rates.end());
    row.insert(row.end(), {rate_text(median(m.rates)), rate_text(*least), rate_text(*greatest),
                           fmt::format("{:.2f}", share_of_first(measured, m, by_size)),
                           milliseconds_text(1 / median(m.rates))});
    for (const auto& values : m.figures)
      row.push_back(values.empty() ? "" : figure_text(median(values)));
  }
  return aligned(rows, 0);
}

// Says whether the best is ahead by more than chance.
std::string advice_text(const std::vector<Measured>& measured) {
  const auto spread =
      std::minmax_element(measured.front().rates.begin(), measured.front().rates.end());
  std::size_t alike = 0;
  for (const Measured& m : measured)
    alike += *std::max_element(m.rates.begin(), m.rates.end()) >= *spread.first ? 1 : 0;
  if (alike <= 1)
    return "\nthe first is the fastest: its slowest run beats every other one's best\n";
  return fmt::format(
      "\nwhich of the first {} is fastest is not clear: their runs overlap; raise --repeat\n",
      alike);
}

Json sweep_json(const std::vector<Measured>& measured, const std::vector<std::string>& figures,
                bool by_size) {
  Json out = Json::array();
  for (const Measured& m : measured) {
    Json one{{"set", settings_json(m.changes)},
             {"files_per_second", {{"median", median(m.rates)}, {"runs", m.rates}}}};
    if (!m.cache.empty()) one["cache"] = m.cache;
    if (by_size) one["of_the_least"] = share_of_first(measured, m, by_size);
    for (std::size_t f = 0; f < figures.size(); ++f)
      one["figures"][figures[f]] = {
          {"median", m.figures[f].empty() ? Json() : Json(median(m.figures[f]))},
          {"runs", m.figures[f]}};
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
    if (m.cache == "filled") continue;  // each combination has only one cell
    const auto [least, greatest] = std::minmax_element(m.rates.begin(), m.rates.end());
    const std::size_t column = are_two ? place(out.columns, m.changes[1].second) : 0;
    out.cells[place(out.rows, m.changes[0].second)][column] = {median(m.rates), *least, *greatest};
  }
  return out;
}

// A page or a drawing, by the extension; whether it can be written is checked before the runs.
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
          fmt::format("-o: a picture shows one or two options, but {} are varied; omit -o, or "
                      "--vary {} and what follows",
                      options.size(), options[2].option));
    try {
      file_.emplace(path, is_page_ ? "<title>melflow" : kSvgMark,
                    std::vector{arguments.trial.plan.file});
    } catch (const RunError& e) {
      throw RunError(fmt::format("-o: {}", e.what()));
    }
  }
  void keep_off(const std::vector<std::string>& outputs) { file_->keep_off(outputs); }
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
  return with_trials(arguments.trial, [&](const Trials& trials) {
    if (picture) picture->keep_off(trials.outputs());
    const std::vector<Measured> measured = measure(arguments, options, trials);
    const bool by_size = varies_size(options);
    const std::string table = table_text(measured, arguments.figures, by_size);
    if (picture) picture->write(chart_of(options, measured, arguments.trial.plan.file), table);
    if (arguments.trial.json)
      put(stdout, json_text(sweep_json(measured, arguments.figures, by_size)));
    else
      put(stdout,
          table + (!by_size && measured.size() > 1 && arguments.repeat > 1 ? advice_text(measured)
                                                                           : ""));
    return kDone;
  });
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
                  "edges.mel.mean_depth; empty where a combination's report lacks it")
      ->type_name("NAME");
  verb.add_option("-o,--output", arguments->picture,
                  "draws the files per second, of one option as bars, of two as a map with a cell "
                  "for each combination; a page or a drawing alone")
      ->type_name("FILE.html|FILE.svg");
  verb.add_option("--repeat", arguments->repeat, "how often each combination is run, in turn")
      ->type_name("N")
      ->check(is_integer(1, 1000))
      ->capture_default_str();
  arguments->trial.add_to(verb);
  verb.footer(
      "The fastest comes first; files/s is the median of its runs, while the stages worked or "
      "audio\n"
      "was loaded. What fills a cache of decoded audio is run with the cache empty and filled. "
      "What "
      "is\n"
      "written goes into a folder beside the output, which is removed at the end.\n"
      "\n"
      "Example:\n"
      "  DATA=clips OUT=f.h5 melflow sweep speech_16k_80mel --vary workers=1,2,4 --vary "
      "files.files_per_task=1,16 -o sweep.html");
  return [arguments] { return sweep(*arguments); };
}

}  // namespace melflow
