// Numbers with units and ranges of them, in conditions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "stages/routing/file_facts.h"

namespace melflow {

/// Without spaces at both ends.
std::string_view trimmed(std::string_view text);

/// In seconds, bytes or Hz; a peak as a fraction of full scale. Nothing for what is no number, or
/// has a unit that `fact` does not have.
std::optional<double> amount(Fact fact, std::string_view text);

/// Why a text that is a number is no amount: "-1s is less than 0". "" for one that is, and for what
/// is no number. `key`: what the condition is on, for the message.
std::string why_no_amount(const std::string& key, Fact fact, std::string_view text);

/// The number with its unit, for messages.
std::string amount_text(Fact fact, double number);

/// Whether of the ends of a range one has a unit and the other one needs it: 1s..500 may be meant
/// as half a second or as 500 of them. 0 needs no unit, but 0 dB are not 0.
bool lacks_a_unit(Fact fact, std::string_view low, std::string_view high);

/// The text with the unit that a number without one is in.
std::string with_unit(Fact fact, std::string_view text);

/// LOW..HIGH without spaces; where one begins with a dot, with a 0 before it.
std::string range_text(std::string_view low, std::string_view high);

/// "LOW..HIGH" for a text that is no condition but means that range: 1s-15s, 1-15s, 1s...15s,
/// ">=1s, <=15s"; "" where it cannot be told.
std::string meant_range(Fact fact, std::string_view text);

}  // namespace melflow
