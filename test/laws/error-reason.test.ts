import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ErrorReasonSchema } from '../../gen/patchbay/v1/error_reason_pb.ts'
import { FAILURE_REASONS } from '../../src/foundation/base/index.ts'

const SOURCE = readFileSync(join(import.meta.dirname, '../../proto/patchbay/v1/error_reason.proto'), 'utf8')
const PREFIX = 'ERROR_REASON_'
const NOT_A_REASON = `${PREFIX}UNSPECIFIED`

const published = ErrorReasonSchema.values.map(({ name }) => name).filter((name) => name !== NOT_A_REASON)
const reasons: readonly { readonly reason: string; readonly code: string; readonly http?: number }[] = Object.entries(
  FAILURE_REASONS,
).map(([reason, entry]) => ({ reason, ...entry }))

/** The comment above an enum value, as one line. */
function commentOf(value: string): string {
  const [before = ''] = SOURCE.split(`  ${value} =`)
  const lines = before.trimEnd().split('\n')
  const start = lines.findLastIndex((line) => !line.trimStart().startsWith('//'))
  return lines
    .slice(start + 1)
    .map((line) => line.replace(/^\s*\/\/ ?/, ''))
    .join(' ')
}

describe('the public catalogue of error reasons', () => {
  it('holds exactly the reasons the service can give', () => {
    expect(published.toSorted()).toEqual(reasons.map(({ reason }) => `${PREFIX}${reason}`).toSorted())
  })

  it.each(reasons)('says of $reason which code it goes with', ({ reason, code, http }) => {
    const comment = commentOf(`${PREFIX}${reason}`)
    const named = comment.match(/\b[A-Z]+(?:_[A-Z]+)*(?=[,.])/g) ?? []
    expect(named).toContain(code)
    expect(/HTTP (\d{3})/.exec(comment)?.[1]).toBe(http?.toString())
  })
})
