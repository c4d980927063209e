// The axes of a chart: positions of sizes and values, and their lines.
export const CHART_FONT = "12px system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif";

const steps = (low, high, most) => {
  const raw = (high - low) / most;
  const decade = 10 ** Math.floor(Math.log10(raw));
  return decade * ([1, 2, 5].find((f) => f * decade >= raw) || 10);
};
// The values at which a logarithmic axis has a line: round ones, not more than `most`.
export const ticks = (low, high, most, axis) => {
  const found = [];
  if (!(high > low)) return found;
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
  // A range of less than one power has none, so it uses round values.
  if (found.length < 2) {
    const [a, b] = [axis.back(low), axis.back(high)], step = steps(a, b, Math.min(most, 5));
    found.length = 0;
    for (let v = Math.ceil(a / step) * step; v <= b && found.length < 50; v += step) found.push(axis.of(v));
  }
  return found;
};
// Positions on an axis are logarithms of sizes and values.
export const axisOf = (base) => ({
  base,
  // Decades per unit of the axis, for ticks.
  unit: base === 2 ? Math.log10(2) : 1,
  of: base === 2 ? Math.log2 : Math.log10,
  back: (v) => base ** v,
});
