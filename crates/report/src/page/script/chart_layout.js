// What a chart shows and where: the view, the limits in it, and the room that labels take.
const CHART_LINE = 17;
// Curves with their places on the axes, without what no axis has.
const placed = (spec, x, y) =>
  spec.curves
    .map((curve) => ({
      ...curve,
      dots: curve.dots
        .filter(([size, value]) => size > 0 && Number.isFinite(value) && (value > 0 || !spec.y.log))
        .map(([size, value, low, high]) => ({ size, x: x.of(size), y: y.of(value), low: low > 0 ? y.of(low) : null, high: Number.isFinite(high) ? y.of(high) : null })),
    }))
    .filter((curve) => curve.dots.length);
// From where to where sizes are shown, with a little room at the ends.
const viewOf = (spec, x, sizes) => {
  const [first, last] = [x.of(sizes[0]), x.of(sizes.at(-1))];
  let ends = [spec.from === null ? first : Math.max(first, x.of(spec.from)), spec.to === null ? last : Math.min(last, x.of(spec.to))];
  if (!(ends[0] < ends[1])) ends = first < last ? [first, last] : [first - 0.5, last + 0.5];
  const room = 0.04 * (ends[1] - ends[0]);
  return [ends[0] - room, ends[1] + room];
};
// From where to where values are shown, and the limits in between.
const spanOf = (spec, y, curves, inView) => {
  // A curve that only passes through the view counts with its neighbours.
  const seen = curves.flatMap((c) => c.dots.filter((d, i) => inView(d) || (c.dots[i + 1] && inView(c.dots[i + 1])) || (c.dots[i - 1] && inView(c.dots[i - 1]))).map((d) => d.y));
  let low = Math.min(...seen), high = Math.max(...seen);
  const top = high;
  if (spec.even && spec.y.log) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  if (!spec.y.log) low = Math.min(0, low);
  // Limits far above every curve would press them flat.
  const lines = spec.lines
    .map((line) => ({ ...line, y: y.of(line.value) }))
    .filter((line) => line.y >= low && line.y <= (spec.y.log ? top + 1.6 : 2.5 * top));
  high = Math.max(high, ...lines.map((line) => line.y));
  const slack = Math.max(0.04 * (high - low), spec.y.log ? 0.03 : 1e-12 * Math.abs(high));
  const span = [spec.y.log ? low - slack : low, high + slack || 1];
  if (!(span[0] < span[1])) span[1] = span[0] + 1;
  return { span, lines };
};
// Crossings in the view, each with a lane of its own above the curves where labels would touch.
const crossingsOf = (spec, x, view, place, inside) => {
  const crossings = spec.crossings
    .map((crossing) => ({ ...crossing, x: x.of(crossing.size), from: x.of(crossing.low), to: x.of(crossing.high) }))
    .filter((crossing) => crossing.x >= view[0] && crossing.x <= view[1])
    .sort((a, b) => a.x - b.x);
  for (const crossing of crossings) {
    crossing.length = measure(crossing.text, `600 ${CHART_FONT}`) + 8;
    crossing.start = Math.max(0, Math.min(place(crossing.x) - crossing.length / 2, inside - crossing.length));
  }
  lanes(crossings, 4).forEach((lane, i) => (crossings[i].lane = lane));
  return crossings;
};
// The layout of a chart in a box; null where no curve has a point.
const chartLayout = (box, spec) => {
  const x = axisOf(spec.x.log, spec.x.base), y = axisOf(spec.y.log, 10);
  const curves = placed(spec, x, y);
  const sizes = [...new Set(curves.flatMap((c) => c.dots.map((d) => d.size)))].sort((a, b) => a - b);
  if (!sizes.length) return null;
  const view = viewOf(spec, x, sizes);
  const inView = (d) => d.x >= view[0] && d.x <= view[1];
  const { span, lines } = spanOf(spec, y, curves, inView);
  const width = box.clientWidth, height = box.clientHeight, narrow = width < 560;
  const labelled = [...curves, ...lines];
  const text = (item) => (narrow ? item.short || item.label : item.label);
  const longest = Math.max(...labelled.map((item) => measure(text(item), `600 ${CHART_FONT}`) + (item.plain ? 8 : 0)));
  const gutter = Math.ceil(Math.min(longest + 18, narrow ? 0.26 * width : 0.3 * width));
  const most = Math.max(3, (height - 40) / 46);
  const left = Math.ceil(Math.max(40, ...ticks(span[0], span[1], most, y).map((v) => measure(spec.y.words(y.back(v)), CHART_FONT)))) + 14;
  const inside = width - left - gutter;
  const place = (value) => ((value - view[0]) / (view[1] - view[0])) * inside;
  const crossings = crossingsOf(spec, x, view, place, inside);
  const above = crossings.length ? (Math.max(...crossings.map((crossing) => crossing.lane)) + 1) * CHART_LINE + 4 : 8;
  return { x, y, sizes, curves, lines, crossings, view, span, inView, place, labelled, text, width, height, left, inside, gutter, above, most };
};
