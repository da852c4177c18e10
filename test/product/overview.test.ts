import { describe, expect, it } from 'vitest'
import { OverviewService } from '../../gen/patchbay/v1/overview_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import { execute } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'

const app = await startTestApp()
const { environmentId } = app.first
const { getActivity, getOverview } = OverviewService.method
const HOURS = ['2031-03-01T12:00:00Z', '2031-03-01T13:00:00Z', '2031-03-02T00:00:00Z']
const [installation, other] = [newId(), newId()].sort() as [string, string]

await execute(
  app.database.pool,
  `insert into call_hour (environment_id, hour, environment_integration_id, class, counts)
   select owner, hour, installation, class, '{1,0,2,0,0,0,0,0,3}'
   from unnest(:owners::uuid[]) owner, unnest(:HOURS::timestamptz[]) hour, unnest(:installations::uuid[]) installation,
     unnest('{success,error}'::text[]) class`,
  { owners: [environmentId, newId()], HOURS, installations: [installation, other] },
)

describe.each(app.clients())('activity over $wire', (client) => {
  const pageOf = async (request: JsonObject) => {
    const { activity = [], next_page_token: next = '' } = await client.ok(getActivity, request)
    return { items: activity as JsonObject[], next: String(next) }
  }
  const keyOf = ({ hour, environment_integration_id: id, class: ofClass }: JsonObject) => [hour, id, ofClass].join(' ')

  it('is by hour, installation and class, newest first, with a histogram of durations', async () => {
    const { activity, duration_bounds_ms: bounds } = await client.ok(getActivity, {})
    expect(bounds).toEqual([50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000])
    expect(activity).toHaveLength(12)
    expect((activity as JsonObject[])[0]).toEqual({
      hour: '2031-03-02T00:00:00.000Z',
      environment_integration_id: other,
      class: 'success',
      count: 6,
      duration_counts: [1, 0, 2, 0, 0, 0, 0, 0, 3],
    })
  })

  it('walks through all of it once, a page at a time', async () => {
    const whole = await pageOf({})
    const seen: JsonObject[] = []
    let token = ''
    do {
      const { items, next } = await pageOf({ page_size: 5, page_token: token })
      seen.push(...items)
      token = next
    } while (token !== '')
    expect(seen.map(keyOf)).toEqual(whole.items.map(keyOf))
  })

  it('is limited to hours and an installation', async () => {
    const { items } = await pageOf({
      environment_integration_id: installation,
      since: '2031-03-01T12:30:00Z',
      until: '2031-03-02T00:00:00Z',
    })
    expect(items.map(keyOf)).toEqual(
      ['success', 'error'].map((ofClass) => `2031-03-01T13:00:00.000Z ${installation} ${ofClass}`),
    )
    const range = { since: '2031-03-02T00:00:00Z', until: '2031-03-02T00:00:00Z' }
    expect(await client.callError(getActivity, range)).toMatchObject({ reason: 'INVALID_FIELD' })
  })

  it('has figures of states, none where there is nothing', async () => {
    expect(await client.ok(getOverview, {})).toEqual({
      accounts: [],
      triggers: [],
      runs: [],
      deliveries: [],
      inbound_events: [],
    })
  })
})
