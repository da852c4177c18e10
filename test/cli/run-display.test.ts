import { describe, expect, it } from 'vitest'
import { formatCount, formatDuration } from '../../src/cli/run-format.ts'
import { LinesDisplay } from '../../src/cli/run-lines.ts'
import { RateMeter, type RenderState, renderRun, type Viewport } from '../../src/cli/run-screen.ts'
import type { FollowedRun, ResourceProgress } from '../../src/client/index.ts'

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
const PICTURE: RenderState = {
  run: RUN,
  away: undefined,
  now: NOW,
  beat: 0,
  paces: new Map([['issues', { recordsPerSecond: 83.4, restMs: 10 }]]),
}
const CANVAS: Viewport = { columns: 120, rows: 24, style: (_, text) => text }
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
  error: { reason: 'UPSTREAM_ERROR', message: 'the third party answered 500' },
}

const draw = (picture: Partial<RenderState> = {}, canvas: Partial<Viewport> = {}) =>
  renderRun({ ...PICTURE, ...picture }, { ...CANVAS, ...canvas })

describe('a run on a terminal', () => {
  it('is a heading and a line per resource', () => {
    expect(draw().split('\n')).toEqual([
      'Run 01a1febe-108f-77e8-836b-f40b4a24d381  running  3 min 20 s',
      '✓  repositories  ━━━━━━━━━━━━━━━━━━━━━━━━  100 %  1 240 of 1 240 read  1 240 delivered  13 pages',
      '⠋  issues        ━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌   25 %  1 150 of 4 600 read  1 100 delivered  12 pages  83/s  2 failed',
      '·  labels',
    ])
  })

  it('ends with what came of it', () => {
    expect(draw({ run: COMPLETED }).split('\n').slice(-2)).toEqual([
      '!  labels',
      'Completed after 3 min 20 s: 2 390 records read, 2 340 delivered, 2 failed',
    ])
    expect(
      draw({ run: { ...COMPLETED, status: 'partially_completed' } })
        .split('\n')
        .slice(-2),
    ).toEqual([
      'Partially completed after 3 min 20 s: 2 390 records read, 2 340 delivered, 2 failed',
      'not complete, to be read again by the next run: labels',
    ])
    expect(draw({ run: FAILED }).split('\n').slice(-2)).toEqual([
      'Failed after 3 min 20 s: 2 390 records read, 2 340 delivered, 2 failed',
      'UPSTREAM_ERROR: the third party answered 500',
    ])
  })

  it.each<[string, Partial<FollowedRun>, string | undefined, string]>([
    ['why it waits', { status: 'created', startedAt: undefined }, undefined, 'created  waits to be taken up'],
    ['that a limit holds it up', { status: 'rate_limited' }, undefined, 'waits for the third party'],
    ['that it is not the first attempt', { attempt: 2 }, undefined, 'attempt 2'],
    ['that nothing is heard', {}, 'connection refused', 'connecting again: connection refused'],
  ])('says %s', (_, run, away, text) => {
    expect(draw({ run: { ...RUN, ...run }, away }).split('\n')[0]).toContain(text)
  })

  it('stays within any width, and keeps what matters longest', () => {
    for (let columns = 1; columns <= 130; columns++)
      for (const run of [RUN, COMPLETED])
        for (const line of draw({ run, away: 'refused' }, { columns }).split('\n'))
          expect([columns, line.length <= columns, line]).toEqual([columns, true, line])
    expect(draw({}, { columns: 60 }).split('\n')).toEqual([
      'Run 01a1febe…  running  3 min 20 s',
      '✓  repositories  1 240 of 1 240 read  1 240 delivered',
      '⠋  issues        1 150 of 4 600 read  1 100 delivered',
      '·  labels',
    ])
  })

  it('stays within any height, and shows first where something happens', () => {
    const resources = Array.from({ length: 30 }, (_, at) => ({ ...RESOURCE, name: `r${at}`, pages: 1 }))
    const paces = new Map([['r29', { recordsPerSecond: 5, restMs: 0 }]])
    for (let rows = 5; rows <= 40; rows++) {
      const lines = draw({ run: { ...RUN, resources }, paces }, { rows }).split('\n')
      expect(lines.length).toBeLessThan(rows)
      expect(lines.join('\n')).toContain('r29')
    }
    expect(draw({ run: { ...RUN, resources }, paces }, { rows: 10 })).toContain('  and 24 more')
  })

  it('takes a third party that claims too little by its records', () => {
    const [first = RESOURCE] = RUN.resources
    const text = draw({ run: { ...RUN, resources: [{ ...first, fetched: 1_300 }] } })
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
      away: () => display.show({ kind: 'away', message: 'refused' }),
      pass: (ms: number) => (nowMs += ms),
      /** What was written since last asked. */
      take: () => {
        const taken = text.split('\n').slice(0, -1)
        text = ''
        return taken
      },
    }
  }

  it('say each change once, at most every five seconds', () => {
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

  it('say the end at once, with everything that was held back', () => {
    const { show, issues, take } = lines()
    show(issues(1))
    take()
    show({ ...issues(9), status: 'completed', finishedAt: NOW })
    expect(take()).toEqual([
      'issues: 9 read, 0 delivered, 1 page, incomplete (completed)',
      `run ${RUN.id} completed after 3 min 20 s: 9 records read, 0 delivered`,
    ])
  })

  it('say once that the server is away, and that it is back', () => {
    const { show, issues, away, take } = lines()
    show(issues(1))
    take()
    away()
    away()
    show(issues(1))
    expect(take()).toEqual(['the server is away (refused), asking again', 'the server is back'])
  })
})

describe('a rate', () => {
  it('is that of the last ten seconds, and nothing after ten still ones', () => {
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
