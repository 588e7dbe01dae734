// What Python sends; made by `make js` from the types in braid_widgets, not by hand.
import type { Columns } from "./base/columns.ts";

/** Colors as #rrggbb: of hosts and streams (they repeat), and of the timeline. */
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

/** One figure: its name, its value with the unit, and a tooltip with its exact definition. */
export interface KeyFigure {
  name: string;
  value: string;
  tooltip: string;
}

/**
 * One replica of a block: its host, stream and number of tuples. `first` and `last` are its ends on
 * the age axis (0: the oldest block held, 1: the youngest).
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
 * Blocks by host, stream and age. - `stored`: tuples by host. - `scale_max`: tuples of a full bar.
 * - `ends`: labels of the two ends of the age axis.
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
 * A rectangle of the matrix, in shares of the two key spaces. `percent` is the share of its due
 * pairs that are joined.
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

/** Tuples that move between hosts; source and target are in shares of the two key spaces. */
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
 * The join matrix of streams 0 (top to bottom) and 1 (left to right), with live tuples. It is drawn
 * to scale, |R| by |S|. Several frames shown together use the maximum of `max_rows`, so that the
 * matrix visibly grows.
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

/** A host's position in its group. */
export interface HostCell {
  host: number;
  row: number;
  column: number;
}

/**
 * Hosts in `n` rows and `m` columns. `mapping` tells whether rows and columns are partitions; if
 * False, they are only a layout.
 */
export interface HostGroup {
  n: number;
  m: number;
  mapping: boolean;
  cells: Columns<HostCell>;
}

/**
 * Hosts by group with the tuples that each stores. - `stored`: tuples by host. - `mean`: mean of
 * the stored tuples. - `scale_max`: tuples of a full bar. Several frames shown together use the
 * maximum, so that all bars have one scale. - `baseline`: tuples that each host would store on a
 * square grid; null without a grid.
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
 * A node's slice of a stream. - `share`: its tuples divided by those of the fullest slice. -
 * `retention`: the slice's length, in words.
 */
export interface RingSlice {
  stream: number;
  node: number;
  rows: number;
  share: number;
  retention: string;
}

/** The nodes of a stream's head and tail. */
export interface RingEnds {
  head: number | null;
  tail: number | null;
}

/** State that moves from node to node because of its age or because the ring was resized. */
export interface RingMove {
  stream: number;
  source: number;
  target: number;
  rows: number;
  reason: string;
}

/**
 * The ring after a batch. - `ends`, `probes`, `live`, `lengths` (windows in words): by stream. -
 * `loads`: by node, for the nodes in `loaded`.
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

/** An age in microseconds, in words, and its position from 0 to 1. */
export interface ChainMark {
  age: number;
  text: string;
  place: number;
}

/**
 * A slice of ages from `first` to `last` (microseconds). - `rows`: tuples held. - `share`: its
 * tuples divided by those of the fullest slice. - `serves`: the queries that it serves.
 */
export interface ChainSlice {
  first: number;
  last: number;
  rows: number;
  share: number;
  serves: string;
}

/** Tuples that moved from one slice to the next. */
export interface ChainAged {
  source: number;
  target: number;
  rows: number;
}

/** Tuples dropped at the start of a slice, because no query with a longer window needs them. */
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

/** A stream's slices, youngest first, and the flow of its tuples in the batch. */
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

/** The chain after a `batch` (from 1); with `pick` slices are clickable. */
export interface ChainFrame {
  title: string;
  note: string;
  batch: number;
  pick: boolean;
  streams: ChainStream[];
}

/**
 * A piece of a slice on a host. - `ages`: its ages, in words. - `share`: its tuples divided by
 * those of the stream's fullest piece. - `queries`: the queries that it serves.
 */
export interface SharedPiece {
  stream: number;
  host: number;
  ages: string;
  rows: number;
  share: number;
  queries: string[];
}

/** The ages of a stream that a host holds, in words; `head`: they include the youngest. */
export interface SharedStretch {
  stream: number;
  host: number;
  ages: string;
  head: boolean;
}

/** The share of a host's ages of a stream that a query uses, from 0 to 1. */
export interface QueryUse {
  stream: number;
  host: number;
  share: number;
}

/** A query with its windows and selections in words; `used` is sorted from young to old. */
export interface SharedQuery {
  name: string;
  windows: string;
  selections: string;
  used: Columns<QueryUse>;
}

/**
 * The shared ring after a `batch` (from 1). - `stored`: tuples by host and stream. - `mean`: mean
 * of the stored tuples per host. - `live`: live tuples by stream.
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

/** A frame of the state map, under the name of the JavaScript that draws it. */
export interface MapFrame {
  blocks?: BlockMapFrame;
  grid?: GridFrame;
  ring?: RingFrame;
  chain?: ChainFrame;
  shared_ring?: SharedFrame;
}

/** The view after a batch (from 1). */
export interface BatchFrame {
  batch: number;
  title: string;
  key_figures: Columns<KeyFigure>;
  state_map: MapFrame;
}

/** Batches from `first` to `last`, inclusive. */
export interface BatchRange {
  first: number;
  last: number;
}

/** A modelled curve beside a counted one; it may extend beyond the run's batches. */
export interface BaselineSeries {
  name: string;
  batch: number[];
  values: (number | null)[];
}

/**
 * A curve in a color of the palette. - `floor`: start of its axis; else 0. - `ceiling`: minimum end
 * of its axis. - `cap`: maximum end of its axis. - `bound`: a dashed line, by batch. - `baselines`:
 * modelled curves of other placements, by name.
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
 * The timeline: panels of one or two curves (left and right axes) over the batches. `batch` lists
 * the batches, from 1; `last` is the last planned one.
 */
export interface TimelineFrame {
  title: string;
  axis: string;
  batch: number[];
  last: number;
  migrations: BatchRange[];
  panels: TimelineCurve[][];
}

/**
 * The activity of each host in each batch, by measure; a host that did not exist yet has no entry.
 */
export interface HostRows {
  batch: number[];
  names: string[];
  values: number[][][];
}

/** A decision taken in a batch (from 1), as a sentence. */
export interface Annotation {
  batch: number;
  text: string;
}

/**
 * The visible state of a run. - `state`: one word, such as "live". - `note`: what runs and how it
 * ended. - `seconds_left`: the time left, in words. - `seconds_since_commit`: seconds since the
 * last commit; None if the run has ended or this is unknown. - `what_if_placements`: placements for
 * a what-if; empty if no kernel can answer. - `what_if_message`: the result of the last what-if, if
 * it is not a curve.
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

/** Runs by name. `timeline_page` has the timeline of all runs and no frame. */
export interface LinkedViewsPage {
  names: string[];
  pages: CockpitPage[];
  timeline_page: CockpitPage;
}

/**
 * A tuple in a box. - `stream`: the stream that sets the color; None: several streams or none. -
 * `is_new`: whether this step put it there.
 */
export interface StepChip {
  text: string;
  stream: number | null;
  is_new: boolean;
}

/**
 * A node with the tuples it stores, by stream. - `queued`: tuples that wait, if the model has
 * queues. - `is_active`: whether the step happens at this node.
 */
export interface StepNode {
  name: string;
  is_active: boolean;
  stored: StepChip[][];
  queued: StepChip[] | null;
}

/** Tuples that move from a source to a target. */
export interface StepMove {
  what: StepChip;
  source: string;
  target: string;
}

/**
 * One step of an example. - `text`: description of the step. - `results`: the results so far. -
 * `table`: rows of a table; the first is its header.
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

/** A moment of a hub: its picture as SVG, and the details shown when a query's name is clicked. */
export interface HubFrame {
  title: string;
  note: string;
  svg: string;
  query_texts: Record<string, string>;
}
