// What Python sends; made by `make js` from the types in braid_widgets, not by hand.
// Their docstrings describe the fields.
import type { Columns } from "./base/columns.ts";

export interface KeyFigure {
  name: string;
  value: string;
  tooltip: string;
}

export interface Verdict {
  word: string;
  figure: string;
  tone: string;
}

export interface FlowPart {
  step: string;
  text: string;
  reached: string;
  rows_in: number;
  rows_out: number;
  seconds: number;
}

export interface BatchFlow {
  rows_in: number;
  candidates: number;
  results: number;
  access: string;
  seconds: number | null;
  parts: Columns<FlowPart>;
}

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

export interface BlockBar {
  block: number;
  host: number;
  stream: number;
  first: number;
  last: number;
  rows: number;
}

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

export interface HostPlace {
  host: number;
  row: number;
  column: number;
}

export interface MatrixCell {
  top: number;
  bottom: number;
  left: number;
  right: number;
  host: number;
  percent: number;
  moving: boolean;
}

export interface HostCopies {
  source: number;
  target: number;
  stream: number;
  rows: number;
}

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

export interface RingSlice {
  stream: number;
  node: number;
  rows: number;
  place: number;
  retention: string;
}

export interface RingMove {
  stream: number;
  source: number;
  target: number;
  rows: number;
  reason: string;
}

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

export interface SlicePiece {
  stream: number;
  host: number;
  first: number;
  last: number;
  slice: number;
  rows: number;
}

export interface AgeQuery {
  name: string;
  windows: number[];
  results: number;
  batch_results: number;
  selection: string;
}

export interface AgesFrame {
  streams: string[];
  rows: number[];
  received: number[];
  hosts: number;
  pieces: Columns<SlicePiece>;
  queries: Columns<AgeQuery>;
  scale_max: number;
}

export interface Segment {
  stream: number;
  host: number;
  first: number;
  last: number;
  copied: number;
}

export interface PathHop {
  stream: number;
  path: number;
  hop: number;
  partner: number;
  host: number;
  blocks: number;
}

export interface PathOrder {
  stream: number;
  order: string;
  overhead: number;
}

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

export interface ShedBar {
  stream: number;
  window: number;
  age_slice: number;
  pairs: number;
  matches: number;
  share: number;
}

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

export interface HotValue {
  value: number;
  share: number;
  hosts: number[];
  copied: string[];
  copied_share: number;
}

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

export interface CubeDimension {
  streams: number[];
  parts: number;
}

export interface CubeCell {
  host: number;
  parts: number[];
}

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

export interface HubNode {
  name: string;
  role: string;
  x: number;
  y: number;
  is_down: boolean;
  streams: number[];
}

export interface HubLink {
  first: string;
  second: string;
}

export interface HubFlow {
  source: string;
  target: string;
  stream: number;
  bytes: number;
}

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

export interface HubRequest {
  name: string;
  sink: string;
  operator: number;
  sql: string;
  reuse_kind: string;
  options: string[];
  costs: number[];
}

export interface HubMove {
  operator: number;
  source: string;
  target: string;
  bytes: number;
}

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

export interface BatchFrame {
  batch: number;
  title: string;
  key_figures: Columns<KeyFigure>;
  verdict: Verdict;
  flow: BatchFlow;
  answers: AnswerFlow[];
  state_map: MapFrame;
}

export interface Series {
  name: string;
  role: string;
  batch: number[];
  values: (number | null)[];
}

export interface Track {
  name: string;
  kind: string;
  unit: string;
  top: number;
  limit: number | null;
  series: Series[];
}

export interface TimelineFrame {
  batch: number[];
  last: number;
  tracks: Track[];
}

export interface HostRows {
  batch: number[];
  names: string[];
  values: number[][][];
}

export interface Annotation {
  batch: number;
  end: number | null;
  short: string;
  text: string;
  kind: string;
  rows: number;
  lost: number[];
}

export interface Symptom {
  batch: number;
  text: string;
}

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

export interface LinkedViewsPage {
  names: string[];
  pages: CockpitPage[];
  timeline_page: CockpitPage;
}

export interface StepListing {
  title: string;
  numbers: string[];
  lines: string[];
}

export interface StepChip {
  text: string;
  stream?: number;
  is_new?: boolean;
  outline?: string;
}

export interface StepNode {
  name: string;
  is_active: boolean;
  row: number;
  column: number;
  stored: StepChip[][];
  queued: StepChip[] | null;
}

export interface StepMove {
  what: StepChip;
  source: number | null;
  target: number | null;
}

export interface StepQuestion {
  text: string;
  options: string[];
  answer: number;
  reply: string;
}

export interface StepFrame {
  title: string;
  note: string;
  text: string;
  listing: number | null;
  lit: number[];
  nodes: StepNode[];
  row_heads: StepChip[];
  column_heads: StepChip[];
  old: number[][];
  moves: StepMove[];
  matches: string[][];
  results: number;
  table: string[][][];
  parts: StepChip[];
  question: StepQuestion | null;
  arrived: number;
}

export interface StepAlgorithm {
  listings: StepListing[];
  labels: string[];
  texts: string[];
  variants: Record<string, StepFrame[]>;
}
