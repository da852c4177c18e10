import { readdirSync, readFileSync } from 'node:fs'
import { create, type DescMessage } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { CreateLinkTokenRequestSchema } from '../../../../gen/patchbay/v1/link_token_service_pb.ts'
import { CreateSyncJobRequestSchema } from '../../../../gen/patchbay/v1/sync_job_service_pb.ts'
import { CreateTeamRequestSchema, ListTeamsRequestSchema } from '../../../../gen/patchbay/v1/team_service_pb.ts'
import { formatQuantity } from '../../../../src/foundation/base/index.ts'
import { expectedType } from '../../../../src/server/api/messages/json-shape.ts'
import { describeRule, validateRules } from '../../../../src/server/api/messages/rules.ts'

const breaches = (desc: DescMessage, init: Record<string, unknown>) =>
  validateRules(desc, create(desc, init)).map(({ field, description }) => `${field} ${description}`)

it('counts one as one', () => {
  expect([0, 1, 2n].map((count) => formatQuantity(count, 'entry', 'entries'))).toEqual([
    '0 entries',
    '1 entry',
    '2 entries',
  ])
  expect(describeRule('must contain at least 1 item(s)')).toBe('must have at least 1 item')
  expect(breaches(CreateTeamRequestSchema, { name: '' })).toContain('name must not be empty')
})

it('names the characters that a field takes, not a regular expression', () => {
  expect(breaches(CreateSyncJobRequestSchema, { integrationName: 'Bad Name' })).toContain(
    'integration_name must have 1 to 128 characters: lower-case letters, digits, "_" and "-" only',
  )
  expect(describeRule('does not match regex pattern `^[0-9]{3,3}$`')).toBe('must have 3 to 3 characters: digits only')
})

it.each([
  [
    '^[a-z][a-z0-9_]{0,63}$',
    'must have 1 to 64 characters: first a lower-case letter, then lower-case letters, digits and "_" only',
  ],
  ['^[A-Za-z_][0-9]{2,3}$', 'must have 3 to 4 characters: first a letter or "_", then digits only'],
  ['^[a-z][a-z0-9_]*$', 'must have first a lower-case letter, then lower-case letters, digits and "_" only'],
  ['^[*+.]{1,2}$', 'must have 1 to 2 characters: "*", "+" and "." only'],
])('tells the first character of %s from the others', (pattern, expected) => {
  expect(describeRule(`does not match regex pattern \`${pattern}\``)).toBe(expected)
})

it('has words for every pattern of the contract', () => {
  const folder = new URL('../../../../proto/patchbay/v1/', import.meta.url)
  const patterns = readdirSync(folder).flatMap((file) =>
    Array.from(readFileSync(new URL(file, folder), 'utf8').matchAll(/pattern(?::| =) ("\^.*\$")/g), ([, text = '']) =>
      JSON.parse(text),
    ),
  )
  expect(patterns.length).toBeGreaterThan(5)
  const texts = patterns.map((pattern) => describeRule(`does not match regex pattern \`${pattern}\``))
  expect(texts.filter((text) => text.includes('pattern'))).toEqual([])
})

it('names the fields of a required oneof, which has no field of its own', () => {
  const owner = { environmentIntegrationId: '01a1febe-108f-77e8-836b-f40b4a24d381' }
  expect(breaches(CreateLinkTokenRequestSchema, owner)).toContain(
    'request must have tenant_id or integrated_account_id',
  )
})

it('names the bounds of the contract, not those of the type', () => {
  const pageSize = ListTeamsRequestSchema.fields.find(({ name }) => name === 'page_size')
  expect(pageSize && expectedType(pageSize)).toBe('must be an integer from 0 to 2147483647')
})

it.each([
  'javascript:alert(1)',
  'notaurl',
  'ftp://a.example/x',
  'http://',
  'https:///x',
  '//a.example',
  'data:text/html,x',
])('takes %s for no address of a page', (url) => {
  const expected = ['logo must be an http or https URL', 'tos_link must be an http or https URL']
  expect(breaches(CreateTeamRequestSchema, { name: 'a', logo: url, tosLink: url })).toEqual(expected)
})

it('takes http and https addresses, and empty ones', () => {
  for (const url of ['', 'https://a.example/logo.png?v=1#x', 'HTTP://127.0.0.1:80/x', 'https://[::1]/x'])
    expect(breaches(CreateTeamRequestSchema, { name: 'a', logo: url, tosLink: url })).toEqual([])
})
