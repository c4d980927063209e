// The chart at the top: which group, which curves, where the cursor is, and what is said of it.
const ready = (async () => {
  const { groups, kinds } = await unpacked();
  if (!groups.length) return;
  const $ = (id) => document.getElementById(id);
  const one = (selector) => document.querySelector(selector);
  const SHORT = {
    queued: ["on the device, queued", "queued"],
    awaited: ["on the device, awaited", "awaited"],
    pinned: ["pinned host memory", "pinned"],
    ordinary: ["ordinary host memory", "ordinary"],
    "ordinary-staged": ["ordinary host memory, staged", "staged"],
  };
  const CHOICES = { show: ["speedup", "time", "rate"], rows: ["answers", "all"], x: ["log", "lin"], y: ["log", "lin"] };
  // Curves whose limits are drawn below the chart.
  const MOST_LANES = 6;
  // What the address keeps. A size of one group says nothing in the next: each begins at its largest.
  const fresh = (name) => ({ group: name, show: "speedup", rows: "answers", x: "log", y: "log", off: new Set(), at: null, from: null, to: null });
  let state, group, curves = [], chosen = null;

  // Of a row: size, median, interval, amount of work, and what else is known.
  const facts = (row) => row[5];
  const rowAt = (series, size) => series.rows.find((row) => row[0] === size);
  const sized = (size) => words.sized(group.sizes, size);
  const at = (size) => `${group.symbol} = ${sized(size)}`;
  const named = (series) => (series.machine ? `${series.name}, ${series.machine}` : series.name);

  // Something unsteady that may be faster than `than`: then nothing slower is the fastest.
  const doubtful = (found, than) => found.find(({ series, row }) => series.counts && facts(row).unsteady && (row[2] || row[1]) < than[1]);
  // The fastest CPU code of the machine that the report is about.
  const baseline = (size) => {
    const own = group.series.filter((s) => s.own && s.device === "cpu" && s.counts);
    const found = own.map((series) => ({ series, row: rowAt(series, size) })).filter((f) => f.row);
    const best = found.filter((f) => !facts(f.row).unsteady).sort((a, b) => a.row[1] - b.row[1])[0];
    return best && !doubtful(found, best.row) ? best : null;
  };
  const rateOf = (row) => (row[4] ? [row[0], row[4] / (row[1] * 1e-9), row[4] / (row[3] * 1e-9), row[4] / (row[2] * 1e-9)] : null);
  const dotsOf = {
    time: (series) => series.rows.map((row) => row.slice(0, 4)),
    rate: (series) => (series.counts ? series.rows.map(rateOf).filter(Boolean) : []),
    speedup: (series) => {
      if (!series.counts) return [];
      const against = series.rows.map((row) => ({ row, base: baseline(row[0]) })).filter((f) => f.base);
      return against.map(({ row, base }) => [row[0], base.row[1] / row[1]]);
    },
  };
  const text = (value) => ({ time: words.time, speedup: words.factor, rate: (v) => words.rate(v, group.unit) })[state.show](value);

  // The curves that may be shown, and what each is drawn from.
  const ofAnswers = () => {
    const found = group.answers.map((answer, i) => {
      const series = group.series[answer.series];
      const twice = group.answers.findIndex((a) => a.question === answer.question) < i;
      const [label, short] = SHORT[answer.question];
      return {
        key: twice ? `${answer.question}-${i}` : answer.question,
        label: twice ? `${label}, ${answer.machine}` : label,
        short,
        answer,
        series,
        colour: colour(`--q-${answer.question}`),
        width: answer.machine ? 1.6 : 2.4,
        hollow: !!answer.machine,
        dash: answer.machine ? [5, 4] : null,
        banded: true,
        single: state.show === "speedup" ? answer.dots : [],
        dots: state.show === "speedup" ? answer.speedup : dotsOf[state.show](series),
      };
    });
    if (state.show !== "speedup" && group.host && group.host.length) {
      const cpu = (name) => group.series.find((s) => s.own && s.name === `cpu/${name}`);
      const rates = group.host.map(([size, , , , name]) => rowAt(cpu(name), size)).filter(Boolean).map(rateOf).filter(Boolean);
      found.push({
        key: "cpu", label: "best CPU code", short: "CPU", colour: colour("--cpu"), width: 2.4, banded: true,
        dots: state.show === "time" ? group.host.map((row) => row.slice(0, 4)) : rates,
      });
    }
    return found;
  };
  const ofRows = () =>
    group.series.map((series, i) => ({
      plain: true,
      key: String(i),
      label: named(series),
      short: series.name.split("/")[1],
      series,
      colour: colour(series.class),
      width: series.machine ? 1.3 : 2,
      dash: series.dash,
      hollow: !!series.machine,
      dots: dotsOf[state.show](series),
    }));
  const shown = () => curves.filter((curve) => !state.off.has(curve.key));

  const chart = lineChart($("c-plot"), {
    cursor: (size) => size !== state.at && moved(size),
    zoom: (from, to) => zoom(from, to),
    drawn: (geometry) => limits(geometry),
  });
  const drawLanes = limitLanes($("c-limits"), kinds);
  const drawRoofline = roofline($("c-roofline"), one("#c-roof .labels"));

  // The benchmark of a curve at a size; of the best CPU code that of whichever is best there.
  const benchmark = (curve, size) => {
    const best = curve.series || !group.host ? null : group.host.find((row) => row[0] === size);
    const series = curve.series || (best && group.series.find((s) => s.own && s.name === `cpu/${best[4]}`));
    const row = series && rowAt(series, size);
    return row ? { series, row } : null;
  };
  const limits = (geometry) => {
    const visible = shown();
    const lanes = visible.slice(0, MOST_LANES).map((curve) => ({
      label: curve.label,
      short: curve.short,
      colour: curve.plain ? null : curve.colour,
      rows: (curve.series ? curve.series.rows.map((row) => row[0]) : group.host.map((row) => row[0]))
        .map((size) => ({ size, at: at(size), ...(benchmark(curve, size) ? facts(benchmark(curve, size).row) : {}) })),
    }));
    const any = drawLanes(lanes, geometry);
    const legend = kinds.map((kind) => make("span", {}, make("i", { className: `k-${kind}` }), kind));
    const which = visible.length > MOST_LANES ? `What limits the first ${MOST_LANES} curves` : "What limits it";
    $("c-kinds").replaceChildren(`${which}, and the share of that limit that is reached: `, ...legend);
    $("c-kinds").hidden = !any;
  };

  // The largest of the sizes that most curves have.
  const usual = () => {
    const count = new Map();
    for (const [size] of shown().flatMap((curve) => curve.dots)) if (size > 0) count.set(size, (count.get(size) || 0) + 1);
    const most = Math.max(...count.values());
    const found = [...count].filter(([, n]) => n === most).map(([size]) => size);
    return found.length ? Math.max(...found) : null;
  };
  const reading = (curve, size) => curve.dots.find((dot) => dot[0] === size);
  const written = (dot) => {
    const [, value, low, high] = dot;
    const range = low > 0 && high > low && Number.isFinite(high) ? ` (${text(low)} to ${text(high)})` : "";
    return text(value) + range;
  };

  // Who is the fastest at the cursor, among the curves that are shown.
  const winner = (size) => {
    const base = baseline(size);
    const series = [...new Set(shown().map((curve) => curve.series).filter(Boolean))];
    const found = series.map((s) => ({ series: s, row: rowAt(s, size) })).filter((f) => f.row);
    if (state.rows === "answers" && base) found.push(base);
    found.sort((a, b) => a.row[1] - b.row[1]);
    const best = found.find((f) => f.series.counts && !facts(f.row).unsteady);
    if (!best) return `Nothing was measured at ${at(size)} by the curves shown.`;
    const time = `${named(best.series)}, ${words.time(best.row[1])}`;
    if (!group.compares) return `At ${at(size)} the shortest is ${time}.`;
    const doubt = doubtful(found, best.row);
    // Measured at smaller and larger sizes, but not here: it might be the fastest.
    const absent = series.find((s) => s.counts && !rowAt(s, size) && s.rows.some((r) => r[0] < size) && s.rows.some((r) => r[0] > size));
    if (absent) return `No winner at ${at(size)}: ${named(absent)} was not run there.`;
    if (doubt) return `No winner at ${at(size)}: ${named(doubt.series)} is unsteady.`;
    // What several processes answer stands beside.
    const whose = group.answers.some((answer) => answer.dots.length) ? " in the run's own process" : "";
    let said = `Fastest at ${at(size)}${whose}: ${time}`;
    if (base && base.series !== best.series) {
      const ratio = base.row[1] / best.row[1];
      said += `, ${ratio >= 1 ? `${words.factor(ratio)} faster` : `${words.factor(1 / ratio)} slower`} than ${base.series.name} (${words.time(base.row[1])})`;
    }
    return `${said}.`;
  };

  const toggle = (curve) => {
    const box = make("input", { type: "checkbox", checked: !state.off.has(curve.key) });
    box.addEventListener("change", () => {
      box.checked ? state.off.delete(curve.key) : state.off.add(curve.key);
      refresh({ keep: `[data-key="${curve.key}"] input` });
      remember();
    });
    const key = make("i", { className: curve.hollow ? "key hollow" : "key" });
    key.style.setProperty("--key", curve.colour);
    return make("label", {}, box, key, make("span", { textContent: curve.answer ? curve.answer.phrase : curve.label }));
  };
  const open = (curve, size, label) => {
    const found = benchmark(curve, size);
    const name = make("button", { type: "button", className: "open", textContent: label, disabled: !found, title: "Show everything that was measured of this benchmark" });
    name.addEventListener("click", () => {
      chosen = curve.key;
      details(true);
    });
    return name;
  };
  const answerItem = (curve, size) => {
    const { answer } = curve, dot = reading(curve, size), found = benchmark(curve, size);
    const item = make("li", {}, toggle(curve));
    item.dataset.key = curve.key;
    if (answer) {
      item.append(
        make("p", { className: "says" }, make("b", { textContent: answer.from }), " ", make("small", { textContent: answer.range }), make("span", {}, make("b", { textContent: answer.by }), ` at ${at(answer.largest)}`)),
      );
    }
    const here = make("p", { className: "here" });
    here.append(`${at(size)}: `, make("b", { textContent: dot ? written(dot) : "not measured" }));
    if (found && facts(found.row).share) here.append(", limited by ", make("b", { textContent: kinds[facts(found.row).kind] }), `: ${facts(found.row).share}`);
    item.append(here);
    const last = make("p", { className: "rests" }, open(curve, size, found ? named(found.series) : curve.series ? named(curve.series) : "best CPU code"));
    if (answer) {
      const sure = make("a", { className: `trust ${answer.grade}`, href: `#${answer.evidence}` }, make("b", { textContent: answer.sure }), `: ${answer.marks.split(", ").slice(0, 2).join(", ")}`);
      last.append(" ", sure);
    }
    item.append(last);
    return item;
  };
  const rowItem = (curve, size) => {
    const dot = reading(curve, size), found = benchmark(curve, size);
    const item = make("li", { className: "row" }, toggle(curve));
    item.dataset.key = curve.key;
    item.append(make("span", { className: "value", textContent: dot ? text(dot[1]) : "·" }), open(curve, size, "details"));
    item.querySelector(".open").setAttribute("aria-label", `Details of ${curve.label}`);
    const notes = found ? [curve.series.clock, facts(found.row).share, facts(found.row).slowed && `▾ ${facts(found.row).slowed}`, facts(found.row).unsteady && "± unsteady"] : [curve.series.clock];
    if (!curve.series.counts) notes.push("does not measure the work");
    item.append(make("small", { textContent: notes.filter(Boolean).join(", ") }));
    return item;
  };

  const side = () => {
    const size = state.at;
    $("c-winner").textContent = size === null ? "Choose a curve below." : winner(size);
    $("c-answers").className = state.rows;
    // Rows by their time at the cursor, those without one last.
    const took = (curve) => (curve.series.counts && (rowAt(curve.series, size) || [])[1]) || Infinity;
    const order = state.rows === "answers" ? curves : [...curves].sort((a, b) => took(a) - took(b) || 0);
    $("c-answers").replaceChildren(...order.map((curve) => (state.rows === "answers" ? answerItem(curve, size) : rowItem(curve, size))));
  };
  const details = (look) => {
    const curve = curves.find((c) => c.key === chosen), found = curve && state.at !== null && benchmark(curve, state.at);
    benchmarkDetails(group, found && found.series, found && found.row, found ? named(found.series) : "");
    if (look && found) $("c-one").scrollIntoView({ block: "nearest" });
  };
  // For those who cannot see a canvas: what it shows, as a table.
  const table = () => {
    if (!$("c-table").open) return;
    const columns = shown(), sizes = chart.sizes();
    const head = make("tr", {}, make("th", { textContent: group.symbol, scope: "col" }), ...columns.map((c) => make("th", { textContent: c.label, scope: "col", className: "n" })));
    const body = sizes.map((size) => {
      const cells = columns.map((curve) => {
        const dot = reading(curve, size), found = benchmark(curve, size);
        const cell = make("td", { className: "n", textContent: dot ? written(dot) : "·" });
        if (dot && found && facts(found.row).share) cell.append(make("small", { textContent: facts(found.row).share }));
        return cell;
      });
      return make("tr", {}, make("th", { textContent: sized(size), scope: "row" }), ...cells);
    });
    one("#c-table .scroll").replaceChildren(make("table", { className: "matrix" }, make("thead", {}, head), make("tbody", {}, ...body)));
  };
  const roof = () => {
    if (!$("c-roof").open) return;
    const placed = ofRows().map((curve) => ({
      ...curve,
      places: curve.series.rows.filter((row) => facts(row).roof).map((row) => [...facts(row).roof, at(row[0])]),
    })).filter((curve) => curve.places.length);
    const any = drawRoofline(group, placed);
    $("c-roofline").parentElement.hidden = !any;
    $("c-roof-note").textContent = any
      ? "Each implementation is a line with one point per size; the largest point is the largest size. The horizontal lines are the peaks of this machine's arithmetic, the dashed ones the bandwidths of its memories, caches and link. An implementation that moves data between host and device is placed by the bytes that cross the link, any other by the bytes that its kernels read and write."
      : "No implementation of this group counts both its FLOP and its bytes, so none has a place in a roofline.";
  };

  const CAPTIONS = {
    speedup: "Speedup over the best CPU code by size; above 1× the GPU is faster",
    time: "Time per iteration by size",
    rate: "Throughput by size, with what limits it",
  };
  const describe = () => {
    const node = $("c-plot"), sizes = chart.sizes(), i = sizes.indexOf(state.at);
    node.setAttribute("aria-valuemin", 0);
    node.setAttribute("aria-valuemax", Math.max(0, sizes.length - 1));
    node.setAttribute("aria-valuenow", Math.max(0, i));
    const values = shown().map((curve) => [curve, reading(curve, state.at)]).filter(([, dot]) => dot);
    node.setAttribute("aria-valuetext", state.at === null ? "nothing shown" : `${at(state.at)}: ${values.map(([curve, dot]) => `${curve.label} ${text(dot[1])}`).join("; ")}`);
  };
  const moved = (size) => {
    state.at = size;
    side();
    details(false);
    describe();
    remember();
  };

  const refresh = ({ keep } = {}) => {
    curves = state.rows === "answers" ? ofAnswers() : ofRows();
    const speedup = state.show === "speedup", visible = shown();
    const bands = speedup || visible.length <= 6;
    const crossings = state.rows === "answers" || speedup ? group.answers.map((answer, i) => ({ answer, curve: ofCrossing(answer, i) })).filter(({ answer, curve }) => answer.size && curve) : [];
    const limits = state.show === "rate" ? (group.unit === "FLOP/s" ? group.flops : group.bytes) : [];
    if (!visible.some((curve) => reading(curve, state.at))) state.at = usual();
    $("c-caption").textContent = `${CAPTIONS[state.show]}${speedup && state.rows === "answers" ? "; the bands span other processes" : ""}`;
    chart.show({
      x: { log: state.x === "log", base: group.sizes === "time" ? 10 : 2, words: (v) => words.brief(sized(Number(v.toPrecision(12)))), label: group.axis },
      y: { log: state.y === "log", words: (v) => (v ? words.brief(text(v)) : "0") },
      curves: visible.map((curve) => ({ ...curve, banded: bands && curve.banded })),
      crossings: crossings.map(({ answer, curve }) => ({
        size: answer.size, low: answer.low, high: answer.high, colour: curve.colour,
        text: answer.from, title: `${answer.phrase}: ${answer.from}, another run would find ${answer.range}`,
      })),
      lines: limits.map((limit) => ({ ...limit, colour: colour(limit.cpu ? "--cpu" : "--gpu") })),
      even: speedup,
      at: state.at,
      from: state.from,
      to: state.to,
    });
    side();
    details(false);
    table();
    roof();
    describe();
    if (keep) one(`#c-answers ${keep}`)?.focus();
  };
  // The curve that a crossing is of: the answer's own, or the row that it is.
  const ofCrossing = (answer, i) => {
    const is = (curve) => (state.rows === "answers" ? curve.answer === answer : Number(curve.key) === answer.series);
    return shown().find(is);
  };

  const zoom = (from, to) => {
    [state.from, state.to] = [from, to];
    refresh();
    remember();
  };
  // Half or twice of what is seen, around the cursor.
  const scale = (by) => {
    const geometry = chart.geometry(), all = chart.sizes();
    if (!geometry || all.length < 2) return;
    const { x } = geometry;
    const [low, high] = [x.of(state.from ?? all[0]), x.of(state.to ?? all[all.length - 1])], middle = x.of(state.at);
    let [a, b] = [middle - (middle - low) * by, middle + (high - middle) * by];
    if (by < 1 && all.filter((size) => x.of(size) >= a - 1e-9 && x.of(size) <= b + 1e-9).length < 2) return;
    // Wider than it is to one side of a cursor at its end.
    if (by > 1) [a, b] = [a - 0.25 * (high - low), b + 0.25 * (high - low)];
    const ends = [x.of(all[0]), x.of(all[all.length - 1])];
    if (a <= ends[0] && b >= ends[1]) zoom(null, null);
    else zoom(x.back(Math.max(a, ends[0])), x.back(Math.min(b, ends[1])));
  };
  const pan = (by) => {
    const all = chart.sizes(), { x } = chart.geometry();
    if (state.from === null && state.to === null) return;
    const ends = [x.of(all[0]), x.of(all[all.length - 1])];
    const [low, high] = [x.of(state.from ?? all[0]), x.of(state.to ?? all[all.length - 1])];
    const step = Math.max(ends[0] - low, Math.min(ends[1] - high, by * 0.5 * (high - low)));
    zoom(x.back(low + step), x.back(high + step));
  };
  const step = (by) => {
    const all = chart.sizes(), i = all.indexOf(state.at);
    if (i < 0) return;
    const next = all[Math.max(0, Math.min(all.length - 1, i + by))];
    // The view follows the cursor.
    const inView = (state.from === null || next >= state.from * 0.999999) && (state.to === null || next <= state.to * 1.000001);
    state.at = next;
    if (!inView) pan(Math.sign(by));
    if (state.from !== null && next < state.from) zoom(next, state.to);
    if (state.to !== null && next > state.to) zoom(state.from, next);
    chart.point(next);
    moved(next);
  };
  const KEYS = {
    ArrowLeft: () => step(-1), ArrowDown: () => step(-1), ArrowRight: () => step(1), ArrowUp: () => step(1),
    Home: () => step(-Infinity), End: () => step(Infinity),
    "+": () => scale(0.5), "=": () => scale(0.5), "-": () => scale(2),
    PageUp: () => pan(-1), PageDown: () => pan(1), Escape: () => zoom(null, null), 0: () => zoom(null, null),
  };

  // The address of the view. Other anchors of the page stay what they are until the chart is used.
  const PREFIX = "#chart:";
  const address = () => {
    const kept = new URLSearchParams({ group: state.group });
    for (const name of Object.keys(CHOICES)) if (state[name] !== CHOICES[name][0]) kept.set(name, state[name]);
    if (state.off.size) kept.set("off", [...state.off].join(","));
    if (state.at !== null && state.at !== usual()) kept.set("at", state.at);
    for (const name of ["from", "to"]) if (state[name] !== null) kept.set(name, Number(state[name].toPrecision(6)));
    return PREFIX + kept;
  };
  const remember = () => {
    const link = address();
    $("c-link").href = link;
    history.replaceState(null, "", link);
  };
  const fromAddress = () => {
    if (!location.hash.startsWith(PREFIX)) return null;
    const kept = new URLSearchParams(location.hash.slice(PREFIX.length));
    const found = groups.find((g) => g.name === kept.get("group"));
    if (!found) return null;
    const number = (name) => (Number(kept.get(name)) > 0 && Number.isFinite(Number(kept.get(name))) ? Number(kept.get(name)) : null);
    const given = { ...fresh(found.name), at: number("at"), from: number("from"), to: number("to") };
    for (const [name, choices] of Object.entries(CHOICES)) if (choices.includes(kept.get(name))) given[name] = kept.get(name);
    given.off = new Set((kept.get("off") || "").split(",").filter(Boolean));
    return given;
  };

  // What a group does not have cannot be chosen.
  const enter = (given) => {
    state = given;
    group = groups.find((g) => g.name === state.group);
    chosen = null;
    $("c-group").value = state.group;
    const cpu = group.series.some((s) => s.own && s.device === "cpu");
    const offered = { speedup: cpu && group.compares, time: true, rate: !!group.unit };
    if (!offered[state.show]) state.show = "time";
    if (!group.answers.length) state.rows = "all";
    for (const name of Object.keys(CHOICES)) {
      for (const radio of document.querySelectorAll(`#c-${name} input`)) {
        radio.checked = radio.value === state[name];
        if (name === "show") radio.disabled = !offered[radio.value];
        if (name === "rows") radio.disabled = radio.value === "answers" && !group.answers.length;
      }
    }
    refresh();
    $("c-link").href = address();
  };

  const options = (of) => of.map((g) => make("option", { value: g.name, textContent: g.title }));
  const [answered, others] = [groups.filter((g) => g.answers.length), groups.filter((g) => !g.answers.length)];
  if (answered.length && others.length) {
    $("c-group").append(make("optgroup", { label: "CPU against GPU" }, ...options(answered)), make("optgroup", { label: "Other measurements" }, ...options(others)));
  } else $("c-group").append(...options(groups));
  $("c-group").addEventListener("change", () => {
    enter({ ...fresh($("c-group").value), show: state.show, rows: state.rows, x: state.x, y: state.y });
    remember();
  });
  for (const name of Object.keys(CHOICES)) {
    $(`c-${name}`).addEventListener("change", (event) => {
      state[name] = event.target.value;
      // Their names are of other curves.
      if (name === "rows") state.off = new Set();
      refresh();
      remember();
    });
  }
  $("c-plot").addEventListener("keydown", (event) => {
    const act = !event.ctrlKey && !event.metaKey && !event.altKey && KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  $("c-in").addEventListener("click", () => scale(0.5));
  $("c-out").addEventListener("click", () => scale(2));
  $("c-all").addEventListener("click", () => zoom(null, null));
  $("c-table").addEventListener("toggle", table);
  $("c-roof").addEventListener("toggle", roof);
  // A card leads to its group in the chart.
  for (const link of document.querySelectorAll("[data-group]")) {
    if (groups.some((g) => g.name === link.dataset.group)) link.href = `${PREFIX}${new URLSearchParams({ group: link.dataset.group })}`;
  }
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target.parentElement; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", () => {
    const given = fromAddress();
    if (!given) return reveal();
    enter(given);
    $("chart").scrollIntoView();
  });
  document.querySelectorAll(".scripted").forEach((node) => (node.hidden = false));
  let width = $("c-plot").clientWidth;
  enter(fromAddress() || fresh((answered[0] || groups[0]).name));
  reveal();
  new ResizeObserver(() => {
    if ($("c-plot").clientWidth === width) return;
    width = $("c-plot").clientWidth;
    refresh();
  }).observe($("c-plot"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => refresh());
})();
