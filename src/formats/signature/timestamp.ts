import { z } from 'zod'
import type { TemplateScope } from '../../expression/index.ts'
import type { InboundDelivery } from './signature.ts'
import { compileSource, readText, tokenText } from './source.ts'
import { invalid, ok, type Result } from './verdict.ts'

/** When the sender says it has sent the delivery. */
export const timestampSchema = z.strictObject({
  value: tokenText().describe('Where the time of sending is, for example `$header.x-timestamp`. It has to be signed.'),
  unit: z.enum(['seconds', 'milliseconds', 'iso']).default('seconds').describe('How the time is written.'),
  tolerance_seconds: z.int().min(1).default(300).describe('In both directions.'),
})

type TimestampKeys = z.output<typeof timestampSchema>

const WHOLE_NUMBER = /^\d{1,15}$/
const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/

/** Milliseconds since 1970, NaN for what is not a time. */
const READERS: Readonly<Record<TimestampKeys['unit'], (text: string) => number>> = {
  seconds: (text) => (WHOLE_NUMBER.test(text) ? Number(text) * 1000 : Number.NaN),
  milliseconds: (text) => (WHOLE_NUMBER.test(text) ? Number(text) : Number.NaN),
  iso: (text) => (RFC_3339.test(text) ? Date.parse(text) : Number.NaN),
}

/** Refuses deliveries that are too old or from too far in the future. */
export function compileTimestamp(
  keys: TimestampKeys | undefined,
): (delivery: InboundDelivery, scope: TemplateScope, now: Date) => Result<null> {
  if (keys === undefined) return () => ok(null)
  const source = compileSource(keys.value)
  return (delivery, scope, now) => {
    const text = readText(source, delivery, scope)
    if (text.kind === 'refused') return text
    return checkAge(READERS[keys.unit](text.value), keys.tolerance_seconds, now)
  }
}

/** @param sentMs NaN when the delivery does not name a time */
function checkAge(sentMs: number, toleranceSeconds: number, now: Date): Result<null> {
  if (Number.isNaN(sentMs)) return invalid('the timestamp is not a time')
  const isFresh = Math.abs(now.getTime() - sentMs) <= toleranceSeconds * 1000
  return isFresh ? ok(null) : invalid(`the timestamp is more than ${toleranceSeconds} seconds off`)
}

/** A sentence when the timestamp could be replaced without touching the signature: it would protect from nothing. */
export function findTimestampProblem(keys: {
  readonly timestamp?: TimestampKeys | undefined
  readonly parts: readonly string[]
}): string | undefined {
  const value = keys.timestamp?.value
  if (value === undefined || keys.parts.includes(value)) return undefined
  if (value.startsWith('$payload.') && keys.parts.includes('$body')) return undefined
  if (value.startsWith('$query.') && keys.parts.some((part) => part.startsWith('$url'))) return undefined
  return `has the timestamp ${value}, which is not among the signed parts`
}
