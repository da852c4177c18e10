import { styleText } from 'node:util'
import { createLogUpdate } from 'log-update'
import type { RunEvent } from '../client/follow-run.ts'
import { type FollowedRun, isFinished, type ResourceProgress } from '../client/runs.ts'
import { escapeControls } from './output.ts'
import {
  type ApplyTone,
  type Cell,
  type Column,
  elapsedMs,
  formatCount,
  formatDuration,
  formatProblems,
  formatRead,
  formatResult,
  incompleteReason,
  pluralize,
  renderLine,
  renderTable,
  statusNote,
  TONE_STYLES,
  type Tone,
} from './run-format.ts'
import type { RunDisplay } from './run-lines.ts'

/** Sliding window of the rate: long enough to even out pages, short enough to show that the upstream slows down. */
const RATE_WINDOW_MS = 10_000

/** Rate of growth of a count over a sliding window. */
export class RateMeter {
  #samples: readonly { readonly atMs: number; readonly count: number }[] = []

  /** Adds a sample; one without a change is dropped. */
  add(count: number, atMs: number): void {
    if (this.#samples.at(-1)?.count === count) return
    const [before] = this.#samples.filter((sample) => sample.atMs < atMs - RATE_WINDOW_MS).slice(-1)
    const recent = this.#samples.filter((sample) => sample.atMs >= atMs - RATE_WINDOW_MS)
    this.#samples = [...(before === undefined ? [] : [before]), ...recent, { atMs, count }]
  }

  /** Time since the count last changed, ms. */
  idleMs(nowMs: number): number {
    return nowMs - (this.#samples.at(-1)?.atMs ?? nowMs)
  }

  /** Growth per second; 0 after a window without a change, and before the second sample. */
  perSecond(nowMs: number): number {
    const [first, last] = [this.#samples.at(0), this.#samples.at(-1)]
    if (first === undefined || last === undefined || first === last || nowMs - last.atMs > RATE_WINDOW_MS) return 0
    return ((last.count - first.count) * 1_000) / Math.max(1_000, nowMs - first.atMs)
  }
}

/** What one frame shows. */
export interface RenderState {
  readonly run: FollowedRun
  /** Read rates by name of the resource. */
  readonly rates: ReadonlyMap<string, ReadRate>
  /** Why there is no connection at the moment. */
  readonly disconnected: string | undefined
  readonly now: Date
  /** Frame number, for the spinner. */
  readonly frame: number
}

/** How fast a resource is read. */
interface ReadRate {
  readonly recordsPerSecond: number
  /** Time since the last record, ms. */
  readonly idleMs: number
}

/** The terminal: its size, and how it shows a tone. */
export interface Viewport {
  readonly columns: number
  readonly rows: number
  readonly applyTone: ApplyTone
}

const SPINNER = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const BAR_CELLS = 24
const NAME_MAX = 32
/** Narrower terminals show the beginning of the run's id alone. */
const WIDE_COLUMNS = 70
const SHORT_ID_LENGTH = 8
/** A resource whose listing has ended counts as idle after so long: the listing of the next parent may follow at once. */
const IDLE_MS = 2_000
/** Rows beside the resources: heading, result, the line of the cursor, the number of hidden resources. */
const OTHER_ROWS = 4

const STATUS_TONE: Readonly<Record<string, Tone>> = {
  created: 'quiet',
  running: 'busy',
  rate_limited: 'warning',
  completed: 'good',
  partially_completed: 'warning',
  failed: 'bad',
  stopped: 'warning',
}

/** Renders a run within the size of the terminal: a heading, a line per resource, and the result at the end. */
export function renderRun(state: RenderState, { columns, rows, applyTone }: Viewport): string {
  const { run } = state
  const shown = visibleResources(state, Math.max(1, rows - OTHER_ROWS))
  const hidden = run.resources.length - shown.length
  return [
    renderLine(renderHeading(state, columns), columns, applyTone),
    ...renderTable(resourceColumns(state, shown), columns, applyTone),
    ...(hidden > 0
      ? [renderLine([{ text: `  and ${formatCount(hidden)} more`, tone: 'quiet' }], columns, applyTone)]
      : []),
    ...(isFinished(run) ? renderResult(run, columns, applyTone) : []),
  ].join('\n')
}

function renderHeading({ run, disconnected, now }: RenderState, columns: number): Cell[] {
  const elapsed = elapsedMs(run, now)
  const note = isFinished(run) ? '' : statusNote(run)
  return [
    { text: 'Run ', tone: 'quiet' },
    { text: columns < WIDE_COLUMNS ? `${run.id.slice(0, SHORT_ID_LENGTH)}…` : run.id, tone: 'strong' },
    { text: `  ${run.status}`, tone: STATUS_TONE[run.status] ?? 'plain' },
    { text: elapsed === undefined || isFinished(run) ? '' : `  ${formatDuration(elapsed)}`, tone: 'plain' },
    { text: note === '' ? '' : `  ${onOneLine(note)}`, tone: run.error === undefined ? 'quiet' : 'warning' },
    { text: disconnected === undefined ? '' : `  reconnecting: ${onOneLine(disconnected)}`, tone: 'warning' },
  ]
}

/** All resources if they fit, else those in progress before the others; in the order of the job. */
function visibleResources(state: RenderState, max: number): readonly ResourceProgress[] {
  const { run } = state
  if (run.resources.length <= max) return run.resources
  const active = run.resources.filter((resource) => isProgressing(state, resource))
  const chosen = new Set([...active, ...run.resources].slice(0, max))
  return run.resources.filter((resource) => chosen.has(resource))
}

function resourceColumns(state: RenderState, shown: readonly ResourceProgress[]): Column[] {
  const column = (
    dropOrder: number,
    align: Column['align'],
    tone: Tone,
    textOf: (each: ResourceProgress) => string,
  ): Column => ({
    dropOrder,
    align,
    cells: shown.map((each) => ({ text: each.pages === 0 && each.failed === 0 ? '' : textOf(each), tone })),
  })
  return [
    { dropOrder: 0, align: 'left', cells: shown.map((each) => statusMark(state, each)) },
    { dropOrder: 0, align: 'left', cells: shown.map(nameCell) },
    column(3, 'left', 'busy', progressBar),
    column(2, 'right', 'plain', formatPercent),
    column(0, 'right', 'plain', formatRead),
    column(1, 'right', 'plain', ({ delivered }) => `${formatCount(delivered)} delivered`),
    column(5, 'right', 'quiet', ({ pages }) => pluralize(pages, 'page')),
    column(4, 'right', 'quiet', (each) => formatRate(state, each)),
    column(2, 'left', 'warning', (each) => problemText(state.run, each)),
  ]
}

function statusMark(state: RenderState, resource: ResourceProgress): Cell {
  const { run, frame } = state
  if (resource.isComplete) return { text: '✓', tone: 'good' }
  if (isFinished(run)) return run.status === 'failed' ? { text: '✗', tone: 'bad' } : { text: '!', tone: 'warning' }
  if (isProgressing(state, resource)) return { text: SPINNER[frame % SPINNER.length] ?? '', tone: 'busy' }
  return { text: resource.stopReason === undefined ? '·' : '✓', tone: 'quiet' }
}

function nameCell({ name, pages }: ResourceProgress): Cell {
  const text = name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name
  return { text, tone: pages === 0 ? 'quiet' : 'plain' }
}

function isProgressing({ run, rates }: RenderState, { name, stopReason }: ResourceProgress): boolean {
  const rate = rates.get(name)
  if (run.status !== 'running' || rate === undefined || rate.recordsPerSecond === 0) return false
  return stopReason === undefined || rate.idleMs < IDLE_MS
}

/** Share that has been read, at most 1: a total that the upstream reports may be too low. */
function readShare({ fetched, reportedTotal }: ResourceProgress): number | undefined {
  return reportedTotal === undefined || reportedTotal === 0 ? undefined : Math.min(1, fetched / reportedTotal)
}

function progressBar(resource: ResourceProgress): string {
  const share = readShare(resource)
  if (share === undefined) return ''
  const filled = Math.floor(share * BAR_CELLS)
  return `${'━'.repeat(filled)}${'╌'.repeat(BAR_CELLS - filled)}`
}

function formatPercent(resource: ResourceProgress): string {
  const share = readShare(resource)
  return share === undefined ? '' : `${Math.floor(share * 100)} %`
}

function problemText(run: FollowedRun, resource: ResourceProgress): string {
  const { failed, isComplete } = resource
  const parts = failed > 0 ? [`${formatCount(failed)} failed`] : []
  const reason = incompleteReason(resource)
  if (isFinished(run) && !isComplete) parts.push(`incomplete${reason === undefined ? '' : ` (${reason})`}`)
  return parts.join(', ')
}

function formatRate(state: RenderState, resource: ResourceProgress): string {
  if (!isProgressing(state, resource)) return ''
  const { recordsPerSecond = 0 } = state.rates.get(resource.name) ?? {}
  return `${recordsPerSecond < 10 ? recordsPerSecond.toFixed(1) : formatCount(recordsPerSecond)}/s`
}

function renderResult(run: FollowedRun, columns: number, applyTone: ApplyTone): string[] {
  const tone = STATUS_TONE[run.status] ?? 'plain'
  const [first = '', ...more] = formatResult(run).split('\n')
  return [
    renderLine([{ text: `${first.charAt(0).toUpperCase()}${first.slice(1)}`, tone }], columns, applyTone),
    // The error is never cut: the terminal wraps it.
    ...more.map((text) => applyTone('plain', escapeControls(text))),
    ...run.resources.flatMap(formatProblems).map((text) => applyTone('plain', escapeControls(text))),
  ]
}

function onOneLine(text: string): string {
  return text.replace(/\s+/g, ' ')
}

const FRAME_INTERVAL_MS = 120

/** Redraws a run in place on a terminal, several times a second, until it is closed. */
export class ScreenDisplay implements RunDisplay {
  readonly #stream: NodeJS.WriteStream
  readonly #writeFrame: ReturnType<typeof createLogUpdate>
  readonly #rates = new Map<string, RateMeter>()
  readonly #timer: NodeJS.Timeout
  #run: FollowedRun | undefined
  #disconnected: string | undefined
  #frame = 0
  #isClosed = false

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
    this.#writeFrame = createLogUpdate(stream)
    this.#timer = setInterval(() => this.#render(), FRAME_INTERVAL_MS)
  }

  show(event: RunEvent): void {
    this.#disconnected = event.kind === 'disconnected' ? event.message : undefined
    if (event.kind === 'run') this.#update(event.run)
    this.#render()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearInterval(this.#timer)
    this.#writeFrame.done()
    // Ctrl-C has echoed `^C` where the next line begins.
    this.#stream.write('\r')
  }

  #update(run: FollowedRun): void {
    this.#run = run
    for (const { name, fetched } of run.resources) {
      const rate = this.#rates.get(name) ?? new RateMeter()
      rate.add(fetched, Date.now())
      this.#rates.set(name, rate)
    }
  }

  #render(): void {
    if (this.#run === undefined) return
    const now = new Date()
    const rates = new Map([...this.#rates].map(([name, rate]) => [name, readRateOf(rate, now.getTime())]))
    const { columns, rows } = this.#stream
    const state = { run: this.#run, rates, disconnected: this.#disconnected, now, frame: this.#frame++ }
    this.#writeFrame(renderRun(state, { columns, rows, applyTone: (tone, text) => this.#applyTone(tone, text) }))
  }

  #applyTone(tone: Tone, text: string): string {
    return tone === 'plain' ? text : styleText(TONE_STYLES[tone], text, { stream: this.#stream })
  }
}

function readRateOf(meter: RateMeter, nowMs: number): ReadRate {
  return { recordsPerSecond: meter.perSecond(nowMs), idleMs: meter.idleMs(nowMs) }
}
