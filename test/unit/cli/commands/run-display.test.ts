import { describe, expect, it, vi } from 'vitest'
import type { FollowedRun, ResourceProgress } from '../../../../src/cli/client/runs.ts'
import { createDisplay } from '../../../../src/cli/commands/run.ts'
import { formatCount, formatDuration } from '../../../../src/cli/commands/run-format.ts'
import { LinesDisplay } from '../../../../src/cli/commands/run-lines.ts'
import {
  RateMeter,
  type RenderState,
  renderRun,
  ScreenDisplay,
  type Viewport,
} from '../../../../src/cli/commands/run-screen.ts'

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
const STATE: RenderState = {
  run: RUN,
  disconnected: undefined,
  now: NOW,
  frame: 0,
  rates: new Map([['issues', { recordsPerSecond: 83.4, idleMs: 10 }]]),
}
const VIEWPORT: Viewport = { columns: 120, rows: 24, applyTone: (_, text) => text }
const COMPLETED: FollowedRun = {
  ...RUN,
  status: 'completed',
  finishedAt: NOW,
  resources: RUN.resources.map((each) => ({ ...each, isComplete: each.pages > 0 })),
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

const render = (state: Partial<RenderState> = {}, viewport: Partial<Viewport> = {}) =>
  renderRun({ ...STATE, ...state }, { ...VIEWPORT, ...viewport })

describe('a run on a terminal', () => {
  it('is a heading and a line per resource', () => {
    expect(render().split('\n')).toEqual([
      'Run 01a1febe-108f-77e8-836b-f40b4a24d381  running  3 min 20 s',
      '✓  repositories  ━━━━━━━━━━━━━━━━━━━━━━━━  100 %  1 240 of 1 240 read  1 240 delivered  13 pages',
      '⠋  issues        ━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌   25 %  1 150 of 4 600 read  1 100 delivered  12 pages  83/s  2 failed',
      '·  labels',
    ])
  })

  it('ends with the result', () => {
    expect(render({ run: COMPLETED }).split('\n').slice(-2)).toEqual([
      '!  labels',
      'Completed after 3 min 20 s: 2 390 records read, 2 340 delivered, 2 failed',
    ])
    expect(
      render({ run: { ...COMPLETED, status: 'partially_completed' } })
        .split('\n')
        .slice(-2),
    ).toEqual([
      'Partially completed after 3 min 20 s: 2 390 records read, 2 340 delivered, 2 failed',
      'incomplete, read again by the next run: labels',
    ])
    expect(render({ run: FAILED }).split('\n').slice(-2)).toEqual([
      'Failed after 3 min 20 s: 2 390 records read, 2 340 delivered, 2 failed',
      'UPSTREAM_ERROR: the third party answered 500',
    ])
  })

  it.each<[string, Partial<FollowedRun>, string | undefined, string]>([
    ['why it waits', { status: 'created', startedAt: undefined }, undefined, 'created  waits to be claimed'],
    [
      'that a rate limit delays it',
      { status: 'rate_limited' },
      undefined,
      'waits for the rate limit of the third party',
    ],
    ['that it is not the first attempt', { attempt: 2 }, undefined, 'attempt 2'],
    ['that there is no connection', {}, 'connection refused', 'reconnecting: connection refused'],
  ])('says %s', (_, run, disconnected, text) => {
    expect(render({ run: { ...RUN, ...run }, disconnected }).split('\n')[0]).toContain(text)
  })

  it('stays within any width, and drops the least important columns first', () => {
    for (let columns = 1; columns <= 130; columns++)
      for (const run of [RUN, COMPLETED])
        for (const line of render({ run, disconnected: 'refused' }, { columns }).split('\n'))
          expect([columns, line.length <= columns, line]).toEqual([columns, true, line])
    expect(render({}, { columns: 60 }).split('\n')).toEqual([
      'Run 01a1febe…  running  3 min 20 s',
      '✓  repositories  1 240 of 1 240 read  1 240 delivered',
      '⠋  issues        1 150 of 4 600 read  1 100 delivered',
      '·  labels',
    ])
  })

  it('stays within any height, and shows resources in progress first', () => {
    const resources = Array.from({ length: 30 }, (_, at) => ({ ...RESOURCE, name: `r${at}`, pages: 1 }))
    const rates = new Map([['r29', { recordsPerSecond: 5, idleMs: 0 }]])
    for (let rows = 5; rows <= 40; rows++) {
      const lines = render({ run: { ...RUN, resources }, rates }, { rows }).split('\n')
      expect(lines.length).toBeLessThan(rows)
      expect(lines.join('\n')).toContain('r29')
    }
    expect(render({ run: { ...RUN, resources }, rates }, { rows: 10 })).toContain('  and 24 more')
  })

  it('shows no total that is lower than what was read', () => {
    const [first = RESOURCE] = RUN.resources
    const text = render({ run: { ...RUN, resources: [{ ...first, fetched: 1_300 }] } })
    expect(text).toContain('100 %')
    expect(text).toContain('  1 300 read')
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

  it('are below its result, which names the reason and not how another listing ended', () => {
    const shown = render({ run }).split('\n')
    expect(shown.slice(-5)).toEqual([
      'incomplete, read again by the next run: order_lines (UPSTREAM_ERROR)',
      ...PROBLEMS,
    ])
    expect(shown.join()).not.toContain('no_cursor')
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
  const screen = { isTTY: true, columns: 80, rows: 24, write: () => true, on: () => {} }
  it.each<[string, object, typeof LinesDisplay | typeof ScreenDisplay]>([
    ['is redrawn on a terminal', screen, ScreenDisplay],
    ['is lines on a terminal without a size', { ...screen, columns: 0, rows: 0 }, LinesDisplay],
    ['is lines on a terminal of unknown size', { ...screen, columns: undefined, rows: undefined }, LinesDisplay],
    ['is lines in a file or pipe', { ...screen, isTTY: undefined }, LinesDisplay],
  ])('%s', (_, stream, kind) => {
    vi.stubEnv('TERM', 'xterm')
    const display = createDisplay(stream as NodeJS.WriteStream)
    display.close()
    vi.unstubAllEnvs()
    expect(display).toBeInstanceOf(kind)
  })
})

describe('a rate', () => {
  it('is that of the last ten seconds, and 0 after ten seconds without a change', () => {
    const rate = new RateMeter()
    rate.add(0, 0)
    expect(rate.perSecond(0)).toBe(0)
    rate.add(1_000, 2_000)
    expect(rate.perSecond(2_000)).toBe(500)
    for (let second = 3; second <= 20; second++) rate.add(1_000 + 100 * (second - 2), second * 1_000)
    expect(rate.perSecond(20_000)).toBeCloseTo(100)
    expect(rate.idleMs(25_000)).toBe(5_000)
    expect(rate.perSecond(30_001)).toBe(0)
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
