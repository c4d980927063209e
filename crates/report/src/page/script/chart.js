import { make } from "./dom.js";
import { sized } from "./words.js";
// The chart. Range, lines and texts of both axes come with the data, and uPlot draws them; bands, limits,
// crossings and the legend are ours. Positions are logarithms, so uPlot's axes are linear.
const FONT = "12px system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif";
// On and off lengths of a clock's line; that of the wall is solid.
const DASHES = { "events-gated": [11, 3], events: [6, 4], "events-cold": [9, 3, 2, 3], submit: [2, 3], unknown: [3, 7] };
// Curves of implementations in colour; the others are grey.
const FRONT = 3;
const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -Infinity, End: Infinity };
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const inFrame = (u, paint) => {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  paint(ctx, (size) => u.valToPos(Math.log2(size), "x", true), (value) => u.valToPos(Math.log10(value), "y", true));
  ctx.restore();
};
const stroke = (ctx, from, to) => {
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
};
// Bands, limits and crossings, under the curves.
const underCurves = (u, curves, limits) =>
  inFrame(u, (ctx, X, Y) => {
    const { left, top, width, height } = u.bbox, px = uPlot.pxRatio;
    for (const { band, ink } of curves) {
      if (band.length < 2) continue;
      ctx.beginPath();
      for (const { size, high } of band) ctx.lineTo(X(size), Y(high));
      for (const { size, low } of [...band].reverse()) ctx.lineTo(X(size), Y(low));
      ctx.globalAlpha = 0.17;
      ctx.fillStyle = ink;
      ctx.fill();
    }
    ctx.globalAlpha = 1;
    ctx.lineWidth = px;
    ctx.setLineDash([2 * px, 3 * px]);
    for (const { value, colour: paint } of limits) {
      ctx.strokeStyle = colour(paint);
      stroke(ctx, [left, Y(value)], [left + width, Y(value)]);
    }
    for (const { crossing, ink } of curves) {
      if (!crossing) continue;
      // The interval as a veil, the crossing as a line.
      const [a, b] = [X(crossing.low), X(crossing.high)];
      ctx.fillStyle = ctx.strokeStyle = ink;
      ctx.globalAlpha = 0.1;
      ctx.fillRect(a, top, Math.max(px, b - a), height);
      ctx.globalAlpha = 1;
      ctx.fillRect(a, top, Math.max(2 * px, b - a), 3 * px);
      stroke(ctx, [X(crossing.size), top], [X(crossing.size), top + height]);
    }
  });
// The results of single processes, over the curves.
const singleDots = (u, curves) =>
  inFrame(u, (ctx, X, Y) => {
    ctx.globalAlpha = 0.45;
    for (const { single, ink } of curves) {
      ctx.fillStyle = ink;
      for (const { size, value } of single) {
        ctx.beginPath();
        ctx.arc(X(size), Y(value), 1.6 * uPlot.pxRatio, 0, 7);
        ctx.fill();
      }
    }
  });
export const chartPanel = (chosen) => {
  const $ = (id) => document.getElementById(id), box = $("c-plot");
  let plot = null, group = null, curves = [], limits = [], sizes = [], size = null;
  const reads = (at) => {
    const values = curves.map((curve) => [curve, curve.dots.find((dot) => dot.size === at)]).filter(([, dot]) => dot);
    const words = `${group.symbol} = ${sized(group, at)}`;
    $("c-at").textContent = `${words}:`;
    box.setAttribute("aria-valuetext", `${words}: ${values.map(([{ label }, { text }]) => `${label} ${text}`).join("; ")}`);
    const limit = ({ label, colour: paint }) => {
      const item = make("li", { className: "limit", textContent: label });
      item.style.setProperty("--key", colour(paint));
      return item;
    };
    $("c-legend").replaceChildren(...curves.map((curve) => {
      const dot = curve.dots.find((dot) => dot.size === at);
      const item = make("li", {}, `${curve.label} `, make("b", { textContent: dot ? dot.text : "–" }), make("small", { textContent: curve.crossing ? `GPU wins: ${curve.crossing.text}` : "" }));
      item.style.setProperty("--key", curve.ink);
      return item;
    }), ...limits.map(limit));
  };
  const pointAt = () => {
    const i = sizes.indexOf(size);
    if (plot && i >= 0) plot.setCursor({ left: Math.max(0, plot.valToPos(plot.data[0][i], "x")), top: plot.over.clientHeight / 2 }, false);
    if (i >= 0) reads(size);
  };
  const axis = ({ ticks }, room, extra) => {
    const longest = Math.max(1, ...ticks.map(({ text }) => text.length));
    const every = Math.max(1, Math.ceil(ticks.length / Math.max(2, room(longest))));
    const shown = ticks.filter((_, i) => i % every === 0);
    return {
      stroke: colour("--muted"),
      font: FONT,
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { stroke: colour("--line"), width: 1, size: 4 },
      incrs: (u, i, min, max) => [Math.max(5, max - min)],
      splits: () => shown.map(({ at }) => at),
      values: () => shown.map(({ text }) => text),
      ...extra(longest),
    };
  };
  // Shows a chart of a group at a size; returns the measured size that is the nearest.
  const show = (of, chart, view) => {
    plot?.destroy();
    [plot, group, curves, limits, sizes, size] = [null, of, [], [], [], view.size];
    box.replaceChildren();
    if (!chart) {
      box.append(make("p", { className: "empty", textContent: "Nothing was measured of this here." }));
      $("c-at").textContent = "";
      $("c-legend").replaceChildren();
      return size;
    }
    sizes = [...new Set(chart.curves.flatMap(({ dots }) => dots.map(({ size }) => size)))].sort((a, b) => a - b);
    const far = (one) => Math.abs(Math.log(one / view.size));
    size = sizes.reduce((a, b) => (far(b) < far(a) ? b : a));
    limits = chart.limits;
    const here = (curve) => curve.dots.find((dot) => dot.size === size)?.value;
    const fastest = chart.curves.filter(here).sort((a, b) => (chart.lowest_first ? 1 : -1) * (here(a) - here(b))).slice(0, FRONT);
    const inColour = (curve) => curve.place || curve.clock === "" || fastest.includes(curve);
    curves = chart.curves.map((curve) => ({ ...curve, front: inColour(curve), ink: colour(inColour(curve) ? curve.colour : "--grey"), width: curve.place === view.data ? 3 : inColour(curve) ? 2 : 1.2 }));
    curves.sort((a, b) => a.front - b.front);
    const { clientWidth: width, clientHeight: height } = box;
    plot = new uPlot({
      width,
      height,
      padding: [8, 12, 0, 0],
      pxAlign: false,
      legend: { show: false },
      scales: { x: { time: false, range: () => chart.x.ends }, y: { range: () => chart.y.ends } },
      axes: [
        axis(chart.x, (longest) => (width - 90) / (8 * longest + 16), () => ({ label: chart.axis, labelFont: FONT, labelSize: 18, size: 26, gap: 4 })),
        axis(chart.y, () => height / 40, (longest) => ({ size: 18 + 7 * longest, gap: 5 })),
      ],
      series: [{}, ...curves.map(({ ink, width, clock, dots }) => ({
        stroke: ink,
        width,
        dash: DASHES[clock] || [],
        spanGaps: true,
        points: { show: dots.length < 60, size: 5, width: 1, fill: ink, stroke: ink },
      }))],
      cursor: {
        y: false,
        // Moves from size to size.
        move: (u, l, t) => [u.valToPos(u.data[0][u.posToIdx(l)], "x"), t],
        points: { size: 9, width: 2 },
        drag: { x: false, y: false },
        // A click chooses the size; the mouse alone reads it.
        bind: { mouseleave: () => pointAt, click: (u) => () => chosen(sizes[u.cursor.idx]) },
      },
      hooks: {
        drawAxes: [(u) => underCurves(u, curves, limits)],
        draw: [(u) => singleDots(u, curves)],
        // Before that the scales are unknown.
        ready: [(u) => { plot = u; pointAt(); }],
        setCursor: [(u) => u.cursor.idx != null && reads(sizes[u.cursor.idx])],
      },
    }, [sizes.map(Math.log2), ...curves.map(({ dots }) => sizes.map((size) => dots.find((dot) => dot.size === size)).map((dot) => (dot ? Math.log10(dot.value) : null)))], box);
    box.setAttribute("aria-valuemax", sizes.length - 1);
    box.setAttribute("aria-valuenow", sizes.indexOf(size));
    pointAt();
    return size;
  };
  box.addEventListener("keydown", (event) => {
    const step = !event.ctrlKey && !event.metaKey && !event.altKey && KEYS[event.key];
    if (!step || !sizes.length) return;
    event.preventDefault();
    chosen(sizes[Math.max(0, Math.min(sizes.length - 1, sizes.indexOf(size) + step))]);
  });
  return show;
};
// All implementations at one size, the fastest first, as bars; the fastest of each clock is marked, and
// those within its interval.
export const implementationsTable = (group, size) => {
  const all = group.implementations.map((code) => ({ code, row: code.rows.find((row) => row.size === size) })).filter(({ row }) => row).sort((a, b) => a.row.ns - b.row.ns);
  const [shortest, longest] = [all[0], all.at(-1)].map((one) => Math.log(one?.row.ns));
  document.getElementById("i-rows").replaceChildren(...all.map(({ code, row }) => {
    const bar = make("i", { ariaHidden: "true", className: code.device });
    bar.style.width = `${15 + 85 * ((Math.log(row.ns) - shortest) / (longest - shortest || 1))}%`;
    return make("tr", { className: row.best ? "best" : "" },
      make("th", { scope: "row" }, code.name, ...row.notes.map((note) => make("small", { textContent: note }))),
      make("td", { className: "n", textContent: row.time }),
      make("td", { className: "n", textContent: row.speedup || "" }),
      make("td", { textContent: row.share || "" }), make("td", { textContent: code.clock }), make("td", { className: "bar" }, bar));
  }));
  document.getElementById("i-at").textContent = `${group.title} at ${group.symbol} = ${sized(group, size)}`;
};
