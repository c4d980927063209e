import { draw } from "./dom.js";
// What the device was seen to do while a benchmark ran: one track per quantity against time, and a
// numbered mark where something happened.
export const drawTelemetry = (() => {
  // In the order of the data, with the range that a track shows.
  const TRACKS = [
    ["SM clock", "MHz", (low, high) => [Math.min(low, 0.9 * high), high]],
    ["memory clock", "MHz", (low, high) => [Math.min(low, 0.9 * high), high]],
    ["power", "W", (low, high) => [0, high]],
    ["temperature", "°C", (low, high) => [Math.min(low, high - 10), high]],
    ["utilisation", "%", () => [0, 100]],
  ];
  const LEFT = 132, RIGHT = 14, TOP = 20, TALL = 40, GAP = 14, BOTTOM = 22;
  const number = (v) => (Math.abs(v) < 1e15 ? v.toLocaleString("en-US") : v.toExponential(2).replace("+", ""));
  const seconds = (ms) => `${Number((ms / 1000).toFixed(2))} s`;

  // A value and how often it stands there, one after the other.
  const spelled = (runs) => (runs || []).flatMap((value, i) => (i % 2 ? [] : Array(runs[i + 1]).fill(value)));

  return (svg, { time, lines, events }) => {
    let ms = 0;
    const times = spelled(time).map((step) => (ms += step));
    const W = Math.max(300, svg.parentElement.clientWidth);
    const tracks = TRACKS.map(([name, unit, range], i) => {
      const dots = spelled(lines[i]).map((v, at) => ({ ms: times[at], v })).filter((d) => d.v !== null);
      if (!dots.length) return null;
      const low = Math.min(...dots.map((d) => d.v)), high = Math.max(...dots.map((d) => d.v));
      const text = `${low < high ? number(low) + " to " : ""}${number(high)} ${unit}`;
      return { name, unit, dots, text, range: range(low, high) };
    }).filter(Boolean);
    const H = TOP + tracks.length * (TALL + GAP) + BOTTOM - GAP;
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    svg.setAttribute("aria-label", tracks.map((t) => `${t.name} ${t.text}`).join(", "));
    svg.replaceChildren();

    const end = Math.max(1, ...times, ...events.map((e) => e.ms));
    const x = (ms) => LEFT + (ms / end) * (W - LEFT - RIGHT);
    const most = (W - LEFT - RIGHT) / 84;
    const step = [50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000].find((s) => end / s <= most) || end;
    for (let ms = 0; ms <= end; ms += step) {
      svg.append(draw("line", { x1: x(ms), x2: x(ms), y1: TOP, y2: H - BOTTOM, class: "s-grid" }));
      svg.append(draw("text", { x: x(ms), y: H - 5, "text-anchor": "middle", "font-size": 12, class: "f-muted" }, seconds(ms)));
    }
    tracks.forEach(({ name, unit, dots, text, range: [low, high] }, i) => {
      const top = TOP + i * (TALL + GAP);
      const y = (v) => top + TALL * (1 - (v - low) / (high - low || 1));
      svg.append(draw("line", { x1: LEFT, x2: W - RIGHT, y1: top + TALL, y2: top + TALL, class: "s-muted" }));
      svg.append(draw("text", { x: 0, y: top + 16, "font-size": 13, class: "f-ink" }, name));
      svg.append(draw("text", { x: 0, y: top + 33, "font-size": 12, class: "f-muted" }, text));
      const points = dots.map((d) => `${x(d.ms).toFixed(1)},${y(d.v).toFixed(1)}`).join(" ");
      svg.append(draw("polyline", { points, fill: "none", class: "s-gpu0", "stroke-width": 2, "stroke-linejoin": "round" }));
      for (const d of dots) {
        const dot = draw("circle", { cx: x(d.ms), cy: y(d.v), r: 2.4, class: "f-gpu0" });
        dot.append(draw("title", {}, `${seconds(d.ms)}: ${number(d.v)} ${unit}`));
        svg.append(dot);
      }
    });
    let free = -Infinity;
    events.forEach(({ ms }, i) => {
      svg.append(draw("line", { x1: x(ms), x2: x(ms), y1: TOP - 4, y2: H - BOTTOM, class: "s-ink", "stroke-dasharray": "3 3" }));
      if (x(ms) < free) return;
      free = x(ms) + 18;
      svg.append(draw("text", { x: x(ms), y: TOP - 7, "text-anchor": "middle", "font-size": 12, "font-weight": 600, class: "f-ink" }, String(i + 1)));
    });
    return events.map((e) => `${seconds(e.ms)}: ${e.what.join("; ")}`);
  };
})();
