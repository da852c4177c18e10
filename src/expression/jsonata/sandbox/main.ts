/**
 * The process in which expressions run: reads requests from standard input, answers on standard output, in order, one at
 * a time. It may read this folder and the jsonata package, and nothing else; it keeps nothing but compiled expressions.
 *
 * It ends when its input ends, which is when its parent does.
 */
import { evaluate } from './evaluate.ts'
import { ANSWER, type EvaluationRequest, LineReader } from './protocol.ts'

const waiting: string[] = []
let isBusy = false

async function answerWaiting(): Promise<void> {
  if (isBusy) return
  isBusy = true
  for (let line = waiting.shift(); line !== undefined; line = waiting.shift()) {
    const request: EvaluationRequest = JSON.parse(line)
    const answer = await evaluate(request)
    // Pipes are written at once: the parent has the answer before the next evaluation can block this process.
    process.stdout.write(`${answer}\n`)
  }
  isBusy = false
}

const reader = new LineReader((line) => waiting.push(line))

process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk: string) => {
  reader.push(chunk)
  answerWaiting().catch(() => process.exit(1))
})
process.stdin.on('end', () => process.exit(0))
process.stdout.on('error', () => process.exit(0))
process.stdout.write(`${ANSWER.ready}\n`)
