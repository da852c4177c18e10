/**
 * The process in which expressions run: reads requests from standard input, answers on standard output, in order, one at
 * a time. It may read this folder and the jsonata package, and nothing else; it keeps nothing but compiled expressions.
 *
 * It ends when its input ends, which is when its parent does.
 */

import { evaluate } from './evaluate.ts'
import { type EvaluationRequest, encodeResponse, LineReader, type SandboxResponse } from './protocol.ts'

const WARM_UP: EvaluationRequest = {
  text: '$map([1, 2], function($n) { {"n": $n} })[n > 1].n',
  timeoutMs: 1_000,
  resultBytesMax: 100,
  input: {},
}

const waiting: string[] = []
let isBusy = false

async function answerWaiting(): Promise<void> {
  if (isBusy) return
  isBusy = true
  for (let line = waiting.shift(); line !== undefined; line = waiting.shift()) {
    const request: EvaluationRequest = JSON.parse(line)
    respond(await evaluate(request))
  }
  isBusy = false
}

/** Pipes are written at once: the parent has the answer before the next evaluation can block this process. */
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

// The first evaluation loads and compiles; it should not count as slow.
respond({ ...(await evaluate(WARM_UP)), kind: 'ready', payload: '' })
