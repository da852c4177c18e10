import { resolve } from 'node:path'
import { openNdjsonStore } from './ndjson-store.ts'
import { openPostgresStore } from './postgres-store.ts'
import type { Store } from './store.ts'

/** Address and use of a store. */
export interface StoreOptions {
  /** `postgres://…` or `ndjson:DIR`. */
  readonly address: string
  /** Schema of the tables in PostgreSQL. */
  readonly schema: string
  /** Concurrent writers at most. */
  readonly writers: number
  /** See `PostgresStoreOptions`. */
  readonly onViewProblem?: ((problem: string) => void) | undefined
}

const NDJSON = 'ndjson:'
const POSTGRES = /^postgres(ql)?:\/\//

/** Opens the store at the address, without connecting yet. @returns `undefined` for an unknown kind of address */
export function openStore({ address, schema, writers, onViewProblem }: StoreOptions): Store | undefined {
  if (POSTGRES.test(address)) return openPostgresStore({ url: address, schema, poolMax: writers, onViewProblem })
  const directory = address.startsWith(NDJSON) ? address.slice(NDJSON.length) : ''
  return directory === '' ? undefined : openNdjsonStore(resolve(directory))
}
