import { isUuid, notFound, systemClock } from '../../foundation/base/index.ts'
import {
  checkProcesses,
  continueRotation,
  findUnreadableKey,
  requestDataKeyRotation,
  rewrapDataKeys,
  rotationProgress,
} from '../../foundation/secrets/index.ts'
import { ConfigError } from '../../server/config/index.ts'
import { type RunCommand, UsageError } from './command.ts'
import { type Keys, withKeys } from './open-keys.ts'
import { printError, printLine } from './output.ts'

/** Another process may be working on what is left. */
const POLL_MS = 500

/** Wraps all data keys under the first key, or makes new data keys. */
export const runKeysRotate: RunCommand = ({ flags, options: { environment: ownerId }, environment }) => {
  if (ownerId !== undefined && !isUuid(ownerId))
    throw new UsageError('keys rotate --environment takes the id of an environment or team')
  return withKeys(
    environment,
    flags.has('dataKeys') || ownerId !== undefined ? (keys) => rotateDataKeys(keys, ownerId) : rewrap,
  )
}

async function rewrap({ database, ring }: Keys): Promise<number> {
  const [first = ''] = ring.ids
  const lacking = (await checkProcesses(database.pool, ring, [])).filter(({ keys }) => keys.includes(first))
  if (lacking.length > 0) {
    const names = lacking.map(({ process }) => process.name).join(', ')
    printError([`nothing is wrapped under ${first}, which ${names} could not read: give every process ${first} first`])
    return 1
  }
  ring.chooseWriter([])
  const { rewrapped, missingKeys } = await rewrapDataKeys(database, ring, (done) => printLine(`${done} data keys`))
  printLine(`${rewrapped} data keys were wrapped under ${first}`)
  const others = (await checkProcesses(database.pool, ring, [])).filter(({ process }) => process.writesWith !== first)
  for (const { process } of others)
    printLine(
      `${process.name} still writes with ${process.writesWith}: make ${first} the first key there and repeat this`,
    )
  if (missingKeys.size === 0) return 0
  const keys = [...missingKeys].join(', ')
  printError([`data keys under ${keys} were left, because these keys are missing here or have other bytes: add them`])
  return 1
}

async function rotateDataKeys(keys: Keys, ownerId: string | undefined): Promise<number> {
  const { database, ring } = keys
  const missing = await findUnreadableKey(database.pool, ring)
  if (missing !== undefined)
    throw new ConfigError(`the key ${missing} is missing here, and data keys are wrapped under it: add it`)
  if (!(await requestDataKeyRotation(keys, ownerId))) throw notFound('environment', ownerId ?? '')
  for (let reported = -1; ; ) {
    const hasWorked = await continueRotation(keys)
    const { toReplace, toReseal, valuesLeft } = await rotationProgress(keys, ownerId)
    if (toReplace + toReseal !== reported) printLine(`${toReplace} to be replaced, ${toReseal} to be encrypted anew`)
    reported = toReplace + toReseal
    if (reported === 0) return reportLeft(valuesLeft)
    if (!hasWorked) await systemClock.sleep(POLL_MS)
  }
}

function reportLeft(valuesLeft: number): number {
  printLine(
    valuesLeft === 0
      ? 'all values are under new data keys; workers delete the replaced ones within the hour'
      : `${valuesLeft} values are left: objects that are deleted within the hour, and what cannot be read. patchbay keys list shows whether any stay`,
  )
  return 0
}
