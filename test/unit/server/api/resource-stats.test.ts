import { create, fromJson, toJson } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { ResourceStatsSchema } from '../../../../gen/patchbay/v1/sync_job_run_pb.ts'
import { shapeOf } from '../../../../src/server/api/services/shape.ts'
import { resourceStatsFromProto } from '../../../../src/server/api/services/sync-job-run.convert.ts'
import type { ResourceStats } from '../../../../src/sync/runs/index.ts'

const BEGUN: ResourceStats = {
  resource: 'repos',
  method: 'list',
  pages: 1,
  fetched: 2,
  delivered: 2,
  failed: 0,
  complete: false,
}
const ENDED: ResourceStats = { ...BEGUN, stopReason: 'short_page', complete: true }
const TABLE: readonly (readonly [string, ResourceStats])[] = [
  ['that has begun', BEGUN],
  ['that has ended', ENDED],
  ['of a third party that claims nothing', { ...ENDED, distinct: 2, duplicates: 0 }],
  ['of a third party that claims there are none', { ...ENDED, claimedTotal: 0 }],
  ['that was counted in part', { ...ENDED, fetched: 12_000, distinct: 10_000, duplicates: 100, isEstimate: true }],
]

describe('the counters of a node', () => {
  it.each(TABLE)('%s come back from a daemon as they were shown to it', (_, stats) => {
    const message = create(ResourceStatsSchema, shapeOf(ResourceStatsSchema).from<ResourceStats>()(stats))
    const received = fromJson(ResourceStatsSchema, toJson(ResourceStatsSchema, message))
    expect(resourceStatsFromProto(received)).toEqual(stats)
  })
})
