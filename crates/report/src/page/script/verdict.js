import { make } from "./dom.js";
import { by, factor, sized } from "./words.js";
// The last point up to a size, and the value of a field there: straight to the next point, over logarithms.
const between = (points, size) => {
  const at = points.findLastIndex((point) => point.size <= size);
  const [a, b] = [points[at], points[at + 1] || points[at]];
  const t = b === a ? 0 : Math.log(size / a.size) / Math.log(b.size / a.size);
  return [a, (field) => a[field] * (b[field] / a[field]) ** t];
};
// The answer for an operation, a size, a place of the data and how often they are used (the index in
// `words.uses`): looked up in the breakpoints of the decision, straight in between.
export const lookUp = (group, data, size, uses) => {
  const place = group.decision?.places.find(({ name }) => name === data);
  const { points = [], first, last } = place?.uses[Math.min(uses, place.uses.length - 1)] || {};
  if (!points.length || !(size >= 1)) return null;
  const [{ choice }, at] = between(points, size);
  const limit = place.limits.findLast(({ from }) => from <= size);
  return { choice, speedup: at("speedup"), low: at("low"), high: at("high"), limit: limit?.words, first, last, nearest: Math.min(Math.max(size, first), last) };
};
// The speedup within the measured sizes; figures of two sizes must not be compared.
const measured = (group, data, size, uses) => {
  const found = lookUp(group, data, size, uses);
  return found?.nearest === size ? found.speedup : NaN;
};
// `2.2× faster (1.9× to 2.6×)`.
export const byHowMuch = ({ speedup, low, high }) => {
  let ends = [by(low), by(high)];
  if (speedup >= 1 && low >= 1) ends = [factor(low), factor(high)];
  if (speedup < 1 && high < 1) ends = [factor(1 / high), factor(1 / low)];
  return `${by(speedup)} (${ends[0] === ends[1] ? ends[0] : ends.join(" to ")})`;
};
// The verdict, the effect of another place of the data, and the limit.
export const verdictWords = (words, group, { size, data, uses }) => {
  const found = lookUp(group, data, size, uses);
  const often = uses ? `, used ${words.uses[uses]} times` : "";
  const place = words.places.find(({ name }) => name === data);
  const asked = `${group.title}, ${group.symbol} = ${sized(group, size)}, ${place.words}${often}: `;
  if (!group.decision) return { says: group.unmeasured || `${group.title} compares no CPU code with GPU code; the chart shows it.`, more: "" };
  if (!found) return { says: `${asked}not measured, so nothing is known.`, more: "" };
  const more = words.places.filter(({ name }) => name !== data).map(({ name, instead }) => {
    // The decision at the size of the question, as the command gives it.
    const there = lookUp(group, name, size, uses);
    if (!there) return "";
    const at = there.nearest === found.nearest ? "" : ` at ${group.symbol} = ${sized(group, there.nearest)}`;
    return `${instead}: ${by(there.speedup)}${at}.`;
  });
  if (found.limit) more.push(`The GPU is limited by ${found.limit} there.`);
  const ends = [...new Set([found.first, found.last])].map((end) => end && sized(group, end)).join(" to ");
  if (found.nearest !== size) more.push(`Outside the measured sizes${ends && ` (${ends})`}: the figures are those of the nearest one.`);
  return { says: `${asked}${words.choices[found.choice]} ${byHowMuch(found)}.`, more: more.filter(Boolean).join(" ") };
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
export const changesTable = (words, group, { size, data, uses }) => {
  const at = (place, often) => measured(group, place, size, often);
  const place = (data) => words.places.find(({ name }) => name === data);
  const steps = STEPS.map(([what, to, from]) => [what, at(to, 0) / at(from, 0), `with data ${place(from).words}`]);
  for (const more of [1, 2]) {
    if (place(data).moves) steps.push([`Use the data ${words.uses[more]} times`, at(data, more) / at(data, 0), `with using them once, ${place(data).words}`]);
  }
  const row = ([what, gain, against]) => make("tr", {}, make("th", { scope: "row", textContent: what }), make("td", { className: "n", textContent: by(gain) }), make("td", { textContent: against }));
  return steps.filter(([, gain]) => gain > 0).sort((a, b) => b[1] - a[1]).map(row);
};
// The speedup over the best code on one thread, within the sizes of that code.
export const overOneThread = (group, { size, data, uses }) => {
  const known = group.decision?.one_thread || [];
  const found = lookUp(group, data, size, uses);
  if (!found || !(known[0]?.size <= found.nearest && found.nearest <= known.at(-1).size)) return "";
  const [, at] = between(known, found.nearest);
  const ratio = found.speedup * at("factor");
  const times = factor(ratio >= 1 ? ratio : 1 / ratio).replace("×", " times");
  return `At ${group.symbol} = ${sized(group, found.nearest)} the GPU is ${times} ${ratio >= 1 ? "as fast as" : "slower than"} one CPU thread.`;
};
