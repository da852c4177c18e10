import { type FollowedRun, isFinished, type ResourceProgress, type RunEvent } from '../client/index.ts'
import { formatCount, formatRead, formatResult, pluralize, statusNote } from './run-format.ts'

/** Where a run that is followed is shown. */
export interface RunDisplay {
  show(news: RunEvent): void
  /** Leaves what was shown and shows nothing more. */
  close(): void
}

/** What one resource says at most; its end and that of the run are said at once. */
const RESOURCE_LINE_INTERVAL_MS = 5_000

/** What lines need. */
export interface LinesDisplayDeps {
  readonly write: (text: string) => void
  readonly now: () => Date
}

interface PrintedLine {
  readonly text: string
  readonly atMs: number
}

/** A line per change, for logs and pipes: at most one per resource in five seconds. */
export class LinesDisplay implements RunDisplay {
  readonly #deps: LinesDisplayDeps
  readonly #printed = new Map<string, PrintedLine>()
  #status = ''
  #isDisconnected = false

  constructor(deps: LinesDisplayDeps) {
    this.#deps = deps
  }

  show(news: RunEvent): void {
    if (news.kind === 'away') this.#showDisconnected(news.message)
    else this.#showRun(news.run)
  }

  close(): void {}

  #showRun(run: FollowedRun): void {
    if (this.#isDisconnected) this.#print('the server is back')
    this.#isDisconnected = false
    const note = statusNote(run)
    const status = `run ${run.id} ${run.status}${note === '' ? '' : `: ${note}`}`
    if (!isFinished(run) && status !== this.#status) this.#print(status)
    this.#status = status
    for (const resource of run.resources) this.#showResource(resource, run)
    if (isFinished(run)) this.#print(`run ${run.id} ${formatResult(run)}`)
  }

  #showDisconnected(message: string): void {
    if (!this.#isDisconnected) this.#print(`the server is away (${message}), asking again`)
    this.#isDisconnected = true
  }

  #showResource(resource: ResourceProgress, run: FollowedRun): void {
    const [text, last] = [formatResource(resource, run), this.#printed.get(resource.name)]
    const nowMs = this.#deps.now().getTime()
    if (text === last?.text || resource.pages === 0) return
    if (last !== undefined && nowMs - last.atMs < RESOURCE_LINE_INTERVAL_MS && !isFinished(run)) return
    this.#printed.set(resource.name, { text, atMs: nowMs })
    this.#print(text)
  }

  #print(text: string): void {
    this.#deps.write(`${text}\n`)
  }
}

function formatResource(resource: ResourceProgress, run: FollowedRun): string {
  const { name, pages, delivered, failed, stopReason, isComplete } = resource
  const parts = [formatRead(resource), `${formatCount(delivered)} delivered`, pluralize(pages, 'page')]
  if (failed > 0) parts.push(`${formatCount(failed)} failed`)
  if (isFinished(run)) parts.push(isComplete ? 'complete' : `incomplete (${stopReason ?? run.status})`)
  return `${name}: ${parts.join(', ')}`
}
