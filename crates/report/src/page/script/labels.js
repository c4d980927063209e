// Labels that do not overlap. `wanted` are places along a line, each with the length that its label
// takes. The result has places near them, and null for those without room: the last in the list go first.
export const apart = (wanted, from, to) => {
  const kept = wanted.map((_, i) => i);
  while (kept.reduce((sum, i) => sum + wanted[i].length, 0) > to - from) kept.pop();
  kept.sort((a, b) => wanted[a].at - wanted[b].at);
  const places = wanted.map(() => null);
  let least = from, most = to;
  for (const i of kept) {
    places[i] = Math.max(wanted[i].at, least + wanted[i].length / 2);
    least = places[i] + wanted[i].length / 2;
  }
  for (const i of kept.reverse()) {
    places[i] = Math.min(places[i], most - wanted[i].length / 2);
    most = places[i] - wanted[i].length / 2;
  }
  return places;
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
