import { describe, expect, it, vi } from 'vitest'
import { LogSink } from '../../../../src/foundation/telemetry/index.ts'

/** A sink with so much room, or with an error, and what it has taken. */
function medium() {
  const at = { room: Number.POSITIVE_INFINITY, error: undefined as string | undefined, text: '', calls: 0 }
  const write = (bytes: Buffer): number => {
    at.calls++
    if (at.error !== undefined) throw Object.assign(new Error(at.error), { code: at.error })
    if (at.room === 0) throw Object.assign(new Error('full'), { code: 'EAGAIN' })
    const written = Math.min(at.room, bytes.length)
    at.room -= written
    at.text += bytes.subarray(0, written).toString()
    return written
  }
  return { at, sink: new LogSink(write) }
}

const messages = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { msg: string }).msg)
const line = (msg: string) => `${JSON.stringify({ msg })}\n`

describe('the log sink', () => {
  it.each(['ENOSPC', 'EPIPE', 'EIO'])('drops lines that meet %s, counts them and says so afterwards', (error) => {
    vi.useFakeTimers()
    const { at, sink } = medium()
    sink.write(line('before'))
    at.error = error
    for (let each = 0; each < 1_000; each++) sink.write(line('lost'))
    vi.advanceTimersByTime(1_000)
    expect(sink.dropped).toBe(1_000)
    expect(at.calls).toBeLessThan(10)
    at.error = undefined
    vi.advanceTimersByTime(1_000)
    sink.write(line('after'))
    expect(messages(at.text)).toEqual(['before', '1000 log lines were dropped', 'after'])
    vi.useRealTimers()
  })

  it('keeps lines in order while a pipe is full, bounded, and never cuts one in two', () => {
    vi.useFakeTimers()
    const { at, sink } = medium()
    at.room = 5
    for (let each = 0; each < 100_000; each++) sink.write(line(`line ${each}`))
    expect(at.calls).toBe(2)
    const dropped = sink.dropped
    expect(dropped).toBeGreaterThan(10_000)
    at.room = Number.POSITIVE_INFINITY
    vi.advanceTimersByTime(1_000)
    const all = messages(at.text)
    expect(all.length).toBe(100_000 - dropped + 1)
    expect([all[0], all[1], all.at(-1)]).toEqual(['line 0', 'line 1', `${dropped} log lines were dropped`])
    vi.useRealTimers()
  })

  it('begins the notice on a new line after a line that was cut by a full disk', () => {
    vi.useFakeTimers()
    const { at, sink } = medium()
    at.room = 4
    sink.write(line('cut'))
    at.error = 'ENOSPC'
    vi.advanceTimersByTime(1_000)
    at.error = undefined
    at.room = Number.POSITIVE_INFINITY
    vi.advanceTimersByTime(1_000)
    expect(messages(at.text.split('\n').slice(1).join('\n'))).toEqual(['1 log lines were dropped'])
    vi.useRealTimers()
  })
})
