import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database, query as readRows } from '../../../../src/foundation/database/database.ts'
import { SECRET_ENCODINGS } from '../../../support/secret-encodings.ts'

/** Secrets by the slot they are planted in: unique texts that nothing else contains. */
export class Canaries {
  readonly #planted = new Map<string, string>()

  /** A secret for a slot, always the same; fit for headers, with characters that encodings change. */
  of(slot: string): string {
    const known = this.#planted.get(slot)
    if (known !== undefined) return known
    const planted = `cnry/${randomBytes(6).toString('hex')}+${slot}=&${randomBytes(6).toString('hex')}`
    this.#planted.set(slot, planted)
    return planted
  }

  /** Watches for a secret that the product made. */
  add(slot: string, secret: string): void {
    this.#planted.set(slot, secret)
  }

  get count(): number {
    return this.#planted.size
  }

  /** Every encoding of every secret, in small letters. */
  needles(): readonly Needle[] {
    return [...this.#planted].flatMap(([slot, secret]) =>
      Object.entries(SECRET_ENCODINGS).flatMap(([encoding, encode]) =>
        // Of base64 the characters at both ends depend on the text around.
        encoding.includes('ase64') || encoding.includes('Basic')
          ? base64Cores(secret).map((text) => ({ slot, encoding, text }))
          : [{ slot, encoding, text: encode(secret).toLowerCase() }],
      ),
    )
  }
}

/** Characters of the start of a needle by which it is looked up: one pass over a text for thousands of needles. */
const START_LENGTH = 8

export interface Needle {
  readonly slot: string
  readonly encoding: string
  readonly text: string
}

/** What third parties put around a secret moves it by 0, 1 or 2 bytes. */
function base64Cores(secret: string): string[] {
  return [0, 1, 2].flatMap((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]).toString('base64')
    const core = text.slice(4, -4).toLowerCase()
    return [core, core.replaceAll('+', '-').replaceAll('/', '_'), encodeURIComponent(core).toLowerCase()]
  })
}

/** Texts that must hold no secret, by where they come from. */
export interface Haystack {
  readonly place: string
  readonly text: string
}

/** Every secret found, as `place: slot, encoding`, once each. */
export function findCanaries(canaries: Canaries, haystacks: readonly Haystack[]): readonly string[] {
  const byStart = Map.groupBy(canaries.needles(), ({ text }) => text.slice(0, START_LENGTH))
  const hits = new Set<string>()
  for (const { place, text } of haystacks) {
    const lower = text.toLowerCase()
    for (let at = 0; at <= lower.length - START_LENGTH; at++)
      for (const needle of byStart.get(lower.slice(at, at + START_LENGTH)) ?? [])
        if (lower.startsWith(needle.text, at)) hits.add(`${place}: ${needle.slot}, ${needle.encoding}`)
  }
  return [...hits].sort()
}

/** Columns whose bytes are sealed; they are looked at like any other, and hold no plain text. */
export async function columnsOf(database: Database, read: typeof readRows): Promise<readonly Haystack[]> {
  const columns = await read<{ name: string; column: string; type: string }>(
    database.pool,
    `select format('%I.%I', table_schema, table_name) as name, column_name as column, data_type as type
     from information_schema.columns join information_schema.tables using (table_schema, table_name)
     where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
  )
  const found: Haystack[] = []
  for (const { name, column, type } of columns) {
    const value = type === 'bytea' ? `encode("${column}", 'escape')` : `"${column}"::text`
    const values = await read<{ value: string | null }>(database.pool, `select ${value} as value from ${name}`)
    found.push({ place: `table ${name}.${column}`, text: values.map((row) => row.value ?? '').join('\n') })
  }
  return found
}

/** Every file below a directory as text, but for the named ones. */
export function filesOf(directory: string, except: readonly string[] = []): readonly Haystack[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !except.includes(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ place: `file ${path.slice(directory.length)}`, text: readFileSync(path).toString('latin1') }))
}
