export const make = (tag, props = {}, ...children) => {
  const node = document.createElement(tag);
  Object.assign(node, props);
  node.append(...children);
  return node;
};
// The data of the page; nothing if the browser cannot inflate them: then the page stays as without
// scripts.
export const unpacked = async () => {
  if (!globalThis.DecompressionStream) return null;
  const letters = atob(document.getElementById("data").textContent);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(plain).json();
};
