import { make } from "./dom.js";
import { words } from "./numbers.js";
import { by, range } from "./gpu_or_cpu.js";
import { bestCpu, facts, rowAt, speedupOf } from "./chart_panel.js";
// All implementations at one size, as bars; the fastest of each clock is marked, with those that
// lie in its interval.
export const implementationsTable = (said, body, heads) => {
  let order = 1, up = true, group, size;
  const fill = () => {
    const all = group.series.map((series) => ({ series, row: rowAt(series, size) })).filter(({ row }) => row);
    const fastest = (clock) => all.filter((a) => a.series.clock === clock && a.series.counts && !facts(a.row).unsteady).sort((a, b) => a.row[1] - b.row[1])[0];
    const lines = all.map(({ series, row }) => {
      const first = group.compares && series.counts && fastest(series.clock);
      const best = !!first && row[1] <= first.row[3] && !facts(row).unsteady;
      const speedup = group.compares && series.counts ? speedupOf(group, series, row)?.[1] : null;
      return { series, row, best, keys: [series.name, row[1], speedup ?? 0, facts(row).share || "", series.clock] };
    });
    lines.sort((a, b) => (a.keys[order] < b.keys[order] ? -1 : a.keys[order] > b.keys[order] ? 1 : 0) * (up ? 1 : -1));
    const longest = Math.max(...lines.map(({ row }) => Math.log(row[1]))), shortest = Math.min(...lines.map(({ row }) => Math.log(row[1])));
    body.replaceChildren(...lines.map(({ series, row, best, keys }) => {
      const bar = make("i", { ariaHidden: "true", className: series.device });
      bar.style.width = `${15 + 85 * ((Math.log(row[1]) - shortest) / (longest - shortest || 1))}%`;
      const time = make("td", { className: "n", textContent: words.time(row[1]) });
      time.dataset.v = row[1];
      const notes = [facts(row).slowed && `▾ ${facts(row).slowed}`, facts(row).unsteady && "± unsteady", !series.counts && "does not measure the work"].filter(Boolean);
      return make("tr", { className: best ? "best" : "" },
        make("th", { scope: "row" }, series.name, ...notes.map((note) => make("small", { textContent: note }))), time,
        make("td", { className: "n", textContent: keys[2] ? by(keys[2]) : "" }),
        make("td", { textContent: keys[3] }), make("td", { textContent: series.clock }), make("td", { className: "bar" }, bar));
    }));
    heads.forEach((head, i) => head.closest("th").setAttribute("aria-sort", i !== order ? "none" : up ? "ascending" : "descending"));
  };
  heads.forEach((head, i) => head.addEventListener("click", () => {
    up = i === order ? !up : true;
    order = i;
    fill();
  }));
  return (of, at) => {
    [group, size] = [of, at];
    const host = bestCpu(group, size);
    document.getElementById("i-at").textContent = `${group.title} at ${group.symbol} = ${words.sized(group.sizes, size)}${host ? `, against cpu/${host[4]}` : ""}`;
    document.getElementById("i-link").href = `${said.base}${group.page}#all`;
    fill();
  };
};
// What the processes measured around a size: `6 processes measured 1.2× to 1.5× at N = 512`.
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
