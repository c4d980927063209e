import { make } from "./dom.js";
import { colour } from "./labels.js";
import { CHART_FONT, ticks } from "./chart_axes.js";
import { chartLayout } from "./chart_layout.js";
import { chartLabels, singlePoints, underCurves } from "./chart_marks.js";
// Curves over sizes. uPlot draws them and follows the mouse; axes, bands, crossings and labels
// are ours. It gets positions on the axes, the logarithms of sizes and values, so all its axes are
// linear and values at the limits of a number cause no trouble.
export const lineChart = (box, on) => {
  let plot = null, spec = null, layout = null;

  const show = (given) => {
    spec = given;
    if (plot) plot.destroy();
    plot = null;
    box.replaceChildren();
    layout = chartLayout(box, spec);
    if (!layout) {
      box.append(make("p", { className: "empty", textContent: "Nothing was measured of this here." }));
      return;
    }
    const { sizes, curves, x } = layout;
    const rows = curves.map((curve) => {
      const by = new Map(curve.dots.map((d) => [d.size, d.y]));
      return sizes.map((size) => (by.has(size) ? by.get(size) : null));
    });
    plot = new uPlot(options(), [sizes.map(x.of), ...rows], box);
  };

  const over = (u) => {
    const [left, top, width, height] = [u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height].map((v) => v / uPlot.pxRatio);
    const frame = { left, top, width, height };
    singlePoints(u, layout);
    box.querySelector(".labels")?.remove();
    box.append(chartLabels(u, layout, frame));
  };

  const axis = (of, most, written, extra) => ({
    stroke: colour("--muted"),
    font: CHART_FONT,
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1, size: 4 },
    // We draw the lines. A single step always fits; with unknown steps below 5 uPlot draws no axis.
    incrs: (u, i, min, max) => [Math.max(5, max - min)],
    splits: (u, i, min, max) => ticks(min, max, most, of),
    values: (u, splits) => splits.map((v) => written(of.back(v))),
    ...extra,
  });

  const options = () => {
    const { x, y, view, span, curves, width, height, left, inside, gutter, above, most } = layout;
    return {
      width,
      height,
      padding: [above, gutter, 0, 0],
      pxAlign: false,
      legend: { show: false },
      scales: { x: { time: false, range: () => view }, y: { range: () => span } },
      axes: [
        axis(x, Math.max(2, inside / 78), spec.x.words, { label: spec.x.label, labelFont: CHART_FONT, labelSize: 18, size: 26, gap: 4 }),
        axis(y, most, spec.y.words, { size: left, gap: 5 }),
      ],
      series: [
        {},
        ...curves.map((curve) => ({
          label: curve.label,
          stroke: curve.colour,
          width: curve.width,
          dash: curve.dash || [],
          spanGaps: true,
          points: { show: curve.dots.length < 60, size: 5, width: 1, fill: curve.colour, stroke: curve.colour },
        })),
      ],
      cursor: {
        y: false,
        // Moves from size to size, and back when the mouse leaves.
        move: (u, l, t) => [u.valToPos(u.data[0][u.posToIdx(l)], "x"), t],
        points: { size: 9, width: 2 },
        drag: { x: false, y: false },
        // A click chooses the size; the mouse alone reads it.
        bind: { mouseleave: () => null, click: (u) => () => on.chosen(layout.sizes[u.cursor.idx]) },
      },
      hooks: {
        drawAxes: [(u) => underCurves(u, layout, spec)],
        draw: [over],
        // Before that the scales are unknown.
        ready: [pointAt],
      },
    };
  };

  // The cursor at the size that was chosen.
  const pointAt = (u) => {
    const i = layout.sizes.indexOf(spec.at);
    if (i >= 0) u.setCursor({ left: Math.max(0, u.valToPos(u.data[0][i], "x")), top: u.over.clientHeight / 2 }, false);
  };
  return { show, sizes: () => layout?.sizes || [] };
};
