import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SandboxPool } from '../../../../src/engine/expressions/sandbox-pool.ts'
import type { EvaluationOutcome, SandboxEvents } from '../../../../src/engine/expressions/sandbox-process.ts'

/** A process that does nothing by itself. */
interface FakeProcess {
  readonly events: SandboxEvents
  /** Requests since the start, or since `warmUp`. */
  readonly lines: string[]
  residentBytes: number
  /** Undefined as on a system that does not report it. */
  cpuMs: number | undefined
  isKilled: boolean
  /** Answers the oldest request not answered yet. */
  answer(): void
}

let processes: FakeProcess[]
let pool: SandboxPool

beforeEach(() => {
  vi.useFakeTimers()
  processes = []
  pool = new SandboxPool({
    size: 2,
    startSandbox: (events) => {
      const unanswered: string[] = []
      const process: FakeProcess = {
        events,
        lines: [],
        residentBytes: 0,
        cpuMs: undefined,
        isKilled: false,
        answer: () => events.onResponse({ kind: 'value', cpuMs: 0, payload: unanswered.shift() ?? 'unasked' }),
      }
      processes.push(process)
      return {
        send: (line) => {
          process.lines.push(line)
          unanswered.push(line)
        },
        kill: () => {
          process.isKilled = true
        },
        keepsAlive: () => {},
        residentBytes: () => process.residentBytes,
        cpuMs: () => process.cpuMs,
      }
    },
  })
})

afterEach(() => {
  pool[Symbol.dispose]()
  vi.useRealTimers()
})

function run(line: string, more: Partial<Parameters<SandboxPool['run']>[0]> = {}): Promise<EvaluationOutcome> {
  return pool.run({ line, inputCount: 1, owner: 'one', isSlow: () => false, timeoutMs: 500, ...more })
}

/** Starts both processes, idle. */
async function warmUp(): Promise<readonly [FakeProcess, FakeProcess]> {
  const jobs = ['w1', 'w2', 'w3'].map((line) => run(line))
  nth(0).events.onReady()
  nth(1).events.onReady()
  for (const process of processes) for (const _line of process.lines) process.answer()
  await Promise.all(jobs)
  for (const process of processes) process.lines.length = 0
  return [nth(0), nth(1)]
}

function nth(index: number): FakeProcess {
  const process = processes[index]
  if (!process) throw new Error(`process ${index} was not started`)
  return process
}

describe('the pool', () => {
  it('starts a process when there is work and a second one when the first is busy', async () => {
    expect(processes).toHaveLength(0)
    const first = run('a')
    expect(processes).toHaveLength(1)
    nth(0).events.onReady()
    expect(nth(0).lines).toEqual(['a'])
    const second = run('b')
    expect(processes).toHaveLength(2)
    nth(0).answer()
    expect(await first).toEqual({ kind: 'answered', answers: [{ kind: 'value', cpuMs: 0, payload: 'a' }] })
    nth(0).answer()
    expect(await second).toMatchObject({ answers: [{ payload: 'b' }] })
  })

  it('sends ahead, eight to a process and no more', async () => {
    const [left, right] = await warmUp()
    for (let i = 0; i < 30; i++) void run(String(i))
    expect([left.lines.length, right.lines.length]).toEqual([8, 8])
    expect(processes).toHaveLength(2)
    left.answer()
    expect(left.lines).toHaveLength(9)
  })

  it('serves owners in turn', async () => {
    const [left, right] = await warmUp()
    for (let i = 0; i < 30; i++) void run(`a${i}`, { owner: 'a' })
    void run('b', { owner: 'b' })
    void run('c', { owner: 'c' })
    for (let i = 0; i < 3; i++) left.answer()
    expect(left.lines.slice(8)).toEqual(['a16', 'b', 'c'])
    expect(right.lines).toHaveLength(8)
  })

  it('kills an evaluation that exceeds its time and loses only that one', async () => {
    const [left, right] = await warmUp()
    const outcomes = ['a', 'b', 'c', 'd'].map((line) => run(line))
    expect([left.lines, right.lines]).toEqual([
      ['a', 'c'],
      ['b', 'd'],
    ])
    await vi.advanceTimersByTimeAsync(30)
    right.answer()
    right.answer()
    await vi.advanceTimersByTimeAsync(500)
    expect(left.isKilled).toBe(true)
    expect(await outcomes[0]).toEqual({ kind: 'killed', cause: 'time', answers: [] })
    right.answer()
    expect(await outcomes[2]).toMatchObject({ answers: [{ payload: 'c' }] })
  })

  it('counts CPU time, and four times as much on the clock', async () => {
    const [left, right] = await warmUp()
    Object.assign(left, { cpuMs: 7_000 })
    Object.assign(right, { cpuMs: 9_000 })
    const outcomes = ['busy', 'waiting'].map((line) => run(line, { timeoutMs: 100 }))
    await vi.advanceTimersByTimeAsync(90)
    Object.assign(left, { cpuMs: 7_105 })
    await vi.advanceTimersByTimeAsync(60)
    expect(await outcomes[0]).toMatchObject({ kind: 'killed', cause: 'time' })
    await vi.advanceTimersByTimeAsync(230)
    expect(right.isKilled).toBe(false)
    await vi.advanceTimersByTimeAsync(60)
    expect(await outcomes[1]).toMatchObject({ kind: 'killed', cause: 'time' })
  })

  it('does not kill an evaluation whose answer was there, but unread, when the time ran out', async () => {
    const [left] = await warmUp()
    const outcome = run('a', { timeoutMs: 100 })
    // The answer is read in the turn of the event loop that the busy process had missed.
    setTimeout(() => setImmediate(() => left.answer()), 120)
    await vi.advanceTimersByTimeAsync(200)
    expect(await outcome).toMatchObject({ kind: 'answered' })
    expect(left.isKilled).toBe(false)
  })

  it('does not blame an evaluation for memory that the one before it has left behind', async () => {
    const [left, right] = await warmUp()
    const outcomes = ['greedy', 'b', 'innocent'].map((line) => run(line))
    expect(left.lines).toEqual(['greedy', 'innocent'])
    left.residentBytes = 300 * 1024 * 1024
    await vi.advanceTimersByTimeAsync(50)
    left.answer()
    expect(left.isKilled).toBe(true)
    right.answer()
    expect(right.lines.at(-1)).toBe('innocent')
    right.answer()
    expect(await outcomes[2]).toMatchObject({ answers: [{ payload: 'innocent' }] })
  })

  it('takes back what was sent behind an evaluation that stalls, and replaces the process afterwards', async () => {
    const [left, right] = await warmUp()
    const outcomes = ['slow', 'b', 'c'].map((line) => run(line))
    expect(left.lines).toEqual(['slow', 'c'])
    right.answer()
    await vi.advanceTimersByTimeAsync(130)
    expect(right.lines).toEqual(['b', 'c'])
    right.answer()
    expect(await outcomes[2]).toMatchObject({ answers: [{ payload: 'c' }] })
    left.answer()
    expect(await outcomes[0]).toMatchObject({ answers: [{ payload: 'slow' }] })
    expect(left.isKilled).toBe(true)
  })

  it('kills an evaluation whose process uses too much memory', async () => {
    const [left] = await warmUp()
    const outcome = run('a')
    left.residentBytes = 300 * 1024 * 1024
    await vi.advanceTimersByTimeAsync(130)
    expect(await outcome).toEqual({ kind: 'killed', cause: 'memory', answers: [] })
  })

  it('charges a crash to the evaluation that ran, and repeats the others', async () => {
    const [left, right] = await warmUp()
    const outcomes = ['a', 'b', 'c'].map((line) => run(line))
    left.events.onExit()
    expect(await outcomes[0]).toEqual({ kind: 'killed', cause: 'crash', answers: [] })
    expect(right.lines).toEqual(['b', 'c'])
  })

  it('gives slow expressions half of the processes, alone', async () => {
    const [left, right] = await warmUp()
    for (let i = 0; i < 5; i++) void run(`slow${i}`, { owner: `hog${i}`, isSlow: () => true })
    const quick = ['q1', 'q2', 'q3'].map((line) => run(line))
    expect(left.lines).toEqual(['slow0'])
    expect(right.lines).toEqual(['q1', 'q2', 'q3'])
    for (let i = 0; i < 3; i++) right.answer()
    await Promise.all(quick)
    left.answer()
    expect([...left.lines, ...right.lines]).toEqual(expect.arrayContaining(['slow1']))
    expect([...left.lines, ...right.lines]).not.toContain('slow2')
  })

  it('moves what turned out to be slow while it waited out of the way', async () => {
    const [left, right] = await warmUp()
    let isKnown = false
    for (let i = 0; i < 20; i++) void run(`hog${i}`, { owner: 'hog', isSlow: () => isKnown })
    void run('polite', { owner: 'polite' })
    isKnown = true
    for (let i = 0; i < 8; i++) left.answer()
    expect(left.lines.slice(8)).toEqual(['polite'])
    for (let i = 0; i < 8; i++) right.answer()
    expect(right.lines.slice(8)).toEqual(['hog16'])
  })

  it('lets a slow expression through when quick ones never leave a process idle', async () => {
    const [left, right] = await warmUp()
    for (let i = 0; i < 10; i++) void run(`q${i}`)
    void run('slow', { isSlow: () => true })
    expect([...left.lines, ...right.lines]).toContain('slow')
  })

  it('rejects evaluations beyond one owner’s queue, and accepts others', async () => {
    const rejected: EvaluationOutcome[] = []
    for (let i = 0; i < 1_010; i++) void run(String(i)).then((outcome) => rejected.push(outcome))
    await vi.advanceTimersByTimeAsync(0)
    expect(rejected).toHaveLength(10)
    expect(rejected[0]).toEqual({ kind: 'rejected', cause: 'queue_full' })
    void run('other', { owner: 'two' })
    nth(0).events.onReady()
    expect(nth(0).lines).toContain('other')
  })

  it('rejects an evaluation that has waited too long', async () => {
    const outcome = run('late')
    await vi.advanceTimersByTimeAsync(9_000)
    nth(0).events.onExit()
    await vi.advanceTimersByTimeAsync(2_000)
    nth(1).events.onReady()
    expect(await outcome).toEqual({ kind: 'rejected', cause: 'waited_too_long' })
  })

  it('replaces a process after a hundred thousand evaluations', async () => {
    const [left] = await warmUp()
    for (let i = 0; i < 100_000 && !left.isKilled; i++) {
      const outcome = run('x')
      left.answer()
      await outcome
    }
    expect(left.isKilled).toBe(true)
    const after = run('after')
    expect(nth(1).lines).toEqual(['after'])
    nth(1).answer()
    await after
  })

  it('starts processes ever more slowly when they fail, then rejects, then recovers', async () => {
    const outcome = run('a')
    const startedAt: number[] = []
    for (let attempt = 0; attempt < 4; attempt++) {
      startedAt.push(Date.now())
      nth(attempt).events.onExit()
      while (attempt < 3 && processes.length < attempt + 2) await vi.advanceTimersByTimeAsync(50)
    }
    const waits = startedAt.slice(1).map((at, index) => at - (startedAt[index] ?? 0))
    expect(waits.every((wait, index) => index === 0 || wait > (waits[index - 1] ?? 0))).toBe(true)
    expect(await outcome).toEqual({ kind: 'rejected', cause: 'no_sandbox' })
    await vi.advanceTimersByTimeAsync(20_000)
    const later = run('b')
    nth(4).events.onReady()
    nth(4).answer()
    expect(await later).toMatchObject({ answers: [{ payload: 'b' }] })
  })

  it('gives up on a process that never reports', async () => {
    void run('a')
    await vi.advanceTimersByTimeAsync(10_000)
    expect(nth(0).isKilled).toBe(true)
  })

  it('rejects running, waiting and later evaluations when it is closed', async () => {
    const [left, right] = await warmUp()
    const outcomes = Array.from({ length: 20 }, (_, i) => run(String(i)))
    pool[Symbol.dispose]()
    outcomes.push(run('later'))
    expect(new Set(await Promise.all(outcomes).then((all) => all.map((outcome) => JSON.stringify(outcome))))).toEqual(
      new Set(['{"kind":"rejected","cause":"closed"}']),
    )
    expect([left.isKilled, right.isKilled]).toEqual([true, true])
  })
})
