import jsonata from 'jsonata'
import { createEvaluator, type Evaluator } from '../../../src/engine/expressions/index.ts'
import type { JsonObject } from '../../../src/foundation/json/index.ts'
import { reportAtMost, reportBaseline } from './support/report.ts'

/** Evaluations per measurement, and measurements of each subject in turn. */
const EVALUATIONS = 8_000
const ROUNDS = 5
/** As many evaluations as a busy server has in the sandbox at once; the floor waits for none. */
const IN_FLIGHT = 16

const FAST_RATIO_MAX = 1
const POOL_RATIO_MAX = 4

/** A list answer of about 2 KB, as an error, a rate limit and a path expression see it. */
const RECORDS = Array.from({ length: 12 }, (_, index) => ({
  id: index,
  title: `Issue number ${index} of the repository`,
  state: index % 3 === 0 ? 'closed' : 'open',
  user: { login: `user-${index}`, type: 'User' },
  labels: ['bug', 'help wanted'],
}))
const BODY: JsonObject = { items: RECORDS, total_count: RECORDS.length, incomplete_results: false }
const HEADERS: JsonObject = {
  'x-ratelimit-limit': '5000',
  'x-ratelimit-remaining': '4999',
  'x-ratelimit-reset': '1767229200',
}
const ROOTS: JsonObject = {
  status: 200,
  headers: HEADERS,
  body: BODY,
  data: BODY,
  response: { status: 200, headers: HEADERS, body: BODY },
}

/** Provably cheap: evaluated in process. */
const FAST = {
  error: 'status >= 400 ? {"status": status, "message": data.message, "metadata": {"errors": data.errors}}',
  rate: '{"limit": headers."x-ratelimit-limit", "remaining": headers."x-ratelimit-remaining", "reset": headers."x-ratelimit-reset"}',
  path: 'data.items.{"id": id, "title": title, "by": user.login}',
} as const

/** With a lambda, a regular expression or a sort: only in the sandbox. */
const POOLED = {
  error: '$match(data.items[0].title, /number (\\d+)/).groups[0] = "x" ? {"status": 422}',
  rate: '$filter($keys(headers), function($name) { $contains($name, "remaining") }) ~> $count',
  path: '$sort(data.items, function($a, $b) { $a.id < $b.id }).{"id": id, "by": user.login}',
} as const

/** Error, rate limit and path expressions over a 2 KB answer, against jsonata alone in this process. */
export async function run(): Promise<void> {
  await using evaluator = createEvaluator()
  for (const [kind, expressions, most] of [
    ['fast', FAST, FAST_RATIO_MAX],
    ['pool', POOLED, POOL_RATIO_MAX],
  ] as const) {
    for (const [name, text] of Object.entries(expressions)) {
      const { floorUs, ownUs } = await compare(evaluator, text)
      reportBaseline(`expression/${kind}/${name}/floor`, floorUs, 'us')
      reportBaseline(`expression/${kind}/${name}`, ownUs, 'us')
      reportAtMost(`expression/${kind}/${name}/ratio`, ownUs / floorUs, 'x floor', most)
    }
  }
}

/** Medians of the time per evaluation, measured in turn. */
async function compare(
  evaluator: Evaluator,
  text: string,
): Promise<{ readonly floorUs: number; readonly ownUs: number }> {
  const bare = jsonata(text)
  const floors: number[] = []
  const owns: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const floorUs = await timePerEvaluation(() => bare.evaluate(ROOTS))
    const ownUs = await timePerEvaluation(() => evaluator.evaluate(text, ROOTS))
    // The first round warms both up.
    if (round === 0) continue
    floors.push(floorUs)
    owns.push(ownUs)
  }
  return { floorUs: median(floors), ownUs: median(owns) }
}

async function timePerEvaluation(evaluate: () => Promise<unknown>): Promise<number> {
  const from = performance.now()
  const lane = async () => {
    for (let count = 0; count < EVALUATIONS / IN_FLIGHT; count++) await evaluate()
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
  return ((performance.now() - from) * 1_000) / EVALUATIONS
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
