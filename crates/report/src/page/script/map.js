import { by, lookUp } from "./gpu_or_cpu.js";
// The colours of the map at a size that lies as far along each operation's sizes, 0 to 1.
const SHADES = [1 / 3, 1 / 1.02, 1.02, 3, 10];
export const colourMap = (groups, along) => {
  for (const cell of document.querySelectorAll("#map td[data-group]")) {
    const group = groups.find((g) => g.name === cell.dataset.group);
    const place = group?.verdict?.places.find((p) => p.data === cell.dataset.place);
    if (!place) continue;
    const size = Math.round(place.first * (place.last / place.first) ** along);
    const { speedup } = lookUp(group, place.data, size, 0) || {};
    if (!speedup) continue;
    cell.className = `shade${SHADES.filter((from) => speedup >= from).length}`;
    cell.querySelector("small").textContent = by(speedup);
  }
};
