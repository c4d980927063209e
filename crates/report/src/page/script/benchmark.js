import { make } from "./dom.js";
import { words } from "./numbers.js";
import { drawTelemetry } from "./telemetry.js";
// Everything that is known of one benchmark, and what the GPU did meanwhile.
export const benchmarkDetails = (group, series, row, label) => {
  const $ = (id) => document.getElementById(id);
  $("c-one").hidden = !row;
  if (!row) return;
  const [size, median, low, high, amount, { share, joules, error, capped, slowed, unsteady, remarks, run, telemetry }] = row;
  $("c-name").textContent = `${label} at ${group.symbol} = ${words.sized(group.sizes, size)}`;
  const known = [["clock", series.clock], ["time", words.time(median) + (low && high ? ` (${words.time(low)} to ${words.time(high)})` : "")]];
  if (amount && series.counts && group.unit) known.push(["throughput", words.rate(amount / (median * 1e-9), group.unit)]);
  if (share) known.push(["nearest limit", share]);
  if (joules) {
    const work = amount && group.unit === "FLOP/s" ? `, ${words.rate(amount / joules, "FLOP/J")}` : "";
    known.push(["energy of an iteration", words.energy(joules) + work]);
  }
  if (error) known.push(["error", error]);
  if (slowed) known.push(["slowed by", slowed]);
  if (capped) known.push(["power cap", capped]);
  if (unsteady) known.push(["unsteady", unsteady]);
  if (!series.counts) known.push(["remark", "this clock does not measure the work"]);
  if (remarks) known.push(["remarks", remarks]);
  if (run) known.push(["run", run]);
  $("c-facts").replaceChildren(...known.map(([name, text]) => make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: text }))));
  $("c-telemetry").hidden = !telemetry;
  if (!telemetry) return;
  const events = drawTelemetry($("c-telemetry").querySelector("svg"), telemetry);
  $("c-events").replaceChildren(...events.map((text) => make("li", { textContent: text })));
  $("c-calm").hidden = events.length > 0;
};
