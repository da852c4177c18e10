import { isUuid } from '../../foundation/base/index.ts'
import { type AuditEntryFilter, readAuditEntries } from '../client/audit.ts'
import { type Invocation, momentOf, type RunCommand, UsageError } from './command.ts'
import { printError, printLine } from './output.ts'
import { readServerAddress } from './server-address.ts'

/** Prints entries of the audit log as NDJSON, newest first. */
export const runAuditList: RunCommand = async ({ options, environment }) => {
  const address = readServerAddress('audit list', options, environment)
  const limit = options.limit === undefined ? Number.POSITIVE_INFINITY : Number(options.limit)
  if (!(limit >= 1)) throw new UsageError('audit list --limit takes a whole number from 1')
  let printed = 0
  for await (const entry of readAuditEntries(address, filterOf(options))) {
    if (printed++ >= limit) break
    printLine(JSON.stringify(entry))
  }
  const names = NAMES.filter((option) => options[option] !== undefined)
  if (printed > 0 || names.length === 0) return 0
  printError([`the audit log has no entry with ${names.map((name) => `--${name} ${options[name]}`).join(' and ')}`])
  return 1
}

/** Options that name something: when nothing has it, the name may be misspelled. */
const NAMES = ['method', 'actor', 'target'] as const

function filterOf({ method, actor, target, since, until }: Invocation['options']): AuditEntryFilter {
  if (actor !== undefined && !isUuid(actor)) throw new UsageError('audit list --actor takes the id of a token')
  return {
    ...(method !== undefined && { method }),
    ...(actor !== undefined && { actorId: actor }),
    ...(target !== undefined && { targetId: target }),
    ...(since !== undefined && { since: momentOf('audit list --since', since) }),
    ...(until !== undefined && { until: momentOf('audit list --until', until) }),
  }
}
