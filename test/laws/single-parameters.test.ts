import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startTestApp } from '../support/app.ts'

const app = await startTestApp()
const SRC = join(import.meta.dirname, '../../src')
const ROWS = app.routes.flatMap(({ path, verbs, isPrefix = false, singleParameters = [] }) =>
  singleParameters.map((name) => ({ path, name, verb: verbs[0] ?? '', address: isPrefix ? `${path}x/y` : path })),
)

/** Files that read the whole query: names of a caller's choice, beside the parameters of the route. */
const READ_THE_WHOLE = [
  'server/api/http/custom.ts',
  'server/api/http/proxy.ts',
  'server/api/http/unified.ts',
  'server/api/mcp-management/route.ts',
  'server/page/open-routes.ts',
]

describe('a parameter of an HTTP route that is read as one value', () => {
  it('is one of at least ten', () => {
    expect(ROWS.length).toBeGreaterThan(10)
  })

  it.each(ROWS)('is rejected when it is given twice: $verb $path $name', async ({ address, verb, name }) => {
    const headers = { authorization: `Bearer ${app.first.environmentToken}` }
    for (const query of [
      `${name}=a&${name}=b`,
      `${name}=a&x=1&%${name.charCodeAt(0).toString(16)}${name.slice(1)}=a`,
    ]) {
      const answer = await fetch(`${app.url}${address}?${query}`, { method: verb, headers })
      const text = await answer.text()
      expect(answer.status, text).toBe(400)
      if (!answer.headers.get('content-type')?.startsWith('text/html'))
        expect(text).toContain(`"field":"${name}","description":"is given more than once"`)
    }
  })

  it('is named by its route: nothing else reads the query of one', () => {
    const files = globSync('server/{api/http,api/mcp-management,page}/**/*.ts', { cwd: SRC })
    const reading = files.filter((file) => /exchange\.query/.test(readFileSync(join(SRC, file), 'utf8')))
    expect(reading.sort()).toEqual(READ_THE_WHOLE)
  })
})
