// Curves over sizes. uPlot draws them and follows the mouse; axes, bands, crossings and labels
// are here. Sizes and values are given to it as they stand on the axes, so that a logarithmic
// axis is a linear one of logarithms and nothing has to be drawn at the ends of what a number holds.
const lineChart = (box, on) => {
  const FONT = "12px system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif";
  const LINE = 17;
  let plot = null, spec = null, sizes = [], geometry = null;

  const steps = (low, high, most) => {
    const raw = (high - low) / most;
    const decade = 10 ** Math.floor(Math.log10(raw));
    return decade * ([1, 2, 5].find((f) => f * decade >= raw) || 10);
  };
  // The values at which an axis has a line: round ones, not more than `most`.
  const ticks = (low, high, most, axis) => {
    const found = [];
    if (!(high > low)) return found;
    if (!axis.log) {
      const step = steps(low, high, most);
      for (let v = Math.ceil(low / step) * step; v <= high && found.length < 50; v += step) found.push(v);
      return found;
    }
    const per = Math.log10(axis.base) / axis.unit;
    const every = Math.max(1, Math.ceil((high - low) / per / most));
    const fine = axis.base === 10 && (high - low) / per < most / 3 ? [1, 2, 5] : [1];
    for (let e = Math.floor(low / per); e * per <= high; e++) {
      if (e % every) continue;
      for (const f of fine) {
        const v = e * per + Math.log10(f) / axis.unit;
        if (v >= low && v <= high) found.push(v);
      }
    }
    // Within less than one power there is none: then round values.
    if (found.length < 2) {
      const [a, b] = [axis.back(low), axis.back(high)], step = steps(a, b, Math.min(most, 5));
      found.length = 0;
      for (let v = Math.ceil(a / step) * step; v <= b && found.length < 50; v += step) found.push(axis.of(v));
    }
    return found;
  };
  const axisOf = (log, base) => {
    const logarithm = base === 2 ? Math.log2 : Math.log10;
    // Decades per unit of the axis, for ticks.
    return log
      ? { log, base, unit: base === 2 ? Math.log10(2) : 1, of: logarithm, back: (v) => base ** v }
      : { log, base, unit: 1, of: (v) => v, back: (v) => v };
  };

  const show = (given) => {
    spec = given;
    const x = axisOf(spec.x.log, spec.x.base), y = axisOf(spec.y.log, 10);
    if (plot) plot.destroy();
    plot = null;
    box.replaceChildren();
    const curves = spec.curves.map((curve) => ({
      ...curve,
      dots: curve.dots
        .filter(([size, value]) => size > 0 && Number.isFinite(value) && (value > 0 || !spec.y.log))
        .map(([size, value, low, high]) => ({ size, x: x.of(size), y: y.of(value), low: low > 0 ? y.of(low) : null, high: Number.isFinite(high) ? y.of(high) : null })),
    })).filter((curve) => curve.dots.length);
    sizes = [...new Set(curves.flatMap((c) => c.dots.map((d) => d.size)))].sort((a, b) => a - b);
    if (!sizes.length) {
      box.append(make("p", { className: "empty", textContent: "Nothing to draw: choose a curve beside." }));
      geometry = null;
      return;
    }
    const at = sizes.map(x.of);
    // The view, with a little room at its ends.
    const [first, last] = [at[0], at[at.length - 1]];
    const ends = [spec.from === null ? first : Math.max(first, x.of(spec.from)), spec.to === null ? last : Math.min(last, x.of(spec.to))];
    if (!(ends[0] < ends[1])) [ends[0], ends[1]] = first < last ? [first, last] : [first - 0.5, last + 0.5];
    const room = 0.04 * (ends[1] - ends[0]);
    const view = [ends[0] - room, ends[1] + room];
    const inView = (d) => d.x >= view[0] && d.x <= view[1];
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

    const width = box.clientWidth, height = box.clientHeight, narrow = width < 560;
    const ink = colour("--ink"), muted = colour("--muted"), grid = colour("--line");
    const labelled = [...curves, ...lines];
    const text = (item) => (narrow ? item.short || item.label : item.label);
    const longest = Math.max(...labelled.map((item) => measure(text(item), `600 ${FONT}`) + (item.plain ? 8 : 0)));
    const gutter = Math.ceil(Math.min(longest + 18, narrow ? 0.26 * width : 0.3 * width));
    const yMost = Math.max(3, (height - 40) / 46);
    const left = Math.ceil(Math.max(40, ...ticks(span[0], span[1], yMost, y).map((v) => measure(spec.y.words(y.back(v)), FONT)))) + 14;
    const inside = width - left - gutter;
    // Crossings have lanes of their own above the curves.
    const place = (value) => ((value - view[0]) / (view[1] - view[0])) * inside;
    const crossings = spec.crossings
      .map((crossing) => ({ ...crossing, x: x.of(crossing.size) }))
      .filter((crossing) => crossing.x >= view[0] && crossing.x <= view[1])
      .sort((a, b) => a.x - b.x);
    for (const crossing of crossings) {
      crossing.length = measure(crossing.text, `600 ${FONT}`) + 8;
      crossing.start = Math.max(0, Math.min(place(crossing.x) - crossing.length / 2, inside - crossing.length));
    }
    const lane = lanes(crossings, 4);
    const above = crossings.length ? (Math.max(...lane) + 1) * LINE + 4 : 8;

    const rows = curves.map((curve) => {
      const by = new Map(curve.dots.map((d) => [d.size, d.y]));
      return sizes.map((size) => (by.has(size) ? by.get(size) : null));
    });
    const shift = (u) => ({ left: u.bbox.left / uPlot.pxRatio, top: u.bbox.top / uPlot.pxRatio, width: u.bbox.width / uPlot.pxRatio, height: u.bbox.height / uPlot.pxRatio });

    const under = (u) => {
      const { ctx } = u, px = uPlot.pxRatio;
      const X = (v) => u.valToPos(v, "x", true), Y = (v) => u.valToPos(v, "y", true);
      ctx.save();
      ctx.beginPath();
      ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      ctx.clip();
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
      if (spec.even) {
        ctx.strokeStyle = ink;
        ctx.lineWidth = 1.4 * px;
        ctx.beginPath();
        ctx.moveTo(u.bbox.left, Y(y.of(1)));
        ctx.lineTo(u.bbox.left + u.bbox.width, Y(y.of(1)));
        ctx.stroke();
      }
      for (const line of lines) {
        ctx.strokeStyle = line.colour;
        ctx.lineWidth = px;
        ctx.setLineDash([2 * px, 3 * px]);
        ctx.beginPath();
        ctx.moveTo(u.bbox.left, Y(line.y));
        ctx.lineTo(u.bbox.left + u.bbox.width, Y(line.y));
        ctx.stroke();
      }
      for (const crossing of crossings) {
        // The range as a veil, the crossing as a line.
        const [a, b] = [Math.max(view[0], x.of(crossing.low)), Math.min(view[1], x.of(crossing.high))];
        ctx.fillStyle = crossing.colour;
        ctx.globalAlpha = 0.1;
        ctx.fillRect(X(a), u.bbox.top, Math.max(px, X(b) - X(a)), u.bbox.height);
        ctx.globalAlpha = 1;
        ctx.fillRect(X(a), u.bbox.top, Math.max(2 * px, X(b) - X(a)), 3 * px);
        ctx.strokeStyle = crossing.colour;
        ctx.lineWidth = px;
        ctx.setLineDash([px, 3 * px]);
        ctx.beginPath();
        ctx.moveTo(X(crossing.x), u.bbox.top);
        ctx.lineTo(X(crossing.x), u.bbox.top + u.bbox.height);
        ctx.stroke();
      }
      ctx.restore();
    };

    const over = (u) => {
      const { ctx } = u, px = uPlot.pxRatio, frame = shift(u);
      geometry = { ...frame, view, x };
      ctx.save();
      ctx.beginPath();
      ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      ctx.clip();
      for (const curve of curves) {
        ctx.fillStyle = curve.colour;
        ctx.globalAlpha = 0.45;
        for (const [size, value] of curve.single || []) {
          ctx.beginPath();
          ctx.arc(u.valToPos(x.of(size), "x", true), u.valToPos(y.of(value), "y", true), 1.6 * px, 0, 7);
          ctx.fill();
        }
      }
      ctx.restore();
      const overlay = make("div", { className: "labels", ariaHidden: "true" });
      const last = (curve) => curve.dots.filter(inView).at(-1) || curve.dots.find((d) => d.x > view[1]) || curve.dots.at(-1);
      const wishes = labelled.map((item) => {
        const end = item.dots ? last(item) : { x: view[1], y: item.y };
        const [ex, ey] = [Math.min(frame.width, Math.max(0, place(end.x))), Math.min(frame.height, Math.max(0, u.valToPos(end.y, "y")))];
        return { at: ey, length: LINE, ex };
      });
      const found = apart(wishes, -above, frame.height + 4);
      ctx.save();
      labelled.forEach((item, i) => {
        if (found[i] === null) return;
        const label = make("span", { className: item.dots ? "end-label" : "end-label limit", textContent: text(item), title: item.label });
        label.style.cssText = `left:${frame.left + frame.width + 12}px;top:${frame.top + found[i] - LINE / 2}px;max-width:${gutter - 12}px;--key:${item.colour};color:${item.plain ? "" : item.colour}`;
        if (item.plain) label.classList.add("plain");
        if (item.key) label.dataset.key = item.key;
        overlay.append(label);
        ctx.strokeStyle = item.colour;
        ctx.globalAlpha = 0.6;
        ctx.lineWidth = px;
        if (item.dots && frame.width - wishes[i].ex > 6) ctx.setLineDash([px, 4 * px]);
        else ctx.setLineDash([]);
        ctx.beginPath();
        ctx.moveTo((frame.left + wishes[i].ex + 3) * px, (frame.top + wishes[i].at) * px);
        ctx.lineTo((frame.left + frame.width + 1) * px, (frame.top + wishes[i].at) * px);
        ctx.lineTo((frame.left + frame.width + 10) * px, (frame.top + found[i]) * px);
        ctx.stroke();
      });
      ctx.restore();
      crossings.forEach((crossing, i) => {
        const label = make("span", { className: "cross-label", textContent: crossing.text, title: crossing.title });
        label.style.cssText = `left:${frame.left + crossing.start}px;top:${frame.top - above + lane[i] * LINE}px;width:${crossing.length}px;color:${crossing.colour}`;
        overlay.append(label);
      });
      box.querySelector(".labels")?.remove();
      box.append(overlay);
      on.drawn(geometry);
    };

    const axis = (of, most, words, extra) => ({
      stroke: muted,
      font: FONT,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: grid, width: 1, size: 4 },
      // The lines are ours, and one step fits always: uPlot takes none below 5 that it does not know,
      // and then draws no axis.
      incrs: (u, i, min, max) => [Math.max(5, max - min)],
      splits: (u, i, min, max) => ticks(min, max, most, of),
      values: (u, splits) => splits.map((v) => words(of.back(v))),
      ...extra,
    });
    plot = new uPlot({
      width,
      height,
      padding: [above, gutter, 0, 0],
      pxAlign: false,
      legend: { show: false },
      scales: { x: { time: false, range: () => view }, y: { range: () => span } },
      axes: [
        axis(x, Math.max(2, inside / 78), spec.x.words, { label: spec.x.label, labelFont: FONT, labelSize: 18, size: 26, gap: 4 }),
        axis(y, yMost, spec.y.words, { size: left, gap: 5 }),
      ],
      series: [
        {},
        ...curves.map((curve) => ({
          label: curve.label,
          stroke: curve.colour,
          width: curve.width,
          dash: curve.dash || [],
          spanGaps: true,
          points: { show: curve.dots.length < 60, size: curve.hollow ? 6 : 5, width: 1, fill: curve.hollow ? colour("--paper") : curve.colour, stroke: curve.colour },
        })),
      ],
      cursor: {
        y: false,
        // From size to size, and where it was when the mouse has left.
        move: (u, l, t) => [u.valToPos(u.data[0][u.posToIdx(l)], "x"), t],
        points: { size: 9, width: 2 },
        drag: { x: true, y: false, setScale: false },
        bind: { mouseleave: () => null, dblclick: () => () => on.zoom(null, null) },
      },
      hooks: {
        drawAxes: [under],
        draw: [over],
        // Before that no scale is known.
        ready: [() => point(spec.at)],
        setCursor: [(u) => u.status && u.cursor.idx >= 0 && u.cursor.left >= 0 && on.cursor(sizes[u.cursor.idx])],
        setSelect: [
          (u) => {
            const { left: from, width: wide } = u.select;
            if (wide < 6) return;
            u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            on.zoom(x.back(u.posToVal(from, "x")), x.back(u.posToVal(from + wide, "x")));
          },
        ],
      },
    }, [at, ...rows], box);
  };

  // The cursor at a size.
  const point = (size) => {
    if (!plot) return;
    const i = sizes.indexOf(size);
    if (i < 0) return;
    const left = plot.valToPos(plot.data[0][i], "x");
    plot.setCursor({ left: Math.max(0, left), top: plot.over.clientHeight / 2 }, false);
  };
  return { show, point, sizes: () => sizes, geometry: () => geometry };
};
