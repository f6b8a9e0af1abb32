// Numbers with units, and ranges of them, in conditions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "stages/routing/routing_facts.h"

namespace melflow {

/// What the numbers of a measure are: a fact whose units they have.
Fact amounts_of(MeasureUnit unit);

/// Returns the text without spaces at either end.
std::string_view trimmed(std::string_view text);

/// Parses a number in seconds, bytes or Hz, or a peak as a fraction of full scale. Nothing for a
/// text that is no number, or has a unit that `fact` does not have.
std::optional<double> amount(Fact fact, std::string_view text);

/// Returns why a number is no valid amount: "-1s is less than 0"; "" for a valid one, and for a
/// text that is no number. `key`: the subject of the condition, for the message.
std::string why_no_amount(const std::string& key, Fact fact, std::string_view text);

/// Returns the number with its unit, for messages.
std::string amount_text(Fact fact, double number);

/// Whether one end of a range has a unit and the other one needs it: 1s..500 may mean half a second
/// or 500 of them. 0 needs no unit, but 0 dB is not 0.
bool lacks_a_unit(Fact fact, std::string_view low, std::string_view high);

/// Returns the text with the unit in which a number without a unit is taken.
std::string with_unit(Fact fact, std::string_view text);

/// Returns LOW..HIGH without spaces, and with a 0 before an end that begins with a dot.
std::string range_text(std::string_view low, std::string_view high);

/// Returns "LOW..HIGH" for a text that is no condition but means that range: 1s-15s, 1-15s,
/// 1s...15s, ">=1s, <=15s"; "" where it cannot be told.
std::string meant_range(Fact fact, std::string_view text);

}  // namespace melflow
