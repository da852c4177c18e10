import { styleText } from 'node:util'
import { createLogUpdate } from 'log-update'
import type { FollowedRun, RunNews } from '../../client/index.ts'
import type { RunDisplay } from './display.ts'
import { drawRun, type Pace } from './draw.ts'
import { Rate } from './rate.ts'
import type { Tone } from './table.ts'

const BEAT_MS = 120
const SIZE_DEFAULT = { columns: 80, rows: 24 }

const STYLES: Readonly<Record<Tone, Parameters<typeof styleText>[0]>> = {
  ...({ plain: 'reset', strong: 'bold', quiet: 'dim' } as const),
  ...({ good: 'green', busy: 'cyan', odd: 'yellow', bad: 'red' } as const),
}

/** A run drawn in place on a terminal, several times a second, until it is closed. */
export class ScreenDisplay implements RunDisplay {
  readonly #stream: NodeJS.WriteStream
  readonly #update: ReturnType<typeof createLogUpdate>
  readonly #rates = new Map<string, Rate>()
  readonly #timer: NodeJS.Timeout
  #run: FollowedRun | undefined
  #away: string | undefined
  #beat = 0
  #isClosed = false

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
    this.#update = createLogUpdate(stream)
    this.#timer = setInterval(() => this.#draw(), BEAT_MS)
  }

  show(news: RunNews): void {
    this.#away = news.kind === 'away' ? news.message : undefined
    if (news.kind === 'run') this.#note(news.run)
    this.#draw()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearInterval(this.#timer)
    this.#update.done()
    // Ctrl-C has left its mark where the next line begins.
    this.#stream.write('\r')
  }

  #note(run: FollowedRun): void {
    this.#run = run
    for (const { name, fetched } of run.resources) {
      const rate = this.#rates.get(name) ?? new Rate()
      rate.note(fetched, Date.now())
      this.#rates.set(name, rate)
    }
  }

  #draw(): void {
    if (this.#run === undefined) return
    const now = new Date()
    const paces = new Map([...this.#rates].map(([name, rate]) => [name, paceOf(rate, now.getTime())]))
    const { columns = SIZE_DEFAULT.columns, rows = SIZE_DEFAULT.rows } = this.#stream
    const picture = { run: this.#run, paces, away: this.#away, now, beat: this.#beat++ }
    this.#update(drawRun(picture, { columns, rows, paint: (tone, text) => this.#paint(tone, text) }))
  }

  #paint(tone: Tone, text: string): string {
    return tone === 'plain' ? text : styleText(STYLES[tone], text, { stream: this.#stream })
  }
}

function paceOf(rate: Rate, nowMs: number): Pace {
  return { recordsPerSecond: rate.perSecond(nowMs), restMs: rate.restMs(nowMs) }
}
