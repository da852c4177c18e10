import { resolve } from 'node:path'
import { openNdjsonStore } from './ndjson-store.ts'
import { openPostgresStore } from './postgres-store.ts'
import type { Store } from './store.ts'

/** Which store, and how it is used. */
export interface StoreOptions {
  /** `postgres://…` or `ndjson:DIR`. */
  readonly address: string
  /** Of the tables in PostgreSQL. */
  readonly schema: string
  /** Runs that write at once at most. */
  readonly writers: number
}

const NDJSON = 'ndjson:'
const POSTGRES = /^postgres(ql)?:\/\//

/** Opens the store that an address names, without a connection yet. @returns `undefined` for an address of no store */
export function openStore({ address, schema, writers }: StoreOptions): Store | undefined {
  if (POSTGRES.test(address)) return openPostgresStore({ url: address, schema, poolMax: writers })
  const directory = address.startsWith(NDJSON) ? address.slice(NDJSON.length) : ''
  return directory === '' ? undefined : openNdjsonStore(resolve(directory))
}
