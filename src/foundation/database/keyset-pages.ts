import { createHash } from 'node:crypto'
import { Failure, invalidFields } from '../base/errors.ts'
import { isUuid } from '../base/ids.ts'
import { canonicalJson, type JsonObject } from '../json/json.ts'

const PAGE_SIZE_DEFAULT = 50
const PAGE_SIZE_MAX = 1_000

/** Bytes of the query's hash in a token. It detects mistakes: clients get tokens sealed (`server/api/services/sealed-pages.ts`). */
const QUERY_HASH_BYTES = 9
const TOKEN_CHARACTERS_MAX = 2_048
const TOKEN = /^[\w-]+$/

/** Keyset cursor: the values of the ordering columns in the last row of a page. Times are milliseconds since the epoch. */
export type PageCursor = readonly (string | number)[]

/** Type of one value of a cursor; checked, because a client can make up a token. */
export type CursorKind = 'uuid' | 'time' | 'text'

/** The page that a list call requests. */
export interface ListPageRequest {
  /** Absent or 0: PAGE_SIZE_DEFAULT. */
  readonly pageSize?: number
  /** Absent or empty: the first page. */
  readonly pageToken?: string
}

/** One page of a list. */
export interface ListPage<Item> {
  readonly items: readonly Item[]
  /** Empty on the last page. */
  readonly nextPageToken: string
}

/**
 * Rows per page: the default for 0 or absence, at most PAGE_SIZE_MAX.
 *
 * @throws Failure INVALID_FIELD for a negative size
 */
export function readPageSize({ pageSize = 0 }: ListPageRequest): number {
  if (pageSize < 0)
    throw invalidFields([{ field: 'page_size', description: 'must not be negative', rule: 'page_size.negative' }])
  return pageSize === 0 ? PAGE_SIZE_DEFAULT : Math.min(pageSize, PAGE_SIZE_MAX)
}

/**
 * Makes the token of the page after `cursor`, opaque to clients.
 *
 * @param query everything that decides which rows are listed and in which order, the list's name included; the token is
 * valid for the same query alone
 */
export function encodePageToken(query: JsonObject, cursor: PageCursor): string {
  return Buffer.concat([hashQuery(query), Buffer.from(JSON.stringify(cursor))]).toString('base64url')
}

/**
 * The cursor in a token; `undefined` for no token.
 *
 * @param kinds the types of the cursor's values, in order
 * @throws Failure PAGE_TOKEN_INVALID for a token of another query, or one that was not made here
 */
export function decodePageToken(
  query: JsonObject,
  token: string | undefined,
  kinds: readonly CursorKind[] = ['uuid'],
): PageCursor | undefined {
  if (token === undefined || token === '') return undefined
  const bytes = TOKEN.test(token) && token.length <= TOKEN_CHARACTERS_MAX ? Buffer.from(token, 'base64url') : undefined
  if (bytes === undefined || !bytes.subarray(0, QUERY_HASH_BYTES).equals(hashQuery(query))) throw pageTokenInvalid()
  const cursor = parseCursor(bytes.subarray(QUERY_HASH_BYTES).toString())
  if (cursor?.length !== kinds.length || !cursor.every((value, index) => isOfKind(value, kinds[index])))
    throw pageTokenInvalid()
  return cursor
}

/** A keyset range: at most `limit` rows with ids below `before`. */
interface PageRange {
  readonly before: string | undefined
  readonly limit: number
}

/**
 * Identity of a list query: a page token is valid for this query alone.
 *
 * @param ownerId the environment, or the team for a list of its resources
 * @param filter undefined values do not restrict
 */
export function listQuery(list: string, ownerId: string, filter: object = {}): JsonObject {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined)
  return {
    list,
    ownerId,
    ...Object.fromEntries(
      given.map(([name, value]) => [name, value instanceof Date ? value.toISOString() : String(value)]),
    ),
  }
}

/**
 * One page of a list ordered by id, newest first.
 *
 * @param query see `listQuery`
 * @param read reads the rows of a range: one more than the page size, which tells whether there is a next page
 * @throws Failure PAGE_TOKEN_INVALID
 */
export async function pageById<Item extends { readonly id: string }>(
  query: JsonObject,
  request: ListPageRequest,
  read: (range: PageRange) => Promise<readonly Item[]>,
): Promise<ListPage<Item>> {
  const size = readPageSize(request)
  return toPage(query, await readRange(query, request, size, read), size, idCursor)
}

/**
 * As `pageById`, of rows by their size, before they are read whole: it ends before the rows are more than `bytesMax` together, and
 * has at least one.
 *
 * @throws Failure PAGE_TOKEN_INVALID
 */
export async function pageByIdWithin<Head extends { readonly id: string; readonly bytes: number }>(
  bytesMax: number,
  query: JsonObject,
  request: ListPageRequest,
  read: (range: PageRange) => Promise<readonly Head[]>,
): Promise<ListPage<Head>> {
  const sizeMax = readPageSize(request)
  const heads = await readRange(query, request, sizeMax, read)
  const fitting = countFitting(heads, bytesMax, ({ bytes }) => bytes)
  return toPage(query, heads, Math.min(sizeMax, fitting), idCursor)
}

async function readRange<Item>(
  query: JsonObject,
  request: ListPageRequest,
  size: number,
  read: (range: PageRange) => Promise<readonly Item[]>,
): Promise<readonly Item[]> {
  const id = decodePageToken(query, request.pageToken, ['uuid'])?.[0]
  return await read({ before: id === undefined ? undefined : String(id), limit: size + 1 })
}

function idCursor({ id }: { readonly id: string }): PageCursor {
  return [id]
}

/**
 * Makes a page of the rows found, which are one more than its size when there is a next page.
 *
 * @param found at most `size + 1` rows, in order
 */
export function toPage<Item>(
  query: JsonObject,
  found: readonly Item[],
  size: number,
  cursorOf: (item: Item) => PageCursor,
): ListPage<Item> {
  const items = found.slice(0, size)
  const last = items.at(-1)
  const hasMore = found.length > size && last !== undefined
  return { items, nextPageToken: hasMore ? encodePageToken(query, cursorOf(last)) : '' }
}

/** How many of the first items are at most `bytesMax` together, and one at least. */
export function countFitting<Item>(items: readonly Item[], bytesMax: number, bytesOf: (item: Item) => number): number {
  let bytesLeft = bytesMax
  const fitting = items.findIndex((item) => {
    bytesLeft -= bytesOf(item)
    return bytesLeft < 0
  })
  return fitting === -1 ? items.length : Math.max(fitting, 1)
}

function hashQuery(query: JsonObject): Buffer {
  return createHash('sha256').update(canonicalJson(query)).digest().subarray(0, QUERY_HASH_BYTES)
}

function parseCursor(text: string): PageCursor | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isOfKind(value: string | number, kind: CursorKind | undefined): boolean {
  switch (kind) {
    case 'uuid':
      return typeof value === 'string' && isUuid(value)
    case 'time':
      return typeof value === 'number' && !Number.isNaN(new Date(value).getTime())
    case 'text':
      return typeof value === 'string' && !value.includes('\0')
    case undefined:
      return false
  }
}

function pageTokenInvalid(): Failure {
  const message = 'page_token is not one that this query returned; start again without it'
  return new Failure('PAGE_TOKEN_INVALID', message, {
    violations: [{ field: 'page_token', description: 'does not belong to this query', rule: 'page_token.invalid' }],
  })
}
