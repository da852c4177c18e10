import { invalidFields } from '../../../foundation/base/index.ts'
import type { RequestContext } from '../request-context.ts'

/** The deadline header of each protocol, and its value in milliseconds. */
const DEADLINE_HEADERS: readonly {
  readonly header: string
  readonly pattern: RegExp
  readonly toMs: (match: RegExpExecArray) => number
}[] = [
  {
    header: 'grpc-timeout',
    pattern: /^(\d{1,8})([HMSmun])$/,
    toMs: ([, amount, unit]) => Number(amount) * (GRPC_UNIT_MS[unit ?? ''] ?? 0),
  },
  { header: 'connect-timeout-ms', pattern: /^\d{1,10}$/, toMs: ([amount]) => Number(amount) },
  { header: 'x-server-timeout', pattern: /^\d{1,8}(\.\d{1,6})?$/, toMs: ([seconds]) => Number(seconds) * 1_000 },
]

const GRPC_UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 }

/**
 * Starts the deadline of a request: the client's, at most `maxMs`, or the default. Streams have neither limit nor default: a
 * stream without a deadline ends when handler, client or server end it.
 *
 * @throws Failure INVALID_FIELD when a deadline header is malformed
 */
export function startDeadline(
  context: RequestContext,
  { defaultMs, maxMs }: { readonly defaultMs?: number | undefined; readonly maxMs?: number | undefined },
): void {
  const wantedMs = clientDeadlineMs(context) ?? defaultMs
  if (wantedMs !== undefined) context.startDeadline(Math.min(wantedMs, maxMs ?? wantedMs))
}

function clientDeadlineMs(context: RequestContext): number | undefined {
  for (const { header, pattern, toMs } of DEADLINE_HEADERS) {
    const text = context.header(header)
    if (text === undefined) continue
    const match = pattern.exec(text)
    if (match !== null) return toMs(match)
    throw invalidFields([{ field: header, description: 'is not a valid timeout', rule: 'timeout' }])
  }
  return undefined
}
