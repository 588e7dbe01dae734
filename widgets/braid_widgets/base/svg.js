// What films that draw with SVG have in common.
const SVG = "http://www.w3.org/2000/svg";

function make(parent, tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}
const note = (node, text) => { make(node, "title", {}, text); return node; };
const said = (n) => Math.round(n).toLocaleString("en");
