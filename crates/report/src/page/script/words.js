// Numbers in the words of the tables, for typed sizes and for speedups between measured sizes. All other
// texts come with the data. A test compares them with the crate `crossover-words`.
const number = (v) => {
  if (v >= 1e15) return v.toExponential(2).replace("+", "");
  const rounded = Number(v.toPrecision(3));
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(rounded) + 1e-12));
  return rounded.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
};
const scaled = (v, units) => {
  const found = units.findIndex((_, power) => v < 999.5 * 1000 ** power);
  const power = found < 0 ? units.length - 1 : found;
  return `${number(v / 1000 ** power)} ${units[power]}`;
};
// A tie is rounded up, as in `units::factor`.
const TIES_UP = 1 + 1e-12;
const factorText = (r) => `${r < 9.95 ? r.toFixed(1).replace(".0", "") : r < 99.5 ? Math.round(r) : number(Math.round(r))}×`;
export const factor = (ratio) => factorText(ratio * TIES_UP);
// `2.5× faster`, `1.2× slower`, or `as fast`.
export const by = (r) => {
  const words = factor(r >= 1 ? r : 1 / r);
  if (words === factor(1)) return "as fast";
  return `${words} ${r >= 1 ? "faster" : "slower"}`;
};
const counted = (s) => s.toLocaleString("en-US", { maximumFractionDigits: 0 });
const superscript = (n) => String(n).replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);
const WRITE = {
  count: counted,
  powers: (s) => (s >= 1024 && Number.isInteger(Math.log2(s)) ? `2${superscript(Math.log2(s))}` : counted(s)),
  bytes: (s) => {
    const [unit, name] = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]].find(([unit]) => s >= unit);
    return s % unit ? scaled(s, ["B", "kB", "MB", "GB", "TB", "PB"]) : `${counted(s / unit)} ${name}`;
  },
  time: (s) => scaled(s, ["ns", "µs", "ms", "s"]),
};
// A size of a group: `1,024`, `2²⁰`, `256 MiB`.
export const sized = (group, size) => WRITE[group.unit](size);
