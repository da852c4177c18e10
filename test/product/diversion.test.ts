import { expect, it } from 'vitest'
import { addressSettings, runDiversionGuard } from '../lab/faults/support/diversion-guard.ts'
import { startTestApp } from '../support/app.ts'

const app = await startTestApp({ PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' })

/** `npm run faults diversion` tries all. */
const PLAN = { everyNth: 31 }

it('no secret of a definition or a customer reaches a host that another team, a customer or a caller chooses', async () => {
  app.startWorker()
  const report = await runDiversionGuard(app, PLAN)
  expect(addressSettings().length).toBeGreaterThan(50)
  expect(report).toMatchObject({ leaks: [], unknown: [] })
  expect(report.reached).toBeGreaterThan(2)
})
