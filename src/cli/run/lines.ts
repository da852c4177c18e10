import { type FollowedRun, isOver, type ResourceProgress, type RunNews } from '../../client/index.ts'
import type { RunDisplay } from './display.ts'
import { countText, endingText, manyText, readText, statusNote } from './words.ts'

/** What one resource says at most; its end and that of the run are said at once. */
const INTERVAL_MS = 5_000

/** What lines need. */
export interface LinesDeps {
  readonly write: (text: string) => void
  readonly now: () => Date
}

interface Said {
  readonly text: string
  readonly atMs: number
}

/** A line per change, for logs and pipes: at most one per resource in five seconds. */
export class LinesDisplay implements RunDisplay {
  readonly #deps: LinesDeps
  readonly #said = new Map<string, Said>()
  #status = ''
  #isAway = false

  constructor(deps: LinesDeps) {
    this.#deps = deps
  }

  show(news: RunNews): void {
    if (news.kind === 'away') this.#away(news.message)
    else this.#run(news.run)
  }

  close(): void {}

  #run(run: FollowedRun): void {
    if (this.#isAway) this.#line('the server is back')
    this.#isAway = false
    const note = statusNote(run)
    const status = `run ${run.id} ${run.status}${note === '' ? '' : `: ${note}`}`
    if (!isOver(run) && status !== this.#status) this.#line(status)
    this.#status = status
    for (const resource of run.resources) this.#progress(resource, run)
    if (isOver(run)) this.#line(`run ${run.id} ${endingText(run)}`)
  }

  #away(message: string): void {
    if (!this.#isAway) this.#line(`the server is away (${message}), asking again`)
    this.#isAway = true
  }

  #progress(resource: ResourceProgress, run: FollowedRun): void {
    const [text, last] = [lineOf(resource, run), this.#said.get(resource.name)]
    const nowMs = this.#deps.now().getTime()
    if (text === last?.text || resource.pages === 0) return
    if (last !== undefined && nowMs - last.atMs < INTERVAL_MS && !isOver(run)) return
    this.#said.set(resource.name, { text, atMs: nowMs })
    this.#line(text)
  }

  #line(text: string): void {
    this.#deps.write(`${text}\n`)
  }
}

function lineOf(resource: ResourceProgress, run: FollowedRun): string {
  const { name, pages, delivered, failed, stopReason, isComplete } = resource
  const parts = [readText(resource), `${countText(delivered)} delivered`, manyText(pages, 'page')]
  if (failed > 0) parts.push(`${countText(failed)} failed`)
  if (isOver(run)) parts.push(isComplete ? 'complete' : `incomplete (${stopReason ?? run.status})`)
  return `${name}: ${parts.join(', ')}`
}
