import { describe, expect, it } from 'vitest'
import { listVariablePaths } from '../../src/expression/index.ts'

describe('the variables of an expression', () => {
  it.each([
    ['$steps.login.token', ['steps.login']],
    ['$steps.`a-b`[0].x', ['steps.a-b']],
    ['$steps["login"]', ['steps']],
    ['$previous', ['previous']],
    ['{"a": [$previous.id, "$steps.text"]}', ['previous.id']],
    ['a.$previous', ['previous']],
    ['items[id = $steps.one]', ['steps.one']],
    ['$steps.a ~> $sum', ['steps.a', 'sum']],
    ['$map(a, function($v) { $v.id })', ['v', 'v.id', 'map']],
    ['a.b', []],
    ['a +', []],
  ])('%s', (text, expected) => {
    const found = listVariablePaths(text).map(({ variable, step }) =>
      step === undefined ? variable : `${variable}.${step}`,
    )
    expect(found).toEqual(expected)
  })
})
