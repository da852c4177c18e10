import fc from 'fast-check'
import { expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { queryOne } from '../../../../src/foundation/database/index.ts'
import { accountsFixture } from './fixture.ts'

const { tx } = await accountsFixture()

/** The definition of `context_lookup_keys` in SQL: a hash of each text and number at the top or in a list there. */
const EXPECTED = `array(
  select context_lookup_key(:installation, field, value #>> '{}')
  from jsonb_each(:context::jsonb) as entry (field, content),
    jsonb_array_elements(case jsonb_typeof(content) when 'array' then content else jsonb_build_array(content) end)
      with ordinality as item (value, position)
  where position <= 1000 and jsonb_typeof(value) in ('string', 'number'))`

const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null), fc.constant({ id: 7 }))
const context = fc.dictionary(fc.string(), fc.oneof(scalar, fc.array(scalar), fc.array(fc.array(scalar))))

it('finds an account by every text and number of its context, alone or in a list', async () => {
  await fc.assert(
    fc.asyncProperty(context, async (value) => {
      const keys = await queryOne<{ own: string[]; expected: string[] }>(
        tx,
        `select context_lookup_keys(:installation, :context::jsonb) as own, ${EXPECTED} as expected`,
        { installation: newId(), context: JSON.stringify(value) },
      )
      expect(keys?.own.toSorted()).toEqual(keys?.expected.toSorted())
    }),
  )
})

it('looks at the first thousand values of a list', async () => {
  const list = Array.from({ length: 1001 }, (_, index) => `v${index}`)
  const keys = await queryOne<{ count: number }>(
    tx,
    `select cardinality(context_lookup_keys(:installation, :context::jsonb)) as count`,
    { installation: newId(), context: JSON.stringify({ list }) },
  )
  expect(keys?.count).toBe(1000)
})
