import { describe, expect, it } from 'vitest'
import type { DotPath, JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  restoreSecrets,
  separateSecrets,
  storedSecretNames,
} from '../../../../src/platform/integrations/stored-config.ts'

describe('separateSecrets', () => {
  it.each<[string, JsonObject, DotPath[], JsonObject, Record<string, string>]>([
    ['a text', { a: { b: 's' } }, [['a', 'b']], { a: { b: '***' } }, { '/a/b': '"s"' }],
    ['a number', { a: 5 }, [['a']], { a: '***' }, { '/a': '5' }],
    ['inside a list', { a: [{ b: 's' }, 1] }, [['a', 0, 'b']], { a: [{ b: '***' }, 1] }, { '/a/0/b': '"s"' }],
    ['under a key with a slash', { 'a/b~c': 's' }, [['a/b~c']], { 'a/b~c': '***' }, { '/a~1b~0c': '"s"' }],
    [
      'beside a key with a dot',
      { 'a.b': 's', a: { b: 't' } },
      [['a.b']],
      { 'a.b': '***', a: { b: 't' } },
      { '/a.b': '"s"' },
    ],
    ['nowhere', { a: [[1, null], {}, []], b: null }, [], { a: [[1, null], {}, []], b: null }, {}],
  ])('takes out a secret: %s; and restoring puts it back', (_, config, paths, masked, given) => {
    const separated = separateSecrets(config, paths, [], 'config')
    expect(separated).toEqual({ masked, given, kept: [], violations: [] })
    expect(restoreSecrets(masked, given)).toEqual(config)
    expect(storedSecretNames(masked)).toEqual(Object.keys(given))
  })

  it.each<[string, DotPath[], string[], 'kept' | 'rejected']>([
    ['where a secret is stored', [['a', 'b']], ['/a/b'], 'kept'],
    ['where none is stored', [['a', 'b']], ['/a/c'], 'rejected'],
    ['where a stored one would no longer be secret', [], ['/a/b'], 'rejected'],
  ])('keeps or rejects the mask %s', (_, paths, stored, outcome) => {
    const { masked, kept, violations } = separateSecrets({ a: { b: '***' } }, paths, stored, 'config')
    expect(masked).toEqual({ a: { b: '***' } })
    if (outcome === 'kept') expect({ kept, violations }).toEqual({ kept: ['/a/b'], violations: [] })
    else expect(violations).toMatchObject([{ field: 'config.a.b', rule: 'secret.masked' }])
  })

  it('names the path of a rejected mask without a prefix too', () => {
    const { violations } = separateSecrets({ a: [{ 'b.c': '***' }] }, [], [], '')
    expect(violations.map(({ field }) => field)).toEqual(['a[0]["b.c"]'])
  })
})

describe('restoreSecrets', () => {
  it('leaves out a mask without its secret, rather than sending the mask', () => {
    expect(restoreSecrets({ a: '***', b: { c: '***' }, d: ['***', 1] }, {})).toEqual({ b: {}, d: [1] })
  })
})
