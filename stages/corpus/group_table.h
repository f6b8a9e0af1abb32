// The table that `melflow duplicates --csv` writes. As a manifest it gets no warning about columns
// of its own that the list of files does not need.
#pragma once

namespace melflow {

/// Its first columns; behind them are those of the recordings' own list.
inline constexpr const char* kGroupTable = "path,group,recordings,split,across,label";
inline constexpr int kGroupTableColumns = 6;

}  // namespace melflow
