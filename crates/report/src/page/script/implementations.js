import { make } from "./dom.js";
import { sized } from "./words.js";
// All implementations at one size, the fastest first, as bars; the fastest of each clock is marked, and
// those within its interval.
export const implementationsTable = (group, size) => {
  const all = group.implementations.map((code) => ({ code, row: code.rows.find((row) => row.size === size) })).filter(({ row }) => row).sort((a, b) => a.row.ns - b.row.ns);
  const [shortest, longest] = [all[0], all.at(-1)].map((one) => Math.log(one?.row.ns));
  document.getElementById("i-rows").replaceChildren(...all.map(({ code, row }) => {
    const bar = make("i", { ariaHidden: "true", className: code.device });
    bar.style.width = `${15 + 85 * ((Math.log(row.ns) - shortest) / (longest - shortest || 1))}%`;
    return make("tr", { className: row.best ? "best" : "" },
      make("th", { scope: "row" }, code.name, ...row.notes.map((note) => make("small", { textContent: note }))),
      make("td", { className: "n", textContent: row.time }),
      make("td", { className: "n", textContent: row.speedup || "" }),
      make("td", { textContent: row.share || "" }), make("td", { textContent: code.clock }), make("td", { className: "bar" }, bar));
  }));
  document.getElementById("i-at").textContent = `${group.title} at ${group.symbol} = ${sized(group, size)}`;
};
