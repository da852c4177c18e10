import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasManyCases, someCases } from '../../support/case-count.ts'
import { BROWSER_STEPS, chaptersWithSteps, FIRST_STEPS, GUIDES, stepsOf } from '../../support/documented-steps.ts'
import { freePort, type RunningProduct, removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { ShellSession } from '../../support/shell-session.ts'

/** What the output of a guide has to have, beside no error. */
const EXPECTED: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  'A definition of your own': [
    /tracker\.json: .*2 resources with 2 methods/,
    'projects: 4 read, 4 delivered, 1 page, complete',
    'tickets: 11 read, 11 delivered, 4 pages, complete',
  ],
  'guides/agents.md': ['"mcpServers"', '"list_repositories"', '/mcp/management'],
  'guides/daemon.md': ['repositories: 4 read, 4 delivered', '"full_name":"octocat/hello-world"'],
  'guides/operate.md': [
    '"cause":"call"',
    '"cause":"run"',
    /GET http\S+ {2}200 success {2}\d+ ms {2}run/,
    'k1 is the first key in',
    'every process has the keys it needs',
    'data keys were wrapped under k1',
    'local is retired',
    /k1 +first .*\n(?!local)/,
    /all values are under new data keys|values are left/,
  ],
  'guides/unified.md': [
    '"name":"octocat/hello-world"',
    /"stars":\d/,
    '"response.fields.stars":"account"',
    'crm/contacts list of hubspot: list',
    'crm/hubspot: ',
  ],
  'guides/webhooks.md': [
    '"event_types":["record:*"]',
    '"secret":"whsec_',
    '"state":"delivered"',
    '"attempts":[{',
    '"kind":"replay_missing_deliveries"',
    /^HTTP\/1.1 200[\s\S]*^HTTP\/1.1 200/m,
    '"event":"record:created"',
    /"state":"processed".*"state":"routed"|"state":"routed".*"state":"processed"/,
  ],
}

/** npm takes longer to start than the commands that it runs: in CI's run alone. */
const WITHOUT_NPM = { 'npm run -s patchbay --': 'node src/main.ts' }

const OWN_DEFINITION = 'A definition of your own'
const GUIDES_HERE = GUIDES.filter((page) => page !== 'README.md' && page !== BROWSER_STEPS.guide).filter(
  (page) => stepsOf(page).length > 0,
)

let product: RunningProduct
let shell: ShellSession
const dataDir = temporaryDataDir()

beforeAll(async () => {
  product = await startProduct({ dataDir, environment: { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' } })
  const folder = join(dataDir, 'client')
  mkdirSync(folder)
  shell = new ShellSession(
    { PATCHBAY_DATA_DIR: dataDir, PATCHBAY_PORT: String(product.port) },
    {
      'localhost:8080': `127.0.0.1:${product.port}`,
      './.patchbay': dataDir,
      '.mcp.json': join(folder, 'mcp.json'),
      '9000': String(await freePort()),
      ...(hasManyCases() ? {} : WITHOUT_NPM),
    },
  )
})

afterAll(async () => {
  shell[Symbol.dispose]()
  await product.stop()
  removeDataDir(dataDir)
})

it('the first steps of the README work in order against the local GitHub', async () => {
  const steps = stepsOf('README.md', FIRST_STEPS).join('\n')
  expect(steps).toContain('eval "$(npm run -s github-stand-in)"')
  const { exitCode, output } = await shell.run(`trap 'kill $STAND_IN_PID' EXIT\n${steps}`)
  expect(exitCode, output).toBe(0)
  expect(output).not.toContain('"error"')
  expect(output).toMatch(/run \S+ completed/)
  expect(output).toContain('"cronExpression": "0 6 * * *"')
})

it('every chapter and guide with steps is run', () => {
  expect(chaptersWithSteps('README.md')).toEqual([FIRST_STEPS, BROWSER_STEPS.chapter, OWN_DEFINITION])
  expect(Object.keys(EXPECTED)).toEqual([OWN_DEFINITION, ...GUIDES_HERE])
})

describe.concurrent('after the first steps', () => {
  it.each(someCases(Object.keys(EXPECTED), 2))('those of %s work', async (name) => {
    const steps = name.endsWith('.md') ? stepsOf(name) : stepsOf('README.md', name)
    const { exitCode, output } = await shell.runApart(steps.join('\n'))
    expect(exitCode, output).toBe(0)
    expect(output).not.toMatch(/"error":\{"code"/)
    for (const expected of EXPECTED[name] ?? []) expect(output).toMatch(expected)
  })
})
