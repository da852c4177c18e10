import { truncateText } from '../../foundation/base/index.ts'
import type { RunEvent } from '../client/follow-run.ts'
import { type FollowedRun, isFinished, type ResourceProgress } from '../client/runs.ts'
import { escapeControls } from './output.ts'
import {
  formatCount,
  formatCounts,
  formatProblems,
  formatRead,
  formatResult,
  incompleteReason,
  pluralize,
  statusNote,
} from './run-format.ts'

/** Progress of a run, as text. */
export interface RunDisplay {
  show(event: RunEvent): void
  /** Leaves the last output in place and shows nothing more. */
  close(): void
}

/** Least time between two lines of a resource; its end and that of the run are printed at once. */
const RESOURCE_LINE_INTERVAL_MS = 5_000

/** Where lines go, and the time. */
export interface LinesDisplayDeps {
  readonly write: (text: string) => void
  readonly now: () => Date
}

/** The last line of a resource. */
interface LastLine {
  readonly text: string
  readonly atMs: number
}

/** Prints a line per change, for logs and pipes: at most one per resource in five seconds. */
export class LinesDisplay implements RunDisplay {
  readonly #deps: LinesDisplayDeps
  readonly #printed = new Map<string, LastLine>()
  readonly #problems = new Set<string>()
  #status = ''
  #isDisconnected = false

  constructor(deps: LinesDisplayDeps) {
    this.#deps = deps
  }

  show(event: RunEvent): void {
    if (event.kind === 'disconnected') this.#showDisconnected(event.message)
    else this.#showRun(event.run)
  }

  close(): void {}

  #showRun(run: FollowedRun): void {
    if (this.#isDisconnected) this.#print('connected again')
    this.#isDisconnected = false
    const note = statusNote(run)
    const status = `run ${run.id} ${run.status}${note === '' ? '' : `: ${note}`}`
    if (!isFinished(run) && status !== this.#status) this.#print(status)
    this.#status = status
    for (const resource of run.resources) this.#showResource(resource, run)
    for (const resource of run.resources) this.#showProblems(resource, isFinished(run))
    if (isFinished(run)) this.#print(`run ${run.id} ${formatResult(run)}`)
  }

  #showDisconnected(message: string): void {
    if (!this.#isDisconnected) this.#print(formatDisconnected(message))
    this.#isDisconnected = true
  }

  #showResource(resource: ResourceProgress, run: FollowedRun): void {
    const [text, last] = [formatResource(resource, run), this.#printed.get(resource.name)]
    const nowMs = this.#deps.now().getTime()
    if (text === last?.text || (resource.pages === 0 && resource.failed === 0)) return
    if (last !== undefined && nowMs - last.atMs < RESOURCE_LINE_INTERVAL_MS && !isFinished(run)) return
    this.#printed.set(resource.name, { text, atMs: nowMs })
    this.#print(text)
  }

  /** Each once; how many more there were at the end alone. */
  #showProblems(resource: ResourceProgress, isLast: boolean): void {
    const problems = formatProblems(isLast ? resource : { ...resource, failed: 0 })
    for (const problem of problems) if (!this.#problems.has(problem)) this.#print(problem)
    for (const problem of problems) this.#problems.add(problem)
  }

  #print(text: string): void {
    this.#deps.write(
      text
        .split('\n')
        .map((line) => `${escapeControls(line)}\n`)
        .join(''),
    )
  }
}

function formatResource(resource: ResourceProgress, run: FollowedRun): string {
  const { name, pages, delivered, failed, isComplete } = resource
  const parts = [formatRead(resource), `${formatCount(delivered)} delivered`, pluralize(pages, 'page')]
  if (failed > 0) parts.push(`${formatCount(failed)} failed`)
  if (isFinished(run)) parts.push(isComplete ? 'complete' : `incomplete (${incompleteReason(resource) ?? run.status})`)
  return `${name}: ${parts.join(', ')}`
}

function formatDisconnected(message: string): string {
  return `the server is unavailable (${message}), trying again`
}

/** Carriage return, then erase to the end of the line (EL of ECMA-48). */
const ERASE_LINE = '\r\u001b[K'

/** A terminal whose size is known. */
export type Terminal = Pick<NodeJS.WriteStream, 'columns' | 'write'>

/** Progress on a terminal: one line, rewritten at each change; the end takes its place, as lines for logs. */
export class TerminalDisplay implements RunDisplay {
  readonly #terminal: Terminal
  #runId: string | undefined
  #hasLine = false

  constructor(terminal: Terminal) {
    this.#terminal = terminal
  }

  show(event: RunEvent): void {
    if (event.kind === 'disconnected') this.#rewrite(formatDisconnected(event.message))
    else if (isFinished(event.run)) this.#showEnd(event)
    else this.#showProgress(event.run)
  }

  close(): void {
    if (this.#hasLine) this.#terminal.write('\n')
    this.#hasLine = false
  }

  #showProgress(run: FollowedRun): void {
    if (this.#runId !== run.id) this.#terminal.write(`${ERASE_LINE}run ${run.id}\n`)
    this.#runId = run.id
    const note = statusNote(run)
    this.#rewrite(`${run.status}: ${formatCounts(run)}${note === '' ? '' : `, ${note}`}`)
  }

  #showEnd(event: RunEvent): void {
    if (this.#hasLine) this.#terminal.write(ERASE_LINE)
    this.#hasLine = false
    new LinesDisplay({ write: (text) => this.#terminal.write(text), now: () => new Date() }).show(event)
  }

  /** Cut to the columns: a line that wraps is not erased whole. Erased first: behind the last column that erases a character. */
  #rewrite(text: string): void {
    this.#terminal.write(`${ERASE_LINE}${truncateText(escapeControls(text), this.#terminal.columns)}`)
    this.#hasLine = true
  }
}
