// Numbers and texts as they are shown.

const UNITS: [number, string][] = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** A whole number with commas between thousands. */
export const count = (value: number): string => Math.round(value).toLocaleString("en");

/** Three digits and a unit: 12345 is "12.3k"; of what is hardly anything, its size. */
export function short(value: number): string {
  if (value && Math.abs(value) < 0.001) return value.toExponential(1);
  const [size, unit] = UNITS.find(([least]) => Math.abs(value) >= least) ?? [1, ""];
  return String(+(value / size).toPrecision(3)) + unit;
}

/** An age in microseconds: 90000000 is "1.5 min". */
export function age(micros: number): string {
  const units: [number, string][] = [
    [86_400, "d"],
    [3600, "h"],
    [60, "min"],
  ];
  const seconds = micros / 1e6;
  const [size, unit] = units.find(([least]) => seconds >= least) ?? [1, "s"];
  return `${+(seconds / size).toPrecision(3)} ${unit}`;
}

/** A length of time: 0.4 is "0.4 s", 75 is "1 min 15 s". */
export function ago(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

/** The share of a part in a whole; 0 if there is nothing. */
export const shareOf = (part: number, whole: number): number => (whole ? part / whole : 0);

/** A number of things: "1 node", "2 nodes", "3 queries". */
export const several = (number: number, thing: string): string =>
  `${count(number)} ${number === 1 ? thing : `${thing}s`.replace(/ys$/, "ies")}`;
