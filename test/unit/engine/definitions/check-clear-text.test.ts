import { expect, test } from 'vitest'
import { findWarnings } from '../../../../src/engine/definitions/index.ts'

const PAGINATION = {
  format: 'link_header',
  config: { allowed_origins: ['http://eu.example.com', 'https://us.example.com'] },
}

test.each([
  ['http://api.example.com', true],
  ['http://localhost.example.com', true],
  ['http://{{shop}}.example.com', true],
  ['https://api.example.com', false],
  ['http://localhost:8080/v1', false],
  ['http://127.0.0.1', false],
  ['http://[::1]:9000', false],
  ['{{context.instance_url}}', false],
])('base_url %s is named: %s', (base_url, isNamed) => {
  const found = findWarnings({ base_url }, 'config', new Date()).filter(({ rule }) => rule === 'address.clear_text')
  expect(found.map(({ field }) => field)).toEqual(isNamed ? ['config.base_url'] : [])
})

test('an allowed origin without TLS is named', () => {
  const found = findWarnings({ pagination: PAGINATION }, 'config', new Date())
  expect(found.map(({ field, rule }) => [field, rule])).toEqual([
    ['config.pagination.config.allowed_origins[0]', 'address.clear_text'],
  ])
})
