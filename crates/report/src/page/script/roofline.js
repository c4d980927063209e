import { draw, make } from "./dom.js";
import { words } from "./numbers.js";
import { apart, measure } from "./labels.js";
// Every kernel of a group by FLOP per byte and FLOP/s, under the roofs of the machine: arithmetic
// bounds from above, bandwidth from the left.
export const roofline = (svg, overlay) => {
  const FONT = "12px system-ui, sans-serif", LINE = 16, BOTTOM = 46, TOP = 10, LEFT = 84;
  return (group, curves) => {
    svg.replaceChildren();
    overlay.replaceChildren();
    const points = curves.flatMap((c) => c.places);
    if (!points.length) return false;
    const W = Math.max(300, svg.parentElement.clientWidth), H = Math.round(Math.max(300, Math.min(460, W * 0.5)));
    const narrow = W < 560;
    const gutter = Math.min(narrow ? 0.28 * W : 240, 26 + Math.max(...curves.map((c) => measure(c.label, `600 ${FONT}`)), ...group.flops.map((r) => measure(r.label, FONT))));
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    svg.style.height = `${H}px`;
    const top = Math.max(...points.map((p) => p[1]), ...group.flops.map((r) => r.value));
    const low = Math.min(...points.map((p) => p[1]));
    const xs = points.map((p) => Math.log10(p[0]));
    // Ridges too: from there on arithmetic is the roof.
    const ridges = group.bytes.flatMap((b) => group.flops.map((f) => Math.log10(f.value / b.value))).filter((v) => v < Math.max(...xs) + 1.2);
    const x0 = Math.min(...xs) - 0.5, x1 = Math.max(...xs, ...ridges) + 0.3;
    const y0 = Math.log10(low) - 0.3, y1 = Math.log10(top) + 0.25;
    const X = (v) => LEFT + ((v - x0) / (x1 - x0)) * (W - LEFT - gutter);
    const Y = (v) => TOP + ((y1 - v) / (y1 - y0)) * (H - TOP - BOTTOM);
    const word = (text, x, y, more) => svg.append(draw("text", { x, y, "font-size": 12, class: "f-muted", ...more }, text));
    for (let d = Math.ceil(y0); d <= y1; d += Math.ceil((y1 - y0) / 9)) {
      svg.append(draw("line", { x1: LEFT, x2: W - gutter, y1: Y(d), y2: Y(d), class: "s-grid" }));
      word(words.brief(words.rate(10 ** d, "FLOP/s")), LEFT - 8, Y(d) + 4, { "text-anchor": "end" });
    }
    for (let d = Math.ceil(x0); d <= x1; d += Math.ceil((x1 - x0) / 7)) {
      svg.append(draw("line", { x1: X(d), x2: X(d), y1: TOP, y2: H - BOTTOM, class: "s-grid" }));
      word(d >= -3 && d < 6 ? (10 ** d).toLocaleString("en-US", { maximumFractionDigits: 4 }) : `10^${d}`, X(d), H - BOTTOM + 16, { "text-anchor": "middle" });
    }
    word("FLOP per byte", (LEFT + W - gutter) / 2, H - 8, { "text-anchor": "middle", class: "f-ink" });
    const ends = [];
    for (const roof of group.flops) {
      const y = Math.log10(roof.value);
      if (y < y0 || y > y1) continue;
      svg.append(draw("line", { x1: LEFT, x2: W - gutter, y1: Y(y), y2: Y(y), class: roof.cpu ? "s-cpu0" : "s-gpu0", "stroke-width": 1.2 }));
      ends.push({ label: roof.label, at: Y(y), from: W - gutter, ink: roof.cpu ? "var(--cpu)" : "var(--gpu)" });
    }
    // Bandwidths rise until the highest roof of their device; their names stand where they begin.
    const begins = [];
    for (const roof of group.bytes) {
      const roofs = group.flops.filter((f) => f.cpu === roof.cpu).map((f) => Math.log10(f.value));
      const b = Math.log10(roof.value), cap = Math.min(y1, roofs.length ? Math.max(...roofs) : y1);
      const from = Math.max(x0, y0 - b), to = Math.min(x1, cap - b);
      if (!(from < to)) continue;
      svg.append(draw("line", { x1: X(from), y1: Y(from + b), x2: X(to), y2: Y(to + b), class: roof.cpu ? "s-cpu0" : "s-gpu0", "stroke-width": 1.2, "stroke-dasharray": "5 4" }));
      begins.push({ label: roof.label, at: Y(from + b) - 9, x: X(from) + 6, ink: roof.cpu ? "var(--cpu)" : "var(--gpu)" });
    }
    for (const curve of curves) {
      const line = curve.places.map(([x, y]) => `${X(Math.log10(x)).toFixed(1)},${Y(Math.log10(y)).toFixed(1)}`);
      if (!line.length) continue;
      svg.append(draw("polyline", { points: line.join(" "), fill: "none", stroke: curve.colour, "stroke-width": 1, opacity: 0.55 }));
      curve.places.forEach(([x, y, at], i) => {
        const [cx, cy] = line[i].split(",");
        const dot = draw("circle", { cx, cy, r: i === line.length - 1 ? 4 : 2.6, fill: curve.hollow ? "none" : curve.colour, stroke: curve.colour });
        dot.append(draw("title", {}, `${curve.label}, ${at}: ${words.rate(y, "FLOP/s")} at ${Number(x.toPrecision(3)).toLocaleString("en-US")} FLOP per byte`));
        svg.append(dot);
      });
      const [px, py] = line.at(-1).split(",").map(Number);
      ends.push({ label: curve.label, at: py, from: px, ink: curve.colour, plain: true });
    }
    const places = apart(ends.map((end) => ({ at: end.at, length: LINE })), 0, H - BOTTOM + 4);
    ends.forEach((end, i) => {
      if (places[i] === null) return;
      svg.append(draw("polyline", { points: `${end.from + 5},${end.at} ${W - gutter + 2},${places[i]} ${W - gutter + 8},${places[i]}`, fill: "none", stroke: end.ink, "stroke-width": 0.8, opacity: 0.45 }));
      const label = make("span", { className: end.plain ? "end-label plain" : "end-label limit", textContent: end.label, title: end.label });
      label.style.cssText = `left:${W - gutter + 10}px;top:${places[i] - LINE / 2}px;max-width:${gutter - 12}px;--key:${end.ink};color:${end.plain ? "" : end.ink}`;
      overlay.append(label);
    });
    const spots = apart(begins.map((b) => ({ at: b.at, length: LINE })), 0, H - BOTTOM);
    begins.forEach((b, i) => {
      if (spots[i] === null) return;
      const label = make("span", { className: "line-label", textContent: b.label, title: b.label });
      label.style.cssText = `left:${b.x}px;top:${spots[i] - LINE / 2}px;max-width:${Math.max(0, W - b.x)}px;color:${b.ink}`;
      overlay.append(label);
    });
    svg.setAttribute("aria-label", curves.map((c) => `${c.label}: up to ${words.rate(Math.max(...c.places.map((p) => p[1])), "FLOP/s")}`).join("; "));
    return true;
  };
};
