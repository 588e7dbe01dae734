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
 * A verdict. - `word`: "keeps up", "close to its limit", "falls behind" or "no clock". - `figure`:
 * the share of the interval that a batch takes, in words. - `tone`: "good", "near", "bad" or
 * "none", which selects the color.
 */
export interface Verdict {
  word: string;
  figure: string;
  tone: string;
}

/**
 * A part of the condition in a batch. - `step`: the joined streams and the next one; empty for a
 * check of the pairs of the part above. - `text`: the part as SQL. - `reached`: how it is tested,
 * such as "equality", "all pairs" or "check". - `rows_in`: rows that probed, or pairs to check;
 * `rows_out`: pairs kept. - `seconds`: of all tasks; 0 if they are part of those above.
 */
export interface FlowPart {
  step: string;
  text: string;
  reached: string;
  rows_in: number;
  rows_out: number;
  seconds: number;
}

/**
 * Counts of the condition in a batch, over all hosts. - `access`: how candidates are found; empty
 * if it was not counted. - `seconds`: seconds of joining; null if they were not measured. -
 * `parts`: of the condition, in the order of their tests; empty if they were not counted.
 */
export interface BatchFlow {
  rows_in: number;
  candidates: number;
  results: number;
  access: string;
  seconds: number | null;
  parts: Columns<FlowPart>;
}

/**
 * Rows of one preserved stream after a batch. - `stream`: its index; `name`: its alias. - `held`:
 * rows held; `waiting`: those of them that a later row may still match. - `answered`, `unmatched`:
 * answered in the batch, and those without a partner. - `total_answered`, `total_unmatched`: the
 * same since the first of the events.
 */
export interface AnswerFlow {
  stream: number;
  name: string;
  held: number;
  waiting: number;
  answered: number;
  unmatched: number;
  total_answered: number;
  total_unmatched: number;
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

/** A host's row and column in the grid. */
export interface HostPlace {
  host: number;
  row: number;
  column: number;
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

/** Rows of a stream that one host copied to another in a batch. */
export interface HostCopies {
  source: number;
  target: number;
  stream: number;
  rows: number;
}

/**
 * A join matrix with the rows on each host. - `rows`: live rows by stream. - `n`, `m`: parts of the
 * two streams; 0 without a grid, or with several. - `places`: hosts in the grid; without one,
 * `cells` are the rectangles that hosts joined. - `load`: |R|/n + |S|/m, rows that a host holds
 * under the grid; null without one. - `before`: the mapping before the last change, or empty;
 * `load_before` is its load now. - `is_moving`: whether blocks still move to the hosts of the new
 * mapping. - `copies`: rows that moved in this batch; `moved_blocks` is the number of copied
 * blocks. - `waiting`: rows that are still to be copied. - `scale_max`: rows of a full bar. Frames
 * shown together use the maximum. - `across`: the longer stream, which is drawn along the longer
 * side of the picture.
 */
export interface GridFrame {
  title: string;
  streams: string[];
  rows: number[];
  n: number;
  m: number;
  places: Columns<HostPlace>;
  cells: Columns<MatrixCell>;
  stored: number[];
  load: number | null;
  before: number[];
  load_before: number | null;
  is_moving: boolean;
  copies: Columns<HostCopies>;
  moved_blocks: number;
  waiting: number;
  scale_max: number;
  across: number;
}

/**
 * A node's slice of a stream. - `place`: its place in the stream's ring, counted from the head (0);
 * -1 if it has left it. - `retention`: the slice's length, in words; empty if unknown.
 */
export interface RingSlice {
  stream: number;
  node: number;
  rows: number;
  place: number;
  retention: string;
}

/** Rows that move from node to node; `reason` is "aged" or "resized". */
export interface RingMove {
  stream: number;
  source: number;
  target: number;
  rows: number;
  reason: string;
}

/**
 * The ring after a batch. - `nodes`: the nodes in ring order, then those that have left the ring
 * and still hold rows. - `rows`, `received`, `heads`, `tails`: by stream; a head or tail of -1 is
 * unknown. - `scale_max`: rows of a full slice. Frames shown together use the maximum.
 */
export interface RingFrame {
  streams: string[];
  nodes: number[];
  rows: number[];
  received: number[];
  heads: number[];
  tails: number[];
  slices: Columns<RingSlice>;
  moves: Columns<RingMove>;
  scale_max: number;
}

/**
 * The part of a logical slice that a host holds. - `first`, `last`: ages in microseconds. -
 * `slice`: the slice's number, from the youngest. - `rows`: tuples.
 */
export interface SlicePiece {
  stream: number;
  host: number;
  first: number;
  last: number;
  slice: number;
  rows: number;
}

/**
 * A query: its windows by stream in microseconds, its results so far and in this batch, and its
 * selections as SQL.
 */
export interface AgeQuery {
  name: string;
  windows: number[];
  results: number;
  batch_results: number;
  selection: string;
}

/**
 * Rows by age and host after a batch. - `rows`, `received`: by stream, rows held, and rows of this
 * batch. - `hosts`: number of hosts that share the slices. - `scale_max`: rows of a full slice.
 * Frames shown together use the maximum.
 */
export interface AgesFrame {
  streams: string[];
  rows: number[];
  received: number[];
  hosts: number;
  pieces: Columns<SlicePiece>;
  queries: Columns<AgeQuery>;
  scale_max: number;
}

/**
 * A segment of a stream on a host. - `first`, `last`: its batches, from 1; the last one so far if
 * it goes on. - `copied`: rows of the other streams that were copied there when it began.
 */
export interface Segment {
  stream: number;
  host: number;
  first: number;
  last: number;
  copied: number;
}

/**
 * A host that new rows of `stream` visit. - `path`, `hop`: numbers of the path and of its hop, from
 * 0. - `partner`: the stream that is met there; `blocks` is the number of its blocks.
 */
export interface PathHop {
  stream: number;
  path: number;
  hop: number;
  partner: number;
  host: number;
  blocks: number;
}

/**
 * A join order that was compared; the chosen one is the first of its stream. - `order`: the streams
 * of its hops, in words. - `overhead`: estimated rows sent for one row of `stream`.
 */
export interface PathOrder {
  stream: number;
  order: string;
  overhead: number;
}

/**
 * Segments by host after a batch. - `first`, `last`: the batches shown, from 1. - `received`,
 * `sent`: rows of this batch, and copies of them that were sent to hosts. - `hops`, `orders`: under
 * coordinated routing, the newest path of each stream. - `latest`: the stream whose path was chosen
 * last; -1 without paths. - `scale_max`: rows of a full bar. Frames shown together use the maximum.
 */
export interface SegmentsFrame {
  streams: string[];
  first: number;
  last: number;
  segments: Columns<Segment>;
  stored: number[];
  received: number;
  sent: number;
  hops: Columns<PathHop>;
  orders: Columns<PathOrder>;
  latest: number;
  scale_max: number;
}

/**
 * New rows of `stream` against the old rows of `window` in one age slice (0: youngest). - `pairs`:
 * pairs of the batch, expected. - `matches`: learned matches of 1,000 pairs. - `share`: share of
 * the pairs that is compared; the mean of all types.
 */
export interface ShedBar {
  stream: number;
  window: number;
  age_slice: number;
  pairs: number;
  matches: number;
  share: number;
}

/**
 * The shares of a batch and what they found. - `lengths`: by stream, microseconds of an age slice;
 * 0: they differ. - `is_learned`: whether any match has been seen; else all pairs count alike. -
 * `work`, `recall`: shares of the pairs that are compared, and of the matches that are expected of
 * them. - `compared`, `left_out`: pairs of the batch, counted. - `results`, `estimated`: results of
 * the batch, and those of the full join as estimated. - `margin`: half of the 95 % interval of the
 * estimate; null if unknown. - `allowed_seconds`: seconds that the batch may take; null without
 * such a budget. - `scale_max`: matches of a full bar. Frames shown together use the maximum.
 */
export interface SheddingFrame {
  streams: string[];
  lengths: number[];
  items: Columns<ShedBar>;
  is_learned: boolean;
  work: number;
  recall: number;
  compared: number;
  left_out: number;
  results: number;
  estimated: number;
  margin: number | null;
  allowed_seconds: number | null;
  scale_max: number;
}

/**
 * A frequent value, named by the hash of the join value. - `share`: its share of all rows of recent
 * batches. - `hosts`: the hosts that share its rows.
 */
export interface HotValue {
  value: number;
  share: number;
  hosts: number[];
}

/**
 * Frequent values by host after a batch. - `values`: the frequent values, the most frequent first.
 * - `rest`: share of all other values; each of them is on one host. - `since`: the batch, from 1,
 * from which on they are shared out so; 0 before the first. - `before`, `after`: modelled work of
 * the busiest host over the mean, at that change. - `stored`, `compared`, `moved`: by host, rows
 * held, and in this batch pairs compared and rows that moved there. - `scale_max`: pairs of a full
 * bar. Frames shown together use the maximum.
 */
export interface HotKeysFrame {
  streams: string[];
  values: Columns<HotValue>;
  rest: number;
  since: number;
  before: number;
  after: number;
  stored: number[];
  compared: number[];
  moved: number[];
  scale_max: number;
}

/** A dimension: the streams that have it, and its number of parts. */
export interface CubeDimension {
  streams: number[];
  parts: number;
}

/** A cell and its host; `parts` has its part of each dimension, from 0. */
export interface CubeCell {
  host: number;
  parts: number[];
}

/**
 * The cells after a batch. - `reach`: by stream, the cells that store a row of it. - `copies`:
 * hosts that receive a row, on average, at the rates measured when the shares were chosen;
 * `copies_before` with the shares before; null at the start. - `before`: the shares before the last
 * change; empty at the start. - `since`: the batch, from 1, of that change. - `idle`: hosts without
 * a cell. - `stored`: rows by host; `moved` are those that moved there in this batch. -
 * `scale_max`: rows of the darkest cell. Frames shown together use the maximum.
 */
export interface CubeFrame {
  streams: string[];
  rows: number[];
  received: number[];
  dimensions: Columns<CubeDimension>;
  cells: Columns<CubeCell>;
  reach: number[];
  copies: number;
  copies_before: number | null;
  before: number[];
  since: number;
  idle: number[];
  stored: number[];
  moved: number[];
  scale_max: number;
}

/** A node: its role, its place (from 0 to 1, from the left and from the top), and its state. */
export interface HubNode {
  name: string;
  role: string;
  x: number;
  y: number;
  is_down: boolean;
  streams: number[];
}

/** A link of the network. */
export interface HubLink {
  first: string;
  second: string;
  latency_ms: number;
}

/** Bytes from a node to the next in this batch; `stream` is -1 for results of operators. */
export interface HubFlow {
  source: string;
  target: string;
  stream: number;
  bytes: number;
}

/**
 * An operator at its node; `is_changed` says whether it was built or moved since the batch before.
 */
export interface HubOperator {
  id: number;
  version: number;
  node: string;
  streams: string;
  reads: string[];
  demands: number;
  results: number;
  live: number;
  live_bytes: number;
  is_changed: boolean;
}

/**
 * A query: where it is asked, and the operator that answers it. - `reuse_kind`: "new", "holds" or
 * "relaxed". - `options`, `costs`: the plans that were considered, and the bytes in transit that
 * each would add, modelled.
 */
export interface HubRequest {
  name: string;
  sink: string;
  operator: number;
  sql: string;
  reuse_kind: string;
  options: string[];
  costs: number[];
}

/** State that moved to another node since the batch before. */
export interface HubMove {
  operator: number;
  source: string;
  target: string;
  bytes: number;
}

/**
 * A hub after a batch. - `bytes`: bytes over all links in this batch. - `saved_share`: modelled
 * share of the cost of a join of its own for each query that reuse saves; null without queries. -
 * `scale_max`: bytes of the widest link. Frames shown together use the maximum.
 */
export interface HubFrame {
  streams: string[];
  nodes: Columns<HubNode>;
  links: Columns<HubLink>;
  flows: Columns<HubFlow>;
  operators: Columns<HubOperator>;
  queries: Columns<HubRequest>;
  moves: Columns<HubMove>;
  bytes: number;
  saved_share: number | null;
  scale_max: number;
}

/** A frame of the state map, under the name of the JavaScript that draws it. */
export interface MapFrame {
  blocks?: BlockMapFrame;
  grid?: GridFrame;
  ring?: RingFrame;
  ages?: AgesFrame;
  segments?: SegmentsFrame;
  shedding?: SheddingFrame;
  hotkeys?: HotKeysFrame;
  hypercube?: CubeFrame;
  hub?: HubFrame;
}

/** The view after a batch (from 1). */
export interface BatchFrame {
  batch: number;
  title: string;
  key_figures: Columns<KeyFigure>;
  verdict: Verdict;
  flow: BatchFlow;
  answers: AnswerFlow[];
  state_map: MapFrame;
}

/**
 * A curve by batch (from 1). - `role`: "main", "mean", "baseline" (modelled, dashed) or "stream0"
 * and so on; in bars, the phase. - `name`: of a row of a heat track, what selects it, such as
 * "query:late".
 */
export interface Series {
  name: string;
  role: string;
  batch: number[];
  values: (number | null)[];
}

/**
 * A row of the time line. - `kind`: "bars" (its series are stacked), "lines", or "heat" (a row for
 * each series), which replaces the rows of hosts until another measure of them is chosen. - `unit`:
 * unit of its values, such as "s" or "rows". - `top`: the end of its scale. It never shrinks in a
 * run. - `limit`: drawn dashed; null without one.
 */
export interface Track {
  name: string;
  kind: string;
  unit: string;
  top: number;
  limit: number | null;
  series: Series[];
}

/** The time line: `batch` lists the batches, from 1; `last` is the last planned one. */
export interface TimelineFrame {
  batch: number[];
  last: number;
  tracks: Track[];
}

/**
 * The activity of each host in each batch, by measure; a host that did not exist yet has no entry.
 */
export interface HostRows {
  batch: number[];
  names: string[];
  values: number[][][];
}

/**
 * The decisions taken in a batch (from 1). - `end`: the last batch of what began, such as a
 * migration; null if nothing lasts. - `short`: a label of at most 16 characters; empty for a minor
 * decision. - `text`: the decisions and their reasons, as one sentence. - `kind`: "change",
 * "query", "fault" or "minor". - `rows`: rows that move because of it. - `lost`: hosts that lose
 * their state.
 */
export interface Annotation {
  batch: number;
  end: number | null;
  short: string;
  text: string;
  kind: string;
  rows: number;
  lost: number[];
}

/** A finding of the doctor, and the batch (from 1) in which it is strongest. */
export interface Symptom {
  batch: number;
  text: string;
}

/**
 * A change that a user can ask of an active run. - `name`: what messages call it; `label`: its
 * button. - `target`: the kind of selection that it concerns, such as "slice"; empty for the whole
 * run. - `kind`: "press", "text", "number" or "choice". - `value`: the initial value; `choices`: of
 * a choice; `low`, `high`: of a number. - `cost`: what it costs, and when it acts. In that of a
 * number, "{n}" and "{s}" stand for amount and seconds on `curve`; in that of a host, "{n}" for the
 * rows that it holds. - `curve`: points (value, amount, seconds), with straight lines between them.
 */
export interface Touch {
  name: string;
  label: string;
  target: string;
  kind: string;
  value: string;
  choices: string[];
  low: number;
  high: number;
  cost: string;
  curve: number[][];
}

/**
 * The visible state of a run. - `state`: one word, such as "live". - `name`: the joined streams;
 * `condition` is on what they are joined. - `note`: what runs and how it ended. - `seconds_left`:
 * the time left, in words. - `seconds_since_commit`: seconds since the last commit; None if the run
 * has ended or this is unknown. - `what_if_placements`: placements for a what-if; empty if no
 * kernel can answer. - `what_if_message`: the result of the last what-if, in a sentence. -
 * `touches`: changes that the active run takes from this page.
 */
export interface CockpitPage {
  state: string;
  name: string;
  condition: string;
  note: string;
  seconds_left: string;
  seconds_since_commit: number | null;
  frames: BatchFrame[];
  timeline: TimelineFrame;
  hosts: HostRows;
  annotations: Annotation[];
  symptoms: Symptom[];
  what_if_placements: string[];
  what_if_message: string;
  touches: Touch[];
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
 * `table`: rows of a table; the first is its header. - `before`: the rows that were in the table
 * before the step; without any, nothing is compared. - `places`: the parts of the example; those
 * that the step reads or changes are new.
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
  before: string[][];
  places: StepChip[];
}
