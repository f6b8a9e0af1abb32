// The page of `melflow check`: draws its document (document.cpp), by the functions of page.html.
const files = report.files ?? {}, checks = report.checks ?? [], found = checks.filter(check => check.found > 0);
const alike = report.duplicates;
const percent = (part, all) => all > 0 ? `${short(100 * part / all)} %` : "";
const place = seconds => seconds >= 60 ? `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(2).padStart(5, "0")} min` : `${seconds.toFixed(3)} s`;
const plain = text => text.replaceAll("`", "");
const anchor = name => name.replaceAll(/[^a-z0-9]+/g, "-");

document.head.append(html("meta", {name: "viewport", content: "width=device-width, initial-scale=1"}), html("style", {}, `
.bars{display:grid;grid-template-columns:max-content 1fr max-content;gap:4px 12px;align-items:center;max-width:760px}
.bars i{height:14px;background:#d9730d;display:block;border-radius:2px}.bars span{text-align:right}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(250px,1fr));gap:6px 22px}.grid svg{margin:0}
.clips{display:grid;grid-template-columns:repeat(auto-fill,minmax(280px,1fr));gap:16px}
.clip{border:1px solid #e5e5e5;border-radius:6px;padding:8px 10px;min-width:0}.clip canvas{width:100%;display:block;margin:4px 0}
.clip audio{width:100%;height:34px}.clip p,.path{overflow-wrap:anywhere}h3{font-size:14px;margin:20px 0 4px}
.no{color:#777}pre{white-space:pre-wrap}table:not(.left) td,table.left td:not(:last-child):not(:first-child){white-space:nowrap}
.pair{border-top:1px solid #e5e5e5;padding:6px 0 14px}.pair .clips{grid-template-columns:repeat(auto-fit,minmax(280px,1fr))}
@media(max-width:700px){.checks td:last-child,.checks th:last-child{display:none}.checks td{white-space:nowrap}}`));

// Waveforms and spectrograms of clips. A picture is computed when it comes into view.
const POINTS = 512, FLOOR = 80;  // of a spectrum; [dB] shown below the highest level
const window_ = Float64Array.from({length: POINTS}, (_, n) => 0.5 - 0.5 * Math.cos(2 * Math.PI * n / POINTS));
const cosines = Float64Array.from({length: POINTS}, (_, n) => Math.cos(2 * Math.PI * n / POINTS));
const sines = Float64Array.from({length: POINTS}, (_, n) => Math.sin(2 * Math.PI * n / POINTS));
function spectrum(samples, at) {  // powers of POINTS / 2 frequencies, by a radix-2 FFT
  const re = new Float64Array(POINTS), im = new Float64Array(POINTS);
  for (let n = 0, m = 0; n < POINTS; ++n) {
    re[m] = (samples[at + n] ?? 0) * window_[n];
    for (let bit = POINTS >> 1; (m ^= bit) < bit && bit > 0; bit >>= 1);
  }
  for (let size = 2; size <= POINTS; size *= 2)
    for (let i = 0; i < POINTS; i += size)
      for (let k = 0, step = POINTS / size; k < size / 2; ++k) {
        const a = i + k, b = a + size / 2, c = cosines[k * step], s = -sines[k * step];
        const x = re[b] * c - im[b] * s, y = re[b] * s + im[b] * c;
        re[b] = re[a] - x; im[b] = im[a] - y; re[a] += x; im[a] += y;
      }
  return Float64Array.from({length: POINTS / 2}, (_, k) => re[k] ** 2 + im[k] ** 2);
}
function drawClip(canvas, sound, mark) {
  const WAVE = 70, SPECTRUM = 110, width = canvas.width = Math.max(240, canvas.clientWidth), channels = sound.numberOfChannels;
  canvas.height = WAVE * channels + SPECTRUM;
  const pen = canvas.getContext("2d"), x = sample => sample / sound.length * width;
  for (let c = 0; c < channels; ++c) {
    const samples = sound.getChannelData(c), middle = WAVE * (c + 0.5), high = WAVE / 2 - 2;
    pen.fillStyle = "#e5e5e5";
    for (const edge of [-1, 0, 1]) pen.fillRect(0, middle + edge * high, width, 1);
    pen.fillStyle = COLOURS[0];
    for (let column = 0; column < width; ++column) {
      let least = 1, most = -1;
      for (let n = Math.floor(column / width * samples.length), end = Math.max(n + 1, Math.floor((column + 1) / width * samples.length)); n < end; ++n) {
        least = Math.min(least, samples[n]); most = Math.max(most, samples[n]);
      }
      pen.fillRect(column, middle - most * high, 1, Math.max(1, (most - least) * high));
    }
  }
  const mono = sound.getChannelData(0), levels = [];
  let most = 1e-12;
  for (let column = 0; column < width; ++column) {
    const powers = spectrum(mono, Math.floor(column / width * Math.max(1, mono.length - POINTS)));
    levels.push(powers);
    for (const p of powers) most = Math.max(most, p);
  }
  const picture = pen.createImageData(width, SPECTRUM);
  for (let column = 0; column < width; ++column)
    for (let row = 0; row < SPECTRUM; ++row) {
      const p = levels[column][Math.floor((SPECTRUM - 1 - row) / SPECTRUM * POINTS / 2)];
      const at = share(1 + 10 * Math.log10(p / most + 1e-12) / FLOOR), i = 4 * (row * width + column);
      picture.data.set([255 * share(1.6 * at), 255 * share(1.8 * at - 0.7), 255 * share(at < 0.5 ? 0.35 + at : 1.4 - 1.6 * at), 255], i);
    }
  pen.putImageData(picture, 0, WAVE * channels);
  pen.fillStyle = "#fff"; pen.font = "11px system-ui,sans-serif";
  pen.fillText(`${short(sound.sampleRate / 2000)} kHz`, 4, WAVE * channels + 12);
  if (mark >= 0) {
    pen.fillStyle = "#c33";
    pen.fillRect(x(mark * sound.sampleRate) - 1, 0, 2, canvas.height);
  }
}
const seen = new IntersectionObserver(entries => {
  for (const {target, isIntersecting} of entries)
    if (isIntersecting) { seen.unobserve(target); target.draw(); }
}, {rootMargin: "200px"});
function clipOf(worst, clip) {
  const canvas = html("canvas", {height: 180, role: "img", "aria-label": `waveform and spectrogram of ${worst.path}`});
  canvas.draw = async () => {
    const bytes = Uint8Array.from(atob(clip.url.split(",")[1]), c => c.charCodeAt(0));
    try {
      const sound = await new OfflineAudioContext(clip.channels, 1, clip.sample_rate).decodeAudioData(bytes.buffer);
      drawClip(canvas, sound, "at" in worst ? worst.at - clip.begin : -1);
    } catch { canvas.remove(); }
  };
  seen.observe(canvas);
  return html("div", {class: "clip"}, html("p", {}, ...(worst.text ? [html("b", {}, worst.text), " "] : []), worst.path), ...(worst.said ? [html("p", {class: "no"}, worst.said)] : []),
    canvas, html("audio", {controls: "", preload: "none", src: clip.url}),
    html("p", {class: "no"}, `${place(clip.begin)} to ${place(clip.begin + clip.seconds)}` + ("at" in worst ? `; the fault is at ${place(worst.at)}` : "")));
}

function summary() {
  const ok = files.ok ?? 0;
  const figures = [[duration(report.seconds), plural(ok, "recording")],
    [percent(report.faulty, ok) || "0 %", `${plural(report.faulty, "recording")} with a fault`],
    [duration(report.faulty_seconds), "of these"],
    [thousands(files.failed), "could not be read"], [thousands(files.skipped), "were skipped"]];
  if (alike) figures.push([thousands(alike.grouped), "sound like another one"], [thousands(alike.across), "like one of another split"]);
  add(html("h1", {}, "What is wrong with these recordings"), html("p", {class: "path"}, report.root || ""),
    html("p", {class: "big"}, ...figures.map(([value, what]) => html("span", {}, html("b", {}, value), what))));
  if (report.profile) add(html("p", {}, `Judged by the profile ${report.profile}.`));
  for (const {what, expected, met} of report.expected ?? [])
    add(html("p", {class: met ? "limit" : "bad"}, `Expected ${what} ${expected}: ${met ? "met" : "not met"}.`));
  for (const warning of report.warnings ?? []) add(html("p", {class: "limit"}, warning));
  const most = Math.max(1, ...found.map(check => check.found));
  if (found.length === 0) add(html("p", {}, "No recording fails a check."));
  else add(html("h2", {}, "Faults"), html("div", {class: "bars"}, ...found.toSorted((a, b) => b.found - a.found).flatMap(check =>
    [html("a", {href: "#" + anchor(check.name)}, check.name.replace(/^quality\./, "")), html("i", {style: `width:${(100 * check.found / most).toFixed(1)}%`}),
      html("span", {}, `${thousands(check.found)} (${percent(check.found, check.judged)}, ${duration(check.seconds)})`)])));
  add(html("h2", {}, "Checks"), table("left checks", ["check", "expected", "found", "judged", "what it is"], checks.map(check =>
    [check.name, check.expected, thousands(check.found), check.judged > 0 ? thousands(check.judged) : "not measured", plain(check.what)])));
}

function faults() {
  if (found.length > 0) add(html("h2", {}, "The worst of each"));
  for (const check of found) {
    const clips = check.worst.filter(worst => worst.clip?.url), why = check.worst.find(worst => worst.clip?.why)?.clip.why;
    add(html("h3", {id: anchor(check.name)}, `${check.name.replace(/^quality\./, "")}: ${plural(check.found, "recording")} not ${check.expected}`), html("p", {}, plain(check.what)),
      html("div", {class: "clips"}, ...clips.map(worst => clipOf(worst, worst.clip))));
    if (why) add(html("p", {class: "no"}, `Of some there is nothing to hear: ${why}.`));
    const rest = check.worst.filter(worst => !worst.clip?.url);
    if (rest.length > 0)
      add(table("left", ["recording", "value", "at"], rest.map(worst => [worst.path, worst.text, "at" in worst ? place(worst.at) : ""])));
    if (check.found > check.worst.length)
      add(html("p", {class: "no"}, `and ${thousands(check.found - check.worst.length)} more; --csv lists all`));
  }
}

// Both recordings of the worst pairs, from the same place of what they share.
function duplicates() {
  if (!alike) return;
  add(html("h2", {id: "duplicates"}, "What sounds alike"), html("p", {}, `${thousands(alike.grouped)} of ${plural(alike.recordings, "recording")} sound like another one, in ` +
    `${plural(alike.groups, "group")}; ${thousands(alike.across)} in groups across splits.`));
  if (alike.not_compared.too_little_sound > 0)
    add(html("p", {class: "no"}, `Not compared: ${thousands(alike.not_compared.too_little_sound)} with too little sound that changes.`));
  for (const {kind, seconds, score, joined, across, a, b} of alike.pairs)
    add(html("div", {class: "pair"}, html("h3", {}, `${kind}: ${duration(seconds)}${across ? ", across splits" : ""}`),
      html("p", {class: "no"}, `score ${score.toFixed(2)}${joined ? "" : "; too little to form a group"}`),
      html("div", {class: "clips"}, ...[a, b].map(one => one.clip?.url ? clipOf({text: one.split, path: one.path}, one.clip)
        : html("div", {class: "clip"}, html("p", {}, ...(one.split ? [html("b", {}, one.split), " "] : []), one.path),
          html("p", {class: "no"}, `from ${place(one.begin)} on` + (one.clip?.why ? `; nothing to hear: ${one.clip.why}` : "")))))));
  if (alike.more_pairs > 0) add(html("p", {class: "no"}, `and ${plural(alike.more_pairs, "more pair")}; --json has all`));
}

function groups() {
  for (const {by, groups, more} of report.groups ?? []) {
    const names = found.map(check => check.name).filter(name => groups.some(group => group.found[name] > 0));
    const medians = ["rms", "loudness", "snr", "bandwidth"].filter(name => groups.some(group => name in group.median));
    add(html("h2", {}, `By ${by}`), table("", [by, "recordings", "time", "with a fault", ...names.map(name => name.replace(/^quality\./, "")),
      ...medians.map(name => `${name} [${report.measures[name]?.unit}], median`)], groups.map(group =>
      [group.name || "(none)", thousands(group.files), duration(group.seconds), `${thousands(group.faulty)} (${percent(group.faulty, group.ok) || "0 %"})`,
        ...names.map(name => thousands(group.found[name] ?? 0)), ...medians.map(name => group.median[name] ?? "")])));
    if (more > 0) add(html("p", {class: "no"}, `and ${thousands(more)} more`));
  }
}

function histogram(name, {unit, median, p1, p99, histogram: {from, to, counts}}) {
  const WIDTH = 250, HIGH = 60, most = Math.max(...counts), wide = WIDTH / counts.length;
  const x = value => WIDTH * (value - from) / (to - from);
  return html("div", {}, html("p", {}, html("b", {}, name), ` median ${short(median)}${unit && " " + unit}; 98 % from ${short(p1)} to ${short(p99)}`),
    drawing(WIDTH, HIGH + 18, {"aria-label": `histogram of ${name}`},
      ...counts.map((n, i) => box(i * wide, HIGH * (1 - n / most), Math.max(1, wide - 1), HIGH * n / most + (n > 0 ? 0.5 : 0), {fill: COLOURS[0]})),
      svg("line", {x1: x(median), x2: x(median), y1: 0, y2: HIGH, class: "m"}),
      words(0, HIGH + 14, "", axisNumber(from)), words(WIDTH, HIGH + 14, "y", `${axisNumber(to)} ${unit}`)));
}

function distributions() {
  const drawn = Object.entries(report.measures ?? {}).filter(([, one]) => one.histogram);
  if (drawn.length > 0) add(html("h2", {}, "Distributions"), html("div", {class: "grid"}, ...drawn.map(([name, one]) => histogram(name, one))));
}

function list() {
  const remarks = report.remarks ?? [];
  if (remarks.length > 0)
    add(html("h2", {}, "Skipped, failed, or not as the list has it"), table("left", ["recording", "became", "node", "reason"],
      remarks.map(remark => [remark.path, remark.status, remark.stage, remark.reason])));
  if (report.more_remarks > 0) add(html("p", {class: "no"}, `and ${thousands(report.more_remarks)} more; --csv lists all`));
  add(html("h2", {}, "To leave them out"), html("p", {}, "This filter keeps the recordings without these faults:"),
    html("pre", {}, `  good: {stage: filter, from: measure, where: ${report.filter}}`),
    html("p", {class: "no"}, `melflow ${report.melflow_version}`));
}

summary();
groups();
faults();
duplicates();
distributions();
list();
