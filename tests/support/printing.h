// Prints lists in doctest's failure messages: the first values and the number of values.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace doctest {

template <class T>
struct StringMaker<std::vector<T>> {
  static String convert(const std::vector<T>& values) {
    constexpr std::size_t kMost = 24;
    std::string out = "[";
    for (std::size_t i = 0; i < values.size() && i < kMost; ++i)
      out += (i == 0 ? "" : ", ") + std::string(toString(values[i]).c_str());
    if (values.size() > kMost) out += ", ... " + std::to_string(values.size()) + " in all";
    return (out + "]").c_str();
  }
};

}  // namespace doctest
