import { describe, expect, it } from 'vitest'
import { Metrics } from '../../../../src/foundation/telemetry/index.ts'
import { METRICS } from '../../../../src/foundation/telemetry/metric-table.ts'
import { throttledRead } from '../../../../src/foundation/telemetry/metrics.ts'

const FIGURES = {
  ticker: { passes: 5, failedPasses: 1, fired: 7, skipped: { overlap: 2, group_full: 3 }, missed: 4, suspended: 1 },
  runs: { running: 2, outcomes: { completed: 6, failed: 1 }, leasesLost: 1, pages: 30, records: 2_900 },
  leasesExpired: 2,
}

/** The lines of a metric, without comments. */
async function lines(metrics: Metrics, name: string): Promise<string[]> {
  const text = await metrics.text()
  return text.split('\n').filter((line) => line.startsWith(name))
}

describe('metrics', () => {
  it('show what a worker counts, the same however often they are read', async () => {
    const metrics = new Metrics()
    metrics.readWorker(() => FIGURES)
    await metrics.text()
    expect(await lines(metrics, 'patchbay_ticks_total')).toEqual([
      'patchbay_ticks_total{outcome="fired",reason=""} 7',
      'patchbay_ticks_total{outcome="missed",reason=""} 4',
      'patchbay_ticks_total{outcome="suspended",reason=""} 1',
      'patchbay_ticks_total{outcome="skipped",reason="overlap"} 2',
      'patchbay_ticks_total{outcome="skipped",reason="group_full"} 3',
    ])
    expect(await lines(metrics, 'patchbay_runs_settled_total')).toEqual([
      'patchbay_runs_settled_total{outcome="completed"} 6',
      'patchbay_runs_settled_total{outcome="failed"} 1',
    ])
    expect(await lines(metrics, 'patchbay_leases_lost_total')).toEqual(['patchbay_leases_lost_total 1'])
    expect(await lines(metrics, 'patchbay_records_delivered_total')).toEqual(['patchbay_records_delivered_total 2900'])
  })

  it('count calls by operation and code', async () => {
    const metrics = new Metrics()
    for (const outcome of ['OK', 'OK', 'NOT_FOUND'])
      metrics.observeCall({ operation: '/a.B/Get', outcome, durationMs: 20 })
    expect(await lines(metrics, 'patchbay_requests_total')).toEqual([
      'patchbay_requests_total{operation="/a.B/Get",code="OK"} 2',
      'patchbay_requests_total{operation="/a.B/Get",code="NOT_FOUND"} 1',
    ])
    expect(await lines(metrics, 'patchbay_request_duration_seconds_count')).toEqual([
      'patchbay_request_duration_seconds_count{operation="/a.B/Get"} 3',
    ])
    const buckets = await lines(metrics, 'patchbay_request_duration_seconds_bucket{le="0.0')
    expect(buckets.map((line) => Number(line.split(' ').at(-1)))).toEqual([0, 0, 0, 0, 3, 3])
  })

  it('never show a tick that was early, as clocks that differ would', async () => {
    const metrics = new Metrics()
    metrics.observeTicks([-0.3, 0.3])
    expect(await lines(metrics, 'patchbay_tick_lateness_seconds_sum')).toEqual([
      'patchbay_tick_lateness_seconds_sum 0.3',
    ])
  })

  it('leave out what cannot be read, and show the rest', async () => {
    const metrics = new Metrics()
    metrics.readCounts('queueDepth', async () => {
      throw new Error('no database')
    })
    metrics.readOldestDueAge(() => 12)
    expect(await lines(metrics, 'patchbay_queue_depth')).toEqual([])
    expect(await lines(metrics, 'patchbay_oldest_due_age_seconds')).toEqual(['patchbay_oldest_due_age_seconds 12'])
  })

  it('do not wait for a database that does not answer, and say that its figures are absent', async () => {
    const metrics = new Metrics()
    let answer: (found: readonly { count: number }[]) => void = () => {}
    metrics.readCounts('accounts', () => new Promise((resolve) => (answer = resolve)))
    metrics.readOldestDueAge(() => 12)
    expect(await lines(metrics, 'patchbay_accounts{')).toEqual([])
    expect(await lines(metrics, 'patchbay_database_figures')).toEqual(['patchbay_database_figures 0'])
    expect(await lines(metrics, 'patchbay_oldest_due_age_seconds')).toEqual(['patchbay_oldest_due_age_seconds 12'])
    answer([{ count: 3 }])
    expect(await lines(metrics, 'patchbay_accounts')).toEqual(['patchbay_accounts 3'])
    expect(await lines(metrics, 'patchbay_database_figures')).toEqual(['patchbay_database_figures 1'])
  })

  it('count requests to third parties by integration and class, and bound the integrations', async () => {
    const metrics = new Metrics()
    for (const each of ['success', 'timeout', 'network_error', 'invalid_response'] as const)
      metrics.observeOutboundCall({ integrationName: 'stripe', class: each })
    expect(await lines(metrics, 'patchbay_outbound_calls_total')).toEqual([
      'patchbay_outbound_calls_total{integration="stripe",class="ok"} 1',
      'patchbay_outbound_calls_total{integration="stripe",class="unreachable"} 2',
      'patchbay_outbound_calls_total{integration="stripe",class="error"} 1',
    ])
    for (let each = 0; each < 1_000; each++)
      metrics.observeOutboundCall({ integrationName: `own-${each}`, class: 'success' })
    const all = await lines(metrics, 'patchbay_outbound_calls_total')
    expect(all).toHaveLength(203)
    expect(all.at(-1)).toBe('patchbay_outbound_calls_total{integration="other",class="ok"} 801')
  })

  it('have names that say where they are from and in which unit', () => {
    for (const { name, type } of Object.values(METRICS)) {
      expect(name).toMatch(/^patchbay_[a-z_]+$/)
      expect(name.endsWith('_total')).toBe(type === 'counter')
    }
  })
})

describe('a sampled value', () => {
  it('is read once for all who ask within its time', async () => {
    let reads = 0
    const read = throttledRead(async () => ++reads, { intervalMs: 60_000, dutyCycleMax: 1 })
    expect(await Promise.all([read(), read(), read()])).toEqual([1, 1, 1])
    expect(await read()).toBe(1)
  })

  it('is read again after its time', async () => {
    let reads = 0
    const read = throttledRead(async () => ++reads, { intervalMs: 0, dutyCycleMax: Number.POSITIVE_INFINITY })
    expect([await read(), await read()]).toEqual([1, 2])
  })

  it('is read less often when reading takes long', async () => {
    let reads = 0
    const slow = async () => {
      for (const end = performance.now() + 5; performance.now() < end; );
      return ++reads
    }
    const read = throttledRead(slow, { intervalMs: 0, dutyCycleMax: 0.0001 })
    expect([await read(), await read()]).toEqual([1, 1])
  })

  it('that cannot be read is undefined, and tried again after its time', async () => {
    let reads = 0
    const read = throttledRead(
      async () => {
        if (++reads === 1) throw new Error('no database')
        return reads
      },
      { intervalMs: 0, dutyCycleMax: Number.POSITIVE_INFINITY },
    )
    expect([await read(), await read()]).toEqual([undefined, 2])
  })
})
