import { make } from "./dom.js";
import { words } from "./numbers.js";
import { colour } from "./labels.js";
import { lineChart } from "./chart.js";
// Fields of a row: size, median, interval, amount of work, and further facts.
export const facts = (row) => row[5];
export const rowAt = (series, size) => series.rows.find((row) => row[0] === size);
// On and off lengths of a clock's line; that of the wall is solid.
const DASHES = { "events-gated": [11, 3], events: [6, 4], "events-cold": [9, 3, 2, 3], submit: [2, 3], unknown: [3, 7] };
const HUES = 12;
// The fastest CPU code of the report's machine, by its analysis.
export const bestCpu = (group, size) => group.host.find((row) => row[0] === size);
// The speedup of a row over that code. For an answer's code it is that of several processes, so that the
// page shows one number.
export const speedupOf = (group, series, row) => {
  const answer = group.answers.find((a) => group.series[a.series] === series);
  const known = answer && answer.speedup.find(([size]) => size === row[0]);
  const base = bestCpu(group, row[0]);
  return known || (base ? [row[0], base[1] / row[1]] : null);
};
const FRONT = ["ordinary", "pinned", "awaited", "queued"];
const rateOf = (row) => (row[4] ? [row[0], row[4] / (row[1] * 1e-9), row[4] / (row[3] * 1e-9), row[4] / (row[2] * 1e-9)] : null);
// The chart: one curve per place of the data or per implementation, three of them in colour.
export const curvesPanel = (said, chosen) => {
  const $ = (id) => document.getElementById(id);
  const chart = lineChart($("c-plot"), { chosen });
  let group, view, curves = [], size = null;
  const sized = (s) => words.sized(group.sizes, s);
  const text = (value) => ({ time: words.time, speedup: words.factor, rate: (v) => words.rate(v, group.unit) })[view.show](value);
  const dotsOf = {
    time: (series) => series.rows.map((row) => row.slice(0, 4)),
    rate: (series) => (series.counts ? series.rows.map(rateOf).filter(Boolean) : []),
    speedup: (series) => (series.counts ? series.rows.map((row) => speedupOf(group, series, row)).filter(Boolean) : []),
  };
  const grey = (curve) => ({ ...curve, colour: colour("--grey"), width: 1.2, behind: true, plain: true });
  const ofAnswers = () => {
    const front = [view.data, ...FRONT.filter((place) => place !== view.data)].filter((place) => group.answers.some((a) => a.question === place)).slice(0, 3);
    const found = group.answers.map((answer) => {
      const series = group.series[answer.series], place = said.places[answer.question];
      const curve = {
        label: place[0], short: place[1], answer, series, colour: colour(`--q-${answer.question}`), width: answer.question === view.data ? 3 : 2, banded: true,
        single: view.show === "speedup" ? answer.dots : [],
        dots: view.show === "speedup" ? answer.speedup : dotsOf[view.show](series),
      };
      return front.includes(answer.question) ? curve : grey(curve);
    });
    if (view.show !== "speedup" && group.host.length) {
      const rates = group.host.map(([at, , , , name]) => rowAt(group.series.find((s) => s.name === `cpu/${name}`), at)).filter(Boolean).map(rateOf).filter(Boolean);
      found.push({ label: "best CPU code", short: "CPU", colour: colour("--cpu"), width: 2.4, banded: true, dots: view.show === "time" ? group.host.map((row) => row.slice(0, 4)) : rates });
    }
    return found;
  };
  // The three that are the fastest at the size; the others are grey.
  const ofRows = () => {
    const time = (series) => (series.counts && rowAt(series, size)?.[1]) || Infinity;
    const front = [...group.series].sort((a, b) => time(a) - time(b)).slice(0, 3);
    return group.series.map((series) => {
      const curve = { plain: true, label: series.name, short: series.name.split("/")[1], series, colour: colour(`--c${series.colour % HUES}`), width: 2, dash: DASHES[series.clock], dots: dotsOf[view.show](series) };
      return front.includes(series) ? curve : grey(curve);
    });
  };
  const show = (of, seen) => {
    [group, view] = [of, seen];
    const sizes = [...new Set(group.series.flatMap((series) => series.rows.map((row) => row[0])))];
    const far = (at) => Math.abs(Math.log(at / view.size));
    size = sizes.reduce((a, b) => (far(b) < far(a) ? b : a));
    curves = (view.rows === "answers" ? ofAnswers() : ofRows()).sort((a, b) => !!b.behind - !!a.behind);
    const speedup = view.show === "speedup", limits = view.show === "rate" ? group.limits : [];
    chart.show({
      x: { base: group.sizes === "time" ? 10 : 2, words: (v) => words.brief(sized(Number(v.toPrecision(12)))), label: group.axis },
      y: { words: (v) => words.brief(text(v)) },
      curves,
      crossings: curves.filter(({ answer, behind: back }) => answer?.size && !back).map(({ answer, colour: ink }) => ({
        size: answer.size, low: answer.low, high: answer.high, colour: ink, text: answer.from, title: answer.from,
      })),
      lines: limits.map((limit) => ({ ...limit, colour: colour(limit.cpu ? "--cpu" : "--gpu") })),
      even: speedup,
      at: size,
    });
    const node = $("c-plot"), all = chart.sizes();
    node.setAttribute("aria-valuemax", Math.max(0, all.length - 1));
    node.setAttribute("aria-valuenow", Math.max(0, all.indexOf(size)));
    const values = curves.map((curve) => [curve, curve.dots.find((dot) => dot[0] === size)]).filter(([, dot]) => dot);
    node.setAttribute("aria-valuetext", `${group.symbol} = ${sized(size)}: ${values.map(([curve, dot]) => `${curve.label} ${text(dot[1])}`).join("; ")}`);
    $("c-reads").textContent = node.getAttribute("aria-valuetext");
    return size;
  };
  const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -Infinity, End: Infinity };
  $("c-plot").addEventListener("keydown", (event) => {
    const by = !event.ctrlKey && !event.metaKey && !event.altKey && KEYS[event.key];
    if (!by) return;
    event.preventDefault();
    const all = chart.sizes();
    chosen(all[Math.max(0, Math.min(all.length - 1, all.indexOf(size) + by))]);
  });
  return show;
};
