/**
 * Random expressions, their next 200 ticks, and what another implementation of cron makes of them.
 *
 * 2 000 expressions (`PATCHBAY_FAULTS_EXPRESSIONS` for more). What the product rejects is not compared, but must have a
 * reason; the dialects differ in what `test/README.md` lists.
 */

import { Cron } from 'croner'
import { checkCronExpression } from '../../../src/sync/schedules/check-cron-expression.ts'
import { cronExpression } from '../../../src/sync/schedules/cron-expression.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { randomCron } from './support/random-cron.ts'
import { seededRandom } from './support/seeded-random.ts'

const EXPRESSIONS = Number(process.env.PATCHBAY_FAULTS_EXPRESSIONS ?? 2_000)
const TICKS = 200
/** Ticks of rare days are compared for a century. */
const YEARS = 100
const SHOWN_MAX = 20
const FROM_MS = { min: Date.UTC(2024, 0), max: Date.UTC(2032, 0) }

const random = seededRandom('ticks-oracle')
let [compared, rejected, ticks, different] = [0, 0, 0, 0]
for (let count = 0; count < EXPRESSIONS; count++) {
  const text = randomCron(random)
  const from = new Date(Math.floor(FROM_MS.min + random() * (FROM_MS.max - FROM_MS.min)))
  if (checkCronExpression(text, { minTickGapSeconds: 1, from, field: 'cron_expression' }).length > 0) {
    rejected++
    continue
  }
  const [ours, theirs] = [ticksOf(cronExpression(text), from), oracleTicks(text, from)]
  compared++
  ticks += ours.length
  const place = ours.findIndex((tick, index) => tick !== theirs[index])
  if (place === -1 && ours.length === theirs.length) continue
  different++
  if (different <= SHOWN_MAX) show(text, from, ours[place], theirs[Math.max(0, place)])
}
reportAtLeast('ticks-oracle/expressions', compared, 'expressions', EXPRESSIONS / 2)
reportAtLeast('ticks-oracle/refused', rejected, 'expressions', 0)
reportAtLeast('ticks-oracle/ticks', ticks, 'ticks', 1)
reportAtMost('ticks-oracle/different', different, 'expressions', 0)

function ticksOf(cron: { next(after: Date): Date | undefined }, from: Date): readonly number[] {
  const horizonMs = from.getTime() + YEARS * 366 * 86_400_000
  const found: number[] = []
  for (let tick = cron.next(from); tick !== undefined && found.length < TICKS; tick = cron.next(tick)) {
    if (tick.getTime() > horizonMs) break
    found.push(tick.getTime())
  }
  return found
}

function oracleTicks(text: string, from: Date): readonly number[] {
  const cron = new Cron(text, { utcOffset: 0, mode: '5-or-6-parts' })
  return ticksOf({ next: (after) => cron.nextRun(after) ?? undefined }, from)
}

function show(text: string, from: Date, ours: number | undefined, theirs: number | undefined): void {
  const iso = (ms: number | undefined) => (ms === undefined ? 'none' : new Date(ms).toISOString())
  process.stderr.write(`"${text}" after ${from.toISOString()}: ours ${iso(ours)}, the oracle's ${iso(theirs)}\n`)
}
