import { globSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '../../src/foundation/base/index.ts'
import type { Db } from '../../src/foundation/database/index.ts'
import type { DueTable, Lease } from '../../src/foundation/queue/index.ts'
import { claimDue } from '../../src/foundation/queue/sql/due.ts'

const SRC = join(import.meta.dirname, '../../src')

type AnyTable = DueTable<Record<string, unknown>>

/** Every `DueTable` of the sources, by the file that exports it. */
export const DUE_TABLES: Readonly<Record<string, AnyTable>> = Object.fromEntries(
  (
    await Promise.all(
      globSync('**/sql/*.ts', { cwd: SRC }).map(async (path) => {
        const exported: Readonly<Record<string, unknown>> = await import(join(SRC, path))
        return Object.values(exported)
          .filter(isDueTable)
          .map((table) => [path, table] as const)
      }),
    )
  ).flat(),
)

/** Leases due rows. */
export async function claimOf(
  tx: Db,
  table: AnyTable,
  { regions, limit = 16 }: { readonly regions?: readonly string[]; readonly limit?: number } = {},
): Promise<readonly Lease<Record<string, unknown>>[]> {
  return await claimDue(tx, table, { leaseId: newId(), leaseMs: 60_000, regions, limit })
}

function isDueTable(exported: unknown): exported is AnyTable {
  return typeof exported === 'object' && exported !== null && 'table' in exported && 'due' in exported
}
