import { styleText } from 'node:util'
import { createLogUpdate } from 'log-update'
import { type FollowedRun, isFinished, type ResourceProgress, type RunEvent } from '../client/index.ts'
import {
  type ApplyStyle,
  type Cell,
  type Column,
  elapsedMs,
  formatCount,
  formatDuration,
  formatRead,
  formatResult,
  pluralize,
  renderLine,
  renderTable,
  statusNote,
  type Tone,
} from './run-format.ts'
import type { RunDisplay } from './run-lines.ts'

/** Long enough to even out pages, short enough to show that a third party slows down. */
const RATE_WINDOW_MS = 10_000

/** How fast a count has grown lately. */
export class RateMeter {
  #samples: readonly { readonly atMs: number; readonly count: number }[] = []

  /** Notes the count; one that has not changed needs no note. */
  add(count: number, atMs: number): void {
    if (this.#samples.at(-1)?.count === count) return
    const [before] = this.#samples.filter((sample) => sample.atMs < atMs - RATE_WINDOW_MS).slice(-1)
    const recent = this.#samples.filter((sample) => sample.atMs >= atMs - RATE_WINDOW_MS)
    this.#samples = [...(before === undefined ? [] : [before]), ...recent, { atMs, count }]
  }

  /** Since the count last changed. */
  idleMs(nowMs: number): number {
    return nowMs - (this.#samples.at(-1)?.atMs ?? nowMs)
  }

  /** Per second; 0 after a window without a change, and before the second note. */
  perSecond(nowMs: number): number {
    const [first, last] = [this.#samples.at(0), this.#samples.at(-1)]
    if (first === undefined || last === undefined || first === last || nowMs - last.atMs > RATE_WINDOW_MS) return 0
    return ((last.count - first.count) * 1_000) / Math.max(1_000, nowMs - first.atMs)
  }
}

/** Everything that is on the screen. */
export interface RenderState {
  readonly run: FollowedRun
  /** How each resource has moved lately, by its name. */
  readonly paces: ReadonlyMap<string, ReadRate>
  /** Why the server is not heard at the moment. */
  readonly away: string | undefined
  readonly now: Date
  /** Counts up, for what moves while nothing else does. */
  readonly beat: number
}

/** How a resource moves. */
interface ReadRate {
  readonly recordsPerSecond: number
  /** Since it last moved. */
  readonly restMs: number
}

/** What it is drawn for. */
export interface Viewport {
  readonly columns: number
  readonly rows: number
  readonly style: ApplyStyle
}

const SPINNER = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const BAR_CELLS = 24
const NAME_MAX = 32
/** Below it, only the beginning of the run's id is shown. */
const WIDE_COLUMNS = 70
const SHORT_ID_LENGTH = 8
/** A resource whose listing has ended rests when it is still for so long: the next parent's may follow at once. */
const IDLE_MS = 2_000
/** The heading, the ending, the cursor's line and the one that says how many are not shown. */
const OTHER_ROWS = 4

const STATUS_TONE: Readonly<Record<string, Tone>> = {
  created: 'quiet',
  running: 'busy',
  rate_limited: 'odd',
  completed: 'good',
  partially_completed: 'odd',
  failed: 'bad',
  stopped: 'odd',
}

/** The run as text of at most so many columns and rows: a heading, and a line per resource. */
export function renderRun(picture: RenderState, { columns, rows, style: paint }: Viewport): string {
  const { run } = picture
  const shown = visibleResources(picture, Math.max(1, rows - OTHER_ROWS))
  const hidden = run.resources.length - shown.length
  return [
    renderLine(renderHeading(picture, columns), columns, paint),
    ...renderTable(resourceColumns(picture, shown), columns, paint),
    ...(hidden > 0 ? [renderLine([{ text: `  and ${formatCount(hidden)} more`, tone: 'quiet' }], columns, paint)] : []),
    ...(isFinished(run) ? renderResult(run, columns, paint) : []),
  ].join('\n')
}

function renderHeading({ run, away, now }: RenderState, columns: number): Cell[] {
  const elapsed = elapsedMs(run, now)
  const note = isFinished(run) ? '' : statusNote(run)
  return [
    { text: 'Run ', tone: 'quiet' },
    { text: columns < WIDE_COLUMNS ? `${run.id.slice(0, SHORT_ID_LENGTH)}…` : run.id, tone: 'strong' },
    { text: `  ${run.status}`, tone: STATUS_TONE[run.status] ?? 'plain' },
    { text: elapsed === undefined || isFinished(run) ? '' : `  ${formatDuration(elapsed)}`, tone: 'plain' },
    { text: note === '' ? '' : `  ${onOneLine(note)}`, tone: run.error === undefined ? 'quiet' : 'odd' },
    { text: away === undefined ? '' : `  connecting again: ${onOneLine(away)}`, tone: 'odd' },
  ]
}

/** All of them, or those where something happens before the others, in the order of the job. */
function visibleResources(picture: RenderState, max: number): readonly ResourceProgress[] {
  const { run } = picture
  if (run.resources.length <= max) return run.resources
  const busy = run.resources.filter((resource) => isProgressing(picture, resource))
  const chosen = new Set([...busy, ...run.resources].slice(0, max))
  return run.resources.filter((resource) => chosen.has(resource))
}

function resourceColumns(picture: RenderState, shown: readonly ResourceProgress[]): Column[] {
  const column = (
    expendable: number,
    align: Column['align'],
    tone: Tone,
    textOf: (each: ResourceProgress) => string,
  ): Column => ({
    dropOrder: expendable,
    align,
    cells: shown.map((each) => ({ text: each.pages === 0 ? '' : textOf(each), tone })),
  })
  return [
    { dropOrder: 0, align: 'left', cells: shown.map((each) => statusMark(picture, each)) },
    { dropOrder: 0, align: 'left', cells: shown.map(nameCell) },
    column(3, 'left', 'busy', progressBar),
    column(2, 'right', 'plain', formatPercent),
    column(0, 'right', 'plain', formatRead),
    column(1, 'right', 'plain', ({ delivered }) => `${formatCount(delivered)} delivered`),
    column(5, 'right', 'quiet', ({ pages }) => pluralize(pages, 'page')),
    column(4, 'right', 'quiet', (each) => formatRate(picture, each)),
    column(2, 'left', 'odd', (each) => problemText(picture.run, each)),
  ]
}

function statusMark(picture: RenderState, resource: ResourceProgress): Cell {
  const { run, beat } = picture
  if (resource.isComplete) return { text: '✓', tone: 'good' }
  if (isFinished(run)) return run.status === 'failed' ? { text: '✗', tone: 'bad' } : { text: '!', tone: 'odd' }
  if (isProgressing(picture, resource)) return { text: SPINNER[beat % SPINNER.length] ?? '', tone: 'busy' }
  return { text: resource.stopReason === undefined ? '·' : '✓', tone: 'quiet' }
}

function nameCell({ name, pages }: ResourceProgress): Cell {
  const text = name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name
  return { text, tone: pages === 0 ? 'quiet' : 'plain' }
}

function isProgressing({ run, paces }: RenderState, { name, stopReason }: ResourceProgress): boolean {
  const pace = paces.get(name)
  if (run.status !== 'running' || pace === undefined || pace.recordsPerSecond === 0) return false
  return stopReason === undefined || pace.restMs < IDLE_MS
}

/** What a claim is worth is the third party's business: more than all is all. */
function readShare({ fetched, reportedTotal: claimedTotal }: ResourceProgress): number | undefined {
  return claimedTotal === undefined || claimedTotal === 0 ? undefined : Math.min(1, fetched / claimedTotal)
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

function problemText(run: FollowedRun, { failed, isComplete, stopReason }: ResourceProgress): string {
  const parts = failed > 0 ? [`${formatCount(failed)} failed`] : []
  if (isFinished(run) && !isComplete) parts.push(`incomplete${stopReason === undefined ? '' : ` (${stopReason})`}`)
  return parts.join(', ')
}

function formatRate(picture: RenderState, resource: ResourceProgress): string {
  if (!isProgressing(picture, resource)) return ''
  const { recordsPerSecond = 0 } = picture.paces.get(resource.name) ?? {}
  return `${recordsPerSecond < 10 ? recordsPerSecond.toFixed(1) : formatCount(recordsPerSecond)}/s`
}

function renderResult(run: FollowedRun, columns: number, paint: ApplyStyle): string[] {
  const tone = STATUS_TONE[run.status] ?? 'plain'
  const [first = '', ...more] = formatResult(run).split('\n')
  return [
    renderLine([{ text: `${first.charAt(0).toUpperCase()}${first.slice(1)}`, tone }], columns, paint),
    // Why it failed is never cut: the terminal wraps it.
    ...more.map((text) => paint('plain', text)),
  ]
}

function onOneLine(text: string): string {
  return text.replace(/\s+/g, ' ')
}

const FRAME_INTERVAL_MS = 120
const TERMINAL_SIZE_DEFAULT = { columns: 80, rows: 24 }

const TONE_STYLES: Readonly<Record<Tone, Parameters<typeof styleText>[0]>> = {
  ...({ plain: 'reset', strong: 'bold', quiet: 'dim' } as const),
  ...({ good: 'green', busy: 'cyan', odd: 'yellow', bad: 'red' } as const),
}

/** A run drawn in place on a terminal, several times a second, until it is closed. */
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

  show(news: RunEvent): void {
    this.#disconnected = news.kind === 'away' ? news.message : undefined
    if (news.kind === 'run') this.#update(news.run)
    this.#render()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearInterval(this.#timer)
    this.#writeFrame.done()
    // Ctrl-C has left its mark where the next line begins.
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
    const paces = new Map([...this.#rates].map(([name, rate]) => [name, readRateOf(rate, now.getTime())]))
    const { columns = TERMINAL_SIZE_DEFAULT.columns, rows = TERMINAL_SIZE_DEFAULT.rows } = this.#stream
    const picture = { run: this.#run, paces, away: this.#disconnected, now, beat: this.#frame++ }
    this.#writeFrame(renderRun(picture, { columns, rows, style: (tone, text) => this.#style(tone, text) }))
  }

  #style(tone: Tone, text: string): string {
    return tone === 'plain' ? text : styleText(TONE_STYLES[tone], text, { stream: this.#stream })
  }
}

function readRateOf(rate: RateMeter, nowMs: number): ReadRate {
  return { recordsPerSecond: rate.perSecond(nowMs), restMs: rate.idleMs(nowMs) }
}
