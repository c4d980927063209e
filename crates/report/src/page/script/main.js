import { unpacked } from "./dom.js";
import { sized } from "./words.js";
import { changesTable, lookUp, overOneThread, typedSize, verdictWords } from "./verdict.js";
import { chartPanel, implementationsTable } from "./chart.js";
// The reader's choice (operation, size, place of the data, how often they are used, view of the chart),
// shown in every part of the page and kept in the address.
const PREFIX = "#view:";
const CHOICES = { show: ["speedup", "time", "throughput"], rows: ["places", "all"] };
const ready = (async () => {
  const { groups, words } = (await unpacked()) || { groups: [] };
  if (!groups.length) return;
  const $ = (id) => document.getElementById(id);
  const groupOf = (name) => groups.find((g) => g.name === name);
  const largest = ({ charts }) => Math.max(1, ...Object.values(charts.all || {}).flatMap((chart) => chart?.curves || []).flatMap(({ dots }) => dots.map(({ size }) => size)));
  const fresh = (group) => ({ operation: group.name, size: group.decision?.size || largest(group), data: group.decision?.place || "ordinary", uses: 0, show: "speedup", rows: "places" });
  let view = fresh(groupOf($("v-operation").value) || groups[0]);

  const address = () => PREFIX + new URLSearchParams(Object.entries(view).filter(([name, value]) => name === "operation" || String(value) !== String(fresh(groupOf(view.operation))[name])));
  const fromAddress = () => {
    const kept = new URLSearchParams(location.hash.slice(PREFIX.length)), group = groupOf(kept.get("operation"));
    if (!location.hash.startsWith(PREFIX) || !group) return null;
    const given = fresh(group);
    if (typedSize(kept.get("size") || "")) given.size = typedSize(kept.get("size"));
    if (words.places.some(({ name }) => name === kept.get("data"))) given.data = kept.get("data");
    if (words.uses[kept.get("uses")]) given.uses = Number(kept.get("uses"));
    for (const [name, all] of Object.entries(CHOICES)) if (all.includes(kept.get(name))) given[name] = kept.get(name);
    return given;
  };

  const change = (what) => {
    view = { ...view, ...what };
    render();
    history.replaceState(null, "", address());
  };
  const drawChart = $("c-plot") && chartPanel((size) => change({ size }));
  // Charts that a group lacks cannot be chosen.
  const offer = ({ charts }) => {
    const offered = (show, rows) => charts[rows]?.[show];
    if (!offered(view.show, view.rows)) {
      const there = CHOICES.rows.flatMap((rows) => CHOICES.show.map((show) => ({ show, rows }))).find(({ show, rows }) => offered(show, rows));
      Object.assign(view, there);
    }
    for (const radio of document.querySelectorAll("#chart input")) {
      radio.checked = radio.value === view[radio.name];
      radio.disabled = radio.name === "show" ? !offered(radio.value, view.rows) : !CHOICES.show.some((show) => offered(show, radio.value));
    }
  };
  const render = () => {
    const group = groupOf(view.operation);
    offer(group);
    $("v-operation").value = view.operation;
    $("v-axis").textContent = group.axis;
    if (typedSize($("v-size").value) !== view.size) $("v-size").value = view.size;
    $("v-size").setAttribute("aria-invalid", false);
    $("v-data").value = view.data;
    $("v-uses").value = view.uses;
    const { says, more } = verdictWords(words, group, view);
    $("v-says").textContent = says;
    $("v-more").textContent = more;
    $("v-question")?.replaceChildren(group.question);
    const found = lookUp(group, view.data, view.size, view.uses);
    $("v-core")?.replaceChildren(overOneThread(group, view));
    $("verdict").dataset.choice = found?.choice || "";
    // The page of one group has no such table.
    if ($("w-at")) {
      const size = found?.nearest || view.size;
      $("w-at").textContent = `${group.title} at ${group.symbol} = ${sized(group, size)}`;
      $("w-rows").replaceChildren(...changesTable(words, group, { ...view, size }));
    }
    if ($("p-says")) {
      const answer = group.answers.find(({ place }) => place === view.data);
      const place = words.places.find(({ name }) => name === view.data).words;
      $("p-says").textContent = answer ? `${group.title}, ${place}. The GPU wins: ${answer.wins}. ${answer.cause}` : "Nothing was measured for this place of the data.";
      $("p-link").hidden = !answer;
      if (answer) $("p-link").href = words.base + answer.evidence;
    }
    const size = drawChart ? drawChart(group, group.charts[view.rows]?.[view.show], view) : view.size;
    if ($("i-rows")) implementationsTable(group, size);
    if ($("c-link")) $("c-link").href = words.base + group.page + address();
    $("view-link").href = address();
  };

  $("v-operation").addEventListener("change", (event) => {
    const { data, uses, show, rows } = view;
    const next = fresh(groupOf(event.target.value));
    const there = next.size && groupOf(next.operation).decision?.places.some(({ name }) => name === data);
    change({ ...next, uses, show, rows, data: there ? data : next.data });
  });
  $("v-size").addEventListener("input", (event) => {
    const size = typedSize(event.target.value);
    if (size) return change({ size });
    // The answer for the last size would be taken for this one's.
    event.target.setAttribute("aria-invalid", true);
    $("v-says").textContent = "This is no size: type a number above zero, such as 1,000, 2^20, 64 Ki or 1e6.";
    for (const id of ["v-more", "v-core", "p-says"]) $(id)?.replaceChildren();
    $("verdict").dataset.choice = "";
  });
  $("v-data").addEventListener("change", (event) => change({ data: event.target.value }));
  $("v-uses").addEventListener("change", (event) => change({ uses: Number(event.target.value) }));
  document.querySelector(".ask").addEventListener("submit", (event) => event.preventDefault());
  for (const name of Object.keys(CHOICES)) $(`c-${name}`)?.addEventListener("change", (event) => change({ [name]: event.target.value }));
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
  if (drawChart) {
    let width = $("c-plot").clientWidth;
    new ResizeObserver(() => {
      if ($("c-plot").clientWidth === width) return;
      width = $("c-plot").clientWidth;
      render();
    }).observe($("c-plot"));
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
})();
