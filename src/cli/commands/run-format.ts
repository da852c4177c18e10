import type { styleText } from 'node:util'
import type { FollowedError, FollowedRun, ResourceProgress } from '../client/runs.ts'
import { escapeControls } from './output.ts'

/** What a piece of text means; the colour follows from it. */
export type Tone = 'plain' | 'strong' | 'quiet' | 'good' | 'busy' | 'warning' | 'bad'

export const TONE_STYLES: Readonly<Record<Tone, Parameters<typeof styleText>[0]>> = {
  plain: 'reset',
  strong: 'bold',
  quiet: 'dim',
  good: 'green',
  busy: 'cyan',
  warning: 'yellow',
  bad: 'red',
}

/** Text with its tone. */
export interface Cell {
  readonly text: string
  readonly tone: Tone
}

/** One column, a cell per row. */
export interface Column {
  readonly cells: readonly Cell[]
  readonly align: 'left' | 'right'
  /** When the terminal is too narrow, columns of higher numbers are dropped first; 0 stays. */
  readonly dropOrder: number
}

/** Colours a text. */
export type ApplyTone = (tone: Tone, text: string) => string

const GAP = 2

/**
 * Renders aligned columns within the width: columns are dropped in their order, then lines are cut. Texts must consist of
 * characters one cell wide.
 */
export function renderTable(columns: readonly Column[], width: number, applyTone: ApplyTone): string[] {
  let kept = columns.filter(({ cells }) => cells.some(({ text }) => text !== ''))
  while (tableWidth(kept) > width) {
    const first = Math.max(...kept.map(({ dropOrder }) => dropOrder))
    if (first === 0) break
    kept = kept.filter(({ dropOrder }) => dropOrder !== first)
  }
  const rows = kept[0]?.cells.length ?? 0
  return Array.from({ length: rows }, (_, row) => renderLine(rowCells(kept, row), width, applyTone))
}

/** Renders cells one behind the other, cut to the width; control characters in them are shown as escapes. */
export function renderLine(cells: readonly Cell[], width: number, applyTone: ApplyTone): string {
  let left = width
  let line = ''
  for (const { text: raw, tone } of cells) {
    const text = escapeControls(raw)
    const shown = text.length <= left ? text : `${text.slice(0, Math.max(0, left - 1))}…`.slice(0, left)
    left -= shown.length
    line += shown.trim() === '' ? shown : applyTone(tone, shown)
  }
  return line.trimEnd()
}

function rowCells(columns: readonly Column[], row: number): Cell[] {
  return columns.flatMap(({ cells, align }, at) => {
    const { text = '', tone = 'plain' } = cells[row] ?? {}
    const padding = { text: ' '.repeat(columnWidth(cells) - text.length), tone: 'plain' } as const
    const gap = { text: at === 0 ? '' : ' '.repeat(GAP), tone: 'plain' } as const
    return align === 'left' ? [gap, { text, tone }, padding] : [gap, padding, { text, tone }]
  })
}

function tableWidth(columns: readonly Column[]): number {
  return columns.reduce((sum, { cells }) => sum + columnWidth(cells), GAP * Math.max(0, columns.length - 1))
}

function columnWidth(cells: readonly Cell[]): number {
  return Math.max(0, ...cells.map(({ text }) => text.length))
}

/** `12 345`. */
export function formatCount(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ' ')
}

/** `1 page`, `2 pages`. */
export function pluralize(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** `8 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  if (hours > 0) return `${hours} h ${minutes} min`
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`
}

/** `12 of 40 read`; `12 read` when the upstream reports no total, or too low a one. */
export function formatRead({ fetched, reportedTotal }: ResourceProgress): string {
  return reportedTotal === undefined || reportedTotal < fetched
    ? `${formatCount(fetched)} read`
    : `${formatCount(fetched)} of ${formatCount(reportedTotal)} read`
}

/** Explains the status; empty where it needs no explanation. */
export function statusNote({ status, attempt, error, skipReason, waiting, resources }: FollowedRun): string {
  if (waiting !== undefined) return waiting
  const last = error === undefined ? '' : formatError(error)
  if (status === 'created')
    return last === '' ? 'waits to be claimed' : `waits for its next attempt; the last one ended with ${last}`
  if (status === 'rate_limited') return 'waits for the rate limit of the third party, resumes by itself'
  if (status === 'skipped') return skipReason ?? ''
  if (status === 'failed') return last
  if (status === 'partially_completed') return `incomplete, read again by the next run: ${listIncomplete(resources)}`
  return attempt > 1 ? `attempt ${attempt}` : ''
}

/** `issues (UPSTREAM_ERROR), labels`. */
function listIncomplete(resources: FollowedRun['resources']): string {
  const missing = resources.filter(({ isComplete }) => !isComplete)
  return missing
    .map((resource) => {
      const reason = incompleteReason(resource)
      return reason === undefined ? resource.name : `${resource.name} (${reason})`
    })
    .join(', ')
}

/** Stop reasons of listings that ended before their end. */
const TRUNCATING_REASONS: ReadonlySet<string> = new Set(['error', 'max_pages', 'max_records'])

/**
 * Why a resource is incomplete: the reason of its first error, else the limit that ended its last listing. `undefined` when it is
 * neither: what it depends on is incomplete, or fewer records came than were reported.
 */
export function incompleteReason({ errors, stopReason }: ResourceProgress): string | undefined {
  const [first] = errors
  if (first !== undefined) return first.reason
  return stopReason !== undefined && TRUNCATING_REASONS.has(stopReason) ? stopReason : undefined
}

/** `UPSTREAM_ERROR: the third party answered with status 503 (of orders/13, GET /orders/13/lines, log 0197…)`. */
function formatError({ reason, message, parent, request, logId }: FollowedError): string {
  const place = [parent === undefined ? undefined : `of ${parent}`, request, logId && `log ${logId}`].filter(
    (text) => text !== undefined,
  )
  return `${reason}: ${message}${place.length === 0 ? '' : ` (${place.join(', ')})`}`
}

/** The errors of a resource that are kept, how many more there were, and its warnings: one line each. */
export function formatProblems({ name, errors, failed, warnings }: ResourceProgress): string[] {
  const more = failed - errors.length
  return [
    ...warnings.map((warning) => `${name}: ${warning}`),
    ...errors.map((error) => `${name}: ${formatError(error)}`),
    ...(errors.length > 0 && more > 0 ? [`${name}: and ${formatCount(more)} more`] : []),
  ]
}

/** `2 390 records read, 2 340 delivered, 2 failed`. */
export function formatCounts({ resources }: FollowedRun): string {
  const sum = (field: 'fetched' | 'delivered' | 'failed') => resources.reduce((total, each) => total + each[field], 0)
  const failed = sum('failed') === 0 ? '' : `, ${formatCount(sum('failed'))} failed`
  return `${pluralize(sum('fetched'), 'record')} read, ${formatCount(sum('delivered'))} delivered${failed}`
}

/** Summary of a finished run: one line, and the explanation of its status on a second one. */
export function formatResult(run: FollowedRun): string {
  const { startedAt, finishedAt } = run
  const tookMs = startedAt && finishedAt && finishedAt.getTime() - startedAt.getTime()
  const note = statusNote(run)
  const status = run.status.replaceAll('_', ' ')
  return [
    tookMs === undefined ? status : `${status} after ${formatDuration(tookMs)}`,
    `: ${formatCounts(run)}`,
    run.status === 'completed' || note === '' ? '' : `\n${note}`,
  ].join('')
}
