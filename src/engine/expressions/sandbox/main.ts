/**
 * Entry point of the sandbox process: reads requests from standard input, writes responses to standard output, in order,
 * one at a time. It may read this folder and the jsonata package, and nothing else; its only state is a cache of compiled
 * expressions.
 *
 * It exits when its input ends, which is when its parent exits.
 */
import { evaluate } from './evaluate.ts'
import { type EvaluationRequest, encodeResponse, LineReader, type SandboxResponse } from './protocol.ts'

const WARM_UP: EvaluationRequest = {
  text: '$map([1, 2], function($n) { {"n": $n} })[n > 1].n',
  timeoutMs: 1_000,
  resultBytesMax: 100,
  totalBytesMax: 100,
  inputs: [{}],
}

const waiting: string[] = []
let isBusy = false

async function answerWaiting(): Promise<void> {
  if (isBusy) return
  isBusy = true
  for (let line = waiting.shift(); line !== undefined; line = waiting.shift()) {
    const request: EvaluationRequest = JSON.parse(line)
    await evaluate(request, respond)
  }
  isBusy = false
}

/** Writes to pipes are synchronous: the parent has the response before the next evaluation can block this process. */
function respond(answer: SandboxResponse): void {
  process.stdout.write(`${encodeResponse(answer)}\n`)
}

const reader = new LineReader((line) => waiting.push(line))

process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk: string) => {
  reader.push(chunk)
  answerWaiting().catch(() => process.exit(1))
})
process.stdin.on('end', () => process.exit(0))
process.stdout.on('error', () => process.exit(0))

// The first evaluation loads and compiles code: it should not count as slow.
await evaluate(WARM_UP, (answer) => respond({ ...answer, kind: 'ready', payload: '' }))
