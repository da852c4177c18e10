import { type FollowedRun, isOver, type ResourceProgress } from '../../client/index.ts'
import { type Cell, type Column, cutLine, type Paint, type Tone, tableLines } from './table.ts'
import { countText, durationText, elapsedMs, endingText, manyText, readText, statusNote } from './words.ts'

/** Everything that is on the screen. */
export interface Picture {
  readonly run: FollowedRun
  /** How each resource has moved lately, by its name. */
  readonly paces: ReadonlyMap<string, Pace>
  /** Why the server is not heard at the moment. */
  readonly away: string | undefined
  readonly now: Date
  /** Counts up, for what moves while nothing else does. */
  readonly beat: number
}

/** How a resource moves. */
export interface Pace {
  readonly recordsPerSecond: number
  /** Since it last moved. */
  readonly restMs: number
}

/** What it is drawn for. */
export interface Canvas {
  readonly columns: number
  readonly rows: number
  readonly paint: Paint
}

const SPINNER = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const BAR_CELLS = 24
const NAME_MAX = 32
/** Below it, only the beginning of the run's id is shown. */
const WIDE_COLUMNS = 70
const SHORT_ID_LENGTH = 8
/** A resource whose listing has ended rests when it is still for so long: the next parent's may follow at once. */
const REST_MS = 2_000
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
export function drawRun(picture: Picture, { columns, rows, paint }: Canvas): string {
  const { run } = picture
  const shown = shownResources(picture, Math.max(1, rows - OTHER_ROWS))
  const hidden = run.resources.length - shown.length
  return [
    cutLine(headingOf(picture, columns), columns, paint),
    ...tableLines(columnsOf(picture, shown), columns, paint),
    ...(hidden > 0 ? [cutLine([{ text: `  and ${countText(hidden)} more`, tone: 'quiet' }], columns, paint)] : []),
    ...(isOver(run) ? endingOf(run, columns, paint) : []),
  ].join('\n')
}

function headingOf({ run, away, now }: Picture, columns: number): Cell[] {
  const elapsed = elapsedMs(run, now)
  const note = isOver(run) ? '' : statusNote(run)
  return [
    { text: 'Run ', tone: 'quiet' },
    { text: columns < WIDE_COLUMNS ? `${run.id.slice(0, SHORT_ID_LENGTH)}…` : run.id, tone: 'strong' },
    { text: `  ${run.status}`, tone: STATUS_TONE[run.status] ?? 'plain' },
    { text: elapsed === undefined || isOver(run) ? '' : `  ${durationText(elapsed)}`, tone: 'plain' },
    { text: note === '' ? '' : `  ${oneLine(note)}`, tone: run.error === undefined ? 'quiet' : 'odd' },
    { text: away === undefined ? '' : `  connecting again: ${oneLine(away)}`, tone: 'odd' },
  ]
}

/** All of them, or those where something happens before the others, in the order of the job. */
function shownResources(picture: Picture, max: number): readonly ResourceProgress[] {
  const { run } = picture
  if (run.resources.length <= max) return run.resources
  const busy = run.resources.filter((resource) => isBusy(picture, resource))
  const chosen = new Set([...busy, ...run.resources].slice(0, max))
  return run.resources.filter((resource) => chosen.has(resource))
}

function columnsOf(picture: Picture, shown: readonly ResourceProgress[]): Column[] {
  const column = (
    expendable: number,
    align: Column['align'],
    tone: Tone,
    textOf: (each: ResourceProgress) => string,
  ): Column => ({
    expendable,
    align,
    cells: shown.map((each) => ({ text: each.pages === 0 ? '' : textOf(each), tone })),
  })
  return [
    { expendable: 0, align: 'left', cells: shown.map((each) => markOf(picture, each)) },
    { expendable: 0, align: 'left', cells: shown.map(nameOf) },
    column(3, 'left', 'busy', barOf),
    column(2, 'right', 'plain', percentOf),
    column(0, 'right', 'plain', readText),
    column(1, 'right', 'plain', ({ delivered }) => `${countText(delivered)} delivered`),
    column(5, 'right', 'quiet', ({ pages }) => manyText(pages, 'page')),
    column(4, 'right', 'quiet', (each) => rateText(picture, each)),
    column(2, 'left', 'odd', (each) => oddText(picture.run, each)),
  ]
}

function markOf(picture: Picture, resource: ResourceProgress): Cell {
  const { run, beat } = picture
  if (resource.isComplete) return { text: '✓', tone: 'good' }
  if (isOver(run)) return run.status === 'failed' ? { text: '✗', tone: 'bad' } : { text: '!', tone: 'odd' }
  if (isBusy(picture, resource)) return { text: SPINNER[beat % SPINNER.length] ?? '', tone: 'busy' }
  return { text: resource.stopReason === undefined ? '·' : '✓', tone: 'quiet' }
}

function nameOf({ name, pages }: ResourceProgress): Cell {
  const text = name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name
  return { text, tone: pages === 0 ? 'quiet' : 'plain' }
}

function isBusy({ run, paces }: Picture, { name, stopReason }: ResourceProgress): boolean {
  const pace = paces.get(name)
  if (run.status !== 'running' || pace === undefined || pace.recordsPerSecond === 0) return false
  return stopReason === undefined || pace.restMs < REST_MS
}

/** What a claim is worth is the third party's business: more than all is all. */
function shareOf({ fetched, claimedTotal }: ResourceProgress): number | undefined {
  return claimedTotal === undefined || claimedTotal === 0 ? undefined : Math.min(1, fetched / claimedTotal)
}

function barOf(resource: ResourceProgress): string {
  const share = shareOf(resource)
  if (share === undefined) return ''
  const filled = Math.floor(share * BAR_CELLS)
  return `${'━'.repeat(filled)}${'╌'.repeat(BAR_CELLS - filled)}`
}

function percentOf(resource: ResourceProgress): string {
  const share = shareOf(resource)
  return share === undefined ? '' : `${Math.floor(share * 100)} %`
}

function oddText(run: FollowedRun, { failed, isComplete, stopReason }: ResourceProgress): string {
  const parts = failed > 0 ? [`${countText(failed)} failed`] : []
  if (isOver(run) && !isComplete) parts.push(`incomplete${stopReason === undefined ? '' : ` (${stopReason})`}`)
  return parts.join(', ')
}

function rateText(picture: Picture, resource: ResourceProgress): string {
  if (!isBusy(picture, resource)) return ''
  const { recordsPerSecond = 0 } = picture.paces.get(resource.name) ?? {}
  return `${recordsPerSecond < 10 ? recordsPerSecond.toFixed(1) : countText(recordsPerSecond)}/s`
}

function endingOf(run: FollowedRun, columns: number, paint: Paint): string[] {
  const tone = STATUS_TONE[run.status] ?? 'plain'
  const [first = '', ...more] = endingText(run).split('\n')
  return [
    cutLine([{ text: `${first.charAt(0).toUpperCase()}${first.slice(1)}`, tone }], columns, paint),
    // Why it failed is never cut: the terminal wraps it.
    ...more.map((text) => paint('plain', text)),
  ]
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ')
}
