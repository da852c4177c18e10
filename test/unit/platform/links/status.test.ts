import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { LINK_ERRORS } from '../../../../src/platform/links/error-codes.ts'
import { LINK_STATUSES } from '../../../../src/platform/links/index.ts'
import { LINK_TRANSITIONS, pageStepOf } from '../../../../src/platform/links/status.ts'
import { transitionTable } from '../../../support/markdown.ts'

const README = readFileSync(new URL('../../../../src/platform/README.md', import.meta.url), 'utf8')

describe('the states of a link session', () => {
  it('are described in the README as they are', () => {
    expect(README).toContain(transitionTable(LINK_TRANSITIONS))
  })

  it('can all be reached, and lead to an end', () => {
    const reached = new Set<string>(['created'])
    for (const from of reached) for (const to of Object.values(LINK_TRANSITIONS[from as 'created'])) reached.add(to)
    expect([...reached].toSorted()).toEqual([...LINK_STATUSES].toSorted())
  })

  it.each(LINK_STATUSES)('%s has a step of the page', (status) => {
    expect(pageStepOf(status, false)).toMatch(/^(integration|form|consent|progress|settings|done)$/)
  })
})

describe('the error codes of a link session', () => {
  it('are described in the README, each with its advice', () => {
    const rows = Object.entries(LINK_ERRORS).map(([code, { isRepeatable, advice }]) => [
      code,
      isRepeatable ? 'yes' : 'no',
      advice,
    ])
    for (const [code, repeatable, advice] of rows)
      expect(README).toContain(`| \`${code}\` | ${repeatable} | ${advice} |`)
  })
})
