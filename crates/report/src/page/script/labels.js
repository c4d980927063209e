// Positions along a line for labels of one length, near the wanted ones; without room the last are null.
export const apart = (wanted, length, from, to) => {
  const kept = wanted.map((_, i) => i).slice(0, Math.max(0, Math.floor((to - from) / length)));
  kept.sort((a, b) => wanted[a] - wanted[b]);
  const places = wanted.map(() => null);
  let least = from + length / 2, most = to - length / 2;
  for (const i of kept) {
    places[i] = Math.max(wanted[i], least);
    least = places[i] + length;
  }
  for (const i of kept.reverse()) {
    places[i] = Math.min(places[i], most);
    most = places[i] - length;
  }
  return places;
};
const canvas = document.createElement("canvas").getContext("2d");
export const measure = (text, font) => {
  canvas.font = font;
  return canvas.measureText(text).width;
};
// The colour of a custom property.
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
