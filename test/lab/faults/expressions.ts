/**
 * Lets hostile and generated expressions loose on the evaluator and counts what they break.
 *
 * The evaluator runs in a process of its own, so that its death would be seen.
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import fc from 'fast-check'
import { createEvaluator } from '../../../src/engine/expressions/evaluator.ts'
import { expressionText, roots } from '../../unit/engine/expressions/expression-generator.ts'
import { ESCAPING, EXHAUSTING } from '../../unit/engine/expressions/malicious-expressions.ts'
import { evaluateWithJsonata, outcomeOf } from '../../unit/engine/expressions/reference-evaluator.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'

const TIMEOUT_MS = 500
const GENERATED = 20_000
const IN_FLIGHT = 16
const VICTIM = 'victim'

if (process.argv[2] === VICTIM) await beVictim()
else await beWitness()

async function beWitness(): Promise<void> {
  const victim = fork(import.meta.filename, [VICTIM])
  let survived = false
  victim.on('message', () => {
    survived = true
  })
  const [code] = await once(victim, 'exit')
  reportAtMost('expressions-process-deaths', survived ? 0 : 1, 'processes', 0)
  if (code !== 0) process.exitCode = 1
}

async function beVictim(): Promise<void> {
  await hostile()
  await escaping()
  await neighbours()
  await generated()
  process.send?.('survived')
}

/** Every exhausting expression on a process that is ready: how long beyond its time does the worst one hold its caller? */
async function hostile(): Promise<void> {
  await using evaluator = createEvaluator({ poolSize: 2 })
  let overrunMs = 0
  for (const { attack, text } of EXHAUSTING) {
    await evaluator.evaluate('$sum([1])', {})
    const start = performance.now()
    await outcomeOf(evaluator.evaluate(text, { a: 1 }, { owner: attack, timeoutMs: TIMEOUT_MS }))
    overrunMs = Math.max(overrunMs, performance.now() - start - TIMEOUT_MS)
  }
  const works = (await outcomeOf(evaluator.evaluate('$sum([1, 2])', {}))) === '3'
  reportAtLeast('expressions-hostile', EXHAUSTING.length + ESCAPING.length, 'expressions', 22)
  reportAtMost('expressions-overrun', Math.max(0, overrunMs), 'ms', 100)
  reportAtLeast('expressions-works-afterwards', works ? 1 : 0, 'evaluators', 1)
}

/** Attempts to get out of the language leave no trace, here or in the sandbox. */
async function escaping(): Promise<void> {
  await using evaluator = createEvaluator({ poolSize: 2 })
  let escaped = 0
  for (const { text } of ESCAPING) {
    await outcomeOf(evaluator.evaluate(text, { a: { b: 1 } }))
    const trace = await outcomeOf(evaluator.evaluate('$count($keys({}.polluted)) + $count(polluted)', {}))
    if (trace !== '0' || 'polluted' in Object.prototype) escaped++
  }
  reportAtMost('expressions-escaped', escaped, 'expressions', 0)
}

/** What a polite owner waits for while another one sends nothing but endless expressions, each a new one. */
async function neighbours(): Promise<void> {
  await using evaluator = createEvaluator({ poolSize: 2 })
  await Promise.all([1, 2, 3].map((n) => evaluator.evaluate(`$sum([${n}])`, {}, { owner: 'polite' })))
  let isOver = false
  const hogging = Array.from({ length: 8 }, async (_, line) => {
    for (let n = 0; !isOver; n++) {
      const text = `($f := function($n) { $f($n + 1) }; $f(${line * 1_000 + n}))`
      await outcomeOf(evaluator.evaluate(text, {}, { owner: 'hog', timeoutMs: 200 }))
    }
  })
  const waitsMs: number[] = []
  for (let n = 0; n < 500; n++) {
    const start = performance.now()
    await evaluator.evaluate('$sum([1, 2])', {}, { owner: 'polite' })
    waitsMs.push(performance.now() - start)
  }
  isOver = true
  await Promise.all(hogging)
  waitsMs.sort((a, b) => a - b)
  reportAtMost('expressions-neighbour-wait-p99', waitsMs[Math.floor(waitsMs.length * 0.99)] ?? 0, 'ms', 50)
}

/** Generated expressions on generated input give what JSONata gives, whichever lane they take. */
async function generated(): Promise<void> {
  await using evaluator = createEvaluator({ poolSize: 2 })
  const cases = fc.sample(fc.tuple(expressionText, roots), GENERATED)
  let next = 0
  let differences = 0
  const worker = async () => {
    for (let index = next++; index < cases.length; index = next++) {
      const [text = '', input = {}] = cases[index] ?? []
      const ours = await outcomeOf(evaluator.evaluate(text, input, { owner: String(index % 100) }))
      const expected = await outcomeOf(evaluateWithJsonata(text, input, {}))
      if (ours === expected) continue
      differences++
      process.stderr.write(`${text} on ${JSON.stringify(input)}: ${ours} instead of ${expected}\n`)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
  reportAtLeast('expressions-generated', cases.length, 'expressions', GENERATED)
  reportAtMost('expressions-differences', differences, 'expressions', 0)
}
