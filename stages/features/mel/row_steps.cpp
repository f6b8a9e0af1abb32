#include "stages/features/mel/row_steps.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

namespace melflow {
namespace {

constexpr int kMostFrames = 1000;    // of a stacked row
constexpr int kMostRows = 1 << 20;   // that a recording is fitted to
constexpr double kMostValue = 1e30;  // that fills rows up

// name, member, text, unit, effect; range, needs; whether it is recorded

using C = CepstrumOptions;
constexpr OptionEntry<C> kCepstrum[] = {
    {"n_mfcc", &C::n_mfcc,
     "number of cepstral coefficients of a frame, at most as many as mel bands", "", "",
     from_to(1, 4096)},
    {"dct_type", &C::dct_type,
     "type of the discrete cosine transform from bands to coefficients; 2 is usual; 3: as "
     "dct_type=3 of scipy and librosa",
     "", "", from_to(2, 3)},
    {"norm", &C::norm,
     "scaling of the discrete cosine transform; ortho: orthonormal, as in librosa, torchaudio and "
     "Kaldi; none: unscaled, as in scipy with norm=None",
     "", ""},
    {"lifter", &C::lifter,
     "length L of the lifter (see lifter_style), which weights the coefficients so that higher "
     "ones count more; 0: none (Kaldi, HTK: 22)",
     "", "", from_to(0, 1e6)},
    {"lifter_style",
     &C::lifter_style,
     "weight of coefficient i with lifter L; librosa: 1 + L/2 sin(pi (i+1) / L); kaldi: 1 + L/2 "
     "sin(pi i / L)",
     "",
     "",
     kAnyNumber,
     {"lifter", [](const C& o) { return o.lifter > 0; }}},
    {"htk_compat", &C::htk_compat,
     "order of the coefficients; true: coefficient 0 comes last, as in HTK, multiplied by the "
     "square root of 2 unless the energy of mel (use_energy) takes its place; false: it comes "
     "first",
     "", ""},
};

using P = PcenOptions;
constexpr OptionEntry<P> kPcen[] = {
    {"gain", &P::gain,
     "exponent g of the smoothed value m in (x / (m + eps)^g + bias)^power - bias^power, x being "
     "the value of a column; 0: no division",
     "", "", from_to(0, 10)},
    {"bias", &P::bias, "bias in (x / (m + eps)^gain + bias)^power - bias^power; 0: none", "", "",
     from_to(0, 1e9)},
    {"power", &P::power,
     "exponent in (x / (m + eps)^gain + bias)^power - bias^power, which compresses the values; 0: "
     "ln(1 + x / (m + eps)^gain) instead",
     "", "", from_to(0, 10)},
    {"time_constant",
     &P::time_constant,
     "time constant of the smoothing [s]; longer: the level of a column adapts more slowly",
     "",
     "",
     above_to(0, 1e6),
     {},
     [](const P& o) { return !o.b; }},  // recorded as b
    {"b", &P::b,
     "coefficient of the smoothing m[t] = (1 - b) m[t-1] + b x[t]; not set: computed from "
     "time_constant and the rate of the frames",
     "", "", above_to(0, 1)},
    {"eps", &P::eps, "number added to the smoothed value; keeps silence from being divided by 0",
     "", "", above_to(0, 1e9)},
};

using D = DeltaOptions;
constexpr OptionEntry<D> kDeltas[] = {
    {"order", &D::order,
     "highest time derivative that is appended; 2: first and second derivatives", "", "",
     from_to(1, 4)},
    {"width", &D::width,
     "number of frames over which a derivative is taken [frames], odd; larger: smoother", "", "",
     from_to(3, 999)},
    {"method", &D::method,
     "how derivatives are taken; regression: slope of a line through the frames, of slopes for "
     "higher orders (torchaudio, HTK); kaldi: the same, higher orders by one filter (add-deltas); "
     "librosa: of a polynomial of degree order fitted to width frames",
     "", ""},
};

using S = SlidingOptions;
constexpr OptionEntry<S> kSliding[] = {
    {"window", &S::window,
     "number of frames whose mean is subtracted from a frame [frames]; longer: the mean adapts "
     "more slowly",
     "", "", from_to(1, 1 << 20)},
    {"center", &S::center,
     "place of the window; true: around the frame, moved inwards at the ends of the recording or "
     "segment; false: the frame and the window frames before it (Kaldi)",
     "", ""},
    {"min_window",
     &S::min_window,
     "number of frames from the start of the recording or segment on that the window of an early "
     "frame has at least [frames], at most window",
     "",
     "",
     from_to(1, 1 << 20),
     {"center: false", [](const S& o) { return !o.center; }}},
    {"norm_variance", &S::variance,
     "whether the difference is divided by the standard deviation over the window; false: only the "
     "mean is subtracted",
     "", ""},
};

using K = StackOptions;
bool has_value(const K& o) {
  return (o.left > 0 && o.head == K::Head::value) || o.tail == K::Tail::value;
}
constexpr OptionEntry<K> kStack[] = {
    {"frames", &K::frames,
     "number of neighbouring frames that a row joins [frames]; 1: none, frames between rows are "
     "skipped (hop)",
     "", "", from_to(1, kMostFrames)},
    {"hop", &K::hop,
     "distance from the first frame of a row to that of the next [frames]; 1: a row for every "
     "frame; not set: frames, so that rows share none",
     "", "", from_to(1, kMostFrames)},
    {"left", &K::left,
     "frames of the first row that are before the first frame of the recording or window [frames], "
     "less than frames; FunASR: (frames - 1) / 2",
     "", "", from_to(0, kMostFrames - 1)},
    {"head",
     &K::head,
     "what frames before the first are; replicate: copies of the first; value: filled with value",
     "",
     "",
     kAnyNumber,
     {"left", [](const K& o) { return o.left > 0; }}},
    {"tail", &K::tail,
     "the last rows; drop: only rows whose frames are all there; replicate, value: a row for every "
     "hop frames, also begun ones, where frames after the last are copies of the last, or filled "
     "with value",
     "", ""},
    {"value",
     &K::value,
     "value of frames before the first and after the last",
     "",
     "",
     from_to(-kMostValue, kMostValue),
     {"head: value or tail: value", has_value}},
    {"order",
     &K::order,
     "order of the values of a row; frame_major: all columns of the first frame, then those of the "
     "next; band_major: all frames of the first column, then those of the next (SpeechBrain)",
     "",
     "",
     kAnyNumber,
     {"frames above 1", [](const K& o) { return o.frames > 1; }}},
};

using F = FitOptions;
bool has_no_rows(const F& o) { return !o.rows; }
constexpr OptionEntry<F> kFit[] = {
    {"rows", &F::rows,
     "number of rows of every recording or window [rows]: shorter ones are filled up with value, "
     "longer ones lose their last rows; not set: as multiple and extra say",
     "", "", from_to(1, kMostRows)},
    {"multiple",
     &F::multiple,
     "number of which the number of rows becomes a multiple [rows]; see rest",
     "",
     "",
     from_to(1, kMostRows),
     {"no rows", has_no_rows}},
    {"extra",
     &F::extra,
     "rows of value that are added before multiple is applied [rows]; 1: the masked last frame of "
     "NeMo",
     "",
     "",
     from_to(0, kMostRows),
     {"no rows", has_no_rows}},
    {"rest",
     &F::rest,
     "what becomes of rows beyond the last whole multiple; fill: they are filled up with value to "
     "the next one; drop: they are left out",
     "",
     "",
     kAnyNumber,
     {"multiple", [](const F& o) { return o.multiple.has_value() && !o.rows; }}},
    {"value", &F::value,
     "value of the rows that are added, in the unit of the rows that arrive; 0: what normalize of "
     "mel gives for the mean",
     "", "", from_to(-kMostValue, kMostValue)},
};

std::string digits(std::int64_t value) { return std::to_string(value); }

// "width is 4 but must be odd", where `allowed` is the end.
std::vector<OptionProblem> must_be(std::string_view option, std::int64_t value,
                                   const std::string& allowed) {
  const std::string name(option);
  return {{name, name + " is " + digits(value) + " but must be " + allowed}};
}

constexpr double kMostHeld = 256 << 20;  // bytes of rows that a step keeps for each recording

}  // namespace

template <>
std::span<const OptionEntry<C>> option_table<C>() {
  return kCepstrum;
}
template <>
std::span<const OptionEntry<P>> option_table<P>() {
  return kPcen;
}
template <>
std::span<const OptionEntry<D>> option_table<D>() {
  return kDeltas;
}
template <>
std::span<const OptionEntry<S>> option_table<S>() {
  return kSliding;
}
template <>
std::span<const OptionEntry<K>> option_table<K>() {
  return kStack;
}
template <>
std::span<const OptionEntry<F>> option_table<F>() {
  return kFit;
}

std::optional<RowStepOptions> row_step_of(std::string_view stage) {
  const std::pair<std::string_view, RowStepOptions> all[] = {{"mfcc", C{}},   {"pcen", P{}},
                                                             {"deltas", D{}}, {"sliding_cmvn", S{}},
                                                             {"stack", K{}},  {"fit_rows", F{}}};
  for (const auto& [name, options] : all)
    if (name == stage) return options;
  return std::nullopt;
}

// ---- mfcc ---------------------------------------------------------------------------------------

std::vector<OptionProblem> check(const C& o, const RowShape& rows) {
  if (rows.axis != "band")
    return {{"", "needs mel bands, what arrives are " + rows.axis + " columns"}};
  const int bands = rows.columns - (rows.energy_column >= 0 ? 1 : 0);
  if (o.n_mfcc > bands)
    return must_be("n_mfcc", o.n_mfcc, "from 1 to the number of bands (" + digits(bands) + ")");
  return {};
}

C canonical(const C& o, const RowShape&) { return o; }

std::shared_ptr<const FinishStep> make_step(const C& o, RowShape& rows) {
  auto step = cepstrum_step(o, rows.columns, rows.energy_column);
  rows.columns = o.n_mfcc;
  rows.axis = "coefficient";
  rows.unit = "cepstrum of " + rows.unit;
  if (rows.energy_column >= 0) rows.energy_column = o.htk_compat ? o.n_mfcc - 1 : 0;
  return step;
}

// ---- pcen ---------------------------------------------------------------------------------------

std::vector<OptionProblem> check(const P&, const RowShape& rows) {
  const bool is_linear = rows.unit.starts_with("power") || rows.unit.starts_with("amplitude");
  if (!is_linear || rows.unit.find(',') != std::string::npos)
    return {{"", "needs linear bands or bins (power or amplitude), what arrives is in " +
                     rows.unit + "; set log: none and normalize: none in mel"}};
  if (rows.energy_column >= 0)
    return {
        {"", "needs rows without an energy, which is a logarithm; set use_energy: false in mel"}};
  return {};
}

P canonical(const P& o, const RowShape& rows) {
  P out = o;
  if (!out.b && rows.per_second > 0) out.b = pcen_coefficient(o.time_constant, rows.per_second);
  return out;
}

std::shared_ptr<const FinishStep> make_step(const P& o, RowShape& rows) {
  rows.unit = "per-channel energy of " + rows.unit;
  return pcen_step(o);
}

// ---- deltas -------------------------------------------------------------------------------------

std::vector<OptionProblem> check(const D& o, const RowShape& rows) {
  if (o.width % 2 == 0)
    return must_be("width", o.width, "odd: " + digits(o.width - 1) + " or " + digits(o.width + 1));
  if (o.method == D::Method::librosa && o.width <= o.order)
    return must_be("width", o.width, "more than order (" + digits(o.order) + ")");
  // A piece and the rows around it, for every order: kept small, as the budget lacks them.
  const double held = 3.0 * o.order * o.width * rows.columns * (o.order + 2) * sizeof(float);
  if (held > kMostHeld)
    return must_be("width", o.width,
                   "at most " +
                       digits(std::max(3, static_cast<int>(o.width * kMostHeld / held)) | 1) +
                       " for rows of " + digits(rows.columns) + " columns");
  return {};
}

// The first derivative is the same with method kaldi, so it is written the same way.
D canonical(const D& o, const RowShape&) {
  D out = o;
  if (o.order == 1 && o.method == D::Method::kaldi) out.method = D::Method::regression;
  return out;
}

std::shared_ptr<const FinishStep> make_step(const D& o, RowShape& rows) {
  auto step = delta_step(o);
  rows.columns = step->values_out(rows.columns);
  rows.axis = "feature";
  rows.unit += ", with derivatives";
  return step;
}

// ---- sliding_cmvn -------------------------------------------------------------------------------

std::vector<OptionProblem> check(const S& o, const RowShape& rows) {
  if (!o.center && o.min_window > o.window)
    return must_be("min_window", o.min_window, "at most window (" + digits(o.window) + ")");
  // The rows of a window are held for each recording at work, and the budget lacks them.
  const double held = (o.window + 1.0) * rows.columns * sizeof(float);
  if (held > kMostHeld)
    return must_be("window", o.window,
                   "at most " + digits(static_cast<int>(o.window * kMostHeld / held) - 1) +
                       " for rows of " + digits(rows.columns) + " columns");
  return {};
}

S canonical(const S& o, const RowShape&) { return o; }

std::shared_ptr<const FinishStep> make_step(const S& o, RowShape& rows) {
  rows.unit = o.variance ? "standard deviations of " + rows.unit : rows.unit + ", normalized";
  return sliding_step(o);
}

// ---- stack --------------------------------------------------------------------------------------

std::vector<OptionProblem> check(const K& o, const RowShape& rows) {
  if (o.frames == 1 && o.hop.value_or(1) == 1)
    return {{"frames",
             "frames is 1, which with hop: 1 changes nothing; write how many frames a row joins, "
             "or how far rows are apart in hop"}};
  if (o.left >= o.frames)
    return must_be("left", o.left, "less than frames (" + digits(o.frames) + ")");
  constexpr std::int64_t kMostColumns = 1 << 20;
  if (std::int64_t{o.frames} * rows.columns > kMostColumns)
    return must_be("frames", o.frames,
                   "at most " + digits(std::max<std::int64_t>(1, kMostColumns / rows.columns)) +
                       " for rows of " + digits(rows.columns) + " columns");
  return {};
}

K canonical(const K& o, const RowShape&) {
  K out = o;
  out.hop = o.hop.value_or(o.frames);
  return out;
}

std::shared_ptr<const FinishStep> make_step(const K& o, RowShape& rows) {
  if (o.frames > 1) {
    rows.axis = "feature";
    rows.energy_column = -1;
  }
  rows.columns *= o.frames;
  rows.per_second /= o.hop.value_or(o.frames);
  return stack_step(o);
}

// ---- fit_rows -----------------------------------------------------------------------------------

std::vector<OptionProblem> check(const F& o, const RowShape&) {
  if (!o.rows && o.multiple.value_or(1) == 1 && o.extra == 0)
    return {{"", "needs rows, multiple above 1 or extra: how many rows there are to be"}};
  return {};
}

F canonical(const F& o, const RowShape&) { return o; }

std::shared_ptr<const FinishStep> make_step(const F& o, RowShape&) { return fit_step(o); }

std::int64_t least_rows(const RowStepOptions& options) {
  if (const auto* d = std::get_if<D>(&options))
    return d->method == D::Method::librosa ? d->width : 1;
  if (const auto* k = std::get_if<K>(&options))
    return k->tail == K::Tail::drop ? std::max(1, k->frames - k->left) : 1;
  if (const auto* f = std::get_if<F>(&options)) {
    const bool drops = !f->rows && f->rest == F::Rest::drop;
    return drops ? std::max(1, f->multiple.value_or(1) - f->extra) : 1;
  }
  return 0;
}

}  // namespace melflow
