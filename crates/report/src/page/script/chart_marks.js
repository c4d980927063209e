import { make } from "./dom.js";
import { apart, colour } from "./labels.js";
import { CHART_LINE } from "./chart_layout.js";
// The marks of a chart: bands, limits and crossings under the curves, single points and labels over them.
const inFrame = (u, paint) => {
  const { ctx } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  paint(ctx);
  ctx.restore();
};
// A line through points, in pixels of the canvas.
const stroke = (ctx, points) => {
  ctx.beginPath();
  points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
  ctx.stroke();
};
export const underCurves = (u, { x, y, view, span, curves, lines, crossings }, { even }) => {
  const px = uPlot.pxRatio, { left, top, width, height } = u.bbox;
  const X = (v) => u.valToPos(v, "x", true), Y = (v) => u.valToPos(v, "y", true);
  const level = (ctx, at) => stroke(ctx, [[left, at], [left + width, at]]);
  inFrame(u, (ctx) => {
    for (const curve of curves) {
      const band = curve.banded ? curve.dots.filter((d) => d.low !== null && d.high !== null) : [];
      if (band.length < 2) continue;
      ctx.beginPath();
      band.forEach((d, i) => (i ? ctx.lineTo(X(d.x), Y(d.high)) : ctx.moveTo(X(d.x), Y(d.high))));
      for (const d of [...band].reverse()) ctx.lineTo(X(d.x), Y(Math.max(d.low, span[0] - 1)));
      ctx.closePath();
      ctx.globalAlpha = 0.17;
      ctx.fillStyle = curve.colour;
      ctx.fill();
    }
    ctx.globalAlpha = 1;
    if (even) {
      ctx.strokeStyle = colour("--ink");
      ctx.lineWidth = 1.4 * px;
      level(ctx, Y(y.of(1)));
    }
    ctx.lineWidth = px;
    for (const line of lines) {
      ctx.strokeStyle = line.colour;
      ctx.setLineDash([2 * px, 3 * px]);
      level(ctx, Y(line.y));
    }
    for (const crossing of crossings) {
      // The range as a veil, the crossing as a line.
      const [a, b] = [X(Math.max(view[0], crossing.from)), X(Math.min(view[1], crossing.to))];
      ctx.fillStyle = crossing.colour;
      ctx.globalAlpha = 0.1;
      ctx.fillRect(a, top, Math.max(px, b - a), height);
      ctx.globalAlpha = 1;
      ctx.fillRect(a, top, Math.max(2 * px, b - a), 3 * px);
      ctx.strokeStyle = crossing.colour;
      ctx.setLineDash([px, 3 * px]);
      stroke(ctx, [[X(crossing.x), top], [X(crossing.x), top + height]]);
    }
  });
};
// Points of single processes.
export const singlePoints = (u, { x, y, curves }) =>
  inFrame(u, (ctx) => {
    ctx.globalAlpha = 0.45;
    for (const curve of curves) {
      ctx.fillStyle = curve.colour;
      for (const [size, value] of curve.single || []) {
        ctx.beginPath();
        ctx.arc(u.valToPos(x.of(size), "x", true), u.valToPos(y.of(value), "y", true), 1.6 * uPlot.pxRatio, 0, 7);
        ctx.fill();
      }
    }
  });
// The labels of curves and limits at their ends, those of crossings above. `frame` is where the
// curves are, in pixels of the page.
export const chartLabels = (u, { view, place, labelled, text, crossings, gutter, above }, frame) => {
  const { ctx } = u, px = uPlot.pxRatio;
  const overlay = make("div", { className: "labels", ariaHidden: "true" });
  const wishes = labelled.map((item) => {
    const end = item.dots ? item.dots.at(-1) : { x: view[1], y: item.y };
    const within = (at, most) => Math.min(most, Math.max(0, at));
    return { at: within(u.valToPos(end.y, "y"), frame.height), ex: within(place(end.x), frame.width) };
  });
  const found = apart(wishes.map(({ at }) => at), CHART_LINE, -above, frame.height + 4);
  ctx.save();
  ctx.globalAlpha = 0.6;
  ctx.lineWidth = px;
  labelled.forEach((item, i) => {
    if (found[i] === null) return;
    const label = make("span", { className: item.dots ? "end-label" : "end-label limit", textContent: text(item), title: item.label });
    label.style.cssText = `left:${frame.left + frame.width + 12}px;top:${frame.top + found[i] - CHART_LINE / 2}px;max-width:${gutter - 12}px;--key:${item.colour};color:${item.plain ? "" : item.colour}`;
    if (item.plain) label.classList.add("plain");
    overlay.append(label);
    const { at, ex } = wishes[i];
    const leader = [[ex + 3, at], [frame.width + 1, at], [frame.width + 10, found[i]]];
    ctx.strokeStyle = item.colour;
    ctx.setLineDash(item.dots && frame.width - ex > 6 ? [px, 4 * px] : []);
    stroke(ctx, leader.map(([x, y]) => [(frame.left + x) * px, (frame.top + y) * px]));
  });
  ctx.restore();
  crossings.forEach((crossing, lane) => {
    const label = make("span", { className: "cross-label", textContent: crossing.text, title: crossing.title });
    label.style.cssText = `left:${frame.left + crossing.start}px;top:${frame.top - above + lane * CHART_LINE}px;width:${crossing.length}px;color:${crossing.colour}`;
    overlay.append(label);
  });
  return overlay;
};
