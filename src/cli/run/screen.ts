import { styleText } from 'node:util'
import { createLogUpdate } from 'log-update'
import type { FollowedRun, RunEvent } from '../../client/index.ts'
import type { RunDisplay } from './display.ts'
import { type ReadRate, renderRun } from './draw.ts'
import { RateMeter } from './rate.ts'
import type { Tone } from './table.ts'

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
