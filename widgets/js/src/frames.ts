// What Python sends; made by `make js` from the types in braid_widgets, not by hand.
import type { Columns } from "./base/columns.ts";

/** Colours as #rrggbb: of hosts and streams (more of them begin again), and of the time line. */
export interface Palette {
  hosts: string[];
  streams: string[];
  ratio: string;
  sides: string;
  ratio_bound: string;
  migration: string;
  throughput: string;
  results: string;
}

/** A figure: its name, its value with the unit, and what exactly it is. */
export interface KeyFigure {
  name: string;
  value: string;
  tooltip: string;
}

/**
 * A replica: its host, stream and tuples; from `first` to `last` of the axis (0: the oldest that is
 * held, 1: the youngest).
 */
export interface BlockBar {
  block: number;
  host: number;
  stream: number;
  first: number;
  last: number;
  rows: number;
}

/**
 * Blocks by host, stream and age. `stored` are tuples by host, a full bar is `top`; `ends` name the
 * ends of the axis.
 */
export interface BlockMapFrame {
  title: string;
  note: string;
  hosts: number;
  streams: string[];
  ends: string[];
  blocks: Columns<BlockBar>;
  stored: number[];
  scale_max: number;
}

/**
 * A rectangle of the matrix, in shares of the two key spaces; `percent` of its pairs that came due
 * are joined.
 */
export interface MatrixCell {
  top: number;
  bottom: number;
  left: number;
  right: number;
  host: number;
  percent: number;
  moving: boolean;
}

/** Tuples that go from host to host: from and to where, in shares of the two key spaces. */
export interface MoveChip {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
  stream: number;
  rows: number;
  source: number;
  target: number;
}

/**
 * The join matrix: of streams 0 (top to bottom) and 1 (left to right), with tuples live. It is
 * drawn to scale, |R| by |S|; whoever shows several frames takes the greatest `most` tuples of a
 * side, so that it is seen to grow.
 */
export interface MatrixFrame {
  title: string;
  note: string;
  streams: string[];
  rows: number[];
  max_rows: number;
  cells: Columns<MatrixCell>;
  chips: Columns<MoveChip>;
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
 * Hosts by group, with the tuples that each stores (by host), their mean, and the most that is
 * drawn. `ghost` is what each would store had the grid stayed square, null without a grid. Whoever
 * shows several frames takes the greatest `top`, so that all bars are on one scale.
 */
export interface HostsFrame {
  title: string;
  note: string;
  groups: HostGroup[];
  stored: number[];
  mean: number;
  scale_max: number;
  baseline: number | null;
}

/** The join matrix and the hosts' grid after a batch. */
export interface GridFrame {
  matrix: MatrixFrame;
  hosts: HostsFrame;
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
  retention: string;
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
  reason: string;
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
  selection: string;
}

/** A stream's slices, youngest first, and what happened to its tuples in the batch. */
export interface ChainStream {
  name: string;
  index: number;
  received_tuples: number;
  expired: number;
  marks: ChainMark[];
  slices: ChainSlice[];
  aged: ChainAged[];
  trimmed: ChainCut[];
  queries: ChainQuery[];
}

/** The chain after a `batch` (from 1); with `pick` slices can be clicked. */
export interface ChainFrame {
  title: string;
  note: string;
  batch: number;
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
export interface QueryUse {
  stream: number;
  host: number;
  share: number;
}

/** A query with its windows and selections in words; `used` is by age, young to old. */
export interface SharedQuery {
  name: string;
  windows: string;
  selections: string;
  used: Columns<QueryUse>;
}

/**
 * The shared ring after a `batch` (from 1): `stored` tuples by host and stream, their `mean` by
 * host, `live` ones by stream.
 */
export interface SharedFrame {
  title: string;
  note: string;
  batch: number;
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

/** The map, under the name of what draws it. */
export interface MapFrame {
  blocks?: BlockMapFrame;
  grid?: GridFrame;
  ring?: RingFrame;
  chain?: ChainFrame;
  shared_ring?: SharedFrame;
}

/** What is seen after a batch (from 1). */
export interface BatchFrame {
  batch: number;
  title: string;
  key_figures: Columns<KeyFigure>;
  state_map: MapFrame;
}

/** Batches from `first` to `last`, both in it. */
export interface BatchRange {
  first: number;
  last: number;
}

/** A modelled curve beside a counted one; `batch` may go beyond the run. */
export interface BaselineSeries {
  name: string;
  batch: number[];
  values: (number | null)[];
}

/**
 * A curve in a colour of the palette. Its axis begins at `floor` (else 0), reaches `ceiling` or
 * more, and ends at `cap` at most; `bound` is a dashed line, by batch. `ghost` curves are modelled,
 * by name: what another placement would do.
 */
export interface TimelineCurve {
  name: string;
  color: string;
  values: (number | null)[];
  floor?: number;
  ceiling?: number;
  cap?: number;
  bound?: (number | null)[];
  baselines?: BaselineSeries[];
}

/**
 * The time line: panels of one or two curves (axes left and right) over the batches, of which
 * `last` is the last to come.
 */
export interface TimelineFrame {
  title: string;
  axis: string;
  batch: number[];
  last: number;
  migrations: BatchRange[];
  panels: TimelineCurve[][];
}

/** For each batch, what each host did, by measure; a host that was not there yet has no entry. */
export interface HostRows {
  batch: number[];
  names: string[];
  values: number[][][];
}

/** What was decided in a batch (from 1), as a sentence. */
export interface Annotation {
  batch: number;
  text: string;
}

/**
 * A run as far as it is. `state` is one word, `note` says what runs and how it ended, `left` is the
 * time left in words, `lag` the seconds since the last commit, where the run goes on (None: it does
 * not, or nobody knows). `offers` are the placements that a what-if may take, where there is
 * somebody to ask; `told` is what came of the last one, if not a curve.
 */
export interface CockpitPage {
  state: string;
  note: string;
  seconds_left: string;
  seconds_since_commit: number | null;
  frames: BatchFrame[];
  timeline: TimelineFrame;
  hosts: HostRows;
  annotations: Annotation[];
  what_if_placements: string[];
  what_if_message: string;
}

/** Runs by name; `whole` has the time line of all, and no frame. */
export interface LinkedViewsPage {
  names: string[];
  pages: CockpitPage[];
  timeline_page: CockpitPage;
}

/**
 * What stands in a box: its text, the stream that gives the colour (None: several or none), and
 * whether this step put it there.
 */
export interface StepChip {
  text: string;
  stream: number | null;
  is_new: boolean;
}

/**
 * A node, what it stores by stream, and what waits there where the model has queues; `here`: the
 * step happens there.
 */
export interface StepNode {
  name: string;
  is_active: boolean;
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
  results: StepChip[];
  table: string[][];
}

/** A moment of a hub: its picture as SVG, and by query what is told when its name is clicked. */
export interface HubFrame {
  title: string;
  note: string;
  svg: string;
  query_texts: Record<string, string>;
}
