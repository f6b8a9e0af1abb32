// Configurations of ESPnet, FunASR, WeNet and WeSpeaker, and the statistics beside them:
// feats_stats of ESPnet (.npz, of arrays of numbers alone), am.mvn of FunASR (a text of Kaldi's),
// global_cmvn of WeNet (JSON, or a text of Kaldi's).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "pipeline/base/text.h"
#include "pipeline/options/option_type.h"
#include "stages/files/npy_array.h"
#include "stages/model_files/archive_member.h"
#include "stages/model_files/front_end_class.h"
#include "stages/model_files/model_formats.h"
#include "stages/model_files/model_text.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;

using Numbers = std::vector<double>;

Value list_of(const Numbers& numbers, const Mark& mark) {
  std::vector<Value> items;
  for (const double v : numbers) items.push_back(Value::scalar(number_text(v), mark));
  return Value::list(std::move(items), mark);
}

// The path of a file that a configuration names: as it is, or of that name beside the
// configuration; "" where there is none.
std::string found_beside(const std::string& folder, const std::string& named) {
  const fs::path path(named);
  for (const fs::path& at : {fs::path(folder) / path, fs::path(folder) / path.filename()})
    if (std::error_code error; fs::is_regular_file(at, error)) return at.string();
  return {};
}

// Reads the numbers of "name ... [ 1 2 3 ]" in a text of Kaldi's; none where it is another one.
Numbers numbers_after(std::string_view text, std::string_view name) {
  Numbers out;
  std::size_t at = text.find(name);
  at = at == text.npos ? at : text.find('[', at);
  const std::size_t end = at == text.npos ? at : text.find(']', at);
  if (end == text.npos) return out;
  std::string_view rest = text.substr(at + 1, end - at - 1);
  for (;;) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    if (rest.empty()) return out;
    double number = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (read.ec != std::errc() || !std::isfinite(number)) return {};
    rest.remove_prefix(static_cast<std::size_t>(read.ptr - rest.data()));
    out.push_back(number);
  }
}

void read_am_mvn(const std::string& path, FileSurroundings& beside, ModelInstance& out,
                 Problems& problems) {
  const std::string text = read_model_bytes(path);
  beside.read_too += text;
  const Mark mark{std::make_shared<const std::string>(path), 0, 0};
  const Numbers shift = numbers_after(text, "<AddShift>"), scale = numbers_after(text, "<Rescale>");
  if (shift.empty() || shift.size() != scale.size() ||
      std::find(scale.begin(), scale.end(), 0.0) != scale.end())
    return problems.add(mark,
                        "this is no am.mvn: it needs <AddShift> and <Rescale> with as many "
                        "numbers in [ ], none of those of <Rescale> 0");
  out.keys.set("cmvn", Value::map({{"shift", list_of(shift, mark), mark},
                                   {"scale", list_of(scale, mark), mark}},
                                  mark));
}

// Sets `mean` and `std` of a map: those of the values whose count, sums and sums of squares these
// are. Variances are 1e-20 at least, as those of ESPnet and WeNet.
void set_statistics(const Numbers& count, const Numbers& sum, const Numbers& square, Value& to,
                    const Mark& mark, Problems& problems) {
  if (count.size() != 1 || !(count[0] > 0) || sum.empty() || sum.size() != square.size())
    return problems.add(mark, "needs a count above 0, and as many sums as sums of squares");
  Numbers mean, deviation;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    mean.push_back(sum[i] / count[0]);
    deviation.push_back(
        std::sqrt(std::max(square[i] / count[0] - mean.back() * mean.back(), 1e-20)));
  }
  to.set("mean", list_of(mean, mark));
  to.set("std", list_of(deviation, mark));
}

void read_feats_stats(const std::string& path, FileSurroundings& beside, Value& conf,
                      Problems& problems) {
  const Mark mark{std::make_shared<const std::string>(path), 0, 0};
  beside.read_too += read_model_bytes(path);
  std::vector<Numbers> read;
  try {
    for (const char* name : {"count.npy", "sum.npy", "sum_square.npy"}) {
      const auto member = archive_member(path, name);
      if (!member) throw RunError(fmt::format("{}: has no {}", path, name));
      read.push_back(npy_array_of(*member, path + "/" + name).values);
    }
  } catch (const RunError& error) {
    return problems.add(mark, error.what());
  }
  set_statistics(read[0], read[1], read[2], conf, mark, problems);
}

// The numbers of an entry: a list, or one number; none where it is something else.
Numbers numbers_at(const Value& map, std::string_view key) {
  Numbers out;
  const Value* of = map.find(key);
  if (of == nullptr) return out;
  for (const Value& v : of->is_list() ? of->items() : std::vector{*of})
    if (!detail::parse_number(v, out.emplace_back()).empty()) return {};
  return out;
}

// Sums that tools/compute_cmvn_stats.py of WeNet or compute-cmvn-stats of Kaldi collected: JSON of
// mean_stat, var_stat and frame_num, or "[ sums, count, sums of squares, 0 ]".
void read_global_cmvn(const std::string& path, FileSurroundings& beside, Value& cmvn,
                      Problems& problems) {
  const Mark mark{std::make_shared<const std::string>(path), 0, 0};
  const std::string text = read_model_bytes(path);
  beside.read_too += text;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '{') {
    const Value root = read_model_text(text, path, problems);
    return set_statistics(numbers_at(root, "frame_num"), numbers_at(root, "mean_stat"),
                          numbers_at(root, "var_stat"), cmvn, mark, problems);
  }
  const Numbers all = numbers_after(text, "");
  if (all.size() < 4 || all.size() % 2 != 0)
    return problems.add(mark,
                        "this is no global_cmvn: neither JSON with mean_stat, var_stat and "
                        "frame_num, nor Kaldi's text [ sums count squares 0 ]");
  const auto half = static_cast<std::ptrdiff_t>(all.size() / 2);
  set_statistics({all[all.size() / 2 - 1]}, {all.begin(), all.begin() + half - 1},
                 {all.begin() + half, all.end() - 1}, cmvn, mark, problems);
}

// The statistics of WeNet's layer GlobalCMVN, which are read where the user asks for them.
void add_global_cmvn(const Value& root, FileSurroundings& beside, ModelInstance& out,
                     Problems& problems) {
  const Value* conf = root.find("cmvn_conf");
  std::string named = text_at(conf != nullptr && conf->is_map() ? *conf : root, "cmvn_file");
  if (named.empty() && text_at(root, "cmvn") != "global_cmvn") return;
  const Value* given = beside.given->find("cmvn");
  Value cmvn = Value::map({{"is_there", Value::scalar("true"), out.mark}}, out.mark);
  if (given != nullptr && given->text() == "global") {
    const std::string path = found_beside(beside.folder, named.empty() ? "global_cmvn" : named);
    if (path.empty())
      problems.add(given->mark(), fmt::format("cmvn: there is no {} beside the file",
                                              named.empty() ? "global_cmvn" : excerpt(named)));
    else
      read_global_cmvn(path, beside, cmvn, problems);
  }
  out.keys.set("global_cmvn", std::move(cmvn));
}

}  // namespace

std::optional<ModelInstance> espnet_instance(const Value& root, FileSurroundings& beside,
                                             Problems& problems) {
  const bool is_speech = root.find("feats_extract") == nullptr;
  const Value* conf = root.find(is_speech ? "frontend_conf" : "feats_extract_conf");
  const Value* of = root.find(is_speech ? "frontend" : "feats_extract");
  if (of == nullptr) return std::nullopt;
  const std::string name = of->text();
  const bool is_funasr =
      name == "WavFrontend" || name == "WavFrontendOnline" || name == "wav_frontend";
  ModelInstance out{is_funasr ? &kFunasr : &kEspnet,
                    is_funasr                                                    ? "WavFrontend"
                    : is_speech && name == "default"                             ? "DefaultFrontend"
                    : !is_speech && (name == "fbank" || name == "log_mel_fbank") ? "LogMelFbank"
                                                                                 : name,
                    of->mark(), Value::map({}, of->mark())};
  if (conf != nullptr && conf->is_map()) out.keys = *conf;
  if (is_funasr) {
    std::string named = text_at(out.keys, "cmvn_file");
    if (const Value* given = beside.given->find("cmvn_file")) named = given->text();
    const bool is_named = !named.empty() && named != "null";
    const std::string path = found_beside(beside.folder, is_named ? named : "am.mvn");
    if (!path.empty()) read_am_mvn(path, beside, out, problems);
    if (path.empty() && is_named)
      problems.add(of->mark(),
                   fmt::format("cmvn_file: there is no {} beside the file", excerpt(named)));
    return out;
  }
  const Value* normalize = root.find("normalize");
  if (normalize == nullptr || !normalize->is_scalar()) return out;
  out.keys.set("normalize", Value::scalar(normalize->text(), normalize->mark(), true));
  Value norm = Value::map({}, normalize->mark());
  if (const Value* given = root.find("normalize_conf"); given != nullptr && given->is_map())
    norm = *given;
  if (normalize->text() == "global_mvn") {
    std::string named = text_at(norm, "stats_file");
    if (const Value* given = beside.given->find("normalize_conf.stats_file")) named = given->text();
    const std::string path = named.empty() ? "" : found_beside(beside.folder, named);
    if (path.empty())
      problems.add(normalize->mark(),
                   fmt::format("normalize: global_mvn needs {}, which is not beside the file",
                               named.empty() ? "normalize_conf.stats_file" : excerpt(named)));
    else
      read_feats_stats(path, beside, norm, problems);
  }
  out.keys.set("normalize_conf", norm);
  return out;
}

std::optional<ModelInstance> wenet_instance(const Value& root, FileSurroundings& beside,
                                            Problems& problems) {
  const auto add = [](ModelInstance& out, const Value* from, const char* key, const char* as) {
    if (const Value* value = from == nullptr ? nullptr : from->find(key)) out.keys.set(as, *value);
  };
  if (const Value* data = root.find("dataset_conf")) {
    const Value* conf = data->find("fbank_conf");
    const std::string kind = text_at(*data, "feats_type");
    if (conf == nullptr || !(kind.empty() || kind == "fbank")) {
      problems.add(data->mark(), "of WeNet fbank_conf alone is read, with feats_type fbank");
      return ModelInstance{&kWenet, "", data->mark(), Value::map({})};
    }
    ModelInstance out{&kWenet, "compute_fbank of WeNet", conf->mark(), *conf};
    add(out, data->find("resample_conf"), "resample_rate", "resample_rate");
    add_global_cmvn(root, beside, out, problems);
    return out;
  }
  if (const Value* data = root.find("dataset_args")) {
    const Value* conf = data->find("fbank_args");
    const std::string kind = text_at(*data, "frontend");
    if (conf == nullptr || !(kind.empty() || kind == "fbank")) {
      problems.add(data->mark(), "of WeSpeaker fbank_args alone is read, with frontend fbank");
      return ModelInstance{&kWenet, "", data->mark(), Value::map({})};
    }
    ModelInstance out{&kWenet, "compute_fbank of WeSpeaker", conf->mark(), *conf};
    add(out, data, "resample_rate", "resample_rate");
    add(out, data, "cmvn", "cmvn");
    add(out, data, "cmvn_args", "cmvn_args");
    return out;
  }
  return std::nullopt;
}

}  // namespace melflow
