(() => {
  const { groups } = JSON.parse(document.getElementById("data").textContent);
  if (!groups.length) return;
  const $ = (id) => document.getElementById(id);
  // Numbers as the tables write them.
  const digits = (v) => {
    const magnitude = Math.floor(Math.log10(Math.abs(v)) + 1e-12);
    if (!(magnitude >= -4 && magnitude < 15)) return v ? v.toExponential(2).replace("+", "") : "0";
    const rounded = Number(v.toPrecision(3));
    return rounded.toLocaleString("en-US", {
      minimumFractionDigits: Math.max(0, 2 - magnitude),
      maximumFractionDigits: Math.max(0, 2 - magnitude),
    });
  };
  const scaled = (v, steps) => {
    const [scale, unit] = steps.find(([scale]) => Math.abs(v) >= 0.9995 * scale) || steps[steps.length - 1];
    return `${digits(v / scale)} ${unit}`;
  };
  const time = (ns) => scaled(ns, [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
  const rate = (v, unit) =>
    scaled(v, [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]].map(([s, p]) => [s, p + unit]));
  const factor = (r) => (r < 9.95 ? r.toFixed(1).replace(/\.0$/, "") : r >= 1e15 ? digits(r) : Math.round(Number(r.toPrecision(3))).toLocaleString("en-US")) + "×";
  const exponent = (n) => String(n).replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);
  const binary = (s) => {
    const [unit, name] = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]].find(([unit]) => s >= unit) || [1, "B"];
    return s % unit ? rate(s, "B") : `${(s / unit).toLocaleString("en-US")} ${name}`;
  };
  const counted = (s) =>
    s >= 2 ** 14 && Number.isInteger(Math.log2(s)) ? "2" + exponent(Math.log2(s)) : s.toLocaleString("en-US");

  const energy = (j) => scaled(j, [[1, "J"], [1e-3, "mJ"], [1e-6, "µJ"]]);
  const label = (s) => (s.machine ? `${s.name}, ${s.machine}` : s.name);
  // Of a row: size, median, interval, amount of work, and what else is known.
  const facts = (r) => r[5];
  let group, shown, sizes, at, plotted, chosen;
  const sized = (s) => ({ count: counted, bytes: binary, time })[group.sizes](s);

  const interval = (r) => (r[2] && r[3] ? ` (${time(r[2])} to ${time(r[3])})` : "");
  const row = (series, size) => series.rows.find((r) => r[0] === size);
  // Something unsteady that may be faster than `than`: then nothing slower is the fastest.
  const doubtful = (found, than) => found.find(({ s, r }) => s.counts && facts(r).unsteady && (r[2] || r[1]) < than[1]);
  // The fastest CPU code of the machine that the report is about.
  const baseline = (size) => {
    const own = group.series.filter((s) => s.own && s.device === "cpu" && s.counts).map((s) => ({ s, r: row(s, size) }));
    const found = own.filter((f) => f.r);
    const steady = found.filter((f) => !facts(f.r).unsteady).sort((a, b) => a.r[1] - b.r[1]);
    const best = steady[0];
    return best && !doubtful(found, best.r) ? { series: best.s, row: best.r } : null;
  };
  const metrics = {
    time: { value: (s, r) => r[1], text: time },
    speedup: {
      value: (s, r) => (s.counts && baseline(r[0]) ? baseline(r[0]).row[1] / r[1] : null),
      text: factor,
    },
    rate: {
      value: (s, r) => (s.counts && r[4] ? r[4] / (r[1] * 1e-9) : null),
      text: (v) => rate(v, group.unit),
    },
  };
  const metric = () => metrics[document.querySelector("#x-metric input:checked").value];

  const openGroup = (name) => {
    group = groups.find((g) => g.name === name);
    const headline = group.series.filter((s) => s.headline);
    pick(headline.length ? headline : group.series.filter((s) => s.counts));
    const offered = { time: true, speedup: group.series.some((s) => s.own && s.device === "cpu"), rate: !!group.unit };
    for (const radio of document.querySelectorAll("#x-metric input")) radio.disabled = !offered[radio.value];
    if (document.querySelector("#x-metric input:checked").disabled) $("x-metric").querySelector("[value=time]").checked = true;
    document.querySelector("[data-pick=headline]").hidden = !headline.length;
    const chips = group.series.map((s, i) => {
      const box = make("input", { type: "checkbox", checked: shown.has(s), value: i });
      box.addEventListener("change", () => {
        box.checked ? shown.add(s) : shown.delete(s);
        resize();
        refresh();
      });
      const line = draw("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" });
      line.append(
        draw("line", { x1: 0, x2: 26, y1: 4, y2: 4, class: `s-${s.class}`, "stroke-width": s.machine ? 1.4 : 2.6, "stroke-dasharray": s.dash && s.dash.join(" ") }),
      );
      return make("label", {}, box, line, label(s), make("small", { textContent: s.clock }));
    });
    document.querySelector("#x-series .chips").replaceChildren(...chips);
    refresh();
  };
  const pick = (series) => {
    shown = new Set(series);
    resize();
  };
  const resize = () => {
    const before = sizes && sizes[at];
    sizes = [...new Set([...shown].flatMap((s) => s.rows.map((r) => r[0])))].sort((a, b) => a - b);
    at = sizes.indexOf(before);
    if (at < 0) at = sizes.length - 1;
    $("x-size").max = Math.max(0, sizes.length - 1);
    $("x-size").value = at;
  };

  const LEFT = 84, RIGHT = 16, TOP = 14, BOTTOM = 52;
  let W = 760, H = 430;
  const chart = () => {
    const svg = $("x-chart");
    // Drawn at its own width, so that letters keep their size on a phone.
    W = Math.max(300, svg.parentElement.clientWidth);
    H = Math.round(Math.min(430, W * 0.8));
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    svg.replaceChildren();
    plotted = [];
    $("x-slowed").hidden = true;
    const m = metric();
    const curves = [...shown].map((s) => ({
      s,
      dots: s.rows.filter((r) => r[0] > 0).map((r) => ({ r, v: m.value(s, r) })).filter((d) => d.v > 0 && d.v < Infinity),
    }));
    const values = curves.flatMap((c) => c.dots.map((d) => Math.log10(d.v)));
    if (!values.length) {
      svg.append(draw("text", { x: W / 2, y: H / 2, "text-anchor": "middle", class: "f-muted" }, "Choose an implementation below."));
      return;
    }
    const spread = (list, least) => {
      let low = Math.min(...list), high = Math.max(...list);
      const room = Math.max(0.04 * (high - low), (least - (high - low)) / 2);
      return [low - room, high + room];
    };
    const xs = curves.flatMap((c) => c.dots.map((d) => Math.log2(d.r[0])));
    const [x0, x1] = spread(xs, 1), [y0, y1] = spread(values, 0.4);
    const x = (size) => LEFT + ((Math.log2(size) - x0) / (x1 - x0)) * (W - LEFT - RIGHT);
    const y = (v) => TOP + (1 - (Math.log10(v) - y0) / (y1 - y0)) * (H - TOP - BOTTOM);
    const grid = (x1, y1, x2, y2) => svg.append(draw("line", { x1, y1, x2, y2, class: "s-grid" }));
    const fine = y1 - y0 < 2.2 ? [1, 2, 5] : [1];
    const every = Math.ceil((y1 - y0) / 9);
    for (let d = Math.floor(y0); d <= y1; d++) {
      for (const f of fine) {
        const v = f * 10 ** d, l = Math.log10(v);
        if (l < y0 || l > y1 || (fine.length === 1 && d % every)) continue;
        grid(LEFT, y(v), W - RIGHT, y(v));
        const short = m === metrics.speedup && v < 1 ? String(Number(v.toPrecision(1))) + "×" : m.text(v).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
        svg.append(draw("text", { x: LEFT - 8, y: y(v), dy: ".35em", "text-anchor": "end", "font-size": 13, class: "f-muted" }, short));
      }
    }
    const base = group.sizes === "time" ? 10 : 2, per = Math.log2(base);
    const step = Math.ceil((x1 - x0) / per / (W / 76));
    for (let e = Math.ceil(x0 / per); e * per <= x1; e++) {
      const size = base ** e;
      if (e % step) continue;
      grid(x(size), TOP, x(size), H - BOTTOM);
      svg.append(draw("text", { x: x(size), y: H - BOTTOM + 18, "text-anchor": "middle", "font-size": 13, class: "f-muted" }, sized(size)));
    }
    svg.append(draw("text", { x: (LEFT + W - RIGHT) / 2, y: H - 10, "text-anchor": "middle", "font-size": 13, class: "f-ink" }, group.axis));
    if (m === metrics.speedup && y0 < 0 && y1 > 0) {
      svg.append(draw("line", { x1: LEFT, x2: W - RIGHT, y1: y(1), y2: y(1), class: "s-ink", "stroke-width": 1.2 }));
    }
    const here = sizes[at];
    svg.append(draw("line", { x1: x(here), x2: x(here), y1: TOP, y2: H - BOTTOM, class: "s-muted", "stroke-width": 1.2 }));
    for (const c of group.crossings) {
      if (c.size && c.size >= 2 ** x0 && c.size <= 2 ** x1 && [...shown].some((s) => s.name === c.gpu && s.clock === c.clock && !!s.machine === !!c.machine)) {
        svg.append(draw("line", { x1: x(c.size), x2: x(c.size), y1: TOP, y2: H - BOTTOM, class: "s-ink", "stroke-width": 1, "stroke-dasharray": "1 4" }));
      }
    }
    for (const { s, dots } of curves) {
      const points = dots.map((d) => `${x(d.r[0]).toFixed(1)},${y(d.v).toFixed(1)}`).join(" ");
      svg.append(draw("polyline", { points, fill: "none", class: `s-${s.class}`, "stroke-width": s.machine ? 1.4 : 2.4, "stroke-dasharray": s.dash && s.dash.join(" "), "stroke-linejoin": "round" }));
      for (const d of dots) {
        const dot = { cx: x(d.r[0]), cy: y(d.v), r: d.r[0] === here ? 5 : 3.2 };
        svg.append(draw("circle", { ...dot, class: s.machine ? `f-paper s-${s.class}` : `f-${s.class}`, "stroke-width": 1.4 }));
        if (facts(d.r).slowed) {
          $("x-slowed").hidden = false;
          svg.append(draw("text", { x: dot.cx, y: dot.cy - 7, "text-anchor": "middle", "font-size": 13, class: "f-ink" }, "▾"));
        }
        plotted.push({ ...dot, s, r: d.r });
      }
    }
  };

  const side = () => {
    const size = sizes[at];
    const base = size === undefined ? null : baseline(size);
    const found = [...shown].map((s) => ({ s, r: row(s, size) })).filter((f) => f.r).sort((a, b) => a.r[1] - b.r[1]);
    const best = found.find((f) => f.s.counts && !facts(f.r).unsteady);
    $("x-size-label").textContent = size === undefined ? "" : `${group.symbol} = ${sized(size)}`;
    const versus = (f) => base.row[1] / f.r[1];
    let text = "Choose an implementation below.";
    const doubt = best && doubtful(found, best.r);
    // Measured at smaller and larger sizes, but not here: it might be the fastest.
    const absent = best && [...shown].find((s) => s.counts && !row(s, size) && s.rows.some((r) => r[0] < size) && s.rows.some((r) => r[0] > size));
    if (absent && group.compares) {
      text = `No winner at ${group.symbol} = ${sized(size)}: ${label(absent)} was not run there.`;
    } else if (doubt && group.compares) {
      text = `No winner at ${group.symbol} = ${sized(size)}: ${label(doubt.s)} is unsteady.`;
    } else if (best) {
      text = group.compares ? `Winner at ${group.symbol} = ${sized(size)}: ${label(best.s)}, ${time(best.r[1])}` : `At ${group.symbol} = ${sized(size)}`;
      if (base && base.series !== best.s) {
        const v = versus(best);
        text += v >= 1 ? `, ${factor(v)} faster than ${base.series.name} (${time(base.row[1])})` : `, ${factor(1 / v)} slower than ${base.series.name} (${time(base.row[1])})`;
      }
      text += ".";
    }
    $("x-winner").textContent = text;
    const logs = found.map((f) => Math.log(f.r[1]));
    const low = Math.min(...logs) - 0.3, high = Math.max(...logs);
    const picked = found.find((f) => f.s === chosen) || found.find((f) => f.s.counts && facts(f.r).telemetry) || best || found[0];
    details(picked);
    $("x-bars").replaceChildren(
      ...found.map((f) => {
        const name = make("button", { type: "button", textContent: label(f.s), ariaPressed: f === picked });
        name.addEventListener("click", () => {
          choose(f.s);
          document.querySelector("#x-bars [aria-pressed=true]").focus();
        });
        const { slowed, unsteady } = facts(f.r);
        const bar = draw("svg", { class: "bar", viewBox: "0 0 100 5", preserveAspectRatio: "none", width: "100%", height: 5 });
        bar.append(draw("rect", { width: (100 * (Math.log(f.r[1]) - low)) / (high - low), height: 5, class: `f-${f.s.class}` }));
        return make(
          "li",
          {},
          make("span", {}, name, " ", make("i", { textContent: f.s.counts ? f.s.clock : `${f.s.clock}, not the work` }), ...(slowed ? [make("i", { className: "slowed", textContent: `▾ ${slowed}` })] : []), ...(unsteady ? [make("i", { className: "unsteady", title: unsteady, textContent: "± unsteady" })] : [])),
          make("span", { textContent: time(f.r[1]) }),
          make("span", { className: "ratio", textContent: base && f.s.counts ? (versus(f) >= 1 ? factor(versus(f)) : versus(f).toPrecision(2) + "×") : "" }),
          bar,
        );
      }),
    );
    const crossings = group.crossings.filter((c) => [...shown].some((s) => s.name === c.gpu && s.clock === c.clock && !!s.machine === !!c.machine));
    $("x-crossings").replaceChildren(
      ...crossings.map((c) => {
        const item = make("li", {}, make("b", { textContent: c.label }), ` (${c.question}) wins ${c.wins}, against ${c.cpu}`);
        if (c.size) item.dataset.size = c.size;
        item.dataset.gpu = c.gpu;
        return item;
      }),
    );
  };
  // Everything known of one benchmark, and its telemetry.
  const details = (picked) => {
    $("x-one").hidden = !picked;
    if (!picked) return;
    const { s, r } = picked, { share, joules, error, capped, unsteady, remarks, run, telemetry } = facts(r);
    $("x-name").textContent = `${label(s)} at ${group.symbol} = ${sized(r[0])}`;
    const known = [["clock", s.clock], ["time", time(r[1]) + interval(r)]];
    if (r[4] && s.counts) known.push(["throughput", rate(r[4] / (r[1] * 1e-9), group.unit)]);
    if (share) known.push(["share of the limit", share]);
    if (joules) {
      const work = r[4] && group.unit === "FLOP/s" ? `, ${rate(r[4] / joules, "FLOP/J")}` : "";
      known.push(["energy of an iteration", energy(joules) + work]);
    }
    if (error) known.push(["error", error.toExponential(1)]);
    if (capped) known.push(["power cap", capped]);
    if (unsteady) known.push(["unsteady", unsteady]);
    if (remarks) known.push(["remarks", remarks]);
    if (run) known.push(["run", run]);
    $("x-facts").replaceChildren(...known.map(([name, text]) => make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: text }))));
    $("x-telemetry").hidden = !telemetry;
    if (!telemetry) return;
    const events = drawTelemetry($("x-telemetry").querySelector("svg"), telemetry);
    $("x-events").replaceChildren(...events.map((text) => make("li", { textContent: text })));
    $("x-calm").hidden = events.length > 0;
  };
  const choose = (series, size = sizes[at]) => {
    chosen = series;
    at = sizes.indexOf(size);
    $("x-size").value = at;
    refresh();
  };
  const refresh = () => {
    $("x-tip").hidden = true;
    chart();
    side();
  };

  const nearest = (event) => {
    const box = $("x-chart").getBoundingClientRect();
    const px = ((event.clientX - box.left) * W) / box.width, py = ((event.clientY - box.top) * H) / box.height;
    let near = null, least = 26 ** 2;
    for (const p of plotted) {
      const d = (p.cx - px) ** 2 + (p.cy - py) ** 2;
      if (d < least) [near, least] = [p, d];
    }
    return near;
  };
  const hover = (event) => {
    const tip = $("x-tip"), box = $("x-chart").getBoundingClientRect(), near = nearest(event);
    tip.hidden = !near;
    if (!near) return;
    const { s, r } = near, base = baseline(r[0]), { share, slowed, capped, unsteady } = facts(r);
    const lines = [label(s), `${group.symbol} = ${sized(r[0])}, clock ${s.clock}`, time(r[1]) + interval(r)];
    if (r[4] && s.counts && group.unit) lines.push(rate(r[4] / (r[1] * 1e-9), group.unit));
    if (share) lines.push(share);
    if (base && s.counts && base.series !== s) {
      const v = base.row[1] / r[1];
      lines.push(v >= 1 ? `${factor(v)} faster than ${base.series.name}` : `${factor(1 / v)} slower than ${base.series.name}`);
    }
    if (!s.counts) lines.push("does not measure the work");
    if (slowed) lines.push(`▾ ${slowed}${capped ? `: ${capped}` : ""}`);
    if (unsteady) lines.push(`± unsteady: ${unsteady}`);
    tip.textContent = lines.join("\n");
    const left = (near.cx * box.width) / W, right = left > box.width / 2;
    tip.style.left = right ? "" : `${left + 14}px`;
    tip.style.right = right ? `${box.width - left + 14}px` : "";
    tip.style.top = `${Math.max(0, (near.cy * box.height) / H - 20)}px`;
  };

  $("x-group").append(...groups.map((g) => make("option", { value: g.name, textContent: g.title })));
  $("x-group").addEventListener("change", () => openGroup($("x-group").value));
  $("x-metric").addEventListener("change", refresh);
  $("x-size").addEventListener("input", () => {
    at = Number($("x-size").value);
    refresh();
  });
  for (const button of document.querySelectorAll("#x-series button")) {
    button.addEventListener("click", () => {
      pick(group.series.filter((s) => (button.dataset.pick === "all" ? true : s.headline)));
      document.querySelectorAll("#x-series input").forEach((box) => (box.checked = shown.has(group.series[box.value])));
      refresh();
    });
  }
  $("x-chart").addEventListener("pointermove", hover);
  $("x-chart").addEventListener("pointerdown", hover);
  $("x-chart").addEventListener("click", (event) => {
    const near = nearest(event);
    if (near) choose(near.s, near.r[0]);
  });
  $("x-chart").addEventListener("pointerleave", () => ($("x-tip").hidden = true));
  new ResizeObserver(() => {
    if ($("x-chart").parentElement.clientWidth !== W) refresh();
  }).observe($("x-chart").parentElement);
  document.querySelectorAll(".scripted").forEach((node) => (node.hidden = false));
  openGroup(groups[0].name);
})();
