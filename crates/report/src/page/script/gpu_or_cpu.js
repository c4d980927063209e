import { make } from "./dom.js";
import { words } from "./numbers.js";
// The answer for an operation, a size, a place of the data and how often they are used (the index in
// `said.uses`): looked up in the breakpoints of the decision, straight in between.
export const lookUp = (group, data, size, uses) => {
  const place = group.verdict?.places.find((p) => p.data === data);
  const points = place?.uses[uses] || [];
  if (!points.length || !(size >= 1)) return null;
  const at = points.findLastIndex(([from]) => from <= size);
  const [a, b] = [points[at], points[at + 1] || points[at]];
  const t = b === a ? 0 : Math.log(size / a[0]) / Math.log(b[0] / a[0]);
  const [speedup, low, high] = [2, 3, 4].map((i) => a[i] * (b[i] / a[i]) ** t);
  const limit = place.limits.findLast(([from]) => from <= size);
  return { choice: a[1], speedup, low, high, place, limit: limit && limit[1], outside: size < place.first || size > place.last };
};
const EVEN = words.factor(1);
export const by = (r) => {
  const factor = words.factor(r >= 1 ? r : 1 / r);
  if (factor === EVEN) return "as fast";
  return `${factor} ${r >= 1 ? "faster" : "slower"}`;
};
export const range = (low, high) => (low === high ? low : `${low} to ${high}`);
// `2.2× faster (1.9× to 2.6×)`.
export const byHowMuch = ({ speedup, low, high }) => {
  let ends = range(by(low), by(high));
  if (speedup >= 1 && low >= 1) ends = range(words.factor(low), words.factor(high));
  if (speedup < 1 && high < 1) ends = range(words.factor(1 / high), words.factor(1 / low));
  return `${by(speedup)} (${ends})`;
};
// The verdict, the effect of another place of the data, and the limit.
export const verdictWords = (said, group, { size, data, uses }) => {
  const found = lookUp(group, data, size, uses);
  const of = said.places[data];
  const often = uses ? `, used ${said.uses[uses]} times` : "";
  const asked = `${group.title}, ${group.symbol} = ${words.sized(group.sizes, size)}, ${of[0]}${often}: `;
  if (!group.verdict) return { says: group.unmeasured || `${group.title} compares no CPU code with GPU code; the chart shows it.`, more: "" };
  if (!found) return { says: `${asked}not measured, so nothing is known.`, more: "" };
  const says = `${asked}${said.choices[found.choice]} ${byHowMuch(found)}.`;
  const more = Object.keys(said.places).filter((other) => other !== data).map((other) => {
    const there = lookUp(group, other, size, uses);
    return there && `${said.places[other][2]}: ${by(there.speedup)}.`;
  });
  if (found.limit) more.push(`What limits the GPU there: ${found.limit}.`);
  const range = [found.place.first, found.place.last].map((end) => words.sized(group.sizes, end)).join(" to ");
  if (found.outside) more.push(`Outside the measured sizes (${range}): the figures are those of the nearest one.`);
  return { says, more: more.filter(Boolean).join(" ") };
};
// A size as it is typed: 500, 4,096, 2^20, 64 Ki, 1e6.
export const typedSize = (text) => {
  const found = /^([\d.]+(?:e\d+)?)(?:\^(\d+))?([kmg]?)(i?)b?$/i.exec(text.replace(/[\s,_]/g, ""));
  if (!found) return null;
  const [, number, power, unit, binary] = found;
  const scale = (binary ? 1024 : 1000) ** " kmg".indexOf(unit.toLowerCase() || " ");
  const size = Math.round((power ? Number(number) ** Number(power) : Number(number)) * scale);
  return size >= 1 && Number.isFinite(size) ? size : null;
};
// The gain of each technique that moves or keeps data at a size: its speedup over the one before.
const STEPS = [
  ["Pin the host memory", "pinned", "ordinary"],
  ["Keep the data on the device", "awaited", "ordinary"],
  ["Keep pinned data on the device", "awaited", "pinned"],
  ["Queue calls, wait for none", "queued", "awaited"],
];
export const changesTable = (said, group, { size, data, uses }) => {
  const at = (place, often) => lookUp(group, place, size, often)?.speedup;
  const steps = STEPS.map(([what, to, from]) => [what, at(to, 0) / at(from, 0), `with data ${said.places[from][0]}`]);
  for (const more of [1, 2]) {
    if (!said.places[data][0].startsWith("on the device")) steps.push([`Use the data ${said.uses[more]} times`, at(data, more) / at(data, 0), `with using them once, ${said.places[data][0]}`]);
  }
  const row = ([what, gain, against]) => make("tr", {}, make("th", { scope: "row", textContent: what }), make("td", { className: "n", textContent: by(gain) }), make("td", { textContent: against }));
  return steps.filter(([, gain]) => gain > 0).sort((a, b) => b[1] - a[1]).map(row);
};
// The factor by which one core is slower than all.
export const oneCore = (group, found, size) => {
  const known = group.verdict?.core || [];
  if (!found || !known.length) return "";
  const near = known.reduce((a, b) => (Math.abs(Math.log(b[0] / size)) < Math.abs(Math.log(a[0] / size)) ? b : a));
  return `The GPU is ${words.factor(found.speedup * near[1])} as fast as one CPU thread.`;
};
