import { describe, expect, it, vi } from 'vitest'
import type { FollowedRun, ResourceProgress } from '../../../../src/cli/client/runs.ts'
import { createDisplay } from '../../../../src/cli/commands/run.ts'
import { formatCount, formatDuration } from '../../../../src/cli/commands/run-format.ts'
import { LinesDisplay, TerminalDisplay } from '../../../../src/cli/commands/run-lines.ts'

const NOW = new Date('2026-11-05T12:03:20Z')
const RESOURCE: ResourceProgress = {
  name: 'issues',
  pages: 0,
  fetched: 0,
  delivered: 0,
  failed: 0,
  reportedTotal: undefined,
  stopReason: undefined,
  isComplete: false,
  errors: [],
  warnings: [],
}
const RUN: FollowedRun = {
  id: '01a1febe-108f-77e8-836b-f40b4a24d381',
  status: 'running',
  attempt: 1,
  error: undefined,
  startedAt: new Date('2026-11-05T12:00:00Z'),
  finishedAt: undefined,
  skipReason: undefined,
  waiting: undefined,
  resources: [
    {
      ...RESOURCE,
      name: 'repositories',
      pages: 13,
      fetched: 1_240,
      delivered: 1_240,
      reportedTotal: 1_240,
      stopReason: 'no_cursor',
    },
    { ...RESOURCE, name: 'issues', pages: 12, fetched: 1_150, delivered: 1_100, reportedTotal: 4_600, failed: 2 },
    { ...RESOURCE, name: 'labels' },
  ],
}
const FAILED: FollowedRun = {
  ...RUN,
  status: 'failed',
  finishedAt: NOW,
  error: {
    reason: 'UPSTREAM_ERROR',
    message: 'the third party answered 500',
    parent: undefined,
    request: undefined,
    logId: undefined,
  },
}

/** A terminal that keeps what is written to it. */
function terminal(columns: number) {
  let text = ''
  const write = (more: string | Uint8Array) => {
    text += more
    return true
  }
  const display = new TerminalDisplay({ columns, write })
  return {
    show: (run: FollowedRun) => display.show({ kind: 'run', run }),
    disconnect: (message: string) => display.show({ kind: 'disconnected', message }),
    close: () => display.close(),
    written: () => text,
    /** The lines as they are seen: of each only what follows its last erasure. */
    lines: () => text.split('\n').map((line) => line.split('\r\u001b[K').at(-1)),
  }
}

describe('a run on a terminal', () => {
  it('is one line below its id, rewritten at each change', () => {
    const { show, disconnect, lines, written } = terminal(80)
    show({ ...RUN, status: 'created', resources: [] })
    expect(lines()).toEqual([`run ${RUN.id}`, 'created: 0 records read, 0 delivered, waits to be claimed'])
    disconnect('connection refused')
    expect(lines().at(-1)).toBe('the server is unavailable (connection refused), trying again')
    show(RUN)
    expect(lines()).toEqual([`run ${RUN.id}`, 'running: 2 390 records read, 2 340 delivered, 2 failed'])
    expect(written().match(/\n/g)).toHaveLength(1)
  })

  it('gives its line to the end, which is as in logs', () => {
    const { show, close, lines } = terminal(80)
    show(RUN)
    show(FAILED)
    close()
    expect(lines()).toEqual([
      `run ${RUN.id}`,
      'repositories: 1 240 of 1 240 read, 1 240 delivered, 13 pages, incomplete (failed)',
      'issues: 1 150 of 4 600 read, 1 100 delivered, 12 pages, 2 failed, incomplete (failed)',
      `run ${RUN.id} failed after 3 min 20 s: 2 390 records read, 2 340 delivered, 2 failed`,
      'UPSTREAM_ERROR: the third party answered 500',
      '',
    ])
  })

  it('leaves its line in place when following ends before the run', () => {
    const { show, close, lines } = terminal(80)
    show(RUN)
    close()
    close()
    expect(lines().slice(1)).toEqual(['running: 2 390 records read, 2 340 delivered, 2 failed', ''])
  })

  it.each<[string, Partial<FollowedRun>, string]>([
    ['why it waits', { status: 'created', startedAt: undefined }, 'waits to be claimed'],
    ['that a rate limit delays it', { status: 'rate_limited' }, 'waits for the rate limit of the third party'],
    ['that it is not the first attempt', { attempt: 2 }, 'attempt 2'],
    ['a text without obeying its controls', { waiting: 'a\u001b[2J\r\n' }, 'a\\u001b[2J\\r\\n'],
  ])('says %s', (_, run, text) => {
    const { show, lines } = terminal(200)
    show({ ...RUN, ...run })
    expect(lines().at(-1)).toContain(text)
  })

  it('stays within any width', () => {
    for (let columns = 1; columns <= 100; columns++) {
      const { show, lines } = terminal(columns)
      show({ ...RUN, attempt: 2 })
      expect(lines().at(-1)?.length).toBeLessThanOrEqual(columns)
    }
  })
})

describe('lines for logs', () => {
  function lines() {
    let [text, nowMs] = ['', 0]
    const display = new LinesDisplay({ write: (more) => (text += more), now: () => new Date(nowMs) })
    const issues = (fetched: number): FollowedRun => ({ ...RUN, resources: [{ ...RESOURCE, pages: 1, fetched }] })
    return {
      show: (run: FollowedRun) => display.show({ kind: 'run', run }),
      issues,
      disconnect: () => display.show({ kind: 'disconnected', message: 'refused' }),
      pass: (ms: number) => (nowMs += ms),
      /** The lines since the last call. */
      take: () => {
        const taken = text.split('\n').slice(0, -1)
        text = ''
        return taken
      },
    }
  }

  it('say that a running run waits for a rate limit, and that it goes on', () => {
    const { show, take } = lines()
    const waiting = 'waits for the rate limit of the third party (until 2026-11-05T12:03:32.000Z)'
    show({ ...RUN, resources: [] })
    show({ ...RUN, resources: [], waiting })
    show({ ...RUN, resources: [] })
    expect(take()).toEqual([`run ${RUN.id} running`, `run ${RUN.id} running: ${waiting}`, `run ${RUN.id} running`])
  })

  it('show each change once, at most every five seconds', () => {
    const { show, issues, take, pass } = lines()
    show(issues(1))
    expect(take()).toEqual([`run ${RUN.id} running`, 'issues: 1 read, 0 delivered, 1 page'])
    show(issues(2))
    pass(4_999)
    show(issues(3))
    expect(take()).toEqual([])
    pass(1)
    show(issues(4))
    show(issues(4))
    expect(take()).toEqual(['issues: 4 read, 0 delivered, 1 page'])
  })

  it('show the end at once, with every change that was delayed', () => {
    const { show, issues, take } = lines()
    show(issues(1))
    take()
    show({ ...issues(9), status: 'completed', finishedAt: NOW })
    expect(take()).toEqual([
      'issues: 9 read, 0 delivered, 1 page, incomplete (completed)',
      `run ${RUN.id} completed after 3 min 20 s: 9 records read, 0 delivered`,
    ])
  })

  it('show once that the server is unavailable, and that it is connected again', () => {
    const { show, issues, disconnect, take } = lines()
    show(issues(1))
    take()
    disconnect()
    disconnect()
    show(issues(1))
    expect(take()).toEqual(['the server is unavailable (refused), trying again', 'connected again'])
  })
})

describe('the problems of a run', () => {
  const error = (at: number) => ({
    reason: 'UPSTREAM_ERROR',
    message: `flaky\u001b[31m${at}`,
    parent: `orders/${at}`,
    request: `GET /orders/${at}/lines`,
    logId: `0197-${at}`,
  })
  const lines: ResourceProgress = {
    ...RESOURCE,
    name: 'order_lines',
    pages: 60,
    failed: 3,
    stopReason: 'no_cursor',
    errors: [error(1), error(2)],
    warnings: ['records of order_lines have no `id`'],
  }
  const run: FollowedRun = { ...RUN, status: 'partially_completed', finishedAt: NOW, resources: [lines] }
  const PROBLEMS = [
    'order_lines: records of order_lines have no `id`',
    'order_lines: UPSTREAM_ERROR: flaky\\u001b[31m1 (of orders/1, GET /orders/1/lines, log 0197-1)',
    'order_lines: UPSTREAM_ERROR: flaky\\u001b[31m2 (of orders/2, GET /orders/2/lines, log 0197-2)',
    'order_lines: and 1 more',
  ]

  it('are above its result on a terminal, which names the reason and not how another listing ended', () => {
    const { show, lines: shown } = terminal(80)
    show(run)
    expect(shown().slice(-7)).toEqual([
      ...PROBLEMS,
      `run ${RUN.id} partially completed after 3 min 20 s: 0 records read, 0 delivered, 3 failed`,
      'incomplete, read again by the next run: order_lines (UPSTREAM_ERROR)',
      '',
    ])
    expect(shown().join()).not.toContain('no_cursor')
  })

  it('are lines for logs as they come, each once', () => {
    let text = ''
    const display = new LinesDisplay({ write: (more) => (text += more), now: () => NOW })
    display.show({ kind: 'run', run: { ...run, status: 'running', resources: [{ ...lines, errors: [error(1)] }] } })
    expect(text.split('\n')).toEqual(expect.arrayContaining(PROBLEMS.slice(0, 2)))
    display.show({ kind: 'run', run })
    for (const problem of PROBLEMS) expect([problem, text.split(problem).length]).toEqual([problem, 2])
    expect(text).not.toContain('no_cursor')
  })
})

describe('the display of a run', () => {
  const tty = { isTTY: true, columns: 80, rows: 24, write: () => true }
  it.each<[string, object, typeof LinesDisplay | typeof TerminalDisplay]>([
    ['is a line on a terminal', tty, TerminalDisplay],
    ['is lines on a terminal without a size', { ...tty, columns: 0, rows: 0 }, LinesDisplay],
    ['is lines on a terminal of unknown size', { ...tty, columns: undefined, rows: undefined }, LinesDisplay],
    ['is lines in a file or pipe', { ...tty, isTTY: undefined }, LinesDisplay],
  ])('%s', (_, stream, kind) => {
    vi.stubEnv('TERM', 'xterm')
    const display = createDisplay(stream as NodeJS.WriteStream)
    display.close()
    vi.unstubAllEnvs()
    expect(display).toBeInstanceOf(kind)
  })
})

it.each<[string, string]>([
  [formatCount(0), '0'],
  [formatCount(999.6), '1 000'],
  [formatCount(12_345_678), '12 345 678'],
  [formatDuration(59_400), '59 s'],
  [formatDuration(60_000), '1 min 0 s'],
  [formatDuration(7_500_000), '2 h 5 min'],
])('%s is written %s', (written, expected) => {
  expect(written).toBe(expected)
})
