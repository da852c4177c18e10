import {
  checkProcesses,
  findUnreadableKey,
  generateKeyRingText,
  type KeyUsage,
  keyRingEntries,
  parseKeyRing,
  type RetirementObstacle,
  readKeyUsages,
  retireKey,
  rotationProgress,
} from '../../foundation/secrets/index.ts'
import { writeKeyFile } from '../../server/open-key-ring.ts'
import { countSealedPositions } from '../../sync/runs/index.ts'
import { type RunCommand, UsageError } from './command.ts'
import { type Keys, withKeys } from './open-keys.ts'
import { printError, printLine } from './output.ts'

const ID = /^[A-Za-z0-9_.-]{1,64}$/

/** Lists the key encryption keys and what is under each. */
export const runKeysList: RunCommand = ({ environment }) =>
  withKeys(environment, async (keys) => {
    const { database, ring, sealedValues } = keys
    const usages = await readKeyUsages(database.pool, ring, sealedValues)
    for (const usage of usages.keys) printLine(usageLine(usage, ring.ids[0]))
    await printRotations(keys)
    return 0
  })

function usageLine(
  { id, isConfigured, current, replaced, rows, objects }: KeyUsage,
  first: string | undefined,
): string {
  const role = id === first ? 'first' : isConfigured ? 'reads' : 'missing'
  return `${id.padEnd(12)}  ${role.padEnd(7)}  ${current + replaced} data keys  ${rows} rows  ${objects} objects`
}

async function printRotations({ database }: Pick<Keys, 'database'>): Promise<void> {
  const { toReplace, toReseal, withValuesLeft, valuesLeft, unused } = await rotationProgress({ database })
  if (toReplace + toReseal > 0)
    printLine(`${toReplace} data keys are to be replaced, ${toReseal} replaced ones still have values`)
  if (withValuesLeft > 0) printLine(`${valuesLeft} values are left under ${withValuesLeft} replaced data keys`)
  if (unused > 0) printLine(`${unused} replaced data keys have no values and are deleted within the hour`)
}

/** Makes a new key: at the beginning of the key file, or as a line with the new setting. */
export const runKeysAdd: RunCommand = ({ operands: [given], environment }) => {
  if (given !== undefined && !ID.test(given))
    throw new UsageError('keys add takes an id of up to 64 letters, digits, dots, hyphens and underscores')
  return withKeys(environment, async ({ database, ring, source, sealedValues }) => {
    const { keys } = await readKeyUsages(database.pool, ring, sealedValues)
    const taken = new Set(keys.map(({ id }) => id))
    const id = given ?? freeId(taken)
    if (taken.has(id)) throw new UsageError(`keys add: there is a key ${id}: take another id`)
    const entry = generateKeyRingText(id)
    if (source.file === undefined) {
      printLine(`PATCHBAY_ENCRYPTION_KEYS="${entry},$PATCHBAY_ENCRYPTION_KEYS"`)
      return 0
    }
    await writeKeyFile(source.file, [entry, ...keyRingEntries(await source.readText())].join(','))
    printLine(`${id} is the first key in ${source.file}. Processes have it within 10 seconds: see patchbay keys check`)
    return 0
  })
}

function freeId(taken: ReadonlySet<string>): string {
  for (let number = 1; ; number++) if (!taken.has(`k${number}`)) return `k${number}`
}

/** Ends the use of a key. */
export const runKeysRetire: RunCommand = ({ operands: [id = ''], environment }) =>
  withKeys(environment, async ({ database, ring, source, sealedValues }) => {
    const { keys } = await readKeyUsages(database.pool, ring, sealedValues)
    if (!keys.some((key) => key.id === id))
      throw new UsageError(`keys retire: there is no key ${id}: patchbay keys list shows the ids`)
    const obstacle = await retireKey(database, ring, id, { sealedValues, countPositions: countSealedPositions })
    if (obstacle !== undefined) {
      printError([`${id} cannot be retired: ${describeObstacle(obstacle, ring.ids[0] ?? '')}`])
      return 1
    }
    if (source.file !== undefined && ring.ids.includes(id))
      await removeFromFile(source.file, await source.readText(), id)
    printLine(
      source.file === undefined
        ? `${id} is retired: nothing needs it. Take it out of PATCHBAY_ENCRYPTION_KEYS of every process`
        : `${id} is retired and no longer in ${source.file}`,
    )
    printLine('Backups from before still need it: keep it with them, and destroy it when they are gone')
    return 0
  })

async function removeFromFile(file: string, text: string, id: string): Promise<void> {
  const left = keyRingEntries(text).filter((entry) => !entry.startsWith(`${id}:`))
  parseKeyRing(left.join(','))
  await writeKeyFile(file, left.join(','))
}

function describeObstacle(obstacle: RetirementObstacle, first: string): string {
  switch (obstacle.kind) {
    case 'first':
      return `it is the first key here. Make another one the first (patchbay keys add), in every process, and patchbay keys rotate`
    case 'process': {
      const { name } = obstacle.process
      return obstacle.isWriter
        ? `${name} writes with it. It writes with ${first} once ${first} is the first key there and every process has it: see patchbay keys check. ${FORGOTTEN}`
        : `${name} does not have ${first}, which is to write instead: give every process ${first}. ${FORGOTTEN}`
    }
    case 'positions':
      return `${obstacle.runs} unfinished runs of daemons have a position in a list that is sealed under it. Wait for their next page, or stop them`
    case 'in_use':
      return `${obstacle.dataKeys} data keys (${obstacle.rows} rows, ${obstacle.objects} objects) are under it. Run patchbay keys rotate`
    default:
      throw new Error(`no text for ${String(obstacle satisfies never)}`)
  }
}

/** For people who have just killed one. */
const FORGOTTEN = 'A process that was killed counts for a minute'

/** Checks that every live process has the keys it needs. */
export const runKeysCheck: RunCommand = ({ environment }) =>
  withKeys(environment, async ({ database, ring, sealedValues }) => {
    const { keys, withoutKey } = await readKeyUsages(database.pool, ring, sealedValues)
    const problems: string[] = []
    for (const usage of keys) printLine(usageLine(usage, ring.ids[0]))
    for (const { process, keys: lacking } of await checkProcesses(database.pool, ring, keys)) {
      const known = process.knownKeys.map((name) => name.split(':')[0]).join(', ')
      printLine(`${process.name}  has ${known}  writes with ${process.writesWith}`)
      if (lacking.length > 0)
        problems.push(`${process.name} lacks ${lacking.join(', ')}: give it every key that is listed, and restart it`)
    }
    const missing = await findUnreadableKey(database.pool, ring)
    if (missing !== undefined) problems.push(missingText(missing, ring.ids))
    for (const { name, count } of withoutKey)
      problems.push(
        `${count} values of ${name} have no data key: restore the row from a backup, or have them entered again`,
      )
    for (const problem of problems) printError([problem])
    if (problems.length === 0) printLine('every process has the keys it needs')
    return problems.length === 0 ? 0 : 1
  })

function missingText(id: string, ids: readonly string[]): string {
  return ids.includes(id)
    ? `the key ${id} here has other bytes than the one that data keys are wrapped under: put that one back`
    : `the key ${id} is missing here, and data keys are wrapped under it: add it`
}
