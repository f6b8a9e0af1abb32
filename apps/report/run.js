// The page of a run: draws its JSON report (report_json), by the functions of page.html.
const STATES = [["busy", "busy", "#7cc08a"], ["waiting_input", "waits for input", "#c9dcf2"],
  ["blocked_output", "waits for room after it", "#eda19a"], ["waiting_core", "waits for a core", "#f5cf7a"],
  ["idle_after_end", "over", "#ededed"]];
const stages = report.stages ?? [], machine = report.machine ?? {}, series = report.series ?? {};

function heading() {
  const memory = report.memory ?? {};
  const endings = {complete: "is complete", stopped: "was stopped"};
  const figures = [
    [rate(report.files_per_second) || "0", "files a second"], [thousands(report.rows), "rows"],
    [duration(report.seconds), "in all"], [duration(report.first_row_seconds), "until the first row"],
    [`${(machine.cores_used ?? 0).toFixed(1)} of ${machine.cores ?? 0}`, "cores used"],
    [mebibytes(memory.resident_peak), "resident at most"],
    [`${mebibytes(memory.peak)} of ${mebibytes(memory.budget)}`, "reserved at most"]];
  add(html("h1", {}, document.title.replace(/^melflow: /, "")),
    html("p", {}, `melflow ${report.melflow_version ?? ""}, the run ${endings[report.ending] ?? "failed"}`),
    html("p", {class: "big"}, ...figures.map(([value, what]) => html("span", {}, html("b", {}, value), what))));
  if (report.error) add(html("p", {class: "bad"}, report.error));
  if (report.limit?.text) add(html("p", {class: "limit"}, report.limit.text.trimEnd()));
}

// The width of a text of a drawing, in the fonts of the style sheet: which letters are wide depends on the font.
const FONTS = {h: "600 13px", n: "600 11px"}, pen = document.createElement("canvas").getContext("2d");
function widthOf(text, kind) {
  pen.font = (FONTS[kind] ?? "11px") + " system-ui, sans-serif";
  return pen.measureText(text).width;
}
function fitting(text, kind, most) {
  const cut = [...text];
  if (widthOf(text, kind) <= most) return text;
  while (cut.length > 0 && widthOf(cut.join("") + "…", kind) > most) cut.pop();
  return cut.join("") + "…";
}

// What the box of a node is called: its name or, where it has none but that of the stage python, its function.
function title(stage) {
  const call = report.config?.graph?.[stage.name]?.call;
  if (!call || !/^python(_\d+)?$/.test(stage.name)) return stage.name;
  return call.startsWith("@") ? call.slice(1).split(/[-:]/)[0].split(".").at(-1) : call.split(":").at(-1);
}

// Boxes from left to right, all of one size, which fits most texts; an edge leads to a later stage.
function flow() {
  const GAP_X = 56, GAP_Y = 22, EDGE = 8, PADDING = 6, kind = line => line === 0 ? "h" : "c";
  if (stages.length === 0) return html("p", {}, "a graph without nodes");
  const place = new Map(stages.map((stage, i) => [stage.name, i]));
  const edges = (report.edges ?? []).map(edge => ({...edge, from: place.get(edge.from) ?? 0, to: place.get(edge.to) ?? 0}));
  const nodes = stages.map(stage => {
    const used = (stage.used ?? 0) / Math.max(1, stage.concurrency ?? 1), rates = stage.per_second ?? {};
    const measured = [rate(rates.files, " files/s") || rate(rates.rows, " rows/s"),
      `${(100 * used).toFixed(0)} % of ${stage.concurrency ?? 0} busy`];
    return {heat: used, lines: [title(stage), title(stage) === stage.name ? stage.stage ?? "" : stage.name, ...(stage.options ?? measured)].map(shown),
      tip: "items_in" in stage ? `${stage.name}: ${thousands(stage.items_in)} items in, ${thousands(stage.items_out)} out` : stage.name};
  });
  const column = nodes.map(() => 0), boxes = [];
  nodes.forEach((node, i) => {
    for (const edge of edges) if (edge.to === i && edge.from < i) column[i] = Math.max(column[i], column[edge.from] + 1);
    (boxes[column[i]] ??= []).push(i);
  });
  const high = Math.max(74, ...nodes.map(node => 10 + 16 * node.lines.length));
  const wide = Math.min(220, Math.max(138, ...nodes.flatMap(node => node.lines.map((text, l) => 2 * PADDING + widthOf(text, kind(l))))));
  const most = Math.max(1, ...boxes.map(some => some.length));
  const x = i => EDGE + column[i] * (wide + GAP_X);
  const y = i => EDGE + (boxes[column[i]].indexOf(i) + (most - boxes[column[i]].length) / 2) * (high + GAP_Y);
  const drawn = [];
  for (const edge of edges) {
    const full = share((edge.mean_depth ?? 0) / Math.max(1, edge.queue ?? 1)), mean = (edge.mean_depth ?? 0).toFixed(1);
    const x1 = x(edge.from) + wide, x2 = x(edge.to), y1 = y(edge.from) + high / 2, y2 = y(edge.to) + high / 2, bend = (x1 + x2) / 2;
    const cool = Math.floor(170 - 130 * full);
    const tip = `${stages[edge.from].name} to ${stages[edge.to].name}` + ("queue" in edge
      ? `: ${mean} of ${edge.queue} places of the queue taken on average, ${edge.max_depth} at most` : "");
    drawn.push(
      svg("path", {d: `M${x1},${y1}C${bend},${y1},${bend},${y2},${x2},${y2}`, class: "e", "stroke-width": (2 + 4 * full).toFixed(1),
        stroke: `rgb(${Math.floor(170 + 40 * full)},${cool},${cool})`}, svg("title", {}, tip)),
      words(bend, (y1 + y2) / 2 - 6, "x", edge.label ?? `${mean}/${edge.queue}`));
  }
  nodes.forEach((node, i) => {
    const mixed = [240, 130, 30].map(c => Math.floor(255 - share(node.heat) * (255 - c)));
    drawn.push(svg("g", {}, svg("title", {}, node.tip), box(x(i), y(i), wide, high, {rx: 6, fill: `rgb(${mixed})`, class: "b"}),
      ...node.lines.map((text, l) => words(x(i) + wide / 2, y(i) + 19 + 16 * l, kind(l), fitting(text, kind(l), wide - 2 * PADDING)))));
  });
  const width = 2 * EDGE + Math.max(0, boxes.length * (wide + GAP_X) - GAP_X), height = 2 * EDGE + most * (high + GAP_Y) - GAP_Y;
  return html("div", {class: "wide"},
    drawing(width, height, {style: `min-width:${Math.min(width, 1100).toFixed(0)}px;max-width:${width.toFixed(0)}px`}, ...drawn));
}

function states() {
  const LEFT = 150, WIDTH = 760, HIGH = 18, STEP = 24, drawn = [];
  stages.forEach((stage, i) => {
    const seconds = STATES.map(([key]) => stage.seconds?.[key] ?? 0), all = seconds.reduce((sum, s) => sum + s, 0);
    const y = 2 + STEP * i;
    let x = LEFT;
    drawn.push(words(LEFT - 8, y + 13, "y", fitting(shown(stage.name), "y", LEFT - 8)));
    seconds.forEach((s, state) => {
      const wide = all > 0 ? WIDTH * s / all : 0;
      if (wide >= 0.05) drawn.push(box(x, y, wide, HIGH, {fill: STATES[state][2]}));
      if (wide > 34) drawn.push(words(x + wide / 2, y + 13, "c", `${(100 * s / all).toFixed(0)} %`));
      x += wide;
    });
  });
  add(html("h2", {}, "Where the time of each node went"),
    html("p", {class: "key"}, ...STATES.flatMap(([, name, fill]) => [html("i", {style: `background:${fill}`}), name])),
    drawing(LEFT + WIDTH + 10, STEP * stages.length + 4, {}, ...drawn));
}

// A training loop: how long it waited for batches of the epoch, and how long it was busy with them.
function loop() {
  const waits = report.waits, LEFT = 150, WIDTH = 560, STEP = 34;
  const rows = [["waited for batches", "waiting_for_batches", "#eda19a"], ["in the program", "in_program", "#7cc08a"]];
  if (!(waits?.batches > 1)) return;
  const most = Math.max(...rows.map(([, key]) => waits[key].seconds));
  add(html("h2", {}, "Training loop"), drawing(LEFT + WIDTH + 290, STEP * rows.length, {}, ...rows.flatMap(([name, key, fill], r) => {
    const {seconds, p50_ms, p99_ms} = waits[key], wide = WIDTH * (most > 0 ? seconds / most : 0);
    return [words(LEFT - 8, STEP * r + 19, "n", name), box(LEFT, STEP * r + 4, wide, STEP - 10, {fill}),
      words(LEFT + wide + 8, STEP * r + 19, "", `${duration(seconds)}; a step: ${milliseconds(p50_ms / 1e3)} ms (p50), ${milliseconds(p99_ms / 1e3)} ms (p99)`)];
  })), html("p", {}, `${thousands(waits.batches)} batches; the first came after ${duration(waits.first_batch_s)}.`));
}

// Rounds up to 1, 2 or 5 times a power of ten.
function nice(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find(step => value <= step * power * (1 + 1e-9)) * power;
}

// A chart whose x axis is the time of the run. draw(x) returns what it shows; room is left for half of the last label.
function overTime(title, names, height, draw) {
  const LEFT = 64, TOP = 26, WIDTH = 860, RIGHT = 32, end = report.seconds ?? 0, step = nice(end / 8);
  const x = t => LEFT + WIDTH * (end > 0 ? share(t / end) : 0);
  const drawn = [words(LEFT, 14, "t", title), ...draw(x, TOP, LEFT, LEFT + WIDTH)];
  for (let i = 0; i * step <= end * (1 + 1e-9); ++i)
    drawn.push(words(x(i * step), TOP + height + 16, "x", axisNumber(i * step) + " s"));
  let right = LEFT + WIDTH;
  for (let i = names.length - 1; i >= 0; --i) {
    drawn.push(words(right, 14, "n", names[i], {style: `fill:${colour(i)}`}));
    right -= widthOf(shown(names[i]), "n") + 14;
  }
  add(drawing(LEFT + WIDTH + RIGHT, TOP + height + 22, {}, ...drawn));
}

// lines: [name, value at each of series.seconds]; undefined: a gap. limit: a dashed line.
function lineChart(title, unit, lines, limit = 0) {
  const HEIGHT = 110, names = lines.map(([name]) => name), values = lines.map(([, points]) => points);
  const top = nice(values.flat().reduce((most, v) => v > most ? v : most, limit));
  overTime(title, names.length > 1 ? names : [], HEIGHT, (x, above, left, right) => {
    const y = v => above + HEIGHT * (1 - v / top);
    const drawn = [0, 1, 2].flatMap(i => [level(left, right, y(top * i / 2), "g"),
      words(left - 6, y(top * i / 2) + 4, "y", axisNumber(top * i / 2) + (i === 2 && unit ? " " + unit : ""))]);
    if (limit > 0) drawn.push(level(left, right, y(limit), "m"));
    for (let l = values.length - 1; l >= 0; --l) {
      let d = "", joined = false;
      values[l].forEach((v, i) => {
        if (Number.isFinite(v)) d += `${joined ? "L" : "M"}${x(series.seconds[i]).toFixed(1)},${y(v).toFixed(1)}`;
        joined = Number.isFinite(v);
      });
      drawn.push(svg("path", {d, stroke: colour(l), class: "l"}));
    }
    return drawn;
  });
}

// One row per worker: stacked bands show which share of the time it spent in which node.
function workers({from = 0, step = 0, rows = []}) {
  const HIGH = 22, STEP = 27, names = stages.map(stage => stage.name);
  if (rows.length > 0) overTime("Workers: what each was in, of the time", names, STEP * rows.length - 4, (x, above, left, right) =>
    rows.flatMap((row, r) => {
      const top = above + STEP * r, below = [];
      const bands = names.map((name, b) => {
        const d = (row[name] ?? []).map((value, i) => {
          const low = below[i] ?? 0, high = below[i] = Math.min(1, low + value), at = from + i * step;
          return high - low < 0.005 ? "" : `M${x(at).toFixed(1)},${(top + HIGH * (1 - high)).toFixed(1)}H${x(at + step).toFixed(1)}`
            + `V${(top + HIGH * (1 - low)).toFixed(1)}H${x(at).toFixed(1)}Z`;
        }).join("");
        return svg("path", {d, fill: colour(b)});
      });
      return [box(left, top, right - left, HIGH, {fill: "#f4f4f4"}), words(left - 6, top + 15, "y", r + 1), ...bands];
    }));
}

function overTheRun() {
  const at = series.seconds ?? [];
  if (at.length < 3) return;
  // The rate between each point and the previous one.
  const perSecond = (sums = [], unit = 1) => sums.map((sum, i) =>
    i > 0 && at[i] > at[i - 1] ? (sum - sums[i - 1]) / (at[i] - at[i - 1]) / unit : undefined);
  const inMebi = (values = []) => values.map(v => v / MEBI);
  const nodes = series.nodes ?? [];
  add(html("h2", {}, "Over time"));
  lineChart("Files", "/s", [["files", perSecond(series.files)]]);
  lineChart("Rows", "/s", [["rows", perSecond(series.rows)]]);
  lineChart("Read", "MB/s", [["files", perSecond(series.bytes_read, 1e6)], ["from the disk", perSecond(series.disk_read_bytes, 1e6)]]);
  lineChart("Cores", "", [["used", perSecond(series.cpu_seconds)]], machine.cores);
  lineChart("Memory", "MiB", [["reserved", inMebi(series.reserved)], ["resident", inMebi(series.resident)]], (report.memory?.budget ?? 0) / MEBI);
  lineChart("Busy", "", nodes.map(node => [node.name, perSecond(node.busy_seconds)]));
  // The source has no queue; its line stays empty, so that the other nodes keep their colours.
  lineChart("Items in the queue before a node", "", nodes.map((node, i) => [node.name, i > 0 ? node.waiting : []]));
  workers(series.workers ?? {});
}

function nodeTable() {
  const head = ["node", "stage", "at once", "items", "files/s", "MB/s in", "MB/s out", "rows/s", "call p50 [ms]", "p90", "p99", "longest",
    "processor [s]"];
  add(html("h2", {}, "Nodes"), table("", head, stages.map(stage => {
    const rates = stage.per_second ?? {}, calls = stage.call_seconds ?? {};
    return [stage.name, stage.stage ?? "", `${stage.peak_concurrency ?? 0}/${stage.concurrency ?? 0}`,
      thousands(Math.max(stage.items_in ?? 0, stage.items_out ?? 0)), rate(rates.files), megabytes(rates.bytes_in),
      megabytes(rates.bytes_out), rate(rates.rows), milliseconds(calls.p50), milliseconds(calls.p90), milliseconds(calls.p99),
      milliseconds(calls.greatest), (stage.cpu_seconds ?? 0).toFixed(2)];
  })));
}

function lists() {
  const changes = stages.flatMap(stage => [["dropped", "gone"], ["changed", "changed"], ["added", "new"]]
    .filter(([key]) => Array.isArray(stage.summary?.[key]))  // not such as the count `added` of an audio cache
    .map(([key, what]) => folded(`${stage.name}: ${plural(stage.summary[key + "_files"], "file")} ${what}`,
      stage.summary[key].map(name => name + "\n").join(""))));
  if (changes.length > 0) add(html("h2", {}, "Update"), ...changes);
  const slowest = report.slowest ?? [], remarks = report.remarks ?? [], warnings = report.warnings ?? [];
  if (slowest.length > 0)
    add(html("h2", {}, "Longest stays"), table("left", ["file", "node", "ms"], slowest.map(file =>
      [file.path + (file.files_together > 1 ? ` and ${file.files_together - 1} more` : ""), file.stage, milliseconds(file.seconds)])));
  if (remarks.length > 0)
    add(html("h2", {}, "Skipped, failed, or ok with a warning"), table("left", ["file", "became", "node", "reason"],
      remarks.map(remark => [remark.path, remark.status, remark.stage, remark.reason])));
  if (report.more_remarks > 0) add(html("p", {}, `and ${thousands(report.more_remarks)} more; the JSON report has all`));
  if (warnings.length > 0) add(html("h2", {}, "Warnings"), ...warnings.map(text => html("p", {}, text)));
}

if ("files" in report) {
  heading();
  add(html("h2", {}, "Flow"), flow(), html("p", {}, "The warmer a node, the busier it was; the redder an edge, the fuller its queue "
    + "(places taken on average / all places): what comes after a red edge holds back what is before it."));
  states();
  loop();
  overTheRun();
  nodeTable();
  lists();
  add(html("h2", {}, "Machine"), table("left", [], Object.entries(machine).map(([name, value]) =>
    [name.replaceAll("_", " "), Number.isInteger(value) ? value : Number(value.toPrecision(3))])));
  add(html("h2", {}, "Configuration"), folded("with every default", JSON.stringify(report.config ?? {}, null, 2)));
} else {  // a graph that was not run, in a notebook
  add(flow());
  const frame = window.frameElement;
  if (frame) frame.style.height = document.documentElement.scrollHeight + 40 + "px";
}
