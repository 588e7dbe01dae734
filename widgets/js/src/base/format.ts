// Numbers and texts as they are shown.

const THOUSANDS = { G: 1e9, M: 1e6, k: 1e3, "": 1 };
/** Units of time, in microseconds. */
const TIMES = { " d": 86.4e9, " h": 3.6e9, " min": 6e7, " s": 1e6 };

/** A value in the greatest unit that it reaches, else in the last one, with three digits. */
function inUnits(value: number, units: Record<string, number>): string {
  const all = Object.entries(units);
  const [unit, size] = all.find(([, least]) => Math.abs(value) >= least) ?? all.at(-1) ?? ["", 1];
  return `${+(value / size).toPrecision(3)}${unit}`;
}

/** A whole number with commas between thousands. */
export const count = (value: number): string => Math.round(value).toLocaleString("en");

/** Three digits and a unit: 12345 is "12.3k"; of what is hardly anything, its size. */
export const short = (value: number): string =>
  value && Math.abs(value) < 0.001 ? value.toExponential(1) : inUnits(value, THOUSANDS);

/** An age in microseconds: 90000000 is "1.5 min". */
export const age = (micros: number): string => inUnits(micros, TIMES);

/** The share of a part in a whole; 0 if there is nothing. */
export const shareOf = (part: number, whole: number): number => (whole ? part / whole : 0);

/** A share in percent: "26 %", "<1 %". */
export const percent = (share: number): string =>
  `${share > 0 && share < 0.01 ? "<1" : Math.round(100 * share)} %`;

/** A number of things: "1 node", "2 nodes", "3 queries". */
export const several = (number: number, thing: string): string =>
  `${count(number)} ${number === 1 ? thing : `${thing}s`.replace(/ys$/, "ies")}`;
