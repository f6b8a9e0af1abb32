// row_steps.h - the steps on rows that may follow mel in a front end, with their options.
//
// In:  the name of a stage and its options; what is known of the rows that arrive.
// Out: problems of the options; the step; what is known of the rows that it gives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stages/features/mel/cepstrum.h"
#include "stages/features/mel/delta_step.h"
#include "stages/features/mel/fit_step.h"
#include "stages/features/mel/pcen_step.h"
#include "stages/features/mel/sliding_step.h"
#include "stages/features/mel/stack_step.h"

namespace melflow {

using RowStepOptions = std::variant<CepstrumOptions, PcenOptions, DeltaOptions, SlidingOptions,
                                    StackOptions, FitOptions>;

template <>
std::span<const OptionEntry<CepstrumOptions>> option_table<CepstrumOptions>();
template <>
std::span<const OptionEntry<PcenOptions>> option_table<PcenOptions>();
template <>
std::span<const OptionEntry<DeltaOptions>> option_table<DeltaOptions>();
template <>
std::span<const OptionEntry<SlidingOptions>> option_table<SlidingOptions>();
template <>
std::span<const OptionEntry<StackOptions>> option_table<StackOptions>();
template <>
std::span<const OptionEntry<FitOptions>> option_table<FitOptions>();

// What steps have to know of rows.
struct RowShape {
  int columns = 0;
  int energy_column = -1;     // -1: none
  std::string axis = "band";  // what a column is: "band", "bin", "coefficient" or "feature"
  std::string unit;           // "power", "ln power, normalized"
  double per_second = 0;      // rows
};

// The default options of the step of a stage: mfcc, pcen, deltas, sliding_cmvn, stack or fit_rows;
// nothing for another name.
std::optional<RowStepOptions> row_step_of(std::string_view stage);

// The problems of the options for rows like these, without those of ranges; empty if the step can
// be made.
std::vector<OptionProblem> check(const CepstrumOptions& options, const RowShape& rows);
std::vector<OptionProblem> check(const PcenOptions& options, const RowShape& rows);
std::vector<OptionProblem> check(const DeltaOptions& options, const RowShape& rows);
std::vector<OptionProblem> check(const SlidingOptions& options, const RowShape& rows);
std::vector<OptionProblem> check(const StackOptions& options, const RowShape& rows);
std::vector<OptionProblem> check(const FitOptions& options, const RowShape& rows);

// The form that an output records: options that follow from others or from the rows are set, and
// those that give the same rows are the same.
CepstrumOptions canonical(const CepstrumOptions& options, const RowShape& rows);
PcenOptions canonical(const PcenOptions& options, const RowShape& rows);
DeltaOptions canonical(const DeltaOptions& options, const RowShape& rows);
SlidingOptions canonical(const SlidingOptions& options, const RowShape& rows);
StackOptions canonical(const StackOptions& options, const RowShape& rows);
FitOptions canonical(const FitOptions& options, const RowShape& rows);

// Makes the step of canonical options and changes `rows` to describe its result.
std::shared_ptr<const FinishStep> make_step(const CepstrumOptions& options, RowShape& rows);
std::shared_ptr<const FinishStep> make_step(const PcenOptions& options, RowShape& rows);
std::shared_ptr<const FinishStep> make_step(const DeltaOptions& options, RowShape& rows);
std::shared_ptr<const FinishStep> make_step(const SlidingOptions& options, RowShape& rows);
std::shared_ptr<const FinishStep> make_step(const StackOptions& options, RowShape& rows);
std::shared_ptr<const FinishStep> make_step(const FitOptions& options, RowShape& rows);

// Recordings with fewer rows give none.
std::int64_t least_rows(const RowStepOptions& options);

}  // namespace melflow
