# Extracts from a profile where a kernel's time goes.
#
# In:  lines of `ncu --csv --page raw --print-units base`, mixed with the program's own `windows=N`, the windows of a
#      launch; variables geometry, json (a file to which lines are added).
# Out: a table row for each kernel, under a heading before the first geometry's; a line of JSON for each. Figures that
#      the tool did not count are "-".

# All fields are quoted, since a kernel's name may contain commas.
function fields(line, to) {
  gsub(/^"|"$/, "", line)
  return split(line, to, "\",\"")
}
# Returns the first counter whose name matches; the names differ between versions.
function value(like,    i) {
  for (i = 1; i <= n; ++i) if (names[i] ~ like && v[i] ~ /^[0-9.,e+-]+$/) { gsub(",", "", v[i]); return v[i] }
  return "-"
}
function per_window(x) { return x == "-" || windows == 0 ? "-" : sprintf("%.1f", x / windows) }
function number(x) { return x == "-" ? "null" : x }
# Returns the three reasons for which warps wait longest, in cycles per instruction.
function stalls(    i, k, best, used, text) {
  for (k = 0; k < 3; ++k) {
    best = 0
    for (i = 1; i <= n; ++i)
      if (names[i] ~ /_issue_stalled_.*_per_issue_active\.ratio$/ && names[i] !~ /not_issued/ && !(i in used) && (best == 0 || v[i] + 0 > v[best] + 0)) best = i
    if (best == 0) break
    used[best] = 1
    name = names[best]
    gsub(/.*_issue_stalled_|_per_issue_active\.ratio/, "", name)
    text = text (k > 0 ? ", " : "") sprintf("%s %.2f", name, v[best])
  }
  return text == "" ? "-" : text
}

/^windows=/ { windows = substr($0, 9) }
/^"ID"/ { n = fields($0, names); for (i = 1; i <= n; ++i) if (names[i] == "Kernel Name") kernel = i; next }
/^"[0-9]+"/ { rows[++count] = $0 }

END {
  if (geometry == "builder") {
    print "| geometry | kernel | time [µs] | SM clock [MHz] | registers | warps active [%] | issue slots [%] | instructions a window | shared wavefronts a window | of these conflicts | DRAM [%] | stalls [cycles an instruction] |"
    print "|---|---|---|---|---|---|---|---|---|---|---|---|"
  }
  for (r = 1; r <= count; ++r) {
    fields(rows[r], v)
    time = value("^gpu__time_duration\\.sum$"); clock = value("^sm(sp)?__cycles_elapsed\\.avg\\.per_second$")
    registers = value("^launch__registers_per_thread$"); active = value("^sm__warps_active\\.avg\\.pct_of_peak_sustained_active$")
    issue = value("^(sm__inst_issued|smsp__issue_active)\\.avg\\.pct_of_peak_sustained_active$")
    instructions = per_window(value("^sm(sp)?__inst_executed\\.sum$"))
    shared = per_window(value("^l1tex__data_pipe_lsu_wavefronts_mem_shared\\.sum$"))
    conflicts = per_window(value("^l1tex__data_bank_conflicts_pipe_lsu_mem_shared\\.sum$"))
    dram = value("^(gpu__)?dram__throughput\\.avg\\.pct_of_peak_sustained_elapsed$|^gpu__dram_throughput\\.avg\\.pct_of_peak_sustained_elapsed$")
    name = v[kernel]; sub(/\(.*/, "", name); sub(/^void /, "", name); gsub(/melflow::cuda::|\\/, "", name)
    printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", geometry, name, time == "-" ? "-" : sprintf("%.1f", time / 1e3), clock == "-" ? "-" : sprintf("%.0f", clock / 1e6), registers, active, issue, instructions, shared, conflicts, dram, stalls()
    printf "{\"kind\": \"profile\", \"geometry\": \"%s\", \"kernel\": \"%s\", \"nanoseconds\": %s, \"sm_hertz\": %s, \"registers\": %s, \"warps_active_percent\": %s, \"issue_percent\": %s, \"instructions\": %s, \"shared_wavefronts\": %s, \"conflicts\": %s, \"dram_percent\": %s, \"stalls\": \"%s\"}\n", geometry, name, number(time), number(clock), number(registers), number(active), number(issue), number(instructions), number(shared), number(conflicts), number(dram), stalls() >> json
  }
}
