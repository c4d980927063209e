import { unpacked } from "./dom.js";
import { words } from "./numbers.js";
import { changesTable, lookUp, oneCore, typedSize, verdictWords } from "./gpu_or_cpu.js";
import { curvesPanel } from "./chart_panel.js";
import { implementationsTable, processesWords } from "./implementations.js";
// The reader's choice (operation, size, place of the data, how often they are used, view of the chart),
// shown in every part of the page and kept in the address.
const PREFIX = "#view:";
const CHOICES = { show: ["speedup", "time", "rate"], rows: ["answers", "all"] };
const ready = (async () => {
  const { groups, said } = (await unpacked()) || { groups: [] };
  if (!groups.length) return;
  said.places = Object.fromEntries(said.places);
  const $ = (id) => document.getElementById(id);
  const groupOf = (name) => groups.find((g) => g.name === name);
  const largest = (group) => Math.max(...group.series.flatMap((series) => series.rows.map((row) => row[0])));
  const fresh = (group) => ({ operation: group.name, size: group.verdict?.size || largest(group), data: group.verdict?.data || "ordinary", uses: 0, show: "speedup", rows: "answers" });
  let view = fresh(groupOf($("v-operation").value) || groups[0]);

  const address = () => PREFIX + new URLSearchParams(Object.entries(view).filter(([name, value]) => name === "operation" || String(value) !== String(fresh(groupOf(view.operation))[name])));
  const fromAddress = () => {
    const kept = new URLSearchParams(location.hash.slice(PREFIX.length)), group = groupOf(kept.get("operation"));
    if (!location.hash.startsWith(PREFIX) || !group) return null;
    const given = fresh(group);
    if (typedSize(kept.get("size") || "")) given.size = typedSize(kept.get("size"));
    if (said.places[kept.get("data")]) given.data = kept.get("data");
    if (said.uses[kept.get("uses")]) given.uses = Number(kept.get("uses"));
    for (const [name, all] of Object.entries(CHOICES)) if (all.includes(kept.get(name))) given[name] = kept.get(name);
    return given;
  };

  const change = (what) => {
    view = { ...view, ...what };
    render();
    history.replaceState(null, "", address());
  };
  const drawCurves = curvesPanel(said, (size) => change({ size }));
  // Options that a group lacks cannot be chosen.
  const offer = (group) => {
    const offered = { speedup: group.compares && group.host.length > 0, time: true, rate: !!group.unit, answers: group.answers.length > 0, all: true };
    if (!offered[view.show]) view.show = "time";
    if (!offered[view.rows]) view.rows = "all";
    for (const radio of document.querySelectorAll("#chart input")) {
      radio.checked = radio.value === view[radio.name];
      radio.disabled = !offered[radio.value];
    }
  };
  const render = () => {
    const group = groupOf(view.operation);
    offer(group);
    $("v-operation").value = view.operation;
    $("v-axis").textContent = group.axis;
    if (typedSize($("v-size").value) !== view.size) $("v-size").value = view.size;
    $("v-data").value = view.data;
    $("v-uses").value = view.uses;
    const at = `${group.symbol} = ${words.sized(group.sizes, view.size)}`;
    if (groups.some((g) => g.verdict || g.unmeasured)) {
      const { says, more } = verdictWords(said, group, view);
      $("v-says").textContent = says;
      $("v-more").textContent = more;
      const found = lookUp(group, view.data, view.size, view.uses);
      $("v-core")?.replaceChildren(oneCore(group, found, view.size));
      $("verdict").dataset.choice = found ? ["cpu", "gpu", "unsure"][found.choice] : "";
      // The page of one group has no such table.
      if ($("w-at")) {
        $("w-at").textContent = `${group.title} at ${at}`;
        $("w-rows").replaceChildren(...changesTable(said, group, view));
      }
    }
    if ($("p-says")) {
      const answer = group.answers.find((a) => a.question === view.data);
      $("p-says").textContent = answer ? `${group.title}, ${at}, ${said.places[view.data][0]}: ${processesWords(group, answer, view.size)} ${answer.cause}` : "Nothing was measured for this place of the data.";
      $("p-link").hidden = !answer;
      if (answer) $("p-link").href = said.base + answer.evidence;
    }
    implementationsTable(said, group, drawCurves(group, view));
    $("view-link").href = address();
  };

  $("v-operation").addEventListener("change", (event) => {
    const { data, uses, show, rows } = view;
    const next = fresh(groupOf(event.target.value));
    const there = next.size && groupOf(next.operation).verdict?.places.some((place) => place.data === data);
    change({ ...next, uses, show, rows, data: there ? data : next.data });
  });
  $("v-size").addEventListener("input", (event) => {
    const size = typedSize(event.target.value);
    event.target.setAttribute("aria-invalid", size === null);
    if (size) change({ size });
  });
  $("v-data").addEventListener("change", (event) => change({ data: event.target.value }));
  $("v-uses").addEventListener("change", (event) => change({ uses: Number(event.target.value) }));
  document.querySelector(".ask").addEventListener("submit", (event) => event.preventDefault());
  for (const name of Object.keys(CHOICES)) $(`c-${name}`).addEventListener("change", (event) => change({ [name]: event.target.value }));
  // A cell of the map leads to its verdict; without scripts to the evidence.
  for (const cell of document.querySelectorAll("#map td[data-group]")) {
    const { group, place } = cell.dataset;
    if (groupOf(group)) cell.querySelector("a").href = PREFIX + new URLSearchParams({ operation: group, data: place });
  }
  addEventListener("hashchange", () => {
    const given = fromAddress();
    if (!given) return;
    change(given);
    $("verdict").scrollIntoView();
  });
  view = fromAddress() || view;
  render();
  let width = $("c-plot").clientWidth;
  new ResizeObserver(() => {
    if ($("c-plot").clientWidth === width) return;
    width = $("c-plot").clientWidth;
    render();
  }).observe($("c-plot"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
})();
