import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { query } from '../../src/foundation/database/index.ts'
import { testDatabase } from '../support/database.ts'

const ROOT = join(import.meta.dirname, '../..')
const { database } = await testDatabase()
/** Columns that say from when on a worker may take a row. */
const DUE = '(?:due|available|upload|delete)_at'

it('no default of a time that is compared with now() is rounded into the future', async () => {
  const columns = await query<{ readonly name: string }>(
    database.pool,
    `select table_name || '.' || column_name as name from information_schema.columns
     where table_schema = 'public' and column_name ~ :due and column_default = 'now()' and datetime_precision < 6`,
    { due: `${DUE}$` },
  )
  expect(columns).toEqual([])
})

/** Columns whose time a test lets come, or pass. */
const AWAITED = '(?:due|available|upload|delete|attempt|fire|expires|retry|warning)_at'

it.each([
  ['src', DUE],
  ['test', AWAITED],
])('no statement of %s makes something due at a time that is rounded into the future', (folder, columns) => {
  const rounded = new RegExp(`${columns} = (?:case [^,\n]*)?(?<!', )now\\(\\)(?! [+-])`, 'g')
  const found = globSync(`${folder}/**/*.ts`, { cwd: ROOT }).flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(rounded)].map(([text]) => `${file}: ${text}`),
  )
  expect(found).toEqual([])
})
