// Rings round one centre, for films that have svg.js too.
const C = 230;
const point = (angle, radius) => [C + radius * Math.sin(angle), C - radius * Math.cos(angle)];

// A piece of an annulus between two angles (clockwise from the top) and two radii.
function sector(a, b, inner, outer) {
  const wide = b - a > Math.PI ? 1 : 0, p = (angle, radius) => point(angle, radius).map((v) => v.toFixed(2)).join(" ");
  return `M${p(a, inner)}L${p(a, outer)}A${outer} ${outer} 0 ${wide} 1 ${p(b, outer)}L${p(b, inner)}A${inner} ${inner} 0 ${wide} 0 ${p(a, inner)}Z`;
}
