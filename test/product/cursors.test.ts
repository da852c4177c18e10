import { afterAll, expect, it } from 'vitest'
import { runCursorGuard } from '../lab/faults/support/cursor-guard.ts'
import { startPagedUpstream } from '../lab/faults/support/paged-upstream.ts'
import { startTestApp } from '../support/app.ts'
import { someCases } from '../support/case-count.ts'
import { createApiTenant } from '../support/seeded-tenant.ts'

const app = await startTestApp({ PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' })
const upstream = await startPagedUpstream()
afterAll(() => upstream[Symbol.asyncDispose]())

/** `npm run faults cursors` tries many. */
const PLAN = {
  bytesMax: 1,
  forgedMax: 4,
  othersMax: 2,
  choose: <Place>(places: readonly Place[]) => someCases(places, 4),
}

it('a client hands back no value but those it was given, where it was given them, and leaves no path by an id', async () => {
  app.startWorker()
  const tenant = await createApiTenant(app)
  const report = await runCursorGuard({ ...app, tenant }, upstream, PLAN)
  expect(report.doors).toBeGreaterThan(60)
  // The tools of the contract are one page.
  expect(report).toMatchObject({ untried: ['tools/list'], accepted: [], broken: [], traversed: [] })
  expect(upstream.outside).toEqual([])
})
