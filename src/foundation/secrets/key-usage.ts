import { sealedPrefix } from '../base/sealer.ts'
import type { Database, Db } from '../database/database.ts'
import { isForeignKeyViolation } from '../database/errors.ts'
import type { KeyRing } from './key-ring.ts'
import { CLIENT_VALUES, type SealedValues } from './secret-store.ts'
import { countDataKeys, deleteKeyEncryptionKey, registerKeyEncryptionKey } from './sql/data-key.ts'
import { type KeyRingProcess, listKeyRingProcesses } from './sql/key-process.ts'

/** What a key encryption key is used for. */
export interface KeyUsage {
  readonly id: string
  /** Whether this process has it. */
  readonly isConfigured: boolean
  /** Data keys that encrypt new values, and those that newer ones have replaced. */
  readonly current: number
  readonly replaced: number
  /** Values under these data keys, in the database. */
  readonly rows: number
  /** In the object store. */
  readonly objects: number
}

/** What all key encryption keys are used for. */
export interface KeyUsages {
  /** Those of the ring first, in its order. */
  readonly keys: readonly KeyUsage[]
  /** Values whose data key is gone, by column. */
  readonly withoutKey: readonly { readonly name: string; readonly count: number }[]
}

/** Counts data keys, rows and objects under each key encryption key. Reads every sealed value's first bytes. */
export async function readKeyUsages(
  tx: Db,
  ring: Pick<KeyRing, 'ids'>,
  sealedValues: readonly SealedValues[],
): Promise<KeyUsages> {
  const dataKeys = new Map((await countDataKeys(tx)).map((each) => [each.id, each]))
  const counted: { readonly name: string; readonly counts: Awaited<ReturnType<SealedValues['count']>> }[] = []
  for (const values of sealedValues) counted.push({ name: values.name, counts: await values.count(tx) })
  const all = counted.flatMap(({ counts }) => counts)
  const ids = new Set([...ring.ids, ...dataKeys.keys()])
  const keys = [...ids].map((id) => {
    const { current = 0, replaced = 0 } = dataKeys.get(id) ?? {}
    const under = all.filter(({ keyEncryptionKeyId }) => keyEncryptionKeyId === id)
    return {
      id,
      isConfigured: ring.ids.includes(id),
      current,
      replaced,
      rows: sum(under.map(({ rows }) => rows)),
      objects: sum(under.map(({ objects }) => objects)),
    }
  })
  const withoutKey = counted.map(({ name, counts }) => ({
    name,
    count: sum(counts.flatMap((each) => (each.keyEncryptionKeyId === null ? [each.rows + each.objects] : []))),
  }))
  return { keys, withoutKey: withoutKey.filter(({ count }) => count > 0) }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** Why a key encryption key cannot be retired. */
export type RetirementObstacle =
  /** It wraps data keys: they are to be rewrapped first. */
  | { readonly kind: 'in_use'; readonly dataKeys: number; readonly rows: number; readonly objects: number }
  /** It is the key that the given settings write with. */
  | { readonly kind: 'first' }
  /** Runs of daemons have a position in a list that is sealed under it, until their next page. */
  | { readonly kind: 'positions'; readonly runs: number }
  /** A live process does not have the key that is to write instead, or still writes with the one to be retired. */
  | { readonly kind: 'process'; readonly process: KeyRingProcess; readonly isWriter: boolean }

/** Whether a process has the key of that id: the same one as the ring, where that has it. */
function hasKey({ knownKeys }: KeyRingProcess, { names }: Pick<KeyRing, 'names'>, id: string): boolean {
  const isOfId = (name: string) => name.startsWith(`${id}:`)
  const name = names.find(isOfId)
  return name === undefined ? knownKeys.some(isOfId) : knownKeys.includes(name)
}

/** What may need a key encryption key. */
export interface RetirementChecks {
  readonly sealedValues: readonly SealedValues[]
  /** Unfinished runs of daemons whose checkpoint has a sealed position that begins with a prefix. */
  readonly countPositions: (tx: Db, prefix: string) => Promise<number>
}

/**
 * Retires a key encryption key: nothing is wrapped under it, and no live process needs it.
 *
 * Decided by the database: a data key that a transaction under way is storing under it makes this wait, and then fail as
 * `in_use`.
 *
 * @returns the first obstacle; `undefined`: it may be taken out of the settings of every process
 */
export async function retireKey(
  database: Pick<Database, 'pool' | 'transaction'>,
  ring: KeyRing,
  id: string,
  { sealedValues, countPositions }: RetirementChecks,
): Promise<RetirementObstacle | undefined> {
  const [successor] = ring.names.filter((name) => !name.startsWith(`${id}:`))
  if (successor === undefined || ring.ids[0] === id) return { kind: 'first' }
  const processes = await listKeyRingProcesses(database.pool)
  for (const process of processes) {
    const isWriter = process.writesWith === id
    if (isWriter || !process.knownKeys.includes(successor)) return { kind: 'process', process, isWriter }
  }
  const runs = ring.ids.includes(id)
    ? await countPositions(database.pool, sealedPrefix(ring.deriveKey(id, CLIENT_VALUES)))
    : 0
  if (runs > 0) return { kind: 'positions', runs }
  try {
    await database.transaction(async (tx) => {
      await registerKeyEncryptionKey(tx, successor.split(':')[0] ?? '')
      await deleteKeyEncryptionKey(tx, id)
    })
    return undefined
  } catch (error) {
    if (!isForeignKeyViolation(error)) throw error
    const usage = (await readKeyUsages(database.pool, ring, sealedValues)).keys.find((key) => key.id === id)
    const { current = 0, replaced = 0, rows = 0, objects = 0 } = usage ?? {}
    return { kind: 'in_use', dataKeys: current + replaced, rows, objects }
  }
}

/** A live process that lacks a key under which something is wrapped, or that the given ring writes with. */
export interface LackingProcess {
  readonly process: KeyRingProcess
  readonly keys: readonly string[]
}

/** Live processes, and which of the needed keys each lacks. */
export async function checkProcesses(
  tx: Db,
  ring: Pick<KeyRing, 'ids' | 'names'>,
  usages: readonly Pick<KeyUsage, 'id' | 'current' | 'replaced'>[],
): Promise<readonly LackingProcess[]> {
  const used = usages.filter(({ current, replaced }) => current + replaced > 0).map(({ id }) => id)
  const needed = [...new Set([...ring.ids.slice(0, 1), ...used])]
  const processes = await listKeyRingProcesses(tx)
  return processes.map((process) => ({
    process,
    keys: needed.filter((id) => !hasKey(process, ring, id)),
  }))
}
