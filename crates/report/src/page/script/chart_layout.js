import { measure } from "./labels.js";
import { CHART_FONT, axisOf, ticks } from "./chart_axes.js";
// The layout of a chart: the view, the limits in it, and the room for labels.
export const CHART_LINE = 17;
// Curves that have a label: those in colour, and of the grey ones as many as can be told apart.
const LABELS = 10;
// Curves with their positions on the axes, without points that have none.
const placed = (spec, x, y) =>
  spec.curves
    .map((curve) => ({
      ...curve,
      dots: curve.dots
        .filter(([size, value]) => size > 0 && Number.isFinite(value) && value > 0)
        .map(([size, value, low, high]) => ({ size, x: x.of(size), y: y.of(value), low: low > 0 ? y.of(low) : null, high: Number.isFinite(high) ? y.of(high) : null })),
    }))
    .filter((curve) => curve.dots.length);
// The shown range of sizes, with a little room at the ends.
const viewOf = (x, sizes) => {
  const [first, last] = [x.of(sizes[0]), x.of(sizes.at(-1))];
  const room = first < last ? 0.04 * (last - first) : 0.5;
  return [first - room, last + room];
};
// The shown range of values, and the limits in it.
const spanOf = (spec, y, curves) => {
  const seen = curves.flatMap((c) => c.dots.map((d) => d.y));
  let low = Math.min(...seen), high = Math.max(...seen);
  const top = high;
  if (spec.even) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  // Limits far above every curve would press them flat.
  const lines = spec.lines
    .map((line) => ({ ...line, y: y.of(line.value) }))
    .filter((line) => line.y >= low && line.y <= top + 1.6);
  high = Math.max(high, ...lines.map((line) => line.y));
  const slack = Math.max(0.04 * (high - low), 0.03);
  return { span: [low - slack, high + slack], lines };
};
// Crossings in the view, their labels in lanes below each other above the curves.
const crossingsOf = (spec, x, view, place, inside) => {
  const crossings = spec.crossings
    .map((crossing) => ({ ...crossing, x: x.of(crossing.size), from: x.of(crossing.low), to: x.of(crossing.high) }))
    .filter((crossing) => crossing.x >= view[0] && crossing.x <= view[1])
    .sort((a, b) => a.x - b.x);
  for (const crossing of crossings) {
    crossing.length = measure(crossing.text, `600 ${CHART_FONT}`) + 8;
    crossing.start = Math.max(0, Math.min(place(crossing.x) - crossing.length / 2, inside - crossing.length));
  }
  return crossings;
};
// The layout of a chart in a box; null where no curve has a point.
export const chartLayout = (box, spec) => {
  const x = axisOf(spec.x.base), y = axisOf(10);
  const curves = placed(spec, x, y);
  const sizes = [...new Set(curves.flatMap((c) => c.dots.map((d) => d.size)))].sort((a, b) => a - b);
  if (!sizes.length) return null;
  const view = viewOf(x, sizes);
  const { span, lines } = spanOf(spec, y, curves);
  const width = box.clientWidth, height = box.clientHeight, narrow = width < 560;
  const front = curves.filter((curve) => !curve.behind);
  const behind = curves.filter((curve) => curve.behind).slice(0, Math.max(0, LABELS - front.length));
  // Without room the last ones go.
  const labelled = [...front, ...lines, ...behind];
  const text = (item) => (narrow ? item.short || item.label : item.label);
  const longest = Math.max(...labelled.map((item) => measure(text(item), `600 ${CHART_FONT}`) + (item.plain ? 8 : 0)));
  const gutter = Math.ceil(Math.min(longest + 18, narrow ? 0.26 * width : 0.3 * width));
  const most = Math.max(3, (height - 40) / 46);
  const left = Math.ceil(Math.max(40, ...ticks(span[0], span[1], most, y).map((v) => measure(spec.y.words(y.back(v)), CHART_FONT)))) + 14;
  const inside = width - left - gutter;
  const place = (value) => ((value - view[0]) / (view[1] - view[0])) * inside;
  const crossings = crossingsOf(spec, x, view, place, inside);
  const above = crossings.length ? crossings.length * CHART_LINE + 4 : 8;
  return { x, y, sizes, curves, lines, crossings, view, span, place, labelled, text, width, height, left, inside, gutter, above, most };
};
