import { describe, expect, it } from 'vitest'
import { FAILURE_REASONS, Failure, type FailureReason, isTransient } from '../../../../src/foundation/base/index.ts'
import { failureOutcome, startFailureOutcome } from '../../../../src/sync/jobs/page-outcome.ts'

const REASONS = (Object.keys(FAILURE_REASONS) as FailureReason[]).filter((reason) => reason !== 'LEASE_LOST')

describe('a failure', () => {
  it.each(REASONS.filter((reason) => isTransient(new Failure(reason, ''))))(
    '%s, which passes, ends no run for good, and no listing without another attempt',
    (reason) => {
      const failure = new Failure(reason, 'it did not work')
      const page = failureOutcome(failure)
      expect(page.kind).not.toBe('failed')
      if (page.kind === 'listing_error') expect(page.isTransient).toBe(true)
      expect(startFailureOutcome(failure).kind).not.toBe('failed')
    },
  )

  it.each(REASONS)('%s leads to the same outcome in the middle of a run as at its start', (reason) => {
    const failure = new Failure(reason, 'it did not work')
    const [page, start] = [failureOutcome(failure), startFailureOutcome(failure)]
    const isOver = page.kind === 'failed' || (page.kind === 'listing_error' && !page.isTransient)
    expect(start.kind === 'failed').toBe(isOver)
  })

  it('that another attempt does not change ends its listing, whatever its reason', () => {
    const failure = new Failure('UPSTREAM_INVALID_RESPONSE', 'the answer is too large', { isPermanent: true })
    expect(failureOutcome(failure)).toMatchObject({ kind: 'listing_error', isTransient: false })
    expect(startFailureOutcome(failure)).toMatchObject({ kind: 'failed' })
  })

  it('of a lost lease is not reported', () => {
    expect(() => failureOutcome(new Failure('LEASE_LOST', ''))).toThrow('LEASE_LOST')
  })
})

it('a run that meets a limit before it starts waits, also when nothing says how long', () => {
  const [unknown, named] = [{}, { retryAfterSeconds: 7 }].map((details) =>
    startFailureOutcome(new Failure('RATE_LIMITED', 'too many requests', details)),
  )
  expect(unknown).toEqual({ kind: 'rate_limited', afterMs: 30_000 })
  expect(named).toEqual({ kind: 'rate_limited', afterMs: 7_000 })
})
