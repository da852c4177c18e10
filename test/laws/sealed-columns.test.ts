import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { query } from '../../src/foundation/database/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../src/foundation/secrets/index.ts'
import { sealedValuesOf } from '../../src/server/sealed-values.ts'
import { testDatabase } from '../support/database.ts'
import { MemoryObjects } from '../support/memory-objects.ts'

const { database } = await testDatabase()
const SOURCES = join(import.meta.dirname, '../../src')

/** Columns with bytes that no data key encrypts, with the reason. */
const NOT_SEALED: Readonly<Record<string, string>> = {
  'api_token.token_hash': 'a hash',
  'connect_logo.body': 'an image',
  'connect_logo.hash': 'a hash',
  'data_key.wrapped_key': 'wrapped under a key encryption key: what `keys rotate` rewraps',
  'inbound_content.body': 'the request of a third party as it came',
  'link_session.browser_key_hash': 'a hash',
  'link_session.state_hash': 'a hash',
  'link_session.ticket_hash': 'a hash',
  'link_session.token_hash': 'a hash',
  'tool_server.token_hash': 'a hash',
}

/** Who encrypts for a column outside of `foundation/secrets/`, with the columns of the registry that it writes. */
const ENCRYPTING: Readonly<Record<string, readonly string[]>> = {
  'platform/accounts/account-remover.ts': ['account_removal.sealed'],
  'platform/call-log/content.ts': ['call_log_entry.content'],
  'server/api/services/idempotency.ts': ['idempotency_key.sealed_answer'],
  'platform/links/sealed-values.ts': ['link_session.sealed_values', 'link_session.sealed_ticket'],
  'platform/objects/context-values.ts': ['context_object.content'],
}

/** Who seals what clients hold: stored nowhere here but in the checkpoints of daemons, which `keys retire` counts. */
const SEALING = [
  'server/api/services/sealed-pages.ts',
  'platform/links/form-options.ts',
  'tools/mcp/tool-cursor.ts',
  'engine/proxy/cursor.ts',
]

const registered = sealedValuesOf(createSecretStore(parseKeyRing(generateKeyRingText('k1'))), new MemoryObjects()).map(
  ({ name }) => name,
)

it('every column with bytes is rotated, or said to hold nothing sealed', async () => {
  const columns = await query<{ name: string }>(
    database.pool,
    `select table_name || '.' || column_name as name from information_schema.columns
     where table_schema = 'public' and table_name !~ '_(default|\\d{8})$'
       and (data_type = 'bytea' or data_type in ('text', 'jsonb') and column_name ~ '(seal|cipher|encrypted|wrapped)')`,
  )
  expect(columns.map(({ name }) => name).sort()).toEqual([...registered, ...Object.keys(NOT_SEALED)].sort())
})

it('everything that encrypts for a column is known, with its columns', () => {
  const users = filesWith(/\.encrypt(All)?For\(/).filter((file) => !file.startsWith('foundation/secrets/'))
  expect(users).toEqual(Object.keys(ENCRYPTING).toSorted())
  expect([...Object.values(ENCRYPTING).flat(), 'secret.sealed'].sort()).toEqual([...registered].sort())
})

it('everything that seals what clients hold is known', () => {
  expect(filesWith(/[sS]ealer\.seal\(/)).toEqual(SEALING.toSorted())
})

it('counts every column, also where it is empty', async () => {
  const values = sealedValuesOf(createSecretStore(parseKeyRing(generateKeyRingText('k1'))), new MemoryObjects())
  for (const each of values) {
    expect(await each.count(database.pool), each.name).toEqual([])
    const key = { ownerId: crypto.randomUUID(), dataKeyId: crypto.randomUUID() }
    expect(await each.countUnder(database.pool, key), each.name).toBe(0)
  }
})

function filesWith(pattern: RegExp): readonly string[] {
  return readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && pattern.test(readFileSync(join(SOURCES, file), 'utf8')))
    .toSorted()
}
