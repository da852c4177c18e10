import { DAY_MS, type Violation } from '../../foundation/base/index.ts'
import { isJsonObject, type JsonObject } from '../../foundation/json/index.ts'
import { toViolations } from './findings.ts'

/** The end of a version is announced so long before: a move to the next one may be a rewrite. */
const NOTICE_MS = 365 * DAY_MS

/**
 * Versions of the API (`api_versions`) that have ended, or end within a year. A version that `environment_variables` replaces
 * is not called, and its successor is unknown here.
 *
 * @param path prefix of the reported fields: `config`, `override`
 */
export function findVersionWarnings(config: JsonObject, path: string, now: Date): Violation[] {
  const { api_versions: versions, environment_variables: variables } = config
  if (!Array.isArray(versions)) return []
  const today = dayOf(now)
  const noticeDay = dayOf(new Date(now.getTime() + NOTICE_MS))
  const found = versions.flatMap((entry, index) => {
    if (!isJsonObject(entry) || typeof entry.ends_at !== 'string' || entry.ends_at > noticeDay) return []
    if (isReplaced(entry, isJsonObject(variables) ? variables : {})) return []
    const hasEnded = entry.ends_at <= today
    const description = `${entry.version} ${hasEnded ? 'has ended' : 'ends'} on ${entry.ends_at}${remedyOf(entry)}`
    return [{ at: ['api_versions', index], description, rule: hasEnded ? 'api_versions.ended' : 'api_versions.ends' }]
  })
  return toViolations(found, path)
}

/** The day in UTC, as `ends_at` has it. */
function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10)
}

function isReplaced({ version, variable }: JsonObject, variables: JsonObject): boolean {
  const chosen = typeof variable === 'string' ? (variables[variable] ?? version) : version
  return chosen !== version
}

function remedyOf({ variable, note, documentation_link: link }: JsonObject): string {
  const steps = [
    ...(typeof variable === 'string' ? [`set the variable ${variable} to a later version`] : []),
    ...(typeof note === 'string' ? [note] : []),
    ...(typeof link === 'string' ? [`see ${link}`] : []),
  ]
  return steps.length === 0 ? '' : `: ${steps.join('; ')}`
}
