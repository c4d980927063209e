// Labels that do not overlap. `wanted` are places along a line, each with the length that its
// label takes; what comes back are places as near to them as there is room, in the same order, and
// null for those that found none: the last in the list go first.
export const apart = (wanted, from, to) => {
  let kept = wanted.map((_, i) => i);
  const taken = () => kept.reduce((sum, i) => sum + wanted[i].length, 0);
  while (taken() > to - from) kept.pop();
  const order = kept.sort((a, b) => wanted[a].at - wanted[b].at);
  // Groups of labels that touch, each placed where the mean of their wishes is.
  let groups = [];
  for (const i of order) {
    let group = { of: [i], wish: wanted[i].at, length: wanted[i].length };
    const place = (g) => (g.start = Math.max(from, Math.min(g.wish - g.length / 2, to - g.length)));
    place(group);
    for (let last = groups.at(-1); last && last.start + last.length > group.start; last = groups.at(-1)) {
      groups.pop();
      const all = last.of.length + group.of.length;
      group = {
        of: [...last.of, ...group.of],
        wish: (last.wish * last.of.length + group.wish * group.of.length) / all,
        length: last.length + group.length,
      };
      place(group);
    }
    groups.push(group);
  }
  const places = wanted.map(() => null);
  for (const group of groups) {
    let at = group.start;
    for (const i of group.of) {
      places[i] = at + wanted[i].length / 2;
      at += wanted[i].length;
    }
  }
  return places;
};
// The lanes in which labels of such a start and length stand without touching, the first that is free.
export const lanes = (wanted, gap) => {
  const ends = [];
  return wanted.map(({ start, length }) => {
    let lane = ends.findIndex((end) => end + gap <= start);
    if (lane < 0) lane = ends.length;
    ends[lane] = start + length;
    return lane;
  });
};
export const measure = (() => {
  const context = document.createElement("canvas").getContext("2d");
  return (text, font) => {
    context.font = font;
    return context.measureText(text).width;
  };
})();
// The colour of a custom property.
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
