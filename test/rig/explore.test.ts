import { appendFileSync, writeFileSync } from 'node:fs'
import { test } from 'vitest'
import { SHIPPED_NAMES } from '../../src/catalog/index.ts'
import { journey } from './journey.ts'
import { startRigApp } from './rig-app.ts'

const app = await startRigApp()
const only = process.env.RIG?.split(',')
const OUT = '/tmp/rig-out.txt'
writeFileSync(OUT, '')
test.each(SHIPPED_NAMES.filter((n) => !only || only.includes(n)))('%s', async (name) => {
  const out: string[] = []
  try {
    for (const [step, o] of await journey(app, name))
      out.push(
        `${name} | ${step} | ${o.kind} ${o.kind === 'failed' ? o.reason : o.kind === 'not_applicable' ? o.why : ''}`,
      )
  } catch (e) {
    out.push(`${name} | CRASH ${(e as Error).stack}`)
  }
  appendFileSync(OUT, `${out.join('\n')}\n`)
})
