import { make } from "./dom.js";
import { words } from "./numbers.js";
import { by, range } from "./gpu_or_cpu.js";
import { bestCpu, facts, rowAt, speedupOf } from "./chart_panel.js";
// All implementations at one size, the fastest first, as bars; the fastest of each clock is marked, and
// those within its interval.
export const implementationsTable = (said, group, size) => {
  const all = group.series.map((series) => ({ series, row: rowAt(series, size) })).filter(({ row }) => row).sort((a, b) => a.row[1] - b.row[1]);
  const steady = ({ series, row }) => series.counts && !facts(row).unsteady;
  const isBest = (one) => group.compares && steady(one) && one.row[1] <= all.find((a) => a.series.clock === one.series.clock && steady(a)).row[3];
  const [shortest, longest] = [all[0], all.at(-1)].map(({ row }) => Math.log(row[1]));
  document.getElementById("i-rows").replaceChildren(...all.map((one) => {
    const { series, row } = one, { share, slowed, unsteady } = facts(row);
    const bar = make("i", { ariaHidden: "true", className: series.device });
    bar.style.width = `${15 + 85 * ((Math.log(row[1]) - shortest) / (longest - shortest || 1))}%`;
    const speedup = group.compares && series.counts && speedupOf(group, series, row)?.[1];
    const notes = [slowed && `▾ ${slowed}`, unsteady && "± unsteady", !series.counts && "does not measure the work"].filter(Boolean);
    return make("tr", { className: isBest(one) ? "best" : "" },
      make("th", { scope: "row" }, series.name, ...notes.map((note) => make("small", { textContent: note }))),
      make("td", { className: "n", textContent: words.time(row[1]) }),
      make("td", { className: "n", textContent: speedup ? by(speedup) : "" }),
      make("td", { textContent: share || "" }), make("td", { textContent: series.clock }), make("td", { className: "bar" }, bar));
  }));
  const host = bestCpu(group, size);
  document.getElementById("i-at").textContent = `${group.title} at ${group.symbol} = ${words.sized(group.sizes, size)}${host ? `, against cpu/${host[4]}` : ""}`;
  document.getElementById("i-link").href = `${said.base}${group.page}#all`;
};
// The results of the processes around a size: `6 processes measured 1.2× to 1.5× at N = 512`.
export const processesWords = (group, answer, size) => {
  const sizes = [...new Set(answer.dots.map(([at]) => at))].sort((a, b) => a - b);
  const at = sizes.findLastIndex((one) => one <= size);
  const near = sizes[at] === size ? [size] : [sizes[at], sizes[at + 1]].filter(Boolean);
  return near.map((one) => {
    const here = answer.dots.filter(([of]) => of === one).map(([, ratio]) => ratio);
    const ends = range(words.factor(Math.min(...here)), words.factor(Math.max(...here)));
    return `${here.length} ${here.length === 1 ? "process" : "processes"} measured ${ends} at ${group.symbol} = ${words.sized(group.sizes, one)}.`;
  }).join(" ");
};
