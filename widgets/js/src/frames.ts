// What Python sends; made by `make js` from the types in braid_widgets, not by hand.
import type { Columns } from "./base/columns.ts";

/** Colours as #rrggbb: of hosts and streams (more of them begin again), and of the time line. */
export interface Palette {
  hosts: string[];
  streams: string[];
  ratio: string;
  sides: string;
  bound: string;
  migration: string;
  throughput: string;
  results: string;
}

/**
 * A rectangle of the matrix, in shares of the two key spaces; `percent` of its pairs that came due
 * are joined.
 */
export interface Cell {
  top: number;
  bottom: number;
  left: number;
  right: number;
  host: number;
  percent: number;
  moving: boolean;
}

/** Tuples that go from host to host: from and to where, in shares of the two key spaces. */
export interface Chip {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
  stream: number;
  rows: number;
  source: number;
  target: number;
}

/** The join matrix: of streams 0 (top to bottom) and 1 (left to right), with tuples live. */
export interface MatrixFrame {
  title: string;
  note: string;
  streams: string[];
  rows: number[];
  cells: Columns<Cell>;
  chips: Columns<Chip>;
}

/** A host's place in its group. */
export interface HostCell {
  host: number;
  row: number;
  column: number;
}

/** Hosts in `n` rows and `m` columns; `mapping` says whether these are partitions. */
export interface HostGroup {
  n: number;
  m: number;
  mapping: boolean;
  cells: Columns<HostCell>;
}

/**
 * Hosts by group, with what each stores (by host), the mean, and what a full box stands for, in
 * tuples.
 */
export interface HostsFrame {
  title: string;
  scale: string;
  note: string;
  groups: HostGroup[];
  stored: number[];
  mean: number;
  top: number;
}

/** Batches from `first` to `last`, both in it. */
export interface Stretch {
  first: number;
  last: number;
}

/**
 * A curve in a colour of the palette. Its axis begins at `floor` (else 0), reaches `ceiling` or
 * more, and ends at `cap` at most; `bound` is a dashed line.
 */
export interface Curve {
  name: string;
  colour: string;
  values: (number | null)[];
  floor?: number;
  ceiling?: number;
  cap?: number;
  bound?: number;
}

/**
 * The time line: panels of one or two curves (axes left and right) over the batches, of which
 * `last` is the last to come.
 */
export interface LineFrame {
  title: string;
  axis: string;
  batch: number[];
  last: number;
  migrations: Stretch[];
  panels: Curve[][];
}

/** One picture: the join matrix, the hosts' grid and the time line, under a title and a note. */
export interface StageFrame {
  title: string;
  note: string;
  matrix: MatrixFrame;
  grid: HostsFrame;
  line: LineFrame;
}

/**
 * What a node stores of a stream; `share` is of the most that one stores, `lasts` its slice's
 * length in words.
 */
export interface RingSlice {
  stream: number;
  node: number;
  rows: number;
  share: number;
  lasts: string;
}

/** The nodes on which a stream's head and tail are. */
export interface RingEnds {
  head: number | null;
  tail: number | null;
}

/** State that goes from node to node, and why: by age, or because the ring has another length. */
export interface RingMove {
  stream: number;
  source: number;
  target: number;
  rows: number;
  why: string;
}

/**
 * The ring after a batch. `ends`, `probes`, `live` and `lengths` (windows in words) are by stream;
 * `loads` are by node, the `loaded` ones.
 */
export interface RingFrame {
  title: string;
  note: string;
  batch: string;
  nodes: number;
  streams: string[];
  slices: Columns<RingSlice>;
  ends: RingEnds[];
  probes: number[];
  partial: number;
  moves: RingMove[];
  stored: number;
  sent: number;
  live: number[];
  lengths: string[];
  measure: string;
  loaded: number[];
  loads: number[];
}

/** An age in microseconds, in words, and its place from 0 to 1. */
export interface ChainMark {
  age: number;
  text: string;
  place: number;
}

/**
 * Ages from `first` to `last` (microseconds), tuples held, their share of the fullest slice, and
 * the queries that it serves.
 */
export interface ChainSlice {
  first: number;
  last: number;
  rows: number;
  share: number;
  serves: string;
}

/** Tuples that went from slice to slice. */
export interface ChainAged {
  source: number;
  target: number;
  rows: number;
}

/** Tuples that were cut off where a slice begins: no later query wants them. */
export interface ChainCut {
  slice: number;
  rows: number;
}

/** A query with its window (microseconds) and selection. */
export interface ChainQuery {
  name: string;
  window: number;
  where: string;
}

/** A stream's slices, youngest first, and what happened to its tuples in the batch. */
export interface ChainStream {
  name: string;
  index: number;
  came: number;
  expired: number;
  marks: ChainMark[];
  slices: ChainSlice[];
  aged: ChainAged[];
  cut: ChainCut[];
  queries: ChainQuery[];
}

/** The chain after a batch; with `pick` slices can be clicked. */
export interface ChainFrame {
  title: string;
  note: string;
  pick: boolean;
  streams: ChainStream[];
}

/**
 * A piece as it is drawn: ages in words, the share of the stream's fullest piece, the queries that
 * it serves.
 */
export interface SharedPiece {
  stream: number;
  host: number;
  ages: string;
  rows: number;
  share: number;
  queries: string[];
}

/** The ages of a stream that a host holds, in words; `head`: the youngest are among them. */
export interface SharedStretch {
  stream: number;
  host: number;
  ages: string;
  head: boolean;
}

/** How much of a host's stretch of a stream a query uses, from 0 to 1. */
export interface SharedUse {
  stream: number;
  host: number;
  share: number;
}

/** A query with its windows and selections in words; `used` is by age, young to old. */
export interface SharedQuery {
  name: string;
  windows: string;
  where: string;
  used: Columns<SharedUse>;
}

/**
 * The shared ring after a batch: `stored` tuples by host and stream, their `mean` by host, `live`
 * ones by stream.
 */
export interface SharedFrame {
  title: string;
  note: string;
  batch: string;
  hosts: number;
  streams: string[];
  pieces: Columns<SharedPiece>;
  stretches: SharedStretch[];
  stored: number[][];
  mean: number;
  live: number[];
  queries: SharedQuery[];
  probed: number;
  sent: number;
}

/**
 * What stands in a box: its text, the stream that gives the colour (None: several or none), and
 * whether this step put it there.
 */
export interface StepChip {
  text: string;
  stream: number | null;
  fresh: boolean;
}

/**
 * A node, what it stores by stream, and what waits there where the model has queues; `here`: the
 * step happens there.
 */
export interface StepNode {
  name: string;
  here: boolean;
  stored: StepChip[][];
  queued: StepChip[] | null;
}

/** What is on its way, from where to where. */
export interface StepMove {
  what: StepChip;
  source: string;
  target: string;
}

/**
 * A step of an example: `text` says what happens, `found` are the results so far, the first row of
 * the `table` is its head.
 */
export interface StepFrame {
  title: string;
  note: string;
  text: string;
  streams: string[];
  nodes: StepNode[];
  moves: StepMove[];
  found: StepChip[];
  table: string[][];
}
