import type { JsonObject } from '../../base/index.ts'
import type { Page } from './paginator.ts'

/**
 * What the expressions of a pagination config see: `status`, `headers`, `body`, `records`, `count`, `last_record`, `url`,
 * `limit`, and whatever the caller adds (`page` number, `total_seen`).
 */
export function pageRoots({ status, headers, body, records, url, limit }: Page, more: JsonObject = {}): JsonObject {
  return {
    status,
    headers,
    body,
    records,
    count: records.length,
    last_record: records.at(-1) ?? null,
    url,
    limit: limit ?? null,
    ...more,
  }
}
