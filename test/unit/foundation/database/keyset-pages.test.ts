import { describe, expect, it } from 'vitest'
import { Failure, newId } from '../../../../src/foundation/base/index.ts'
import { decodePageToken, readPageSize, toPage } from '../../../../src/foundation/database/index.ts'
import { encodePageToken } from '../../../../src/foundation/database/keyset-pages.ts'
import { parseEtag, toEtag } from '../../../../src/server/api/services/values.convert.ts'

const QUERY = { list: 'sync_job_run', environment_id: newId(), status: 'failed' }

function reasonOf(work: () => unknown): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return error instanceof Failure ? error.reason : String(error)
  }
}

describe('a page token', () => {
  it('gives back the cursor it was made of', () => {
    const cursor = [Date.UTC(2026, 10, 5), newId()]
    expect(decodePageToken(QUERY, encodePageToken(QUERY, cursor), ['time', 'uuid'])).toEqual(cursor)
  })

  it('is good for a query whose keys come in another order', () => {
    const cursor = [newId()]
    const reordered = { status: QUERY.status, environment_id: QUERY.environment_id, list: QUERY.list }
    expect(decodePageToken(reordered, encodePageToken(QUERY, cursor))).toEqual(cursor)
  })

  it('stands for the first page when it is empty or absent', () => {
    expect([decodePageToken(QUERY, ''), decodePageToken(QUERY, undefined)]).toEqual([undefined, undefined])
  })

  const id = newId()
  it.each([
    ['of another filter', encodePageToken({ ...QUERY, status: 'completed' }, [id])],
    ['of another environment', encodePageToken({ ...QUERY, environment_id: newId() }, [id])],
    ['that is not base64url', 'a+b='],
    ['that is short', 'abc'],
    ['that is cut', encodePageToken(QUERY, [id]).slice(0, -4)],
    ['that holds something other than a uuid', encodePageToken(QUERY, ["'; drop table team"])],
    ['that holds too little', encodePageToken(QUERY, [])],
    ['that holds too much', encodePageToken(QUERY, [id, id])],
    ['that is too long', 'a'.repeat(3000)],
    ['with a NUL', '\u0000'],
  ])('%s is refused', (_, token) => {
    expect(reasonOf(() => decodePageToken(QUERY, token))).toBe('PAGE_TOKEN_INVALID')
  })

  it('with a time beyond the calendar is refused', () => {
    const token = encodePageToken(QUERY, [9e15, id])
    expect(reasonOf(() => decodePageToken(QUERY, token, ['time', 'uuid']))).toBe('PAGE_TOKEN_INVALID')
  })
})

describe('a page', () => {
  it('of exactly the asked-for rows is the last', () => {
    expect(toPage(QUERY, ['a', 'b'], 2, (item) => [item])).toEqual({ items: ['a', 'b'], nextPageToken: '' })
  })

  it('continues after its last row when one more was found', () => {
    const page = toPage(QUERY, [{ id: newId() }, { id }, { id: newId() }], 2, (item) => [item.id])
    expect(page.items).toHaveLength(2)
    expect(decodePageToken(QUERY, page.nextPageToken)).toEqual([id])
  })

  const id = newId()
  it.each([
    [undefined, 50],
    [0, 50],
    [1, 1],
    [1000, 1000],
    [100_000, 1000],
  ])('asked for %s rows holds %s', (pageSize, expected) => {
    expect(readPageSize(pageSize === undefined ? {} : { pageSize })).toBe(expected)
  })

  it('of a negative size is refused', () => {
    expect(reasonOf(() => readPageSize({ pageSize: -1 }))).toBe('INVALID_FIELD')
  })
})

describe('an etag', () => {
  it('is a quoted entity tag and stands for its version', () => {
    expect(toEtag(7)).toBe('"v7"')
    expect([parseEtag(toEtag(7)), parseEtag('v7')]).toEqual([7, 7])
  })

  it.each(['', 'v', '7', 'W/"v7"', '"v7', 'v7"', 'v-1', 'v99999999999999', '*'])(
    'that was never made here (%s) stands for no version',
    (text) => {
      expect(parseEtag(text)).toBe(0)
    },
  )
})
