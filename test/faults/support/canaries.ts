import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database, query as readRows } from '../../../src/database/database.ts'
import { SECRET_ENCODINGS } from '../../support/secret-encodings.ts'

/** Secrets by the slot they are planted in: unique texts that nothing else contains. */
export class Canaries {
  readonly #planted = new Map<string, string>()

  /** A secret for a slot, always the same; fit for headers, with characters that encodings change. */
  of(slot: string): string {
    const known = this.#planted.get(slot)
    if (known !== undefined) return known
    const planted = `${MARK}${randomBytes(6).toString('hex')}+${slot}=&${randomBytes(6).toString('hex')}`
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

/** Every planted secret begins with it. */
const MARK = 'cnry/'
/** Characters around a mark in which the secret that it begins may be, in its longest encoding. */
const WINDOW = 2_000

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

/** Every secret found, as `place: slot, encoding`, once each. Secrets without a mark are looked for everywhere. */
export function findCanaries(canaries: Canaries, haystacks: readonly Haystack[]): readonly string[] {
  const needles = canaries.needles()
  const isMarked = ({ slot }: Needle) => canaries.of(slot).startsWith(MARK)
  const [marked, unmarked] = [needles.filter(isMarked), needles.filter((needle) => !isMarked(needle))]
  const hits = new Set<string>()
  for (const { place, text } of haystacks) {
    const lower = text.toLowerCase()
    const windows = windowsOf(lower)
    const found = [
      ...unmarked.filter((needle) => lower.includes(needle.text)),
      ...(windows === '' ? [] : marked.filter((needle) => windows.includes(needle.text))),
    ]
    for (const { slot, encoding } of found) hits.add(`${place}: ${slot}, ${encoding}`)
  }
  return [...hits].sort()
}

const MARKS: ReadonlySet<string> = new Set(
  [
    ...Object.values(SECRET_ENCODINGS).map((encode) => encode(MARK.slice(0, -1))),
    ...[0, 1, 2].map((offset) => base64At(MARK, offset)),
  ].map((text) => text.toLowerCase()),
)

/** The text around every mark, in any encoding; thousands of needles in megabytes of files would take hours. */
function windowsOf(lower: string): string {
  const windows: string[] = []
  for (const mark of MARKS)
    for (let at = lower.indexOf(mark), end = 0; at !== -1; at = lower.indexOf(mark, at + 1)) {
      if (at < end) continue
      end = at + WINDOW
      windows.push(lower.slice(Math.max(0, at - WINDOW), end + WINDOW))
    }
  return windows.join('\n')
}

/** The characters of base64 that depend on the text alone when so many bytes stand before it. */
function base64At(text: string, offset: number): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(text)])
  return bytes.toString('base64').slice([0, 2, 3][offset], Math.floor((bytes.length * 4) / 3))
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
