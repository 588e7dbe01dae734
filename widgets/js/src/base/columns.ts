/** Records by column: a list for each field, all of one length. Python sends many records so. */
export type Columns<T> = { [K in keyof T]: T[K][] };

export function records<T extends object>(columns: Columns<T>): T[] {
  const names = Object.keys(columns) as (keyof T)[];
  const first = names[0];
  if (first === undefined) return [];
  return columns[first].map(
    (_, k) => Object.fromEntries(names.map((name) => [name, columns[name][k]])) as T,
  );
}

export const product = (values: number[]): number =>
  values.reduce((whole, each) => whole * each, 1);

export const sum = (values: number[]): number => values.reduce((total, each) => total + each, 0);

/** Finds the record of the same name among older ones; what is new was as it is. */
export function earlier<T extends object>(
  older: Columns<T> | undefined,
  nameOf: (each: T) => unknown,
) {
  const known = new Map(older && records(older).map((each) => [nameOf(each), each]));
  return (each: T): T => known.get(nameOf(each)) ?? each;
}
