// Numbers in the form of the tables.
export const words = (() => {
  const digits = (v) => {
    const magnitude = Math.floor(Math.log10(Math.abs(v)) + 1e-12);
    if (!(magnitude >= -4 && magnitude < 15)) return v ? v.toExponential(2).replace("+", "") : "0";
    const rounded = Number(v.toPrecision(3));
    const decimals = Math.max(0, 2 - magnitude);
    return rounded.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  };
  const scaled = (v, steps) => {
    const [scale, unit] = steps.find(([scale]) => Math.abs(v) >= 0.9995 * scale) || steps[steps.length - 1];
    return `${digits(v / scale)} ${unit}`;
  };
  const time = (ns) => scaled(ns, [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
  const PREFIXES = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const rate = (v, unit) => scaled(v, PREFIXES.map(([scale, prefix]) => [scale, prefix + unit]));
  const factor = (r) => {
    if (r >= 1e15) return `${digits(r)}×`;
    if (r >= 9.95) return `${Math.round(Number(r.toPrecision(3))).toLocaleString("en-US")}×`;
    if (r >= 0.095) return `${r.toFixed(r < 0.95 ? 2 : 1).replace(/\.0$/, "")}×`;
    return `${r >= 1e-4 ? String(Number(r.toPrecision(2))) : r.toExponential(1)}×`;
  };
  const exponent = (n) => String(n).replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);
  const UNITS = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
  const binary = (s) => {
    const [unit, name] = UNITS.find(([unit]) => s >= unit) || [1, "B"];
    return s % unit ? rate(s, "B") : `${(s / unit).toLocaleString("en-US")} ${name}`;
  };
  const counted = (s) => (s >= 1e15 ? digits(s) : s.toLocaleString("en-US", { maximumFractionDigits: 2 }));
  // A group with large sizes.
  const powers = (s) => (s >= 2 ** 10 && Number.isInteger(Math.log2(s)) ? `2${exponent(Math.log2(s))}` : counted(s));
  // Without trailing zeros: 10.0 µs is 10 µs.
  const brief = (text) => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
  const sized = (kind, s) => ({ count: counted, powers, bytes: binary, time })[kind](s);
  return { time, rate, factor, brief, sized };
})();
