import { globSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const STATEMENT = /(?:(?:from|join|update) environment_integration\b|tx\('environment_integration'\))/g
/** Characters after the name of the table within which its condition stands. */
const CONDITION_WITHIN = 700

/** Statements that also see an installation whose deletion goes on: how many of a file, and why. */
const ALSO_HIDDEN: Readonly<Record<string, readonly [number, string]>> = {
  'src/sync/schedules/sql/due-trigger.ts': [1, 'the claim says so, and no tick is recorded'],
  'src/platform/integrations/sql/catalog.ts': [1, 'it is disabled, and what is disabled is not offered'],
  'src/platform/integrations/sql/client-secrets.ts': [2, 'they get what the list of the same file has found'],
  'src/platform/integrations/sql/installations.ts': [
    3,
    'the insert, which a unique index guards, and the end of a deletion',
  ],
}

it('a statement that reads installations does not see those whose deletion goes on', () => {
  const blind = globSync('src/**/*.ts').flatMap((path) => {
    const text = readFileSync(path, 'utf8')
    const found = [...text.matchAll(STATEMENT)].filter(
      ({ index }) => !/is_hidden|deleted_at/.test(text.slice(index, index + CONDITION_WITHIN)),
    )
    const [allowed = 0] = ALSO_HIDDEN[path] ?? []
    return found.slice(allowed).map(({ index }) => `${path}:${text.slice(0, index).split('\n').length}`)
  })
  expect(blind).toEqual([])
})
