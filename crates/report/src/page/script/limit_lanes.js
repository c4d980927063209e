// What limits each curve along the sizes, under the chart and in line with it.
const limitLanes = (node, kinds) => {
  return (lanesOf, geometry) => {
    node.replaceChildren();
    const { view, x, width, left } = geometry;
    const place = (v) => ((v - view[0]) / (view[1] - view[0])) * width;
    const said = [];
    for (const { label, short, colour: ink, rows } of lanesOf) {
      const known = rows.filter((row) => row.size > 0 && row.kind !== undefined);
      if (!known.length) continue;
      const line = make("div", { className: "lane" });
      const name = make("b", { textContent: node.clientWidth < 560 ? short || label : label, title: label });
      if (ink) name.style.color = ink;
      name.style.marginLeft = `${left}px`;
      // On its own line where there is no room beside.
      line.append(name);
      const cells = make("div", { className: "cells" });
      cells.style.cssText = `margin-left:${left}px;width:${width}px`;
      const at = known.map((row) => x.of(row.size));
      // Each size reaches half the way to its neighbours.
      const edges = at.map((v, i) => [i ? (at[i - 1] + v) / 2 : v - (at.length > 1 ? (at[1] - v) / 2 : 1), i + 1 < at.length ? (v + at[i + 1]) / 2 : v + (i ? (v - at[i - 1]) / 2 : 1)]);
      let run = null;
      const runs = [];
      known.forEach((row, i) => {
        const [a, b] = [Math.max(0, place(edges[i][0])), Math.min(width, place(edges[i][1]))];
        if (b - a < 0.5) return;
        const cell = make("i", { className: `k-${kinds[row.kind]}`, title: `${row.at}: ${row.share}` });
        const full = row.reached === undefined ? 0.35 : Math.min(1, row.reached);
        cell.style.cssText = `left:${a}px;width:${b - a}px;--full:${Math.round(12 + 50 * full)}%`;
        const share = row.reached === undefined ? "" : words.percent(row.reached).replace(/\.\d/, "");
        if (b - a > 34) cell.append(make("span", { textContent: share }));
        cells.append(cell);
        if (run && run.kind === row.kind) run.to = b;
        else runs.push((run = { kind: row.kind, from: a, to: b, row }));
        said.push(`${label}, ${row.at}: ${row.share}`);
      });
      for (const { kind, from, to } of runs) {
        if (to - from < measure(kinds[kind], "11px sans-serif") + 8) continue;
        const title = make("em", { textContent: kinds[kind] });
        title.style.cssText = `left:${from}px;width:${to - from}px`;
        cells.append(title);
      }
      line.append(cells);
      node.append(line);
    }
    node.hidden = !said.length;
    node.setAttribute("aria-label", `What limits each curve at each size. ${said.length > 60 ? "The table of values has it." : said.join("; ")}`);
    return said.length > 0;
  };
};
