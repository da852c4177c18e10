import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Reader } from './reader.ts'

/** What one reading cost. */
export interface Cost {
  /** Processor time of this thread in all. */
  readonly cpuMs: number
  /** Longest stretch of processor time between two turns of the event loop. */
  readonly longestMs: number
}

/** Reads one input and measures the processor time of this thread, which other processes do not disturb. */
export async function costOf(reader: Reader, input: string): Promise<Cost> {
  const begin = cpuMs()
  let turn = begin
  let longestMs = 0
  let isOver = false
  const endTurn = () => {
    longestMs = Math.max(longestMs, cpuMs() - turn)
    turn = cpuMs()
  }
  const turns = async () => {
    while (!isOver) {
      await nextTurn()
      endTurn()
    }
  }
  const watching = turns()
  await outcomeOf(reader, input)
  endTurn()
  const spentMs = cpuMs() - begin
  isOver = true
  await watching
  return { cpuMs: spentMs, longestMs }
}

/** The least of several measurements of each figure. */
export async function leastCost(reader: Reader, input: string, times: number): Promise<Cost> {
  let least = await costOf(reader, input)
  for (let time = 1; time < times; time++) {
    const cost = await costOf(reader, input)
    least = { cpuMs: Math.min(least.cpuMs, cost.cpuMs), longestMs: Math.min(least.longestMs, cost.longestMs) }
  }
  return least
}

/** How a reading ended; `defect` when it threw what it does not reject with. */
export type Outcome =
  | { readonly kind: 'read'; readonly result: unknown }
  | { readonly kind: 'rejected' }
  | { readonly kind: 'defect'; readonly error: unknown }

export async function outcomeOf(reader: Reader, input: string): Promise<Outcome> {
  try {
    return { kind: 'read', result: await reader.read(input) }
  } catch (error) {
    return reader.rejects(error) ? { kind: 'rejected' } : { kind: 'defect', error }
  }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
