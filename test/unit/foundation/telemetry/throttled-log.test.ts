import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ThrottledLog } from '../../../../src/foundation/telemetry/index.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function throttled() {
  const lines: Readonly<Record<string, unknown>>[] = []
  return { lines, log: new ThrottledLog({ warn: (fields) => lines.push(fields) }, 'rejected') }
}

describe('a throttled log', () => {
  it('writes the first line of a key at once, then one a minute with how many there were', () => {
    const { lines, log } = throttled()
    for (let each = 0; each < 10_000; each++) log.warn('a', { reason: `forged ${each}` })
    log.warn('b', { reason: 'other' })
    expect(lines).toEqual([
      { reason: 'forged 0', count: 1 },
      { reason: 'other', count: 1 },
    ])
    vi.advanceTimersByTime(60_000)
    expect(lines.slice(2)).toEqual([{ reason: 'forged 9999', count: 9_999 }])
    vi.advanceTimersByTime(600_000)
    expect(lines).toHaveLength(3)
    log.warn('a', { reason: 'again' })
    expect(lines.at(-1)).toEqual({ reason: 'again', count: 1 })
  })

  it('bounds the keys that have lines of their own', () => {
    const { lines, log } = throttled()
    for (let each = 0; each < 5_000; each++) log.warn(`key ${each}`, {})
    expect(lines).toHaveLength(1_001)
  })
})
