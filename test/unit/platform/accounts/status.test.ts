import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { AccountState } from '../../../../src/platform/accounts/sql/account-history.ts'
import {
  ACCOUNT_TRANSITIONS,
  CAUSE_EVENTS,
  nextStatus,
  type StatusCause,
} from '../../../../src/platform/accounts/status.ts'
import { transitionTable } from '../../../support/markdown.ts'

const CAUSES = [
  ...new Set(Object.values(ACCOUNT_TRANSITIONS).flatMap((causes) => Object.keys(causes))),
] as StatusCause[]

describe('the table of statuses', () => {
  it('is what the README shows', () => {
    const readme = readFileSync(join(import.meta.dirname, '../../../../src/platform/accounts/README.md'), 'utf8')
    expect(readme).toContain(`\n${transitionTable(ACCOUNT_TRANSITIONS, { event: CAUSE_EVENTS })}\n<!-- end -->`)
  })

  it.each<[AccountState | undefined, StatusCause[]]>([
    [undefined, ['created']],
    ['connecting', ['reconnected', 'steps_passed', 'post_install_failed', 'validation_failed', 'hosts_moved']],
    ['active', ['reconnected', 'refresh_failed', 'token_lost', 'unauthorized', 'hosts_moved']],
    ['post_install_error', ['reconnected', 'steps_repeated', 'hosts_moved']],
    ['validation_error', ['reconnected', 'steps_repeated', 'hosts_moved']],
    ['unauthorized', ['reconnected', 'refresh_failed', 'token_lost', 'call_succeeded', 'hosts_moved']],
    ['needs_reauth', ['reconnected', 'token_granted']],
  ])('leaves %s by nothing else', (from, possible) => {
    expect(CAUSES.filter((cause) => nextStatus(from, cause) !== undefined).toSorted()).toEqual(possible.toSorted())
  })

  it('leads every status back to active', () => {
    const stuck = new Set(Object.keys(ACCOUNT_TRANSITIONS).filter((from) => from !== 'active') as AccountState[])
    const leadsOut = (from: AccountState) =>
      CAUSES.map((cause) => nextStatus(from, cause)).some((to) => to !== undefined && !stuck.has(to))
    for (let size = -1; size !== stuck.size; ) {
      size = stuck.size
      for (const from of [...stuck].filter(leadsOut)) stuck.delete(from)
    }
    expect([...stuck]).toEqual([])
  })
})
